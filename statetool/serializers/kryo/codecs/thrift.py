"""Structs of Thrift's binary protocol as JSON.

====================  ==================================================
struct (12), union    fields, each u1 type, i16 id, value; ended by u1 0
bool (2), byte (3)    u1
i16 (6), i32 (8)      big-endian
i64 (10)              big-endian
double (4)            f64 big-endian
string (11)           i32 size, bytes (UTF-8, or those of ``binary``, in base64)
map (13)              u1 type of keys, u1 type of values, i32 n, n pairs
set (14), list (15)   u1 type of elements, i32 n, n elements
====================  ==================================================

The protocol contains ids and no names. Names come from the declarations of classes: those of a field's struct or enum from its Java type.
A field without a name has its id instead, and a constant without a name its number.

A generated class skips a field of another type than its own: it keeps its id here, like a field that the class does not have. It does not
compare the types of elements, and reads other bytes. It refuses a struct without one of its required fields, or with a required
constant that it does not know. Follows ``TBinaryProtocol`` and the code that Thrift's Java compiler generates.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.types.declared import ClassDeclaration
from statetool.types.java import ARRAY, BOXES, JavaType

_MAX_DEPTH: Final = 64
_I32: Final = 8
_STRUCT: Final = 12
_SCALARS: Final = {"boolean": 2, "byte": 3, "double": 4, "short": 6, "int": _I32, "long": 10}
_WIRE_TYPES: Final = {
    **_SCALARS,
    **{box: _SCALARS[name] for box, name in BOXES.items() if name in _SCALARS},
    **dict.fromkeys(("java.lang.String", "java.nio.ByteBuffer", ARRAY), 11),
    **dict.fromkeys(("java.util.Map", "java.util.HashMap", "java.util.TreeMap", "java.util.EnumMap"), 13),
    **dict.fromkeys(("java.util.Set", "java.util.HashSet", "java.util.TreeSet", "java.util.EnumSet"), 14),
    **dict.fromkeys(("java.util.List", "java.util.ArrayList"), 15),
}
#: Java types of ``binary``. Arrays of other elements do not occur.
_BINARY: Final = ("java.nio.ByteBuffer", ARRAY)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a struct: its name and Java type, and the wire type that its class reads, ``None`` if it is unknown."""

    name: str
    kind: JavaType | None
    wire_type: int | None
    is_enum: bool


@dataclass(frozen=True, slots=True)
class _Struct:
    """Fields of a class by id, and the names of its required fields."""

    fields: Mapping[int, _Field]
    required: frozenset[str]


_UNDECLARED: Final = _Struct({}, frozenset())


class ThriftReader:
    """Reader of structs. The declaration of each class is looked up once.

    Parameters
    ----------
    find
        Returns the declaration of a class, ``None`` if it is not declared.
    """

    def __init__(self, find: Callable[[str], ClassDeclaration | None]) -> None:
        self._find = find
        self._structs: dict[str, _Struct] = {}
        self._constants: dict[str, Mapping[int, str]] = {}

    def to_tree(self, name: str, raw: bytes) -> dict[str, Any]:
        """Return a struct of a class as JSON.

        Raises
        ------
        FormatError
            Not exactly one struct, or one that its class refuses.
        """
        c = Cursor(raw)
        tree = self._struct(c, JavaType(name), 0)
        c.expect_end(f"a {name}")
        return tree

    def _struct(self, c: Cursor, kind: JavaType | None, depth: int) -> dict[str, Any]:
        struct = self._struct_of(kind)
        start = c.pos
        values: dict[str, Any] = {}
        found = set()
        while (wire_type := c.u1()) != 0:
            field_id = c.i2()
            field = struct.fields.get(field_id)
            if field is None or field.wire_type not in (None, wire_type):
                values[str(field_id)] = self._value(c, wire_type, None, depth)
                continue
            values[field.name] = value = self._value(c, wire_type, field.kind, depth)
            if not (field.is_enum and isinstance(value, int)):
                found.add(field.name)
        if missing := struct.required - found:
            raise c.fail(f"a {kind} without its required {', '.join(sorted(missing))}", pos=start)
        return values

    def _check_element(self, c: Cursor, wire_type: int, kind: JavaType | None, count: int) -> None:
        """Raise an error if a class reads elements of another type than those that are there."""
        expected = self._wire_type(kind)
        if count and expected not in (None, wire_type):
            raise c.fail(f"Thrift elements of type {wire_type}, which the class reads as {kind} ({expected})")

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
                return self._constants_of(kind).get(number, number)
            case 10:
                return c.i8()
            case 11:
                raw = c.bytes4("Thrift string")
                if kind is None or kind.name not in _BINARY:
                    with suppress(UnicodeDecodeError):
                        return raw.decode("utf-8")
                return {"base64": base64.b64encode(raw).decode("ascii")}
            case 12:
                return self._struct(c, kind, depth + 1)
            case 13:
                key, item = c.u1(), c.u1()
                key_kind, item_kind = kind.args if kind is not None and len(kind.args) == 2 else (None, None)
                count = c.count("Thrift map entries")
                self._check_element(c, key, key_kind, count)
                self._check_element(c, item, item_kind, count)
                return [
                    [self._value(c, key, key_kind, depth + 1), self._value(c, item, item_kind, depth + 1)]
                    for _ in range(count)
                ]
            case 14 | 15:
                element = c.u1()
                element_kind = kind.args[0] if kind is not None and len(kind.args) == 1 else None
                count = c.count("Thrift elements")
                self._check_element(c, element, element_kind, count)
                return [self._value(c, element, element_kind, depth + 1) for _ in range(count)]
        raise c.fail(f"Thrift type {wire_type}", pos=c.pos - 1)

    def _struct_of(self, kind: JavaType | None) -> _Struct:
        """Return the fields of a struct, none if its class is not declared as one."""
        if kind is None:
            return _UNDECLARED
        struct = self._structs.get(kind.name)
        if struct is None:
            declared = self._find(kind.name)
            struct = _UNDECLARED
            if declared is not None and declared.kind == "thrift":
                kinds = dict(declared.fields)
                fields = {i: self._field(name, kinds.get(name)) for i, name in declared.by_number.items()}
                struct = _Struct(fields, frozenset(declared.required))
            self._structs[kind.name] = struct
        return struct

    def _field(self, name: str, kind: JavaType | None) -> _Field:
        return _Field(name, kind, self._wire_type(kind), bool(self._constants_of(kind)))

    def _wire_type(self, kind: JavaType | None) -> int | None:
        if kind is None or kind.name in _WIRE_TYPES:
            return None if kind is None else _WIRE_TYPES[kind.name]
        if self._constants_of(kind):
            return _I32
        declared = self._find(kind.name)
        return _STRUCT if declared is not None and declared.kind == "thrift" else None

    def _constants_of(self, kind: JavaType | None) -> Mapping[int, str]:
        """Return the constants of an enum by number, none if its class is not declared as one."""
        if kind is None or kind.name in _WIRE_TYPES:
            return {}
        constants = self._constants.get(kind.name)
        if constants is None:
            declared = self._find(kind.name)
            constants = declared.by_number if declared is not None and declared.kind == "enum" else {}
            self._constants[kind.name] = constants
        return constants
