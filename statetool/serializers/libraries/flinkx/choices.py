"""Sealed traits, case objects, enums of Scala 3 and ``Unit`` in flink-scala-api.

``CoproductSerializer$CoproductSerializerSnapshot``. Version 3: a composite snapshot whose outer payload, of version 3, is i32 n and n
nullable strings with the names of the classes. Versions 1 and 2: i32 n, n times utf class, n nested snapshots (without and with versions).
Values: i8 index, then the value of that class; null is the index -128 (since 2.2.4). ``Scala3EnumSerializerSnapshot``: a composite
snapshot with the names of the constants in the same form; the same values. ``ScalaCaseObjectSerializer$…``: utf class.
``Scala3EnumValueSerializerSnapshot``: utf companion class, utf name. Values of the last two and of ``Unit`` take no bytes.
Follows flink-scala-api 1.1.4 to 2.2.4.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Constant
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, SnapshotClass, SnapshotReader, write_nested
from statetool.serializers.libraries.flinkx.case_class import read_composite, simple_name
from statetool.serializers.libraries.flinkx.parts import build_both, read_part, write_part
from statetool.serializers.streaming import NOTHING
from statetool.serializers.typeutils.basic import read_string, write_string
from statetool.serializers.typeutils.composite import CompositeSerializer, check_last, inside, sequence
from statetool.types import Field, LogicalType, Scalar, StructType
from statetool.types.java_hash import hash_string

_NULL_INDEX: Final = -128
_STRING: Final = Scalar("string")


class SingletonSerializer(Serializer):
    """A case object or a constant of an enum: its name, from the snapshot."""

    length = 0

    def __init__(self, name: str, version: int, owner: str, constant: str | None) -> None:
        super().__init__(name, version)
        self.owner = owner
        self._constant = constant
        self.value = simple_name(owner) if constant is None else constant

    @property
    def logical(self) -> LogicalType:
        return _STRING

    @property
    def type_name(self) -> str:
        return f"Object {self.owner}" if self._constant is None else f"Constant {self.owner}{self._constant}"

    def decode(self, c: Cursor) -> str:
        return self.value

    def encode(self, out: Output, value: Any) -> None:
        if value != self.value:
            raise EncodeError(f"{value!r} is not {self.value}, the only value of {self.type_name}")

    def hash_code(self, value: Any) -> int:
        """``productPrefix.hashCode`` of a case object."""
        return hash_string(self.value) if self._constant is None else super().hash_code(value)

    def write_payload(self, out: Output) -> None:
        out.utf(self.owner)
        if self._constant is not None:
            out.utf(self._constant)


class ChoiceSerializer(CompositeSerializer):
    """One of several types: a struct of the name and of a field for each type with content, or the name if none has content.

    ``outer`` is the names in the snapshot: of classes, or of the constants of an enum.
    """

    arity = None
    nullable = True

    def __init__(self, name: str, version: int, outer_version: int, outer: Any, nested: tuple[Serializer, ...]) -> None:
        super().__init__(name, version, outer_version, outer, nested)
        simple = [simple_name(n) for n in outer]
        self.steps = tuple(simple) if len({*simple, "kind"}) > len(simple) else tuple(outer)
        lengths = {part.length for part in nested}
        self.length = lengths.pop() if len(lengths) == 1 else -1
        #: Index of the field of each type in the value, ``None`` for one without content.
        self._fields: list[int | None] = []
        for part in nested:
            own = sum(at is not None for at in self._fields) + 1
            self._fields.append(None if isinstance(part, SingletonSerializer) else own)
        self._size = 1 + sum(at is not None for at in self._fields)

    @property
    def type_name(self) -> str:
        return f"Choice<{', '.join(part.type_name for part in self.nested)}>"

    @property
    def logical(self) -> LogicalType:
        if self._size == 1:
            return _STRING
        own = [Field(n, s.logical) for (n, s), at in zip(self.children(), self._fields, strict=True) if at is not None]
        return StructType((Field("kind", _STRING), *own))

    def decode(self, c: Cursor) -> Any:
        index = c.i1()
        if index == _NULL_INDEX:
            return None
        if not 0 <= index < len(self.nested):
            raise c.fail(f"{index} is not one of the {len(self.nested)} types of a choice", pos=c.pos - 1)
        step, part, at = self.steps[index], self.nested[index], self._fields[index]
        with inside(step):
            check_last(c, part, last=True)
            content = part.decode(c)
        if self._size == 1:
            return step
        return (step, *(content if i == at else None for i in range(1, self._size)))

    def encode(self, out: Output, value: Any) -> None:
        if value is None:
            out.i1(_NULL_INDEX)
            return
        fields = (value,) if self._size == 1 else sequence(value, "choice", self._size)
        if fields[0] not in self.steps:
            raise EncodeError(f"{fields[0]!r} is not one of {', '.join(self.steps)}")
        index = self.steps.index(fields[0])
        at = self._fields[index]
        if any(v is not None for i, v in enumerate(fields) if i and i != at):
            raise EncodeError(f"only the field of {fields[0]} can have a value, found {value!r}")
        out.i1(index)
        with inside(self.steps[index]):
            self.nested[index].encode(out, fields[0] if at is None else fields[at])

    def hash_code(self, value: Any) -> int:
        """Return the hash code of the content."""
        fields = (value,) if self._size == 1 else value
        index = self.steps.index(fields[0])
        at = self._fields[index]
        return self.nested[index].hash_code(fields[0] if at is None else fields[at])

    def write_payload(self, out: Output) -> None:
        if self.snapshot_version < 3:
            out.i4(len(self.outer))
            for class_name in self.outer:
                out.utf(class_name)
            for part in self.nested:
                write_part(out, part, versioned=self.snapshot_version > 1)
            return
        out.i4(COMPOSITE_MAGIC)
        out.i4(self.outer_version)
        out.i4(len(self.outer))
        for name in self.outer:
            write_string(out, name)
        write_nested(out, self.nested)


def _read_choice(outer_version: int) -> SnapshotClass:
    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        if version < 3:
            names = tuple(c.utf() for _ in range(c.count("classes", at_least=2)))
            parts = tuple(read_part(reader, c, versioned=version > 1) for _ in names)
        else:
            read_composite(c, name, (outer_version,))
            names = tuple(read_string(c) or "" for _ in range(c.count("names")))
            parts = reader.nested(c)
        if len(parts) != len(names):
            raise c.fail(f"{name} has {len(parts)} nested serializers and {len(names)} names")
        return build_both(lambda p: ChoiceSerializer(name, version, outer_version, names, p), parts)

    versions = (1, 2, 3) if outer_version == 3 else (3,)
    return SnapshotClass(read, versions, outer_versions=(outer_version,))


def _read_object(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    return SingletonSerializer(name, version, c.utf(), None)


def _read_constant(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    return SingletonSerializer(name, version, c.utf(), c.utf())


def _nothing(c: Cursor) -> None:
    return None


def _write_nothing(out: Output, value: object) -> None:
    if value is not None:
        raise EncodeError(f"{value!r} in a type that only holds one value")


UNIT: Final = SimpleType(
    name="Unit", logical=Scalar("null"), length=0, nullable=True, none_is_value=True, op=Constant(0),
    decode=_nothing, encode=_write_nothing, hash_code=lambda _: 0,
)  # fmt: skip

SNAPSHOTS: Final = {
    "CoproductSerializer$CoproductSerializerSnapshot": _read_choice(3),
    "Scala3EnumSerializerSnapshot": _read_choice(1),
    "Scala3EnumValueSerializerSnapshot": SnapshotClass(_read_constant, (1,)),
    "ScalaCaseObjectSerializer$ScalaCaseObjectSerializerSnapshot": SnapshotClass(_read_object, (1,)),
    **simple_readers((UNIT,)),
    "NothingSerializerSnapshot": simple_readers((NOTHING,))["NothingSerializer$NothingSerializerSnapshot"],
}
