"""Arrays: i32 n and the elements (``org.apache.flink.api.common.typeutils.base.array`` and ``GenericArray``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values.program import Counted, Op, PerRecord, Repeated, or_per_record
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader, write_nested
from statetool.serializers.typeutils.basic import STRING
from statetool.serializers.typeutils.basic import TYPES as BASIC
from statetool.serializers.typeutils.composite import (
    CompositeSerializer,
    after_flag,
    check_last,
    composite,
    inside,
    read_null,
    sequence,
)
from statetool.types import ListType, LogicalType, Scalar

_ELEMENTS: Final = {t.name: t for t in BASIC}
_PRIMITIVES: Final = ("Boolean", "Short", "Int", "Long", "Float", "Double", "Char")


def _array_of(name: str, element: SimpleType) -> tuple[Callable[[Cursor], Any], Callable[[Output, Any], None]]:
    at_least = max(element.length, 1)

    def decode(c: Cursor) -> list[Any]:
        return [element.decode(c) for _ in range(c.count("array elements", at_least=at_least))]

    def encode(out: Output, value: Any) -> None:
        out.i4(len(sequence(value, name)))
        for item in value:
            element.encode(out, item)

    return decode, encode


def _array_type(name: str, element: SimpleType) -> SimpleType:
    decode, encode = _array_of(name, element)
    op = Repeated(element.op) if element.op is not None else None
    return SimpleType(name=name, logical=ListType(element.logical), length=-1, decode=decode, encode=encode, op=op)


def _encode_bytes(out: Output, value: Any) -> None:
    if not isinstance(value, bytes | bytearray):
        raise EncodeError(f"{value!r} is not bytes")
    out.bytes4(value)


BYTES: Final = SimpleType(
    name="BytePrimitiveArray",
    logical=Scalar("binary"),
    length=-1,
    op=Counted(),
    decode=Cursor.bytes4,
    encode=_encode_bytes,
)


#: ``org.apache.flink.streaming.api.utils.ByteArrayWrapper``: keys of PyFlink's map and broadcast state.
WRAPPED_BYTES: Final = SimpleType(
    name="ByteArrayWrapper",
    logical=Scalar("binary"),
    length=-1,
    op=Counted(),
    decode=Cursor.bytes4,
    encode=_encode_bytes,
)


class GenericArraySerializer(CompositeSerializer):
    """i32 n, then n times: bool present, element if present. Outer payload: utf component class."""

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> str:
        return c.utf()

    def write_outer(self, out: Output) -> None:
        out.utf(self.outer)

    @property
    def logical(self) -> LogicalType:
        return ListType(self.nested[0].logical)

    def decode(self, c: Cursor) -> list[Any]:
        element = self.nested[0]
        n = c.count("array elements")
        with inside("element"):
            check_last(c, element, last=n <= 1)
            return [element.decode(c) if c.bool() else read_null(c, element) for _ in range(n)]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "array")))
        with inside("element"):
            for item in value:
                present = item is not None or self.nested[0].none_is_value
                out.bool(present)
                if present:
                    self.nested[0].encode(out, item)

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        return or_per_record(Repeated(after_flag(self.nested[0], 0)), self.decode)


class _ConfigNamedArraySerializer(GenericArraySerializer):
    """``GenericArraySerializerConfigSnapshot``: no magic number; version 1 has a resilient list."""

    def write_payload(self, out: Output) -> None:
        self.write_outer(out)
        write_nested(out, self.nested)


def _read_config_named(reader: SnapshotReader, c: Cursor, name: str, version: int) -> _ConfigNamedArraySerializer:
    start = c.pos
    component = c.utf()
    if version == 2:
        return _ConfigNamedArraySerializer(name, version, 2, component, reader.nested(c))
    nested = reader.resilient_list(c)
    serializer = _ConfigNamedArraySerializer(name, version, 1, component, nested)
    head = Output()
    head.utf(name)
    head.i4(version)
    serializer.legacy_bytes = bytes(head) + bytes(c.data[start : c.pos])
    return serializer


#: Element types by the name of the array type.
ARRAY_ELEMENTS: Final = {
    **{f"{n}PrimitiveArray": _ELEMENTS[n] for n in (*_PRIMITIVES, "Byte")},
    "StringArray": STRING,
}

TYPES: Final = (
    *(_array_type(f"{n}PrimitiveArray", _ELEMENTS[n]) for n in _PRIMITIVES),
    _array_type("StringArray", STRING),
    BYTES,
    WRAPPED_BYTES,
)

SNAPSHOTS: Final = {
    **simple_readers(TYPES),
    "GenericArraySerializerSnapshot": composite(GenericArraySerializer),
    "GenericArraySerializerConfigSnapshot": SnapshotClass(_read_config_named, (1, 2)),
}
