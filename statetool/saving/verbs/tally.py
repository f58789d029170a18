"""Counts of the entries that a filter removes, by state, and of their keys.

All entries of a key are in one key group. A task therefore reads key groups completely, and returns the number of their distinct keys. The
driver adds numbers: its memory does not depend on the number of keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.entries.database import DatabaseSource
from statetool.entries.form import KeyGroupReader, error_context
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.io.threads import Map
from statetool.kernels.core.arrays import Int64s
from statetool.saving.streams.filters import EntryFilter, KeyFilter, among, hash_keys_of, key_bounds
from statetool.saving.streams.windows import WindowFilter
from statetool.snapshot.operator import OperatorInventory

Hashes = npt.NDArray[np.uint64]
#: Hashes that are collected before duplicates are removed.
_LEAST_HASHES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Count:
    """A number of entries, and the bytes of their keys and values."""

    entries: int
    size_bytes: int

    def __add__(self, other: Count) -> Count:
        return Count(self.entries + other.entries, self.size_bytes + other.size_bytes)

    def __sub__(self, other: Count) -> Count:
        return Count(self.entries - other.entries, self.size_bytes - other.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Entries that a filter removes.

    Attributes
    ----------
    read
        All entries that the filter saw, by state.
    states
        Removed entries by state. If values become smaller, a state may have removed bytes but no removed entries.
    groups
        Key groups that change.
    keys
        Number of distinct keys with removed entries.
    named
        For a list of keys, the hashes of those that have entries (:func:`statetool.saving.streams.filters.hash_keys_of`).
    windows
        For a filter of windows, the number of those that are removed.
    """

    read: Mapping[str, Count] = field(default_factory=dict)
    states: Mapping[str, Count] = field(default_factory=dict)
    groups: frozenset[int] = frozenset()
    keys: int = 0
    named: frozenset[int] = frozenset()
    windows: int = 0

    @property
    def entries_read(self) -> int:
        """Number of entries that the filter saw."""
        return sum(count.entries for count in self.read.values())

    @property
    def entries(self) -> int:
        """Number of removed entries."""
        return sum(count.entries for count in self.states.values())

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            read=_sum(self.read, other.read),
            states=_sum(self.states, other.states),
            groups=self.groups | other.groups,
            keys=self.keys + other.keys,
            named=self.named | other.named,
            windows=self.windows + other.windows,
        )


def _sum(a: Mapping[str, Count], b: Mapping[str, Count]) -> dict[str, Count]:
    nothing = Count(0, 0)
    return {name: a.get(name, nothing) + b.get(name, nothing) for name in dict.fromkeys((*a, *b))}


class DistinctHashes:
    """The smallest distinct hashes of those that are added, in memory for twice as many.

    Parameters
    ----------
    limit
        Number of hashes to keep, ``None`` for all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._distinct: Hashes = np.empty(0, dtype=np.uint64)
        self._added: list[Hashes] = []
        self._waiting = 0

    @property
    def held(self) -> int:
        """Number of hashes in memory."""
        return len(self._distinct) + self._waiting

    def add(self, hashes: Hashes) -> None:
        """Add hashes, which may be repeated."""
        if len(self._distinct) == self._limit:
            hashes = hashes[hashes < self._distinct[-1]]
        self._added.append(hashes)
        self._waiting += len(hashes)
        if self._waiting > max(_LEAST_HASHES, len(self._distinct)):
            self.sorted()

    def sorted(self) -> Hashes:
        """Return the hashes in ascending order."""
        if self._added:
            self._distinct = np.unique(np.concatenate([self._distinct, *self._added]))[: self._limit]
            self._added, self._waiting = [], 0
        return self._distinct


def whole_key_groups(
    operator: OperatorInventory, groups: Collection[int] | None = None
) -> list[tuple[KeyGroupReader, ...]]:
    """Return all readers of an operator's keyed state, grouped such that no two groups of readers have a key group in common.

    A key group has several readers if timers are stored separately.

    Parameters
    ----------
    groups
        Key groups to read, ``None`` for all.
    """
    sources = operator.keyed.sources(groups=groups, raw=True)
    readers_of: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for number, source in enumerate(sources):
        for group in source.group_sizes():
            readers_of[group] += (number,)
    groups_of: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for group, readers in readers_of.items():
        groups_of[readers].append(group)
    parts = ([sources[n].within(own) for n in readers] for readers, own in groups_of.items())
    return [tuple(reader for reader in part if reader is not None) for part in parts]


def tally(operator: OperatorInventory, entry_filter: EntryFilter, in_tasks: Map) -> Tally:
    """Count the entries of an operator that a filter removes, by state. Reads the key groups that may change."""
    (total,) = tally_each(operator, (entry_filter,), in_tasks)
    return total


def tally_each(operator: OperatorInventory, filters: Sequence[EntryFilter], in_tasks: Map) -> tuple[Tally, ...]:
    """Count the entries of an operator that each of several filters removes. All are counted while the key groups are read once."""
    groups = {g for g in range(operator.state.max_parallelism) if any(f.may_change(g) for f in filters)}
    parts = [
        (tuple(f.for_task(list(readers[0].group_sizes())) for f in filters), readers)
        for readers in whole_key_groups(operator, groups)
    ]
    totals = tuple(Tally() for _ in filters)
    for part in in_tasks(tally_part, parts):
        totals = tuple(total + own for total, own in zip(totals, part, strict=True))
    return totals


def tally_part(part: tuple[tuple[EntryFilter, ...], Iterable[KeyGroupReader]]) -> tuple[Tally, ...]:
    """Count what filters remove from the key groups of some readers. No other reader has entries of these key groups."""
    filters, readers = part
    counts = [_Removals(f) for f in filters]
    for reader in readers:
        with error_context(reader):
            header = reader.header()
            for batch in _batches(reader, filters):
                for count in counts:
                    count.add(header, batch)
    return tuple(count.tally() for count in counts)


class _Removals:
    """Count of the entries that a filter removes from the batches of a task."""

    def __init__(self, entry_filter: EntryFilter) -> None:
        self._filter = entry_filter
        self._is_list = isinstance(entry_filter, KeyFilter)
        self._keeps = isinstance(entry_filter, KeyFilter) and entry_filter.keep
        self._total = Tally()
        self._removed, self._kept, self._windows = DistinctHashes(), DistinctHashes(), DistinctHashes()

    def add(self, header: KeyedHeader, batch: EntryBatch) -> None:
        after = self._filter.apply(header, batch)
        self._total = self._total + _difference(header, batch, after, self._removed)
        if self._keeps and len(after):
            self._kept.add(hash_keys_of(after, *key_bounds(header, after)))
        if isinstance(self._filter, WindowFilter) and after is not batch:
            self._windows.add(self._filter.removed_windows(header, batch))

    def tally(self) -> Tally:
        named = (self._kept if self._keeps else self._removed).sorted() if self._is_list else ()
        return replace(
            self._total,
            keys=len(self._removed.sorted()),
            named=frozenset(map(int, named)),
            windows=len(self._windows.sorted()),
        )


def _batches(reader: KeyGroupReader, filters: Sequence[EntryFilter]) -> Iterator[EntryBatch]:
    """Return the entries that the filters may remove, and others."""
    first = filters[0]
    places = first.places if len(filters) == 1 and isinstance(first, KeyFilter) and not first.keep else None
    if places is None or not isinstance(reader, DatabaseSource):
        return iter(reader.batches())
    return reader.batches_of_keys(places)


def _difference(header: KeyedHeader, before: EntryBatch, after: EntryBatch, keys: DistinctHashes) -> Tally:
    """Count removed entries, and add the hashes of their keys."""
    old = _count(header, before)
    if after is before:
        return Tally(read=old)
    new = _count(header, after)
    nothing = Count(0, 0)
    states = {name: old[name] - new.get(name, nothing) for name in old if old[name] != new.get(name)}
    most = int(before.group.max(initial=0)) + 1
    changed = np.bincount(before.group, _sizes(before), most) != np.bincount(after.group, _sizes(after), most)
    changed |= np.bincount(before.group, minlength=most) != np.bincount(after.group, minlength=most)
    old_keys, new_keys = (hash_keys_of(b, *key_bounds(header, b)) for b in (before, after))
    keys.add(old_keys[~among(old_keys, np.sort(new_keys))])
    return Tally(read=old, states=states, groups=frozenset(np.flatnonzero(changed).tolist()))


def _count(header: KeyedHeader, batch: EntryBatch) -> dict[str, Count]:
    """Count the entries of each state."""
    entries = np.bincount(batch.state, minlength=len(header.states)).tolist()
    sizes = np.bincount(batch.state, _sizes(batch), len(header.states)).tolist()
    counted = zip(header.states, entries, sizes, strict=True)
    return {meta.name: Count(n, int(size)) for meta, n, size in counted if n}


def _sizes(batch: EntryBatch) -> Int64s:
    """Return the bytes of the key and the value of each entry."""
    return batch.key_end - batch.key + batch.value_end - batch.value
