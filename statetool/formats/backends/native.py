"""Keyed state of RocksDB snapshots as entry batches: native savepoints, incremental and full checkpoints (also of ForSt).

A handle (tags 5 and 11) has a ``meta`` stream, which consists of a keyed header only, and the files of one RocksDB database. Each
state is the column family of the same name. Its entries are those of the canonical format, sorted by their composite keys, which start with
the key group. A handle may contain keys outside its range of key groups (after rescaling), which belong to no subtask.

How to read one, whatever the backend that wrote it::

    header = read_keyed_header(Cursor(meta), types, end=len(meta))
    for batch in read_native(files, header, ["balances"], key_groups, prefix=1, whole_keys=False):
        batch.state, batch.key, ...   # an EntryBatch; state ids are positions in the header

Follows ``RocksIncrementalSnapshotStrategy`` and ``RocksDBIncrementalRestoreOperation``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from statetool.errors import FormatError, StatetoolError
from statetool.formats.backends.column_families import family_name
from statetool.formats.keyed.complete import complete_keys
from statetool.formats.keyed.entries import EntryBatch, RebuiltBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.rocksdb.database import begin_database, open_database
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.tables import Prefixes, TableSlices
from statetool.io.cursor import Cursor
from statetool.io.requests import AHEAD_BYTES
from statetool.kernels.core.arrays import frozen
from statetool.kernels.rocksdb.merge import place_entries
from statetool.serializers.core.base import Serializer

BATCH_BYTES: Final = 8 << 20
_LEAST_SLICE: Final = 64 << 10
_MOST_LOOK_UPS: Final = 256
#: A state's next slice is read when less than this part of the one before is left.
_LOW_SHARE: Final = 4


def read_native(
    files: DatabaseFiles,
    header: KeyedHeader,
    states: Iterable[str],
    key_groups: Iterable[int],
    *,
    prefix: int,
    whole_keys: bool,
    keys: Sequence[bytes] | None = None,
    batch_bytes: int = BATCH_BYTES,
    reads_on: bool = False,
    checks_order: bool = False,
) -> Iterator[EntryBatch]:
    """Read the entries of some states in some key groups.

    Parameters
    ----------
    files
        The files of the database.
    header
        From the handle's ``meta`` stream.
    states
        Names of states; names that are not in the header are ignored.
    key_groups
        The key groups to read. Others are not, even if they are in the database.
    prefix
        Bytes of the key-group prefix of each key, 1 or 2.
    whole_keys
        Return all entries of a key, of all ``states``, in one batch. (If the end of a key cannot be found, all entries of a key group.)
    keys
        Encoded keys to read; entries of other keys may be returned too.
    batch_bytes
        Target size of a batch in bytes; larger only if entries have to stay together.
    reads_on
        Whether all batches will be read, so that their bytes may be requested from an object store at once.
    checks_order
        Whether to check that files are in the order in which RocksDB looks for keys.

    Raises
    ------
    FormatError
        Damaged files, or not a database; with the file if known.
    """
    ids = {m.name: i for i, m in enumerate(header.states)}
    state_ids = [ids[name] for name in states if name in ids]
    database = open_database(files)
    database.check_families(map(family_name, ids))
    if checks_order:
        database.check_levels()
    together = max(1, len(state_ids)) if whole_keys else 1
    limit, ahead_bytes = max(_LEAST_SLICE, batch_bytes // together), AHEAD_BYTES // together
    key_of = key_finder(header.key, prefix)
    ranges = list(key_ranges(key_groups, keys, prefix))
    database.prefetch((family_name(header.states[i].name) for i in state_ids), ranges)
    for low, high in ranges:
        slices = {
            i: database.slices(
                family_name(header.states[i].name), low, high, limit, ahead_bytes=ahead_bytes, checks_order=checks_order
            )
            for i in state_ids
        }
        tables = [part for part in slices.values() if isinstance(part, TableSlices)]
        if whole_keys:
            bounds = TableSlices.common_bounds(tables, limit * together)
            for of_state in tables:
                of_state.bounds = bounds
        tables = [part for part in tables if part.reads_ahead]
        # Slices are mapped to batches, because a variable would keep a slice while its batch is used.
        try:
            if reads_on:
                _begin(tables)
            if whole_keys:
                for of_state in tables:
                    of_state.begin_first()
                # Composite keys sort by key first: no key's bytes are a prefix of another key's.
                complete = complete_keys([_Source(i, iter(part), key_of) for i, part in slices.items()])
                yield from map(partial(batch_of_slices, prefix=prefix, name=database.name), complete)
            else:
                for i, state_slices in slices.items():
                    try:
                        yield from map(partial(_batch_of_slice, i, prefix, database.name), state_slices)
                    except StatetoolError as error:
                        raise error.at(state=header.states[i].name) from error.__cause__
                    _begin(tables)
        finally:
            for state_slices in tables:
                state_slices.close()


def begin_native(
    files: DatabaseFiles,
    header: KeyedHeader,
    states: Iterable[str],
    key_groups: Iterable[int],
    *,
    prefix: int,
    keys: Sequence[bytes] | None = None,
) -> None:
    """Make the first requests of :func:`read_native` to an object store, as far as their answers to earlier calls allow.

    Raises
    ------
    FormatError
        As for :func:`read_native`.
    """
    names = {family_name(m.name) for m in header.states if m.name in set(states)}
    begin_database(files, sorted(names), list(key_ranges(key_groups, keys, prefix)))


def _begin(tables: Iterable[TableSlices]) -> None:
    """Request bytes of all tables before they are needed, those that are read first before others."""
    for part in tables:
        part.begin()


def read_keys(
    files: DatabaseFiles, header: KeyedHeader, keys: Collection[tuple[int, bytes]], *, prefix: int
) -> Iterator[EntryBatch]:
    """Read the entries of keys, given by key group and encoded key, and the timers in their key groups.

    Only blocks that may contain them are read. Entries of other keys may be missing, or returned although they were replaced.

    Raises
    ------
    FormatError
        As for :func:`read_native`.
    """
    if not keys:
        return
    database = open_database(files)
    database.check_families(family_name(m.name) for m in header.states)
    limit = max(_LEAST_SLICE, BATCH_BYTES // max(1, len(header.states)))
    ranges = list(key_ranges({group for group, _ in keys}, None, prefix))
    database.prefetch((family_name(m.name) for m in header.states), ranges)
    for i, meta in enumerate(header.states):
        prefixes = key_prefixes(keys, prefix, timers=meta.kind == "timers")
        for low, high in ranges:
            slices = database.slices(family_name(meta.name), low, high, limit, prefixes)
            yield from map(partial(_batch_of_slice, i, prefix, database.name), slices)


def _prefix_of(key_group: int, prefix: int) -> bytes:
    try:
        return key_group.to_bytes(prefix, "big")
    except OverflowError:
        text = f"key group {key_group:,}, which the max parallelism of the operator does not allow"
        raise FormatError(text) from None


def key_prefixes(keys: Iterable[tuple[int, bytes]], prefix: int, *, timers: bool) -> Prefixes:
    """Return the prefixes of the entries of keys in a state. Timers start with their time: only their key groups are known."""
    return Prefixes.of(_prefix_of(group, prefix) + (b"" if timers else key) for group, key in keys)


def key_ranges(key_groups: Iterable[int], keys: Sequence[bytes] | None, prefix: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield ranges of composite keys, ``(first, end)`` with an exclusive end: of key groups, or of keys in them if there are few."""
    groups = sorted(set(key_groups))
    if keys is not None and len(keys) * len(groups) <= _MOST_LOOK_UPS:
        before = None
        for low in sorted({_prefix_of(group, prefix) + key for group in groups for key in keys}):
            if before is None or not low.startswith(before):
                yield low, _end_of_prefix(low)
                before = low
        return
    start = 0
    for i, group in enumerate(groups):
        if i + 1 == len(groups) or groups[i + 1] != group + 1:
            yield _prefix_of(groups[start], prefix), _prefix_of(group + 1, prefix)
            start = i + 1


def _end_of_prefix(key: bytes) -> bytes:
    """Return the first bytes that sort after everything that starts with ``key``. (The highest bit of a key group is never set.)"""
    cut = key.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1])


class _Source:
    """A :class:`~statetool.formats.keyed.complete.Run` of slices; those read but not yet taken are ``pending``."""

    def __init__(self, state: int, slices: Iterator[Slice], key_of: Callable[[bytes], bytes]) -> None:
        self.state = state
        self.pending: list[Slice] = []
        self.ended = False
        self._slices = slices
        self._key_of = key_of
        self._read = 0

    @property
    def is_low(self) -> bool:
        return _LOW_SHARE * sum(map(len, self.pending)) <= self._read

    @property
    def last(self) -> bytes:
        return self._key_of(self.pending[-1].key_at(-1))

    def grow(self) -> None:
        following = next(self._slices, None)
        self.ended = following is None or following.final
        if following is not None:
            self.pending.append(following)
            self._read = len(following)

    def below(self, bound: bytes | None) -> list[tuple[int, Slice]]:
        taken: list[tuple[int, Slice]] = []
        while self.pending:
            first = self.pending[0]
            n = len(first) if bound is None or first.key_at(-1) < bound else first.position_of(bound)
            if n:
                taken.append((self.state, first.part(0, n)))
            if n < len(first):
                self.pending[0] = first.part(n, len(first))
                break
            self.pending.pop(0)
        return taken


def key_finder(key: Serializer, prefix: int) -> Callable[[bytes], bytes]:
    """Return a function that cuts a composite key to the part that its entries share: key group and key, or only the key group."""
    if key.needs_frame:
        return lambda composite: composite[:prefix]

    def without_namespace(composite: bytes) -> bytes:
        c = Cursor(composite, prefix)
        try:
            key.skip(c)
        except StatetoolError as error:
            error.where = replace(error.where, offset=None, region=f"key {composite[prefix:].hex()}")
            raise error.at(key_group=int.from_bytes(composite[:prefix], "big")) from None
        return composite[: c.pos]

    return without_namespace


def _batch_of_slice(state: int, prefix: int, name: str, part: Slice) -> EntryBatch:
    return batch_of_slices([(state, part)], prefix, name)


def batch_of_slices(slices: Sequence[tuple[int, Slice]], prefix: int, name: str) -> EntryBatch:
    """Return the entries of slices of states, given by their indexes. Several slices are copied to one buffer."""
    spans = [(int(s.key[0]), int(s.value_end[-1])) if len(s) else (0, 0) for _, s in slices]
    parts = [s.data[low:high] for (_, s), (low, high) in zip(slices, spans, strict=True)]
    counts = [len(s) for _, s in slices]
    group, key = (np.empty(sum(counts), dtype=np.int64) for _ in range(2))
    if len(slices) == 1 and not spans[0][0]:  # these positions remain
        key_end, value_end = slices[0][1].key_end, slices[0][1].value_end
    else:
        key_end, value_end = np.empty_like(key), np.empty_like(key)
    first = start = 0
    for (_, s), count, (low, high) in zip(slices, counts, spans, strict=True):
        own = slice(first, first + count)
        place_entries(
            s.data, s.key, s.key_end, s.value_end, prefix, start - low, group[own], key[own], key_end[own],
            value_end[own],
        )  # fmt: skip
        first += count
        start += high - low
    return RebuiltBatch(
        data=parts[0] if len(parts) == 1 else frozen(np.concatenate(parts)),
        state=np.repeat(np.array([state for state, _ in slices], dtype=np.int64), counts),
        group=group,
        key=key,
        key_end=key_end,
        value=key_end,
        value_end=value_end,
        regions=(),
        file=name,
    )
