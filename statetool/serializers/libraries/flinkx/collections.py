"""Collections and mapped types of flink-scala-api.

``CollectionSerializerSnapshot``: utf serializer class, utf element class, nested snapshot. ``SortedCollectionSerializerSnapshot`` ends with
the snapshot of the ordering. ``MapSerializerSnapshot`` and its kin: the snapshots of key and value, and of the ordering if sorted.
``MappedSerializerSnapshot``: utf mapper class, and the nested snapshot (version 1: utf class of the serializer). Version 1 of the others has nested snapshots without their versions, version 2 with them
(:mod:`statetool.serializers.libraries.flinkx.parts`); classes that came later began with version 1 and have versions.

Values: i32 n, the ordering if sorted, n elements or n times key and value. Mutable and sorted collections have a null, the number
-2147483648. A mapped value has the bytes of the type that it is mapped to. Follows flink-scala-api 1.1.4 to 2.2.4.
"""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import EncodeError, UnknownSerializerError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Op, PerRecord, Repeated, or_per_record
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader
from statetool.serializers.libraries.flinkx.case_class import NULL
from statetool.serializers.libraries.flinkx.parts import PACKAGE, build_both, read_part, write_part
from statetool.serializers.simple_types import serializer_of_class
from statetool.serializers.typeutils.collections import WrapperSerializer, count_elements
from statetool.serializers.typeutils.composite import CompositeSerializer, check_last, inside, sequence
from statetool.types import ListType, LogicalType, MapType
from statetool.types.java_hash import hash_long, to_int32

#: Serializers of collections that cannot be null.
_NEVER_NULL: Final = frozenset(
    f"{PACKAGE}.{name}Serializer" for name in ("List", "ListCC", "Seq", "Vector", "Set", "Array")
)
_SORTED: Final = "Sorted"
_UUID_BYTES: Final = 16


class FlinkxCollectionSerializer(CompositeSerializer):
    """A collection; ``outer`` is the classes of the serializer and of the elements, the second part is the ordering."""

    arity = None

    def __init__(self, name: str, version: int, outer: tuple[str, ...], nested: tuple[Serializer, ...]) -> None:
        super().__init__(name, version, 0, outer, nested)
        self.steps = ("element", "ordering")[: len(nested)]
        self.nullable = outer[0] not in _NEVER_NULL

    @property
    def versioned(self) -> bool:
        """Return True if nested snapshots have versions."""
        return self.snapshot_version > 1

    @property
    def type_name(self) -> str:
        kind = self.outer[0].rpartition(".")[2].removesuffix("Serializer")
        return f"{kind}<{self.nested[0].type_name}>"

    @property
    def logical(self) -> LogicalType:
        return ListType(self.nested[0].logical)

    def decode(self, c: Cursor) -> Any:
        element = self.nested[0]
        n = _read_count(c, element, self)
        if n is None:
            return None
        with inside("element"):
            check_last(c, element, last=n <= 1)
            return [element.decode(c) for _ in range(n)]

    def encode(self, out: Output, value: Any) -> None:
        if not _write_count(out, value, self):
            return
        with inside("element"):
            for item in value:
                self.nested[0].encode(out, item)

    def program(self) -> Op:
        if self.nullable or self.needs_frame:
            return PerRecord(self.decode)
        return or_per_record(Repeated(self.nested[0].program()), self.decode)

    def write_payload(self, out: Output) -> None:
        for class_name in self.outer:
            out.utf(class_name)
        for part in self.nested:
            write_part(out, part, versioned=self.versioned)


class FlinkxMapSerializer(CompositeSerializer):
    """A map; ``outer`` tells whether nested snapshots have versions, the third part is the ordering."""

    arity = None

    def __init__(self, name: str, version: int, versioned: bool, nested: tuple[Serializer, ...]) -> None:
        super().__init__(name, version, 0, versioned, nested)
        self.steps = ("key", "value", "ordering")[: len(nested)]
        self.nullable = not name.endswith(".MapSerializer$MapSerializerSnapshot")

    @property
    def logical(self) -> LogicalType:
        key, value = self.nested[:2]
        return MapType(key.logical, value.logical)

    def decode(self, c: Cursor) -> Any:
        key, value = self.nested[:2]
        n = _read_count(c, key, self)
        if n is None:
            return None
        check_last(c, key, last=False)
        check_last(c, value, last=n <= 1)
        pairs = []
        for _ in range(n):
            with inside("key"):
                k = key.decode(c)
            with inside("value"):
                pairs.append((k, value.decode(c)))
        return pairs

    def encode(self, out: Output, value: Any) -> None:
        if not _write_count(out, value, self):
            return
        for k, v in value:
            with inside("key"):
                self.nested[0].encode(out, k)
            with inside("value"):
                self.nested[1].encode(out, v)

    def program(self) -> Op:
        return PerRecord(self.decode)

    def write_payload(self, out: Output) -> None:
        for part in self.nested:
            write_part(out, part, versioned=self.outer)


def _ordering(s: CompositeSerializer) -> Serializer | None:
    return s.nested[-1] if s.steps[len(s.nested) - 1] == "ordering" else None


def _read_count(c: Cursor, element: Serializer, s: CompositeSerializer) -> int | None:
    """Read the number of elements and the ordering; ``None`` for a null."""
    if s.nullable:
        start = c.pos
        if c.i4() == NULL:
            return None
        c.pos = start
    n = count_elements(c, element)
    ordering = _ordering(s)
    if ordering is not None:
        with inside("ordering"):
            if ordering.length != 0:
                raise UnsupportedError(f"the values of the ordering {ordering.type_name} are not read").at(
                    offset=c.offset
                )
    return n


def _write_count(out: Output, value: Any, s: CompositeSerializer) -> bool:
    """Append the number of elements; return False after a null."""
    if value is None and s.nullable:
        out.i4(NULL)
        return False
    if isinstance(value, dict):
        raise EncodeError(f"{value!r} is not a list of pairs")
    out.i4(len(sequence(value, s.type_name)))
    return True


class MappedSerializer(WrapperSerializer):
    """A value with the bytes of another type; ``outer`` is the class of the mapper."""

    def hash_code(self, value: Any) -> int:
        """``BigInt.hashCode`` and ``UUID.hashCode``; that of other types is only known to their mappers."""
        mapper = self.outer.rpartition(".")[2]
        if self.outer == f"org.apache.flinkx.api.mapper.{mapper}":
            if mapper == "UuidMapper" and len(value) == _UUID_BYTES:
                high, low = (int.from_bytes(value[i : i + 8], "big") for i in (0, 8))
                return hash_long(high ^ low)
            if mapper == "BigIntMapper":
                return _hash_big_int(value, self.nested[0])
        return Serializer.hash_code(self, value)

    @property
    def type_name(self) -> str:
        return f"Mapped<{self.outer.rpartition('.')[2]}, {self.nested[0].type_name}>"

    def write_payload(self, out: Output) -> None:
        out.utf(self.outer)
        if self.snapshot_version > 1:
            self.nested[0].write_snapshot(out)
        else:
            out.utf(self.nested[0].snapshot_class.partition("$")[0])


def _hash_big_int(value: int, number: Serializer) -> int:
    if -(1 << 31) <= value < 1 << 31:
        return value
    if -(1 << 63) <= value < 1 << 63:
        return hash_long(value)
    return to_int32(number.hash_code(value))


def _read_collection(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    outer = (c.utf(), c.utf())
    parts = [read_part(reader, c, versioned=version > 1)]
    if _SORTED in name:
        parts.append(read_part(reader, c, versioned=True))
    return build_both(lambda p: FlinkxCollectionSerializer(name, version, outer, p), tuple(parts))


def _read_map(parts: int, first_versioned: int) -> SnapshotClass:
    def read(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
        versioned = version >= first_versioned
        nested = tuple(read_part(reader, c, versioned=versioned) for _ in range(parts))
        return build_both(lambda p: FlinkxMapSerializer(name, version, versioned, p), nested)

    return SnapshotClass(read, tuple(range(1, first_versioned + 1)))


def _read_mapped(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    mapper = c.utf()
    if version > 1:
        part = reader.snapshot(c)
    else:
        start = c.offset
        class_name = c.utf()
        known = serializer_of_class(class_name)
        if known is None:
            raise UnknownSerializerError(f"{mapper} maps to {class_name}, which is not known").at(offset=start)
        part = known
    return build_both(lambda p: MappedSerializer(name, version, 0, mapper, p), (part,))


SNAPSHOTS: Final = {
    "CollectionSerializerSnapshot": SnapshotClass(_read_collection, (1, 2)),
    "SortedCollectionSerializerSnapshot": SnapshotClass(_read_collection, (2,)),
    "MapSerializer$MapSerializerSnapshot": _read_map(2, 2),
    "MutableMapSerializerSnapshot": _read_map(2, 1),
    "SortedMapSerializerSnapshot": _read_map(3, 1),
    "MutableSortedMapSerializerSnapshot": _read_map(3, 1),
    "MappedSerializer$MappedSerializerSnapshot": SnapshotClass(_read_mapped, (1, 2)),
}
