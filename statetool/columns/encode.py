"""Encoder of Arrow columns to Flink's bytes: the inverse of :mod:`statetool.columns.decode`.

A column is measured first and then written into one buffer, operation by operation over all of its values. Types that the kernels do not
support are encoded value by value with their serializer. Kernels and serializers must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow, as_numpy, is_valid
from statetool.columns.coerce import TooWideError, coerce, list_parts, map_parts, struct_parts
from statetool.columns.map_keys import has_map, refuse_order, refuse_same_bytes
from statetool.columns.pieces import (
    Bytes,
    Chain,
    Choice,
    Constant,
    Counted,
    Elements,
    Encoded,
    Flagged,
    Int64s,
    Integers,
    Masked,
    Piece,
    Ranges,
    Sparse,
    Text,
    pack,
)
from statetool.columns.to_plain import arrow_to_plain
from statetool.errors import EncodeError, StatetoolError
from statetool.io.output import Output
from statetool.kernels.core.words import copy_ranges
from statetool.kernels.values import program as ir
from statetool.kernels.values.sizes import FIXED_SIZES
from statetool.serializers.core.base import Serializer
from statetool.serializers.typeutils.row import ROW_KINDS
from statetool.serializers.typeutils.temporal import civil_from_days
from statetool.types import BitmapType, ListType, LogicalType, MapType, Scalar, StructType, TimestampType, TtlType

_I64_MIN = -(1 << 63)
_I32_MIN = -(1 << 31)
_SECOND = 1_000_000_000  # in nanoseconds
_DAY = 86400 * _SECOND
#: The only NaN that ``DataOutput`` writes.
_NAN_BITS = {"f32": 0x7FC00000, "f64": 0x7FF8 << 48}
_Leaf = ir.Fixed | ir.Text | ir.Counted | ir.Constant | ir.EnumIndex | ir.SignFlippedLong | ir.Temporal


class NoKernelError(Exception):
    """Raised for a program that must be encoded value by value."""


def measure(serializer: Serializer, array: pa.Array, *, last_access_ms: int | None = None) -> Piece:
    """Measure a column.

    Parameters
    ----------
    last_access_ms
        Last access of TTL values whose column holds only the value; ``None`` for structs of ``last_access`` and ``value``.

    Raises
    ------
    EncodeError
        The serializer cannot write a value, or the column has another type. The error has the path inside the type.
    """
    try:
        return _measure(serializer.program(), serializer.logical, array, last_access_ms)
    except (NoKernelError, TooWideError):
        return _Plain(serializer, arrow_to_plain(array, serializer.logical, last_access_ms=last_access_ms))


def encode_column(serializer: Serializer, array: pa.Array, *, last_access_ms: int | None = None) -> Encoded:
    """Encode one value per row. Arguments and errors are those of :func:`measure`."""
    return pack(measure(serializer, array, last_access_ms=last_access_ms))


def measure_key(serializer: Serializer, array: pa.Array) -> Piece:
    """Measure keys, user keys of maps or namespaces, as :func:`measure` does, but refuse maps of several entries."""
    measured = measure(serializer, array)
    refuse_order(serializer, array)
    return measured


def first_failing(encode: Callable[[pa.Array], object], array: pa.Array) -> int:
    """Return the index of the first value that cannot be encoded. There must be one."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            encode(array.slice(low, middle - low))
        except StatetoolError:
            high = middle
        else:
            low = middle
    return low


class _Plain:
    """Values encoded one by one."""

    def __init__(self, serializer: Serializer, values: Sequence[Any]) -> None:
        out = Output()
        ends = np.empty(len(values), dtype=np.int64)
        for i, value in enumerate(values):
            if value is None and not serializer.nullable:
                raise null_error(serializer.type_name)
            serializer.encode(out, value)
            ends[i] = len(out)
        self.data = np.frombuffer(bytes(out), dtype=np.uint8)
        self.sizes = np.diff(ends, prepend=0)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        copy_ranges(self.data, np.cumsum(self.sizes) - self.sizes, self.sizes, out, pos)


def null_error(what: str) -> EncodeError:
    """Return the error for a null in a type that does not allow nulls."""
    return EncodeError(
        f"a null instead of a value of type {what} must be",
        hint="leave the row out, fill the null, or declare the type as flink.nullable(...)",
    )


def _numbers(array: pa.Array) -> Int64s:
    """Return the values of an integer, date or time array without nulls."""
    return as_numpy(array.cast(pa.int64()))


def _encode_fixed(kind: ir.FixedKind, array: pa.Array, logical: LogicalType) -> Piece:
    if array.null_count:
        raise null_error(str(getattr(logical, "name", logical)))
    if kind == "bool":
        return Integers(as_numpy(array.cast(pa.uint8())).astype(np.int64), 1)
    if kind in ("f32", "f64"):
        floats = as_numpy(array).astype(np.float32 if kind == "f32" else np.float64, copy=False)
        bits = floats.view(np.int32 if kind == "f32" else np.int64).astype(np.int64)
        bits[np.isnan(floats)] = _NAN_BITS[kind]
        return Integers(bits, FIXED_SIZES[kind])
    return Integers(_numbers(array), FIXED_SIZES[kind])


def _measure(op: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    match op:
        case ir.Struct(names, parts):
            return _struct(names, parts, logical, array, access)
        case ir.Flagged(value, null_flag, padding):
            valid = is_valid(array)
            present = array if valid.all() else array.filter(as_arrow(valid))
            measured = _measure(value, logical, present, access)
            return Flagged(valid, measured, (1 - null_flag, null_flag), padding)
        case ir.NonNullFlag(value, flag):
            all_valid = np.ones(len(array), dtype=np.bool_)
            return Flagged(all_valid, _measure(value, logical, array, access), (flag, 1 - flag), 0)
        case ir.Repeated(element):
            assert isinstance(logical, ListType)
            counts, elements = list_parts(array)
            return Elements(counts, _part("element", element, logical.element, elements, access))
        case ir.Pairs(key, value):
            assert isinstance(logical, MapType)
            counts, keys, values = map_parts(array)
            first = _map_keys(key, logical.key, counts, keys, access)
            second = _part("value", value, logical.value, values, access)
            return Elements(counts, Chain((first, second), len(keys)))
        case ir.Pojo(names, parts):
            return _pojo(names, parts, logical, array, access)
        case ir.Masked():
            return _encode_masked(op, logical, array, access)
        case ir.EitherOf(left, right):
            return _either(left, right, logical, array, access)
        case ir.Ttl(value):
            return _ttl(value, logical, array, access)
        case ir.Blocks() | ir.Union() | ir.StreamElement() | ir.MaskedList():
            raise NoKernelError
    if isinstance(op, _Leaf):
        if op == ir.Fixed("char") or isinstance(logical, BitmapType):
            raise NoKernelError
        return _leaf(op, logical, coerce(array, logical))
    match op:
        case (
            ir.BigInt()
            | ir.BigDec()
            | ir.SqlDecimal()
            | ir.BytesDecimal()
            | ir.SqlTimestamp()
            | ir.Clock()
            | ir.Epoch()
        ):
            raise NoKernelError
        case ir.FixedBytes() | ir.BinaryData() | ir.Framed() | ir.Rest() | ir.PerRecord() | ir.Graph():
            raise NoKernelError
    assert_never(op)


def _leaf(op: _Leaf, logical: LogicalType, array: pa.Array) -> Piece:
    match op:
        case ir.Fixed(kind):
            return _encode_fixed(kind, array, logical)
        case ir.Text(nullable):
            if not nullable and array.null_count:
                raise null_error("string")
            return Text(array, int(nullable))
        case ir.Counted():
            if array.null_count:
                raise null_error("byte array")
            return Counted(array)
        case ir.Constant(size, byte):
            return Constant(len(array), size, byte)
        case ir.EnumIndex(names):
            if array.null_count:
                raise null_error("constant of an enum")
            index = pa.compute.index_in(array, pa.array(names, type=pa.string()))
            if index.null_count:
                bad = array.filter(index.is_null())[0].as_py()
                raise EncodeError(f"{bad!r} is not a constant of the enum: {', '.join(names)}")
            return Integers(_numbers(index), 4)
        case ir.SignFlippedLong():
            if array.null_count:
                raise null_error("timestamp of a timer")
            return Integers(_numbers(array) ^ np.int64(_I64_MIN), 8)
        case ir.Temporal(kind):
            return _temporal(kind, array)
    assert_never(op)


def _part(step: str, op: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    try:
        return _measure(op, logical, array, access)
    except StatetoolError as error:
        raise error.inside(step) from error.__cause__


def _map_keys(op: ir.Op, logical: LogicalType, counts: Int64s, array: pa.Array, access: int | None) -> Piece:
    """Measure the keys of maps, in which each key must occur once."""
    if has_map(logical):
        raise NoKernelError
    keys = _part("key", op, logical, array, access)
    if counts.max(initial=0) <= 1:
        return keys
    encoded = pack(keys)
    refuse_same_bytes(encoded.data, encoded.offsets, counts)
    return Ranges(encoded.data, encoded.offsets[:-1], keys.sizes)


def _struct(
    names: tuple[str, ...], ops: tuple[ir.Op, ...], logical: LogicalType, array: pa.Array, access: int | None
) -> Piece:
    assert isinstance(logical, StructType)
    if not is_valid(array).all():
        raise null_error("struct")
    columns = struct_parts(array, logical)
    pieces = [
        _part(name, op, field.type, column, access)
        for name, op, field, column in zip(names, ops, logical.fields, columns, strict=True)
    ]
    return Chain(pieces, len(array))


def _pojo(
    names: tuple[str, ...], ops: tuple[ir.Op, ...], logical: LogicalType, array: pa.Array, access: int | None
) -> Piece:
    assert isinstance(logical, StructType)
    valid = is_valid(array)
    present = array if valid.all() else array.filter(as_arrow(valid))
    pieces: list[Piece] = []
    for name, op, field, column in zip(names, ops, logical.fields, struct_parts(present, logical), strict=True):
        has_value = is_valid(column)
        field_values = column if has_value.all() else column.filter(as_arrow(has_value))
        pieces.append(Flagged(has_value, _part(name, op, field.type, field_values, access), (0, 1), 0))
    return Flagged(valid, Chain(pieces, len(present)), (2, 1), 0)


def _encode_masked(op: ir.Masked, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    assert isinstance(logical, StructType)
    if not is_valid(array).all():
        raise null_error("row")
    columns = struct_parts(array, logical, kind_field=op.row_kind)
    flags, parts = [], []
    if op.row_kind:
        try:
            kinds = coerce(columns.pop(), Scalar("string"))
        except StatetoolError as error:
            raise error.inside("_kind") from error.__cause__
        index = pa.compute.index_in(kinds, pa.array(ROW_KINDS))
        if index.null_count:
            bad = kinds.filter(index.is_null())[0].as_py()
            raise EncodeError(f"{bad!r} is not a row kind ({', '.join(ROW_KINDS)})").inside("_kind")
        number = _numbers(index)
        flags += [number & 1 == 1, number & 2 == 2]
    for name, part, field, column in zip(op.names, op.parts, logical.fields, columns, strict=False):
        has_value = is_valid(column)
        field_values = column if has_value.all() else column.filter(as_arrow(has_value))
        flags.append(~has_value)
        parts.append(Sparse(has_value, _part(name, part, field.type, field_values, access)))
    n = len(array)
    return Masked(np.stack(flags, axis=1) if flags else np.zeros((n, 0), dtype=np.bool_), parts)


def _either(left: ir.Op, right: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    assert isinstance(logical, StructType)
    if not is_valid(array).all():
        raise null_error("choice of two")
    lefts, rights = struct_parts(array, logical)
    is_left, is_right = is_valid(lefts), is_valid(rights)
    if not (is_left ^ is_right).all():
        raise EncodeError(f"exactly one of {' and '.join(f.name for f in logical.fields)} must be there")
    first = _part(logical.fields[0].name, left, logical.fields[0].type, lefts.filter(as_arrow(is_left)), access)
    second = _part(logical.fields[1].name, right, logical.fields[1].type, rights.filter(as_arrow(is_right)), access)
    return Choice(is_left, first, second)


def _ttl(value: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    assert isinstance(logical, TtlType)
    if access is not None:
        times = np.full(len(array), access, dtype=np.int64)
        return Chain((Integers(times, 8), _part("value", value, logical.value, array, None)), len(array))
    if not is_valid(array).all():
        raise null_error("value with its last access")
    last, values = struct_parts(array, StructType.of(last_access=TimestampType("ms", zoned=True), value=logical.value))
    stamps = coerce(last, TimestampType("ms", zoned=True))
    if stamps.null_count:
        raise null_error("last access").inside("last_access")
    return Chain((Integers(_numbers(stamps), 8), _part("value", value, logical.value, values, None)), len(array))


def _temporal(kind: ir.TemporalKind, array: pa.Array) -> Piece:
    """Measure integers in the unit of the type (days, nanoseconds of the day or since the epoch). Null is the smallest number."""
    valid = is_valid(array)
    raw = as_numpy(array.cast(pa.int64()), null=0)

    def part(values: Any, size: int, null: int) -> Piece:
        return Integers(np.where(valid, values, null).astype(np.int64), size)

    def date(days: Any) -> list[Piece]:
        year, month, day = civil_from_days(days)
        return [part(year, 4, _I32_MIN), part(month << 8 | day, 2, -(1 << 15))]

    def time(nanos: Any) -> list[Piece]:
        if ((nanos < 0) | (nanos >= _DAY)).any():
            raise EncodeError(f"{int(nanos[(nanos < 0) | (nanos >= _DAY)][0])} ns is not a time of day")
        second = nanos // _SECOND
        return [
            part(second // 3600, 1, -128),
            part((second // 60 % 60) << 8 | second % 60, 2, -(1 << 15)),
            part(nanos % _SECOND, 4, _I32_MIN),
        ]

    match kind:
        case "millis":
            pieces = [part(raw, 8, _I64_MIN)]
        case "millis_nanos":
            pieces = [part(raw // 1_000_000, 8, _I64_MIN), part(raw % _SECOND, 4, 0)]
        case "seconds_nanos":
            pieces = [part(raw // _SECOND, 8, _I64_MIN), part(raw % _SECOND, 4, _I32_MIN)]
        case "date":
            pieces = date(raw)
        case "time":
            pieces = time(raw)
        case "date_time":
            pieces = date(raw // _DAY) + time(raw % _DAY)
        case _:
            assert_never(kind)
    return Chain(pieces, len(raw))
