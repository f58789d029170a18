"""Differences between two databases that share table files, such as an incremental checkpoint and its predecessor.

A key that occurs only in shared files is the same in both databases. Files of only one side are read completely: those of the new side
contain everything written since, and both together show which entries a compaction only moved between files, and which it dropped (deleted entries
leave no trace). In shared files, only the blocks that may contain differing keys are read: they contain the old values, and the older
operands of merges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from statetool.errors import StatetoolError
from statetool.formats.backends.column_families import family_name
from statetool.formats.backends.native import batch_of_slices, key_finder, key_ranges
from statetool.formats.keyed.distinct import Hashes, changed_ids, mix_hashes
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.rocksdb.database import open_database
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.manifest import TableFile, UnsupportedManifestError
from statetool.formats.rocksdb.slices import NO_ENTRIES, Slice
from statetool.formats.rocksdb.table_file import SortedTable
from statetool.formats.rocksdb.table_runs import Run, merge_runs
from statetool.formats.rocksdb.tables import Tables, range_bounds, runs_between
from statetool.formats.stream import Stream
from statetool.kernels.core.arrays import Bytes, Int64s, Mask, frozen
from statetool.kernels.core.words import copy_ranges
from statetool.kernels.entries.comparison import hash_spans

#: Kinds of entries in table files that make older entries of their key irrelevant: a value, and deletions.
_PUT: Final = 1
_DELETED: Final = (0, 7)
#: Target number of bytes of all files to compare at once.
WINDOW_BYTES: Final = 32 << 20
#: Finds the end of the id in each composite key of a state: entries with one id are compared together.
IdEnds = Callable[[int, EntryBatch], Int64s]
Opened = list[tuple[TableFile, SortedTable]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Table files of one state in one range of keys: those of only the old side, of only the new side, and of both."""

    removed: Opened
    added: Opened
    shared: Opened

    @property
    def all(self) -> Opened:
        return [*self.removed, *self.added, *self.shared]

    @property
    def newest_shared(self) -> int | None:
        """The largest sequence number in shared files, ``None`` if a file does not store it."""
        sequences = [f.largest_sequence for f, _ in self.shared]
        return max((n for n in sequences if n is not None), default=-1) if None not in sequences else None


@dataclass(frozen=True, slots=True)
class _Read:
    """A run of one state's entries, the id of each, and the bytes from which the id is derived."""

    state: int
    run: Run
    table: SortedTable
    id_end: Int64s
    ids: Hashes


def _select(reads: Sequence[_Read], ids: Hashes, *, invert: bool = False) -> list[_Read]:
    """Return the entries that have one of the ids (or none of them), without runs that have no such entry."""
    selected = []
    for r in reads:
        index = np.flatnonzero(np.isin(r.ids, ids, invert=invert))
        if len(index):
            selected.append(_Read(r.state, r.run.take(index), r.table, r.id_end[index], r.ids[index]))
    return selected


def changed_entries(
    old: DatabaseFiles,
    new: DatabaseFiles,
    header: KeyedHeader,
    states: Collection[str],
    key_groups: Collection[int],
    *,
    prefix: int,
    id_ends: IdEnds | None,
    upserts: bool = False,
) -> Iterator[tuple[EntryBatch, EntryBatch]] | None:
    """Return the entries that differ, before and after; ``None`` if only RocksDB itself can read the databases.

    Parameters
    ----------
    header
        The header of both.
    prefix
        Bytes of the key-group prefix of each key.
    id_ends
        Finds the end of each entry's key, if all entries of a key are compared together; ``None`` if each entry is compared alone.
    upserts
        Whether old values that would have to be looked up in shared files may be omitted.

    Raises
    ------
    FormatError
        Damaged.
    """
    ids = {i: m.name for i, m in enumerate(header.states) if m.name in states}
    databases = [open_database(files) for files in (old, new)]
    sides = [database.tables for database in databases if database.tables is not None]
    if len(sides) < len(databases):
        return None
    for database in databases:
        database.check_families(family_name(m.name) for m in header.states)
    ranges: list[tuple[bytes, bytes, dict[int, _Pair]]] = []
    try:
        for low, high in key_ranges(key_groups, None, prefix):
            ranges.append((low, high, {i: _pair(sides, name, low, high) for i, name in ids.items()}))
    except UnsupportedManifestError:
        return None
    reader = _Reader(header, prefix, id_ends, new.name, alone=id_ends is None or _single(header, ids), upserts=upserts)
    return (window for low, high, pairs in ranges for window in reader.windows(pairs, low, high))


def _pair(sides: Sequence[Tables], state: str, low: bytes, high: bytes) -> _Pair:
    old, new = (side.open_range(family_name(state), low, high) for side in sides)
    before, after = ({_identity(t.stream) for _, t in side} for side in (old, new))
    return _Pair(
        [(f, t) for f, t in old if _identity(t.stream) not in after],
        [(f, t) for f, t in new if _identity(t.stream) not in before],
        [(f, t) for f, t in new if _identity(t.stream) in before],
    )


def _single(header: KeyedHeader, states: Collection[int]) -> bool:
    """Return True if a key has at most one entry."""
    kinds = [header.states[i].kind for i in states]
    return len(kinds) == 1 and kinds[0] not in ("map", "list")


def _identity(stream: Stream) -> object:
    """Return a value that is equal only for the same bytes: the range in a file, or the bytes themselves if inline in the metadata."""
    return (stream.file, stream.start, stream.size_bytes) if stream.inline is None else stream.inline


class _Reader:
    """Reader of key windows on both sides."""

    def __init__(
        self, header: KeyedHeader, prefix: int, id_ends: IdEnds | None, name: str, *, alone: bool, upserts: bool
    ) -> None:
        #: Whether an id belongs to one entry.
        self.alone = alone
        self.upserts = upserts
        self.header = header
        self.prefix = prefix
        self.id_ends = id_ends
        self.name = name
        self._key_of = key_finder(header.key, prefix)
        #: Entries that are compared alone never have the id of an entry of another state.
        self.seeds = np.arange(1, len(header.states) + 1, dtype=np.uint64)

    def windows(self, pairs: Mapping[int, _Pair], low: bytes, high: bytes) -> Iterator[tuple[EntryBatch, EntryBatch]]:
        """Yield the differing entries with keys from ``low`` (inclusive) to ``high`` (exclusive); those with one id are in one window."""
        bounds = {
            bound
            for pair in pairs.values()
            for last in range_bounds(pair.all, low, high, WINDOW_BYTES)
            if (bound := self._bound(last)) is not None and low < bound < high
        }
        for start, stop in pairwise([low, *sorted(bounds), high]):
            yield from self._window(pairs, start, stop)

    def _bound(self, last: bytes) -> bytes | None:
        """Return a key at which windows can be cut without splitting an id; ``None`` if the index holds only a part of the key."""
        if self.id_ends is None:
            return last
        try:
            return self._key_of(last)
        except StatetoolError:
            return None

    def _window(self, pairs: Mapping[int, _Pair], low: bytes, high: bytes) -> Iterator[tuple[EntryBatch, EntryBatch]]:
        reads_by_state = {
            state: (self._read(state, pair.removed, low, high), self._read(state, pair.added, low, high))
            for state, pair in pairs.items()
        }
        sides = [self._run_hashes([r for both in reads_by_state.values() for r in both[side]]) for side in (0, 1)]
        changed = changed_ids(sides[0], sides[1])
        if not len(changed):
            return
        slices: tuple[list[tuple[int, Slice]], list[tuple[int, Slice]]] = ([], [])
        chosen = {state: [_select(reads, changed) for reads in both] for state, both in reads_by_state.items()}
        everything = [r for both in chosen.values() for reads in both for r in reads]
        for state, pair in pairs.items():
            asked = everything if self.id_ends is not None else [r for reads in chosen[state] for r in reads]
            known, unknown = self._settled(state, pair, chosen[state])
            asked = _select(asked, known, invert=True)
            shared = self._look_up(state, pair.shared, asked, changed, low, high)
            before, after = chosen[state]
            before = _select(before, unknown, invert=True)
            for side, reads in enumerate((before, after)):
                runs = [(r.run, r.table) for r in (*reads, *shared)]
                if runs and len(entries := merge_runs(runs)):
                    slices[side].append((state, entries))
        old, new = (batch_of_slices(side or [(0, NO_ENTRIES)], self.prefix, self.name) for side in slices)
        # Entries that were only moved, or are hidden by newer ones on both sides, are among these.
        changed = changed_ids(self._entry_hashes(old), self._entry_hashes(new))
        if len(changed):
            yield self._with_ids(old, changed), self._with_ids(new, changed)

    def _settled(self, state: int, pair: _Pair, chosen: Sequence[Sequence[_Read]]) -> tuple[Hashes, Hashes]:
        """Return the ids that need no look-up in shared files, and those of them whose old entries are unknown."""
        newest, nothing = pair.newest_shared, np.empty(0, dtype=np.uint64)
        if newest is None or not self.alone:
            return nothing, nothing
        before, after = (_newest(reads, newest, (_PUT, *_DELETED)) for reads in chosen)
        both = np.intersect1d(before, after)
        # The old length of a rewritten list must be known.
        if not self.upserts or self.header.states[state].kind == "list":
            return both, nothing
        written = _newest(chosen[1], newest, (_PUT,))
        return np.union1d(both, written), np.setdiff1d(written, both)

    def _read(
        self, state: int, tables: Opened, low: bytes, high: bytes, wanted: Callable[[SortedTable], Mask] | None = None
    ) -> list[_Read]:
        return [self._identified(state, run, t) for run, t in runs_between(tables, low, high, wanted=wanted)]

    def _identified(self, state: int, run: Run, table: SortedTable) -> _Read:
        keys = EntryBatch(
            data=run.keys,
            state=np.full(len(run.key), state, dtype=np.int64),
            group=np.zeros(len(run.key), dtype=np.int64),
            key=run.key + self.prefix,
            key_end=run.key_end,
            value=run.key_end,
            value_end=run.key_end,
            regions=(),
            file=table.stream.file,
        )
        end = self._id_ends(keys)
        return _Read(state, run, table, end, self._ids(keys, end))

    def _id_ends(self, entries: EntryBatch) -> Int64s:
        if self.id_ends is None:
            return entries.key_end
        end = np.empty(len(entries), dtype=np.int64)
        for state in np.unique(entries.state).tolist():
            index = np.flatnonzero(entries.state == state)
            end[index] = self.id_ends(state, entries.take(index))
        return end

    def _ids(self, entries: EntryBatch, end: Int64s) -> Hashes:
        ids = np.empty(len(entries), dtype=np.uint64)
        number = entries.state if self.id_ends is None else np.zeros(len(entries), dtype=np.int64)
        hash_spans(entries.data, entries.key - self.prefix, end, number, self.seeds, ids)
        return ids

    def _run_hashes(self, reads: Sequence[_Read]) -> tuple[Hashes, Hashes]:
        """Return the ids of entries, and hashes of their keys, values and tags (which give the order of writing)."""
        ids, contents = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.uint64)]
        for r in reads:
            number = np.full(len(r.ids), r.state, dtype=np.int64)
            keys, values = np.empty_like(r.ids), np.empty_like(r.ids)
            hash_spans(r.run.keys, r.run.key, r.run.key_end, number, self.seeds, keys)
            hash_spans(r.run.data, r.run.value, r.run.value_end, number, self.seeds, values)
            ids.append(r.ids)
            contents.append(mix_hashes(mix_hashes(keys, values), r.run.tag))
        return np.concatenate(ids), np.concatenate(contents)

    def _entry_hashes(self, entries: EntryBatch) -> tuple[Hashes, Hashes]:
        """Return the ids of entries, and hashes of their keys and values."""
        ids = self._ids(entries, self._id_ends(entries))
        keys, values = np.empty_like(ids), np.empty_like(ids)
        hash_spans(entries.data, entries.key, entries.key_end, entries.state, self.seeds, keys)
        hash_spans(entries.data, entries.value, entries.value_end, entries.state, self.seeds, values)
        return ids, mix_hashes(keys, values)

    def _with_ids(self, entries: EntryBatch, wanted: Hashes) -> EntryBatch:
        return entries.take(np.flatnonzero(np.isin(self._ids(entries, self._id_ends(entries)), wanted)))

    def _look_up(
        self, state: int, tables: Opened, asked: Sequence[_Read], wanted: Hashes, low: bytes, high: bytes
    ) -> list[_Read]:
        """Read the entries with wanted ids from those blocks of shared files that may contain the given ones."""

        def blocks(table: SortedTable) -> Mask:
            marked = np.zeros(len(table.blocks.size), dtype=np.bool_)
            for span in spans:
                marked |= table.blocks.marked(*span)
            return marked

        spans = [_unique_ids(r) for r in asked] if tables else []
        return _select(self._read(state, tables, low, high, wanted=blocks), wanted) if spans else []


def _newest(reads: Sequence[_Read], after: int, kinds: Sequence[int]) -> Hashes:
    """Return the ids whose newest entry was written after a sequence number and is of one of the kinds."""
    ids = np.concatenate([np.empty(0, dtype=np.uint64), *(r.ids for r in reads)])
    tags = np.concatenate([np.empty(0, dtype=np.uint64), *(r.run.tag for r in reads)])
    order = np.lexsort((tags, ids))
    ids, tags = ids[order], tags[order]
    last = np.append(ids[1:] != ids[:-1], True)[: len(ids)]
    settled = ((tags >> np.uint64(8)).astype(np.int64) > after) & np.isin(tags & np.uint64(0xFF), kinds)
    return ids[last & settled]


def _unique_ids(read: _Read) -> tuple[Bytes, Int64s, Int64s]:
    """Return the bytes of distinct ids: a buffer, and the start and end of each."""
    _, first = np.unique(read.ids, return_index=True)
    start, end = read.run.key[first], read.id_end[first]
    size = end - start
    edges = np.cumsum(size)
    data = np.empty(int(edges[-1]), dtype=np.uint8)
    copy_ranges(read.run.keys, start, size, data, edges - size)
    return frozen(data), edges - size, edges
