"""Logical types of the table runtime, read from the Java streams in which snapshots hold them.

Every class of ``org.apache.flink.table.types.logical`` has ``isNullable`` and ``typeRoot`` and the fields that are named here; the
class name tells the type. Streams are parsed as data (:mod:`statetool.io.java_stream`), nothing of them is executed.
Follows ``LogicalType`` and its subclasses, Flink 1.11 to 2.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import UnsupportedError
from statetool.io.java_stream import JavaArray, JavaClass, JavaEnum, JavaObject

_PLAIN: Final[Mapping[str, str]] = {
    "BooleanType": "BOOLEAN",
    "TinyIntType": "TINYINT",
    "SmallIntType": "SMALLINT",
    "IntType": "INT",
    "BigIntType": "BIGINT",
    "FloatType": "FLOAT",
    "DoubleType": "DOUBLE",
    "DateType": "DATE",
    "NullType": "NULL",
    "VariantType": "VARIANT",
    "BitmapType": "BITMAP",
    "YearMonthIntervalType": "INTERVAL YEAR TO MONTH",
    "DayTimeIntervalType": "INTERVAL DAY TO SECOND",
}
_SIZED: Final[Mapping[str, str]] = {
    "CharType": "CHAR",
    "VarCharType": "VARCHAR",
    "BinaryType": "BINARY",
    "VarBinaryType": "VARBINARY",
}
_PRECISE: Final[Mapping[str, str]] = {
    "TimeType": "TIME",
    "TimestampType": "TIMESTAMP",
    "LocalZonedTimestampType": "TIMESTAMP_LTZ",
}
_RAW: Final = frozenset({"RawType", "TypeInformationRawType"})
_MAX_LENGTH: Final = 0x7FFFFFFF
_MAX_PRECISION: Final = 38
_MAX_FRACTION: Final = 9
#: Parts of a type, counted wherever they are used: references in a stream could name far more than its bytes.
_MAX_PARTS: Final = 100_000
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """A logical type.

    Attributes
    ----------
    root
        ``BOOLEAN``, ``VARCHAR``, ``ROW``, ...; structured types are ``STRUCTURED``, distinct types what they are made of.
    nullable
        Whether the type allows null; values are not checked against it.
    length
        Of ``CHAR``, ``VARCHAR``, ``BINARY`` and ``VARBINARY``: characters or bytes (2147483647 for ``STRING`` and ``BYTES``).
    precision, scale
        Of ``DECIMAL``; the precision also of ``TIME`` and both timestamps.
    parts
        Named parts: the fields of a row, ``element``, ``key`` and ``value``.
    class_name
        Java class of a ``RAW`` or ``STRUCTURED`` type.
    serializer
        Java class of the serializer of a ``RAW`` type.
    """

    root: str
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    parts: tuple[tuple[str, SqlType], ...] = ()
    class_name: str = ""
    serializer: str = ""

    def __str__(self) -> str:
        return self._words() + ("" if self.nullable else " NOT NULL")

    def _words(self) -> str:
        match self.root:
            case "VARCHAR" | "VARBINARY" if self.length == _MAX_LENGTH:
                return "STRING" if self.root == "VARCHAR" else "BYTES"
            case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
                return f"{self.root}({self.length})"
            case "DECIMAL":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
                return f"{self.root}({self.precision})"
            case "ARRAY" | "MAP":
                return f"{self.root}<{', '.join(str(t) for _, t in self.parts)}>"
            case "MULTISET":
                return f"MULTISET<{self.parts[0][1]}>"
            case "ROW" | "STRUCTURED":
                return f"{self.root}<{', '.join(f'{n} {t}' for n, t in self.parts)}>"
            case "RAW":
                return f"RAW({self.class_name})"
        return self.root


def parse_logical_type(tree: Any) -> SqlType:
    """Return the type that a Java object stands for.

    Raises
    ------
    UnsupportedError
        Not a logical type, or one that holds no values in state.
    """
    return _Parser().parse(tree, 0)


class _Parser:
    """Parses one stream; parts that several types share are parsed once, and counted each time."""

    def __init__(self) -> None:
        self.done: dict[int, tuple[SqlType, int]] = {}
        self.count = 0

    def parse(self, tree: Any, depth: int) -> SqlType:
        if not isinstance(tree, JavaObject):
            raise UnsupportedError(f"{tree!r} is not a logical type")
        if depth > _MAX_DEPTH:
            raise UnsupportedError(f"logical types nested deeper than {_MAX_DEPTH}")
        known = self.done.get(id(tree))
        if known is not None:
            self._counted(known[1])
            return known[0]
        before = self.count
        self._counted(1)
        found = self._parse(tree, depth + 1)
        self.done[id(tree)] = found, self.count - before
        return found

    def _counted(self, parts: int) -> None:
        self.count += parts
        if self.count > _MAX_PARTS:
            raise UnsupportedError(f"a logical type of more than {_MAX_PARTS} parts")

    def _parse(self, tree: JavaObject, depth: int) -> SqlType:
        cls = tree.cls.name.rpartition(".")[2]
        nullable = bool(tree.fields.get("isNullable", True))
        if cls in _PLAIN:
            return SqlType(root=_PLAIN[cls], nullable=nullable)
        if cls in _SIZED:
            length = _number(tree, "length", 0, _MAX_LENGTH)
            return SqlType(root=_SIZED[cls], nullable=nullable, length=length)
        if cls in _PRECISE:
            precision = _number(tree, "precision", 0, _MAX_FRACTION)
            return SqlType(root=_PRECISE[cls], nullable=nullable, precision=precision)
        if cls in _RAW or (cls == "LegacyTypeInformationType" and _enum_name(tree.fields.get("typeRoot")) == "RAW"):
            return SqlType(root="RAW", nullable=nullable, class_name=_raw_class(tree), serializer=_serializer(tree))
        match cls:
            case "DecimalType":
                precision = _number(tree, "precision", 1, _MAX_PRECISION)
                scale = _number(tree, "scale", 0, precision)
                return SqlType(root="DECIMAL", nullable=nullable, precision=precision, scale=scale)
            case "ArrayType":
                element = self.parse(tree.fields.get("elementType"), depth)
                return SqlType(root="ARRAY", nullable=nullable, parts=(("element", element),))
            case "MultisetType":
                element = self.parse(tree.fields.get("elementType"), depth)
                counts = SqlType(root="INT", nullable=False)
                return SqlType(root="MULTISET", nullable=nullable, parts=(("key", element), ("value", counts)))
            case "MapType":
                parts = tuple((n, self.parse(tree.fields.get(f"{n}Type"), depth)) for n in ("key", "value"))
                return SqlType(root="MAP", nullable=nullable, parts=parts)
            case "RowType":
                return SqlType(root="ROW", nullable=nullable, parts=self.fields(tree, "fields", depth))
            case "StructuredType":
                name = tree.fields.get("className") or _class_name(tree.fields.get("implementationClass"))
                parts = self.attributes(tree, depth)
                return SqlType(root="STRUCTURED", nullable=nullable, parts=parts, class_name=str(name))
            case "DistinctType":
                return self.parse(tree.fields.get("sourceType"), depth)
        raise UnsupportedError(f"logical type {tree.cls.name} has no values in state")

    def fields(self, tree: JavaObject, name: str, depth: int) -> tuple[tuple[str, SqlType], ...]:
        """Return the named parts of a row or structured type."""
        found = []
        for part in java_list(tree.fields.get(name)):
            label = part.fields.get("name") if isinstance(part, JavaObject) else None
            if not isinstance(label, str):
                raise UnsupportedError(f"a field of {tree.cls.name} without a name")
            found.append((label, self.parse(part.fields.get("type"), depth)))
        return tuple(found)

    def attributes(self, tree: JavaObject, depth: int) -> tuple[tuple[str, SqlType], ...]:
        """Return the attributes of a structured type, those of its supertypes first (``getChildren``)."""
        parent = tree.fields.get("superType")
        inherited: tuple[tuple[str, SqlType], ...] = ()
        if parent is not None:
            inherited = self.parse(parent, depth).parts
        return inherited + self.fields(tree, "attributes", depth)


def java_list(value: Any) -> list[Any]:
    """Return the elements of a ``java.util.List`` of one of the JDK's usual classes.

    Raises
    ------
    UnsupportedError
        Another class.
    """
    if isinstance(value, JavaArray) and not isinstance(value.items, bytes):
        return value.items
    if isinstance(value, JavaObject):
        match value.cls.name:
            case "java.util.ArrayList" | "java.util.LinkedList" | "java.util.CollSer" | "java.util.Vector":
                # The first annotation is a block of primitives (size or capacity), the elements follow.
                return [a for a in value.annotations if not isinstance(a, bytes)]
            case "java.util.Collections$UnmodifiableList" | "java.util.Collections$UnmodifiableRandomAccessList":
                return java_list(value.fields.get("list"))
            case "java.util.Arrays$ArrayList":
                return java_list(value.fields.get("a"))
            case "java.util.Collections$SingletonList":
                return [value.fields.get("element")]
            case "java.util.Collections$EmptyList":
                return []
    raise UnsupportedError(f"{getattr(getattr(value, 'cls', value), 'name', value)!r} is not a list that can be read")


def _number(tree: JavaObject, name: str, least: int, most: int) -> int:
    value = tree.fields.get(name)
    if not isinstance(value, int) or not least <= value <= most:
        raise UnsupportedError(f"{name} {value!r} of {tree.cls.name} is not in {least}..{most}")
    return value


def _raw_class(tree: JavaObject) -> str:
    found = _class_name(tree.fields.get("clazz"))
    if found:
        return found
    info = tree.fields.get("typeInfo")
    return info.cls.name if isinstance(info, JavaObject) else "?"


def _class_name(value: Any) -> str:
    return value.name if isinstance(value, JavaClass) else ""


def _enum_name(value: Any) -> str:
    return value.name if isinstance(value, JavaEnum) else ""


def _serializer(tree: JavaObject) -> str:
    value = tree.fields.get("serializer")
    return value.cls.name if isinstance(value, JavaObject) else ""
