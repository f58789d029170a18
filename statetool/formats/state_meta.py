"""Metadata of registered states, as stored in the headers of keyed and operator streams.

Layouts M1 (Flink 1.2) to M6 (1.7 and later). Follows ``StateMetaInfoSnapshotReadersWriters`` and ``LegacyStateMetaInfoReaders``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, TypeAlias, TypeVar

from statetool.errors import FormatError, StatetoolError, UnknownSerializerError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.core.snapshot import SnapshotReader, write_proxied
from statetool.serializers.pyflink.serializer import declared_in_python
from statetool.serializers.runtime import TimerSerializer, unwrap
from statetool.types.declared import TypeContext

T = TypeVar("T")
KEY_VALUE, OPERATOR, BROADCAST, PRIORITY_QUEUE, KEY_VALUE_V2 = range(5)
_KINDS_M3: Final = ("UNKNOWN", "VALUE", "LIST", "REDUCING", "FOLDING", "AGGREGATING", "MAP")
_KIND_NAMES: Final = {k: k.lower() for k in _KINDS_M3}
_SERIALIZER_KEYS: Final = {
    "VALUE_SERIALIZER",
    "NAMESPACE_SERIALIZER",
    "KEY_SERIALIZER",
    "USER_KEY_SERIALIZER",
}
_NAME_OF_SERIALIZER: Final = re.compile(
    b"|".join(re.escape(len(key).to_bytes(2, "big") + key.encode()) for key in sorted(_SERIALIZER_KEYS))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMetaInfo:
    """One registered state. ``backend_type`` is the ordinal on the wire (0 KEY_VALUE .. 4 KEY_VALUE_V2)."""

    name: str
    backend_type: int
    options: dict[str, str]
    serializers: dict[str, Serializer]

    @property
    def kind(self) -> str:
        """``value``, ``list``, ``map``, ``reducing``, ``aggregating``, ``folding``, ``timers``; for operator
        state ``list``, ``union`` or ``broadcast``."""
        if self.backend_type == PRIORITY_QUEUE:
            return "timers"
        if self.backend_type in (OPERATOR, BROADCAST):
            mode = self.options.get("OPERATOR_STATE_DISTRIBUTION_MODE", "SPLIT_DISTRIBUTE")
            return {"SPLIT_DISTRIBUTE": "list", "UNION": "union", "BROADCAST": "broadcast"}.get(mode, mode.lower())
        kind = _KIND_NAMES.get(self.options.get("KEYED_STATE_TYPE", "UNKNOWN"), "unknown")
        if kind != "unknown":
            return kind
        # Very old snapshots do not store the kind; the value's serializer determines it where it matters.
        value = type(self.serializers["VALUE_SERIALIZER"]).__name__
        return {"ListSerializer": "list", "MapSerializer": "map"}.get(value, "value")

    @property
    def value(self) -> Serializer:
        """Serializer of the value (of a complete list or map; of a timer)."""
        return self.serializers["VALUE_SERIALIZER"]

    @property
    def namespace(self) -> Serializer | None:
        """Serializer of the namespace, for keyed state."""
        return self.serializers.get("NAMESPACE_SERIALIZER")

    @property
    def parts(self) -> tuple[Serializer, ...]:
        """Serializer of a list's elements, or of a map's keys and values; empty for other kinds.

        In the form of Flink 2's async state (``KEY_VALUE_V2``) they are listed one by one; otherwise they are nested in the value's
        serializer.
        """
        if self.kind not in ("list", "map"):
            return ()
        value = unwrap(self.value)
        if self.backend_type == KEY_VALUE_V2:
            key = self.serializers.get("USER_KEY_SERIALIZER")
            return (value,) if self.kind == "list" else () if key is None else (unwrap(key), value)
        parts = tuple(unwrap(s) for _, s in value.children())
        return parts if len(parts) == (1 if self.kind == "list" else 2) else ()


def read_m6(c: Cursor, types: TypeContext, read: ReadSerializer, states_left: int = 0) -> StateMetaInfo:
    """Read the layout of Flink 1.7 and later; ``read`` reads each proxied serializer, and ``states_left`` states follow."""
    name, backend_type, options = _head(c)
    serializers = {}
    for following in reversed(range(c.count("serializers", at_least=8))):
        start = c.pos
        key = c.utf()
        if key not in _SERIALIZER_KEYS:
            raise c.fail(f"unknown serializer {key!r} of state {name!r}", pos=start)
        try:
            serializers[key] = read(c, following, states_left)
        except FormatError as error:
            raise error.at(state=name) from None
    return _check(c, types, name, backend_type, options, serializers)


def read_m5(c: Cursor, reader: SnapshotReader) -> StateMetaInfo:
    """Read the layout of Flink 1.6."""
    name, backend_type, options = _head(c)
    keys = [c.utf() for _ in range(c.count("serializer names", at_least=2))]
    serializers = reader.resilient_list(c)
    if len(serializers) != len(keys):
        raise c.fail(f"{len(serializers)} serializers for {len(keys)} names of state {name!r}")
    return _check(c, reader.types, name, backend_type, options, dict(zip(keys, serializers, strict=True)))


def read_m3(c: Cursor, reader: SnapshotReader) -> StateMetaInfo:
    """Read the layout of Flink 1.3 to 1.5."""
    kind = c.i4()
    if not 0 <= kind < len(_KINDS_M3):
        raise c.fail(f"state type {kind}", pos=c.pos - 4)
    name = c.utf()
    namespace_and_value = reader.resilient_list(c)
    if len(namespace_and_value) != 2:
        raise c.fail(f"{len(namespace_and_value)} serializers of state {name!r}, expected namespace and value")
    serializers = {"NAMESPACE_SERIALIZER": namespace_and_value[0], "VALUE_SERIALIZER": namespace_and_value[1]}
    return _check(c, reader.types, name, KEY_VALUE, {"KEYED_STATE_TYPE": _KINDS_M3[kind]}, serializers)


def _head(c: Cursor) -> tuple[str, int, dict[str, str]]:
    name = c.utf()
    backend_type = c.i4()
    if not 0 <= backend_type <= KEY_VALUE_V2:
        raise c.fail(f"backend state type {backend_type} of state {name!r} is not 0 to 4", pos=c.pos - 4)
    options = {c.utf(): c.utf() for _ in range(c.count("options", at_least=4))}
    return name, backend_type, options


def _check(
    c: Cursor,
    types: TypeContext,
    name: str,
    backend_type: int,
    options: dict[str, str],
    serializers: dict[str, Serializer],
) -> StateMetaInfo:
    needed = {"VALUE_SERIALIZER"}
    if backend_type in (KEY_VALUE, KEY_VALUE_V2):
        needed |= {"NAMESPACE_SERIALIZER"}
    if backend_type == BROADCAST:
        needed |= {"KEY_SERIALIZER"}
    if missing := needed - serializers.keys():
        raise c.fail(f"state {name!r} lacks its {', '.join(sorted(missing))}")
    value = serializers["VALUE_SERIALIZER"]
    if backend_type == PRIORITY_QUEUE and not isinstance(value, (TimerSerializer, OpaqueSerializer)):
        raise c.fail(f"the elements of the queue {name!r} are {value.type_name}, not timers")
    if types.python:
        serializers = declared_in_python(name, serializers, types)
    return StateMetaInfo(name=name, backend_type=backend_type, options=options, serializers=serializers)


def newer_version(c: Cursor, what: str, version: int, known: str) -> UnsupportedError:
    """Return the error for a version newer than all known ones; the cursor must be right after the version.

    A damaged version number looks the same.
    """
    return UnsupportedError(
        f"{what} version {version} is not known, only {known}",
        hint="a newer Flink wrote it, or its bytes were changed",
    ).at(offset=c.offset - 4)


def check_timers(meta: StateMetaInfo) -> TimerSerializer:
    """Return the serializer of a timer queue.

    Raises
    ------
    UnknownSerializerError
        The serializer of keys or namespaces is unknown.
    """
    if not isinstance(meta.value, TimerSerializer):
        raise UnknownSerializerError(f"timers whose parts are not known: {meta.value.type_name}").at(state=meta.name)
    return meta.value


def write_meta_v6(out: Output, meta: StateMetaInfo) -> None:
    """Append the layout of Flink 1.7 and later."""
    out.utf(meta.name)
    out.i4(meta.backend_type)
    out.i4(len(meta.options))
    for key, value in meta.options.items():
        out.utf(key)
        out.utf(value)
    out.i4(len(meta.serializers))
    for key, serializer in meta.serializers.items():
        out.utf(key)
        write_proxied(out, serializer)


#: Reads a proxied serializer; the numbers are the serializers of the same state that follow, and the states that follow.
ReadSerializer: TypeAlias = Callable[[Cursor, int, int], Serializer]
HeaderParser: TypeAlias = Callable[[Cursor, SnapshotReader, ReadSerializer], T]
#: Maximum number of attempts to read a header while searching for the ends of unknown snapshots in it.
_MAX_ATTEMPTS: Final = 4096
_LONGEST_NAME: Final = 1024


class _UnlocatedError(Exception):
    """An unknown snapshot whose end has not been chosen.

    ``after`` is the start of its payload. ``state`` is everything that the rest of the search depends on: start of the snapshot, number of
    complete states, remaining serializers of its state, remaining states.
    """

    def __init__(self, after: int, state: tuple[int, int, int, int], error: UnknownSerializerError) -> None:
        super().__init__()
        self.after = after
        self.state = state
        self.error = error


def read_with_unknowns(c: Cursor, reader: SnapshotReader, parse: HeaderParser[T], *, end: int | None) -> T:
    """Parse a header in which snapshot classes may be unknown.

    Nothing in a snapshot says how long it is. If the header's end is known, each position after an unknown snapshot at which a header could
    continue is tried, and the one with which the header ends there is used. The unknown snapshot becomes an
    :class:`~statetool.serializers.core.opaque.OpaqueSerializer` with its exact bytes.

    Parameters
    ----------
    parse
        Parses the header, given the reader and the function that reads proxied serializers.
    end
        Position right after the header, ``None`` if unknown.

    Raises
    ------
    UnknownSerializerError
        The end is unknown, or the rest fits at no position or at more than one.
    """
    search = _UnknownsSearch(c, reader, parse, end)
    search.run(())
    if len(search.fitting) != 1:
        raise search.first_unknown or c.fail("the header does not end where the first key group starts")
    return search.attempt(search.fitting[0])


class _UnknownsSearch(Generic[T]):
    """Search for the ends of unknown snapshots with which a header ends at its known end."""

    def __init__(self, c: Cursor, reader: SnapshotReader, parse: HeaderParser[T], end: int | None) -> None:
        self._cursor = c
        self._reader = reader
        self._parse = parse
        self._start = c.pos
        self._end = end
        self._attempts = 0
        #: Search states that were tried, and whether the header's end was reached from there.
        self._tried: dict[tuple[int, int, int, int], bool] = {}
        #: Ends of all unknown snapshots, in order, with which the header parses to its end; the search stops at two.
        self.fitting: list[tuple[int, ...]] = []
        self.first_unknown: UnknownSerializerError | None = None

    @cached_property
    def _states(self) -> list[int]:
        """Possible starts of a state, ascending; empty if the header's end is unknown."""
        if self._end is None:
            return []
        raw = bytes(self._cursor.data[: self._end])
        return [at for at in range(self._start, self._end) if _could_be_state(raw, at)]

    @cached_property
    def _places(self) -> list[int]:
        """Positions where a header could continue after a serializer: a state (or its count), a serializer name, the end (or a count)."""
        if self._end is None:
            return []
        raw = bytes(self._cursor.data[: self._end])
        places = {at - before for at in self._states for before in (0, 2)} | {self._end}
        places |= {self._end - 2} if raw.endswith(b"\0\0") else set()
        places |= {name.start() for name in _NAME_OF_SERIALIZER.finditer(raw)}
        return sorted(places)

    def run(self, ends: tuple[int, ...]) -> None:
        """Search for all fitting ends that begin with ``ends``."""
        self._attempts += 1
        try:
            self.attempt(ends)
        except _UnlocatedError as gap:
            self.first_unknown = self.first_unknown or gap.error
            self._place(gap, ends)
        except StatetoolError:
            if not ends:
                raise
        else:
            if self._end is None or self._cursor.pos == self._end:
                self.fitting.append(ends)

    def _place(self, gap: _UnlocatedError, ends: tuple[int, ...]) -> None:
        """Try each end of an unknown snapshot after the ends already chosen for others."""
        if gap.state in self._tried:
            # The search from this state was done before: this is another path to the end, if there was one.
            self.fitting += [ends] if self._tried[gap.state] else []
            return
        before = len(self.fitting)
        *_, states_left = gap.state
        for position in self._places[bisect_left(self._places, gap.after) :]:
            if len(self._states) - bisect_left(self._states, position) < states_left:
                break
            if len(self.fitting) > 1 or self._attempts >= _MAX_ATTEMPTS:
                # There may be more that fit: two mean "not unique".
                self.fitting += [ends, ends]
                return
            self.run((*ends, position))
        self._tried[gap.state] = len(self.fitting) > before

    def attempt(self, ends: tuple[int, ...]) -> T:
        """Read the header; raise :class:`_UnlocatedError` for an unknown snapshot for which ``ends`` has no end."""
        self._cursor.pos = self._start
        unused_ends = iter(ends)
        complete = 0

        def read(cursor: Cursor, following: int, states_left: int) -> Serializer:
            nonlocal complete
            begin = cursor.pos
            try:
                return self._reader.proxied(cursor)
            except UnknownSerializerError as error:
                end = next(unused_ends, None)
                if end is None:
                    raise _UnlocatedError(cursor.pos, (begin, complete, following, states_left), error) from None
                cursor.pos = end
                opaque = OpaqueSerializer(bytes(cursor.data[begin + 4 : end]), error.message)
                opaque.proxy_bytes = bytes(cursor.data[begin:end])
                opaque.types = self._reader.types
                return opaque
            finally:
                complete += following == 0

        return self._parse(self._cursor, self._reader, read)


def _could_be_state(raw: bytes, at: int) -> bool:
    size = int.from_bytes(raw[at : at + 2], "big")
    if size > _LONGEST_NAME:
        return False
    types = raw[at + 2 + size : at + 10 + size]
    return len(types) == 8 and types[:3] == b"\0\0\0" and types[3] <= KEY_VALUE_V2 and types[4:7] == b"\0\0\0"
