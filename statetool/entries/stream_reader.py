"""Key groups of an open stream as batches of entries, whatever their size: canonical ones, and those in the layout of the heap backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from statetool.entries.doubled_timers import join_doubled
from statetool.entries.form import EntryRequest
from statetool.entries.key_indexes import entries_of_keys, keep_keys
from statetool.entries.selection import StateSelection
from statetool.entries.sizes import STATE_BYTES
from statetool.entries.whole_keys import merge_by_key, partition_by_key_hash
from statetool.formats.backends.canonical import LargeKeyGroup, StreamLayout, is_larger, open_large, read_entries
from statetool.formats.heap.walk import heap_windows
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.stream import OpenStream

#: Compressed bytes are read a fraction at a time.
_COMPRESSED_SHARE: Final = 4
_LEAST_WINDOW: Final = 1 << 20
_WINDOWS: Final = 8
#: Minimum number of batches in the memory of a read, however many states there are.
_BATCHES: Final = 4
#: Smaller key groups are read whole, although only some keys are needed.
_LEAST_SEARCHED: Final = 1 << 20
#: Maximum number of keys that are compared with each entry.
_MOST_KEYS: Final = 8


class StreamReader:
    """Reader of key groups. Those larger than a batch are read in windows; with ``whole_keys`` these are merged, or joined on local disk.

    Parameters
    ----------
    prefix
        Bytes of the key-group prefix of each key.
    """

    def __init__(self, f: OpenStream, header: KeyedHeader, *, heap: bool, prefix: int, request: EntryRequest) -> None:
        self.f = f
        self.header = header
        self.request = request
        self.stored = stored = header.as_stored()
        self.layout = StreamLayout(
            prefix=prefix,
            states=len(stored.states),
            compressed=header.compressed,
            heap=stored if heap else None,
        )

    def batches(self, ranges: Iterable[KeyGroupRange]) -> Iterator[EntryBatch]:
        """Read key groups, several small ones at a time."""
        batches = self._batches_as_stored(ranges)
        return batches if self.header.stored_ids is None else join_doubled(batches, self.header.stored_ids)

    def _batches_as_stored(self, ranges: Iterable[KeyGroupRange]) -> Iterator[EntryBatch]:
        request = self.request
        limit = request.memory_bytes if request.whole_keys else request.batch_bytes
        share = _COMPRESSED_SHARE if self.layout.compressed else 1
        of_states = min(STATE_BYTES * self.layout.states, request.memory_bytes // _BATCHES)
        for groups in batches_of(ranges, limit=max(request.batch_bytes, of_states) // share):
            if self._finds_keys(groups):
                yield from self._entries_of_keys(groups[0], request.keys or ())
            elif len(groups) > 1 or not is_larger(self.f, groups[0], self.layout, limit):
                yield read_entries(self.f, groups, self.layout)
            elif self.layout.heap is not None:
                yield from self._large_heap_group(groups[0], self.layout.heap)
            else:
                with open_large(self.f, groups[0], self.layout) as large:
                    yield from self._large_group(large)

    def _finds_keys(self, groups: Sequence[KeyGroupRange]) -> bool:
        """Return True for a large key group from which only a few keys are read."""
        request = self.request
        few = request.keys is not None and len(request.keys) <= _MOST_KEYS and not request.whole_keys
        return few and self.header.stored_ids is None and len(groups) == 1 and groups[0].size_bytes >= _LEAST_SEARCHED

    def _entries_of_keys(self, group: KeyGroupRange, keys: Sequence[bytes]) -> Iterator[EntryBatch]:
        header, states = self.stored, self.request.states
        if self.layout.heap is not None:
            yield from keep_keys(heap_windows(self.f, group, header, window=_LEAST_WINDOW), header, states, keys)
            return
        with open_large(self.f, group, self.layout) as large:
            yield from entries_of_keys(large, header, states, keys)

    def _large_heap_group(self, group: KeyGroupRange, header: KeyedHeader) -> Iterator[EntryBatch]:
        windows = heap_windows(self.f, group, header, window=self._window())
        yield from self._whole_keys(windows, group.number, group.size_bytes) if self.request.whole_keys else windows

    def _large_group(self, large: LargeKeyGroup) -> Iterator[EntryBatch]:
        if self.request.whole_keys:
            selection = StateSelection(self.stored, self.request.states)
            merged = merge_by_key(large, selection, memory_bytes=self.request.memory_bytes)
            if merged is not None:
                yield from merged
                return
        windows = large.windows(self._window())
        yield from self._whole_keys(windows, large.number, large.size_bytes) if self.request.whole_keys else windows

    def _window(self) -> int:
        request = self.request
        return max(_LEAST_WINDOW, request.memory_bytes // _WINDOWS) if request.whole_keys else request.batch_bytes

    def _whole_keys(self, windows: Iterable[EntryBatch], number: int, size_bytes: int) -> Iterator[EntryBatch]:
        """Yield the entries of each key together, using local disk."""
        plain = StreamLayout(prefix=self.layout.prefix, states=self.layout.states, compressed=False)
        selection = StateSelection(self.stored, self.request.states)
        memory = self.request.memory_bytes
        yield from partition_by_key_hash(windows, selection.hashes, number, plain, size_bytes, memory_bytes=memory)
