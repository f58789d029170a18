"""Grouping of entries by key in a key group that is larger than memory.

If the keys of each state ascend (as RocksDB writes them), the states are merged. Each is read in windows, so that only one window per state
is in memory. Otherwise the entries are partitioned by the hash of their key into files on local disk, each small enough for memory. A file
is a sequence of small canonical key groups, one per window read, so the same walk reads it back. A file that is still too large is
partitioned further by other bits of the hash, unless it has a single key. Either way all entries of one key are in memory at once, however
large they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.entries.keys import SplitKeys, split_keys
from statetool.entries.selection import StateSelection
from statetool.errors import DecodeError, FormatError
from statetool.formats.backends.canonical import LargeKeyGroup, Section, StreamLayout, read_entries
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import Stream
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.deal import LOOKED_UP, pack_groups
from statetool.kernels.entries.walk import count_below, descent
from statetool.kernels.values.skip_program import compile_skip

Hashes = Callable[[EntryBatch], "npt.NDArray[np.uint64]"]
_MOST_FILES: Final = 64
_LEVELS: Final = 5
_LEVEL_BITS: Final = 6
#: How much larger the windows of states after the first one are.
_SURPLUS: Final = 1 / 16
# Two lengths, and the state id that may precede them.
_ENTRY_FRAME: Final = 10


def merge_by_key(group: LargeKeyGroup, selection: StateSelection, *, memory_bytes: int) -> Iterator[EntryBatch] | None:
    """Return batches with all entries of a key together, keys in ascending order; ``None`` if keys do not ascend.

    Timers are ordered by their times. The whole composite key of each counts as its key.

    Raises
    ------
    FormatError, DecodeError
        Damaged.
    """
    sections = [s for s in group.sections() if s.state in selection.metas]
    if not all(s.ordered for s in sections) or len({s.state for s in sections}) < len(sections):
        return None
    return _Merge(group, sections, selection, memory_bytes // 2).batches()


@dataclass(slots=True)
class _Run:
    """The entries of a state that have not been taken; ``window`` is the number of them to read at a time.

    If ``ends_itself``, the end of a key can be found without the bytes after it. Then no key is the beginning of another, and composite keys
    have the order of their keys.
    """

    section: Section
    meta: StateMetaInfo
    window: int
    ends_itself: bool
    at: int = 0

    @property
    def left(self) -> int:
        return self.section.entries - self.at

    @property
    def is_timers(self) -> bool:
        return self.meta.kind == "timers"


class _Merge:
    """Merge of sorted states. A batch has the entries of all states up to a key, read into one buffer.

    The last key read of each state is known. Keys below the smallest of these are complete. Entries after them are read again for the
    next batch: states whose windows are in proportion to their sizes mostly end at nearly the same key. Windows of all states but the first
    are a little larger, so that it is mostly the first one that ends before the others.
    """

    def __init__(
        self, group: LargeKeyGroup, sections: Sequence[Section], selection: StateSelection, batch_bytes: int
    ) -> None:
        self._group = group
        self._key = key = selection.header.key
        ends_itself = not key.needs_frame and compile_skip(key.program()) is not None
        share = batch_bytes / max(1, sum(s.size_bytes for s in sections))
        self._runs: list[_Run] = []
        for section in sections:
            meta = selection.metas[section.state]
            surplus = 1 + _SURPLUS if self._runs else 1.0
            window = max(1, int(section.entries * share * surplus))
            self._runs.append(_Run(section, meta, window, ends_itself or meta.kind == "timers"))

    def batches(self) -> Iterator[EntryBatch]:
        while runs := [run for run in self._runs if run.left]:
            counts = [min(run.window, run.left) for run in runs]
            batch, cuts, bound = self._read(runs, counts)
            if not any(cuts):
                # This key has more entries than a window. They are counted first, so that no more than these are in memory.
                del batch
                counts = [self._count_key(run, bound) for run in runs]
                pairs = [(run, n) for run, n in zip(runs, counts, strict=True) if n]
                batch, _ = self._group.entries([(run.section, run.at, run.at + n) for run, n in pairs])
                cuts = counts
            yield batch
            for run, n in zip(runs, cuts, strict=True):
                run.at += n

    def _read(self, runs: Sequence[_Run], counts: Sequence[int]) -> tuple[EntryBatch, list[int], bytes]:
        """Read ``counts`` entries of each run. Return those with complete keys, their number in each run, and the key that is not complete."""
        batch, ends = self._group.entries([(r.section, r.at, r.at + n) for r, n in zip(runs, counts, strict=True)])
        starts = [0, *ends[:-1]]
        keys = [self._keys(run, batch, a, b) for run, a, b in zip(runs, starts, ends, strict=True)]
        unfinished = [i for i, run in enumerate(runs) if counts[i] < run.left]
        if not unfinished:
            return batch, list(counts), b""
        bound = min(self._last_key(runs[i], batch, keys[i], ends[i]) for i in unfinished)
        cuts = [_count_below(batch, *own, bound) for own in keys]
        if any(cuts):
            batch = batch.pack([(a, a + n) for a, n in zip(starts, cuts, strict=True)])
        return batch, cuts, bound

    def _keys(self, run: _Run, batch: EntryBatch, first: int, stop: int) -> tuple[Int64s, Int64s]:
        """Return start and end of what entries ``first .. stop`` are ordered by."""
        if run.ends_itself:
            return batch.key[first:stop], batch.key_end[first:stop]
        keys = self._split(run, batch, first, stop)
        # Ordered sections have ordered entries, whose keys may not be if one is the beginning of another.
        if descending := descent(batch.data, keys.key, keys.key_end):
            error = FormatError("the keys of a state are not in order").at(state=run.meta.name)
            raise batch.locate(error.at(offset=int(keys.key[descending])))
        return keys.key, keys.key_end

    def _last_key(self, run: _Run, batch: EntryBatch, keys: tuple[Int64s, Int64s], stop: int) -> bytes:
        start, end = int(keys[0][-1]), int(keys[1][-1])
        if run.ends_itself and not run.is_timers:
            end = int(self._split(run, batch, stop - 1, stop).key_end[0])
        return bytes(batch.data[start:end])

    def _split(self, run: _Run, batch: EntryBatch, first: int, stop: int) -> SplitKeys:
        try:
            return split_keys(batch.take(slice(first, stop)), self._key, run.meta)
        except DecodeError as error:
            raise batch.locate(error).at(state=run.meta.name) from None

    def _count_key(self, run: _Run, key: bytes) -> int:
        """Return the number of entries of a key, which are the next ones of a run if there are any."""
        after = _following(key) if run.ends_itself and not run.is_timers else key + b"\0"
        at = run.at
        while at < run.section.entries:
            stop = min(at + run.window, run.section.entries)
            batch, _ = self._group.entries([(run.section, at, stop)])
            n = _count_below(batch, *self._keys(run, batch, 0, stop - at), after)
            at += n
            if at < stop:
                break
        return at - run.at


def _count_below(batch: EntryBatch, key: Int64s, key_end: Int64s, bound: bytes | None) -> int:
    """Return the number of ascending keys that are less than ``bound``; of all if it is ``None``."""
    if bound is None:
        return len(key)
    return int(count_below(batch.data, key, key_end, np.frombuffer(bound, dtype=np.uint8)))


def _following(prefix: bytes) -> bytes | None:
    """Return the first bytes after all that begin with ``prefix``, ``None`` if there are none."""
    short = prefix.rstrip(b"\xff")
    return short[:-1] + bytes([short[-1] + 1]) if short else None


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
