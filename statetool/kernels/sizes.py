"""What a program says of the size of its values, without looking at any (and without compiling kernels)."""

from __future__ import annotations

from typing import Final

from statetool.kernels import program as ir

FIXED_SIZES: Final = {"bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "char": 2}
TEMPORAL_KINDS: Final = ("millis", "millis_nanos", "seconds_nanos", "date", "time", "date_time")
TEMPORAL_SIZES: Final = (8, 12, 12, 6, 7, 13)
#: Elements of no bytes are limited by number: no bytes that are left say how many there can be.
MAX_EMPTY_ELEMENTS: Final = 1 << 20


def fixed_size(op: ir.Op) -> int | None:
    """Return the bytes that every value takes, ``None`` where they differ."""
    match op:
        case ir.Fixed(kind):
            return FIXED_SIZES[kind]
        case ir.Constant(size, _):
            return size
        case ir.Temporal(kind):
            return TEMPORAL_SIZES[TEMPORAL_KINDS.index(kind)]
        case ir.Choice():
            return 4
        case ir.Flipped() | ir.Epoch():
            return 8
        case ir.FixedBytes(size):
            return size
        case ir.BytesDecimal(size):
            return size
        case ir.Clock(kind):
            return 4 if kind == "millis" else 8
        case ir.SqlDecimal(precision) if precision <= ir.COMPACT_DIGITS:
            return 8
        case ir.SqlTimestamp(precision):
            return 8 if precision <= ir.COMPACT_FRACTION else 12
        case ir.Struct(_, parts):
            sizes = [fixed_size(p) for p in parts]
            return None if None in sizes else sum(s for s in sizes if s is not None)
        case ir.Ttl(value):
            inner = fixed_size(value)
            return None if inner is None else 8 + inner
        case ir.Flagged(value, _, padding):
            inner = fixed_size(value)
            return 1 + padding if inner == padding else None
    return None


def least_size(op: ir.Op) -> int:
    """Return the fewest bytes that a value takes: how many fit into what is left is known before they are looked for."""
    size = fixed_size(op)
    if size is not None:
        return size
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
        case ir.EitherOf(left, right):
            return 1 + min(least_size(left), least_size(right))
        case ir.Masked(_, parts, row_kind):
            return max(1, (len(parts) + 2 * row_kind + 7) // 8)
    return 1
