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
from statetool.sql_plans.ranks import COUNTS, STATE_OF, PlanRank, RankChange


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRule:
    """A :class:`~statetool.saving.recomputing.entries.StateRule` for Top-N: the first rows of each key."""

    old: PlanRank
    new: PlanRank
    change: RankChange

    def compute(self, old: Mapping[str, StateRows], header: KeyedHeader) -> Iterator[NewRows]:
        """Yield the state with the rows, and the one that counts them."""
        name = STATE_OF[self.new.strategy]
        layout = StateLayout(next(meta for meta in header.states if meta.name == name))
        stored = old.get(STATE_OF[self.old.strategy])
        if stored is None:
            return
        ids, _ = number_rows(header.key, stored.keys)
        assert stored.user_keys is not None
        if self.change.sorts:
            counts = StateLayout(next(meta for meta in header.states if meta.name == COUNTS))
            yield from self._sorted(stored, ids, layout, counts)
        elif self.old.strategy == "append":
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

    def _sorted(self, stored: StateRows, ids: Int64s, layout: StateLayout, counts: StateLayout) -> Iterator[NewRows]:
        """Yield all rows by their place in the new order, and how many each place has."""
        assert stored.user_keys is not None
        assert layout.user_key is not None
        rows, sizes = stored.values.flatten(), np.diff(stored.values.offsets.to_numpy())
        entry = np.repeat(np.arange(len(stored.keys)), sizes)
        before = [ranks_of(stored.user_keys.field(i), s)[entry] for i, s in enumerate(self.old.order)]
        new = select_columns(rows, self.change.columns, unwrap(value_serializer(layout).children()[0][1]))
        places = select_columns(new, self.new.sort, layout.user_key)
        after = [ranks_of(places.field(i), s) for i, s in enumerate(self.new.order)]
        order = np.lexsort((np.arange(len(entry)), *reversed(before), *reversed(after), ids[entry]))
        entry, at = entry[order], as_arrow(order)
        new, places = new.take(at), places.take(at)
        runs, first = number_rows(layout.user_key, places, ids[entry])
        offsets = np.append(first, len(runs)).astype(np.int32)
        at, keys = as_arrow(first), stored.keys.take(as_arrow(entry[first]))
        lists = pa.ListArray.from_arrays(pa.array(offsets), new)
        stamps = None if stored.stamps is None else np.maximum.reduceat(stored.stamps[entry], first)
        yield NewRows(STATE_OF["retract"], StateRows(keys, places.take(at), lists, stamps))
        of_key = ids[entry[first]]
        starts = np.flatnonzero(np.diff(of_key, prepend=-1))
        kind = arrow_type(value_serializer(counts).logical, EXACT_ROWS)
        fields = kind.value_type if pa.types.is_list(kind) else None
        amounts = pa.array(np.diff(offsets).astype(np.int64))
        ends = pa.array(np.append(starts, len(first)).astype(np.int32))
        if fields is None:
            maps = pa.MapArray.from_arrays(ends, places.take(at), amounts)
        else:
            pairs = pa.StructArray.from_arrays([places.take(at), amounts], fields=list(fields))
            maps = pa.ListArray.from_arrays(ends, pairs)
        latest = None if stamps is None else np.maximum.reduceat(stamps, starts)
        yield NewRows(COUNTS, StateRows(keys.take(as_arrow(starts)), None, maps, latest))

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
