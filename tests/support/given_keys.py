"""Stored keys in the form in which users give them."""

from __future__ import annotations

from typing import Any

from statetool.tables.keys.text import KeyTime
from statetool.types import DateType, ListType, LogicalType, MapType, Scalar, StructType, TimestampType


def given_key(value: Any, logical: LogicalType) -> Any:
    """Return a plain value with its dates and times as such, not as numbers."""
    if value is None:
        return None
    match logical:
        case DateType():
            return KeyTime("date", value)
        case TimestampType():
            return KeyTime("timestamp", value)
        case Scalar("time"):
            return KeyTime("time", value)
        case Scalar("day_interval"):
            return KeyTime("interval", value)
        case ListType(element):
            return [given_key(v, element) for v in value]
        case MapType(key, item):
            return [(given_key(k, key), given_key(v, item)) for k, v in value]
        case StructType(fields):
            return tuple(given_key(v, f.type) for v, f in zip(value, fields, strict=True))
    return value
