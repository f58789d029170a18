"""Serializer snapshots of Java types, chosen like Flink's type extraction does for the fields of a POJO.

Needed for classes that a snapshot does not describe, such as POJO subclasses that the job had not seen when it registered the state (heap
backend). Boxes, text, big numbers, ``java.sql`` dates and ``Instant`` have dedicated serializers. Declared classes are POJOs, or use Kryo
if they are declared so. In Flink 2.x, ``List``, ``Map`` and ``Set`` with type arguments use Flink's nullable variants. Everything else uses
Kryo. Follows ``TypeExtractor``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.base import Serializer
from statetool.serializers.optional_map import OptionalEntry, write_optional_map
from statetool.serializers.snapshot import COMPOSITE_MAGIC, NESTED_MAGIC, SnapshotReader
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.java import BOXES, OBJECT, PRIMITIVES, JavaType

_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."
_DUMMY: Final = f"{_RUNTIME}kryo.Serializers$DummyAvro"
AVRO_ARRAY: Final = "org.apache.avro.generic.GenericData$Array"
_NAMES: Final = {
    **dict(
        zip(PRIMITIVES.values(), ("Boolean", "Byte", "Short", "Char", "Int", "Long", "Float", "Double"), strict=True)
    ),
    "java.lang.String": "String",
    "java.lang.Void": "Void",
    "java.math.BigInteger": "BigInt",
    "java.math.BigDecimal": "BigDec",
    "java.util.Date": "Date",
    "java.sql.Date": "SqlDate",
    "java.sql.Time": "SqlTime",
    "java.sql.Timestamp": "SqlTimestamp",
    "java.time.Instant": "Instant",
}


def serializer_snapshot(kind: JavaType, context: TypeContext, *, generic: bool = False) -> bytes:
    """Return the snapshot of the serializer of a type; ``generic`` types are written by Kryo in any case."""
    out = Output()
    if generic:
        _kryo(out, kind.binary_name)
    else:
        _type(out, kind, context, ())
    return bytes(out)


def class_snapshot(declared: ClassDeclaration, context: TypeContext) -> bytes:
    """Return the snapshot of the serializer that Flink uses for values of a declared class."""
    out = Output()
    _class(out, declared, context, ())
    return bytes(out)


def renewed_serializer(reader: SnapshotReader, declared: ClassDeclaration) -> Serializer:
    """Return the serializer of a job that starts with a class. The serializers of its fields are chosen with it."""
    types = replace(reader.types, renewed=False)
    return replace(reader, types=types).snapshot(Cursor(class_snapshot(declared, types)))


def _simple(out: Output, name: str, package: str = _BASE) -> None:
    out.utf(f"{package}{name}Serializer${name}SerializerSnapshot")
    out.i4(3)


def _composite(out: Output, name: str, outer_version: int, outer: bytes, parts: int) -> None:
    """Append a composite snapshot up to its parts, which must follow."""
    out.utf(name)
    out.i4(3)
    out.i4(COMPOSITE_MAGIC)
    out.i4(outer_version)
    out += outer
    out.i4(NESTED_MAGIC)
    out.i4(1)
    out.i4(parts)


def _nullable(out: Output) -> None:
    _composite(out, _RUNTIME + "NullableSerializer$NullableSerializerSnapshot", 2, bytes(4), 1)


def _type(out: Output, kind: JavaType, context: TypeContext, enclosing: tuple[str, ...]) -> None:
    name = PRIMITIVES.get(kind.name, kind.name)
    declared = context.find(name)
    if name in _NAMES:
        _simple(out, _NAMES[name])
    elif kind.is_array:
        _array(out, kind.args[0], context, enclosing)
    elif declared is not None and name not in enclosing and not declared.generic:
        _class(out, declared, context, enclosing)
    elif context.kryo == 5 and name in ("java.util.List", "java.util.Set", "java.util.Map") and kind.args:
        _collection(out, kind, context, enclosing)
    else:
        _kryo(out, kind.binary_name)


def _array(out: Output, element: JavaType, context: TypeContext, enclosing: tuple[str, ...]) -> None:
    if element.name in PRIMITIVES:
        _simple(out, f"{_NAMES[PRIMITIVES[element.name]]}PrimitiveArray", _BASE + "array.")
    elif element.name == "java.lang.String":
        _simple(out, "StringArray", _BASE + "array.")
    elif element == OBJECT:
        _kryo(out, JavaType("[]", (element,)).binary_name)
    else:
        component = Output()
        component.utf(element.binary_name)
        _composite(out, _BASE + "GenericArraySerializerSnapshot", 1, bytes(component), 1)
        _type(out, element, context, enclosing)


def _collection(out: Output, kind: JavaType, context: TypeContext, enclosing: tuple[str, ...]) -> None:
    _nullable(out)
    short = kind.name.rpartition(".")[2]
    _composite(out, f"{_BASE}{short}SerializerSnapshot", 1, b"", len(kind.args))
    for i, arg in enumerate(kind.args):
        # NullableListTypeInfo and NullableMapTypeInfo wrap elements and values, but not map keys.
        if i == 0 and short != "Set":
            _nullable(out)
        _type(out, arg, context, enclosing)


def _class(out: Output, declared: ClassDeclaration, context: TypeContext, enclosing: tuple[str, ...]) -> None:
    if declared.kind == "enum":
        out.utf(_BASE + "EnumSerializer$EnumSerializerSnapshot")
        out.i4(3)
        out.utf(declared.name)
        out.i4(len(declared.constants))
        for constant in declared.constants:
            out.utf(constant)
        return
    if declared.kind != "record" or declared.generic:
        _kryo(out, declared.name)
        return
    out.utf(_RUNTIME + "PojoSerializerSnapshot")
    out.i4(2)
    out.utf(declared.name)
    fields = []
    for name, kind in sorted(declared.fields):
        serializer = Output()
        _type(serializer, kind, context, (*enclosing, declared.name))
        key = Output()
        key.utf(declared.name)
        key.utf(name)
        fields.append(OptionalEntry(name=name, key=bytes(key), value=bytes(serializer), value_at=0))
    write_optional_map(out, tuple(fields))
    write_optional_map(out, ())
    write_optional_map(out, ())


def avro_placeholder() -> OptionalEntry:
    """Return the registration that Flink makes for arrays of Avro if the job does not have Avro."""
    return _registration(AVRO_ARRAY, f"{_DUMMY}RegisteredClass", f"{_DUMMY}KryoSerializerClass")


def _registration(cls: str, registered: str, serializer: str) -> OptionalEntry:
    key, value = Output(), Output()
    key.utf(cls)
    value.utf(registered)
    value.i4(1 if serializer else 0)
    if serializer:
        value.utf(serializer)
    return OptionalEntry(name=cls, key=bytes(key), value=bytes(value), value_at=0)


def _kryo(out: Output, name: str) -> None:
    out.utf(_RUNTIME + "kryo.KryoSerializerSnapshot")
    out.i4(2)
    out.utf(name)
    entries = []
    box = BOXES.get(name, name)
    entries += [_registration(box, box, ""), avro_placeholder()]
    write_optional_map(out, tuple(entries))
    write_optional_map(out, ())
    write_optional_map(out, ())
