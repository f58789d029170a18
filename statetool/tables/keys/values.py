"""Values of a query's conditions on the column ``key``, as plain keys whose bytes are looked up.

A condition may be ignored, but must never exclude a key for which the engine's comparison is true. So keys of types with several equal
values are not looked up by their bytes: floating-point numbers (``0.0 = -0.0``, many NaNs), decimals (``1.0 = 1.00``), dates and timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer
from statetool.types import LogicalType, Scalar

T = TypeVar("T")

KEY: Final = "key"
_KINDS: Final[dict[str, type]] = {
    "bool": bool, "int8": int, "int16": int, "int32": int, "int64": int, "string": str,
}  # fmt: skip
#: A serializer, or the type of a field without one.
KeyPart = Serializer | LogicalType


def intersect(choices: Iterable[list[T] | None]) -> list[T] | None:
    """Return the values that are in all lists; ``None``, meaning no limit, if there are no lists."""
    limiting = [p for p in choices if p is not None]
    if not limiting:
        return None
    return [v for v in dict.fromkeys(limiting[0]) if all(v in p for p in limiting[1:])]


def key_fields(key: KeyPart) -> tuple[tuple[str, KeyPart], ...]:
    """Return the fields of a tuple or row key."""
    if isinstance(key, TupleSerializer):
        return key.children()
    if isinstance(key, RowDataSerializer):
        return tuple((f.name, f.type) for f in key.logical.fields)
    return ()


def plain_values(values: list[Any], part: KeyPart) -> list[Any] | None:
    """Return an engine's values as plain ones; ``None`` if one has no plain value, or may equal several."""
    plain = [_plain(v, part) for v in values]
    return None if None in plain else plain


def _plain(value: Any, part: KeyPart) -> Any:
    if fields := key_fields(part):
        if not isinstance(value, dict) or len(value) != len(fields):
            return None
        plain = tuple(_plain(value.get(step), inner) for step, inner in fields)
        return None if None in plain else plain
    logical = part if isinstance(part, LogicalType) else part.logical
    kind = _KINDS.get(logical.name) if isinstance(logical, Scalar) else None
    return value if kind is not None and type(value) is kind else None


def can_look_up(keys: Iterable[Any], key: Serializer) -> bool:
    """Return True if all keys survive their serializer; an unknown enum constant, for example, does not."""
    return all(_same_after_writing(k, key) for k in keys)


def _same_after_writing(value: Any, serializer: Serializer) -> bool:
    out = Output()
    try:
        serializer.encode(out, value)
        return bool(serializer.decode(Cursor(bytes(out))) == value)
    except StatetoolError:
        return False
