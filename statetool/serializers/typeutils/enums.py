"""Enums: i32 index into the names in the snapshot (not the Java ordinal after an upgrade), no null.

``EnumSerializerSnapshot`` version 3: utf class, i32 n, n times utf name. Version 2 (config, up to Flink 1.6) is the same. Version 1 ends
with a Java array of the constants. Scala's ``Enumeration`` writes the i32 id of the value; its snapshot has the id after each name.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import JavaArray, JavaEnum, read_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import EnumIndex, Op, PerRecord
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.typeutils.renewal import renewed_serializer
from statetool.types import LogicalType, Scalar


class EnumSerializer(Serializer):
    """Names of constants. ``ids`` are the numbers on the wire."""

    length = 4

    def __init__(self, name: str, version: int, enum_class: str, names: tuple[str, ...], ids: tuple[int, ...]) -> None:
        super().__init__(name, version)
        self.enum_class = enum_class
        self.names = names
        self.ids = ids
        self._name_of = dict(zip(ids, names, strict=True))
        self._id_of = dict(zip(names, ids, strict=True))

    @property
    def type_name(self) -> str:
        return f"Enum {self.enum_class}"

    @property
    def logical(self) -> LogicalType:
        return Scalar("string")

    def decode(self, c: Cursor) -> str:
        index = c.i4()
        if index not in self._name_of:
            raise c.fail(f"{index} is not one of the {len(self.names)} constants of {self.enum_class}", pos=c.pos - 4)
        return self._name_of[index]

    def encode(self, out: Output, value: Any) -> None:
        if value not in self._id_of:
            raise EncodeError(f"{value!r} is not a constant of {self.enum_class}: {', '.join(self.names)}")
        out.i4(self._id_of[value])

    def program(self) -> Op:
        return EnumIndex(self.names) if self.ids == tuple(range(len(self.names))) else PerRecord(self.decode)

    def write_payload(self, out: Output) -> None:
        out.utf(self.enum_class)
        out.i4(len(self.names))
        for name in self.names:
            out.utf(name)


class ScalaEnumSerializer(EnumSerializer):
    """``scala.Enumeration``: ids in the snapshot."""

    def hash_code(self, value: Any) -> int:
        """``Enumeration.Val.hashCode``: the id."""
        if value not in self._id_of:
            raise EncodeError(f"{value!r} is not a value of {self.enum_class}: {', '.join(self.names)}")
        return self._id_of[value]

    def write_payload(self, out: Output) -> None:
        out.utf(self.enum_class)
        out.i4(len(self.names))
        for name, number in zip(self.names, self.ids, strict=True):
            out.utf(name)
            out.i4(number)


def _read_enum(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    enum_class = c.utf()
    if version == 1:
        constants = read_java_stream(c)
        if not isinstance(constants, JavaArray) or not all(isinstance(i, JavaEnum) for i in constants.items):
            raise c.fail(f"{name} does not end with the constants of {enum_class}")
        names = tuple(i.name for i in constants.items if isinstance(i, JavaEnum))
    else:
        names = tuple(c.utf() for _ in range(c.count("constants", at_least=2)))
    former = EnumSerializer(name, version, enum_class, names, tuple(range(len(names))))
    renewed = renewed_serializer(reader, enum_class, former) if reader.types.renewed else None
    return former if renewed is None else renewed


def _read_scala_enum(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    if version == 1:
        raise UnsupportedError(
            f"version 1 of {name} (Flink 1.2), which holds a Java object of the user's class",
            hint="take a savepoint with Flink 1.3 or later",
        ).at(offset=c.offset - 4)
    enum_class = c.utf()
    pairs = [(c.utf(), c.i4()) for _ in range(c.count("constants", at_least=6))]
    names, ids = tuple(n for n, _ in pairs), tuple(i for _, i in pairs)
    names, ids = _renewed_values(reader, enum_class, names, ids) or (names, ids)
    return ScalaEnumSerializer(name, version, enum_class, names, ids)


def _renewed_values(
    reader: SnapshotReader, enum_class: str, names: tuple[str, ...], ids: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Return the values with which a job starts, if its class numbers all of them otherwise; ``None`` if the classes do not tell."""
    source, former = (reader.types.source, reader.types.former) if reader.types.renewed else (None, None)
    stored = tuple(n for _, n in sorted(zip(ids, names, strict=True)))
    # If the fields of the former class are in the order of the ids, it numbers its values itself.
    if source is None or former is None or sorted(ids) != list(range(len(ids))):
        return None
    after = source.enumeration_values(enum_class)
    if (
        former.enumeration_values(enum_class) != stored
        or not set(stored) <= set(after)
        or after[: len(stored)] == stored
    ):
        return None
    return after, tuple(range(len(after)))


SNAPSHOTS: Final = {
    "EnumSerializer$EnumSerializerSnapshot": SnapshotClass(_read_enum, (1, 2, 3)),
    "EnumSerializer$EnumSerializerConfigSnapshot": SnapshotClass(_read_enum, (1, 2)),
    "ScalaEnumSerializerSnapshot": SnapshotClass(_read_scala_enum, (1, 2, 3)),
    "EnumValueSerializer$ScalaEnumSerializerConfigSnapshot": SnapshotClass(_read_scala_enum, (1, 2)),
}
