"""Logical types of the table runtime, read from the Java streams in snapshots.

Every class of ``org.apache.flink.table.types.logical`` has ``isNullable`` and ``typeRoot`` and the fields named here; the class name
identifies the type. Streams are parsed as data (:mod:`statetool.io.java_streams.reader`) without executing anything. Follows ``LogicalType`` and
its subclasses, Flink 1.11 to 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statetool.errors import UnsupportedError
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject
from statetool.serializers.sql.java_classes import LOGICAL

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
MAX_LENGTH: Final = 0x7FFFFFFF
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MAX_PRECISION: Final = 38
_MAX_FRACTION: Final = 9
#: Maximum parts of a type, counted wherever they are used: references in a stream could expand to far more than its bytes.
_MAX_PARTS: Final = 100_000
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class UserType:
    """Additional properties of a ``DISTINCT`` or ``STRUCTURED`` type.

    ``identifier`` is its name in a catalog (catalog, database, object), absent for structured types that are based on a class.
    ``comparison`` is ``None`` for the value that a release uses for types based on a class: ``EQUALS``, before 2.1 ``NONE``.
    """

    identifier: tuple[str, str, str] | None = None
    description: str | None = None
    final: bool = True
    instantiable: bool = True
    comparison: str | None = None
    parent: SqlType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlType:
    """A logical type with all information of its Java stream; its text form is Flink's.

    Attributes
    ----------
    root
        ``BOOLEAN``, ``VARCHAR``, ``ROW``, ...; ``INTERVAL YEAR TO MONTH`` and ``INTERVAL DAY TO SECOND`` for all resolutions.
    nullable
        Whether the type allows null; values are not checked against it.
    length
        For ``CHAR``, ``VARCHAR``, ``BINARY`` and ``VARBINARY``: characters or bytes (2147483647 for ``STRING`` and ``BYTES``).
    precision, scale
        For ``DECIMAL``. The precision also applies to ``TIME``, both timestamps, and the first field of intervals; the scale also to
        the seconds of intervals.
    resolution
        For intervals, as Flink's constants: ``YEAR_TO_MONTH``, ``DAY``, ...
    kind
        For timestamps: ``REGULAR``, ``ROWTIME`` or ``PROCTIME``.
    parts
        Named parts: the fields of a row, ``element``, ``key`` and ``value``; ``source`` of a distinct type.
    descriptions
        One per field of a row or structured type, empty if no field has one.
    class_name
        Java class of a ``RAW`` or ``STRUCTURED`` type.
    serializer
        Java class of the serializer of a ``RAW`` type.
    user
        For ``DISTINCT`` and ``STRUCTURED`` types.
    tree
        The Java object of a ``RAW`` type as read.
    """

    root: str
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    resolution: str = ""
    kind: str = "REGULAR"
    parts: tuple[tuple[str, SqlType], ...] = ()
    descriptions: tuple[str | None, ...] = ()
    class_name: str = ""
    serializer: str = ""
    user: UserType | None = None
    tree: JavaObject | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self._words() + ("" if self.nullable else " NOT NULL")

    def _words(self) -> str:
        match self.root:
            case "VARCHAR" | "VARBINARY" if self.length == MAX_LENGTH:
                return "STRING" if self.root == "VARCHAR" else "BYTES"
            case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
                return f"{self.root}({self.length})"
            case "DECIMAL":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "TIME":
                return f"TIME({self.precision})"
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return f"{self.root}({self.precision})" + ("" if self.kind == "REGULAR" else f" *{self.kind}*")
            case "INTERVAL YEAR TO MONTH" | "INTERVAL DAY TO SECOND":
                return self._interval()
            case "ARRAY" | "MAP":
                return f"{self.root}<{', '.join(str(t) for _, t in self.parts)}>"
            case "MULTISET":
                return f"MULTISET<{self.parts[0][1]}>"
            case "ROW":
                return f"ROW<{', '.join(self._fields())}>"
            case "STRUCTURED":
                return f"STRUCTURED<{', '.join([_quote(self.class_name), *self._fields()])}>"
            case "DISTINCT":
                name = ".".join(f"`{n}`" for n in (self.user.identifier if self.user and self.user.identifier else ()))
                return f"DISTINCT<{name}, {self.parts[0][1]}>"
            case "RAW":
                return f"RAW({_quote(self.class_name)}, {_quote(self.serializer)})"
        return self.root

    def _fields(self) -> list[str]:
        descriptions = self.descriptions or (None,) * len(self.parts)
        return [
            f"{_name(n)} {t}" + ("" if description is None else f" {_quote(description)}")
            for (n, t), description in zip(self.parts, descriptions, strict=True)
        ]

    def _interval(self) -> str:
        first, _, last = self.resolution.partition("_TO_")
        if first in ("YEAR", "DAY"):
            first += f"({self.precision})"
        if last == "SECOND" or first == "SECOND":
            return f"INTERVAL {first}" + (f" TO SECOND({self.scale})" if last else f"({self.scale})")
        return f"INTERVAL {first}" + (f" TO {last}" if last else "")


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def parse_logical_type(tree: Any) -> SqlType:
    """Return the type of a Java object.

    Raises
    ------
    UnsupportedError
        Not a logical type, or one without values in state.
    """
    return _Parser().parse(tree, 0)


class _Parser:
    """Parser of one stream; parts shared by several types are parsed once, and counted each time."""

    def __init__(self) -> None:
        self.parsed: dict[int, tuple[SqlType, int]] = {}
        self.count = 0

    def parse(self, tree: Any, depth: int) -> SqlType:
        if not isinstance(tree, JavaObject):
            raise UnsupportedError(f"{tree!r} is not a logical type")
        if depth > _MAX_DEPTH:
            raise UnsupportedError(f"logical types nested deeper than {_MAX_DEPTH}")
        cached = self.parsed.get(id(tree))
        if cached is not None:
            self._count_parts(cached[1])
            return cached[0]
        parts_before = self.count
        self._count_parts(1)
        sql = self._parse(tree, depth + 1)
        self.parsed[id(tree)] = sql, self.count - parts_before
        return sql

    def _count_parts(self, parts: int) -> None:
        self.count += parts
        if self.count > _MAX_PARTS:
            raise UnsupportedError(f"a logical type of more than {_MAX_PARTS} parts")

    def _parse(self, tree: JavaObject, depth: int) -> SqlType:
        cls = tree.cls.name[len(LOGICAL) :] if tree.cls.name.startswith(LOGICAL) else ""
        nullable = bool(tree.fields.get("isNullable", True))
        if cls in _PLAIN:
            return SqlType(root=_PLAIN[cls], nullable=nullable)
        if cls in _SIZED:
            length = _number(tree, "length", 0, MAX_LENGTH)
            return SqlType(root=_SIZED[cls], nullable=nullable, length=length)
        if cls in _PRECISE:
            precision = _number(tree, "precision", 0, _MAX_FRACTION)
            kind = _enum_name(tree.fields.get("kind")) or "REGULAR"
            return SqlType(root=_PRECISE[cls], nullable=nullable, precision=precision, kind=kind)
        if cls in _RAW or (cls == "LegacyTypeInformationType" and _enum_name(tree.fields.get("typeRoot")) == "RAW"):
            name, serializer = _raw_class(tree), _serializer(tree)
            return SqlType(root="RAW", nullable=nullable, class_name=name, serializer=serializer, tree=tree)
        match cls:
            case "DecimalType":
                precision = _number(tree, "precision", 1, _MAX_PRECISION)
                scale = _number(tree, "scale", 0, precision)
                return SqlType(root="DECIMAL", nullable=nullable, precision=precision, scale=scale)
            case "YearMonthIntervalType":
                precision, resolution = _number(tree, "yearPrecision", 1, 4), _enum_name(tree.fields.get("resolution"))
                root = "INTERVAL YEAR TO MONTH"
                return SqlType(root=root, nullable=nullable, precision=precision, resolution=resolution)
            case "DayTimeIntervalType":
                precision, scale = _number(tree, "dayPrecision", 1, 6), _number(tree, "fractionalPrecision", 0, 9)
                resolution, root = _enum_name(tree.fields.get("resolution")), "INTERVAL DAY TO SECOND"
                return SqlType(root=root, nullable=nullable, precision=precision, scale=scale, resolution=resolution)
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
                parts, descriptions = self.fields(tree, "fields", depth)
                return SqlType(root="ROW", nullable=nullable, parts=parts, descriptions=descriptions)
            case "StructuredType":
                return self.structured(tree, nullable, depth)
            case "DistinctType":
                source = self.parse(tree.fields.get("sourceType"), depth)
                return SqlType(root="DISTINCT", nullable=nullable, parts=(("source", source),), user=_user(tree, None))
        raise UnsupportedError(f"logical type {tree.cls.name} has no values in state")

    def fields(
        self, tree: JavaObject, name: str, depth: int
    ) -> tuple[tuple[tuple[str, SqlType], ...], tuple[str | None, ...]]:
        """Return the named parts of a row or structured type, and their descriptions."""
        fields, descriptions = [], []
        for part in java_list(tree.fields.get(name)):
            label = part.fields.get("name") if isinstance(part, JavaObject) else None
            if not isinstance(label, str):
                raise UnsupportedError(f"a field of {tree.cls.name} without a name")
            fields.append((str(label), self.parse(part.fields.get("type"), depth)))
            descriptions.append(_text(part.fields.get("description")))
        return tuple(fields), tuple(descriptions) if any(n is not None for n in descriptions) else ()

    def structured(self, tree: JavaObject, nullable: bool, depth: int) -> SqlType:
        """Return a structured type; its attributes follow those of its supertypes (``getChildren``)."""
        supertype = tree.fields.get("superType")
        parent = None if supertype is None else self.parse(supertype, depth)
        parts, descriptions = self.fields(tree, "attributes", depth)
        if parent is not None and (parent.descriptions or descriptions):
            inherited = parent.descriptions or (None,) * len(parent.parts)
            descriptions = (*inherited, *(descriptions or (None,) * len(parts)))
        name = tree.fields.get("className") or _class_name(tree.fields.get("implementationClass"))
        return SqlType(
            root="STRUCTURED",
            nullable=nullable,
            parts=(*(() if parent is None else parent.parts), *parts),
            descriptions=descriptions,
            class_name=str(name),
            user=_user(tree, parent),
        )


def _user(tree: JavaObject, parent: SqlType | None) -> UserType:
    qualified = tree.fields.get("objectIdentifier")
    identifier = None
    if isinstance(qualified, JavaObject):
        catalog, database, name = (str(qualified.fields.get(f"{n}Name")) for n in ("catalog", "database", "object"))
        identifier = (catalog, database, name)
    comparison = tree.fields.get("comparison", tree.fields.get("comparision"))  # 1.13 spells it so
    return UserType(
        identifier=identifier,
        description=_text(tree.fields.get("description")),
        final=bool(tree.fields.get("isFinal")),
        instantiable=bool(tree.fields.get("isInstantiable", True)),
        comparison=None if _enum_name(comparison) in ("", "EQUALS") else _enum_name(comparison),
        parent=parent,
    )


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str) else None


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
                # The first annotation is a block of primitives (size or capacity); the elements follow.
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
    name = _class_name(tree.fields.get("clazz"))
    if name:
        return name
    info = tree.fields.get("typeInfo")
    return info.cls.name if isinstance(info, JavaObject) else "?"


def _class_name(value: Any) -> str:
    return value.name if isinstance(value, JavaClass) else ""


def _enum_name(value: Any) -> str:
    return value.name if isinstance(value, JavaEnum) else ""


def _serializer(tree: JavaObject) -> str:
    value = tree.fields.get("serializer")
    return value.cls.name if isinstance(value, JavaObject) else ""
