"""Tuples and Scala case classes: fields one after another, without a top-level null.

Outer payload: utf class; up to Flink 1.6 a Java stream of the class after the resilient list.
Follows ``TupleSerializer``, ``Tuple0Serializer``, ``ScalaCaseClassSerializer``.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaClass, read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import Constant, Op, PerRecord, Struct
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.core.snapshot import ReadPayload, SnapshotReader
from statetool.serializers.typeutils.composite import (
    CompositeSerializer,
    check_last,
    composite,
    inside,
    sequence,
    sum_of_lengths,
)
from statetool.serializers.typeutils.java_types import type_snapshot
from statetool.serializers.typeutils.renewal import renewed_serializer
from statetool.types import Field, LogicalType, Scalar, StructType
from statetool.types.java_hash import (
    finish_mix,
    hash_chain,
    hash_double,
    hash_float,
    hash_long,
    hash_string,
    is_float32,
    mix_word,
)
from statetool.types.type_information import SIMPLE, simple

_SCALA_NUMBERS: Final = frozenset(Scalar(n) for n in ("int8", "int16", "int32", "int64", "float32", "float64"))


class TupleSerializer(CompositeSerializer):
    """Fields ``f0`` .. in order."""

    arity = None
    prefix = "f"
    first = 0

    def __init__(self, name: str, version: int, outer_version: int, outer: Any, nested: tuple[Any, ...]) -> None:
        super().__init__(name, version, outer_version, outer, nested)
        self.steps = tuple(f"{self.prefix}{i + self.first}" for i in range(len(nested)))
        # TupleSerializerBase treats a field of length 0 (NullValue, VoidNamespace) as variable-length.
        self.length = sum_of_lengths(nested) if all(part.length > 0 for part in nested) else -1

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> str:
        return c.utf()

    @staticmethod
    def legacy_outer(c: Cursor, name: str) -> str:
        cls = read_java_stream(c)
        if not isinstance(cls, JavaClass):
            raise c.fail(f"{name} ends with something else than a class")
        return cls.name

    def write_outer(self, out: Output) -> None:
        out.utf(self.outer)

    @property
    def logical(self) -> LogicalType:
        return StructType(tuple(Field(n, s.logical) for n, s in self.children()))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        values: list[Any] = []
        last = len(self.nested) - 1
        try:
            for part in self.nested:
                check_last(c, part, last=len(values) == last)
                values.append(part.decode(c))
        except StatetoolError as error:
            raise error.inside(self.steps[len(values)]) from error.__cause__
        return tuple(values)

    def encode(self, out: Output, value: Any) -> None:
        fields = sequence(value, "tuple", len(self.nested))
        for (step, part), v in zip(self.children(), fields, strict=True):
            with inside(step):
                part.encode(out, v)

    def hash_code(self, value: Any) -> int:
        hashes = [0 if v is None else s.hash_code(v) for s, v in zip(self.nested, value, strict=True)]
        return hash_chain(hashes[1:], start=hashes[0]) if hashes else 0

    def program(self) -> Op:
        if any(part.needs_frame for part in self.nested[:-1]):
            return PerRecord(self.decode)
        return Struct(self.steps, tuple(s.program() for s in self.nested))


#: Descriptors of fields of case classes, by the serializers that Flink's macro gives them.
_OF_FIELDS: Final = {
    "Boolean": "Z", "Byte": "B", "Short": "S", "Char": "C", "Int": "I", "Long": "J", "Float": "F", "Double": "D",
    "String": "Ljava/lang/String;",
}  # fmt: skip


class CaseClassSerializer(TupleSerializer):
    """Fields ``_1`` .. in order (the snapshot does not store their names)."""

    prefix = "_"
    first = 1

    def hash_code(self, value: Any) -> int:
        """``productHash`` of Scala 2.12."""
        return scala_product_hash(
            [
                0 if v is None and not part.none_is_value else scala_hash(part, v)
                for part, v in zip(self.nested, value, strict=True)
            ]
        )


def scala_product_hash(hashes: list[int], *, class_name: str | None = None) -> int:
    """``MurmurHash3.productHash`` of the elements' hash codes; Scala 2.13 mixes in the simple name of the class first."""
    h = 0xCAFEBABE
    if class_name is not None:
        h = mix_word(h, hash_string(class_name.rpartition(".")[2].rstrip("$").rpartition("$")[2]))
    for part in hashes:
        h = mix_word(h, part)
    return finish_mix(h, len(hashes))


def scala_hash(part: Serializer, value: Any) -> int:
    """Scala's ``##``: numbers with equal values have the same hash, whatever their type."""
    if part.children() or part.logical not in _SCALA_NUMBERS:
        return part.hash_code(value)
    if isinstance(value, float):
        if not value.is_integer() or not -(1 << 63) <= value < 1 << 63:
            single = part.logical == Scalar("float32") or is_float32(value)
            return hash_float(value) if single else hash_double(value)
        value = int(value)
    return int(value) if -(1 << 31) <= value < 1 << 31 else hash_long(value)


def _decode_tuple0(c: Cursor) -> None:
    if c.u1() != 42:
        raise c.fail("expected the byte 42 of a Tuple0", pos=c.pos - 1)


def _encode_tuple0(out: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in a type that only holds one value")
    out.u1(42)


TUPLE0: Final = SimpleType(
    name="Tuple0", logical=Scalar("null"), length=1, nullable=True, op=Constant(1, 42),
    decode=_decode_tuple0, encode=_encode_tuple0, hash_code=lambda _: 0,
)  # fmt: skip


def _read_subclass(read: ReadPayload) -> ReadPayload:
    """Let a job start with the fields that its own subclass of a tuple has."""

    def read_tuple(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        former = read(reader, c, name, version)
        found = reader.types.type_information(former.outer) if isinstance(former, TupleSerializer) else None
        if not reader.types.renewed or found is None or not found.is_settled:
            return former
        return renewed_serializer(reader, found.java_class, former) or former

    return read_tuple


def _read_case_class(read: ReadPayload) -> ReadPayload:
    """Let a job start with the primitive fields and texts that its case class has in the place of others."""

    def read_class(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        former = read(reader, c, name, version)
        source = reader.types.source if reader.types.renewed else None
        if source is None or not isinstance(former, CaseClassSerializer):
            return former
        found = source.case_class(former.outer)
        if found is None or len(found) != len(former.nested):
            return former
        for step, (kept, (_, descriptor)) in zip(former.steps, zip(former.nested, found, strict=True), strict=True):
            if (other := type_of_field(kept, descriptor)) is not None:
                information = simple(next(n for n, of in SIMPLE.items() if of == other))
                former = former.with_child(step, reader.snapshot(Cursor(type_snapshot(information, None, {}))))
        return former

    return read_class


def type_of_field(kept: Serializer, descriptor: str) -> str | None:
    """Return the name of the type of a field of a case class, if it is another one than a snapshot has, and both are simple."""
    after = next((name for name, of in _OF_FIELDS.items() if of == descriptor), None)
    return after if kept.type_name in _OF_FIELDS and after != kept.type_name else None


_CASE_CLASS: Final = composite(CaseClassSerializer, outer_versions=(1, 2))
_TUPLES: Final = composite(TupleSerializer, outer_versions=(1, 2))

SNAPSHOTS: Final = {
    "Tuple0SerializerSnapshot": simple_readers((TUPLE0,))["Tuple0Serializer$Tuple0SerializerSnapshot"],
    "TupleSerializerSnapshot": _TUPLES._replace(read=_read_subclass(_TUPLES.read)),
    "TupleSerializerConfigSnapshot": composite(TupleSerializer, outer_versions=(1, 2)),
    "ScalaCaseClassSerializerSnapshot": _CASE_CLASS._replace(read=_read_case_class(_CASE_CLASS.read)),
    "Tuple2CaseClassSerializerSnapshot": composite(CaseClassSerializer, outer_versions=(1, 2)),
}
