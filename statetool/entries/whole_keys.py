"""Grouping of entries by key in a key group that is larger than memory.

If the keys of each state ascend (as RocksDB writes them), the states are merged. Each is read in windows, so that only one window per state
is in memory. Otherwise the entries are partitioned by the hash of their key into files on local disk, each small enough for memory. A file
is a sequence of small canonical key groups, one per window read, so the same walk reads it back. A file that is still too large is
partitioned further by other bits of the hash, unless it has a single key. Either way all entries of one key are in memory at once, however
large they are.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.entries.selection import StateSelection
from statetool.errors import FormatError
from statetool.formats.keyed.canonical import LargeKeyGroup, StreamLayout, read_entries
from statetool.formats.keyed.complete import complete_keys
from statetool.formats.keyed.entries import EntryBatch, Int64s, drain
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.stream import Stream
from statetool.kernels.deal import LOOKED_UP, pack_groups
from statetool.kernels.walk import count_below, descent

Hashes = Callable[[EntryBatch], "npt.NDArray[np.uint64]"]
_MOST_FILES: Final = 64
_LEVELS: Final = 5
_LEVEL_BITS: Final = 6
# Two lengths, and the state id that may precede them.
_ENTRY_FRAME: Final = 10


def merge_by_key(group: LargeKeyGroup, selection: StateSelection, *, memory_bytes: int) -> Iterator[EntryBatch] | None:
    """Return batches with all entries of a key together, keys in ascending order; ``None`` if keys do not ascend.

    Raises
    ------
    FormatError
        Damaged.
    """
    sections = [s for s in group.sections() if s.state in selection.metas]
    if not all(s.ordered for s in sections) or len({s.state for s in sections}) < len(sections):
        return None
    window = max(1, memory_bytes // (2 * max(1, len(sections))))
    runs = [_Run(group.windows(window, section=s), selection, s.state) for s in sections]
    return map(drain, complete_keys(runs))


@dataclass(slots=True)
class _Window:
    """Entries of one state that were read, with start and end of the key of each; those before ``at`` have been taken."""

    batch: EntryBatch
    key: Int64s
    key_end: Int64s
    at: int = 0

    def count_below(self, bound: bytes | None) -> int:
        """Return the number of entries whose keys are less than ``bound``; of all entries if it is ``None``."""
        if bound is None:
            return len(self.batch)
        wanted: npt.NDArray[np.uint8] = np.frombuffer(bound, dtype=np.uint8)
        return int(count_below(self.batch.data, self.key, self.key_end, wanted))


class _Run:
    """A :class:`~statetool.formats.keyed.complete.Run` of windows: a key may have many, and is taken without a copy of its windows."""

    def __init__(self, windows: Iterator[EntryBatch], selection: StateSelection, state: int) -> None:
        self._windows = windows
        self._selection = selection
        self._state = state
        self.ended = False
        #: What was read but not yet taken.
        self._waiting: deque[_Window] = deque()
        self._append(next(windows))

    def _append(self, batch: EntryBatch) -> None:
        entries, keys = self._selection.split(batch, self._state)
        # Ordered sections have ordered entries, whose keys may not be if one is the beginning of another.
        descending = descent(entries.data, keys.key, keys.key_end)
        key = bytes(entries.data[keys.key[0] : keys.key_end[0]])
        if descending or (self._waiting and key < self.last):
            raise entries.locate(
                FormatError("the keys of a state are not in order").at(
                    offset=int(keys.key[descending]), state=self._selection.metas[self._state].name
                )
            )
        self._waiting.append(_Window(batch, keys.key, keys.key_end))

    @property
    def empty(self) -> bool:
        return not self._waiting

    @property
    def last(self) -> bytes:
        window = self._waiting[-1]
        return bytes(window.batch.data[window.key[-1] : window.key_end[-1]])

    def below(self, bound: bytes | None) -> list[EntryBatch]:
        taken: list[EntryBatch] = []
        while self._waiting:
            window = self._waiting[0]
            first, stop = window.at, window.count_below(bound)
            whole = stop == len(window.batch)
            if stop > first:
                taken.append(window.batch if whole and not first else window.batch.view(first, stop))
                window.at = stop
            if not whole:
                break
            self._waiting.popleft()
        return taken

    def grow(self) -> None:
        following = next(self._windows, None)
        if following is None:
            self.ended = True
        else:
            self._append(following)


@dataclass(slots=True)
class _Part:
    """A file for the entries of some keys; ``low`` and ``high`` are the extremes of the keys' hashes."""

    path: Path
    ranges: list[KeyGroupRange] = field(default_factory=list)
    size_bytes: int = 0
    low: int = (1 << 64) - 1
    high: int = 0


def partition_by_key_hash(
    windows: Iterable[EntryBatch],
    hashes: Hashes,
    key_group: int,
    layout: StreamLayout,
    size_bytes: int,
    *,
    memory_bytes: int,
) -> Iterator[EntryBatch]:
    """Yield the entries of one key group, those with the same hash in one batch, in their original order.

    Parameters
    ----------
    windows
        All entries of the key group, in batches that fit in memory.
    hashes
        Returns a hash of each entry's key, 0 for entries that are not selected.
    layout
        The layout of the files on local disk.
    size_bytes
        Approximate bytes of all entries.
    memory_bytes
        Maximum bytes of a batch, unless a single key has more.
    """
    with tempfile.TemporaryDirectory(prefix="statetool-") as folder:
        dealer = _Dealer(hashes, key_group, layout, memory_bytes)
        yield from dealer.deal(windows, size_bytes, Path(folder), level=0)


class _Dealer:
    """Partitioner of the entries of one key group."""

    def __init__(self, hashes: Hashes, key_group: int, layout: StreamLayout, memory_bytes: int) -> None:
        self.hashes = hashes
        self.key_group = key_group
        self.layout = layout
        self.memory_bytes = memory_bytes

    def deal(self, windows: Iterable[EntryBatch], size_bytes: int, folder: Path, *, level: int) -> Iterator[EntryBatch]:
        n = min(_MOST_FILES, max(2, -(-size_bytes * 4 // self.memory_bytes)))
        parts = [_Part(folder / f"{level}-{i}") for i in range(n)]
        with ExitStack() as stack:
            files = [stack.enter_context(p.path.open("wb")) for p in parts]
            for window in windows:
                hashes = self.hashes(window)
                for number, blob, key_hashes in self.blobs(window, hashes, n, level):
                    part = parts[number]
                    part.ranges.append(KeyGroupRange(self.key_group, part.size_bytes, len(blob)))
                    part.size_bytes += len(blob)
                    part.low, part.high = min(part.low, int(key_hashes.min())), max(part.high, int(key_hashes.max()))
                    files[number].write(blob)
        for part in parts:
            if part.ranges:
                yield from self.gather(part, folder, level)
            part.path.unlink()

    def gather(self, part: _Part, folder: Path, level: int) -> Iterator[EntryBatch]:
        """Yield a part's entries, partitioned further if there are too many."""
        stream = Stream(file=str(part.path), start=0, size_bytes=part.size_bytes)
        with stream.open() as f:
            if part.size_bytes <= self.memory_bytes or part.low == part.high or level + 1 == _LEVELS:
                yield read_entries(f, part.ranges, self.layout)
                return
            runs = batches_of(part.ranges, limit=max(1 << 20, self.memory_bytes // 8))
            windows = (read_entries(f, run, self.layout) for run in runs)
            yield from self.deal(windows, part.size_bytes, folder, level=level + 1)

    def blobs(
        self, window: EntryBatch, hashes: npt.NDArray[np.uint64], parts: int, level: int
    ) -> Iterator[tuple[int, memoryview, npt.NDArray[np.uint64]]]:
        """Yield a small canonical key group, and its keys' hashes, for each part that gets entries of this window."""
        target = (hashes >> np.uint64(64 - _LEVEL_BITS * (level + 1))) & np.uint64((1 << _LEVEL_BITS) - 1)
        target = np.where(hashes == 0, parts, target.astype(np.int64) % parts)
        for part in range(parts):
            order = np.flatnonzero(target == part)
            if len(order):
                yield part, self.pack(window, order), hashes[order]

    def pack(self, window: EntryBatch, order: npt.NDArray[np.int64]) -> memoryview:
        """Return entries as one canonical key group."""
        order = order[np.argsort(window.state[order], kind="stable")]
        n, prefix = len(order), self.layout.prefix
        size = window.key_end[order] - window.key[order] + window.value_end[order] - window.value[order]
        out = np.empty(int(size.sum()) + n * (_ENTRY_FRAME + prefix) + 2, dtype=np.uint8)
        numbers, starts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        columns = (window.group, window.state, window.key, window.key_end, window.value, window.value_end)
        scratch = np.empty(LOOKED_UP, dtype=np.int64)
        size, _ = pack_groups(window.data, order, *columns, prefix, scratch, out, numbers, starts)
        return out[:size].data
