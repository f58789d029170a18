"""Values of the table runtime in the corpora's notation: both dialects of :mod:`tests.support.expected.values`, and that of SQL jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, Literal

from statetool.serializers.sql import binary_format as fmt
from statetool.serializers.typeutils.temporal import civil_from_days
from tests.support.values.variants import variant_value

Dialect = Literal["serializer", "sql"]
ToJson = Callable[[Any, Any], Any]
_MILLI: Final = 1_000_000


def row_json(kind: str, fields: list[Any], dialect: Dialect) -> Any:
    """Return a row whose fields are already JSON."""
    return {"$rowdata": fields, "kind": kind} if dialect == "serializer" else {"row_kind": kind, "fields": fields}


def slot_json(value: Any, form: fmt.SlotFormat, dialect: Dialect, to_json: ToJson) -> Any:
    """Return the value of a slot; ``to_json`` converts the inner serializer's value of a raw value."""
    if value is None:
        return None

    def part(v: Any, f: fmt.SlotFormat) -> Any:
        return slot_json(v, f, dialect, to_json)

    match form:
        case fmt.RowFormat():
            return row_json("+I", [part(v, f) for v, f in zip(value, form.fields, strict=True)], dialect)
        case fmt.ArrayFormat():
            return [part(v, form.element) for v in value]
        case fmt.MapFormat():
            pairs = [[part(k, form.keys.element), part(v, form.values.element)] for k, v in value]
            return {"$map": pairs} if dialect == "serializer" else pairs
        case fmt.DecimalFormat():
            return decimal_json(value, dialect)
        case fmt.TimestampFormat():
            return timestamp_json(value if not form.compact else value * _MILLI, form.logical.zoned, dialect)  # type: ignore[attr-defined]
        case fmt.TimeFormat():
            return value // _MILLI if dialect == "serializer" else time_text(value)
        case fmt.BytesFormat():
            return {"$hex": value.hex()}
        case fmt.VariantFormat():
            return {"$json": variant_text(value)}
        case fmt.RawFormat() if form.inner is None and value == b"\0" and dialect == "sql":
            return None  # a data view: its serializer writes null as one byte, and the corpus has null
        case fmt.RawFormat() if form.inner is None:
            return bitmap_list(value) if "Bitmap" in type(form.logical).__name__ else {"$hex": value.hex()}
        case fmt.RawFormat():
            return {"$raw": True} if dialect == "serializer" else to_json(value, form.inner)
    if "DateType" in type(form.logical).__name__ and dialect == "sql":
        return date_text(value)
    return value


def decimal_json(value: Decimal, dialect: Dialect) -> Any:
    """Return a decimal: unscaled and scale, or plain text."""
    if dialect == "sql":
        return f"{value:f}"
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    return {"$dec": [str(unscaled), -int(exponent)]}


def timestamp_json(nanos: int, zoned: bool, dialect: Dialect) -> Any:
    """Return a timestamp: millis and nano of milli, or ISO text."""
    if dialect == "serializer":
        return {"$ts": [nanos // _MILLI, nanos % _MILLI]}
    days, rest = divmod(nanos, 86_400_000 * _MILLI)
    return f"{date_text(days)}T{time_text(rest)}{'Z' if zoned else ''}"


def date_text(days: int) -> str:
    """Return an ISO date."""
    year, month, day = civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def time_text(nanos: int) -> str:
    """Return an ISO time with as many digits as it needs."""
    second, nano = divmod(nanos, 1_000_000_000)
    text = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return text if nano == 0 else f"{text}.{nano:09d}".rstrip("0")


def variant_text(value: tuple[bytes, bytes]) -> str:
    """Return the JSON of a variant without spaces."""
    return json.dumps(variant_value(*value), separators=(",", ":"))


def bitmap_list(value: bytes | list[int]) -> list[int]:
    """Return the ints of a bitmap (already a list if it comes from Arrow)."""
    from pyroaring import BitMap

    return value if isinstance(value, list) else list(BitMap.deserialize(value))
