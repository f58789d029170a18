"""Two texts that a reader can tell apart, for values and types that differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from statetool.errors import printable
from statetool.types import DecimalType, ListType, LogicalType, MapType, Scalar, StructType, TimestampType
from statetool.types.logical import TtlType

#: Texts up to this length are compared at a glance.
_SHORT: Final = 60
_CONTEXT: Final = 10
_NULL: Final = "null"


def look_alike(before: str, after: str) -> bool:
    """Return True if a reader cannot tell two texts apart.

    Examples
    --------
    >>> look_alike("a", "a "), look_alike("é", "e\\u0301"), look_alike("\\n", "\\\\n"), look_alike("a", "b")
    (True, True, True, False)
    """
    return _look(before) == _look(after)


def _look(text: str) -> str:
    return " ".join(printable(unicodedata.normalize("NFKC", text)).split())


def shown_values(before: str | None, after: str | None) -> tuple[str, str]:
    """Return two different values as different texts; ``None`` is null.

    Examples
    --------
    >>> shown_values("1", "2"), shown_values(None, "x"), shown_values("null", None)
    (('1', '2'), ('null', 'x'), ("'null'", 'null'))
    >>> shown_values("a\\u00a0b", "a b")
    ("'a\\\\xa0b'", "'a b'")
    """
    first, second = (_NULL if v is None else v for v in (before, after))
    if not look_alike(first, second):
        return first, second
    quoted, other = (_NULL if v is None else ascii(v) for v in (before, after))
    return quoted, other


def difference_at(before: str | None, after: str | None) -> str:
    """Return the location of the first difference of two long texts, empty for short ones.

    Examples
    --------
    >>> difference_at("x" * 100 + "a", "x" * 100 + "b")
    'character 100: xxxxxxxxxxa, xxxxxxxxxxb'
    """
    if before is None or after is None or max(len(before), len(after)) <= _SHORT:
        return ""
    at = first_difference(before, after)
    near = slice(max(0, at - _CONTEXT), at + _CONTEXT)
    return f"character {at:,}: {before[near]}, {after[near]}"


def first_difference(before: str | bytes, after: str | bytes) -> int:
    """Return the position from which two texts or byte strings differ.

    Examples
    --------
    >>> first_difference(b"abc", b"abd"), first_difference("ab", "abc")
    (2, 2)
    """
    pairs: Iterable[tuple[object, object]] = zip(before, after, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def different_part(before: LogicalType, after: LogicalType) -> tuple[str, str, str]:
    """Return the path of the first different part of two types, and its two types as text.

    Examples
    --------
    >>> old, new = (StructType.of(id=Scalar("int64"), tags=ListType(Scalar(t))) for t in ("string", "binary"))
    >>> different_part(old, new)
    ('tags.element', 'string', 'binary')
    """
    match before, after:
        case ListType(a), ListType(b):
            return _inside("element", a, b)
        case MapType(a, value), MapType(b, other):
            return _inside("key", a, b) if a != b else _inside("value", value, other)
        case TtlType(a), TtlType(b):
            return _inside("value", a, b)
        case StructType(fields), StructType(others) if [f.name for f in fields] == [f.name for f in others]:
            for old, new in zip(fields, others, strict=True):
                if old.type != new.type:
                    return _inside(old.name, old.type, new.type)
    first, second = type_text(before), type_text(after)
    return "", *((first, second) if first != second else (repr(before), repr(after)))


def _inside(step: str, before: LogicalType, after: LogicalType) -> tuple[str, str, str]:
    path, first, second = different_part(before, after)
    return f"{step}.{path}" if path else step, first, second


def type_text(logical: LogicalType) -> str:
    """Return a logical type as text.

    Examples
    --------
    >>> type_text(MapType(Scalar("string"), StructType.of(a=DecimalType(10, 2))))
    'map<string, struct<a: decimal(10, 2)>>'
    """
    match logical:
        case Scalar(name):
            return name
        case DecimalType(precision, scale):
            return f"decimal({precision}, {scale})"
        case TimestampType(unit, zoned):
            return f"timestamp({unit}, {'zoned' if zoned else 'local'})"
        case ListType(element):
            return f"list<{type_text(element)}>"
        case MapType(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case TtlType(value):
            return f"ttl<{type_text(value)}>"
        case StructType(fields):
            return f"struct<{', '.join(f'{f.name}: {type_text(f.type)}' for f in fields)}>"
    return type(logical).__name__.removesuffix("Type").lower()
