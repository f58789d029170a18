"""Arrow columns as the bytes that Flink writes: the mirror of :mod:`statetool.arrow.decode`.

A column is measured first and then filled into one buffer, operation by operation over all of its values. Types that
the kernels do not serve are encoded value by value with their serializer, which is what the others must agree with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.arrow.coerce import ROW_KINDS, TooWideError, coerce, is_valid, list_parts, map_parts, struct_parts
from statetool.arrow.to_plain import arrow_to_plain
from statetool.errors import EncodeError, StatetoolError
from statetool.io.output import Output
from statetool.kernels import encode as kernel
from statetool.kernels import program as ir
from statetool.kernels.skip import FIXED_SIZES
from statetool.serializers.base import Serializer
from statetool.types import BitmapType, ListType, LogicalType, MapType, StructType, TimestampType, TtlType

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_I64_MIN = -(1 << 63)
_I32_MIN = -(1 << 31)
_LEAVES = (ir.Fixed, ir.Text, ir.Counted, ir.Constant, ir.Choice, ir.Flipped, ir.Temporal)


class Piece(Protocol):
    """Measured values: how many bytes each takes, and how they are written."""

    sizes: Int64s

    def fill(self, out: Bytes, pos: Int64s) -> None:
        """Write each value at its position."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded values one after another; value i is ``data[offsets[i]:offsets[i + 1]]``."""

    data: Bytes
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def value(self, i: int) -> bytes:
        """Return the bytes of one value."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()


def pack(piece: Piece) -> Encoded:
    """Write all values of a piece one after another."""
    offsets = np.zeros(len(piece.sizes) + 1, dtype=np.int64)
    np.cumsum(piece.sizes, out=offsets[1:])
    out = np.zeros(int(offsets[-1]), dtype=np.uint8)
    piece.fill(out, offsets[:-1])
    return Encoded(out, offsets)


class NotForKernelsError(Exception):
    """A program that has to be encoded value by value."""


def measure(serializer: Serializer, array: pa.Array, *, last_access_ms: int | None = None) -> Piece:
    """Measure a column.

    Parameters
    ----------
    last_access_ms
        Last access of TTL values whose column holds the value alone; ``None``: it is a struct of ``last_access`` and ``value``.

    Raises
    ------
    EncodeError
        A value that the serializer cannot write, or a column of another type; with the path inside the type.
    """
    try:
        return _measure(serializer.program(), serializer.logical, array, last_access_ms)
    except (NotForKernelsError, TooWideError):
        return _Plain(serializer, arrow_to_plain(array, serializer.logical, last_access_ms=last_access_ms))


def encode_column(serializer: Serializer, array: pa.Array, *, last_access_ms: int | None = None) -> Encoded:
    """Encode one value a row; arguments and errors as :func:`measure`."""
    return pack(measure(serializer, array, last_access_ms=last_access_ms))


def first_failing(serializer: Serializer, array: pa.Array, *, last_access_ms: int | None = None) -> int:
    """Return the index of the first value that cannot be encoded (there is one)."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            encode_column(serializer, array.slice(low, middle - low), last_access_ms=last_access_ms)
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
        kernel.copy_ranges(self.data, np.cumsum(self.sizes) - self.sizes, self.sizes, out, pos)


class Ranges:
    """Bytes that are there already."""

    def __init__(self, data: Bytes, start: Int64s, sizes: Int64s) -> None:
        self.data, self.start, self.sizes = data, start, sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.copy_ranges(self.data, self.start, self.sizes, out, pos)


class Integers:
    """Big-endian integers of one size."""

    def __init__(self, values: Int64s, size: int) -> None:
        self.values, self.size = values, size
        self.sizes = np.full(len(values), size, dtype=np.int64)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.values, self.size, out, pos)


class Chain:
    """Pieces one after another."""

    def __init__(self, pieces: Sequence[Piece], n: int) -> None:
        self.pieces = pieces
        self.sizes = np.zeros(n, dtype=np.int64)
        for piece in pieces:
            self.sizes += piece.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        at = pos.copy()
        for piece in self.pieces:
            piece.fill(out, at)
            at += piece.sizes


class _Constant:
    def __init__(self, n: int, size: int, byte: int) -> None:
        self.byte = byte
        self.sizes = np.full(n, size, dtype=np.int64)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        if self.byte and len(pos):
            for k in range(int(self.sizes[0])):
                out[pos + k] = self.byte


class _Text:
    def __init__(self, array: pa.Array, extra: int) -> None:
        self.extra = extra
        self.data, self.start, self.end = ranges_of(array)
        valid = is_valid(array).astype(np.uint8)
        self.units, self.sizes = np.empty(len(array), dtype=np.int64), np.empty(len(array), dtype=np.int64)
        kernel.measure_text(self.data, self.start, self.end, valid, extra, self.units, self.sizes)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_text(self.data, self.start, self.end, self.units, self.sizes, self.extra, out, pos)


class _Counted(Ranges):
    def __init__(self, array: pa.Array) -> None:
        data, start, end = ranges_of(array)
        super().__init__(data, start, end - start + 4)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.sizes - 4, 4, out, pos)
        kernel.copy_ranges(self.data, self.start, self.sizes - 4, out, pos + 4)


class Optional_:
    """A flag, and the value where it is there; ``padding`` zero bytes where not."""

    def __init__(self, valid: Mask, value: Piece, flags: tuple[int, int], padding: int) -> None:
        self.some, self.value = np.flatnonzero(valid), value
        self.flags = np.where(valid, flags[0], flags[1]).astype(np.int64)
        self.sizes = np.full(len(valid), 1 + padding, dtype=np.int64)
        self.sizes[self.some] = 1 + value.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.flags, 1, out, pos)
        self.value.fill(out, pos[self.some] + 1)


class _Some:
    """Values of some rows; the others take no bytes."""

    def __init__(self, valid: Mask, value: Piece) -> None:
        self.some, self.value = np.flatnonzero(valid), value
        self.sizes = np.zeros(len(valid), dtype=np.int64)
        self.sizes[self.some] = value.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        self.value.fill(out, pos[self.some])


class _Choice:
    """One of two pieces for each row, behind a flag."""

    def __init__(self, is_left: Mask, left: Piece, right: Piece) -> None:
        self.flags = is_left.astype(np.int64)
        self.left, self.right = _Some(is_left, left), _Some(~is_left, right)
        self.sizes = 1 + self.left.sizes + self.right.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.flags, 1, out, pos)
        self.left.fill(out, pos + 1)
        self.right.fill(out, pos + 1)


class _Elements:
    """A count, and that many elements."""

    def __init__(self, counts: Int64s, element: Piece) -> None:
        self.counts, self.element = counts, element
        # Bytes of all elements before each one, and before each list.
        self.before = np.cumsum(element.sizes) - element.sizes
        ends = np.concatenate([[0], np.cumsum(element.sizes)])[np.concatenate([[0], np.cumsum(counts)])]
        self.first = ends[:-1]
        self.sizes = 4 + np.diff(ends)

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_fixed(self.counts, 4, out, pos)
        self.element.fill(out, np.repeat(pos + 4 - self.first, self.counts) + self.before)


class Joined:
    """Elements of lists joined by commas, as canonical streams keep list state; no list is empty."""

    def __init__(self, elements: Encoded, counts: Int64s) -> None:
        self.elements, self.counts = elements, counts
        self.edges = np.concatenate([[0], np.cumsum(counts)])
        self.sizes = np.diff(elements.offsets[self.edges]) + counts - 1

    def fill(self, out: Bytes, pos: Int64s) -> None:
        offsets = self.elements.offsets
        index = np.arange(len(self.elements)) - np.repeat(self.edges[:-1], self.counts)
        at = np.repeat(pos - offsets[self.edges[:-1]], self.counts) + offsets[:-1] + index
        kernel.copy_ranges(self.elements.data, offsets[:-1], np.diff(offsets), out, at)
        out[at[index > 0] - 1] = 0x2C


class Markers:
    """Lengths behind ambiguous keys: little-endian base 256, at least one byte."""

    def __init__(self, lengths: Int64s) -> None:
        self.lengths = lengths
        self.sizes = np.ones(len(lengths), dtype=np.int64)
        for k in range(1, 4):
            self.sizes += lengths >= 1 << 8 * k

    def fill(self, out: Bytes, pos: Int64s) -> None:
        kernel.store_markers(self.lengths, self.sizes, out, pos)


class _Masked:
    """A bit mask, and the values that are there."""

    def __init__(self, flags: Mask, parts: Sequence[_Some]) -> None:
        n, bits = flags.shape
        self.mask = np.packbits(flags, axis=1) if bits else np.zeros((n, 0), dtype=np.uint8)
        self.parts = Chain(parts, n)
        self.sizes = self.mask.shape[1] + self.parts.sizes

    def fill(self, out: Bytes, pos: Int64s) -> None:
        width = self.mask.shape[1]
        for k in range(width):
            out[pos + k] = self.mask[:, k]
        self.parts.fill(out, pos + width)


def null_error(what: str) -> EncodeError:
    """Make the error for a null in a type that has none."""
    return EncodeError(
        f"a null where a value of type {what} must be",
        hint="leave the row out, fill the null, or declare the type as flink.nullable(...)",
    )


def ranges_of(array: pa.Array) -> tuple[Bytes, Int64s, Int64s]:
    """Return the bytes of a binary or string array, with start and end of each value (int64[n])."""
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offsets, data = array.buffers()
    kind = np.int64 if wide else np.int32
    if offsets is None or not len(array):
        return np.empty(0, dtype=np.uint8), np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.int64)
    edges = np.frombuffer(offsets, dtype=kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return raw, edges[:-1], edges[1:]


def _numbers(array: pa.Array) -> Int64s:
    """Return the values of an integer, date or time array without nulls."""
    return np.asarray(array.cast(pa.int64()), dtype=np.int64)


def _fixed(kind: str, array: pa.Array, logical: LogicalType) -> Piece:
    if array.null_count:
        raise null_error(str(getattr(logical, "name", logical)))
    if kind == "bool":
        return Integers(np.asarray(array.cast(pa.uint8()), dtype=np.int64), 1)
    if kind in ("f32", "f64"):
        floats = np.asarray(array, dtype=np.float32 if kind == "f32" else np.float64)
        bits = floats.view(np.int32 if kind == "f32" else np.int64).astype(np.int64)
        return Integers(bits, FIXED_SIZES[kind])
    return Integers(_numbers(array), FIXED_SIZES[kind])


def _measure(op: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    match op:
        case ir.Struct(names, parts):
            return _struct(names, parts, logical, array, access)
        case ir.Flagged(value, null_flag, padding):
            valid = is_valid(array)
            some = array if valid.all() else array.filter(pa.array(valid))
            with_value = _measure(value, logical, some, access)
            return Optional_(valid, with_value, (1 - null_flag, null_flag), padding)
        case ir.Repeated(element):
            assert isinstance(logical, ListType)
            counts, elements = list_parts(array)
            return _Elements(counts, _part("element", element, logical.element, elements, access))
        case ir.Pairs(key, value):
            assert isinstance(logical, MapType)
            counts, keys, values = map_parts(array)
            first = _part("key", key, logical.key, keys, access)
            second = _part("value", value, logical.value, values, access)
            return _Elements(counts, Chain((first, second), len(keys)))
        case ir.Pojo(names, parts):
            return _pojo(names, parts, logical, array, access)
        case ir.Masked():
            return _masked(op, logical, array, access)
        case ir.EitherOf(left, right):
            return _either(left, right, logical, array, access)
        case ir.Ttl(value):
            return _ttl(value, logical, array, access)
    if not isinstance(op, _LEAVES) or op == ir.Fixed("char") or isinstance(logical, BitmapType):
        raise NotForKernelsError
    return _leaf(op, logical, coerce(array, logical))


def _leaf(op: ir.Op, logical: LogicalType, array: pa.Array) -> Piece:
    match op:
        case ir.Fixed(kind):
            return _fixed(kind, array, logical)
        case ir.Text(nullable):
            if not nullable and array.null_count:
                raise null_error("string")
            return _Text(array, int(nullable))
        case ir.Counted():
            if array.null_count:
                raise null_error("byte array")
            return _Counted(array)
        case ir.Constant(size, byte):
            return _Constant(len(array), size, byte)
        case ir.Choice(names):
            if array.null_count:
                raise null_error("constant of an enum")
            found = pa.compute.index_in(array, pa.array(names, type=pa.string()))
            if found.null_count:
                bad = array.filter(found.is_null())[0].as_py()
                raise EncodeError(f"{bad!r} is not a constant of the enum: {', '.join(names)}")
            return Integers(_numbers(found), 4)
        case ir.Flipped():
            if array.null_count:
                raise null_error("timestamp of a timer")
            return Integers(_numbers(array) ^ np.int64(_I64_MIN), 8)
        case ir.Temporal(kind):
            return _temporal(kind, logical, array)
    raise NotForKernelsError


def _part(step: str, op: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    try:
        return _measure(op, logical, array, access)
    except StatetoolError as error:
        raise error.inside(step) from error.__cause__


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
    some = array if valid.all() else array.filter(pa.array(valid))
    pieces: list[Piece] = []
    for name, op, field, column in zip(names, ops, logical.fields, struct_parts(some, logical), strict=True):
        there = is_valid(column)
        kept = column if there.all() else column.filter(pa.array(there))
        pieces.append(Optional_(there, _part(name, op, field.type, kept, access), (0, 1), 0))
    return Optional_(valid, Chain(pieces, len(some)), (2, 1), 0)


def _masked(op: ir.Masked, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    assert isinstance(logical, StructType)
    if not is_valid(array).all():
        raise null_error("row")
    columns = struct_parts(array, logical, kind_field=op.row_kind)
    flags, parts = [], []
    if op.row_kind:
        kinds = columns.pop()
        found = pa.compute.index_in(kinds, ROW_KINDS)
        if found.null_count:
            bad = kinds.filter(found.is_null())[0].as_py()
            raise EncodeError(f"{bad!r} is not a row kind ({', '.join(ROW_KINDS.to_pylist())})").inside("_kind")
        number = _numbers(found)
        flags += [number & 1 == 1, number & 2 == 2]
    for name, part, field, column in zip(op.names, op.parts, logical.fields, columns, strict=False):
        there = is_valid(column)
        kept = column if there.all() else column.filter(pa.array(there))
        flags.append(~there)
        parts.append(_Some(there, _part(name, part, field.type, kept, access)))
    n = len(array)
    return _Masked(np.stack(flags, axis=1) if flags else np.zeros((n, 0), dtype=np.bool_), parts)


def _either(left: ir.Op, right: ir.Op, logical: LogicalType, array: pa.Array, access: int | None) -> Piece:
    assert isinstance(logical, StructType)
    if not is_valid(array).all():
        raise null_error("choice of two")
    lefts, rights = struct_parts(array, logical)
    is_left, is_right = is_valid(lefts), is_valid(rights)
    if not (is_left ^ is_right).all():
        raise EncodeError(f"exactly one of {' and '.join(f.name for f in logical.fields)} must be there")
    first = _part(logical.fields[0].name, left, logical.fields[0].type, lefts.filter(pa.array(is_left)), access)
    second = _part(logical.fields[1].name, right, logical.fields[1].type, rights.filter(pa.array(is_right)), access)
    return _Choice(is_left, first, second)


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


def _temporal(kind: str, logical: LogicalType, array: pa.Array) -> Piece:
    """Integers in the unit of the type (days, nanoseconds of the day, since the epoch) as parts; null is the smallest."""
    valid = is_valid(array)
    raw = np.asarray(array.cast(pa.int64()).fill_null(0), dtype=np.int64)
    n = len(raw)
    billion = 1_000_000_000

    def part(values: Any, size: int, null: int) -> Piece:
        return Integers(np.where(valid, values, null).astype(np.int64), size)

    match kind:
        case "millis":
            return part(raw, 8, _I64_MIN)
        case "millis_nanos":
            return Chain((part(raw // 1_000_000, 8, _I64_MIN), part(raw % billion, 4, 0)), n)
        case "seconds_nanos":
            return Chain((part(raw // billion, 8, _I64_MIN), part(raw % billion, 4, _I32_MIN)), n)
    pieces: list[Piece] = []
    days, nanos = raw, raw
    if kind == "date_time":
        days, nanos = raw // (86400 * billion), raw % (86400 * billion)
    if kind in ("date", "date_time"):
        year, month, day = _civil(days)
        pieces += [part(year, 4, _I32_MIN), part(month << 8 | day, 2, -(1 << 15))]
    if kind in ("time", "date_time"):
        if ((nanos < 0) | (nanos >= 86400 * billion)).any():
            raise EncodeError(f"{int(nanos[(nanos < 0) | (nanos >= 86400 * billion)][0])} ns is not a time of day")
        second = nanos // billion
        pieces += [
            part(second // 3600, 1, -128),
            part((second // 60 % 60) << 8 | second % 60, 2, -(1 << 15)),
            part(nanos % billion, 4, _I32_MIN),
        ]
    return Chain(pieces, n)


def _civil(days: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Year, month and day of days since 1970-01-01 (proleptic Gregorian)."""
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + np.where(mp < 10, 3, -9)
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1
