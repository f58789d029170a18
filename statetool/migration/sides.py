"""One side of a conversion: a logical type, with its serializer or Avro schema, which have more details than the logical type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statetool.compatibility.rules.avro import named_schemas
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.equal_types import is_text_only
from statetool.serializers.kryo.graph import resolve_type
from statetool.serializers.kryo.instance import KryoInstance
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.kryo.typed import is_object_text
from statetool.serializers.messages import MessageSerializer
from statetool.serializers.runtime import unwrap
from statetool.serializers.typeutils.basic import to_decimal
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer
from statetool.types import DateType, DecimalType, ListType, LogicalType, MapType, Scalar, StructType, TimestampType
from statetool.types.declared import NOTHING_DECLARED, ClassDeclaration, TypeContext
from statetool.types.java import PRIMITIVES, JavaType

_NUMBERS: Final = ("int8", "int16", "int32", "int64", "float32", "float64")
#: Types of fields that hold a string or an object of another class.
_OBJECTS: Final = ("java.lang.Object", "java.io.Serializable", "java.lang.Comparable")
#: Marker of a field without a default: the user must choose its value.
NO_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True)
class TypeAtPath:
    """A type at one path of a value. ``schema`` is its Avro schema, ``named`` has the schemas that it refers to by name.

    ``java`` is the Java type of a value that Kryo writes, ``kryo`` is the Kryo of the job, and ``classes`` has the declarations of its class.
    """

    logical: LogicalType
    serializer: Serializer | None = None
    schema: Any = None
    named: Mapping[str, Any] = field(default_factory=dict)
    java: JavaType | None = None
    classes: TypeContext = NOTHING_DECLARED
    kryo: KryoInstance | None = None

    @classmethod
    def of(cls, serializer: Serializer) -> TypeAtPath:
        """Return the side of a serializer. A serializer that only adds null to another has the side of the other."""
        serializer = unwrap(serializer)
        while len(children := serializer.children()) == 1 and children[0][1].logical == serializer.logical:
            serializer = unwrap(children[0][1])
        if isinstance(serializer, AvroSerializer):
            schema = json.loads(serializer.schema_json)
            named = named_schemas(schema)
            return cls(serializer.logical, None, _resolve(schema, named), named)
        if isinstance(serializer, KryoSerializer):
            return cls(
                serializer.logical,
                serializer,
                java=serializer.java_type,
                classes=serializer.context,
                kryo=serializer.instance,
            )
        return cls(serializer.logical, serializer)

    @property
    def type_name(self) -> str:
        """The type, as readable text."""
        if self.serializer is not None:
            return self.serializer.type_name
        if self.schema is not None:
            return f"Avro {self.schema['name']}" if _is_named(self.schema) else f"Avro {_kind(self.schema)}"
        return (
            self.logical.name if isinstance(self.logical, Scalar) else type(self.logical).__name__.removesuffix("Type")
        )

    @property
    def unreadable(self) -> str:
        """Reason why values cannot be converted, empty if they can."""
        s = self.serializer
        if s is not None and (isinstance(s, OpaqueSerializer) or (s.needs_frame and not s.children())):
            return s.missing_declaration_hint or f"the content of {s.type_name} is unknown"
        if (
            self.schema is not None
            and self.logical == Scalar("binary")
            and _kind(self.schema) not in ("bytes", "fixed")
        ):
            return f"{self.type_name} refers to itself"
        return ""

    @property
    def only_text(self) -> bool:
        """Whether values are JSON text because the fields of their class are unknown. Only Kryo can recreate objects from it."""
        if self.logical != Scalar("string"):
            return False
        if self.serializer is None:
            return self.java is not None and (self.is_object or self._is_undeclared(self.java))
        return is_text_only(self.serializer)

    @property
    def is_object_text(self) -> bool:
        """Whether values are JSON text of objects whose classes only the values tell."""
        return self.java is not None and self.kryo is not None and is_object_text(self.java, self.logical, self.kryo)

    @property
    def is_java_serialized(self) -> bool:
        """Whether values are the bytes of Java serialization."""
        return self.java is not None and self.kryo is not None and self.kryo.by_java(self.java.name)

    @property
    def is_object(self) -> bool:
        """Whether values are JSON text of objects of any class, such as a Java string."""
        return self.java is not None and (self.java.as_json or self.java.name in _OBJECTS)

    def _is_undeclared(self, java: JavaType) -> bool:
        known = java.name in PRIMITIVES or java.name.startswith("java.")
        return not known and self.classes.find(java.name) is None

    @property
    def constants(self) -> tuple[str, ...]:
        """The constants of an enum, empty for other types."""
        if isinstance(self.serializer, EnumSerializer):
            return self.serializer.names
        if self.schema is not None and _kind(self.schema) == "enum":
            return tuple(self.schema["symbols"])
        declared = self._declared
        return declared.constants if declared is not None and declared.kind == "enum" else ()

    @property
    def message(self) -> ClassDeclaration | None:
        """The declaration of a Protobuf message, ``None`` for other types."""
        if isinstance(self.serializer, MessageSerializer):
            return self.serializer.message
        declared = self._declared
        return declared if declared is not None and declared.kind == "protobuf" else None

    @property
    def _declared(self) -> ClassDeclaration | None:
        return None if self.java is None else self.classes.find(self.java.name)

    @property
    def nullable(self) -> bool:
        """Whether an added part may be null."""
        return not isinstance(self.serializer, TupleSerializer)

    def part(self, index: int, logical: LogicalType) -> TypeAtPath:
        """Return the element of a list, or the key (0) or value (1) of a map."""
        if self.schema is not None:
            node = self.schema.get("items", self.schema.get("values")) if isinstance(self.schema, dict) else None
            if index == 0 and isinstance(self.schema, dict) and "values" in self.schema:
                return TypeAtPath(logical)
            return TypeAtPath(logical, None, _resolve(node, self.named), self.named)
        return self._child(index, logical)

    def field(self, name: str, logical: LogicalType) -> TypeAtPath:
        """Return a field of a struct."""
        if self.schema is not None:
            entry = self._entry(name)
            return TypeAtPath(logical, None, None if entry is None else _resolve(entry["type"], self.named), self.named)
        if self.java is not None:
            return TypeAtPath(logical, java=self._java_field(name), classes=self.classes, kryo=self.kryo)
        if self.serializer is None:
            return TypeAtPath(logical)
        child = dict(self.serializer.children()).get(name)
        return TypeAtPath(logical) if child is None or child.logical != logical else TypeAtPath.of(child)

    def aliases(self, name: str) -> tuple[str, ...]:
        """Return the older names of a field in an Avro schema."""
        entry = self._entry(name) if self.schema is not None else None
        return () if entry is None else tuple(entry.get("aliases", ()))

    def default(self, name: str, logical: LogicalType) -> Any:
        """Return the default of an added field, ``NO_DEFAULT`` if the user must choose its value.

        The default of a POJO's numbers is 0, since snapshots describe ``int`` and ``Integer`` alike and ``int`` has no null.
        """
        if isinstance(self.schema, list):
            return None
        if self.schema is not None:
            entry = self._entry(name)
            return NO_DEFAULT if entry is None else _avro_default(entry, logical, self.named)
        if isinstance(self.serializer, PojoSerializer):
            return _zero(logical)
        if (kind := self._java_field(name)) is not None and kind.name in PRIMITIVES:
            return "\0" if kind.name == "char" else _zero(logical)
        if not self.nullable:
            zero = _zero(logical)
            return NO_DEFAULT if zero is None else zero
        return None

    def _java_field(self, name: str) -> JavaType | None:
        """Return the declared type of a field of a class that Kryo writes, or of one of its subclasses."""
        if self.java is None:
            return None
        if self.java.name == "java.util.Optional":
            return self.java.args[0] if self.java.args else None
        declared = self.classes.find(self.java.name)
        for cls in (*([] if declared is None else [declared]), *self.classes.subclasses(self.java.name)):
            if name in (names := dict(cls.fields)):
                return resolve_type(names[name], dict(zip(cls.parameters, self.java.args, strict=False)))
        return None

    def _entry(self, name: str) -> Any:
        fields = self.schema.get("fields", ()) if isinstance(self.schema, dict) else ()
        return next((f for f in fields if f["name"] == name), None)

    def _child(self, index: int, logical: LogicalType) -> TypeAtPath:
        if self.java is not None:
            args = self.java.args
            if (declared := self._declared) is not None and declared.element_types:
                args = declared.element_types
            part = args[index] if index < len(args) else None
            return TypeAtPath(logical, java=part, classes=self.classes, kryo=self.kryo)
        children = () if self.serializer is None else self.serializer.children()
        if index < len(children) and unwrap(children[index][1]).logical == logical:
            return TypeAtPath.of(children[index][1])
        return TypeAtPath(logical)


def _zero(logical: LogicalType) -> Any:
    match logical:
        case Scalar("bool"):
            return False
        case Scalar(name) if name in _NUMBERS:
            return 0
    return None


def _avro_default(entry: Mapping[str, Any], logical: LogicalType, named: Mapping[str, Any]) -> Any:
    """Return the default of a field as a value of its column: Avro's JSON stores bytes as text, and times in the schema's unit."""
    if "default" not in entry:
        return NO_DEFAULT
    return _avro_value(entry["default"], _resolve(entry["type"], named), logical, named)


def _avro_value(value: Any, schema: Any, logical: LogicalType, named: Mapping[str, Any]) -> Any:
    if value is None:
        return None
    match logical:
        case StructType(fields) if isinstance(value, dict) and isinstance(schema, dict) and "fields" in schema:
            entries = {f["name"]: f for f in schema["fields"]}
            with_values = {n: {**f, "default": value[n]} if n in value else f for n, f in entries.items()}
            values = {f.name: _avro_default(with_values[f.name], f.type, named) for f in fields}
            return NO_DEFAULT if any(v is NO_DEFAULT for v in values.values()) else values
        case ListType(element) if isinstance(value, list):
            elements = [_avro_value(v, _resolve(schema["items"], named), element, named) for v in value]
            return NO_DEFAULT if any(v is NO_DEFAULT for v in elements) else elements
        case MapType(_, part) if isinstance(value, dict):
            elements = [_avro_value(v, _resolve(schema["values"], named), part, named) for v in value.values()]
            return NO_DEFAULT if any(v is NO_DEFAULT for v in elements) else list(zip(value, elements, strict=True))
        case TimestampType(unit="ns") if isinstance(value, int):
            return dict(zip(("timestamp", "nanos"), divmod(value, 1000), strict=True))
        case TimestampType(unit="ms") if isinstance(value, int):
            return value * 1000
        case Scalar("time") if isinstance(value, int):
            return value * (1_000_000 if schema["logicalType"] == "time-millis" else 1000)
        case DecimalType(_, scale) if _is_bytes(value):
            return to_decimal(int.from_bytes(value.encode("latin-1"), "big", signed=True), scale)
        case Scalar("binary") if _is_bytes(value) and _kind(schema) in ("bytes", "fixed"):
            return value.encode("latin-1")
        case Scalar() | TimestampType() | DateType() if isinstance(value, str | int | float):
            return value
    return NO_DEFAULT


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(c) < 256 for c in value)


def _kind(schema: Any) -> str:
    kind = schema["type"] if isinstance(schema, dict) else "union" if isinstance(schema, list) else schema
    return _kind(kind) if isinstance(kind, dict) else str(kind)


def _is_named(schema: Any) -> bool:
    return isinstance(schema, dict) and "name" in schema


def _resolve(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return the schema that a name refers to; for a nullable type, the type without null."""
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        return _resolve(branches[0], named) if len(branches) == 1 else schema
    if isinstance(schema, str):
        return named.get(schema, schema)
    if isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
        return _resolve(schema["type"], named)
    return schema
