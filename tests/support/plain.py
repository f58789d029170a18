"""Values read back from Arrow as plain values (:mod:`statetool.types.logical`), read with ``nanos='companion'`` and
``decimals='string'`` so that nothing is lost.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)

_EPOCH = datetime(1970, 1, 1)
_MICRO = timedelta(microseconds=1)


def row_value(row: dict[str, Any], column: str, logical: LogicalType) -> Any:
    """Return the plain value of a column of a row, with its companion column merged in."""
    if isinstance(logical, TtlType):
        return None if row[column] is None else (0, row_value(row, column, logical.value))
    if isinstance(logical, TimestampType) and logical.unit == "ns":
        return None if row[column] is None else _micros(row[column]) * 1000 + row[column + "_nanos"]
    return plain(row[column], logical)


def plain(value: Any, logical: LogicalType) -> Any:
    """Convert a result of ``to_pylist`` to a plain value."""
    if value is None:
        return None
    match logical:
        case BigDecimalType():
            return Decimal(value)
        case BigIntegerType():
            return int(value)
        case DateType():
            return (value - date(1970, 1, 1)).days
        case TimestampType("ns"):
            return _micros(value["timestamp"]) * 1000 + value["nanos"]
        case TimestampType("ms"):
            return _micros(value) // 1000
        case ListType(element):
            return [plain(v, element) for v in value]
        case Scalar("day_interval"):
            return value // timedelta(milliseconds=1)
        case MapType(k, v):
            return [(plain(a, k), plain(b, v)) for a, b in value]
        case StructType(fields):
            return tuple(row_value(value, f.name, f.type) for f in fields)
        case TtlType(inner):
            return 0, plain(value, inner)
    return value


def _micros(value: datetime) -> int:
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return (value - _EPOCH) // _MICRO
