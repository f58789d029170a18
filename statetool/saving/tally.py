"""Counts of the entries that a filter removes, by state. Runs in tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from statetool.entries.form import KeyGroupReader, error_context
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.formats.keyed.header import KeyedHeader
from statetool.saving.streams.filters import EntryFilter, hash_keys_of, key_bounds

_NO_KEYS: Any = np.empty(0, dtype=np.uint64)


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
    key_hashes
        Distinct hashes of the keys that are removed.
    """

    read: Mapping[str, Count] = field(default_factory=dict)
    states: Mapping[str, Count] = field(default_factory=dict)
    groups: frozenset[int] = frozenset()
    key_hashes: npt.NDArray[np.uint64] = field(default_factory=_NO_KEYS.copy)

    @property
    def entries_read(self) -> int:
        """Number of entries that the filter saw."""
        return sum(count.entries for count in self.read.values())

    @property
    def entries(self) -> int:
        """Number of removed entries."""
        return sum(count.entries for count in self.states.values())

    @property
    def keys(self) -> int:
        """Number of distinct removed keys."""
        return len(self.key_hashes)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            read=_sum(self.read, other.read),
            states=_sum(self.states, other.states),
            groups=self.groups | other.groups,
            key_hashes=np.union1d(self.key_hashes, other.key_hashes) if other.keys else self.key_hashes,
        )


def _sum(a: Mapping[str, Count], b: Mapping[str, Count]) -> dict[str, Count]:
    nothing = Count(0, 0)
    return {name: a.get(name, nothing) + b.get(name, nothing) for name in dict.fromkeys((*a, *b))}


def tally_removed(entry_filter: EntryFilter, source: KeyGroupReader) -> Tally:
    """Count the entries of a source that a filter removes."""
    total = Tally()
    with error_context(source):
        header = source.header()
        for batch in source.batches():
            total = total + _difference(header, batch, entry_filter.apply(header, batch))
    return total


def _difference(header: KeyedHeader, before: EntryBatch, after: EntryBatch) -> Tally:
    old = _count(header, before)
    if after is before:
        return Tally(read=old)
    new = _count(header, after)
    nothing = Count(0, 0)
    states = {name: old[name] - new.get(name, nothing) for name in old if old[name] != new.get(name)}
    most = int(before.group.max(initial=0)) + 1
    changed = np.bincount(before.group, _sizes(before), most) != np.bincount(after.group, _sizes(after), most)
    changed |= np.bincount(before.group, minlength=most) != np.bincount(after.group, minlength=most)
    old_keys, new_keys = (np.unique(hash_keys_of(b, *key_bounds(header, b))) for b in (before, after))
    return Tally(
        read=old,
        states=states,
        groups=frozenset(np.flatnonzero(changed).tolist()),
        key_hashes=np.setdiff1d(old_keys, new_keys, assume_unique=True),
    )


def _count(header: KeyedHeader, batch: EntryBatch) -> dict[str, Count]:
    """Count the entries of each state."""
    entries = np.bincount(batch.state, minlength=len(header.states)).tolist()
    sizes = np.bincount(batch.state, _sizes(batch), len(header.states)).tolist()
    counted = zip(header.states, entries, sizes, strict=True)
    return {meta.name: Count(n, int(size)) for meta, n, size in counted if n}


def _sizes(batch: EntryBatch) -> Int64s:
    """Return the bytes of the key and the value of each entry."""
    return batch.key_end - batch.key + batch.value_end - batch.value
