"""A model of an object store with several concurrent writers: every order of their requests, with failures and crashes.

Writers are plain functions that run the real code. A writer depends only on the responses to its requests, so the code runs again from its
beginning for each request: it gets the recorded responses, and is stopped at the first request without one. A state of the search is the
content of the store with the responses that each writer got. Known states are not searched again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final

import pytest

from statetool.io import files, listing, owner, targets
from statetool.saving import publish

TARGET: Final = "model://bucket/sp"
_ROOT: Final = "bucket/sp/"
Request = tuple[Any, ...]
#: ``("answer", value)`` or ``("raise", class)``.
Reply = tuple[str, Any]
_HOUR: Final = 3600


class Stopped(BaseException):
    """The code has made a request whose response the search has yet to choose."""


class Client:
    """The file system as seen by one run of a writer."""

    protocol = "model"

    def __init__(self, name: str, replies: tuple[Reply, ...]) -> None:
        self.name = name
        self._replies = iter(replies)
        self.pending: Request | None = None
        self._ids = 0

    def ask(self, *request: Any) -> Any:
        reply = next(self._replies, None) if self.pending is None else None
        if reply is None:
            self.pending = self.pending or request
            raise Stopped
        kind, value = reply
        if kind == "raise":
            raise value(5, f"{request[0]} failed") if issubclass(value, OSError) else value
        return value

    def next_id(self) -> Any:
        self._ids += 1
        return SimpleNamespace(hex=f"{self.name}{self._ids}")

    def invalidate_cache(self) -> None:
        pass

    def makedirs(self, path: str, exist_ok: bool) -> None:
        pass

    def exists(self, path: str) -> Any:
        return self.ask("exists", path)

    def isdir(self, path: str) -> Any:
        return self.ask("isdir", path)

    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]:
        return [{"name": name, "size": size, "type": "file"} for name, size in self.ask("ls", path)]

    def size(self, path: str) -> Any:
        return self.ask("info", path)[0]

    def info(self, path: str) -> dict[str, Any]:
        size, time = self.ask("info", path)
        return {"size": size, "mtime": time}

    def cat_file(self, path: str) -> Any:
        return self.ask("cat", path)

    def rm_file(self, path: str) -> None:
        self.ask("rm", path)

    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        self.ask("put", path, bytes(data), mode == "create")

    def open(self, path: str, mode: str) -> Any:
        return _Upload(self, path)


class _Upload(io.BytesIO):
    """A file that appears in the store when it is closed."""

    def __init__(self, client: Client, path: str) -> None:
        super().__init__()
        self._client, self._path, self._done = client, path, False

    def close(self) -> None:
        if not self._done:
            self._done = True
            self._client.ask("put", self._path, self.getvalue(), False)

    def discard(self) -> None:
        self._done = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Parameters of a search.

    Attributes
    ----------
    writers
        A function by name; each begins with an empty history.
    same_host
        Writers know whether the process of another one is running; otherwise they only see the ages of markers.
    ages
        Hours by which the marker of a writer is older than those of the others.
    failures
        Maximum total number of requests without a true response: see :data:`FAILURES`.
    switches
        Maximum number of times that a running writer is interrupted by another one; ``None`` for no limit.
    wrong_deaths
        Every writer is told that the processes of the others ended: an error that the search must find.
    """

    writers: Mapping[str, Callable[[], object]]
    same_host: bool
    ages: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    switches: int | None = None
    wrong_deaths: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """One state: objects, responses and pending requests; ``ended`` are writers whose process was killed."""

    objects: frozenset[tuple[str, bytes]]
    replies: tuple[tuple[Reply, ...], ...]
    ended: frozenset[str] = frozenset()
    late: frozenset[tuple[str, Request]] = frozenset()
    failures: int = 0
    current: str = ""
    switches: int = 0


#: How a request can fail: the error, and whether the store performs it before the error, not at all, or at any time after it.
FAILURES: Final = tuple(
    (error, when) for error in (OSError, PermissionError, KeyboardInterrupt) for when in ("before", "never", "after")
)


class Explorer:
    """Search of all states; ``check`` is called with each."""

    def __init__(self, search: Search, patch: pytest.MonkeyPatch) -> None:
        self.search = search
        self.names = list(search.writers)
        self.steps: dict[tuple[str, tuple[Reply, ...]], Request] = {}
        self.client = Client("", ())
        self.states = 0
        for module in (files, targets, listing):
            patch.setattr(module, "file_system", lambda uri: (self.client, uri.partition("://")[2]))
        patch.setattr(publish, "uuid", SimpleNamespace(uuid4=lambda: self.client.next_id()))
        patch.setattr(owner, "describe_owner", lambda: self.client.name.encode())
        patch.setattr(owner, "is_running", lambda marker, _: self.client.ask("running", marker.decode()))

    def step(self, name: str, replies: tuple[Reply, ...]) -> Request:
        """Return the next request of a writer, or ``("returned",)`` or ``("raised", error)``."""
        if (name, replies) not in self.steps:
            self.client = Client(name, replies)
            try:
                self.search.writers[name]()
            except Stopped:
                assert self.client.pending is not None
                outcome = self.client.pending
            except BaseException as error:  # noqa: BLE001 - interrupts too
                outcome = ("raised", error)
            else:
                outcome = ("returned",)
            self.steps[name, replies] = outcome
        return self.steps[name, replies]

    def outcome(self, state: State, name: str) -> str:
        """Return the outcome of a writer: ``returned``, ``raised``, ``killed`` or ``goes on``."""
        if name in state.ended:
            return "killed"
        kind = self.step(name, state.replies[self.names.index(name)])[0]
        return kind if kind in ("returned", "raised") else "goes on"

    def run(self, check: Callable[[State], None], start: frozenset[tuple[str, bytes]] = frozenset()) -> None:
        """Search, starting from a content of the store."""
        first = State(start, tuple(() for _ in self.names))
        seen, stack = {first}, [first]
        while stack:
            state = stack.pop()
            self.states += 1
            check(state)
            for after in self._successors(state):
                if after not in seen:
                    seen.add(after)
                    stack.append(after)

    def _successors(self, state: State) -> Iterator[State]:
        for who, request in state.late:
            objects, _ = self._answer(state, request)
            yield replace(state, objects=objects, late=state.late - {(who, request)})
        bound = self.search.switches
        for i, name in enumerate(self.names):
            if self.outcome(state, name) != "goes on":
                continue
            now = state
            if bound is not None:
                preempted = state.current not in ("", name) and self.outcome(state, state.current) == "goes on"
                if preempted and state.switches == bound:
                    continue
                now = replace(state, current=name, switches=state.switches + preempted)
            if self.search.same_host:
                yield replace(now, ended=now.ended | {name})
            request = self.step(name, now.replies[i])
            objects, reply = self._answer(now, request)
            yield self._replied(replace(now, objects=objects), i, reply)
            if now.failures < self.search.failures and request[0] != "running":
                for error, when in FAILURES:
                    failed = replace(now, failures=now.failures + 1)
                    if when == "before":
                        failed = replace(failed, objects=objects)
                    elif when == "after":
                        # Only requests at the end of the write have effects that matter, and a refusal is a response.
                        if request[0] != "put" or error is PermissionError or not request[1].endswith("/_metadata"):
                            continue
                        failed = replace(failed, late=failed.late | {(name, request)})
                    if when == "before" and error is PermissionError:
                        continue
                    yield self._replied(failed, i, ("raise", error))

    def _replied(self, state: State, i: int, reply: Reply) -> State:
        replies = (*state.replies[:i], (*state.replies[i], reply), *state.replies[i + 1 :])
        return replace(state, replies=replies)

    def _answer(self, state: State, request: Request) -> tuple[frozenset[tuple[str, bytes]], Reply]:
        kind, path, *rest = request
        objects = dict(state.objects)
        if kind == "running":
            # A pending request means that the process still has its connection.
            late = any(who == path for who, _ in state.late)
            running = not self.search.wrong_deaths and (
                late or (path in self.names and self.outcome(state, path) == "goes on")
            )
            return state.objects, ("answer", running if self.search.same_host else None)
        if kind == "ls":
            found = tuple(sorted((p, len(d)) for p, d in objects.items() if p.startswith(_ROOT)))
            return state.objects, ("answer", found) if found else ("raise", FileNotFoundError)
        if kind in ("exists", "isdir"):
            below = any(p.startswith(f"{path}/") for p in objects)
            return state.objects, ("answer", below or (kind == "exists" and path in objects))
        if kind == "put":
            data, create = rest
            if create and path in objects:
                return state.objects, ("raise", FileExistsError)
            return frozenset({**objects, path: data}.items()), ("answer", None)
        if path not in objects:
            return state.objects, ("raise", FileNotFoundError)
        if kind == "rm":
            del objects[path]
            return frozenset(objects.items()), ("answer", None)
        if kind == "cat":
            return state.objects, ("answer", objects[path])
        assert kind == "info", kind
        age = self.search.ages.get(objects[path].decode(errors="replace"), 0)
        return state.objects, ("answer", (len(objects[path]), (100 - age) * _HOUR))


def names_in(state: State) -> dict[str, bytes]:
    """Return the objects of the target by the last part of their names."""
    return {path.removeprefix(_ROOT): data for path, data in state.objects}
