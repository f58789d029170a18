"""Protobuf and Thrift messages, which chill's serializers write as varint n and n bytes, as JSON according to the user's declarations.

Protobuf needs a descriptor (``protoc --descriptor_set_out=FILE --include_imports``) and the package ``protobuf``. Thrift's binary protocol
contains types and field ids; a declaration adds the names.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.serializers.kryo import protobuf
from statetool.types.declared import ClassDeclaration

#: Supertypes of all messages: jobs assign a default serializer to these, and a field of such a type may hold any message.
ABSTRACT: Final = frozenset(
    {
        "com.google.protobuf.AbstractMessage",
        "com.google.protobuf.GeneratedMessage",
        "com.google.protobuf.GeneratedMessageV3",
        "com.google.protobuf.Message",
        "com.google.protobuf.MessageLite",
        "org.apache.thrift.TBase",
    }
)
#: Serializers of registrations whose bodies are messages.
SERIALIZERS: Final = ("com.twitter.chill.protobuf.ProtobufSerializer", "com.twitter.chill.thrift.TBaseSerializer")
_MAX_DEPTH: Final = 64


def to_tree(declared: ClassDeclaration, raw: bytes) -> Any:
    """Return a message as JSON.

    Raises
    ------
    DecodeError
        Not such a message, or one that JSON cannot represent without loss.
    MissingDependencyError
        The package ``protobuf`` is not installed.
    """
    return protobuf.to_tree(declared, raw) if declared.kind == "protobuf" else _thrift_tree(declared, raw)


def from_tree(declared: ClassDeclaration, tree: Any) -> bytes:
    """Return the bytes of a message.

    Raises
    ------
    EncodeError
        Not valid JSON of such a message. Thrift messages can only be read.
    """
    if declared.kind != "protobuf":
        raise EncodeError(f"{declared.name}: Thrift messages can be read, not written")
    return protobuf.from_tree(declared, tree)


def _thrift_tree(declared: ClassDeclaration, raw: bytes) -> Any:
    c = Cursor(raw)
    tree = _thrift_struct(c, dict(enumerate(declared.constants, 1)), 0)
    c.expect_end(f"a {declared.name}")
    return tree


def _thrift_struct(c: Cursor, names: dict[int, str], depth: int) -> dict[str, Any]:
    fields = {}
    while (kind := c.u1()) != 0:
        field_id = c.i2()
        fields[names.get(field_id) or str(field_id)] = _thrift_value(c, kind, depth)
    return fields


def _thrift_value(c: Cursor, kind: int, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise c.fail(f"Thrift values nested deeper than {_MAX_DEPTH}")
    match kind:
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
            return c.i4()
        case 10:
            return c.i8()
        case 11:
            raw = c.bytes4("Thrift string")
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(raw).decode("ascii")}
        case 12:
            return _thrift_struct(c, {}, depth + 1)
        case 13:
            key, item = c.u1(), c.u1()
            n = c.count("Thrift map entries")
            return [[_thrift_value(c, key, depth + 1), _thrift_value(c, item, depth + 1)] for _ in range(n)]
        case 14 | 15:
            element = c.u1()
            return [_thrift_value(c, element, depth + 1) for _ in range(c.count("Thrift elements"))]
    raise c.fail(f"Thrift type {kind}", pos=c.pos - 1)
