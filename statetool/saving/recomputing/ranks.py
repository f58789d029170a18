"""State of a Top-N or a deduplication computed from that of another one: fewer rows per key, and only whether a key has a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.types import arrow_type
from statetool.columns.values import StateLayout
from statetool.formats.keyed.header import KeyedHeader
from statetool.kernels.core.arrays import Int64s
from statetool.saving.recomputing.entries import NewRows, StateRows, number_rows
from statetool.saving.recomputing.joins import value_serializer
from statetool.saving.recomputing.rows import ranks_of, select_columns
from statetool.saving.rekeying.rows import EXACT_ROWS
from statetool.serializers.runtime import unwrap
from statetool.sql_plans.ranks import STATE_OF, PlanRank, RankChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRule:
    """A :class:`~statetool.saving.recomputing.entries.StateRule` for Top-N: the first rows of each key."""

    old: PlanRank
    new: PlanRank
    change: RankChange

    def compute(self, old: Mapping[str, StateRows], header: KeyedHeader) -> Iterator[NewRows]:
        """Yield the state with the rows."""
        name = STATE_OF[self.new.strategy]
        layout = StateLayout(next(meta for meta in header.states if meta.name == name))
        stored = old.get(STATE_OF[self.old.strategy])
        if stored is None:
            return
        ids, _ = number_rows(header.key, stored.keys)
        assert stored.user_keys is not None
        if self.old.strategy == "append":
            yield NewRows(name, self._appended(stored, ids, layout))
        else:
            yield NewRows(name, self._updated(stored, ids, layout))

    def _appended(self, stored: StateRows, ids: Int64s, layout: StateLayout) -> StateRows:
        """Return the first rows of lists by their order."""
        assert stored.user_keys is not None
        lists, rows = stored.values, stored.values.flatten()
        sizes = np.diff(lists.offsets.to_numpy())
        entry = np.repeat(np.arange(len(lists)), sizes)
        place = np.arange(len(entry)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        ranks = [ranks_of(stored.user_keys.field(i), s)[entry] for i, s in enumerate(self.old.order)]
        kept = np.sort(_first(ids[entry], [*ranks, place], self.new.last))
        if self.new.strategy == "top1":
            at = entry[kept]
            values = select_columns(rows.take(as_arrow(kept)), self.change.columns, value_serializer(layout))
            return StateRows(stored.keys.take(as_arrow(at)), None, values, _at(stored.stamps, at))
        counts = np.bincount(entry[kept], minlength=len(lists))
        at = np.flatnonzero(counts)
        row = unwrap(value_serializer(layout).children()[0][1])
        chosen = select_columns(rows.take(as_arrow(kept)), self.change.columns, row)
        offsets = np.concatenate([[0], np.cumsum(counts[at])]).astype(np.int32)
        values = pa.ListArray.from_arrays(pa.array(offsets), chosen)
        index = as_arrow(at)
        return StateRows(stored.keys.take(index), stored.user_keys.take(index), values, _at(stored.stamps, at))

    def _updated(self, stored: StateRows, ids: Int64s, layout: StateLayout) -> StateRows:
        """Return the first rows of a map of rows, each with its rank among those with the same order."""
        assert stored.user_keys is not None
        rows, inner = stored.values.field(0), stored.values.field(1)
        ranks = [ranks_of(rows.field(i), s) for i, s in zip(self.old.sort, self.old.order, strict=True)]
        kept = np.sort(_first(ids, [*ranks, inner.cast(pa.int64()).to_numpy()], self.new.last))
        index, element = as_arrow(kept), value_serializer(layout)
        keys, stamps = stored.keys.take(index), _at(stored.stamps, kept)
        if self.new.strategy == "top1":
            values = select_columns(rows.take(index), self.change.columns, element)
            return StateRows(keys, None, values, stamps)
        row = unwrap(element.children()[0][1])
        fields = list(arrow_type(element.logical, EXACT_ROWS))
        parts = [select_columns(rows.take(index), self.change.columns, row), inner.take(index).cast(fields[1].type)]
        values = pa.StructArray.from_arrays(parts, fields=fields)
        return StateRows(keys, stored.user_keys.take(index), values, stamps)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRule:
    """A :class:`~statetool.saving.recomputing.entries.StateRule` for a deduplication that only needs to know which keys had a row."""

    state: str

    def compute(self, old: Mapping[str, StateRows], header: KeyedHeader) -> Iterator[NewRows]:
        """Yield true for each key with a row."""
        stored = old.get(self.state)
        if stored is not None:
            seen = pa.array(np.ones(len(stored.keys), dtype=np.bool_))
            yield NewRows(self.state, StateRows(stored.keys, None, seen, stored.stamps))


def _first(ids: Int64s, order: list[Int64s], last: int) -> Int64s:
    """Return the places of the first rows of each key, by an order whose first part counts most."""
    by_order = np.lexsort((*reversed(order), ids))
    own = ids[by_order]
    rank = np.arange(len(own)) - np.searchsorted(own, own)
    first: Int64s = by_order[rank < last]
    return first


def _at(stamps: Int64s | None, places: Int64s) -> Int64s | None:
    return None if stamps is None else stamps[places]
