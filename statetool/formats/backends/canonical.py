"""Canonical keyed streams as entry batches, with bounded memory.

Small key groups are read several at a time. A key group larger than the budget is read in windows (:func:`open_large`), so that only
one window of it is in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError, StatetoolError
from statetool.formats.compression import read_chunks, stream_chunks
from statetool.formats.heap.walk import NUMBER_BYTES, read_heap
from statetool.formats.keyed.entries import EntryBatch, Region, locate
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, adjacent
from statetool.formats.stream import OpenStream, Stream
from statetool.kernels.core.arrays import Int64s, frozen
from statetool.kernels.entries.key_search import FOUND, UNTIL_START, KeySearch, StateRuns, index_entries
from statetool.kernels.entries.walk import FULL, POSITION, STATE, WALK_MESSAGES, KeyGroups, Rows, rows_at, walk

WINDOW_BYTES: Final = 32 << 20
#: Bytes of a window of which only the places of entries are needed: small enough to stay in the processor's cache.
_SCAN_BYTES: Final = 512 << 10
#: Maximum number of entries of a key group whose places are kept in memory.
_MOST_STARTS: Final = 1 << 22
# Snappy's densest element makes 64 bytes from 3.
MOST_COMPRESSED: Final = 22
_SMALLEST_ENTRY: Final = 9
_LENGTH_BYTES: Final = 4
_ID_BYTES: Final = 2
_MOST_RUNS: Final = 1 << 16
#: Bytes of a window in which entries of some keys are looked for.
_FIND_BYTES: Final = 1 << 20
#: Entries of wanted keys that one step of a scan returns.
_MOST_FOUND: Final = 1 << 12
#: Entries of a state per start that a scan for keys keeps: the index of a key group is about a thousandth of it.
STRIDE: Final = 128


#: Cursor of a walk that has not begun.
_START: Final = (0, -1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLayout:
    """Properties of a stream that the walk needs; ``heap`` is its header if it has the layout of the heap backend."""

    prefix: int
    states: int
    compressed: bool
    heap: KeyedHeader | None = None


def _load(f: OpenStream, groups: Sequence[KeyGroupRange], layout: StreamLayout) -> tuple[Any, tuple[Region, ...]]:
    """Read and uncompress the bytes of canonical key groups, one after another."""
    base = f.stream.start
    compressed = layout.compressed
    regions: list[Region] = []
    buffers: list[Any] = []
    at = 0
    for run in adjacent(groups):
        raw = f.read_at(run[0].offset, sum(g.size_bytes for g in run))
        if not compressed:
            buffers.append(raw)
        for group in run:
            size = group.size_bytes
            if compressed:
                start = group.offset - run[0].offset
                chunks = _uncompress(raw[start : start + size], group, f.stream)
                buffers += chunks
                size = sum(map(len, chunks))
            regions.append(Region(at, base + group.offset, group.number, compressed))
            at += size
    regions.append(Region(at, base, None, compressed))
    return buffers[0] if len(buffers) == 1 else b"".join(buffers), tuple(regions)


def _uncompress(raw: memoryview, group: KeyGroupRange, stream: Stream) -> list[bytes]:
    """Return the uncompressed chunks of one key group."""
    try:
        return [chunk.data for chunk in read_chunks(raw, base=stream.start + group.offset)]
    except StatetoolError as error:
        raise error.at(file=stream.file, key_group=group.number) from None


def is_larger(f: OpenStream, group: KeyGroupRange, layout: StreamLayout, limit: int) -> bool:
    """Return True if a key group has more than ``limit`` bytes uncompressed, using bounded memory."""
    if not layout.compressed:
        return group.size_bytes > limit
    if group.size_bytes * MOST_COMPRESSED <= limit:
        return False
    size = 0
    if layout.heap is not None:
        group = KeyGroupRange(group.number, group.offset + NUMBER_BYTES, group.size_bytes - NUMBER_BYTES)
    for chunk in _chunks(f, group):
        size += len(chunk)
        if size > limit:
            return True
    return False


def _chunks(f: OpenStream, group: KeyGroupRange) -> Iterator[bytes]:
    """Yield the uncompressed chunks of one key group of any size."""

    def read(offset: int, length: int) -> memoryview:
        return f.read_at(group.offset + offset, length)

    try:
        for chunk in stream_chunks(read, group.size_bytes, base=f.stream.start + group.offset):
            yield chunk.data
    except FormatError as error:
        raise error.at(file=f.stream.file, key_group=group.number) from None


def read_entries(f: OpenStream, groups: Sequence[KeyGroupRange], layout: StreamLayout) -> EntryBatch:
    """Read all entries of key groups at once.

    Raises
    ------
    FormatError
        Damaged; with file, offset and key group.
    """
    if layout.heap is not None:
        return read_heap(f, groups, layout.heap)
    raw, regions = _load(f, groups, layout)
    return _walk_whole(raw, regions, layout, f.stream)


def _walk_whole(raw: Any, regions: tuple[Region, ...], layout: StreamLayout, stream: Stream) -> EntryBatch:
    data = _readonly(raw)
    edges = np.array([r.start for r in regions], dtype=np.int64)
    numbers = np.array([r.key_group for r in regions[:-1]], dtype=np.int64)
    walker = _Walker(data, edges[:-1], edges[1:], numbers, layout)
    outs = [walker.step(len(data), regions[:-1], stream.file)]
    while not walker.done:
        outs.append(walker.step(len(data), regions[:-1], stream.file))
    columns = outs[0] if len(outs) == 1 else [np.concatenate(c) for c in zip(*outs, strict=True)]
    return _batch(data, columns, regions[:-1], stream.file)


@dataclass(frozen=True, slots=True)
class Section:
    """Entries of one state in a key group. Positions count from the start of the (uncompressed) key group.

    Attributes
    ----------
    ordered
        Whether the keys ascend.
    entries
        Number of entries.
    starts
        int64[m]: the start of every ``stride``-th entry.
    end
        The end of the last entry.
    """

    state: int
    ordered: bool
    entries: int
    starts: Int64s
    stride: int
    end: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the entries."""
        return self.end - int(self.starts[0])

    def bounds(self, first: int, stop: int) -> tuple[int, int]:
        """Return the start and end of the bytes to read for entries ``first .. stop``, of which there is at least one."""
        following = -(-stop // self.stride)
        end = self.end if following >= len(self.starts) else int(self.starts[following])
        return int(self.starts[first // self.stride]), end


def key_search(keys: Sequence[bytes], shifts: Sequence[int]) -> KeySearch:
    """Return the search for entries that begin with one of some keys.

    Parameters
    ----------
    shifts
        Bytes before the key in the entries of each state, -1 for states to leave out.
    """
    bounds = np.cumsum([0, *map(len, keys)])
    parts = np.frombuffer(b"".join(keys), dtype=np.uint8), bounds, np.array(shifts, dtype=np.int64)
    for part in parts[1:]:
        part.flags.writeable = False
    return KeySearch(*parts)


_NO_SEARCH: Final = key_search((), ())


class _EntryIndex:
    """Collector of the sections of a key group.

    It keeps the starts of every ``of_scan``-th entry of a state, as a scan finds them, or of fewer if there are too many.
    """

    def __init__(self, most: int, of_scan: int = 1) -> None:
        self.most = most
        self.of_scan = of_scan
        #: Starts of the scan per start that is kept.
        self.every = 1
        self.kept = 0
        #: State, whether its keys ascend, number of entries, and their starts.
        self.found: list[tuple[int, bool, int, list[Int64s]]] = []

    def add(self, state: int, more: int, *, follows: bool, ordered: bool, starts: Int64s) -> None:
        """Add ``more`` entries, which follow the earlier ones of their state or are the first ones of a state."""
        state, before, entries, parts = self.found.pop() if follows else (state, True, 0, [])
        parts.append(starts[-self._starts_of(entries) % self.every :: self.every].copy())
        self.kept += len(parts[-1])
        self.found.append((state, before and ordered, entries + more, parts))
        while self.kept > max(self.most, len(self.found)):
            self.every *= 2
            self.found = [(s, o, n, [np.concatenate(p)[::2].copy()]) for s, o, n, p in self.found]
            self.kept = sum(len(p[0]) for *_, p in self.found)

    def starts_in(self, more: int, *, follows: bool) -> int:
        """Return the number of starts that a scan finds in ``more`` entries."""
        before = self.found[-1][2] if follows else 0
        return self._starts_of(before + more) - self._starts_of(before)

    def _starts_of(self, entries: int) -> int:
        return -(-entries // self.of_scan)

    def sections(self, size_bytes: int) -> list[Section]:
        """Return the sections of a key group with ``size_bytes``."""
        starts = [np.concatenate(parts) for *_, parts in self.found]
        # Two bytes follow the last entry of a state: the id of the next one.
        ends = [*(int(s[0]) for s in starts[1:]), *([size_bytes] if starts else [])]
        return [
            Section(state, ordered, entries, own, self.of_scan * self.every, end - _ID_BYTES)
            for (state, ordered, entries, _), own, end in zip(self.found, starts, ends, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class LargeKeyGroup:
    """A key group of any size, read in windows of complete entries."""

    plain: OpenStream
    offset: int
    size_bytes: int
    region: Region
    layout: StreamLayout
    file: str

    @property
    def number(self) -> int:
        """The number of the key group."""
        assert self.region.key_group is not None
        return self.region.key_group

    def windows(self, window: int = WINDOW_BYTES) -> Iterator[EntryBatch]:
        """Yield all entries in batches made from about ``window`` bytes each.

        Raises
        ------
        FormatError
            Damaged; with file, offset and key group.
        """
        for at, data, columns in self._walk(window, _Walker.step):
            yield _batch(data, columns, (self.region.moved(0, at),), self.file)

    def sections(self, window: int = _SCAN_BYTES, *, most: int = _MOST_STARTS) -> list[Section]:
        """Find the entries of each state, and whether their keys ascend.

        Parameters
        ----------
        most
            Maximum number of starts to keep.

        Raises
        ------
        FormatError
            Damaged; with file, offset and key group.
        """
        return self._scan(window, _EntryIndex(most), _NO_SEARCH, [])

    def find(self, search: KeySearch, window: int = _FIND_BYTES) -> tuple[list[Section], list[EntryBatch]]:
        """Read the whole key group for the entries of some keys. Return its sections, and batches of these entries over copies of their bytes.

        Raises
        ------
        FormatError
            Damaged; with file, offset and key group.
        """
        batches: list[EntryBatch] = []
        return self._scan(window, _EntryIndex(_MOST_STARTS, STRIDE), search, batches), batches

    def find_in(self, section: Section, search: KeySearch, window: int = _FIND_BYTES) -> list[EntryBatch]:
        """Read a section for the entries of some keys, as :meth:`find` does."""
        batches: list[EntryBatch] = []
        self._scan(window, _EntryIndex(0, STRIDE), search, batches, section)
        return batches

    def _scan(
        self,
        window: int,
        index: _EntryIndex,
        search: KeySearch,
        batches: list[EntryBatch],
        within: Section | None = None,
    ) -> list[Section]:
        """Read the key group, or a section, add what is found to ``index`` and ``batches``, and return the sections."""
        last_key = b""

        def step(walker: _Walker, limit: int, regions: tuple[Region, ...], file: str) -> list[Int64s]:
            return walker.step_index(limit, regions, file, search, index.of_scan)

        for at, data, columns in self._walk(window, step, within):
            starts, runs, rows = columns[0], columns[1:8], columns[8:]
            if len(rows[0]):
                found = _batch(data, rows, (self.region.moved(0, at),), self.file)
                batches.append(found.span(0, len(found)))
            done = 0
            for state, ordered, entries, first, first_end, last, last_end in np.stack(runs, axis=1).tolist():
                follows = bool(index.found) and index.found[-1][0] == state
                ascending = bool(ordered) and not (follows and bytes(data[first:first_end]) < last_key)
                n = index.starts_in(entries, follows=follows)
                index.add(state, entries, follows=follows, ordered=ascending, starts=starts[done : done + n] + at)
                done += n
                last_key = bytes(data[last:last_end])
        return index.sections(self.size_bytes)

    def entries(self, spans: Sequence[tuple[Section, int, int]]) -> tuple[EntryBatch, list[int]]:
        """Read entries ``first .. stop`` of sections, over one buffer, and return them with the end of each section.

        Raises
        ------
        FormatError
            The file has changed.
        """
        places = [section.bounds(first, stop) for section, first, stop in spans]
        data = np.empty(sum(end - start for start, end in places) + _LENGTH_BYTES, dtype=np.uint8)
        ends = np.cumsum([stop - first for _, first, stop in spans]).tolist()
        columns = Rows(*(np.empty(ends[-1], dtype=np.int64) for _ in Rows._fields))
        regions: list[Region] = []
        at = row = 0
        for (section, first, stop), (start, end), last in zip(spans, places, ends, strict=True):
            self.plain.read_into(self.offset + start, data[at : at + end - start].data)
            regions.append(self.region.moved(at, start))
            stride = section.stride
            starts = section.starts[first // stride : -(-stop // stride)]
            rows = Rows(*(column[row:last] for column in columns))
            if not rows_at(
                data, starts, at - start, stride, first % stride, at + end - start,
                self.number, self.layout.prefix, section.state, rows,
            ):  # fmt: skip
                raise FormatError("the key group changed while it was read").at(
                    file=self.file, key_group=self.region.key_group
                )
            at, row = at + end - start, last
        return _batch(frozen(data), list(columns), tuple(regions), self.file), ends

    def _walk(
        self,
        window: int,
        step: Callable[[_Walker, int, tuple[Region, ...], str], list[Int64s]],
        within: Section | None = None,
    ) -> Iterator[tuple[int, npt.NDArray[np.uint8], list[Int64s]]]:
        """Yield the bytes of windows and what ``step`` finds in them, each with the offset of the bytes in the key group.

        With ``within``, only windows that have bytes of a section.
        """
        at, cursor = (0, _START) if within is None else (int(within.starts[0]), (0, 0, within.state, 0, 0))
        region, size = self.region, self.size_bytes
        while at < (size if within is None else within.end) or cursor is _START:
            length = min(window, size - at)
            while True:
                data = _readonly(self.plain.read_at(self.offset + at, length))
                numbers = np.array([region.key_group])
                walker = _Walker(data, np.zeros(1, dtype=np.int64), np.array([size - at]), numbers, self.layout, cursor)
                columns = step(walker, length, (region.moved(0, at),), self.file)
                if len(columns[0]) or walker.done or length == size - at:
                    break
                length = min(length * 2, size - at)  # one entry is larger than the window
            if len(columns[0]):
                yield at, data, columns
            if walker.done:
                return
            if not len(columns[0]):
                raise FormatError("the key group ends inside an entry").at(file=self.file, key_group=region.key_group)
            at += int(walker.cursor[POSITION])
            cursor = (0, 0, int(walker.cursor[STATE]), int(walker.cursor[UNTIL_START]), 0)


@contextmanager
def open_large(f: OpenStream, group: KeyGroupRange, layout: StreamLayout) -> Iterator[LargeKeyGroup]:
    """Open a key group of any size; a compressed one is first uncompressed to a temporary file."""
    offset, file = f.stream.start + group.offset, f.stream.file
    if not layout.compressed:
        region = Region(0, offset, group.number, False)
        yield LargeKeyGroup(f, group.offset, group.size_bytes, region, layout, file)
        return
    with tempfile.NamedTemporaryFile(prefix="statetool-") as spill:
        for chunk in _chunks(f, group):
            spill.write(chunk)
        spill.flush()
        size = spill.tell()
        with Stream(file=spill.name, start=0, size_bytes=size).open() as plain:
            yield LargeKeyGroup(plain, 0, size, Region(0, offset, group.number, True), layout, file)


class _Walker:
    """Resumable walk over key groups in one buffer."""

    def __init__(
        self,
        data: Any,
        starts: Any,
        ends: Any,
        numbers: Any,
        layout: StreamLayout,
        cursor: tuple[int, ...] = _START,
    ) -> None:
        self.data, self.layout = data, layout
        self._groups = KeyGroups(starts, ends, numbers)
        self.cursor = np.array(cursor, dtype=np.int64)
        self.done = False

    def step(self, limit: int, regions: tuple[Region, ...], file: str) -> list[Int64s]:
        """Find entries: the columns of :class:`~statetool.kernels.entries.walk.Rows`."""
        position = max(int(self.cursor[1]), 0)
        capacity = min(max((limit - position) // _SMALLEST_ENTRY + 1, 16), 1 << 20)
        rows = Rows(*(np.empty(capacity, dtype=np.int64) for _ in Rows._fields))
        found = walk(self.data, limit, self._groups, self.layout.prefix, self.layout.states, self.cursor, rows)
        return [column[: self._count(found, regions, file)] for column in rows]

    def step_index(
        self, limit: int, regions: tuple[Region, ...], file: str, search: KeySearch, stride: int
    ) -> list[Int64s]:
        """Find where every ``stride``-th entry begins, then the columns of :class:`~statetool.kernels.entries.key_search.StateRuns`, and of the entries
        of wanted keys."""
        most = limit // _SMALLEST_ENTRY + 1
        runs = StateRuns(*(np.empty(min(most, _MOST_RUNS), dtype=np.int64) for _ in StateRuns._fields))
        # Each run has one more start than its share of the entries.
        starts = np.empty(most // stride + len(runs.state) + 1 if stride > 1 else most, dtype=np.int64)
        rows = Rows(*(np.empty(_MOST_FOUND if len(search.bounds) > 1 else 0, dtype=np.int64) for _ in Rows._fields))
        layout = self.layout
        n = self._count(
            index_entries(
                self.data, limit, self._groups, layout.prefix, layout.states, self.cursor, search, stride, starts, runs, rows
            ),
            regions,
            file,
        )  # fmt: skip
        found = int(self.cursor[FOUND])
        return [starts if n else starts[:0], *(column[:n] for column in runs), *(column[:found] for column in rows)]

    def _count(self, found: tuple[int, int, int], regions: tuple[Region, ...], file: str) -> int:
        """Return how many were found."""
        code, n, at = found
        if code not in (0, FULL):
            error = FormatError(WALK_MESSAGES[int(code)], hint="the file is damaged or not a canonical savepoint")
            raise locate(error.at(offset=int(at)), regions, file)
        self.done = code == 0
        return int(n)


def _batch(data: Any, columns: list[Any], regions: tuple[Region, ...], file: str) -> EntryBatch:
    state, group, key, key_end, value, value_end = columns
    return EntryBatch(
        data=data, state=state, group=group, key=key, key_end=key_end, value=value, value_end=value_end,
        regions=regions, file=file,
    )  # fmt: skip


def _readonly(raw: Any) -> npt.NDArray[np.uint8]:
    data = np.frombuffer(raw, dtype=np.uint8)
    data.flags.writeable = False
    return data
