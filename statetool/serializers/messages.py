"""Protobuf messages after their length, as ``TypeSerializer`` classes of libraries and jobs write them.

The length is a varint (``writeDelimitedTo``, ``CodedOutputStream.writeMessageNoTag``) or an i4 (``writeInt``). A user declares the class of
the snapshot with the class of the message. The payload of the snapshot is one of those that public serializers write:

* utf name of the Java class of the message
* nothing (``SimpleTypeSerializerSnapshot``), in which case one message must be declared for the snapshot

The name is recognized if the class is declared. The name of another class is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from statetool.errors import DecodeError, FormatError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.kryo import text
from statetool.serializers.kryo.codecs import protobuf
from statetool.types import LogicalType, Scalar
from statetool.types.declared import ClassDeclaration, LengthPrefix, TypeContext

#: A class in a package, by Java's conventions: state names rarely look like this.
_CLASS_NAME: Final = re.compile(r"(?:[a-z_]\w*\.)+[A-Z][\w$]*")


class MessageSerializer(Serializer):
    """Protobuf messages after their length, shown as JSON according to a descriptor.

    ``payload`` is the exact bytes of the snapshot after its version.
    """

    def __init__(
        self, name: str, version: int, payload: bytes, message: ClassDeclaration, length_prefix: LengthPrefix | str
    ) -> None:
        super().__init__(name, version)
        self.payload = payload
        self.message = message
        self.length_prefix = length_prefix

    @property
    def type_name(self) -> str:
        return f"Protobuf {self.message.message}"

    @property
    def logical(self) -> LogicalType:
        return Scalar("string")

    def decode(self, c: Cursor) -> str:
        start = c.pos
        raw = self._take(c)
        try:
            return text.as_json(protobuf.to_tree(self.message, raw))
        except DecodeError as error:
            raise error.at(offset=c.base + start) from error

    def skip(self, c: Cursor) -> None:
        self._take(c)

    def encode(self, out: Output, value: Any) -> None:
        raw = protobuf.from_tree(self.message, text.of_json(value))
        if self.length_prefix == "int":
            out.bytes4(raw)
            return
        out.varint(len(raw))
        out += raw

    def write_payload(self, out: Output) -> None:
        out += self.payload

    def _take(self, c: Cursor) -> bytes:
        return c.bytes4("a message") if self.length_prefix == "int" else c.take(c.varint(), "a message")


class DeclaredMessageSerializer(MessageSerializer):
    """Protobuf messages of a serializer that the user declared."""

    def declarations(self) -> tuple[ClassDeclaration, ...]:
        return (self.message,)


def declared_classes(types: TypeContext) -> Mapping[str, SnapshotClass]:
    """Return the snapshot classes of the ``TypeSerializer`` classes for which messages are declared, by full name."""
    names = {c.serializer for c in types.classes if c.kind == "protobuf" and c.serializer}
    return {name: SnapshotClass(_read, ()) for name in names}


def _read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    messages = {m.name: m for m in reader.types.messages_of(name)}
    named = _peek_text(c)
    if named in messages:
        c.utf()
        message = messages[named]
    elif _CLASS_NAME.fullmatch(named) and named not in reader.classes:
        raise UnknownSerializerError(
            f"{name} names {named}, which is not declared",
            hint=f'declare it: statetool.declare_protobuf("{named}", serializer="{name}", ...)',
        ).at(offset=c.base + start)
    elif len(messages) == 1:
        (message,) = messages.values()
    else:
        raise UnknownSerializerError(
            f"{name} does not name its message, and {' and '.join(sorted(messages))} are declared for it",
            hint="declare one of them for each load: statetool.load(..., declarations=[...])",
        ).at(offset=c.base + start)
    if message.needs_descriptor:
        raise UnknownSerializerError(
            f"the descriptor of the Protobuf message {message.name} is not known",
            hint="pass the job's jar: jars=[...] (--jar FILE), or the descriptor: statetool.declare_protobuf",
        ).at(offset=c.base + start)
    return DeclaredMessageSerializer(name, version, bytes(c.data[start : c.pos]), message, message.length_prefix)


def _peek_text(c: Cursor) -> str:
    """Return the text at the cursor, empty if there is none."""
    try:
        return Cursor(c.data, c.pos, c.end).utf()
    except FormatError:
        return ""
