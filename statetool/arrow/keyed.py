"""Entries of one batch as rows: one row a key (``keyed_state``), or the long form of one state.

Runs in a task. All entries of a key must be in the batch for :func:`keyed_rows`; the long form takes any entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.arrow.decode import Positions, decode_column, spread
from statetool.arrow.keys import SplitKeys, split_keys
from statetool.arrow.types import arrow_type, column_arrays, column_fields
from statetool.arrow.values import (
    StateShape,
    check_filled,
    decode_framed,
    kept_elements,
    map_values,
    split_joined,
)
from statetool.errors import DecodeError, StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMeta
from statetool.kernels.walk import group_ranges, hash_ranges, match_range
from statetool.types import ListType, LogicalType, MapType, Scalar, StructType
from statetool.types.options import ReadOptions

Columns = list[tuple[str, LogicalType, pa.Array]]
UNDECODED = "_undecoded"


class KeyedTable:
    """Rows of the keyed states of one stream.

    Parameters
    ----------
    header
        The stream's header.
    states
        Names of the states wanted.
    keys
        Encoded keys to keep, ``None`` for all.
    """

    def __init__(
        self, header: KeyedHeader, states: Sequence[str], options: ReadOptions, keys: tuple[bytes, ...] | None
    ) -> None:
        self.header = header
        self.options = options
        self.keys = keys
        self.ids = {m.name: i for i, m in enumerate(header.states) if m.name in states}
        self.metas = {m.name: m for m in header.states if m.name in states}
        self.shapes = {name: StateShape(meta) for name, meta in self.metas.items() if meta.kind != "timers"}

    def split(self, batch: EntryBatch, meta: StateMeta) -> tuple[EntryBatch, SplitKeys]:
        """Return the entries of a state that the key filter keeps, with the parts of their keys."""
        entries, keys = self.split_all(batch, meta)
        if self.keys is None:
            return entries, keys
        matches = np.zeros(len(entries), dtype=np.uint8)
        for wanted in self.keys:
            match_range(entries.data, keys.key, keys.key_end, np.frombuffer(wanted, dtype=np.uint8), matches)
        some = np.flatnonzero(matches)
        parts = {name: getattr(keys, name)[some] for name in SplitKeys.__slots__}
        return entries.take(some), SplitKeys(**parts)

    def split_all(self, batch: EntryBatch, meta: StateMeta) -> tuple[EntryBatch, SplitKeys]:
        """Return all entries of a state with the parts of their keys."""
        entries = batch.of_state(self.ids[meta.name])
        return entries, split_keys(entries, self.header.key, meta)

    # ---- one row a key ------------------------------------------------------------------------

    def keyed_rows(self, batch: EntryBatch, names: Sequence[str]) -> tuple[int, npt.NDArray[np.int64], Columns]:
        """Return the number of rows, their key groups, and columns ``key`` and one a state of ``names``."""
        found = {}
        for name in names:
            if name in self.metas:
                with _state(name, batch):
                    found[name] = self.split(batch, self.metas[name])
        starts = np.concatenate([k.key for _, k in found.values()] or [np.empty(0, dtype=np.int64)])
        ends = np.concatenate([k.key_end for _, k in found.values()] or [np.empty(0, dtype=np.int64)])
        groups = np.concatenate([e.group for e, _ in found.values()] or [np.empty(0, dtype=np.int64)])
        ids, first = group_keys(batch.data, starts, ends, groups)
        with _state("key", batch):
            key = decode_framed(self.header.key, batch.data, starts[first], ends[first], self.options)
        columns: Columns = [("key", self.header.key.logical, key)]
        undecoded: dict[int, dict[str, bytes]] = {}
        at = 0
        for name, (entries, keys) in found.items():
            shape = self.shapes[name]
            rows = ids[at : at + len(entries)]
            at += len(entries)
            with _state(name, batch):
                column = self.column(shape, entries, keys, rows, len(first), undecoded)
            columns.append((name, shape.logical, column))
        if self.options.on_error == "keep_raw":
            columns.append((UNDECODED, MapType(Scalar("string"), Scalar("binary")), _raw_column(undecoded, len(first))))
        return len(first), groups[first], columns

    def column(
        self,
        shape: StateShape,
        entries: EntryBatch,
        keys: SplitKeys,
        rows: Positions,
        n: int,
        undecoded: dict[int, dict[str, bytes]],
    ) -> pa.Array:
        """Return a state's column over ``n`` rows; ``rows`` is the row of each entry."""
        if shape.kind == "map" and shape.user_key is not None:
            return self.map_column(shape, entries, keys, rows, n)
        counts = np.bincount(rows, minlength=n)
        if counts.max(initial=0) > 1:
            again = int(np.flatnonzero(counts[rows] > 1)[0])
            raise DecodeError("one key has two entries of a state that holds one").at(offset=int(entries.key[again]))
        place = np.full(n, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        valid = place >= 0
        order = place[valid]
        pos, end = entries.value[order], entries.value_end[order]
        try:
            values = self.values(shape, entries, pos, end)
        except StatetoolError:
            if self.options.on_error != "keep_raw":
                raise
            values = self.values_one_by_one(shape, entries, pos, end, np.flatnonzero(valid), undecoded)
        return spread(values, valid)

    def values(self, shape: StateShape, entries: EntryBatch, pos: Positions, end: Positions) -> pa.Array:
        """Decode whole values, comma-joined lists included."""
        if shape.kind != "list" or shape.framed_bytes:
            return decode_framed(shape.element, entries.data, pos, end, self.options)
        counts, starts, ends = split_joined(shape.element, entries.data, pos, end)
        elements = decode_framed(shape.element, entries.data, starts, ends, self.options)
        kept = kept_elements(shape.element, entries.data, starts, self.options)
        if kept is not None:
            elements, counts = (
                elements.filter(pa.array(kept)),
                np.add.reduceat(kept.astype(np.int64), np.cumsum(counts) - counts),
            )
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        kind = arrow_type(ListType(shape.element.logical), self.options)
        return pa.ListArray.from_arrays(pa.array(offsets), elements, type=kind)

    def values_one_by_one(
        self,
        shape: StateShape,
        entries: EntryBatch,
        pos: Positions,
        end: Positions,
        rows: Positions,
        undecoded: dict[int, dict[str, bytes]],
    ) -> pa.Array:
        """Decode value by value; those that cannot be decoded become null and their bytes are kept."""
        arrays = []
        kind = arrow_type(shape.logical, self.options)
        for i in range(len(pos)):
            try:
                arrays.append(self.values(shape, entries, pos[i : i + 1], end[i : i + 1]))
            except StatetoolError:
                arrays.append(pa.nulls(1, kind))
                undecoded.setdefault(int(rows[i]), {})[shape.name] = bytes(entries.data[pos[i] : end[i]])
        return pa.concat_arrays(arrays) if arrays else pa.nulls(0, kind)

    def map_column(self, shape: StateShape, entries: EntryBatch, keys: SplitKeys, rows: Positions, n: int) -> pa.Array:
        """Put the entries of each key's map together."""
        assert shape.user_key is not None
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=n)
        user_keys = decode_framed(
            shape.user_key, entries.data, keys.user_key[order], entries.key_end[order], self.options
        )
        values, kept = map_values(
            shape.element, entries.data, entries.value[order], entries.value_end[order], self.options
        )
        if user_keys.null_count:
            raise DecodeError(
                "a map with a null key, which Spark maps cannot hold",
                hint=f"read the state in its long form with op.state({shape.name!r})",
            ).at(offset=int(keys.user_key[0]))
        valid = counts > 0
        if kept is not None:
            counts = np.bincount(rows[order][kept], minlength=n)
            user_keys, values = user_keys.filter(pa.array(kept)), values.filter(pa.array(kept))
        kind = arrow_type(MapType(shape.user_key.logical, shape.element.logical), self.options)
        pairs = pa.StructArray.from_arrays([user_keys, values], fields=[kind.key_field, kind.item_field])
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(kind, n, [bitmap, pa.py_buffer(offsets)], children=[pairs])

    # ---- long form ----------------------------------------------------------------------------

    def long_rows(self, batch: EntryBatch, name: str) -> tuple[int, npt.NDArray[np.int64], Columns]:
        """Return rows of one state: key, namespace, then ``value``, ``list_index`` or ``map_key`` and ``value``."""
        meta, shape = self.metas[name], self.shapes[name]
        with _state(name, batch):
            entries, keys = self.split(batch, meta)
            data = entries.data
            source = np.arange(len(entries), dtype=np.int64)
            extra: Columns = []
            if shape.kind == "list" and not shape.framed_bytes:
                counts, starts, ends = split_joined(shape.element, data, entries.value, entries.value_end)
                values = decode_framed(shape.element, data, starts, ends, self.options)
                source = np.repeat(source, counts)
                index = np.arange(len(starts)) - np.repeat(np.cumsum(counts) - counts, counts)
                extra.append(("list_index", Scalar("int64"), pa.array(index)))
                kept = kept_elements(shape.element, data, starts, self.options)
            elif shape.kind == "map" and shape.user_key is not None:
                user_keys = decode_framed(shape.user_key, data, keys.user_key, entries.key_end, self.options)
                extra.append(("map_key", shape.user_key.logical, user_keys))
                values, kept = map_values(shape.element, data, entries.value, entries.value_end, self.options)
            else:
                values = decode_framed(shape.element, data, entries.value, entries.value_end, self.options)
                kept = kept_elements(shape.element, data, entries.value, self.options)
            columns = [*self.key_columns(entries, keys, meta, source), *extra, ("value", shape.element.logical, values)]
        groups = entries.group[source]
        return _filtered(len(source), groups, columns, kept)

    def key_columns(self, entries: EntryBatch, keys: SplitKeys, meta: StateMeta, source: Positions) -> Columns:
        """Return ``key`` and, where the namespace says something, ``namespace`` for entries ``source``."""
        key = decode_framed(self.header.key, entries.data, keys.key, keys.key_end, self.options)
        columns: Columns = [("key", self.header.key.logical, key.take(pa.array(source)))]
        namespace = meta.namespace
        assert namespace is not None
        if namespace.logical != Scalar("null"):
            column = decode_framed(namespace, entries.data, keys.namespace, keys.namespace_end, self.options)
            columns.append(("namespace", namespace.logical, column.take(pa.array(source))))
        return columns

    def timer_rows(self, batch: EntryBatch, name: str) -> tuple[int, npt.NDArray[np.int64], Columns]:
        """Return the timers of one timer state: key, namespace, timestamp."""
        meta = self.metas[name]
        timer = meta.value
        with _state(name, batch):
            entries = batch.of_state(self.ids[name])
            if (entries.value != entries.value_end).any():
                raise DecodeError("a timer with a value").at(offset=int(entries.value[0]))
            column, after = decode_column(
                timer.program(), timer.logical, entries.data, entries.key, entries.key_end, self.options
            )
            check_filled(after, entries.key_end)
        assert isinstance(timer.logical, StructType)
        by_name: dict[str, Any] = {}
        at = 0
        for field in timer.logical.fields:
            width = len(column_fields(field.name, field.type, self.options))
            by_name[field.name] = (field.type, [column.field(at + i) for i in range(width)])
            at += width
        keep = np.ones(len(entries), dtype=np.bool_)
        if self.keys is not None:
            keep = self._timers_of_keys(entries)
        columns: Columns = []
        for part in ("key", "namespace", "timestamp"):
            kind, arrays = by_name[part]
            if part == "namespace" and kind == Scalar("null"):
                continue
            whole = (
                arrays[0]
                if len(arrays) == 1
                else pa.StructArray.from_arrays(arrays, fields=list(arrow_type(kind, self.options)))
            )
            columns.append((part, kind, whole))
        return _filtered(len(entries), entries.group, columns, keep if self.keys is not None else None)

    def _timers_of_keys(self, entries: EntryBatch) -> npt.NDArray[np.bool_]:
        assert self.keys is not None
        matches = np.zeros(len(entries), dtype=np.uint8)
        for wanted in self.keys:
            start = entries.key + 8
            raw = np.frombuffer(wanted, dtype=np.uint8)
            match_range(entries.data, start, np.minimum(start + len(raw), entries.key_end), raw, matches)
        found: npt.NDArray[np.bool_] = matches == 1
        return found


def group_keys(
    data: npt.NDArray[np.uint8], starts: Positions, ends: Positions, groups: Positions
) -> tuple[Positions, Positions]:
    """Give equal keys one number: the number of each, and the index of the first of each number."""
    n = len(starts)
    hashes, ids, first = (np.empty(n, dtype=np.int64) for _ in range(3))
    hash_ranges(data, starts, ends, groups, hashes)
    table = np.full(1 << max(4, (2 * n).bit_length()), -1, dtype=np.int64)
    count = group_ranges(data, starts, ends, groups, hashes, table, ids, first)
    return ids, first[:count]


def flatten(columns: Columns, options: ReadOptions) -> tuple[list[pa.Array], list[pa.Field]]:
    """Return the arrays and fields of columns, companions beside them."""
    arrays, fields = [], []
    for name, logical, array in columns:
        arrays += column_arrays(array, logical, options)
        fields += column_fields(name, logical, options)
    return arrays, fields


def _filtered(
    n: int, groups: npt.NDArray[np.int64], columns: Columns, kept: npt.NDArray[np.bool_] | None
) -> tuple[int, npt.NDArray[np.int64], Columns]:
    if kept is None or kept.all():
        return n, groups, columns
    mask = pa.array(kept)
    return int(kept.sum()), groups[kept], [(name, t, a.filter(mask)) for name, t, a in columns]


def _raw_column(undecoded: dict[int, dict[str, bytes]], n: int) -> pa.Array:
    rows = [list(undecoded[i].items()) if i in undecoded else None for i in range(n)]
    return pa.array(rows, type=pa.map_(pa.string(), pa.binary()))


class _state:
    """Add state name and place to errors that come from the decoding of a batch."""

    def __init__(self, name: str, batch: EntryBatch) -> None:
        self.name = name
        self.batch = batch

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StatetoolError):
            self.batch.locate(error).at(state=self.name)
