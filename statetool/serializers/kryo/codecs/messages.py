"""Protobuf and Thrift messages, which chill's serializers write as varint n and n bytes, as JSON according to their declarations.

Protobuf needs a descriptor (``protoc --descriptor_set_out=FILE --include_imports``) and the package ``protobuf``. Thrift's binary protocol
contains types and field ids; declarations add the names.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.serializers.kryo.codecs import protobuf
from statetool.serializers.kryo.codecs.thrift import ThriftReader
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


def to_tree(declared: ClassDeclaration, raw: bytes, thrift: ThriftReader) -> Any:
    """Return a message as JSON.

    Raises
    ------
    DecodeError
        Not such a message, or one that JSON cannot represent without loss.
    MissingDependencyError
        The package ``protobuf`` is not installed.
    """
    return protobuf.to_tree(declared, raw) if declared.kind == "protobuf" else thrift.to_tree(declared.name, raw)


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
