"""Changes of a keyed table between two checkpoints of a job: rows of the table, each with its change.

If both checkpoints are incremental, little of their shared files is read (:func:`~statetool.entries.database.database_changes`).
Otherwise both are read whole and compared by hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np
import pyarrow as pa

from statetool.analysis.comparison.keyed import MOST_BYTES
from statetool.analysis.comparison.meaning import Seeds
from statetool.analysis.comparison.plan import ComparisonRequest, keyed_units
from statetool.analysis.comparison.side import SideRequest, Slice, SnapshotSide, size_of_sources
from statetool.columns.batches import row_runs, split_to_limits
from statetool.entries.database import database_changes
from statetool.entries.form import KeyGroupReader
from statetool.errors import OptionError, UnsupportedError
from statetool.formats.keyed.distinct import Hashes, changed_ids, distinct
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.header import KeyedHeader
from statetool.io.glibc import keep_in_own_process
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.entries.comparison import hash_spans
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.decoding import decoding
from statetool.tables.kinds.keyed import KeyedTable
from statetool.tables.kinds.kind import KeyedKind, TableSpec
from statetool.tables.kinds.registry import TimersKind, in_table_order, timer_columns
from statetool.tables.read import whole_batch
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan
from statetool.tables.splits import KeyedSplit

#: The column before those of the table.
CHANGE: Final = pa.field("change", pa.string(), nullable=False)
INSERT, UPDATE, DELETE, UPSERT = "insert", "update", "delete", "upsert"


_Change = tuple[str, pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeUnit:
    """Some key groups of both checkpoints, for one task; picklable. With ``upserts``, inserts and updates are not distinguished.

    ``common`` divides the max parallelisms of both: modulo ``common``, a key has one key group in both.
    """

    spec: TableSpec
    kind: KeyedKind
    before: SideRequest
    after: SideRequest
    upserts: bool
    common: int


@dataclass(frozen=True, slots=True)
class _Part:
    """Entries of one stream, with ``seeds`` of value hashes by state: equal bytes with two meanings have different hashes."""

    header: KeyedHeader
    batch: EntryBatch
    seeds: Hashes


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one side, identified by their bytes in ``data``, ``group`` (key group modulo ``common``, and state) and list ``index``."""

    data: Bytes
    start: Int64s
    end: Int64s
    group: Int64s
    index: Int64s
    value: Hashes
    batch: pa.RecordBatch


def check_changes(operator: OperatorInventory, request: ScanRequest) -> None:
    """Refuse tables whose changes cannot be followed.

    Raises
    ------
    OptionError
        A table of operator state, whose elements have no keys, or ``ttl="hide_expired"``, where values expire without a change to a file.
    """
    if operator.state_tables.get(request.table, ("keyed", ""))[0] == "operator":
        raise OptionError(
            f"{request.table!r} is operator state: its elements have no keys, so changes cannot be followed",
            hint="read all of it with mode=full",
        )
    if request.options.ttl == "hide_expired":
        raise OptionError(
            "ttl='hide_expired' hides values without a change to the state",
            hint="read changes with ttl='show' (the default) or 'raw'",
        )


def plan_changes(
    old: tuple[OperatorInventory, TableScan],
    new: tuple[OperatorInventory, TableScan],
    request: ScanRequest,
    *,
    upserts: bool = False,
) -> list[ChangeUnit]:
    """Plan the changes of a table from one checkpoint to the next. Reads headers only."""
    keyed = [s for s in (*new[1].splits, *old[1].splits) if isinstance(s, KeyedSplit)]
    if not keyed:
        return []
    spec, kind = keyed[0].spec, keyed[0].kind
    if not kind.follows_keys:
        raise OptionError(
            f"{request.table!r} combines several states, so its rows have no keys that changes could be followed by",
            hint="follow keyed_state, timers or the table of one state, or read all of it with mode=full",
        )
    comparison = ComparisonRequest(states=spec.states, keys=request.keys)
    units = keyed_units(old[0], new[0], comparison, request.options)
    common = gcd(old[0].state.max_parallelism, new[0].state.max_parallelism)
    return [
        ChangeUnit(spec=spec, kind=kind, before=u.before, after=u.after, upserts=upserts, common=common) for u in units
    ]


def changes(unit: ChangeUnit) -> Iterator[pa.RecordBatch]:
    """Yield changed rows, in a task: ``change`` and the columns of the table. Deleted rows have their old values.

    Raises
    ------
    FormatError, DecodeError
        Bytes are damaged.
    UnsupportedError
        The key types of the two checkpoints differ.
    """
    keep_in_own_process()
    for before, after in _pair_sources(unit.before, unit.after):
        for change, batch in _changes_of(unit, before, after):
            yield with_change(batch, UPSERT if unit.upserts and change != DELETE else change)


def _pair_sources(before: SideRequest, after: SideRequest) -> Iterator[tuple[SideRequest, SideRequest]]:
    """Yield pairs of sources with the same key groups; both sides whole if key groups moved to other subtasks."""
    sides = [{(type(s), *sorted(s.group_sizes())): s for s in side.sources} for side in (before, after)]
    unique = all(len(groups) == len(side.sources) for groups, side in zip(sides, (before, after), strict=True))
    if not unique or sides[0].keys() != sides[1].keys():
        yield before, after
        return
    for groups, source in sides[1].items():
        yield _only(before, sides[0][groups]), _only(after, source)


def _only(side: SideRequest, source: KeyGroupReader) -> SideRequest:
    return SideRequest(sources=(source,), states=side.states, keys=side.keys)


def _changes_of(unit: ChangeUnit, before: SideRequest, after: SideRequest) -> Iterator[_Change]:
    spec = unit.spec
    if len(before.sources) == len(after.sources) == 1:
        old, new = before.sources[0], after.sources[0]
        database = database_changes(old, new, spec.states, whole_keys=unit.kind.whole_keys, upserts=unit.upserts)
        if database is not None:
            header, windows = database
            seeds = np.ones(len(header.states), dtype=np.uint64)
            for lost, won in windows:
                yield from _join_parts(unit, [_Part(header, lost, seeds)], [_Part(header, won, seeds)])
            return
    slices = max(1, -(-(size_of_sources(before.sources) + size_of_sources(after.sources)) // MOST_BYTES))
    for number in range(slices):
        yield from _compare_sources(unit, before, after, Slice(number, slices))


def _compare_sources(unit: ChangeUnit, before: SideRequest, after: SideRequest, part: Slice) -> Iterator[_Change]:
    """Yield changes by reading both sides whole, and entries with differing hashes again."""
    seeds, spec = Seeds(), unit.spec
    common = unit.common if unit.kind.whole_keys else None
    sides = [SnapshotSide(request, seeds, part, common=common) for request in (before, after)]
    if any(seeds.keys_differ(name) for name in spec.states):
        raise UnsupportedError(
            "the key types of the two checkpoints differ, so their keys cannot be matched",
            hint="start the query again with the later one as startingCheckpoint, or compare the two with diff",
        ).at(operator=spec.operator)
    hashes = [side.hashes() for side in sides]
    wanted = changed_ids(*hashes)
    if len(wanted):
        old, new = (
            _parts(side, np.flatnonzero(np.isin(ids, wanted))) for side, (ids, _) in zip(sides, hashes, strict=True)
        )
        yield from _join_parts(unit, old, new)


def _parts(side: SnapshotSide, index: Int64s) -> list[_Part]:
    """Return the entries numbered ``index``, grouped by stream so that no key is in two parts."""
    by_header: dict[int, list[tuple[KeyedHeader, EntryBatch]]] = {}
    for header, batch, _ in side.chosen(index):
        by_header.setdefault(id(header), []).append((header, batch))
    seeds = {id(h): s for h, (_, s) in zip(side.headers, side.seeds, strict=True)}
    return [_Part(parts[0][0], concat([b for _, b in parts]), seeds[number]) for number, parts in by_header.items()]


def _join_parts(unit: ChangeUnit, old: Sequence[_Part], new: Sequence[_Part]) -> Iterator[_Change]:
    """Yield deleted, updated and inserted rows."""
    before, after = ([r for p in parts for r in _rows(unit, p, side)] for side, parts in enumerate((old, new)))
    if not before and not after:
        return
    place, value = _places([*before, *after]), np.concatenate([r.value for r in (*before, *after)])
    n = sum(len(r.value) for r in before)
    _, at_a, at_b = np.intersect1d(place[:n], place[n:], assume_unique=True, return_indices=True)
    changed = at_b[value[at_a] != value[n + at_b]]
    gone = np.setdiff1d(np.arange(n), at_a, assume_unique=True)
    come = np.setdiff1d(np.arange(len(place) - n), at_b, assume_unique=True)
    for change, rows, index in ((DELETE, before, gone), (UPDATE, after, changed), (INSERT, after, come)):
        if len(index):
            table = pa.Table.from_batches([r.batch for r in rows]).take(pa.array(np.sort(index)))
            for batch in table.to_batches(max_chunksize=65_536):
                for bounded_batch in split_to_limits(batch):
                    yield change, bounded_batch


def _rows(unit: ChangeUnit, part: _Part, side: int) -> Iterator[_Rows]:
    """Yield the rows of a part of one side (0 or 1)."""
    if not len(part.batch):
        return
    spec = unit.spec
    table = KeyedTable(part.header, spec.states, spec.options, spec.keys)
    if unit.kind.whole_keys:
        keys = table.keys_of(part.batch, spec.states)
        n = len(keys.start)
        key, *states = table.keyed_columns(part.batch, keys)
        batch = whole_batch(keys.group, [key, *in_table_order(states, spec, n)], spec)
        # A key on both sides has changed, otherwise it would not be here.
        value = np.full(n, side, dtype=np.uint64)
        group = keys.group % unit.common
        yield _Rows(part.batch.data, keys.start, keys.end, group, np.zeros(n, np.int64), value, batch)
        return
    for number, name in enumerate(spec.states):
        if name not in table.metas:
            continue
        for entries, source, index, value, batch in (_timers if isinstance(unit.kind, TimersKind) else _values)(
            spec, table, name, part
        ):
            group = entries.group[source] % unit.common * len(spec.states) + number
            yield _Rows(entries.data, entries.key[source], entries.key_end[source], group, index, value, batch)


_Found = Iterator[tuple[EntryBatch, Int64s, Int64s, Hashes, pa.RecordBatch]]


def _timers(spec: TableSpec, table: KeyedTable, name: str, part: _Part) -> _Found:
    entries = part.batch.of_state(table.ids[name])
    if table.keys is not None:
        entries = entries.take(np.flatnonzero(table.timers_of_keys(entries)))
    n, groups, columns = table.timer_rows(entries, name)
    batch = whole_batch(groups, [*columns, *timer_columns(name, n)], spec)
    yield entries, np.arange(n), np.zeros(n, np.int64), np.zeros(n, np.uint64), batch


def _values(spec: TableSpec, table: KeyedTable, name: str, part: _Part) -> _Found:
    shape, meta = table.shapes[name], table.metas[name]
    with decoding(name, part.batch, part.header.key, shape):
        entries, keys = table.split(part.batch, meta)
        items = table.items(shape, entries)
        sizes = items.end - items.pos + (entries.key_end - entries.key)[items.source]
        for run in row_runs(sizes):
            run_items = items.of(run)
            n, groups, columns = table.long_run(shape, meta, entries, keys, run_items)
            value = np.empty(n, dtype=np.uint64)
            state = np.full(n, table.ids[name], dtype=np.int64)
            hash_spans(entries.data, run_items.pos, run_items.end, state, part.seeds, value)
            index = np.zeros(n, np.int64) if run_items.index is None else run_items.index
            yield entries, run_items.source, index, value, whole_batch(groups, columns, spec)


def _places(rows: Sequence[_Rows]) -> Int64s:
    """Return a number for each row. A row on both sides gets one number."""
    starts = np.cumsum([0, *(len(r.data) for r in rows)])[:-1].tolist()
    start, end = (
        np.concatenate([getattr(r, name) + at for r, at in zip(rows, starts, strict=True)]) for name in ("start", "end")
    )
    index = np.concatenate([r.index for r in rows])
    ids, _ = distinct(np.concatenate([r.data for r in rows]), start, end, np.concatenate([r.group for r in rows]))
    return np.asarray(ids * (1 + index.max(initial=0)) + index, dtype=np.int64)


def with_change(batch: pa.RecordBatch, change: str) -> pa.RecordBatch:
    """Return rows with the same change in the first column of each."""
    column = pa.array([change], CHANGE.type).take(pa.array(np.zeros(batch.num_rows, dtype=np.int32)))
    return pa.RecordBatch.from_arrays([column, *batch.columns], schema=pa.schema([CHANGE, *batch.schema]))
