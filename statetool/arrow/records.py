"""Rows of input tables as binary records of state; runs in tasks.

A record is: subtask, key group, state id, composite key (with its key-group prefix), value. Sorted by these they are what
:mod:`statetool.write.streams` writes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from statetool.arrow.coerce import is_valid, list_parts, map_parts, with_companion
from statetool.arrow.encode import encode_column, first_failing, measure
from statetool.arrow.operator_state import element_serializer
from statetool.arrow.pieces import Chain, Encoded, Flagged, Integers, Joined, Markers, Piece, Ranges, pack, ranges_of
from statetool.arrow.types import COMPANION
from statetool.arrow.values import StateShape
from statetool.errors import EncodeError, StatetoolError, UnsupportedError
from statetool.formats.key_groups import owner_of
from statetool.formats.state_meta import StateMeta
from statetool.serializers.base import Serializer
from statetool.serializers.row import KIND_FIELD, RowSerializer
from statetool.types import LogicalType, TimestampType, TtlType
from statetool.types.declared import TypeContext
from statetool.write.key_hash import hash_keys, key_groups
from statetool.write.recipe import ElementRecipe, KeyedRecipe, StateColumn, TimerColumns, parse_keyed_header
from statetool.write.streams import Records

RECORDS: Final = pa.schema(
    [
        pa.field("subtask", pa.int32()),
        pa.field("group", pa.int32()),
        pa.field("state", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
SORTED_BY: Final = ("subtask", "group", "state", "key", "value")
Int64s = npt.NDArray[np.int64]
_EMPTY: Final = np.empty(0, dtype=np.uint8)


def table_records(recipe: KeyedRecipe | ElementRecipe, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Encode rows of a table: :func:`keyed_records` or :func:`element_records`."""
    return keyed_records(recipe, batch) if isinstance(recipe, KeyedRecipe) else element_records(recipe, batch)


def keyed_records(recipe: KeyedRecipe, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Encode rows of a table with keys.

    Raises
    ------
    EncodeError
        A value that its type cannot hold; names operator, state and the key of the row.
    """
    try:
        if batch.num_rows:
            yield from _Rows(recipe, batch).records()
    except StatetoolError as error:
        raise error.at(operator=recipe.operator) from error.__cause__


class _Rows:
    """The rows of one batch: their keys are encoded once for all states."""

    def __init__(self, recipe: KeyedRecipe, batch: pa.RecordBatch) -> None:
        self.recipe, self.batch = recipe, batch
        self.header = recipe.keyed_header
        self.n = batch.num_rows
        key = self.header.key
        array = _key_array(batch, recipe.key) if len(recipe.key) > 1 else column_of(batch, recipe.key[0], key.logical)
        array = _row_of(key, array)
        if array.null_count and not key.nullable:
            raise EncodeError(
                f"row {int(np.argmin(is_valid(array)))} of a batch has no key", hint="filter such rows out"
            )
        self.keys = self._encoded(key, array, "key")
        start, end = self.keys.offsets[:-1], self.keys.offsets[1:]
        self.groups = self._groups(key, start, end)
        self.key = Ranges(self.keys.data, start, end - start)
        self.namespaces = None if recipe.namespace is None else batch.column(recipe.namespace)
        self.with_entry: Int64s = np.empty(0, dtype=np.int64)

    def _groups(self, key: Serializer, start: Int64s, end: Int64s) -> Int64s:
        if self.recipe.key_group is not None:
            given = self.batch.column(self.recipe.key_group)
            groups = np.asarray(given.cast(pa.int64()).fill_null(-1), dtype=np.int64)
            if ((groups < 0) | (groups >= self.recipe.max_parallelism)).any():
                raise EncodeError(
                    f"column {self.recipe.key_group!r} is not a key group below {self.recipe.max_parallelism}"
                )
            return groups
        if self.recipe.hashed is not None:
            key = self.recipe.hashed(key)
        try:
            return key_groups(hash_keys(key, self.keys.data, start, end), self.recipe.max_parallelism)
        except UnsupportedError as error:
            error.hint = (
                "declare it with hashes={class: 'Objects.hash(...)'}, or, for keys that were read with key_group=True, "
                "pass key_group='key_group'"
            )
            raise

    def records(self) -> Iterator[pa.RecordBatch]:
        if self.recipe.timers is not None:
            yield from self.timers(self.recipe.timers)
            return
        anchored = False
        for state in self.recipe.states:
            meta = self.header.states[state.state_id]
            try:
                written = self.state(state, meta)
                yield written
                if meta.kind != "map" and not anchored and not self.recipe.long:
                    # So that a key that comes twice is seen, rows without an entry leave a record of their key.
                    anchored = True
                    rest = np.setdiff1d(np.arange(self.n), self.with_entry)
                    yield self.batch_of(rest, state.state_id, pack(self.prefixes(meta, rest)), None)
            except StatetoolError as error:
                raise error.at(state=meta.name) from error.__cause__
        if not self.recipe.long and all(self.header.states[c.state_id].kind == "map" for c in self.recipe.states):
            first = self.header.states[self.recipe.states[0].state_id]
            rows = np.arange(self.n)
            yield self.batch_of(rows, self.recipe.presence, pack(self.prefixes(first, rows)), None)

    def prefixes(self, meta: StateMeta, rows: Int64s) -> Piece:
        """Measure key group, key and namespace of some rows, as they stand in front of user keys."""
        namespace = meta.namespace
        assert namespace is not None
        parts: list[Piece] = [Integers(self.groups[rows], self.recipe.prefix)]
        key = Ranges(self.keys.data, self.key.start[rows], self.key.sizes[rows])
        array = pa.nulls(len(rows)) if self.namespaces is None else self.namespaces.take(pa.array(rows))
        with_namespace = measure(namespace, array)
        parts.append(key)
        ambiguous = self.header.key.length < 0 and namespace.length < 0
        if ambiguous:
            parts.append(Markers(key.sizes))
        parts.append(with_namespace)
        if ambiguous:
            parts.append(Markers(with_namespace.sizes))
        return Chain(parts, len(rows))

    def state(self, state: StateColumn, meta: StateMeta) -> pa.RecordBatch:
        shape = _shape(self.recipe.header, self.recipe.types, state.state_id)
        if self.recipe.long:
            return self.long_form(state, shape, meta)
        column = column_of(self.batch, state.column, shape.logical)
        rows = np.flatnonzero(is_valid(column))
        some = column if len(rows) == len(column) else column.filter(pa.array(is_valid(column)))
        if shape.kind == "map":
            counts, keys, values = map_parts(some)
            return self.map_entries(state, shape, meta, np.repeat(rows, counts), keys, values)
        if shape.kind == "list" and not shape.framed_bytes:
            counts, elements = list_parts(some)
            encoded = self._encoded(
                shape.element, elements, state.column, access=state.last_access_ms, rows=np.repeat(rows, counts)
            )
            kept = np.flatnonzero(counts)
            return self.entries(meta, state, rows[kept], pack(Joined(encoded, counts[kept])))
        encoded = self._encoded(shape.element, some, state.column, access=state.last_access_ms, rows=rows)
        return self.entries(meta, state, rows, encoded)

    def long_form(self, state: StateColumn, shape: StateShape, meta: StateMeta) -> pa.RecordBatch:
        """Encode rows that are one entry each, as ``op.state(name)`` shows them."""
        rows = np.arange(self.n)
        values = column_of(self.batch, state.column, shape.element.logical)
        if shape.kind == "map":
            assert shape.user_key is not None
            keys = column_of(self.batch, "map_key", shape.user_key.logical)
            return self.map_entries(state, shape, meta, rows, keys, values)
        encoded = self._encoded(shape.element, values, state.column, access=state.last_access_ms)
        if shape.kind == "list" and not shape.framed_bytes:
            index = np.asarray(self.batch.column("list_index").cast(pa.int64()), dtype=np.int64)
            encoded = pack(Chain((Integers(index, 8), as_piece(encoded)), self.n))
        return self.entries(meta, state, rows, encoded)

    def map_entries(
        self, state: StateColumn, shape: StateShape, meta: StateMeta, rows: Int64s, keys: pa.Array, values: pa.Array
    ) -> pa.RecordBatch:
        assert shape.user_key is not None
        encoded_keys = self._encoded(shape.user_key, keys, f"{state.column}.key", rows=rows)
        # Where None is an object, no value is Java's null.
        valid = np.ones(len(values), dtype=np.bool_) if shape.element.none_is_value else is_valid(values)
        some = values if valid.all() else values.filter(pa.array(valid))
        encoded = self._encoded(
            shape.element, some, f"{state.column}.value", access=state.last_access_ms, rows=rows[np.flatnonzero(valid)]
        )
        whole = pack(Flagged(valid, as_piece(encoded), (0, 1), 0))
        composite = pack(Chain((self.prefixes(meta, rows), as_piece(encoded_keys)), len(rows)))
        return self.batch_of(rows, state.state_id, composite, whole)

    def entries(self, meta: StateMeta, state: StateColumn, rows: Int64s, values: Encoded) -> pa.RecordBatch:
        self.with_entry = rows
        return self.batch_of(rows, state.state_id, pack(self.prefixes(meta, rows)), values)

    def timers(self, columns: TimerColumns) -> Iterator[pa.RecordBatch]:
        stamps = _millis(self.batch.column(columns.timestamp))
        for domain, service, state_id in columns.states:
            here = np.ones(self.n, dtype=np.bool_)
            for name, wanted in ((columns.domain, domain), (columns.service, service)):
                if wanted is not None:
                    here &= np.asarray(pc.fill_null(pc.equal(self.batch.column(name), wanted), False))
            rows = np.flatnonzero(here)
            meta = self.header.states[state_id]
            (_, _), (_, namespace) = meta.value.children()
            array = pa.nulls(len(rows)) if self.namespaces is None else self.namespaces.take(pa.array(rows))
            try:
                parts = (
                    Integers(self.groups[rows], self.recipe.prefix),
                    Integers(stamps[rows] ^ np.int64(-(1 << 63)), 8),
                    Ranges(self.keys.data, self.key.start[rows], self.key.sizes[rows]),
                    measure(namespace, array),
                )
            except StatetoolError as error:
                raise error.at(state=meta.name).inside("namespace") from error.__cause__
            yield self.batch_of(rows, state_id, pack(Chain(parts, len(rows))), _no_bytes(len(rows)))

    def _encoded(
        self, serializer: Serializer, array: pa.Array, column: str, *, access: int | None = None, rows: Any = None
    ) -> Encoded:
        try:
            return encode_column(serializer, array, last_access_ms=access)
        except StatetoolError as error:
            at = first_failing(serializer, array, last_access_ms=access)
            row = at if rows is None else int(rows[at])
            key = _key_array(self.batch, self.recipe.key)[row]
            error.message = f"{error.message}, in column {column!r} of the row with key {key}"
            raise

    def batch_of(self, rows: Int64s, state_id: int, keys: Encoded, values: Encoded | None) -> pa.RecordBatch:
        groups = self.groups[rows]
        n = len(rows)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(owner_of(groups, self.recipe.parallelism, self.recipe.max_parallelism).astype(np.int32)),
                pa.array(groups.astype(np.int32)),
                pa.array(np.full(n, state_id, dtype=np.int32)),
                binary_array(keys),
                pa.nulls(n, pa.binary()) if values is None else binary_array(values),
            ],
            schema=RECORDS,
        )


@lru_cache(maxsize=256)
def _shape(header: bytes, types: TypeContext, state_id: int) -> StateShape:
    return StateShape(parse_keyed_header(header, types).states[state_id])


def as_piece(encoded: Encoded) -> Ranges:
    """Return encoded values to be copied."""
    return Ranges(encoded.data, encoded.offsets[:-1], np.diff(encoded.offsets))


def binary_array(encoded: Encoded) -> pa.Array:
    """Return encoded values as an Arrow column.

    Raises
    ------
    EncodeError
        They are larger than a column can be.
    """
    if encoded.offsets[-1] > 0x7FFFFFFF:
        raise EncodeError("more than 2 GiB of one state in one batch", hint="use smaller Arrow batches")
    offsets = pa.py_buffer(encoded.offsets.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(encoded), [None, offsets, pa.py_buffer(encoded.data)])


def column_of(batch: pa.RecordBatch, name: str, logical: LogicalType) -> pa.Array:
    """Return a column, with the companion that keeps the nanoseconds of a timestamp."""
    array = batch.column(name)
    below = name + COMPANION
    if isinstance(logical, TtlType):
        logical = logical.value
    if isinstance(logical, TimestampType) and below in batch.schema.names and pa.types.is_timestamp(array.type):
        return with_companion(array, batch.column(below))
    return array


def _no_bytes(n: int) -> Encoded:
    return Encoded(_EMPTY, np.zeros(n + 1, dtype=np.int64))


def _key_array(batch: pa.RecordBatch, columns: tuple[str, ...]) -> pa.Array:
    if len(columns) == 1:
        return batch.column(columns[0])
    return pa.StructArray.from_arrays([batch.column(c) for c in columns], names=[f"f{i}" for i in range(len(columns))])


def _row_of(key: Serializer, array: pa.Array) -> pa.Array:
    """Make rows of one field of keys that are given as that field alone, as PyFlink does with all keys."""
    if not isinstance(key, RowSerializer) or len(key.nested) != 1:
        return array
    is_row = pa.types.is_struct(array.type) and len(array.type) and array.type[0].name in (key.steps[0], "f0")
    if is_row and (len(array.type) == 1 or array.type[len(array.type) - 1].name == KIND_FIELD):
        return array
    return pa.StructArray.from_arrays([array], names=list(key.steps), mask=array.is_null())


def _millis(array: pa.Array) -> Int64s:
    if array.null_count:
        raise EncodeError("a timer without a timestamp")
    if pa.types.is_integer(array.type):
        return np.asarray(array.cast(pa.int64()), dtype=np.int64)
    raise EncodeError(f"timestamps of timers are epoch milliseconds, found {array.type}", hint="cast them to BIGINT")


def element_records(recipe: ElementRecipe, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Encode rows of an operator state; the subtask of an element follows from its bytes, so that it is always the same.

    Raises
    ------
    EncodeError
        A value that its type cannot hold.
    """
    meta = recipe.operator_header.states[recipe.state_id]
    try:
        serializer = element_serializer(meta)
        values = _encoded_elements(serializer, batch, recipe.value)
        if meta.kind != "broadcast":
            subtasks = _subtasks(recipe, batch, values)
            yield _elements(recipe, subtasks, _no_bytes(len(values)), values)
            return
        key = meta.serializers["KEY_SERIALIZER"]
        keys = _encoded_elements(key, batch, recipe.key)
        for subtask in range(recipe.parallelism):
            yield _elements(recipe, np.full(len(values), subtask, dtype=np.int64), keys, values)
    except StatetoolError as error:
        raise error.at(operator=recipe.operator, state=meta.name) from error.__cause__


def _encoded_elements(serializer: Serializer, batch: pa.RecordBatch, column: str) -> Encoded:
    array = column_of(batch, column, serializer.logical)
    try:
        return encode_column(serializer, array)
    except StatetoolError as error:
        shown = array[first_failing(serializer, array)]
        error.message = f"{error.message}, in column {column!r}: {shown}"
        raise


def _subtasks(recipe: ElementRecipe, batch: pa.RecordBatch, values: Encoded) -> Int64s:
    if recipe.subtask is None:
        crcs = (zlib.crc32(values.value(i)) for i in range(len(values)))
        return np.fromiter(crcs, dtype=np.int64, count=len(values)) % recipe.parallelism
    given = np.asarray(batch.column(recipe.subtask).cast(pa.int64()).fill_null(-1), dtype=np.int64)
    if ((given < 0) | (given >= recipe.parallelism)).any():
        raise EncodeError(f"column {recipe.subtask!r} is not a subtask below the parallelism {recipe.parallelism}")
    return given


def _elements(recipe: ElementRecipe, subtasks: Int64s, keys: Encoded, values: Encoded) -> pa.RecordBatch:
    n = len(subtasks)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(subtasks.astype(np.int32)),
            pa.array(np.zeros(n, dtype=np.int32)),
            pa.array(np.full(n, recipe.state_id, dtype=np.int32)),
            binary_array(keys),
            binary_array(values),
        ],
        schema=RECORDS,
    )


def records_of(batch: pa.RecordBatch) -> Records:
    """Return a batch of records as arrays."""
    keys, key, key_end = ranges_of(batch.column(3))
    values, value, value_end = ranges_of(batch.column(4))
    state, group = (np.asarray(batch.column(i), dtype=np.int64) for i in (2, 1))
    return Records(
        key_data=keys, key=key, key_end=key_end, value_data=values, value=value, value_end=value_end,
        state=state, group=group, present=is_valid(batch.column(4)),
    )  # fmt: skip
