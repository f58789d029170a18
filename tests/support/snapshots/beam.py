"""Hand-made serializers of Beam's Flink runner: Java streams of coders, and the two kinds of snapshots around them.

The layout is that of ``org.apache.beam.runners.flink.translation.types``: a coder is an object whose fields are its parts.
"""

from __future__ import annotations

from typing import Any, Final

import cramjam

from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject, JavaText
from statetool.io.java_streams.writer import write_java_stream
from statetool.io.output import Output
from statetool.serializers.core.snapshot import ADAPTER_VERSION

CODERS: Final = "org.apache.beam.sdk.coders."
WINDOWING: Final = "org.apache.beam.sdk.transforms.windowing."
TYPES: Final = "org.apache.beam.runners.flink.translation.types."
STREAMING: Final = "org.apache.beam.runners.flink.translation.wrappers.streaming."
_OBJECT: Final = "Ljava/lang/Object;"


def obj(name: str, /, *blocks: Any, **fields: Any) -> JavaObject:
    """Return an object of a class with these fields (integers and bools are primitives); ``blocks`` were written by its ``writeObject``."""
    codes = {n: "Z" if isinstance(v, bool) else "I" if isinstance(v, int) else "L" for n, v in fields.items()}
    ordered = sorted(fields, key=lambda n: codes[n] == "L")
    described = JavaClass(
        name=name,
        flags=3 if blocks else 2,
        fields=tuple((codes[n], n) for n in ordered),
        suid=7,
        signatures=tuple(_OBJECT for n in ordered if codes[n] == "L"),
    )
    return JavaObject(described, fields, list(blocks))


def coder(name: str, /, **parts: Any) -> JavaObject:
    """Return a Beam coder: ``coder("Kv", keyCoder=..., valueCoder=...)``."""
    return obj(f"{CODERS}{name}Coder", **parts)


def array(*items: Any) -> JavaArray:
    """Return an array of objects."""
    return JavaArray(JavaClass("[Ljava.lang.Object;", flags=2, suid=8), list(items))


def java_list(*items: Any) -> JavaObject:
    """Return an ``ArrayList``."""
    return obj("java.util.ArrayList", len(items).to_bytes(4, "big"), *items, size=len(items))


def java_enum(name: str, constant: str) -> JavaEnum:
    """Return a constant of an enum."""
    parent = JavaClass("java.lang.Enum", flags=0x12)
    return JavaEnum(JavaClass(name, flags=0x12, parent=parent), constant)


def field_type(kind: str, *, nullable: bool = False, **parts: Any) -> JavaObject:
    """Return a type of a Beam schema."""
    constant = java_enum("org.apache.beam.sdk.schemas.Schema$TypeName", kind)
    all_parts = {n: parts.get(n) for n in ("collectionElementType", "mapKeyType", "mapValueType", "rowSchema")}
    name = "org.apache.beam.sdk.schemas.AutoValue_Schema_FieldType"
    return obj(name, nullable=nullable, typeName=constant, **all_parts)


def schema(*, uuid: str = "", **fields: JavaObject) -> JavaObject:
    """Return a Beam schema; the runner gives it a random ``uuid``."""
    described = [
        obj("org.apache.beam.sdk.schemas.AutoValue_Schema_Field", name=JavaText(n), type=t) for n, t in fields.items()
    ]
    name = "org.apache.beam.sdk.schemas.Schema"
    return obj(name, fields=java_list(*described), encodingPositionsOverridden=False, uuid=JavaText(uuid))


def avro(text: str) -> JavaObject:
    """Return ``AvroCoder`` of a schema."""
    supplier = obj(f"{CODERS}AvroCoder$SerializableSchemaString", schema=JavaText(text))
    return coder("Avro", schemaSupplier=supplier)


def tagged(*coders: JavaObject) -> JavaObject:
    """Return the coder of elements that ``DoFnOperator`` holds back, with tags from 1."""
    keys = [obj("java.lang.Integer", value=i + 1) for i in range(len(coders))]
    form = "org.apache.beam.vendor.guava.v26_0_jre.com.google.common.collect.ImmutableBiMap$SerializedForm"
    return obj(
        f"{STREAMING}DoFnOperator$TaggedKvCoder", idsToCoders=obj(form, keys=array(*keys), values=array(*coders))
    )


def windowed(value: JavaObject, window: JavaObject) -> JavaObject:
    """Return ``FullWindowedValueCoder``."""
    windows = coder("Collection", elementCoder=window, iterableName=JavaText("Collection"))
    name = "org.apache.beam.sdk.util.WindowedValue$FullWindowedValueCoder"
    return obj(name, valueCoder=value, windowCoder=window, windowsCoder=windows)


GLOBAL: Final = obj(f"{WINDOWING}GlobalWindow$Coder")
INTERVAL: Final = obj(f"{WINDOWING}IntervalWindow$IntervalWindowCoder")
KEY: Final = obj(f"{STREAMING}FlinkKeyUtils$ByteBufferCoder")
TIMER: Final = obj("org.apache.beam.runners.core.TimerInternals$TimerDataCoderV2", windowCoder=GLOBAL)


def stream(of: JavaObject) -> bytes:
    """Return the Java stream of a serializer with a coder."""
    out = Output()
    write_java_stream(out, obj(f"{TYPES}CoderTypeSerializer", fasterCopy=False, coder=of))
    return bytes(out)


def adapted(name: str, java: bytes, payload: bytes = b"") -> bytes:
    """Return a snapshot of an old kind in the format of Flink 1.7 and later: the serializer's Java stream comes first."""
    out = Output()
    out.utf(name)
    out.i4(ADAPTER_VERSION - (1 << 32) if ADAPTER_VERSION >> 31 else ADAPTER_VERSION)
    out.i4(1)
    out.bytes4(java)
    out.i4(1)
    return bytes(out) + payload


def legacy(of: JavaObject) -> bytes:
    """Return the snapshot of the runner for Flink up to 1.16."""
    return adapted(f"{TYPES}CoderTypeSerializer$LegacySnapshot", stream(of))


def unversioned(of: JavaObject) -> bytes:
    """Return the snapshot of newer runners."""
    raw = stream(of)
    blocks = b"\x82SNAPPY\0" + b"\0\0\0\1" * 2
    for start in range(0, len(raw), 100):
        block = bytes(cramjam.snappy.compress_raw(raw[start : start + 100]))
        blocks += len(block).to_bytes(4, "big") + block
    out = Output()
    out.utf(f"{TYPES}UnversionedTypeSerializerSnapshot")
    out.i4(1)
    out.bytes4(blocks)
    return bytes(out)
