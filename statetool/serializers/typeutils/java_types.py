"""Serializer snapshots of Java types, chosen like Flink's type extraction does for the fields of a POJO.

Needed for classes that a snapshot does not describe: those with which a new job starts, and POJO subclasses that the job had not seen when
it registered the state (heap backend). The class files of the job's jar decide (:mod:`statetool.java.classes.type_extraction`). For classes that
the user declared, the declared types of their fields do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.snapshot import COMPOSITE_MAGIC, NESTED_MAGIC
from statetool.serializers.typeutils.basic import write_string
from statetool.serializers.typeutils.optional_map import OptionalEntry, write_optional_map
from statetool.types.declared import ClassDeclaration, TypeContext
from statetool.types.java import BOXES, PRIMITIVES, JavaType
from statetool.types.type_information import SIMPLE, TypeInformation, kryo, simple

_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."
_DUMMY: Final = f"{_RUNTIME}kryo.Serializers$DummyAvro"
AVRO_ARRAY: Final = "org.apache.avro.generic.GenericData$Array"
_TUPLE: Final = "org.apache.flink.api.java.tuple.Tuple"
_EITHER: Final = "org.apache.flink.types.Either"
_PAIR: Final = 2
_COLLECTIONS: Final = frozenset(
    ("java.util.List", "java.util.Set", "java.util.Map", "java.util.Collection", "java.lang.Iterable")
)
#: Snapshot class of each container, the version of its own part, and whether that is the name of a class.
_COMPOSITES: Final = {
    "array": (_BASE + "GenericArraySerializerSnapshot", 1, True),
    "tuple": (_RUNTIME + "TupleSerializerSnapshot", 2, True),
    "either": (_RUNTIME + "JavaEitherSerializerSnapshot", 1, False),
    "nullable": (_RUNTIME + "NullableSerializer$NullableSerializerSnapshot", 2, False),
    "list": (_BASE + "ListSerializerSnapshot", 1, False),
    "set": (_BASE + "SetSerializerSnapshot", 1, False),
    "map": (_BASE + "MapSerializerSnapshot", 1, False),
    "row": (_RUNTIME + "RowSerializer$RowSerializerSnapshot", 4, False),
}
#: Parts of the containers themselves that are not the name of a class: padding of nulls, and that rows store their kind.
_PAYLOADS: Final = {"nullable": bytes(4), "row": b"\1"}


def serializer_snapshot(kind: JavaType, context: TypeContext, *, generic: bool = False) -> bytes:
    """Return the snapshot of the serializer of a type; ``generic`` types are written by Kryo in any case."""
    out = Output()
    _write(out, kryo(kind.binary_name) if generic else _of_type(kind, context, ()))
    return bytes(out)


def class_snapshot(declared: ClassDeclaration, context: TypeContext) -> bytes:
    """Return the snapshot of the serializer that Flink uses for values of a declared class."""
    out = Output()
    _write(out, _of_class(declared, context, ()))
    return bytes(out)


def type_snapshot(found: TypeInformation, former: Serializer | None, kept: Mapping[str, bytes]) -> bytes:
    """Return the snapshot of a serializer. Fields of a POJO whose serializer is unknown have none.

    Parameters
    ----------
    former
        The serializer in whose place it is. Kryo's keep their registrations, which the job's configuration decides.
    kept
        Snapshots of fields of the class itself that only the job's code determines.
    """
    out = Output()
    _write(out, found, former, kept)
    return bytes(out)


def _simple(out: Output, name: str, package: str = _BASE) -> None:
    out.utf(f"{package}{name}Serializer${name}SerializerSnapshot")
    out.i4(3)


def _composite(
    out: Output,
    name: str,
    outer_version: int,
    outer: bytes,
    parts: Sequence[TypeInformation],
    former: Serializer | None,
) -> None:
    before = () if former is None else tuple(child for _, child in former.children())
    out.utf(name)
    out.i4(3)
    out.i4(COMPOSITE_MAGIC)
    out.i4(outer_version)
    out += outer
    out.i4(NESTED_MAGIC)
    out.i4(1)
    out.i4(len(parts))
    for i, part in enumerate(parts):
        _write(out, part, before[i] if len(before) == len(parts) else None)


def _of_type(kind: JavaType, context: TypeContext, enclosing: tuple[str, ...]) -> TypeInformation:
    """Return the serializer of a field whose type the user declared."""
    name = PRIMITIVES.get(kind.name, kind.name)
    declared = context.find(name)
    if name in SIMPLE:
        return simple(name)
    if kind.is_array:
        return _of_array(kind.args[0], context, enclosing)
    if declared is not None and name not in enclosing and not declared.generic:
        return _of_class(declared, context, enclosing)
    parts = tuple(_of_type(arg, context, enclosing) for arg in kind.args)
    if name.startswith(_TUPLE) and parts:
        return TypeInformation("tuple", name, parts=parts)
    if name == _EITHER and len(parts) == _PAIR:
        return TypeInformation("either", parts=parts)
    if context.kryo == 5 and parts and all(not arg.args or arg.is_array for arg in kind.args):
        short = "list" if name in ("java.util.Collection", "java.lang.Iterable") else name.rpartition(".")[2].lower()
        if name in _COLLECTIONS and short in ("list", "set", "map"):
            first = parts[:1] if short == "set" else (TypeInformation("nullable", parts=parts[:1]),)
            return TypeInformation("nullable", parts=(TypeInformation(short, parts=(*first, *parts[1:])),))  # type: ignore[arg-type]
    return kryo(kind.binary_name)


def _of_array(element: JavaType, context: TypeContext, enclosing: tuple[str, ...]) -> TypeInformation:
    name = JavaType("[]", (element,)).binary_name
    if element.name in PRIMITIVES:
        return TypeInformation("simple", name, f"{SIMPLE[PRIMITIVES[element.name]]}PrimitiveArray")
    if element.name == "java.lang.String":
        return TypeInformation("simple", name, "StringArray")
    return TypeInformation("array", element.binary_name, parts=(_of_type(element, context, enclosing),))


def _of_class(declared: ClassDeclaration, context: TypeContext, enclosing: tuple[str, ...]) -> TypeInformation:
    if (found := context.type_information(declared.name)) is not None:
        return found
    if declared.kind == "enum":
        return TypeInformation("enum", declared.name, constants=declared.constants)
    if declared.kind != "record" or declared.generic:
        return kryo(declared.name)
    fields = sorted(declared.fields)
    inside = (*enclosing, declared.name)
    parts = tuple(_of_type(kind, context, inside) for _, kind in fields)
    return TypeInformation("pojo", declared.name, parts=parts, fields=tuple((n, declared.name) for n, _ in fields))


def _write(
    out: Output,
    found: TypeInformation,
    former: Serializer | None = None,
    kept: Mapping[str, bytes] | None = None,
) -> None:
    match found.kind:
        case "simple" if found.name == "Tuple0":
            out.utf(f"{_RUNTIME}Tuple0SerializerSnapshot")
            out.i4(3)
        case "simple":
            _simple(out, found.name, f"{_BASE}array." if found.name.endswith("Array") else _BASE)
        case "pojo":
            _pojo(out, found, former, kept or {})
        case "kryo" if former is not None and is_kryo_of(former, found.java_class):
            former.write_snapshot(out)
        case "kryo":
            _kryo(out, found.java_class)
        case "enum":
            out.utf(_BASE + "EnumSerializer$EnumSerializerSnapshot")
            out.i4(3)
            out.utf(found.java_class)
            out.i4(len(found.constants))
            for constant in found.constants:
                out.utf(constant)
        case "copyable" | "value":
            name = "CopyableValue" if found.kind == "copyable" else "Value"
            out.utf(f"{_RUNTIME}{name}Serializer${name}SerializerSnapshot")
            out.i4(2)
            out.utf(found.java_class)
        case "avro":
            out.utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot")
            out.i4(3)
            write_string(out, found.java_class)
            write_string(out, found.constants[0])
        case _:
            name, outer_version, outer = _COMPOSITES[found.kind]
            class_name = Output()
            if outer:
                class_name.utf(found.java_class)
            payload = _PAYLOADS.get(found.kind, bytes(class_name))
            _composite(out, name, outer_version, payload, found.parts, former)


def _pojo(out: Output, found: TypeInformation, former: Serializer | None, kept: Mapping[str, bytes]) -> None:
    before = {} if former is None else dict(former.children())
    out.utf(_RUNTIME + "PojoSerializerSnapshot")
    out.i4(2)
    out.utf(found.java_class)
    fields = []
    for (name, owner), part in zip(found.fields, found.parts, strict=True):
        key = Output()
        key.utf(owner)
        key.utf(name)
        value = kept.get(name)
        if value is None and is_written(part):
            serializer = Output()
            _write(serializer, part, before.get(name))
            value = bytes(serializer)
        fields.append(OptionalEntry(name=name, key=bytes(key), value=value, value_at=0))
    write_optional_map(out, tuple(fields))
    write_optional_map(out, ())
    write_optional_map(out, ())


def is_kryo_of(serializer: Serializer, java_class: str) -> bool:
    """Return True for Kryo's serializer of a class."""
    name = serializer.snapshot_class
    return name.endswith(".KryoSerializerSnapshot") and serializer.type_name == f"Kryo {java_class}"


def is_written(found: TypeInformation) -> bool:
    """Return True if a serializer has a snapshot: it is known, except for fields of POJOs in it."""
    if found.kind == "pojo":
        return True
    if found.kind in ("unknown", "variable") or (found.kind == "avro" and not found.constants):
        return False
    return all(map(is_written, found.parts))


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
