"""Encoding of table rows as entries of state; runs in tasks.

Entries of operator state have their subtask instead of a key group, and a key only in broadcast state.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.arrays import as_arrow, as_numpy, is_valid
from statetool.columns.coerce import coerce, list_parts, map_parts
from statetool.columns.encode import encode_column, first_failing, measure, measure_key
from statetool.columns.pieces import Chain, Constant, Encoded, Flagged, Integers, Joined, Markers, Piece, Ranges, pack
from statetool.columns.take import row_sizes
from statetool.columns.to_plain import arrow_to_plain
from statetool.columns.types import has_scales
from statetool.columns.values import StateLayout
from statetool.errors import EncodeError, StatetoolError, UnsupportedError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.naming import named_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.java.hashing.key_hash import key_groups
from statetool.java.hashing.keys import KeyHasher
from statetool.java.hashing.possible_keys import nulls_among
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.layout import TIME_BYTES, flip_sign
from statetool.saving.bootstrap.input_columns import cell_text, column_of, key_array, row_of, state_mask
from statetool.saving.bootstrap.recipe import ElementEncoder, RowEncoder, StateColumn, TimerColumns
from statetool.saving.streams.keyed import parse_keyed_header
from statetool.saving.streams.measured_entries import MeasuredEntries
from statetool.saving.streams.runs import INDEX_BYTES, PRESENCE
from statetool.serializers.core.base import Serializer
from statetool.tables.kinds.elements import element_serializer
from statetool.types import Scalar
from statetool.types.declared import TypeContext
from statetool.types.display import display_value
from statetool.types.options import Columns

#: Bytes of an entry in addition to its key and value: two lengths, the key group.
_FRAME_BYTES: Final = 10


def table_entries(recipe: RowEncoder | ElementEncoder, rows: pa.RecordBatch) -> Iterator[EntryBatch]:
    """Encode rows of a table.

    Raises
    ------
    EncodeError
        A value does not fit its type; the message names the operator, the state and the key of the row.
    """
    if not rows.num_rows:
        return
    try:
        if isinstance(recipe, RowEncoder):
            yield _Rows(recipe, rows).entries()
        else:
            yield _element_entries(recipe, rows)
    except StatetoolError as error:
        raise error.at(operator=recipe.operator) from error.__cause__


def measure_rows(recipe: RowEncoder, rows: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    """Return the key group of each row of a table, and the approximate bytes of its entries. Each entry repeats the key.

    Raises
    ------
    EncodeError
        As :func:`table_entries`, for the keys.
    """
    try:
        own = _Rows(recipe, rows)
    except StatetoolError as error:
        raise error.at(operator=recipe.operator) from error.__cause__
    return own.groups, row_sizes(rows) + own.counts() * (own.key.sizes + _FRAME_BYTES)


class _Rows:
    """Rows of one batch; their keys are encoded once for all states."""

    def __init__(self, recipe: RowEncoder, batch: pa.RecordBatch) -> None:
        self.recipe, self.batch = recipe, batch
        self.header = recipe.keyed_header
        self.n = batch.num_rows
        key = self.header.key
        self.key_array = key_array(batch, recipe, key.logical)
        self.keys = self._encoded_objects("key", key, row_of(key, self.key_array), np.arange(self.n))
        start, end = self.keys.offsets[:-1], self.keys.offsets[1:]
        self.groups = self._groups(key, start, end)
        self.key = Ranges(self.keys.data, start, end - start)
        self.with_entry: Int64s = np.empty(0, dtype=np.int64)
        self._prefixes: Ranges | None = None

    def _encoded_objects(self, what: str, serializer: Serializer, array: pa.Array, rows: Int64s) -> Encoded:
        """Encode keys or namespaces; refuse nulls (reason: :mod:`statetool.java.hashing.possible_keys`)."""
        nulls = np.flatnonzero(~is_valid(array)) if not serializer.nullable else np.empty(0, dtype=np.int64)
        if not len(nulls):
            encoded = pack(self._measured(serializer, array, what, rows=rows, is_key=True))
            nulls = nulls_among(serializer, encoded.data, encoded.offsets[:-1], encoded.offsets[1:])
        if len(nulls):
            row = int(rows[nulls[0]])
            cells = ", ".join(f"{name} {cell_text(self.batch.column(name), row)}" for name in self.batch.schema.names)
            raise EncodeError(
                f"a row without a {what}: {cells}",
                hint=f"Flink has no null {what}s: filter such rows out, or fill them",
            )
        return encoded

    def _groups(self, key: Serializer, start: Int64s, end: Int64s) -> Int64s:
        """Return the key groups of the keys' hash codes, or the column ``key_group`` if hash codes are defined in user code."""
        in_column = None if self.recipe.key_group is None else self._given_groups(self.recipe.key_group)
        try:
            hashes = KeyHasher(key, self.recipe.formula).hashes(self.keys.data, start, end)
            groups = key_groups(hashes, self.recipe.max_parallelism)
        except UnsupportedError as error:
            if in_column is not None:
                return in_column
            error.hint = (
                "declare it with hashes={class: 'Objects.hash(...)'}, or, for keys that were read with key_group=True, "
                "pass key_group='key_group'"
            )
            raise
        if in_column is not None and len(wrong := np.flatnonzero(in_column != groups)):
            row = int(wrong[0])
            raise EncodeError(
                f"key {self.key_text(row)} is given key group {in_column[row]}, its hash code belongs to {groups[row]}",
                hint=(
                    "check the key column: its values are not those that were read"
                    if has_scales(key.logical)
                    else "omit key_group=: it is computed"
                ),
            )
        return groups

    def _given_groups(self, column: str) -> Int64s:
        groups = _numbers(self.batch.column(column), column)
        if ((groups < 0) | (groups >= self.recipe.max_parallelism)).any():
            raise EncodeError(f"column {column!r} is not a key group below {self.recipe.max_parallelism}")
        return groups

    def entries(self) -> EntryBatch:
        return MeasuredEntries.batch(list(self.parts()))

    def counts(self) -> Int64s:
        """Return the maximum number of entries of each row."""
        counts = np.zeros(self.n, dtype=np.int64)
        if self.recipe.timers is not None or self.recipe.long:
            return counts + 1
        for state in self.recipe.states:
            column = self.batch.column(state.column)
            in_map = self.header.states[state.state_id].kind == "map"
            is_map = in_map and (pa.types.is_map(column.type) or pa.types.is_list(column.type))
            counts += np.diff(as_numpy(column.offsets)) if is_map else 1
        return counts

    def parts(self) -> Iterator[MeasuredEntries]:
        if self.recipe.timers is not None:
            yield from self.timers(self.recipe.timers)
            return
        anchored = self.recipe.long
        for state in self.recipe.states:
            meta = self.header.states[state.state_id]
            try:
                written = self.state(state, meta)
                yield written
                if meta.kind != "map" and not anchored:
                    # Rows without an entry get a presence entry, so that duplicate keys are found.
                    anchored = True
                    bare = np.flatnonzero(np.bincount(self.with_entry, minlength=self.n) == 0)
                    yield self.part(bare, PRESENCE | state.state_id, self.prefixes(meta, bare), _no_bytes(len(bare)))
            except StatetoolError as error:
                raise error.at(state=meta.name) from error.__cause__
        if not anchored:
            first = self.header.states[self.recipe.states[0].state_id]
            rows = np.arange(self.n)
            yield self.part(rows, self.recipe.presence, self.prefixes(first, rows), _no_bytes(self.n))

    def prefixes(self, meta: StateMetaInfo, rows: Int64s) -> Piece:
        """Return the key and namespace of rows, as they precede user keys; all states of a table have the same namespace type."""
        if self._prefixes is None:
            assert meta.namespace is not None
            self._prefixes = as_piece(pack(self._measured_prefixes(meta.namespace)))
        prefixes = self._prefixes
        return Ranges(prefixes.data, prefixes.start[rows], prefixes.sizes[rows])

    def _measured_prefixes(self, namespace: Serializer) -> Piece:
        with_namespace = self.namespace_of(namespace, np.arange(self.n))
        if self.header.key.length >= 0 or namespace.length >= 0:
            return Chain((self.key, with_namespace), self.n)
        return Chain((self.key, Markers(self.key.sizes), with_namespace, Markers(with_namespace.sizes)), self.n)

    def namespace_of(self, namespace: Serializer, rows: Int64s) -> Ranges:
        """Encode the namespaces of rows."""
        name = self.recipe.namespace
        array = pa.nulls(self.n) if name is None else column_of(self.batch, name, namespace.logical, exact=True)
        array = array.take(as_arrow(rows))
        return as_piece(self._encoded_objects("namespace", namespace, array, rows))

    def state(self, state: StateColumn, meta: StateMetaInfo) -> MeasuredEntries:
        shape = _shape(self.recipe.header, self.recipe.types, self.recipe.field_names, state.state_id)
        if self.recipe.long:
            return self.long_form(state, shape, meta)
        column = column_of(self.batch, state.column, shape.logical, self.recipe)
        has_state = state_mask(self.batch, self.recipe, state, shape, column, self.key_text)
        rows = np.flatnonzero(has_state)
        present = column if len(rows) == len(column) else column.filter(as_arrow(has_state))
        if shape.kind == "map":
            counts, keys, values = map_parts(present)
            return self.map_entries(state, shape, meta, np.repeat(rows, counts), keys, values)
        if shape.kind == "list" and not shape.framed_bytes:
            counts, elements = list_parts(present)
            values = self._measured(
                shape.element, elements, state.column, access=state.last_access_ms, rows=np.repeat(rows, counts)
            )
            filled = np.flatnonzero(counts)
            return self.of_rows(meta, state, rows[filled], Joined(pack(values), counts[filled]))
        values = self._measured(shape.element, present, state.column, access=state.last_access_ms, rows=rows)
        return self.of_rows(meta, state, rows, values)

    def long_form(self, state: StateColumn, shape: StateLayout, meta: StateMetaInfo) -> MeasuredEntries:
        """Encode rows with one entry each, in the form that ``op.state(name)`` returns."""
        rows = np.arange(self.n)
        values = column_of(self.batch, state.column, shape.element.logical)
        if shape.kind == "map":
            assert shape.user_key is not None
            keys = column_of(self.batch, "map_key", shape.user_key.logical, exact=True)
            return self.map_entries(state, shape, meta, rows, keys, values)
        measured = self._measured(shape.element, values, state.column, access=state.last_access_ms)
        if shape.kind == "list" and not shape.framed_bytes:
            # The index follows the key until the elements of a list are joined.
            index = Integers(_numbers(self.batch.column("list_index"), "list_index"), INDEX_BYTES)
            keys = Chain((self.prefixes(meta, rows), index), self.n)
            return self.part(rows, state.state_id, keys, measured)
        return self.of_rows(meta, state, rows, measured)

    def map_entries(
        self,
        state: StateColumn,
        shape: StateLayout,
        meta: StateMetaInfo,
        rows: Int64s,
        keys: pa.Array,
        values: pa.Array,
    ) -> MeasuredEntries:
        assert shape.user_key is not None
        user_keys = self._measured(shape.user_key, keys, f"{state.column}.key", rows=rows, is_key=True)
        # If None is an object, no value is Java's null.
        valid = np.ones(len(values), dtype=np.bool_) if shape.element.none_is_value else is_valid(values)
        items = values if valid.all() else values.filter(as_arrow(valid))
        measured = self._measured(
            shape.element, items, f"{state.column}.value", access=state.last_access_ms, rows=rows[np.flatnonzero(valid)]
        )
        composite = Chain((self.prefixes(meta, rows), user_keys), len(rows))
        return self.part(rows, state.state_id, composite, Flagged(valid, measured, (0, 1), 0))

    def of_rows(self, meta: StateMetaInfo, state: StateColumn, rows: Int64s, values: Piece) -> MeasuredEntries:
        """Return one entry per row, and remember these rows."""
        self.with_entry = rows
        return self.part(rows, state.state_id, self.prefixes(meta, rows), values)

    def timers(self, columns: TimerColumns) -> Iterator[MeasuredEntries]:
        stamps = _millis(self.batch.column(columns.timestamp))
        for domain, service, state_id in columns.states:
            matching = np.ones(self.n, dtype=np.bool_)
            for name, wanted in ((columns.domain, domain), (columns.service, service)):
                if wanted is not None:
                    same = pc.equal(coerce(self.batch.column(name), Scalar("string")), wanted)
                    matching &= as_numpy(same, null=False)
            rows = np.flatnonzero(matching)
            meta = self.header.states[state_id]
            (_, _), (_, namespace) = meta.value.children()
            try:
                parts = (
                    Integers(flip_sign(stamps[rows]), TIME_BYTES),
                    Ranges(self.keys.data, self.key.start[rows], self.key.sizes[rows]),
                    self.namespace_of(namespace, rows),
                )
            except StatetoolError as error:
                raise error.at(state=meta.name).inside("namespace") from error.__cause__
            yield self.part(rows, state_id, Chain(parts, len(rows)), _no_bytes(len(rows)))

    def _measured(
        self,
        serializer: Serializer,
        array: pa.Array,
        column: str,
        *,
        access: int | None = None,
        rows: Any = None,
        is_key: bool = False,
    ) -> Piece:
        encode = partial(measure_key, serializer) if is_key else partial(measure, serializer, last_access_ms=access)
        try:
            return encode(array)
        except StatetoolError as error:
            at = first_failing(encode, array)
            row = at if rows is None else int(rows[at])
            error.message = f"{error.message}, in column {column!r} of the row with key {self.key_text(row)}"
            raise

    def key_text(self, row: int) -> str:
        """Return the key of a row as text for messages."""
        array = self.key_array.slice(row, 1)
        logical = self.header.key.logical
        try:
            return display_value(arrow_to_plain(row_of(self.header.key, array), logical)[0], logical)
        except StatetoolError:
            return cell_text(array, 0)  # not a key of this type

    def part(self, rows: Int64s, state_id: int, keys: Piece, values: Piece) -> MeasuredEntries:
        return MeasuredEntries(state_id, self.groups[rows], keys, values)


@lru_cache(maxsize=256)
def _shape(header: bytes, types: TypeContext, field_names: Columns, state_id: int) -> StateLayout:
    return StateLayout(named_header(parse_keyed_header(header, types), field_names).states[state_id])


def _no_bytes(n: int) -> Piece:
    return Constant(n, 0, 0)


def _millis(array: pa.Array) -> Int64s:
    if not pa.types.is_integer(array.type):
        raise EncodeError(
            f"timestamps of timers are epoch milliseconds, found {array.type}", hint="cast them to BIGINT"
        )
    return _numbers(array, "timestamp")


def _numbers(array: pa.Array, column: str) -> Int64s:
    if array.null_count:
        raise EncodeError(f"a null in column {column!r}")
    try:
        return as_numpy(coerce(array, Scalar("int64")))
    except EncodeError as error:
        error.message = f"{error.message}, in column {column!r}"
        raise


def _element_entries(recipe: ElementEncoder, rows: pa.RecordBatch) -> EntryBatch:
    """Encode rows of an operator state. A hash of an element's bytes chooses its subtask, so that retries choose the same one."""
    meta = recipe.operator_header.states[recipe.state_id]
    try:
        values = _encode_elements(element_serializer(meta), rows, recipe.value)
        if meta.kind != "broadcast":
            subtasks = _subtasks(recipe, rows, values)
            return MeasuredEntries.batch(
                [MeasuredEntries(recipe.state_id, subtasks, _no_bytes(len(values)), as_piece(values))]
            )
        keys = as_piece(_broadcast_keys(meta.serializers["KEY_SERIALIZER"], rows, recipe.key))
        everywhere = [np.full(len(values), subtask, dtype=np.int64) for subtask in range(recipe.parallelism)]
        return MeasuredEntries.batch(
            [MeasuredEntries(recipe.state_id, subtask, keys, as_piece(values)) for subtask in everywhere]
        )
    except StatetoolError as error:
        raise error.at(state=meta.name) from error.__cause__


def as_piece(encoded: Encoded) -> Ranges:
    """Return encoded values as ranges to copy."""
    return Ranges(encoded.data, encoded.offsets[:-1], np.diff(encoded.offsets))


def _encode_elements(serializer: Serializer, batch: pa.RecordBatch, column: str) -> Encoded:
    array = column_of(batch, column, serializer.logical)
    encode = partial(encode_column, serializer)
    try:
        return encode(array)
    except StatetoolError as error:
        error.message = f"{error.message}, in column {column!r}: {cell_text(array, first_failing(encode, array))}"
        raise


def _broadcast_keys(serializer: Serializer, batch: pa.RecordBatch, column: str) -> Encoded:
    keys = _encode_elements(serializer, batch, column)
    nulls = nulls_among(serializer, keys.data, keys.offsets[:-1], keys.offsets[1:])
    if len(nulls):
        raise EncodeError(
            f"a null key in column {column!r}, row {nulls[0]} of its batch",
            hint="filter such rows out, or fill them",
        )
    return keys


def _subtasks(recipe: ElementEncoder, batch: pa.RecordBatch, values: Encoded) -> Int64s:
    if recipe.subtask is None:
        crcs = (zlib.crc32(values.value(i)) for i in range(len(values)))
        return np.fromiter(crcs, dtype=np.int64, count=len(values)) % recipe.parallelism
    subtasks = _numbers(batch.column(recipe.subtask), recipe.subtask)
    if ((subtasks < 0) | (subtasks >= recipe.parallelism)).any():
        raise EncodeError(f"column {recipe.subtask!r} is not a subtask below the parallelism {recipe.parallelism}")
    return subtasks
