"""Types whose format is defined by user code: ``Value``, ``Writable`` and Java serialization.

``Value``, ``CopyableValue``, ``Writable``: snapshot version 2 is utf type class; values are the output of the class's ``write`` method,
which is known only for ``org.apache.flink.types``. ``JavaSerializer``: each value is one Java stream, returned as its exact bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import take_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord, Rest
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.typeutils.arrays import BYTES
from statetool.serializers.typeutils.data_output import FLINK_VALUES, SKETCH, DataOutputSerializer
from statetool.types import LogicalType, Scalar
from statetool.types.declared import skeleton


class UserTypeSerializer(Serializer):
    """Bytes of a class that only user code can read: exact if a value fills its frame, otherwise an error."""

    def __init__(self, name: str, version: int, type_class: str, interface: str) -> None:
        super().__init__(name, version)
        self.type_class = type_class
        self.interface = interface

    @property
    def needs_frame(self) -> bool:
        return True

    @property
    def missing_declaration_hint(self) -> str:
        return f"{skeleton(self.type_class)}, in the order of its write method"

    @property
    def type_name(self) -> str:
        return f"{self.interface} {self.type_class}"

    @property
    def logical(self) -> LogicalType:
        return Scalar("binary")

    def decode(self, c: Cursor) -> bytes:
        return c.take(c.left)

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, bytes):
            raise EncodeError(f"values of {self.type_class} are written as bytes, not {type(value).__name__}")
        out += value

    def program(self) -> Op:
        return Rest()

    def write_payload(self, out: Output) -> None:
        out.utf(self.type_class)


class KnownValueSerializer(UserTypeSerializer):
    """A ``Value`` class of Flink."""

    def __init__(self, name: str, version: int, type_class: str, spec: SimpleType) -> None:
        super().__init__(name, version, type_class, "Value")
        self.spec = spec
        # ValueSerializer.getLength() is -1 for every class.
        self.length = spec.length if "CopyableValueSerializer" in name else -1

    @property
    def needs_frame(self) -> bool:
        return False

    @property
    def missing_declaration_hint(self) -> str:
        return ""

    @property
    def type_name(self) -> str:
        return self.spec.name

    @property
    def logical(self) -> LogicalType:
        return self.spec.logical

    def decode(self, c: Cursor) -> Any:
        return self.spec.decode(c)

    def encode(self, out: Output, value: Any) -> None:
        self.spec.encode(out, value)

    def hash_code(self, value: Any) -> int:
        return self.spec.hash_code(value) if self.spec.hash_code else super().hash_code(value)

    def program(self) -> Op:
        return self.spec.op if self.spec.op is not None else PerRecord(self.decode)


_KNOWN_VALUES: Final = {**FLINK_VALUES, SKETCH: replace(BYTES, name="HyperLogLogPlus")}


def _user_type(interface: str) -> SnapshotClass:
    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        type_class = c.utf()
        if type_class in _KNOWN_VALUES:
            return KnownValueSerializer(name, version, type_class, _KNOWN_VALUES[type_class])
        declared = reader.types.find(type_class)
        if declared is not None and declared.kind == "record":
            return DataOutputSerializer(name, version, declared, reader.types, interface)
        return UserTypeSerializer(name, version, type_class, interface)

    return SnapshotClass(read, (1, 2))


def _encode_java(out: Output, value: Any) -> None:
    if not isinstance(value, bytes) or not value.startswith(b"\xac\xed\x00\x05"):
        raise EncodeError("a value of JavaSerializer is the bytes of one Java stream")
    out += value


JAVA: Final = SimpleType(name="Java", logical=Scalar("binary"), length=-1, decode=take_java_stream, encode=_encode_java)

SNAPSHOTS: Final = {
    "ValueSerializer$ValueSerializerSnapshot": _user_type("Value"),
    "ValueSerializer$ValueSerializerConfigSnapshot": _user_type("Value"),
    "CopyableValueSerializer$CopyableValueSerializerSnapshot": _user_type("Value"),
    "CopyableValueSerializer$CopyableValueSerializerConfigSnapshot": _user_type("Value"),
    "WritableSerializer$WritableSerializerSnapshot": _user_type("Writable"),
    "WritableSerializer$WritableSerializerConfigSnapshot": _user_type("Writable"),
    **simple_readers((JAVA,)),
}
