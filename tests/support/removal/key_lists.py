"""Random lists of keys, as plain values and as texts, with keys of other types that look alike."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias

from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
)

_DAY_NANOS: Final = 86_400_000_000_000
#: Whether a given value names a key: ``may`` if a number of another kind has the same value, which a command may take or refuse.
Fit: TypeAlias = Literal["yes", "may", "no"]


def fit(given: Any, key: Any, type: LogicalType) -> Fit:
    """Return whether a given plain value names a key of a type."""
    if given is None and isinstance(type, StructType) and key in ((None,), (None, "+I")):
        return "may"  # the only field may stand for the row
    if given is None or key is None:
        return "yes" if given is None and key is None else "no"
    match type:
        case Scalar("bool"):
            return _fit_exactly(given, key, bool)
        case Scalar("string"):
            return _fit_exactly(given, key, str)
        case Scalar("binary"):
            return _fit_exactly(given, key, bytes)
        case Scalar("float32" | "float64"):
            return _fit_float(given, key, single=type == Scalar("float32"))
        case DateType() | TimestampType() | Scalar("time"):
            return "yes" if given == iso_text(key, type) else "no"
        case Scalar() | BigIntegerType():
            return _fit_number(given, key, int)
        case BigDecimalType() | DecimalType():
            if isinstance(given, Decimal) and isinstance(type, BigDecimalType):
                return "yes" if given.as_tuple() == key.as_tuple() else "may" if given == key else "no"
            return _fit_number(given, key, Decimal)
        case StructType(fields):
            if (
                fields
                and fields[-1].name == "_kind"
                and isinstance(given, list | tuple)
                and len(given) == len(fields) - 1
            ):
                with_kind = (*given, "+I")  # may be left out
                if _fit_all(with_kind, key, [f.type for f in fields]) != "no":
                    return "may"
            whole = _fit_all(given, key, [f.type for f in fields])
            if (
                whole == "no"
                and len(fields) - (bool(fields) and fields[-1].name == "_kind") == 1
                and key[1:] in ((), ("+I",))
            ):
                return (
                    "no" if fit(given, key[0], fields[0].type) == "no" else "may"
                )  # the only field may stand for the row
            return whole
        case ListType() | MapType() if not isinstance(given, list):
            return "no"  # a tuple is not a list
        case ListType(element):
            return _fit_all(given, key, [element] * len(key))
        case MapType(of_key, of_value):
            return _fit_all(given, key, [StructType.of(k=of_key, v=of_value)] * len(key))
    raise AssertionError(type)


def iso_text(number: int, type: LogicalType) -> str:
    """Return a date, time or timestamp in ISO 8601."""
    match type:
        case DateType():
            return _date(number)
        case Scalar("time"):
            return _time_of_day(number)
    assert isinstance(type, TimestampType)
    nanos = number * {"ms": 1_000_000, "us": 1_000, "ns": 1}[type.unit]
    days, rest = divmod(nanos, _DAY_NANOS)
    return f"{_date(days)}T{_time_of_day(rest)}{'Z' if type.zoned else ''}"


def _date(days: int) -> str:
    """Return a date of the proleptic calendar, whose years repeat after 400."""
    cycles, rest = divmod(days + 719_162, 146_097)
    day = dt.date.fromordinal(rest + 1)
    year = day.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{day.month:02}-{day.day:02}"


def _time_of_day(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 1_000_000_000)
    digits = f".{fraction:09}" if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"


def given_form(key: Any, type: LogicalType) -> Any:
    """Return a plain key as a user gives it: dates and times are text."""
    if key is None:
        return None
    match type:
        case DateType() | TimestampType() | Scalar("time"):
            return iso_text(key, type)
        case StructType(fields):
            return tuple(given_form(k, f.type) for k, f in zip(key, fields, strict=True))
        case ListType(element):
            return [given_form(k, element) for k in key]
    return key


def _fit_exactly(given: Any, key: Any, kind: type) -> Fit:
    return "yes" if type(given) is kind and given == key else "no"


def _fit_number(given: Any, key: Any, kind: type) -> Fit:
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal):
        return "no"
    if isinstance(given, float) and not math.isfinite(given):
        return "no"
    return "no" if given != key else "yes" if type(given) is kind else "may"


def _fit_float(given: Any, key: float, *, single: bool) -> Fit:
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal):
        return "no"
    if not isinstance(given, float):
        return "may" if given == key else "no"
    if math.isnan(key) or key == 0:
        same = math.isnan(given) if math.isnan(key) else given == 0
        return "no" if not same else "yes" if struct.pack(">d", given) == struct.pack(">d", key) else "may"
    if (
        single
        and math.isfinite(given)
        and abs(given) < 3e38
        and struct.unpack(">f", struct.pack(">f", given))[0] == key
    ):
        return "yes" if given == key else "may"
    return "yes" if given == key else "no"


def _fit_all(given: Any, key: Any, types: Sequence[LogicalType]) -> Fit:
    if not isinstance(given, list | tuple) or len(given) != len(key):
        return "no"
    parts = {fit(g, k, t) for g, k, t in zip(given, key, types, strict=True)}
    return "no" if "no" in parts else "may" if "may" in parts else "yes"


def fit_json(given: Any, key: Any, type: LogicalType) -> Fit:
    """Return whether a given value names a key with parts that are objects of Kryo: their JSON is the same with other spaces."""
    exact = fit(given, key, type)
    if exact == "no" and fit(_compact(given), _compact(key), type) != "no":
        return "may"
    return exact


def _compact(value: Any) -> Any:
    """Return a value whose JSON texts of objects and lists have no spaces."""
    match value:
        case str() if value.strip()[:1] in ("{", "["):
            try:
                return json.dumps(json.loads(value), separators=(",", ":"))
            except ValueError:
                return value
        case list() | tuple():
            return value.__class__(_compact(v) for v in value)
    return value


def lookalikes(key: Any) -> list[Any]:
    """Return values of other types that look like a key, or that differ from it a little."""
    match key:
        case bool():
            return [int(key), float(key), str(key), str(key).lower(), b"\1" if key else b"\0", not key]
        case int():
            return [
                float(key) if abs(key) < 1 << 53 else key + 1,
                str(key),
                f"0{key}",
                f" {key}",
                key == 1,
                Decimal(key),
                key + 1,
                -key,
                key + (1 << 32),
                key + (1 << 64),
            ]
        case float():
            return [
                int(key) if math.isfinite(key) else 0,
                str(key),
                -key,
                Decimal(repr(key)),
                key == 1.0,
                math.nextafter(key, math.inf),
            ]
        case str():
            more: list[Any] = [
                key + " ",
                " " + key,
                key + "\0",
                key.upper(),
                key.lower(),
                key[:-1],
                key.encode("utf-8", "surrogatepass"),
                [key],
                (key,),
                "null",
                "",
            ]
            if key.isascii() and key.strip("-").isdigit():
                more += [int(key), str(int(key)), f"0{key}", float(key)]
            return more
        case bytes():
            return [key + b"\0", key.hex(), key.decode("latin-1"), key[:-1]]
        case Decimal():
            return [float(key), str(key), key * Decimal("1.0"), key.normalize(), -key]
        case tuple() if key:
            r = list(key)
            return [r, (*key, None), key[:-1], key[0], *((alike, *key[1:]) for alike in lookalikes(key[0])[:4])]
        case list():
            return [tuple(key), [*key, None], key[:-1], *key[:1]]
    return ["null", 0, "", False]


#: Keys that hardly any job has.
STRANGE: Final = (
    "no such key",
    -987654321,
    "007",
    True,
    1,
    1.0,
    None,
    "",
    b"",
    Decimal("1.0"),
    0.0,
    -0.0,
    math.nan,
    ("no", 1),
    "None",
)


def draw_keys(r: random.Random, own: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Draw some keys of an operator, keys of other operators, lookalikes and keys that do not exist."""
    given = r.sample(list(own), min(len(own), r.choice((1, 1, 2, 3, 8))))
    kind = r.random()
    if kind < 0.35 or not given:
        pass
    elif kind < 0.6:
        given[r.randrange(len(given))] = r.choice(lookalikes(r.choice(given)))
    elif kind < 0.75:
        given.append(r.choice(lookalikes(r.choice(given))))
    elif kind < 0.85 and others:
        given.append(r.choice(list(others)))
    else:
        given.append(r.choice(STRANGE))
    r.shuffle(given)
    return given


def to_json(key: Any) -> Any:
    """Return a key as ``--keys`` takes it (:mod:`statetool.tables.keys.text`)."""
    match key:
        case tuple():
            return {"tuple": [to_json(k) for k in key]}
        case list():
            return [to_json(k) for k in key]
        case bytes():
            return {"bytes": key.hex()}
        case Decimal():
            return {"decimal": str(key)}
        case float() if not math.isfinite(key):
            return {"float": struct.pack(">d", key).hex()}
        case bool() | None:
            return key
        case int() if not -(1 << 63) <= key < 1 << 63:
            return {"int": hex(key)}
        case str() if any("\ud800" <= c <= "\udfff" for c in key):
            return {"str": key.encode("utf-8", "surrogatepass").hex()}
    return key


def from_json(tree: Any) -> Any:
    """Return the key of a form that :func:`to_json` returns."""
    match tree:
        case list():
            return [from_json(t) for t in tree]
        case {"tuple": parts}:
            return tuple(from_json(t) for t in parts)
        case {"bytes": text}:
            return bytes.fromhex(text)
        case {"decimal": text}:
            return Decimal(text)
        case {"float": text}:
            return struct.unpack(">d", bytes.fromhex(text))[0]
        case {"int": text}:
            return int(text, 16)
        case {"str": text}:
            return bytes.fromhex(text).decode("utf-8", "surrogatepass")
    return tree


def to_text(keys: Sequence[Any]) -> str:
    """Return the text of ``--keys``."""
    return json.dumps([to_json(k) for k in keys])


def to_line(r: random.Random, key: Any) -> str:
    """Return a line of ``--keys-from``: a string sometimes as a bare word."""
    if isinstance(key, str) and key and r.random() < 0.7 and "\n" not in key and key.isprintable() and key.isascii():
        return key
    return json.dumps(to_json(key))
