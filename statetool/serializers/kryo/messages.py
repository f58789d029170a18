"""Protobuf and Thrift messages, which chill's serializers write as varint n and n bytes: JSON by what the user declared.

Protobuf needs a descriptor (``protoc --descriptor_set_out=FILE --include_imports``) and the package ``protobuf``. Thrift's binary
protocol tells types and field ids itself; a declaration adds the names.
"""

from __future__ import annotations

import base64
import importlib
from functools import lru_cache
from typing import Any, Final

from statetool.errors import DecodeError, EncodeError, MissingDependencyError
from statetool.io.cursor import Cursor
from statetool.types.declared import ClassDeclaration

#: Serializers of registrations whose bodies are messages.
SERIALIZERS: Final = ("chill.protobuf.ProtobufSerializer", "chill.thrift.TBaseSerializer")
_MAX_DEPTH: Final = 64


def to_tree(declared: ClassDeclaration, raw: bytes) -> Any:
    """Return a message as JSON.

    Raises
    ------
    DecodeError
        Not such a message, or one with fields that the descriptor does not know.
    MissingDependencyError
        The package ``protobuf`` is not installed.
    """
    return _protobuf_tree(declared, raw) if declared.kind == "protobuf" else _thrift_tree(declared, raw)


def from_tree(declared: ClassDeclaration, tree: Any) -> bytes:
    """Return the bytes of a message.

    Raises
    ------
    EncodeError
        Not the JSON of such a message; Thrift messages can only be read.
    """
    if declared.kind != "protobuf":
        raise EncodeError(f"{declared.name}: Thrift messages can be read, not written")
    json_format = _module("google.protobuf.json_format")
    try:
        message = json_format.ParseDict(tree, _message_class(declared.descriptor, declared.message)())
    except json_format.ParseError as e:
        raise EncodeError(f"not a {declared.message}: {e}") from e
    return bytes(message.SerializeToString(deterministic=True))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise MissingDependencyError(
            "Protobuf messages need the package protobuf", hint="pip install 'statetool[protobuf]'"
        ) from e


@lru_cache(maxsize=64)
def _message_class(descriptor: bytes, message: str) -> Any:
    descriptor_pb2 = _module("google.protobuf.descriptor_pb2")
    pool = _module("google.protobuf.descriptor_pool").DescriptorPool()
    found = descriptor_pb2.FileDescriptorSet.FromString(descriptor)
    for file in found.file:
        pool.Add(file)
    return _module("google.protobuf.message_factory").GetMessageClass(pool.FindMessageTypeByName(message))


def _protobuf_tree(declared: ClassDeclaration, raw: bytes) -> Any:
    json_format = _module("google.protobuf.json_format")
    decode_error = _module("google.protobuf.message").DecodeError
    try:
        message = _message_class(declared.descriptor, declared.message).FromString(raw)
    except decode_error as e:
        raise DecodeError(f"not a {declared.message}: {e}") from e
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    if known.ByteSize() != message.ByteSize():
        raise DecodeError(
            f"a {declared.message} with fields that its descriptor does not know",
            hint="declare it with a newer descriptor",
        )
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def _thrift_tree(declared: ClassDeclaration, raw: bytes) -> Any:
    c = Cursor(raw)
    found = _thrift_struct(c, dict(enumerate(declared.constants, 1)), 0)
    c.expect_end(f"a {declared.name}")
    return found


def _thrift_struct(c: Cursor, names: dict[int, str], depth: int) -> dict[str, Any]:
    found = {}
    while (kind := c.u1()) != 0:
        field = c.i2()
        found[names.get(field) or str(field)] = _thrift_value(c, kind, depth)
    return found


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
