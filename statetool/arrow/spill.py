"""Put the entries of each key of a huge key group together with bounded memory, by way of local disk.

The entries are dealt out by the hash of their key into files on local disk, each small enough to be held; a file is a row of
small canonical key groups (one for each window that was read), so it is read back by the same walk. A file that is still too
large is dealt out again by other bits of the hash, unless it has a single key.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.arrow.keyed import KeyedTable
from statetool.formats.keyed.canonical import LargeKeyGroup, StreamLayout, read_entries
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.stream import Stream
from statetool.kernels.deal import pack_groups
from statetool.kernels.distinct import hash_ranges

Hashes = Callable[[EntryBatch], "npt.NDArray[np.uint64]"]
_MOST_FILES: Final = 64
_LEVELS: Final = 5
_LEVEL_BITS: Final = 6
# Two lengths, and the state id that may come before.
_ENTRY_FRAME: Final = 10


@dataclass(slots=True)
class _Part:
    """A file that gets the entries of some keys; ``low`` and ``high`` are the extremes of the keys' hashes."""

    path: Path
    ranges: list[KeyGroupRange] = field(default_factory=list)
    size_bytes: int = 0
    low: int = (1 << 64) - 1
    high: int = 0


def spilled(group: LargeKeyGroup, table: KeyedTable, *, memory_bytes: int) -> Iterator[EntryBatch]:
    """Yield the entries of one key group such that all entries of a key are in one batch.

    Only states of ``table`` are kept. Memory: about ``memory_bytes``, or the largest single key where that is more.
    """
    windows = group.windows(max(1 << 20, memory_bytes // 8))
    plain = StreamLayout(prefix=group.layout.prefix, states=group.layout.states, compressed=False)
    hashes = partial(key_hashes, table=table)
    yield from dealt(windows, hashes, group.number, plain, group.size_bytes, memory_bytes=memory_bytes)


def dealt(
    windows: Iterable[EntryBatch],
    hashes: Hashes,
    key_group: int,
    layout: StreamLayout,
    size_bytes: int,
    *,
    memory_bytes: int,
) -> Iterator[EntryBatch]:
    """Yield the entries of one key group, of about ``size_bytes``, such that those of one hash are in one batch, in order."""
    with tempfile.TemporaryDirectory(prefix="statetool-") as folder:
        dealer = _Dealer(hashes, key_group, layout, memory_bytes)
        yield from dealer.deal(windows, size_bytes, Path(folder), level=0)


def key_hashes(window: EntryBatch, table: KeyedTable) -> npt.NDArray[np.uint64]:
    """Return a hash of each entry's key, 0 for entries of states that are not wanted."""
    found = np.zeros(len(window), dtype=np.int64)
    for name, number in table.ids.items():
        meta = table.metas[name]
        index = np.flatnonzero(window.state == number)
        if not len(index) or meta.kind == "timers":
            continue
        _, keys = table.split_all(window, meta)
        hashes = np.empty(len(index), dtype=np.int64)
        hash_ranges(window.data, keys.key, keys.key_end, window.group[index], hashes)
        found[index] = hashes | 1
    return found.view(np.uint64)


class _Dealer:
    """Deals the entries of one key group."""

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
                for number, blob, some in self.blobs(window, hashes, n, level):
                    part = parts[number]
                    part.ranges.append(KeyGroupRange(self.key_group, part.size_bytes, len(blob)))
                    part.size_bytes += len(blob)
                    part.low, part.high = min(part.low, int(some.min())), max(part.high, int(some.max()))
                    files[number].write(blob)
        for part in parts:
            if part.ranges:
                yield from self.gather(part, folder, level)
            part.path.unlink()

    def gather(self, part: _Part, folder: Path, level: int) -> Iterator[EntryBatch]:
        """Yield a part's entries, dealt out again where they are too many."""
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
        sizes = window.key_end[order] - window.key[order] + window.value_end[order] - window.value[order]
        out = np.empty(int(sizes.sum()) + n * (_ENTRY_FRAME + prefix) + 2, dtype=np.uint8)
        numbers, starts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        columns = (window.state, window.key, window.key_end, window.value, window.value_end)
        size, _ = pack_groups(window.data, order, window.group, *columns, prefix, out, numbers, starts)
        return out[:size].data
