"""State of a join computed from that of another one: rows with other columns, under other keys, and with the number of their partners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.types import arrow_type
from statetool.columns.values import StateLayout
from statetool.errors import EncodeError
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.saving.recomputing.conditions import is_true
from statetool.saving.recomputing.entries import NewRows, StateRows, number_rows
from statetool.saving.recomputing.rows import select_columns
from statetool.saving.rekeying.rows import EXACT_ROWS
from statetool.serializers.core.base import Serializer
from statetool.serializers.runtime import unwrap
from statetool.sql_plans.joins import STATES, JoinChange, JoinSide, PlanJoin
from statetool.types import TtlType

_MOST: Final = 2**31 - 1
#: Pairs of rows for which a condition is evaluated at once.
_PAIRS: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a side: how often each occurs, the number of its partners and its last access, as far as they are stored."""

    records: pa.Array
    counts: Int64s
    partners: Int64s | None
    stamps: Int64s | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRule:
    """A :class:`~statetool.saving.recomputing.entries.StateRule` for joins."""

    old: PlanJoin
    new: PlanJoin
    change: JoinChange

    def compute(self, old: Mapping[str, StateRows], header: KeyedHeader) -> Iterator[NewRows]:
        """Yield both sides."""
        metas = {meta.name: meta for meta in header.states}
        sides = [self._side(number, old, header, metas[STATES[number]]) for number in (0, 1)]
        for number, (state, meta) in enumerate((name, metas[name]) for name in STATES):
            if sides[number] is not None:
                yield NewRows(state, self._entries(number, sides, header, meta))

    def _side(
        self, number: int, old: Mapping[str, StateRows], header: KeyedHeader, meta: StateMetaInfo
    ) -> tuple[pa.Array, _Rows] | None:
        """Return the keys and the rows of a side, each row once."""
        source = self.change.sources[number]
        stored = old.get(STATES[source.side])
        if stored is None:
            return None
        rows = _read_side(stored, self.old.sides[source.side])
        row = record_serializer(meta, self.new.sides[number])
        records = select_columns(rows.records, source.columns, row)
        keys = select_columns(records, self.new.sides[number].keys, header.key)
        ids, _ = number_rows(header.key, keys)
        same, first = number_rows(row, records, ids)
        at = as_arrow(first)
        return keys.take(at), _Rows(
            records.take(at),
            _sums(rows.counts, same, len(first)),
            _only(rows.partners, same, first),
            _latest(rows, same, first),
        )

    def _entries(
        self, number: int, sides: list[tuple[pa.Array, _Rows] | None], header: KeyedHeader, meta: StateMetaInfo
    ) -> StateRows:
        side, own = self.new.sides[number], sides[number]
        assert own is not None
        keys, rows = own
        layout = StateLayout(meta)
        partners = None
        if side.counts_partners:
            carries = self.change.carries_partners[number]
            partners = rows.partners if carries else self._count(number, sides, header)
            assert partners is not None
        if side.layout == "counted":
            _check_counts(rows.counts)
            return StateRows(keys, rows.records, _with_partners(as_arrow(rows.counts), partners, layout), rows.stamps)
        _check_unique(side, keys, rows, header, layout)
        values = _with_partners(rows.records, partners, layout)
        if side.layout == "single":
            return StateRows(keys, None, values, rows.stamps)
        assert layout.user_key is not None
        return StateRows(keys, select_columns(rows.records, side.unique, layout.user_key), values, rows.stamps)

    def _count(self, number: int, sides: list[tuple[pa.Array, _Rows] | None], header: KeyedHeader) -> Int64s:
        """Return the number of partners of each row: rows of the other side with the same key, unless a null keeps them apart."""
        own, other = sides[number], sides[1 - number]
        assert own is not None
        n = len(own[0])
        if other is None:
            return np.zeros(n, dtype=np.int64)
        keys = pa.concat_arrays([own[0], other[0]])
        ids, first = number_rows(header.key, keys)
        if self.new.evaluated is None:
            totals = _sums(other[1].counts, ids[n:], len(first))[ids[:n]]
        else:
            totals = self._count_true(number, own[1], other[1], ids, n)
        for i, filters in enumerate(self.new.filters_nulls):
            if filters:
                totals[own[0].field(i).is_null().to_numpy(zero_copy_only=False)] = 0
        _check_counts(totals)
        return totals

    def _count_true(self, number: int, own: _Rows, other: _Rows, ids: Int64s, n: int) -> Int64s:
        """Return the number of rows of the other side with the same key for which the condition is true."""
        assert self.new.evaluated is not None
        order = np.argsort(ids[n:], kind="stable")
        low, high = (np.searchsorted(ids[n:][order], ids[:n], side=side) for side in ("left", "right"))
        totals = np.zeros(n, dtype=np.int64)
        step = max(1, _PAIRS // max(1, int((high - low).max(initial=1))))
        for at in range(0, n, step):
            stop = min(n, at + step)
            sizes = (high - low)[at:stop]
            mine = np.repeat(np.arange(at, stop), sizes)
            ends = np.cumsum(sizes)
            theirs = order[np.repeat(low[at:stop] - ends + sizes, sizes) + np.arange(len(mine))]
            rows = [own.records.take(as_arrow(mine)), other.records.take(as_arrow(theirs))]
            sides = [rows[number], rows[1 - number]]
            columns = [side.field(i) for s, side in enumerate(sides) for i in range(len(self.new.sides[s].columns))]
            true = is_true(self.new.evaluated, columns)
            np.add.at(totals, mine[true], other.counts[theirs[true]])
        return totals


def record_serializer(meta: StateMetaInfo, side: JoinSide) -> Serializer:
    """Return the serializer of the rows in the state of a side."""
    layout = StateLayout(meta)
    if side.layout == "counted":
        assert layout.user_key is not None
        return layout.user_key
    element = value_serializer(layout)
    return unwrap(dict(element.children())["f0"]) if side.counts_partners else element


def value_serializer(layout: StateLayout) -> Serializer:
    """Return the serializer of values without their last access."""
    element = unwrap(layout.element)
    return unwrap(dict(element.children())["value"]) if isinstance(element.logical, TtlType) else element


def _read_side(stored: StateRows, side: JoinSide) -> _Rows:
    values, partners = stored.values, None
    if side.counts_partners:
        partners = _numbers(values.field(1))
        values = values.field(0)
    if side.layout == "counted":
        assert stored.user_keys is not None
        return _Rows(stored.user_keys, _numbers(values), partners, stored.stamps)
    return _Rows(values, np.ones(len(values), dtype=np.int64), partners, stored.stamps)


def _numbers(values: pa.Array) -> Int64s:
    if values.null_count:
        raise EncodeError("a row without the number of times that it occurs")
    numbers: Int64s = values.cast(pa.int64()).to_numpy()
    return numbers


def _with_partners(values: pa.Array, partners: Int64s | None, layout: StateLayout) -> pa.Array:
    kind = arrow_type(value_serializer(layout).logical, EXACT_ROWS)
    if partners is None:
        return values.cast(kind)
    arrays = [values.cast(kind.field(0).type), as_arrow(partners).cast(kind.field(1).type)]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _sums(counts: Int64s, ids: Int64s, n: int) -> Int64s:
    totals = np.zeros(n, dtype=np.int64)
    np.add.at(totals, ids, counts)
    return totals


def _latest(rows: _Rows, ids: Int64s, first: Int64s) -> Int64s | None:
    if rows.stamps is None:
        return None
    latest = rows.stamps[first].copy()
    np.maximum.at(latest, ids, rows.stamps)
    return latest


def _only(partners: Int64s | None, ids: Int64s, first: Int64s) -> Int64s | None:
    """Return the number of partners of each row that several rows became."""
    if partners is None:
        return None
    chosen = partners[first]
    if (chosen[ids] != partners).any():
        raise EncodeError("rows with other numbers of partners become equal", hint="keep their columns in the query")
    return chosen


def _check_counts(counts: Int64s) -> None:
    if len(counts) and (counts.max() > _MOST or counts.min() < -_MOST):
        raise EncodeError("a row occurs more often than its count holds")


def _check_unique(side: JoinSide, keys: pa.Array, rows: _Rows, header: KeyedHeader, layout: StateLayout) -> None:
    """Refuse rows that share their unique key."""
    ids, first = number_rows(header.key, keys)
    if side.layout == "unique":
        assert layout.user_key is not None
        ids, first = number_rows(layout.user_key, select_columns(rows.records, side.unique, layout.user_key), ids)
    if len(first) < len(ids) or (len(rows.counts) and rows.counts.max() > 1):
        raise EncodeError(
            "two rows have the same unique key", hint="the plans do not fit the state, or its keys are not unique"
        )
