"""``CoderTypeSerializer`` of Beam's Flink runner: a value in the nested encoding of a Beam coder.

Snapshots: up to the runner of Flink 1.16, ``CoderTypeSerializer$LegacySnapshot`` has no content, and Flink writes the Java stream of the
serializer before it. Since then, ``UnversionedTypeSerializerSnapshot``, version 1, is an i32 size and that stream, compressed by
``SnappyOutputStream`` (82 ``SNAPPY`` 00, i32 version, i32 compatible version, then i32 size and a Snappy block, until the end). The
serializer has the coder in its field ``coder``. Follows ``org.apache.beam.runners.flink.translation.types``, Beam 2.31 to 2.68.
"""

from __future__ import annotations

from typing import Any, Final

import cramjam

from statetool.errors import EncodeError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaObject, read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord, Rest
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.libraries.beam.leaves import Coder
from statetool.serializers.libraries.beam.tree import coder_of
from statetool.types import LogicalType

_SNAPPY: Final = b"\x82SNAPPY\0"
_MOST_BYTES: Final = 64 << 20


class BeamSerializer(Serializer):
    """A value of a Beam coder; ``tree`` is the coder as a Java object."""

    def __init__(self, name: str, version: int, tree: Any, coder: Coder, payload: bytes) -> None:
        super().__init__(name, version)
        self.tree = tree
        self.coder = coder
        self._payload = payload

    @property
    def type_name(self) -> str:
        return f"Beam {self.coder.name}"

    @property
    def logical(self) -> LogicalType:
        return self.coder.logical

    @property
    def needs_frame(self) -> bool:
        return self.coder.framed

    @property
    def missing_declaration_hint(self) -> str:
        return "an unknown coder, or one of the job: its values stay bytes" if self.coder.framed else ""

    def decode(self, c: Cursor) -> Any:
        return self.coder.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        try:
            self.coder.encode(out, value)
        except (TypeError, AttributeError, OverflowError) as e:
            raise EncodeError(f"{value!r} is not a value of {self.type_name}") from e

    def hash_code(self, value: Any) -> int:
        """``ByteBuffer.hashCode`` of the encoded key, because the runner passes keys to Flink as ``ByteBuffer``."""
        if self.coder.name != "ByteBuffer":
            raise UnsupportedError(f"hashCode() of {self.type_name} is not known")
        code = 1
        for b in reversed(value):
            code = (31 * code + (b - 256 if b > 127 else b)) & 0xFFFFFFFF
        return code - (1 << 32) if code >> 31 else code

    def program(self) -> Op:
        return Rest() if self.coder.framed and self.coder.least == 0 else PerRecord(self.decode)

    def write_payload(self, out: Output) -> None:
        out += self._payload


def _read_coder(c: Cursor) -> tuple[Any, Coder]:
    """Read the Java stream of a ``CoderTypeSerializer``, and return its coder as an object and as a coder."""
    start = c.pos
    tree = read_java_stream(c)
    c.expect_end("the serializer of Beam")
    if not isinstance(tree, JavaObject) or "coder" not in tree.fields:
        raise c.fail("a serializer of Beam without a coder", pos=start)
    try:
        return tree.fields["coder"], coder_of(tree.fields["coder"])
    except (RecursionError, UnsupportedError) as error:
        raise c.fail(f"the coder of a serializer of Beam: {error}", pos=start) from error


def _read_stream(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    return BeamSerializer(name, version, *_read_coder(c), b"")


def _refuse_alone(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    raise c.fail(f"{name} without the serializer that Flink writes before it")


def _read_unversioned(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    raw = _decompress(c.slice(c.i4(), "a serializer of Beam"))
    payload = bytes(c.data[start : c.pos])
    return BeamSerializer(name, version, *_read_coder(Cursor(raw)), payload)


def _decompress(c: Cursor) -> bytes:
    if c.take(len(_SNAPPY), "the head of compressed data") != _SNAPPY:
        raise c.fail("not what SnappyOutputStream writes", pos=c.pos - len(_SNAPPY))
    c.skip(8)
    raw = bytearray()
    while c.left:
        start = c.pos
        block = c.bytes4("a compressed block")
        try:
            raw += cramjam.snappy.decompress_raw(block)
        except cramjam.DecompressionError as e:
            raise c.fail(f"a compressed block that cannot be read: {e}", pos=start) from e
        if len(raw) > _MOST_BYTES:
            raise c.fail(f"more than {_MOST_BYTES} bytes of a serializer of Beam", pos=start)
    return bytes(raw)


_PACKAGE: Final = "org.apache.beam.runners.flink.translation.types"
SNAPSHOTS: Final = {
    f"{_PACKAGE}.CoderTypeSerializer$LegacySnapshot": SnapshotClass(_refuse_alone, (1,), of_stream=_read_stream),
    f"{_PACKAGE}.UnversionedTypeSerializerSnapshot": SnapshotClass(_read_unversioned, (1,)),
    f"{_PACKAGE}.CoderTypeSerializer$UnversionedTypeSerializerSnapshot": SnapshotClass(_read_unversioned, (1,)),
}
