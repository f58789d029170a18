"""Given keys as plain values of the type of an operator's keys. A key of one type is never one of another: 1, 1.0, true and "1" differ.

Texts without a type (:class:`~statetool.tables.keys.text.KeyText`) are keys of each type that writes exactly this text:

=================  ============================================================
type               text
=================  ============================================================
text, enums        any
booleans           ``true``, ``false``
whole numbers      digits without leading zeros
FLOAT, DOUBLE      with a point or an exponent; ``NaN``, ``Infinity``
decimals           digits, with or without a point
dates, times       ISO 8601; with a time zone if the type has one
rows of one field  the field
=================  ============================================================
"""

from __future__ import annotations

import calendar
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.rowdata import BinaryDataSerializer, RowDataSerializer
from statetool.serializers.typeutils.row import KIND_FIELD, ROW_KINDS, RowSerializer
from statetool.tables.keys.text import Key, KeyFields, KeyText, KeyTime, exact_float, show_key
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    BitmapType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
)

#: A serializer, or the type of a part without one.
KeyPart = Serializer | LogicalType
_INTEGERS: Final = {"int8", "int16", "int32", "int64"}
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]*")
_FRACTION: Final = re.compile(r"-?(0|[1-9][0-9]*)(?=[.eE])(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_NO_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DATE: Final = re.compile(r"([+-]?[0-9]{4,9})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_ZONE: Final = re.compile(r"Z|([+-])([0-9]{2}):?([0-9]{2})")
_PLAIN_HINT: Final = "keys are given as plain values: numbers, strings, tuples of them"
#: Integers up to this are floats exactly.
_LARGEST_SHOWN: Final = 1 << 53
_PER_SECOND: Final = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_SECONDS: Final = 86_400
#: The calendar repeats after 400 years.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097


class KeyTypeError(EncodeError):
    """A given key that is no key of an operator's type. ``reason`` says why without the key, as in "not a whole number"."""

    reason: str = ""

    @classmethod
    def of(cls, message: str, reason: str, hint: str = "") -> KeyTypeError:
        """Return the error with a reason."""
        error = cls(message, hint=hint)
        error.reason = reason
        return error


class _MismatchError(Exception):
    """Why a part of a key does not fit; ``args`` are the reason and the path of the part."""


def parse_key(key: Key, serializer: Serializer) -> Any:
    """Return a given key as a plain value of its type (:mod:`statetool.types.logical`).

    Raises
    ------
    KeyTypeError
        The key is no key of this type.
    """
    try:
        return _parse(key, serializer)
    except _MismatchError as mismatch:
        reason, *path = mismatch.args
        part = f", of which {'.'.join(reversed(path))} is" if path else " is"
        message = f"the key {show_key(key)}{part} {reason}, but the keys are of type {serializer.type_name}"
        raise KeyTypeError.of(message, reason, hint=_hint(key, serializer)) from None


def kind_of(part: KeyPart) -> str:
    """Return a word for the values that a key of a type stands for. Keys of types of the same kind are equal if their values are."""
    logical = part if isinstance(part, LogicalType) else part.logical
    match logical:
        case Scalar("int8" | "int16" | "int32" | "int64") | BigIntegerType():
            return "whole number"
        case Scalar("float32" | "float64"):
            return "floating-point number"
        case DecimalType() | BigDecimalType():
            return "decimal"
        case Scalar(name):
            return name
        case StructType():
            fields = _fields(part)
            if _is_row(part) and len(fields) == 1:
                return kind_of(fields[0][1])
            return f"({', '.join(kind_of(inner) for _, inner in fields)})"
        case TimestampType(_, zoned):
            return "timestamp with time zone" if zoned else "timestamp"
    return type(logical).__name__


def _hint(key: Key, serializer: Serializer) -> str:
    """Return how the same digits or letters are written as a key of the type, if they can be."""
    if isinstance(key, int) and abs(key) > _LARGEST_SHOWN:
        return _PLAIN_HINT
    if isinstance(serializer, BinaryDataSerializer) and not isinstance(serializer, RowDataSerializer):
        return serializer.to_declare
    match serializer.logical, key:
        case Scalar("string"), int() | float():
            text = str(key).lower() if isinstance(key, bool) else str(key)
            return f"pass keys=[{text!r}], --keys '[\"{text}\"]'"
        case Scalar("float32" | "float64"), int() if not isinstance(key, bool):
            return f"pass keys=[{float(key)!r}], --keys '[{float(key)!r}]'"
        case Scalar(name), str() | float() if name in _INTEGERS and _WHOLE.fullmatch(str(key).removesuffix(".0")):
            text = str(key).removesuffix(".0")
            return f"pass keys=[{text}], --keys '[{text}]'"
        case ((DecimalType() | BigDecimalType()), int() | float()) if not isinstance(key, bool):
            return f"pass keys=[Decimal('{key}')], --keys '[{{\"decimal\": \"{key}\"}}]'"
        case DateType(), _:
            return "pass keys=[datetime.date(2026, 1, 31)], --keys 2026-01-31"
        case TimestampType(_, zoned), _:
            return f"pass --keys 2026-01-31T12:00:00{'Z' if zoned else ''}, or '[{{\"timestamp\": 1769860800000}}]' in the unit of the type"
        case StructType(), _:
            names = [name for name, _ in _fields(serializer)]
            return f"pass a tuple of {', '.join(names) or 'no fields'}: keys=[(...)], --keys '[{{\"tuple\": [...]}}]'"
        case Scalar("binary"), _:
            return "pass keys=[b'...'], --keys '[{\"bytes\": \"00ff\"}]'"
    return _PLAIN_HINT


def _parse(key: Key, part: KeyPart) -> Any:
    logical = part if isinstance(part, LogicalType) else part.logical
    if key is None:
        return (None,) if _is_row(part) and len(_fields(part)) == 1 else None
    text = key.text if isinstance(key, KeyText) else None
    match logical:
        case Scalar("string"):
            return _typed(key, str, "a string") if text is None else text
        case Scalar("bool"):
            if text is not None:
                return _word(text in ("true", "false"), text == "true", "not true or false")
            return _typed(key, bool, "a boolean")
        case Scalar("int8" | "int16" | "int32" | "int64" as name):
            return _check_bits(_whole(key, text), int(name.removeprefix("int")))
        case BigIntegerType():
            return _whole(key, text)
        case Scalar("float32"):
            return _float32(_floating(key, text))
        case Scalar("float64"):
            return _floating(key, text)
        case DecimalType() | BigDecimalType():
            if text is not None:
                return Decimal(_match(_DECIMAL, text, "not a decimal")[0])
            return _typed(key, Decimal, "a decimal")
        case DateType():
            return _timed(key, "date", parse_date)
        case Scalar("time"):
            return _timed(key, "time", lambda t: _time_of_day(t, 1_000_000_000))
        case Scalar("day_interval"):
            return _timed(key, "interval", lambda _: _fail("not an interval"))
        case TimestampType(unit, zoned):
            return _timed(key, "timestamp", lambda t: parse_timestamp(t, unit, zoned=zoned))
        case Scalar("binary") | BitmapType():
            return _typed(key, bytes, "bytes")
        case StructType():
            return _struct(key, part, logical)
        case ListType(element):
            items = _typed(key, list, "a list")
            return [_at(f"[{i}]", v, element) for i, v in enumerate(items)]
        case MapType(map_key, value):
            pairs = _typed(key, list, "a list of pairs")
            if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
                _fail("not a list of pairs")
            return [(_at("key", k, map_key), _at("value", v, value)) for k, v in pairs]
    return _fail("a value that cannot be given as a key") if text is not None else key


def _fail(reason: str) -> Any:
    raise _MismatchError(reason)


def _typed(key: Key, kind: type, name: str) -> Any:
    return key if type(key) is kind else _fail(_kind_of_value(key, name))


def _word(fits: bool, value: Any, reason: str) -> Any:
    return value if fits else _fail(reason)


def _match(pattern: re.Pattern[str], text: str, reason: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    return found or _fail(reason)


def _kind_of_value(key: Key, wanted: str) -> str:
    match key:
        case bool():
            return "a boolean"
        case int():
            return "a whole number" if "number" in wanted or wanted == "a decimal" else "a number"
        case float():
            return "a number with a fraction" if "number" in wanted or wanted == "a decimal" else "a number"
        case str():
            return "a string"
        case bytes():
            return "bytes"
        case Decimal():
            return "a decimal"
        case KeyTime(kind):
            return f"{'an' if kind == 'interval' else 'a'} {kind}"
        case tuple():
            return "a tuple"
        case list():
            return "a list"
        case KeyFields():
            return "an object of fields"
    return f"not {wanted}"


def _whole(key: Key, text: str | None) -> int:
    if text is not None:
        return int(_match(_WHOLE, text, "not a whole number")[0])
    return int(_typed(key, int, "a whole number"))


def _check_bits(number: int, bits: int) -> int:
    limit = 1 << (bits - 1)
    return number if -limit <= number < limit else _fail(f"a number beyond {bits} bits")


def _floating(key: Key, text: str | None) -> float:
    if text is None:
        return float(_typed(key, float, "a number with a fraction"))
    if text in _NO_NUMBERS:
        return _NO_NUMBERS[text]
    number = exact_float(_match(_FRACTION, text, "not a number with a fraction")[0])
    return _fail("a number with more digits than the type") if number is None else number


def _float32(number: float) -> float:
    """Return a number as a float of 4 bytes, of which it is the value or the shortest text."""
    if not math.isfinite(number):
        return number
    try:
        (rounded,) = struct.unpack(">f", struct.pack(">f", number))
    except OverflowError:
        return float(_fail("a number beyond 4 bytes"))
    import numpy as np

    if number not in (rounded, float(str(np.float32(rounded)))):
        _fail("not exactly a number of 4 bytes")
    return float(rounded)


def _timed(key: Key, kind: str, parse: Callable[[str], int]) -> int:
    """Return a date or time that is given with its kind, or as text in ISO 8601."""
    value: Any = key.text if isinstance(key, KeyText) else key
    if isinstance(key, KeyTime):
        if key.kind != kind:
            _fail(_kind_of_value(key, kind))
        value = key.value
        if isinstance(value, int):
            return value
    return parse(value) if isinstance(value, str) else _fail(_kind_of_value(key, f"a {kind}"))


def parse_date(text: str) -> int:
    """Return the days since 1970-01-01 of a date in ISO 8601, of any year."""
    year, month, day = map(int, _match(_DATE, text, "not a date as 2026-01-31").groups())
    cycle, within = divmod(year, _CYCLE_YEARS)
    within += _CYCLE_YEARS
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(within, month)[1]):
        _fail("not a date of the calendar")
    import datetime

    days = datetime.date(within, month, day).toordinal() - datetime.date(1970, 1, 1).toordinal()
    return days + (cycle - 1) * _CYCLE_DAYS


def _time_of_day(text: str, per_second: int) -> int:
    hour, minute, second, fraction = _match(_TIME, text, "not a time as 12:00:00").groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        _fail("not a time of a day")
    below, lost = divmod(int((fraction or "0").ljust(9, "0")), 1_000_000_000 // per_second)
    if lost:
        _fail("a time with more digits than the type")
    return (int(hour) * 3600 + int(minute) * 60 + int(second or 0)) * per_second + below


def parse_timestamp(text: str, unit: str, *, zoned: bool) -> int:
    """Return a timestamp in ISO 8601 as a number since 1970-01-01T00:00 in ``unit``."""
    date, _, time = text.replace(" ", "T", 1).partition("T")
    zone = re.search(r"(Z|[+-][0-9:]*)$", time)
    if (zone is not None) is not zoned:
        _fail(
            "not a timestamp with a time zone, as 2026-01-31T12:00:00Z"
            if zoned
            else "not a timestamp without a time zone, as 2026-01-31T12:00:00"
        )
    per_second = _PER_SECOND[unit]
    number = parse_date(date) * _DAY_SECONDS * per_second
    number += _time_of_day(time[: zone.start()] if zone else time, per_second)
    if zone is None:
        return number
    sign, hours, minutes = _match(_ZONE, zone[0], "a timestamp with an odd time zone").groups(default="0")
    offset = int(hours) * 3600 + int(minutes) * 60
    return number + (offset if sign == "-" else -offset) * per_second


def _is_row(part: KeyPart) -> bool:
    return isinstance(part, RowSerializer | RowDataSerializer)


def _fields(part: KeyPart) -> list[tuple[str, KeyPart]]:
    """Return the fields of a struct, without the kind of a row, with their serializers if they have some."""
    logical = part if isinstance(part, LogicalType) else part.logical
    assert isinstance(logical, StructType)
    nested = {} if isinstance(part, LogicalType) else dict(part.children())
    fields = [(f.name, f.type) for f in logical.fields if not (f.name == KIND_FIELD and _is_row(part))]
    return [(name, nested[name] if name in nested and nested[name].logical == kind else kind) for name, kind in fields]


def _struct(key: Key, part: KeyPart, logical: StructType) -> tuple[Any, ...]:
    fields = _fields(part)
    if isinstance(key, KeyFields):
        return _named_fields(key, fields)
    if _is_row(part) and len(fields) == 1 and not _is_whole_row(key, logical, fields[0][1]):
        return (_at(fields[0][0], key, fields[0][1]),)
    if not isinstance(key, tuple | list):
        return tuple(_fail("not a tuple" if isinstance(key, KeyText) else _kind_of_value(key, "a tuple")))
    kinds: tuple[Any, ...] = ()
    if len(key) == len(fields) + 1 == len(logical.fields):
        key, kinds = key[:-1], (key[-1],)
    if len(key) != len(fields):
        return tuple(_fail(f"a tuple of {len(key)} fields, not {len(fields)}"))
    values = [_at(name, v, inner) for v, (name, inner) in zip(key, fields, strict=True)]
    return (*values, *(_at(KIND_FIELD, kind, Scalar("string")) for kind in kinds))


def _named_fields(key: KeyFields, fields: Sequence[tuple[str, KeyPart]]) -> tuple[Any, ...]:
    given = dict(key.fields)
    names = [name for name, _ in fields]
    if unknown := [name for name in given if name not in names]:
        _fail(f"an object with a field {unknown[0]!r}, not one of {', '.join(names)}")
    if missing := [name for name in names if name not in given]:
        _fail(f"an object without the field {missing[0]!r}")
    return tuple(_at(name, given[name], inner) for name, inner in fields)


def _is_whole_row(key: Key, logical: StructType, field: KeyPart) -> bool:
    """Return True for a row of one field, False for the field alone."""
    if not isinstance(key, tuple | list):
        return False
    if len(key) == len(logical.fields) > 1:
        return key[-1] in ROW_KINDS
    return len(key) == 1 and not (isinstance(key, list) and _is_list(field))


def _is_list(part: KeyPart) -> bool:
    return isinstance(part if isinstance(part, LogicalType) else part.logical, ListType | MapType)


def _at(step: str, key: Key, part: KeyPart) -> Any:
    """Parse a part of a key. A word without a type has no parts."""
    try:
        return _parse(key, part)
    except _MismatchError as mismatch:
        raise _MismatchError(*mismatch.args, step) from None
