"""One side of a comparison: the entries of some key groups of one snapshot. All are hashed. Entries whose hashes differ are read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from statetool.analysis.comparison.meaning import Seeds
from statetool.entries.form import EntryRequest, KeyGroupReader, size_of
from statetool.entries.keys import split_keys
from statetool.entries.selection import TIMESTAMP_BYTES, StateSelection
from statetool.errors import StatetoolError
from statetool.formats.keyed.distinct import Hashes, mix_hashes
from statetool.formats.keyed.entries import EntryBatch, RebuiltBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.kernels.core.arrays import Int64s, Mask
from statetool.kernels.core.words import copy_ranges
from statetool.kernels.entries.comparison import hash_spans, pair_hashes
from statetool.kernels.entries.walk import match_range

#: Bytes of entries and of their positions that are held in memory for the second read. If there are more, files are read again.
HELD_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SideRequest:
    """Scope of one snapshot: ``sources``, the ``states`` in them, and the encoded ``keys`` (``None`` for all)."""

    sources: tuple[KeyGroupReader, ...]
    states: tuple[str, ...]
    keys: tuple[bytes, ...] | None


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of all keys by their hashes, which limits the memory of a comparison."""

    number: int = 0
    of: int = 1

    def holds(self, hashes: Hashes) -> Mask:
        """Return which keys belong to the slice."""
        held: Mask = (hashes >> np.uint64(40)) % np.uint64(self.of) == np.uint64(self.number)
        return held


class SnapshotSide:
    """The entries of one side. With ``common``, all entries of a key have one key hash across states.

    This is the hash of the key's bytes and its key group modulo ``common``, which divides the max parallelisms of both sides.
    """

    def __init__(self, request: SideRequest, seeds: Seeds, part: Slice, *, common: int | None = None) -> None:
        self.request = request
        self.common = common
        self.part = part
        self.headers = [s.header() for s in request.sources]
        self.seeds = [
            seeds.of(header, source.context.types, request.states)
            for header, source in zip(self.headers, request.sources, strict=True)
        ]
        self._held: list[tuple[int, EntryBatch]] | None = []
        #: Bytes of keys and values, and bytes of the batches with them.
        self.size_bytes = self._held_bytes = 0
        #: Number of compared entries by state.
        self.counts: dict[str, int] = dict.fromkeys(request.states, 0)

    def hashes(self) -> tuple[Hashes, Hashes]:
        """Read all entries and return the hashes of keys and of values. With ``common``, return those of keys and of whole entries."""
        keys: list[Hashes] = []
        values: list[Hashes] = []
        for number, batch in self._read():
            key, value = self._hashed(number, batch)
            keys.append(key)
            values.append(value)
            for state, n in enumerate(np.bincount(batch.state).tolist()):
                if n:
                    self.counts[self.headers[number].states[state].name] += n
            self._hold(number, batch)
        return _join_hashes(keys), _join_hashes(values)

    def _hold(self, number: int, batch: EntryBatch) -> None:
        self.size_bytes += int((batch.key_end - batch.key + batch.value_end - batch.value).sum())
        self._held_bytes += len(batch.data) + sum(column.nbytes for column in batch.rows())
        if self._held is not None and self._held_bytes <= HELD_BYTES and self.part.of == 1:
            self._held.append((number, batch))
        else:
            self._held = None

    def _read(self) -> Iterator[tuple[int, EntryBatch]]:
        """Yield the selected entries, with the number of their source."""
        for number, source in enumerate(self.request.sources):
            seeds = self.seeds[number][0]
            metas = self.headers[number].states
            timers = any(m.kind == "timers" and m.name in self.request.states for m in metas)
            request = EntryRequest(states=self.request.states, keys=None if timers else self.request.keys)
            for batch in source.batches(request):
                wanted = seeds[batch.state] != 0
                if self.request.keys is not None:
                    wanted &= self._of_keys(self.headers[number], batch)
                if self.part.of > 1:
                    wanted &= self.part.holds(self._hashed(number, batch)[0])
                yield number, batch if wanted.all() else batch.take(np.flatnonzero(wanted))

    def _hashed(self, number: int, batch: EntryBatch) -> tuple[Hashes, Hashes]:
        keys, values = np.empty(len(batch), dtype=np.uint64), np.empty(len(batch), dtype=np.uint64)
        key_seeds, value_seeds = self.seeds[number]
        hash_spans(batch.data, batch.key, batch.key_end, batch.state, key_seeds, keys)
        hash_spans(batch.data, batch.value, batch.value_end, batch.state, value_seeds, values)
        if self.common is None:
            return keys, values
        selection = StateSelection(self.headers[number], self.request.states)
        return selection.hashes(replace(batch, group=batch.group % self.common)), mix_hashes(keys, values)

    def _of_keys(self, header: KeyedHeader, batch: EntryBatch) -> Mask:
        """Return which entries have a selected key. In a timer, the key follows the timestamp."""
        wanted = np.zeros(len(batch), dtype=np.uint8)
        for state, meta in enumerate(header.states):
            index = np.flatnonzero(batch.state == state)
            if not len(index) or meta.name not in self.request.states:
                continue
            entries = batch.take(index)
            if meta.kind == "timers":
                start, stop = entries.key + TIMESTAMP_BYTES, entries.key_end
            else:
                try:
                    keys = split_keys(entries, header.key, meta)
                except StatetoolError as error:
                    raise batch.locate(error).at(state=meta.name) from None
                start, stop = keys.key, keys.key_end
            matches = np.zeros(len(index), dtype=np.uint8)
            for key in self.request.keys or ():
                end = np.minimum(start + len(key), stop) if meta.kind == "timers" else stop
                match_range(batch.data, start, end, np.frombuffer(key, dtype=np.uint8), matches)
            wanted[index] = matches
        return wanted.astype(np.bool_)

    def chosen(self, index: Int64s) -> Iterator[tuple[KeyedHeader, EntryBatch, Int64s]]:
        """Yield the entries numbered ``index`` (positions in :meth:`hashes`): a header, entries of it, and their numbers."""
        batches: list[list[EntryBatch]] = [[] for _ in self.headers]
        numbers: list[list[Int64s]] = [[] for _ in self.headers]
        at = 0
        for number, batch in self._held if self._held is not None else self._read():
            first, stop = np.searchsorted(index, (at, at + len(batch)))
            if stop > first:
                batches[number].append(compact(batch.take(index[first:stop] - at)))
                numbers[number].append(index[first:stop])
            at += len(batch)
        for number, header in enumerate(self.headers):
            for batch, entry_numbers in zip(batches[number], numbers[number], strict=True):
                yield header, batch, entry_numbers


def _join_hashes(parts: list[Hashes]) -> Hashes:
    """Concatenate hashes, and free the parts."""
    joined: Hashes = np.concatenate([np.empty(0, dtype=np.uint64), *parts])
    parts.clear()
    return joined


def pair_equal_hashes(before: Hashes, after: Hashes) -> tuple[Int64s, Int64s]:
    """Pair equal hashes, each once. Return the partner of each of ``before`` (-1 for none), and the numbers of unpaired ``after``."""
    pairs, taken = np.empty(len(before), dtype=np.int64), np.zeros(len(after), dtype=np.uint8)
    table = np.full(1 << max(4, (2 * len(after)).bit_length()), -1, dtype=np.int32)
    pair_hashes(before, after, table, pairs, taken)
    return pairs, np.flatnonzero(taken == 0)


def compact(batch: EntryBatch) -> EntryBatch:
    """Return the entries over a copy of their bytes only."""
    key_size, size = batch.key_end - batch.key, batch.value_end - batch.value
    ends = np.cumsum(key_size + size)
    start = ends - key_size - size
    data = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    copy_ranges(batch.data, batch.key, key_size, data, start)
    copy_ranges(batch.data, batch.value, size, data, start + key_size)
    return RebuiltBatch(
        data=data,
        state=batch.state,
        group=batch.group,
        key=start,
        key_end=start + key_size,
        value=start + key_size,
        value_end=ends,
        regions=(),
        file=batch.file,
    )


def size_of_sources(sources: Sequence[KeyGroupReader]) -> int:
    """Return the approximate stored bytes of sources."""
    return sum(map(size_of, sources))
