"""Choice of the entries of the base that stay in a new snapshot, by their keys. Filters run in tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from statetool.entries.selection import key_starts
from statetool.errors import DecodeError, StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.java.hashing.keys import KeyHasher
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.distinct import hash_ranges
from statetool.saving.streams.runs import entry_batch

Bools = npt.NDArray[np.bool_]
#: Odd number that spreads seeds over 64 bits.
_SPREAD: Final = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedEntry:
    """An entry that the base does not have: the state by name, and the bytes of key (without key group) and value."""

    state: str
    key_group: int
    key: bytes
    value: bytes


class EntryFilter(Protocol):
    """Choice of entries that stay; picklable."""

    @property
    def added(self) -> tuple[AddedEntry, ...]:
        """Return entries to add."""
        ...

    def may_change(self, key_group: int) -> bool:
        """Return True if some entries of a key group may be removed or changed."""
        ...

    def removes(self, key_group: int) -> bool:
        """Return True if all entries of a key group are removed, so that it need not be read."""
        ...

    def for_task(self, groups: Collection[int]) -> EntryFilter:
        """Return the filter for a task that has only entries of these key groups, without what it does not need."""
        ...

    def apply(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Return the entries that stay, in their order; ``batch`` itself if all stay unchanged."""
        ...


@dataclass(frozen=True, slots=True)
class FilterChain:
    """Filters that are applied one after another."""

    filters: tuple[EntryFilter, ...]

    @property
    def added(self) -> tuple[AddedEntry, ...]:
        return tuple(entry for f in self.filters for entry in f.added)

    def may_change(self, key_group: int) -> bool:
        return any(f.may_change(key_group) for f in self.filters)

    def removes(self, key_group: int) -> bool:
        return any(f.removes(key_group) for f in self.filters)

    def for_task(self, groups: Collection[int]) -> FilterChain:
        return FilterChain(tuple(f.for_task(groups) for f in self.filters))

    def apply(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        for entry_filter in self.filters:
            batch = entry_filter.apply(header, batch)
        return batch


class MaskFilter:
    """Base of filters that remove entries and change none."""

    @property
    def added(self) -> tuple[AddedEntry, ...]:
        """Return no entries."""
        return ()

    def removes(self, key_group: int) -> bool:
        """Return True if all entries of a key group are removed."""
        return False

    def for_task(self, groups: Collection[int]) -> Self:
        """Return the filter for a task that has only entries of these key groups."""
        return self

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        """Return a mask of the entries that stay."""
        raise NotImplementedError

    def apply(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Return the entries that stay; ``batch`` itself if all do."""
        try:
            mask = self.mask(header, batch)
        except StatetoolError as error:
            raise batch.locate(error) from None
        return batch if mask.all() else batch.take(np.flatnonzero(mask))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFilter(MaskFilter):
    """Filter by a list of keys.

    Attributes
    ----------
    keys
        Encoded keys.
    groups
        The key groups that can hold them.
    keep
        Whether these keys stay and all others are removed, instead of the opposite.
    places
        Each key with its key group; ``None`` if a key may be in any key group.
    """

    keys: frozenset[bytes]
    groups: frozenset[int]
    keep: bool = False
    places: tuple[tuple[int, bytes], ...] | None = None

    @classmethod
    def of(cls, places: Sequence[tuple[bytes, int | None]], max_parallelism: int, *, keep: bool = False) -> KeyFilter:
        """Return the filter of encoded keys with their key groups, ``None`` if a key may be in any of them."""
        known = tuple((group, key) for key, group in places if group is not None)
        groups = {group for group, _ in known} if len(known) == len(places) else range(max_parallelism)
        return cls(
            keys=frozenset(key for key, _ in places), groups=frozenset(groups), keep=keep,
            places=known if len(known) == len(places) else None,
        )  # fmt: skip

    def may_change(self, key_group: int) -> bool:
        return self.keep or key_group in self.groups

    def removes(self, key_group: int) -> bool:
        return self.keep and key_group not in self.groups

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        named = np.zeros(len(batch), dtype=np.bool_)
        index = np.flatnonzero(among(batch.group, np.array(sorted(self.groups))))
        if len(index):
            part = batch.take(index)
            named[index] = _equal_any(part, *key_bounds(header, part), self.keys)
        return named if self.keep else ~named


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceFilter(MaskFilter):
    """Filter that replaces single entries.

    Attributes
    ----------
    removed
        Composite keys (without key group) of the entries to remove, by state.
    groups
        The key groups of all removed and added entries.
    """

    removed: Mapping[str, frozenset[bytes]]
    added: tuple[AddedEntry, ...]
    groups: frozenset[int]

    def with_old_versions(self) -> ReplaceFilter:
        """Return the filter that also removes what has the keys of added entries, such as their deletions in table files."""
        removed = dict(self.removed)
        for entry in self.added:
            removed[entry.state] = removed.get(entry.state, frozenset()) | {entry.key}
        return replace(self, removed=removed)

    def may_change(self, key_group: int) -> bool:
        return key_group in self.groups

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        stays = np.ones(len(batch), dtype=np.bool_)
        in_groups = np.isin(batch.group, np.fromiter(self.groups, dtype=np.int64))
        for number, meta in enumerate(header.states):
            index = np.flatnonzero(in_groups & (batch.state == number)) if self.removed.get(meta.name) else ()
            if len(index):
                part = batch.take(np.asarray(index))
                stays[index] = ~_equal_any(part, part.key, part.key_end, self.removed[meta.name])
        return stays


def added_batch(added: Sequence[AddedEntry], ids: Mapping[str, int]) -> EntryBatch:
    """Return added entries as a batch, with state ids by name."""
    edges = np.cumsum([0, *(n for entry in added for n in (len(entry.key), len(entry.value)))])
    data = np.frombuffer(b"".join(part for entry in added for part in (entry.key, entry.value)), dtype=np.uint8)
    state = np.array([ids[entry.state] for entry in added], dtype=np.int64)
    group = np.array([entry.key_group for entry in added], dtype=np.int64)
    return entry_batch(data, state, group, edges[:-1:2], edges[1::2], edges[1::2], edges[2::2])


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupFilter(MaskFilter):
    """Filter that keeps all keys of some key groups."""

    groups: frozenset[int]

    def may_change(self, key_group: int) -> bool:
        return key_group not in self.groups

    def removes(self, key_group: int) -> bool:
        return key_group not in self.groups

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        return np.isin(batch.group, np.fromiter(self.groups, dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter(MaskFilter):
    """Filter that keeps the keys with small hashes. Equal keys have equal hashes in all operators.

    Attributes
    ----------
    below
        Exclusive upper bound of the hashes of keys that stay, as an unsigned 64-bit number.
    """

    seed: int
    below: int

    def may_change(self, key_group: int) -> bool:
        return self.below <= np.iinfo(np.uint64).max

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        if self.below > np.iinfo(np.uint64).max:
            return np.ones(len(batch), dtype=np.bool_)
        hashes = sample_hashes(hash_keys_of(batch, *key_bounds(header, batch)), self.seed)
        return np.asarray(hashes < np.uint64(self.below))


def key_bounds(header: KeyedHeader, batch: EntryBatch) -> tuple[Int64s, Int64s]:
    """Return the start and end of the key of each entry, timers included.

    Raises
    ------
    DecodeError
        A key does not fit its serializer, or its end cannot be found; the offset is the position in ``batch.data``.
    """
    start = key_starts(batch, header)
    if header.key.needs_frame and len(batch):
        raise DecodeError(
            f"the end of a key of {header.key.type_name} cannot be found",
            hint="pass the job's jar (--jar), declare the class (--declare), or choose other operators with --uid",
        ).at(offset=int(start[0]), type_path="key")
    return start, KeyHasher(header.key).ends(batch.data, start, batch.key_end)


def hash_keys_of(batch: EntryBatch, start: Int64s, end: Int64s) -> npt.NDArray[np.uint64]:
    """Return a hash of the bytes of each key, independent of its key group."""
    return hash_bytes(batch.data, start, end)


def sample_hashes(hashes: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Return evenly distributed hashes that depend on a seed (the finalizer of MurmurHash3)."""
    mixed = hashes ^ np.uint64(seed * _SPREAD & 0xFFFFFFFFFFFFFFFF)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))


def _equal_any(batch: EntryBatch, start: Int64s, end: Int64s, wanted: frozenset[bytes]) -> Bools:
    """Return a mask of the byte ranges that equal one of the wanted ones."""
    equal = np.zeros(len(batch), dtype=np.bool_)
    candidates = np.flatnonzero(among(hash_bytes(batch.data, start, end), _hashes_of(wanted)))
    matches = [bytes(batch.data[start[i] : end[i]]) in wanted for i in candidates.tolist()]
    equal[candidates[np.array(matches, dtype=np.bool_)]] = True
    return equal


def among(values: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> Bools:
    """Return a mask of the values that are among sorted ones. For few values, ``numpy.isin`` takes many times as long."""
    if not len(wanted):
        return np.zeros(len(values), dtype=np.bool_)
    found: Bools = wanted[np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)] == values
    return found


def hash_bytes(data: Any, start: Int64s, end: Int64s) -> npt.NDArray[np.uint64]:
    """Return the hashes of keys by their bytes, without the key group: that of a key differs between operators if their max parallelism does."""
    hashes = np.empty(len(start), dtype=np.int64)
    hash_ranges(data, start, end, np.zeros(len(start), dtype=np.int64), hashes)
    return hashes.view(np.uint64)


def hashes_of_keys(keys: Collection[bytes]) -> npt.NDArray[np.uint64]:
    """Return the hashes of encoded keys, as :func:`hash_keys_of`."""
    edges = np.cumsum([0, *map(len, keys)])
    data = np.frombuffer(b"".join(keys), dtype=np.uint8)
    return hash_bytes(data, edges[:-1], edges[1:])


@lru_cache(maxsize=16)
def _hashes_of(keys: frozenset[bytes]) -> npt.NDArray[np.uint64]:
    """Return the sorted hashes of encoded keys."""
    return np.sort(hashes_of_keys(keys))
