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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Entries that a filter removes.

    Attributes
    ----------
    entries_read, bytes_read
        All entries that the filter saw, and their bytes.
    states
        Removed entries by state. If values become smaller, a state may have removed bytes but no removed entries.
    groups
        Key groups that change.
    key_hashes
        Distinct hashes of the keys that are removed.
    """

    entries_read: int = 0
    bytes_read: int = 0
    states: Mapping[str, Count] = field(default_factory=dict)
    groups: frozenset[int] = frozenset()
    key_hashes: npt.NDArray[np.uint64] = field(default_factory=_NO_KEYS.copy)

    @property
    def entries(self) -> int:
        """Number of removed entries."""
        return sum(count.entries for count in self.states.values())

    @property
    def keys(self) -> int:
        """Number of distinct removed keys."""
        return len(self.key_hashes)

    def __add__(self, other: Tally) -> Tally:
        nothing = Count(0, 0)
        names = dict.fromkeys((*self.states, *other.states))
        return Tally(
            entries_read=self.entries_read + other.entries_read,
            bytes_read=self.bytes_read + other.bytes_read,
            states={n: self.states.get(n, nothing) + other.states.get(n, nothing) for n in names},
            groups=self.groups | other.groups,
            key_hashes=np.union1d(self.key_hashes, other.key_hashes) if other.keys else self.key_hashes,
        )


def tally_removed(entry_filter: EntryFilter, source: KeyGroupReader) -> Tally:
    """Count the entries of a source that a filter removes."""
    total = Tally()
    with error_context(source):
        header = source.header()
        for batch in source.batches():
            total = total + _difference(header, batch, entry_filter.apply(header, batch))
    return total


def _difference(header: KeyedHeader, before: EntryBatch, after: EntryBatch) -> Tally:
    old = sizes_of(before)
    read = Tally(entries_read=len(before), bytes_read=int(old.sum()))
    if after is before:
        return read
    new = sizes_of(after)
    states = {}
    for number, meta in enumerate(header.states):
        mine, left = before.state == number, after.state == number
        removed = Count(int(mine.sum() - left.sum()), int(old[mine].sum() - new[left].sum()))
        if removed.entries or removed.size_bytes:
            states[meta.name] = removed
    most = int(before.group.max(initial=0)) + 1
    changed = np.bincount(before.group, old, most) != np.bincount(after.group, new, most)
    changed |= np.bincount(before.group, minlength=most) != np.bincount(after.group, minlength=most)
    hashes = (np.unique(hash_keys_of(b, *key_bounds(header, b))) for b in (before, after))
    return read + Tally(
        states=states,
        groups=frozenset(np.flatnonzero(changed).tolist()),
        key_hashes=np.setdiff1d(*hashes, assume_unique=True),
    )


def sizes_of(batch: EntryBatch) -> Int64s:
    """Return the bytes of the key and the value of each entry."""
    return batch.key_end - batch.key + batch.value_end - batch.value
