"""Entries of one batch as rows: one row per key (``keyed_state``), or the long form of one state.

Runs in a task. :meth:`KeyedTable.keyed_rows` requires all entries of a key in the same batch. The long form accepts any entries.

With ``on_error="keep_raw"`` a value that cannot be decoded is null, and ``_undecoded`` maps the state's name to its bytes. For a map
value the name is ``name[user key in hex]``, and for a user key in the long form it is ``name.map_key``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_arrow, bitmap, is_valid, offsets_of, spread_values
from statetool.columns.batches import row_runs
from statetool.columns.decode import decode_column
from statetool.columns.types import arrow_type, struct_columns
from statetool.columns.values import (
    StateLayout,
    check_filled,
    decode_framed,
    map_values,
    salvage,
    split_list,
    unexpired_elements,
    unexpired_map_values,
)
from statetool.entries.keys import SplitKeys
from statetool.entries.selection import SplitStates, StateSelection
from statetool.errors import DecodeError, StatetoolError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.naming import named_header
from statetool.formats.state_meta import StateMetaInfo, check_timers
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.layout import TIME_BYTES
from statetool.kernels.entries.rows import count_rows, mark_rows
from statetool.kernels.entries.walk import match_range
from statetool.tables.decoding import decoding
from statetool.tables.kinds.timer_times import TIMER_TIME, times_of
from statetool.types import LogicalType, MapType, PresentType, Scalar, StructType
from statetool.types.options import ReadOptions

Column = tuple[str, LogicalType, pa.Array]
Columns = list[Column]
#: Entries by state name, with the components of their keys.
StateEntries = dict[str, tuple[EntryBatch, SplitKeys]]
Undecoded = dict[int, dict[str, bytes]]
UNDECODED = "_undecoded"
UNDECODED_TYPE = MapType(Scalar("string"), Scalar("binary"))


@dataclass(frozen=True, slots=True)
class _Items:
    """Rows of the long form: the entry and value bounds of each row; for lists, also its index and whether it is one element."""

    source: Int64s
    pos: Int64s
    end: Int64s
    index: Int64s | None
    told_apart: npt.NDArray[np.bool_] | None

    def of(self, run: slice) -> _Items:
        index = None if self.index is None else self.index[run]
        told_apart = None if self.told_apart is None else self.told_apart[run]
        return _Items(self.source[run], self.pos[run], self.end[run], index, told_apart)


@dataclass(frozen=True, slots=True)
class KeyRows:
    """Rows of ``keyed_state``: entries by state, the row of each entry (state by state), and the bounds and key group of each row's key."""

    states: StateEntries
    row: Int64s
    start: Int64s
    end: Int64s
    group: Int64s


class KeyedTable:
    """Rows of the keyed states of one stream.

    Parameters
    ----------
    header
        The stream's header.
    states
        Names of the states to read.
    keys
        Encoded keys to read, ``None`` for all.
    decoded
        States whose values are decoded, ``None`` for all.
    """

    def __init__(
        self,
        header: KeyedHeader,
        states: Sequence[str],
        options: ReadOptions,
        keys: tuple[bytes, ...] | None,
        decoded: Collection[str] | None = None,
    ) -> None:
        header = named_header(header, options.columns)
        self.header = header
        self.options = options
        self.keys = keys
        self.decoded = decoded
        self.selection = StateSelection(header, states)
        self.ids = {m.name: i for i, m in self.selection.metas.items()}
        self.metas = {m.name: m for m in self.selection.metas.values()}
        self.shapes = {name: StateLayout(meta) for name, meta in self.metas.items() if meta.kind != "timers"}

    def split(self, batch: EntryBatch, meta: StateMetaInfo) -> tuple[EntryBatch, SplitKeys]:
        """Return a state's entries that pass the key filter, with the components of their keys."""
        entries, keys = self.selection.split(batch, self.ids[meta.name])
        if self.keys is None:
            return entries, keys
        matches = np.zeros(len(entries), dtype=np.uint8)
        for wanted in self.keys:
            match_range(entries.data, keys.key, keys.key_end, np.frombuffer(wanted, dtype=np.uint8), matches)
        matching = np.flatnonzero(matches)
        return entries.take(matching), keys.of(matching)

    # ---- one row per key ----------------------------------------------------------------------

    def keyed_rows(self, batch: EntryBatch, names: Sequence[str]) -> tuple[int, npt.NDArray[np.int64], Columns]:
        """Return the number of rows, their key groups, and the columns ``key`` and one for each state of ``names``."""
        keys = self.keys_of(batch, names)
        return len(keys.start), keys.group, self.keyed_columns(batch, keys)

    def keys_of(self, batch: EntryBatch, names: Sequence[str]) -> KeyRows:
        """Return the distinct keys of the entries of all states of ``names`` combined."""
        states, parts = self._split_together(batch, names)
        if len(parts) == 1:
            starts, ends, groups = parts[0].keys.key, parts[0].keys.key_end, parts[0].entries.group
        else:
            starts, ends, groups = key_ranges(states)
        ids, first = distinct(batch.data, starts, ends, groups)
        return KeyRows(states, ids, starts[first], ends[first], groups[first])

    def keyed_columns(self, batch: EntryBatch, keys: KeyRows) -> Columns:
        """Return the columns ``key`` and one for each state."""
        key = self.key_column(batch, keys.start, keys.end)
        return [key, *self.state_columns(batch, keys.states, keys.row, len(keys.start))]

    def entries_of(self, batch: EntryBatch, names: Sequence[str]) -> StateEntries:
        """Return the entries of the named states that exist in this stream, with the components of their keys."""
        return self._split_together(batch, names)[0]

    def _split_together(self, batch: EntryBatch, names: Sequence[str]) -> tuple[StateEntries, list[SplitStates]]:
        """Return what :meth:`entries_of` returns, and the states whose keys were split together: those of one layout, in the order of names."""
        known = [name for name in names if name in self.metas]
        if self.keys is None:
            with suppress(StatetoolError):  # the loop below raises the error of the first damaged state
                parts = list(self.selection.split_layouts(batch, [self.ids[name] for name in known]))
                found = {state: (entries, keys) for part in parts for state, entries, keys in part.each()}
                return {name: found[self.ids[name]] for name in known}, parts
        states: StateEntries = {}
        for name in known:
            with decoding(name, batch, self.header.key):
                states[name] = self.split(batch, self.metas[name])
        return states, []

    def key_column(self, batch: EntryBatch, pos: Int64s, end: Int64s) -> Column:
        """Return the column of the keys at these positions."""
        with decoding("key", batch, self.header.key):
            return "key", self.header.key.logical, decode_framed(self.header.key, batch.data, pos, end, self.options)

    def state_columns(self, batch: EntryBatch, states: StateEntries, ids: Int64s, n: int) -> Columns:
        """Return a column for each decoded state over ``n`` rows, and the undecoded values. ``ids`` is the row of each entry, state by state."""
        columns: Columns = []
        undecoded: Undecoded = {}
        start = 0
        for name, (entries, keys) in states.items():
            shape = self.shapes[name]
            rows = ids[start : start + len(entries)]
            start += len(entries)
            if self.decoded is not None and name not in self.decoded:
                continue
            with decoding(name, batch, self.header.key, shape):
                column = self.column(shape, entries, keys, rows, n, undecoded)
            columns.append((name, shape.column_type(self.options), column))
        if self.options.on_error == "keep_raw":
            columns.append((UNDECODED, UNDECODED_TYPE, raw_column(undecoded, n)))
        return columns

    def column(
        self, shape: StateLayout, entries: EntryBatch, keys: SplitKeys, rows: Int64s, n: int, undecoded: Undecoded
    ) -> pa.Array:
        """Return a state's column over ``n`` rows. ``rows`` is the row of each entry."""
        if shape.kind == "map" and shape.user_key is not None:
            return self.map_column(shape, entries, keys, rows, n, undecoded)
        order, valid = _order_of(rows, n, entries)
        pos, end = entries.value[order], entries.value_end[order]
        values, bad = self.guarded(lambda run: self.values(shape, entries, pos[run], end[run]), len(pos), shape.logical)
        if bad:
            row_of = np.flatnonzero(valid)
            for i in bad:
                undecoded.setdefault(int(row_of[i]), {})[shape.name] = bytes(entries.data[pos[i] : end[i]])
        kind = shape.column_type(self.options)
        if isinstance(kind, PresentType):
            values = pa.StructArray.from_arrays([values], fields=list(arrow_type(kind, self.options)))
        return spread_values(values, valid)

    def guarded(self, decode: Callable[[slice], pa.Array], n: int, logical: LogicalType) -> tuple[pa.Array, list[int]]:
        """Decode ``n`` values. With ``keep_raw``, also return the indexes of values that cannot be decoded."""
        if self.options.on_error != "keep_raw":
            return decode(slice(0, n)), []
        return salvage(decode, n, arrow_type(logical, self.options))

    def values(self, shape: StateLayout, entries: EntryBatch, pos: Int64s, end: Int64s) -> pa.Array:
        """Decode complete values, including comma-separated lists."""
        if shape.kind != "list" or shape.framed_bytes:
            return decode_framed(shape.element, entries.data, pos, end, self.options)
        counts, starts, ends = split_list(shape, entries.data, pos, end)
        elements = decode_framed(shape.item, entries.data, starts, ends, self.options)
        kept = unexpired_elements(shape.item, entries.data, starts, ends, self.options)
        if kept is not None:
            owner = np.repeat(np.arange(len(counts)), counts)
            elements, counts = elements.filter(as_arrow(kept)), np.bincount(owner[kept], minlength=len(counts))
        offsets = offsets_of(counts, pos)
        kind = arrow_type(shape.logical, self.options)
        return pa.ListArray.from_arrays(as_arrow(offsets), elements, type=kind)

    def map_column(
        self, shape: StateLayout, entries: EntryBatch, keys: SplitKeys, rows: Int64s, n: int, undecoded: Undecoded
    ) -> pa.Array:
        """Assemble the map of each key from its entries."""
        assert shape.user_key is not None
        counts = np.zeros(n, dtype=np.int64)
        # Entries of sorted states are already in row order.
        order = slice(None) if count_rows(rows, counts) else np.argsort(rows, kind="stable")
        rows = rows[order]
        start, stop = keys.user_key[order], entries.key_end[order]
        pos, end = entries.value[order], entries.value_end[order]
        user_keys, bad_keys = self.user_keys(shape, entries, start, stop)
        values, bad = self.map_values(shape, entries, pos, end)
        null_keys = np.flatnonzero(~is_valid(user_keys)).tolist() if user_keys.null_count else []
        if null_keys and self.options.on_error != "keep_raw":
            raise DecodeError(
                "a map with a null key, which Spark maps cannot hold",
                hint=f"read the state in its long form with op.state({shape.name!r})",
            ).at(offset=int(start[null_keys[0]]))
        for i in {*bad, *bad_keys, *null_keys}:
            name = f"{shape.name}[{bytes(entries.data[start[i] : stop[i]]).hex()}]"
            undecoded.setdefault(int(rows[i]), {})[name] = bytes(entries.data[pos[i] : end[i]])
        valid = counts > 0
        kept = unexpired_map_values(shape.element, entries.data, pos, end, self.options)
        if null_keys:
            kept = np.ones(len(rows), dtype=np.bool_) if kept is None else kept
            kept[null_keys] = False
        if kept is not None:
            counts = np.bincount(rows[kept], minlength=n)
            user_keys, values = user_keys.filter(as_arrow(kept)), values.filter(as_arrow(kept))
        kind = arrow_type(MapType(shape.user_key.logical, shape.element.logical), self.options)
        pairs = pa.StructArray.from_arrays([user_keys, values], fields=[kind.key_field, kind.item_field])
        offsets = offsets_of(counts, pos)
        return pa.Array.from_buffers(kind, n, [bitmap(valid), pa.py_buffer(offsets)], children=[pairs])

    def user_keys(
        self, shape: StateLayout, entries: EntryBatch, start: Int64s, stop: Int64s
    ) -> tuple[pa.Array, list[int]]:
        """Decode user keys of map entries, and return them with the indexes of those that cannot be decoded."""
        serializer = shape.user_key
        assert serializer is not None
        return self.guarded(
            lambda run: decode_framed(serializer, entries.data, start[run], stop[run], self.options),
            len(start),
            serializer.logical,
        )

    def map_values(
        self, shape: StateLayout, entries: EntryBatch, pos: Int64s, end: Int64s
    ) -> tuple[pa.Array, list[int]]:
        """Decode values of map entries, and return them with the indexes of those that cannot be decoded."""
        return self.guarded(
            lambda run: map_values(shape.element, entries.data, pos[run], end[run], self.options),
            len(pos),
            shape.element.logical,
        )

    def item_values(
        self, shape: StateLayout, data: npt.NDArray[np.uint8], pos: Int64s, end: Int64s
    ) -> tuple[pa.Array, list[int]]:
        """Decode elements of lists or complete values, and return them with the indexes of those that cannot be decoded."""
        return self.guarded(
            lambda run: decode_framed(shape.item, data, pos[run], end[run], self.options),
            len(pos),
            shape.item.logical,
        )

    # ---- long form ----------------------------------------------------------------------------

    def long_rows(self, batch: EntryBatch, name: str) -> Iterator[tuple[int, npt.NDArray[np.int64], Columns]]:
        """Yield rows of one state: key, namespace, then ``value``, ``list_index`` or ``map_key`` and ``value``.

        Keys are repeated for each list element, so the number of rows decoded at a time is limited.
        """
        meta, shape = self.metas[name], self.shapes[name]
        with decoding(name, batch, self.header.key, shape):
            yield from self.long_rows_of(*self.split(batch, meta), name)

    def long_rows_of(
        self, entries: EntryBatch, keys: SplitKeys, name: str
    ) -> Iterator[tuple[int, npt.NDArray[np.int64], Columns]]:
        """Yield what :meth:`long_rows` yields, for entries of a state whose keys are split."""
        meta, shape = self.metas[name], self.shapes[name]
        items = self.items(shape, entries)
        sizes = items.end - items.pos + (entries.key_end - entries.key)[items.source]
        for run in row_runs(sizes):
            yield self.long_run(shape, meta, entries, keys, items.of(run))

    def items(self, shape: StateLayout, entries: EntryBatch) -> _Items:
        """Return the rows of the long form: elements of lists, entries of maps, or complete values."""
        pos, end = entries.value, entries.value_end
        entry_of = np.arange(len(entries), dtype=np.int64)
        if shape.kind != "list" or shape.framed_bytes:
            return _Items(entry_of, pos, end, None, None)
        bad: list[int] = []
        if self.options.on_error == "keep_raw":
            _, bad = salvage(
                lambda run: pa.nulls(len(split_list(shape, entries.data, pos[run], end[run])[0])), len(pos), pa.null()
            )
        # A list whose elements cannot be separated becomes one row with its bytes.
        good = np.ones(len(pos), dtype=np.bool_)
        good[bad] = False
        counts = np.ones(len(pos), dtype=np.int64)
        counts[good], starts, ends = split_list(shape, entries.data, pos[good], end[good])
        source = np.repeat(entry_of, counts)
        index = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, last = pos[source], end[source]
        first[good[source]], last[good[source]] = starts, ends
        return _Items(source, first, last, index, good[source])

    def long_run(
        self, shape: StateLayout, meta: StateMetaInfo, entries: EntryBatch, keys: SplitKeys, items: _Items
    ) -> tuple[int, npt.NDArray[np.int64], Columns]:
        """Decode a run of rows of the long form."""
        data, name, pos, end = entries.data, shape.name, items.pos, items.end
        undecoded: Undecoded = {}
        decoded = self.decoded is None or name in self.decoded
        columns = self.key_columns(entries, keys, meta, items.source)
        if shape.kind == "map" and shape.user_key is not None:
            start, stop = keys.user_key[items.source], entries.key_end[items.source]
            user_keys, bad = self.user_keys(shape, entries, start, stop)
            columns.append(("map_key", shape.user_key.logical, user_keys))
            for i in bad:
                undecoded.setdefault(i, {})[f"{name}.map_key"] = bytes(data[start[i] : stop[i]])
            values, bad = self.map_values(shape, entries, pos, end) if decoded else (None, [])
            kept = unexpired_map_values(shape.element, data, pos, end, self.options)
        else:
            if items.index is not None and items.told_apart is not None:
                columns.append(("list_index", Scalar("int64"), as_arrow(items.index, mask=~items.told_apart)))
            values, bad = self.item_values(shape, data, pos, end) if decoded else (None, [])
            kept = unexpired_elements(shape.item, data, pos, end, self.options)
        if values is not None:
            columns.append(("value", shape.item.logical, values))
        if self.options.on_error == "keep_raw":
            for i in bad:
                undecoded.setdefault(i, {})[name] = bytes(data[pos[i] : end[i]])
            columns.append((UNDECODED, UNDECODED_TYPE, raw_column(undecoded, len(pos))))
        return _filter(len(pos), entries.group[items.source], columns, kept)

    def key_columns(self, entries: EntryBatch, keys: SplitKeys, meta: StateMetaInfo, source: Int64s) -> Columns:
        """Return ``key`` and, unless it is void, ``namespace`` for the entries ``source`` (in ascending order)."""
        span = slice(int(source[0]), int(source[-1]) + 1)
        place = as_arrow(source - source[0])
        key = decode_framed(self.header.key, entries.data, keys.key[span], keys.key_end[span], self.options)
        columns: Columns = [("key", self.header.key.logical, key.take(place))]
        namespace = meta.namespace
        assert namespace is not None
        if namespace.logical != Scalar("null"):
            column = decode_framed(
                namespace, entries.data, keys.namespace[span], keys.namespace_end[span], self.options
            )
            columns.append(("namespace", namespace.logical, column.take(place)))
        return columns

    def timer_rows(self, batch: EntryBatch, name: str) -> tuple[int, npt.NDArray[np.int64], Columns]:
        """Return the timers of one timer state: key, namespace, timestamp, and ``time``, the same value as a SQL timestamp."""
        meta = self.metas[name]
        timer = meta.value
        with decoding(name, batch, self.header.key):
            check_timers(meta)
            entries = batch.of_state(self.ids[name])
            if (entries.value != entries.value_end).any():
                raise DecodeError("a timer with a value").at(offset=int(entries.value[0]))
            column, after = decode_column(
                timer.program(), timer.logical, entries.data, entries.key, entries.key_end, self.options
            )
            check_filled(after, entries.key_end)
        assert isinstance(timer.logical, StructType)
        keep = np.ones(len(entries), dtype=np.bool_)
        if self.keys is not None:
            keep = self.timers_of_keys(entries)
        by_name = {name: (name, kind, a) for name, kind, a in struct_columns(column, timer.logical, self.options)}
        columns = [by_name[field] for field in ("key", "namespace", "timestamp")]
        columns = [field for field in columns if field[0] != "namespace" or field[1] != Scalar("null")]
        columns.append(("time", TIMER_TIME, times_of(columns[-1][2])))
        return _filter(len(entries), entries.group, columns, keep if self.keys is not None else None)

    def timers_of_keys(self, entries: EntryBatch) -> npt.NDArray[np.bool_]:
        """Return a mask of the timers whose keys pass the key filter."""
        assert self.keys is not None
        matches = np.zeros(len(entries), dtype=np.uint8)
        for wanted in self.keys:
            start = entries.key + TIME_BYTES
            raw = np.frombuffer(wanted, dtype=np.uint8)
            match_range(entries.data, start, np.minimum(start + len(raw), entries.key_end), raw, matches)
        wanted_timers: npt.NDArray[np.bool_] = matches == 1
        return wanted_timers


def key_ranges(states: StateEntries) -> tuple[Int64s, Int64s, Int64s]:
    """Return the start and end of each entry's key, and its key group, state by state."""
    nothing = [np.empty(0, dtype=np.int64)]
    starts = np.concatenate([k.key for _, k in states.values()] or nothing)
    ends = np.concatenate([k.key_end for _, k in states.values()] or nothing)
    return starts, ends, np.concatenate([e.group for e, _ in states.values()] or nothing)


def _order_of(rows: Int64s, n: int, entries: EntryBatch) -> tuple[Int64s | slice, npt.NDArray[np.bool_]]:
    """Return the entries of a state in row order, and a mask of the ``n`` rows that have an entry."""
    valid = np.zeros(n, dtype=np.bool_)
    if mark_rows(rows, valid):
        return slice(None), valid
    entry_of_row = np.full(n, -1, dtype=np.int64)
    entry_of_row[rows] = np.arange(len(rows))
    order = entry_of_row[valid]
    if len(order) < len(rows):
        duplicate = int(np.flatnonzero(entry_of_row[rows] != np.arange(len(rows)))[0])
        raise DecodeError("one key has two entries of a state that holds one").at(offset=int(entries.key[duplicate]))
    return order, valid


def _filter(
    n: int, groups: npt.NDArray[np.int64], columns: Columns, kept: npt.NDArray[np.bool_] | None
) -> tuple[int, npt.NDArray[np.int64], Columns]:
    if kept is None or kept.all():
        return n, groups, columns
    mask = as_arrow(kept)
    return int(kept.sum()), groups[kept], [(name, t, a.filter(mask)) for name, t, a in columns]


def raw_column(undecoded: Undecoded, n: int) -> pa.Array:
    """Return the column ``_undecoded``: the bytes of undecoded values by row."""
    rows = [list(undecoded[i].items()) if i in undecoded else None for i in range(n)]
    return pa.array(rows, type=pa.map_(pa.string(), pa.binary()))
