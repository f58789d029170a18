"""Hand-made snapshots in the format of Flink 1.15 and later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from statetool.io.output import Output
from statetool.serializers.core.base import Serializer

Snapshot: TypeAlias = bytes | Serializer
_BASE: Final = "org.apache.flink.api.common.typeutils.base."
_RUNTIME: Final = "org.apache.flink.api.java.typeutils.runtime."


def simple(name: str, package: str = _BASE) -> bytes:
    """Return the snapshot of a serializer without parts."""
    out = Output()
    out.utf(f"{package}{name}Serializer${name}SerializerSnapshot")
    out.i4(3)
    return bytes(out)


INT: Final = simple("Int")
LONG: Final = simple("Long")
STRING: Final = simple("String")
NULL_VALUE: Final = simple("NullValue")


def composite(name: str, outer_version: int, outer: bytes, *parts: Snapshot) -> bytes:
    """Return a composite snapshot."""
    out = Output()
    out.utf(name)
    out.i4(3)
    out.i4(911108)
    out.i4(outer_version)
    out += outer
    out += nested(*parts)
    return bytes(out)


def nested(*parts: Snapshot) -> bytes:
    """Return a nested block."""
    out = Output()
    out.i4(1333245)
    out.i4(1)
    out.i4(len(parts))
    for part in parts:
        if isinstance(part, bytes):
            out += part
        else:
            part.write_snapshot(out)
    return bytes(out)


def list_of(element: Snapshot) -> bytes:
    """``ListSerializer``."""
    return composite(_BASE + "ListSerializerSnapshot", 1, b"", element)


def map_of(key: Snapshot, value: Snapshot) -> bytes:
    """``MapSerializer``."""
    return composite(_BASE + "MapSerializerSnapshot", 1, b"", key, value)


def either(left: Snapshot, right: Snapshot) -> bytes:
    """``EitherSerializer``."""
    return composite(_RUNTIME + "JavaEitherSerializerSnapshot", 1, b"", left, right)


def nullable(value: Snapshot, padding: int = 0) -> bytes:
    """``NullableSerializer``."""
    outer = Output()
    outer.i4(padding)
    return composite(_RUNTIME + "NullableSerializer$NullableSerializerSnapshot", 2, bytes(outer), value)


def tuple_of(*fields: Snapshot) -> bytes:
    """``TupleSerializer``."""
    outer = Output()
    outer.utf(f"org.apache.flink.api.java.tuple.Tuple{len(fields)}")
    return composite(_RUNTIME + "TupleSerializerSnapshot", 2, bytes(outer), *fields)


def row_of(*fields: Snapshot) -> bytes:
    """``RowSerializer`` with row kinds."""
    return composite(_RUNTIME + "RowSerializer$RowSerializerSnapshot", 4, b"\1", *fields)


def kryo(type_class: str) -> bytes:
    """``KryoSerializer`` of a class without registrations."""
    out = Output()
    out.utf(_RUNTIME + "kryo.KryoSerializerSnapshot")
    out.i4(2)
    out.utf(type_class)
    for _ in range(3):
        out += optional_map()
    return bytes(out)


def optional_map(*entries: tuple[str, bytes | None, Snapshot | None]) -> bytes:
    """``LinkedOptionalMap`` of (name, key, snapshot)."""
    out = Output()
    out.i8(0x4F2C69A3D70)
    out.i4(len(entries))
    for name, key, value in entries:
        out.utf(name)
        out.bool(key is not None)
        if key is not None:
            out.bytes4(key)
        out.bool(value is not None)
        if value is not None:
            raw = Output()
            if isinstance(value, bytes):
                raw += value
            else:
                value.write_snapshot(raw)
            out.bytes4(raw)
    return bytes(out)


def pojo(
    cls: str,
    fields: Mapping[str, Snapshot | None],
    registered: Mapping[str, Snapshot] | None = None,
    others: Mapping[str, Snapshot] | None = None,
    *,
    removed: tuple[str, ...] = (),
) -> bytes:
    """Return ``PojoSerializer``; fields in ``removed`` have lost their key (the class does not have them any more)."""
    out = Output()
    out.utf(_RUNTIME + "PojoSerializerSnapshot")
    out.i4(2)
    out.utf(cls)
    out += optional_map(*((n, None if n in removed else _field(cls, n), s) for n, s in fields.items()))
    for subclasses in (registered, others):
        out += optional_map(*((n, b"", s) for n, s in (subclasses or {}).items()))
    return bytes(out)


def _field(cls: str, name: str) -> bytes:
    out = Output()
    out.utf(cls)
    out.utf(name)
    return bytes(out)
