"""An object store in this process whose objects are made when they are read, and which counts requests and takes time for each.

``sim://`` is its scheme. Requests have a latency, and listings have pages of 1,000 names, as in S3. Nothing is stored: an object is a size and
a function that returns any of its bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem

from statetool.io import requests

PAGE: Final = 1000
#: Answers to all requests in flight arrive when none has begun for this many steps of this many seconds. A process that a busy machine holds up,
#: for however long, misses one step: its other threads run before the next.
_STEPS: Final = 10
_STEP_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class SimulatedObject:
    """An object: its size, and its bytes from a start to an end."""

    size: int
    read: Callable[[int, int], bytes]


@dataclass(slots=True)
class World:
    """Objects by path, with the names of each folder.

    Attributes
    ----------
    latency
        Seconds of a request.
    together
        Answer requests in flight together, when no other one begins for a while: those that do not wait for each other overlap, however long a
        busy machine takes to make all of them.
    requests
        Kind, path, start and end time of each request since they were last cleared.
    ranges
        Start and end of the bytes of each ``GET`` since they were last cleared, by path.
    """

    latency: float
    objects: dict[str, SimulatedObject] = field(default_factory=dict)
    folders: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    requests: list[tuple[str, str, float, float]] = field(default_factory=list)
    ranges: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    together: bool = False
    _begun: int = field(default=0, init=False)
    _pause: asyncio.Task[None] | None = field(default=None, init=False)

    async def wait(self) -> None:
        """Wait for the answer to a request that begins with this call."""
        if not self.together:
            await asyncio.sleep(self.latency)
            return
        self._begun += 1
        if self._pause is None or self._pause.done():
            self._pause = asyncio.ensure_future(self._wait_until_none_begins())
        await asyncio.shield(self._pause)  # whoever is cancelled, the others wait for it

    async def _wait_until_none_begins(self) -> None:
        steps = 0
        while steps < _STEPS:
            begun = self._begun
            await asyncio.sleep(_STEP_S)
            steps = steps + 1 if self._begun == begun else 0

    def add(self, path: str, item: SimulatedObject) -> None:
        """Add an object, and its folders."""
        self.objects[path] = item
        while path:
            folder, _, name = path.rpartition("/")
            if name in self.folders[folder]:
                return
            self.folders[folder][name] = None
            path = folder

    def chain(self) -> int:
        """Return the number of requests that were made one after another: the most that do not overlap."""
        latest, count = 0.0, 0
        for end, start in sorted((end, start) for _, _, start, end in self.requests):
            if start >= latest:
                latest, count = end, count + 1
        return count

    def in_flight(self) -> int:
        """Return the most requests at one time."""
        ends: list[float] = []
        most = 0
        for _, _, start, end in sorted(self.requests, key=lambda r: r[2]):
            while ends and ends[0] <= start:
                heapq.heappop(ends)
            heapq.heappush(ends, end)
            most = max(most, len(ends))
        return most


def add_file(world: World, path: str, data: bytes) -> None:
    """Add an object with these bytes."""
    world.add(path, SimulatedObject(len(data), lambda start, end: data[start:end]))


class SimulatedFileSystem(AsyncFileSystem):
    """File system over the current :class:`World`."""

    protocol = "sim"
    world: ClassVar[World]
    cachable = True

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("sim://").strip("/")

    async def _request(self, kind: str, path: str) -> None:
        start = time.perf_counter()
        await self.world.wait()
        self.world.requests.append((kind, path, start, time.perf_counter()))

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        path = self._strip_protocol(path)
        await self._request("GET", path)
        if path not in self.world.objects:
            raise FileNotFoundError(path)
        item = self.world.objects[path]
        start, end = start or 0, item.size if end is None else min(end, item.size)
        self.world.ranges[path].append((start, end))
        return item.read(start, end)

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        with contextlib.suppress(FileNotFoundError):
            for listed in self._ls_from_cache(path) or ():  # as s3fs does
                if listed["name"] == path:
                    return dict(listed)
        await self._request("HEAD", path)
        if path in self.world.objects:
            return {"name": path, "size": self.world.objects[path].size, "type": "file"}
        if path in self.world.folders:
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if path in self.dircache:
            found = self.dircache[path]
            return found if detail else [f["name"] for f in found]
        names = self.world.folders.get(path)
        for _page in range(1 + len(names or ()) // PAGE):
            await self._request("LIST", path)
        if names is None:
            raise FileNotFoundError(path)
        found = []
        for name in names:
            item = self.world.objects.get(f"{path}/{name}")
            kind = "directory" if item is None else "file"
            found.append({"name": f"{path}/{name}", "size": 0 if item is None else item.size, "type": kind})
        self.dircache[path] = found
        return found if detail else [f["name"] for f in found]

    def invalidate_cache(self, path: str | None = None) -> None:
        if path is None:
            self.dircache.clear()
        else:
            self.dircache.pop(self._strip_protocol(path), None)


@contextlib.contextmanager
def simulated_store(latency: float) -> Iterator[World]:
    """Make an empty store the one of ``sim://``. What is kept is not requested again, however long a busy machine takes."""
    fsspec.register_implementation("sim", SimulatedFileSystem, clobber=True)
    SimulatedFileSystem.clear_instance_cache()
    SimulatedFileSystem.world = World(latency)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "_KEPT_SECONDS", math.inf)
        yield SimulatedFileSystem.world
    SimulatedFileSystem.clear_instance_cache()
