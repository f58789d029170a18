"""Keys allowed by pushed filters, so that only their key groups are read.

Spark pushes a conjunction of ``EqualTo``, ``EqualNullSafe`` and ``In`` (never an ``OR``) and evaluates all of them again on the rows read.
So a filter may be ignored, but must never exclude a key for which Spark's comparison is true: floating-point keys (``0.0 = -0.0``, many
NaNs), decimals (``1.0 = 1.00``), dates and timestamps are not looked up by their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.rowdata import RowDataSerializer
from statetool.serializers.tuples import TupleSerializer
from statetool.types import LogicalType, Scalar

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

KEY: Final = "key"
_KINDS: Final[dict[str, type]] = {
    "bool": bool, "int8": int, "int16": int, "int32": int, "int64": int, "string": str,
}  # fmt: skip
_MOST_COMBINATIONS: Final = 10_000
#: A serializer, or the type of a field without one.
KeyPart = Serializer | LogicalType


def allowed_keys(filters: Iterable[Filter], key: Serializer) -> list[Any] | None:
    """Return the keys that all filters together allow, as plain values of the key's serializer.

    Parameters
    ----------
    filters
        Filters pushed by Spark; filters on anything but the key are ignored.
    key
        Serializer of the operator's keys.

    Returns
    -------
    list or None
        ``None`` if the filters do not limit the keys to a small known set.
    """
    conditions = [c for f in filters if (c := _condition(f)) is not None]
    by_key = _intersect([_plain_values(values, key) for path, values in conditions if path == ()])
    by_field = _by_fields([(path[0], values) for path, values in conditions if len(path) == 1], key)
    keys = _intersect([by_key, by_field])
    if keys is None or not all(_same_after_writing(k, key) for k in keys):
        return None
    return keys


def _condition(f: Filter) -> tuple[tuple[str, ...], list[Any]] | None:
    """Return the path below ``key`` that a filter applies to, and the values that it allows there."""
    from pyspark.sql.datasource import EqualNullSafe, EqualTo, In

    if not isinstance(f, EqualTo | EqualNullSafe | In) or f.attribute[0] != KEY:
        return None
    if isinstance(f, EqualNullSafe) and f.value is None:
        return None  # the filter allows nulls
    values = list(f.value) if isinstance(f, In) else [f.value]
    return tuple(f.attribute[1:]), [v for v in values if v is not None]


def _intersect(choices: list[list[Any] | None]) -> list[Any] | None:
    """Return the values that are in all lists; ``None``, meaning no limit, if there are no lists."""
    limiting = [p for p in choices if p is not None]
    if not limiting:
        return None
    return [v for v in dict.fromkeys(limiting[0]) if all(v in p for p in limiting[1:])]


def _by_fields(conditions: list[tuple[str, list[Any]]], key: Serializer) -> list[Any] | None:
    """Return the tuples or rows allowed by conditions on their fields, if every field has one."""
    fields = _fields(key)
    if not fields:
        return None
    choices = []
    for step, part in fields:
        allowed = _intersect([_plain_values(values, part) for name, values in conditions if name == step])
        if allowed is None:
            return None
        choices.append(allowed)
    return list(product(*choices)) if prod(map(len, choices)) <= _MOST_COMBINATIONS else None


def _fields(key: KeyPart) -> tuple[tuple[str, KeyPart], ...]:
    """Return the fields of a tuple or row key."""
    if isinstance(key, TupleSerializer):
        return key.children()
    if isinstance(key, RowDataSerializer):
        return tuple((f.name, f.type) for f in key.logical.fields)
    return ()


def _plain_values(values: list[Any], part: KeyPart) -> list[Any] | None:
    """Return Spark's values as plain ones; ``None`` if one has no plain value, or may equal several."""
    plain = [_plain(v, part) for v in values]
    return None if None in plain else plain


def _plain(value: Any, part: KeyPart) -> Any:
    if fields := _fields(part):
        if not isinstance(value, dict) or len(value) != len(fields):
            return None
        plain = tuple(_plain(value.get(step), inner) for step, inner in fields)
        return None if None in plain else plain
    logical = part if isinstance(part, LogicalType) else part.logical
    kind = _KINDS.get(logical.name) if isinstance(logical, Scalar) else None
    return value if kind is not None and type(value) is kind else None


def _same_after_writing(value: Any, serializer: Serializer) -> bool:
    """Return True if a key survives its serializer; an unknown enum constant, for example, does not."""
    out = Output()
    try:
        serializer.encode(out, value)
        return bool(serializer.decode(Cursor(bytes(out))) == value)
    except StatetoolError:
        return False
