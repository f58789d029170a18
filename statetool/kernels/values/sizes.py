"""Sizes of values that follow from their program alone. Needs no NumPy."""

from __future__ import annotations

from typing import Final, get_args

from typing_extensions import assert_never

from statetool.kernels.values import program as ir

FIXED_SIZES: Final[dict[ir.FixedKind, int]] = {
    "bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "char": 2,
}  # fmt: skip
TEMPORAL_KINDS: Final[tuple[ir.TemporalKind, ...]] = get_args(ir.TemporalKind)
TEMPORAL_SIZES: Final[dict[ir.TemporalKind, int]] = {
    "millis": 8, "millis_nanos": 12, "seconds_nanos": 12, "date": 6, "time": 7, "date_time": 13,
}  # fmt: skip
CLOCK_SIZES: Final[dict[ir.ClockUnit, int]] = {"millis": 4, "micros": 8}
#: Limit on the number of zero-byte elements, which the remaining bytes do not limit.
MAX_EMPTY_ELEMENTS: Final = 1 << 20


def fixed_size(op: ir.Op) -> int | None:
    """Return the number of bytes of every value, ``None`` if it varies."""
    if isinstance(op, ir.Sized):
        return _size(op)
    match op:
        case ir.SqlDecimal(precision):
            return 8 if precision <= ir.COMPACT_DIGITS else None
        case ir.BytesDecimal(size):
            return size
        case ir.Struct(_, parts):
            sizes = [fixed_size(p) for p in parts]
            return None if None in sizes else sum(s for s in sizes if s is not None)
        case ir.Ttl(value):
            inner = fixed_size(value)
            return None if inner is None else 8 + inner
        case ir.Flagged(value, _, padding):
            inner = fixed_size(value)
            return 1 + padding if inner == padding else None
        case ir.Text() | ir.BigInt() | ir.BigDec() | ir.Counted() | ir.BinaryData() | ir.Framed():
            return None
        case ir.NonNullFlag() | ir.Repeated() | ir.Pairs() | ir.Masked() | ir.Pojo() | ir.EitherOf() | ir.Blocks():
            return None
        case ir.Union() | ir.StreamElement() | ir.MaskedList() | ir.Rest() | ir.PerRecord() | ir.Graph():
            return None
    assert_never(op)


def _size(op: ir.Sized) -> int:
    match op:
        case ir.Fixed(kind):
            return FIXED_SIZES[kind]
        case ir.Constant(size, _) | ir.FixedBytes(size):
            return size
        case ir.Temporal(kind):
            return TEMPORAL_SIZES[kind]
        case ir.EnumIndex():
            return 4
        case ir.SignFlippedLong() | ir.Epoch():
            return 8
        case ir.Clock(kind):
            return CLOCK_SIZES[kind]
        case ir.SqlTimestamp(precision):
            return 8 if precision <= ir.COMPACT_FRACTION else 12
    assert_never(op)


def least_size(op: ir.Op) -> int:
    """Return the minimum number of bytes of a value, which limits how many values fit into the remaining bytes.

    It is 0 only if every value takes no bytes, and 1 if kernels cannot find the end.
    """
    size = fixed_size(op)
    if size is not None:
        return size
    assert not isinstance(op, ir.Sized)
    match op:
        case ir.BigInt() | ir.BigDec() | ir.Counted() | ir.Repeated() | ir.Pairs():
            return 4
        case ir.MaskedList() | ir.BinaryData() | ir.Framed() | ir.SqlDecimal() | ir.BytesDecimal():
            return 4
        case ir.Union(branches):
            return 4 + min(map(least_size, branches), default=0)
        case ir.Struct(_, parts):
            return sum(map(least_size, parts))
        case ir.Ttl(value):
            return 8 + least_size(value)
        case ir.Flagged(value, _, padding):
            return 1 + min(padding, least_size(value))
        case ir.NonNullFlag(value):
            return 1 + least_size(value)
        case ir.EitherOf(left, right):
            return 1 + min(least_size(left), least_size(right))
        case ir.Masked(_, parts, row_kind):
            return (len(parts) + 2 * row_kind + 7) // 8
        case ir.Text() | ir.Pojo() | ir.Blocks() | ir.StreamElement() | ir.Rest() | ir.PerRecord() | ir.Graph():
            return 1
    assert_never(op)
