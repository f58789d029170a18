"""Serializers of Stateful Functions (``org.apache.flink.statefun``), as confirmed by bytes of release 3.3.

``ProtobufTypeSerializer``: i4 length and a Protobuf message. Its snapshot, version 1, is i4 length and a message with the Java class (1), the
full name of the message (2) and its ``FileDescriptorSet`` (3), so that values are shown as JSON.

``RemoteValueSerializer``: i4 length and the bytes of a remote function. Its snapshot, version 1, is utf namespace and utf name of their type.

``MessageTypeSerializer``: i4 length and an ``Envelope`` (a Protobuf message with addresses and payload), which stays bytes. Its snapshot is
utf kind of payload and, since version 2, boolean and utf class of a custom payload serializer.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError, FormatError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.io.protobuf_wire import read_fields
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.messages import MessageSerializer
from statetool.types import LogicalType, Scalar
from statetool.types.declared import ClassDeclaration

_STATEFUN: Final = "org.apache.flink.statefun.flink"
_PAYLOADS: Final = frozenset({f"WITH_{n}_PAYLOADS" for n in ("PROTOBUF", "KRYO", "RAW", "CUSTOM")})


class FramedBytesSerializer(Serializer):
    """Bytes with their length, whose meaning only a function or the runtime of Stateful Functions knows."""

    def __init__(self, name: str, version: int, payload: bytes, type_name: str) -> None:
        super().__init__(name, version)
        self.payload = payload
        self._type_name = type_name

    @property
    def type_name(self) -> str:
        return self._type_name

    @property
    def logical(self) -> LogicalType:
        return Scalar("binary")

    def decode(self, c: Cursor) -> bytes:
        return c.bytes4(self._type_name)

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, bytes):
            raise EncodeError(f"a value of {self._type_name} is bytes, not {type(value).__name__}")
        out.bytes4(value)

    def write_payload(self, out: Output) -> None:
        out += self.payload


def _read_message(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    payload = c.bytes4("the description of a message")
    try:
        fields = dict(read_fields(payload))
        java_class, message = (fields[number].decode("utf-8") for number in (1, 2))
        descriptor = fields[3]
    except (FormatError, KeyError, UnicodeDecodeError) as error:
        raise c.fail("not a description of a message", pos=start) from error
    declared = ClassDeclaration(name=java_class, kind="protobuf", descriptor=descriptor, message=message)
    return MessageSerializer(name, version, bytes(c.data[start : c.pos]), declared, "int")


def _read_remote(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    namespace, type_name = c.utf(), c.utf()
    return FramedBytesSerializer(name, version, bytes(c.data[start : c.pos]), f"remote {namespace}/{type_name}")


def _read_envelope(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    payloads = c.utf()
    if payloads not in _PAYLOADS:
        raise c.fail(f"{payloads!r} is not a kind of payload of Stateful Functions", pos=start)
    if version > 1 and c.bool():
        c.utf()
    return FramedBytesSerializer(name, version, bytes(c.data[start : c.pos]), "message of Stateful Functions")


_PROTOBUF: Final = f"{_STATEFUN}.common.protobuf.ProtobufTypeSerializerSnapshot"
_REMOTE: Final = f"{_STATEFUN}.core.types.remote.RemoteValueSerializerSnapshot"
_MESSAGE: Final = f"{_STATEFUN}.core.message.MessageTypeSerializer$Snapshot"
#: An entry point per Java package.
MESSAGES: Final = {_PROTOBUF: SnapshotClass(_read_message, (1,))}
REMOTE_VALUES: Final = {_REMOTE: SnapshotClass(_read_remote, (1,))}
ENVELOPES: Final = {_MESSAGE: SnapshotClass(_read_envelope, (1, 2))}
