"""Structs of Thrift's binary protocol as JSON.

====================  ==================================================
struct (12), union    fields, each u1 type, i16 id, value; ended by u1 0
bool (2), byte (3)    u1
i16 (6), i32 (8)      big-endian
i64 (10)              big-endian
double (4)            f64 big-endian
string (11)           i32 size, bytes (UTF-8, or those of ``binary``)
map (13)              u1 type of keys, u1 type of values, i32 n, n pairs
set (14), list (15)   u1 type of elements, i32 n, n elements
====================  ==================================================

The protocol contains ids and no names. Names come from the declarations of classes: those of a field's struct or enum from its Java type.
A field without a name has its id instead, and a constant without a name its number. Follows ``TBinaryProtocol``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.types.declared import ClassDeclaration
from statetool.types.java import JavaType

_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of a struct's fields or an enum's constants by number, and the Java types of fields with structs or enums."""

    by_number: Mapping[int, str]
    kinds: Mapping[str, JavaType]


_NO_NAMES: Final = _Names({}, {})


class ThriftReader:
    """Reader of structs. The declaration of each class is looked up once.

    Parameters
    ----------
    find
        Returns the declaration of a class, ``None`` if it is not declared.
    """

    def __init__(self, find: Callable[[str], ClassDeclaration | None]) -> None:
        self._find = find
        self._names: dict[tuple[str, str], _Names] = {}

    def to_tree(self, name: str, raw: bytes) -> dict[str, Any]:
        """Return a struct of a class as JSON.

        Raises
        ------
        FormatError
            Not exactly one struct.
        """
        c = Cursor(raw)
        tree = self._struct(c, JavaType(name), 0)
        c.expect_end(f"a {name}")
        return tree

    def _struct(self, c: Cursor, kind: JavaType | None, depth: int) -> dict[str, Any]:
        names = self._names_of(kind, "thrift")
        fields = {}
        while (wire_type := c.u1()) != 0:
            field_id = c.i2()
            name = names.by_number.get(field_id) or str(field_id)
            fields[name] = self._value(c, wire_type, names.kinds.get(name), depth)
        return fields

    def _value(self, c: Cursor, wire_type: int, kind: JavaType | None, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise c.fail(f"Thrift values nested deeper than {_MAX_DEPTH}")
        match wire_type:
            case 2:
                return c.bool()
            case 3:
                return c.i1()
            case 4:
                value = c.f8()
                return value if value - value == 0 else str(value)
            case 6:
                return c.i2()
            case 8:
                number = c.i4()
                return self._names_of(kind, "enum").by_number.get(number, number)
            case 10:
                return c.i8()
            case 11:
                raw = c.bytes4("Thrift string")
                try:
                    return raw.decode("utf-8")
                except UnicodeDecodeError:
                    return {"base64": base64.b64encode(raw).decode("ascii")}
            case 12:
                return self._struct(c, kind, depth + 1)
            case 13:
                key, item = c.u1(), c.u1()
                key_kind, item_kind = kind.args if kind is not None and len(kind.args) == 2 else (None, None)
                return [
                    [self._value(c, key, key_kind, depth + 1), self._value(c, item, item_kind, depth + 1)]
                    for _ in range(c.count("Thrift map entries"))
                ]
            case 14 | 15:
                element = c.u1()
                element_kind = kind.args[0] if kind is not None and len(kind.args) == 1 else None
                count = c.count("Thrift elements")
                return [self._value(c, element, element_kind, depth + 1) for _ in range(count)]
        raise c.fail(f"Thrift type {wire_type}", pos=c.pos - 1)

    def _names_of(self, kind: JavaType | None, wanted: str) -> _Names:
        """Return the names of a struct (``thrift``) or an ``enum``, none if its class is not declared as such."""
        if kind is None:
            return _NO_NAMES
        names = self._names.get((kind.name, wanted))
        if names is None:
            declared = self._find(kind.name)
            names = _NO_NAMES
            if declared is not None and declared.kind == wanted:
                names = _Names(declared.by_number, dict(declared.fields))
            self._names[kind.name, wanted] = names
        return names
