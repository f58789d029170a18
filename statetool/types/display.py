"""Plain values as readable text for messages: a date as ``2020-04-12``, not as its day number."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, Final

from statetool.types.logical import DateType, ListType, LogicalType, MapType, Scalar, StructType, TimestampType, TtlType

_LONGEST: Final = 100
_PER_SECOND: Final = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAYS_OF_400_YEARS: Final = 146_097


def display_value(value: Any, logical: LogicalType) -> str:
    """Return a plain value as one line of text; long ones are truncated."""
    text = _text(value, logical)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(value: Any, logical: LogicalType) -> str:
    if value is None:
        return "null"
    match logical:
        case DateType():
            return _date(value)
        case TimestampType(unit, zoned):
            days, time_of_day = divmod(value, 86_400 * _PER_SECOND[unit])
            return f"{_date(days)} {_time(time_of_day, _PER_SECOND[unit])}{'Z' if zoned else ''}"
        case Scalar("time"):
            return _time(value, _PER_SECOND["ns"])
        case Scalar("day_interval"):
            return f"{value} ms"
        case ListType(element):
            return f"[{', '.join(_text(v, element) for v in value)}]"
        case MapType(key, item):
            return f"{{{', '.join(f'{_text(k, key)}: {_text(v, item)}' for k, v in value)}}}"
        case StructType(fields):
            members = (f"{f.name}: {_text(v, f.type)}" for f, v in zip(fields, value, strict=False))
            return f"{{{', '.join(members)}}}"
        case TtlType(inner):
            return _text(value[1], inner)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def _date(days: int) -> str:
    """Return a day since 1970 as a date of any year: Python's ``date`` is limited to the years 1 to 9999."""
    cycles, day = divmod(days + _EPOCH - 1, _DAYS_OF_400_YEARS)
    equivalent = date.fromordinal(day + 1)
    year = equivalent.year + 400 * cycles
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{equivalent.month:02d}-{equivalent.day:02d}"


def _time(value: int, per_second: int) -> str:
    seconds, subseconds = divmod(value, per_second)
    fraction = f".{subseconds:0{len(str(per_second)) - 1}d}".rstrip("0") if subseconds else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
