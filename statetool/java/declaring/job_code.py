"""Java and Python code that declares state in a job, for users who write state first and then need a job that reads it.

A job passes ``TypeInformation`` to its descriptors and to ``keyBy``, and Flink creates serializers from it. This module inverts that step.
Follows ``org.apache.flink.api.common.typeinfo.Types`` and the state descriptors, Flink 1.13 to 2.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from statetool.formats.state_meta import StateMetaInfo
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleSerializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.serializers.runtime import TtlSerializer, unwrap
from statetool.serializers.typeutils.arrays import GenericArraySerializer
from statetool.serializers.typeutils.collections import ListSerializer, MapSerializer, SetSerializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.serializers.typeutils.options import EitherSerializer
from statetool.serializers.typeutils.pojo import PojoSerializer
from statetool.serializers.typeutils.row import RowSerializer
from statetool.serializers.typeutils.tuples import TupleSerializer
from statetool.types import Scalar
from statetool.types.java import PRIMITIVES
from statetool.types.python_types import PythonState, PythonType


@dataclass(frozen=True, slots=True)
class JavaInfo:
    """The Java class of values, and the ``TypeInformation`` that a job declares, ``None`` if there is none."""

    java_class: str
    information: str | None


_BASE: Final = "org.apache.flink.api.common.typeinfo."
_TYPEUTILS: Final = "org.apache.flink.api.java.typeutils."
_VALUES: Final = "org.apache.flink.types."
#: Keyed by the name of the serializer's class without ``Serializer``.
_SIMPLE: Final = {
    "Boolean": JavaInfo("Boolean", "Types.BOOLEAN"),
    "Byte": JavaInfo("Byte", "Types.BYTE"),
    "Short": JavaInfo("Short", "Types.SHORT"),
    "Int": JavaInfo("Integer", "Types.INT"),
    "Long": JavaInfo("Long", "Types.LONG"),
    "Float": JavaInfo("Float", "Types.FLOAT"),
    "Double": JavaInfo("Double", "Types.DOUBLE"),
    "Char": JavaInfo("Character", "Types.CHAR"),
    "String": JavaInfo("String", "Types.STRING"),
    "BigInt": JavaInfo("BigInteger", "Types.BIG_INT"),
    "BigDec": JavaInfo("BigDecimal", "Types.BIG_DEC"),
    "Void": JavaInfo("Void", "Types.VOID"),
    "Date": JavaInfo("java.util.Date", f"{_BASE}BasicTypeInfo.DATE_TYPE_INFO"),
    "SqlDate": JavaInfo("java.sql.Date", "Types.SQL_DATE"),
    "SqlTime": JavaInfo("java.sql.Time", "Types.SQL_TIME"),
    "SqlTimestamp": JavaInfo("java.sql.Timestamp", "Types.SQL_TIMESTAMP"),
    "Instant": JavaInfo("Instant", "Types.INSTANT"),
    "LocalDate": JavaInfo("LocalDate", "Types.LOCAL_DATE"),
    "LocalTime": JavaInfo("LocalTime", "Types.LOCAL_TIME"),
    "LocalDateTime": JavaInfo("LocalDateTime", "Types.LOCAL_DATE_TIME"),
    "StringArray": JavaInfo("String[]", f"{_BASE}BasicArrayTypeInfo.STRING_ARRAY_TYPE_INFO"),
    "Variant": JavaInfo("org.apache.flink.types.variant.Variant", "Types.VARIANT"),
    "Bitmap": JavaInfo("org.apache.flink.types.bitmap.Bitmap", "Types.BITMAP"),
}
#: Packages of the classes that the code names without a package.
_PACKAGES: Final = {
    **dict.fromkeys(("Types", "TypeInformation"), "org.apache.flink.api.common.typeinfo"),
    **{
        f"{n}StateDescriptor": "org.apache.flink.api.common.state"
        for n in ("Value", "List", "Map", "Reducing", "Aggregating")
    },
    **dict.fromkeys(("List", "Map", "Set"), "java.util"),
    **dict.fromkeys(("BigInteger", "BigDecimal"), "java.math"),
    **dict.fromkeys(("Instant", "LocalDate", "LocalTime", "LocalDateTime"), "java.time"),
    **{f"Tuple{n}": "org.apache.flink.api.java.tuple" for n in range(26)},
    **dict.fromkeys(("Row", "Either"), "org.apache.flink.types"),
}
_WORD: Final = re.compile(r"(?<![\w.\"])[A-Z]\w*(?!\w)")


def java_info(serializer: Serializer) -> JavaInfo:
    """Return the Java class and ``TypeInformation`` of a serializer's values."""
    serializer = unwrap(serializer)
    match serializer:
        case SimpleSerializer():
            return _simple(serializer)
        case TupleSerializer() if serializer.outer.startswith("org.apache.flink.api.java.tuple."):
            return _generic(serializer.outer.rpartition(".")[2], "TUPLE", serializer.nested)
        case RowSerializer():
            return JavaInfo("Row", _generic("Row", "ROW", serializer.nested).information)
        case SetSerializer():
            element = java_info(serializer.nested[0])
            information = element.information and f"new {_TYPEUTILS}SetTypeInfo<>({element.information})"
            return JavaInfo(f"Set<{element.java_class}>", information)
        case MapSerializer():
            return _generic("Map", "MAP", serializer.nested)
        case ListSerializer():
            return _generic("List", "LIST", serializer.nested)
        case GenericArraySerializer():
            element = java_info(serializer.nested[0])
            return JavaInfo(
                f"{element.java_class}[]", element.information and f"Types.OBJECT_ARRAY({element.information})"
            )
        case PojoSerializer():
            return _of_class("POJO", serializer.pojo_class)
        case EnumSerializer() if type(serializer) is EnumSerializer:
            return _of_class("ENUM", serializer.enum_class)
        case KryoSerializer():
            return _of_class("GENERIC", serializer.type_class)
        case AvroSerializer():
            return _avro(serializer)
        case EitherSerializer() if "scala" not in serializer.snapshot_class:
            return _generic("Either", "EITHER", serializer.nested)
    return JavaInfo(f"/* {serializer.type_name} */ Object", None)


def _simple(serializer: SimpleSerializer) -> JavaInfo:
    name = serializer.spec.name
    if name in _SIMPLE:
        return _SIMPLE[name]
    primitive = name.removesuffix("PrimitiveArray").lower()
    if primitive in PRIMITIVES and primitive != name.lower():
        constant = f"{primitive.upper()}_PRIMITIVE_ARRAY_TYPE_INFO"
        return JavaInfo(f"{primitive}[]", f"{_BASE}PrimitiveArrayTypeInfo.{constant}")
    if name.endswith("Value"):
        return JavaInfo(f"{_VALUES}{name}", f"Types.VALUE({_VALUES}{name}.class)")
    return JavaInfo(f"/* {name} */ Object", None)


def _generic(java_class: str, word: str, parts: Sequence[Serializer]) -> JavaInfo:
    infos = [java_info(part) for part in parts]
    known = [info.information for info in infos if info.information is not None]
    return JavaInfo(
        f"{java_class}<{', '.join(info.java_class for info in infos)}>",
        f"Types.{word}({', '.join(known)})" if len(known) == len(infos) else None,
    )


def _of_class(word: str, name: str) -> JavaInfo:
    source = name.replace("$", ".")
    return JavaInfo(source, f"Types.{word}({source}.class)")


def _avro(serializer: AvroSerializer) -> JavaInfo:
    utils = "org.apache.flink.formats.avro.typeutils."
    name = (serializer.runtime_class or "").replace("$", ".")
    if name in ("", "org.apache.avro.generic.GenericRecord"):
        schema = f"new org.apache.avro.Schema.Parser().parse({json.dumps(serializer.schema_json)})"
        return JavaInfo("org.apache.avro.generic.GenericRecord", f"new {utils}GenericRecordAvroTypeInfo({schema})")
    return JavaInfo(name, f"new {utils}AvroTypeInfo<>({name}.class)")


def java_of_keyed(key: Serializer, metas: Iterable[StateMetaInfo]) -> str:
    """Return the Java code of a job with this keyed state: ``keyBy`` and a descriptor for each state."""
    info = java_info(key)
    lines = [f"// stream.keyBy(..., {info.information or f'/* {info.java_class} */'}).process(...).uid(...)"]
    lines += [line for meta in metas for line in _keyed_lines(meta)]
    return _with_imports(lines)


def java_of_elements(meta: StateMetaInfo) -> str:
    """Return the Java code of a job with this operator state."""
    get = {"list": "getListState", "union": "getUnionListState", "broadcast": "getBroadcastState"}[meta.kind]
    if meta.kind == "broadcast":
        types = (meta.serializers["KEY_SERIALIZER"], meta.value)
        line = _descriptor("Map", meta.name, [java_info(t) for t in types])
    else:
        line = _descriptor("List", meta.name, [java_info(meta.value)])
    return _with_imports([f"// in initializeState: context.getOperatorStateStore().{get}(...)", line])


def _keyed_lines(meta: StateMetaInfo) -> list[str]:
    if meta.kind == "timers":
        return [f"// timers {meta.name!r}: ctx.timerService() of the same operator"]
    parts = [unwrap(part) for part in (meta.parts or (meta.value,))]
    ttl = any(isinstance(part, TtlSerializer) for part in parts)
    infos = [java_info(part.value if isinstance(part, TtlSerializer) else part) for part in parts]
    lines = []
    if meta.namespace is not None and meta.namespace.logical != Scalar("null"):
        lines.append(f"// with namespaces of type {meta.namespace.type_name}: a window operator declares it")
    lines.append(_descriptor(meta.kind.capitalize(), meta.name, infos))
    if ttl:
        lines.append(f"{_variable(meta.name)}.enableTimeToLive(...);  // the values keep when they were last used")
    return lines


def _descriptor(kind: str, name: str, infos: Sequence[JavaInfo]) -> str:
    function = {"Reducing": "reduceFunction, ", "Aggregating": "aggregateFunction, "}.get(kind, "")
    classes = ", ".join(info.java_class for info in infos)
    variable, text = _variable(name), json.dumps(name)
    if kind == "Aggregating":
        classes = f"/* in */ Object, {classes}, /* out */ Object"
    missing = [info.java_class for info in infos if info.information is None]
    if missing:
        return (
            f"// state {text} of {', '.join(missing)}: no TypeInformation makes it; give the descriptor its serializer"
        )
    types = ", ".join(str(info.information) for info in infos)
    return f"{kind}StateDescriptor<{classes}> {variable} = new {kind}StateDescriptor<>({text}, {function}{types});"


def _variable(name: str) -> str:
    """Return the name of a variable: the words of a state's name in camel case and ``State``, which avoids keywords."""
    words = [w for w in re.split(r"[^A-Za-z0-9]+", name) if w]
    joined = "".join(w if i == 0 else w[0].upper() + w[1:] for i, w in enumerate([*words, "state"]))
    return joined[0].lower() + joined[1:] if joined[0].isalpha() else f"_{joined}"


def _with_imports(lines: Sequence[str]) -> str:
    code = "\n".join(line for line in lines if not line.startswith("//"))
    named = sorted({f"{_PACKAGES[word]}.{word}" for word in _WORD.findall(code) if word in _PACKAGES})
    return "\n".join([*(f"import {name};" for name in named), *([""] if named else []), *lines])


def python_of_keyed(states: Iterable[tuple[str, PythonState]]) -> str:
    """Return the Python code of a PyFlink job with such states, by their names in the job."""
    lines = ["from pyflink.common import Types", "from pyflink.datastream.state import *", ""]
    for name, state in states:
        types = ", ".join(_python_type(t) for t in state.types)
        kind = f"{state.kind.capitalize()}StateDescriptor"
        lines.append(f"{_snake(name)} = {kind}({json.dumps(name)}, {types})")
    return "\n".join(lines)


def _snake(name: str) -> str:
    word = "_".join(w for w in (*re.split(r"\W+", name), "state") if w)
    return f"_{word}" if word[0].isdigit() else word


def _python_type(kind: PythonType) -> str:
    inside = ", ".join(_python_type(t) for t in kind.args)
    if kind.name == "ROW" and kind.names:
        return f"Types.ROW_NAMED({json.dumps(list(kind.names))}, [{inside}])"
    return f"Types.{kind.name}([{inside}])" if kind.name in ("ROW", "TUPLE") else f"Types.{kind.name}({inside})"
