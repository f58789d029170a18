"""Values read back from Arrow as plain values (:mod:`statetool.types.logical`), read with ``nanos='companion'`` and
``decimals='string'`` so that nothing is lost on the way. Times are whole numbers: Python's have no years below 1 or above 9999."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)


def rows_with_numbers(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table, dates as days and timestamps as microseconds since 1970."""
    rows: list[dict[str, Any]] = table.cast(
        pa.schema([f.with_type(_numbers(f.type)) for f in table.schema])
    ).to_pylist()
    return rows


def _numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_numbers(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_part(kind.key_field), _part(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_part(kind.value_field))
    return kind


def _part(field: pa.Field) -> pa.Field:
    return field.with_type(_numbers(field.type))


def row_value(row: dict[str, Any], column: str, logical: LogicalType) -> Any:
    """Return the plain value of a column of a row, with its companion column merged in."""
    if isinstance(logical, TtlType):
        return None if row[column] is None else (0, row_value(row, column, logical.value))
    if isinstance(logical, TimestampType) and logical.unit == "ns":
        return None if row[column] is None else row[column] * 1000 + row[column + "_nanos"]
    return plain(row[column], logical)


def plain(value: Any, logical: LogicalType) -> Any:
    """Return a value of :func:`rows_with_numbers` as a plain value."""
    if value is None:
        return None
    match logical:
        case BigDecimalType():
            return Decimal(value)
        case BigIntegerType():
            return int(value)
        case TimestampType("ns"):
            return value["timestamp"] * 1000 + value["nanos"]
        case TimestampType("ms"):
            return value // 1000
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
