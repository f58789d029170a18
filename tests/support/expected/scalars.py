"""Numbers, times and texts as the JSON of the corpora, and comparison of such values."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final, Literal

from statetool.serializers.typeutils.temporal import civil_from_days

Style = Literal["savepoint", "serializer"]
_BILLION: Final = 1_000_000_000


def same(actual: Any, expected: Any) -> bool:
    """Compare exactly: types of JSON values and signs of zeros count; a float may be written as an integer."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, float) and isinstance(expected, int | float):
        return actual == expected and math.copysign(1, actual) == math.copysign(1, expected)
    if type(actual) is not type(expected):
        return False
    if isinstance(actual, list):
        return len(actual) == len(expected) and all(map(same, actual, expected))
    if isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(same(actual[k], expected[k]) for k in actual)
    return bool(actual == expected)


def json_text(value: Any) -> str:
    """Return the text by which the corpora sort: ASCII, everything else as ``\\uXXXX`` of UTF-16 code units."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            raw = value.encode("utf-16-be", "surrogatepass")
            units = [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]
            return '"' + "".join(_escape(u) for u in units) + '"'
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case dict():
            return "{" + ",".join(f"{json_text(k)}:{json_text(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"{value!r} is not JSON")


def _escape(unit: int) -> str:
    if unit in (0x22, 0x5C):
        return "\\" + chr(unit)
    return chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}"


def float_json(value: float, style: Style) -> Any:
    if math.isfinite(value):
        return value
    text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return {"$f" if style == "serializer" else "$double": text}


def decimal_json(value: Decimal, style: Style) -> Any:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0") or "0"
    minus = "-" if sign and text != "0" else ""
    return {"$dec": [minus + text, -exponent]} if style == "serializer" else {"$decimal": f"{value:f}"}


def iso_date(days: int) -> str:
    year, month, day = civil_from_days(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def fraction(nanos: int) -> str:
    if nanos == 0:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits


def clock(nanos: int) -> tuple[int, int, int, int]:
    seconds, nano = divmod(nanos, _BILLION)
    return seconds // 3600, seconds // 60 % 60, seconds % 60, nano


def time_json(nanos: int, style: Style) -> Any:
    hour, minute, second, nano = clock(nanos)
    if style == "serializer":
        return {"$time": [hour, minute, second, nano]}
    # java.time omits the seconds if they are zero.
    return f"{hour:02d}:{minute:02d}" + (f":{second:02d}{fraction(nano)}" if second or nano else "")


def timestamp_json(nanos: int, zoned: bool, style: Style) -> Any:
    days, rest = divmod(nanos, 86400 * _BILLION)
    if zoned:
        if style == "serializer":
            return {"$instant": [nanos // _BILLION, nanos % _BILLION]}
        hour, minute, second, nano = clock(rest)
        return f"{iso_date(days)}T{hour:02d}:{minute:02d}:{second:02d}{fraction(nano)}Z"
    if style == "serializer":
        return {"$datetime": [{"$date": list(civil_from_days(days))}, time_json(rest, style)]}
    return f"{iso_date(days)}T{time_json(rest, style)}"


def millis_json(value: int | None, _: Any, style: Style) -> Any:
    if value is None or style == "savepoint":
        return None if value is None else timestamp_json(value * 1_000_000, True, style)
    return {"$millis": value}


def sql_date_json(value: int | None, s: Any, style: Style) -> Any:
    return millis_json(value, s, style) if value is None or style == "serializer" else iso_date(value // 86_400_000)


def sql_time_json(value: int | None, s: Any, style: Style) -> Any:
    if value is None or style == "serializer":
        return millis_json(value, s, style)
    hour, minute, second, _ = clock(value % 86_400_000 * 1_000_000)
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def sql_timestamp_json(value: int | None, _: Any, style: Style) -> Any:
    if value is None or style == "savepoint":
        return None if value is None else timestamp_json(value, True, style)
    return {"$timestamp": [value // 1_000_000, value % _BILLION]}
