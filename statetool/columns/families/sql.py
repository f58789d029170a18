"""Columns of SQL decimals, timestamps, times and intervals, in slots of binary rows and outside of them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow, as_numpy, bitmap, from_buffer
from statetool.columns.batch import Batch, Column
from statetool.columns.families.leaves import decode_fixed, load_frames, load_ints
from statetool.columns.types import arrow_type, keeps_nanos
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import BAD_DECIMAL, BAD_NANOS, NANOS, RANGE, TRUNCATED, check, refuse
from statetool.kernels.values import program as ir
from statetool.kernels.values import slots
from statetool.kernels.values.sizes import CLOCK_SIZES
from statetool.types import DateType, DecimalType, LogicalType, Scalar, TimestampType

_MOST_MILLIS: Final = ((1 << 63) - 1) // 1000
_MOST_MICROS: Final = ((1 << 63) - 1) % 1000  # beyond _MOST_MILLIS
_U64: Final = (1 << 64) - 1
_CLOCK_NANOS: Final[dict[ir.ClockUnit, int]] = {"millis": 1_000_000, "micros": 1_000}


def decode_fixed_as(b: Batch, kind: ir.FixedKind, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    """Decode numbers, which the logical types of external serializers may interpret as dates or intervals."""
    array, after = decode_fixed(b, kind, pos, end)
    if isinstance(logical, DateType):
        return array.cast(pa.date32()), after
    if logical == Scalar("day_interval"):
        return build_intervals(b, as_numpy(array), np.ones(len(pos), dtype=np.uint8), pos), after
    return array, after


def decode_sql_decimal(b: Batch, precision: int, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    valid = np.ones(len(pos), dtype=np.uint8)
    if precision <= ir.COMPACT_DIGITS:
        raw, after = load_ints(b, 8, pos, end)
        return build_compact_decimals(b, raw, valid, logical, pos), after
    starts, after = load_frames(b, pos, end)
    return build_wide_decimals(b, starts, after - starts, valid, logical, pos), after


def decode_sql_timestamp(b: Batch, precision: int, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    millis, after = load_ints(b, 8, pos, end)
    valid = np.ones(len(pos), dtype=np.uint8)
    if precision <= ir.COMPACT_FRACTION:
        return build_instants(b, millis, None, valid, logical, pos), after
    nanos, after = load_ints(b, 4, after, end)
    refuse((nanos < 0) | (nanos > 999_999), BAD_NANOS, pos)
    return build_instants(b, millis, nanos, valid, logical, pos), after


def decode_bytes_decimal(b: Batch, size: int | None, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    if size is None:
        starts, after = load_frames(b, pos, end)
    else:
        starts, after = pos, pos + size
        refuse(after > end, TRUNCATED, pos)
    valid = np.ones(len(pos), dtype=np.uint8)
    return build_wide_decimals(b, starts, after - starts, valid, logical, pos), after


def decode_clock(b: Batch, unit: ir.ClockUnit, pos: Int64s, end: Int64s) -> Column:
    """Return times of day, in nanoseconds."""
    raw, after = load_ints(b, CLOCK_SIZES[unit], pos, end)
    nanos = _CLOCK_NANOS[unit]
    most = ((1 << 63) - 1) // nanos
    refuse((raw > most) | (raw < -most), RANGE, pos)
    return as_arrow(raw * nanos), after


def build_epochs(b: Batch, raw: Int64s, unit: ir.EpochUnit, logical: LogicalType, pos: Int64s) -> pa.Array:
    """Return timestamps from numbers in one unit."""
    valid = np.ones(len(pos), dtype=np.uint8)
    match unit:
        case "ms":
            return build_instants(b, raw, None, valid, logical, pos)
        case "us":
            return from_buffer(arrow_type(logical, b.options), raw, valid)
        case "ns":
            return build_instants(b, raw // 1_000_000, raw % 1_000_000, valid, logical, pos)
    assert_never(unit)


def build_intervals(b: Batch, millis: Int64s, valid: Bytes, pos: Int64s) -> pa.Array:
    """Return intervals of milliseconds, in microseconds."""
    refuse((millis > _MOST_MILLIS) | (millis < -_MOST_MILLIS), RANGE, pos)
    return from_buffer(pa.duration("us"), millis * 1000, valid)


def build_compact_decimals(b: Batch, unscaled: Int64s, valid: Bytes, logical: LogicalType, pos: Int64s) -> pa.Array:
    assert isinstance(logical, DecimalType)
    limit = 10**logical.precision
    refuse((unscaled >= limit) | (unscaled <= -limit), BAD_DECIMAL, pos)
    return from_buffer(arrow_type(logical, b.options), np.stack([unscaled, unscaled >> 63], axis=1), valid)


def build_wide_decimals(
    b: Batch, starts: Int64s, sizes: Int64s, valid: Bytes, logical: LogicalType, pos: Int64s
) -> pa.Array:
    assert isinstance(logical, DecimalType)
    words = np.empty((len(starts), 2), dtype=np.int64)
    limit = 10**logical.precision
    check(slots.read_decimals(b.data, starts, sizes, valid, limit >> 64, np.uint64(limit & _U64), words), pos)
    return from_buffer(arrow_type(logical, b.options), words, valid)


def build_instants(
    b: Batch, millis: Int64s, nanos: Int64s | None, valid: Bytes, logical: LogicalType, pos: Int64s
) -> pa.Array:
    """Return timestamps from milliseconds and the nanoseconds within them."""
    assert isinstance(logical, TimestampType)
    n = len(pos)
    shown = arrow_type(logical, b.options)
    micros = np.zeros_like(millis) if nanos is None else nanos // 1000
    late = (millis > _MOST_MILLIS) | ((millis == _MOST_MILLIS) & (micros > _MOST_MICROS))
    early = (millis < -_MOST_MILLIS - 1) | ((millis == -_MOST_MILLIS - 1) & (micros < 999 - _MOST_MICROS))
    refuse(late | early, RANGE, pos)
    total = millis * 1000 + micros
    if nanos is None or b.options.nanos == "truncate":
        return from_buffer(shown, total, valid)
    below = (nanos % 1000).astype(np.int32)
    if not keeps_nanos(logical, b.options):
        refuse(below != 0, NANOS, pos)
        return from_buffer(shown, total, valid)
    parts = [from_buffer(shown.field(0).type, total, valid), from_buffer(pa.int32(), below, valid)]
    return pa.StructArray.from_buffers(shown, n, [bitmap(valid)], children=parts)
