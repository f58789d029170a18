"""Serializers of the table runtime, except those of binary rows, arrays and maps (see ``rowdata``).

``StringData``: i32 size, UTF-8; ``Decimal``: i64 unscaled up to precision 18, otherwise i32 n and two's complement; ``Timestamp``: i64
millis, above precision 3 also i32 nano of milli; ``WindowKey``: i64 window end and the key; linked lists, sorted maps, the
sequenced multiset of 2.x, variants and bitmaps.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.java_streams.reader import take_java_stream
from statetool.io.output import Output
from statetool.kernels.values.program import (
    COMPACT_DIGITS,
    COMPACT_FRACTION,
    Counted,
    Fixed,
    MaskedList,
    Op,
    PerRecord,
    Repeated,
    SignFlippedLong,
    SqlDecimal,
    SqlTimestamp,
    Struct,
    or_per_record,
)
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.simple import SimpleType, simple_readers
from statetool.serializers.core.snapshot import SnapshotClass, SnapshotReader, write_nested
from statetool.serializers.sql.binary_format import twos_complement, unscaled_of
from statetool.serializers.typeutils.basic import from_decimal, to_decimal
from statetool.serializers.typeutils.collections import MapSerializer, WrapperSerializer
from statetool.serializers.typeutils.composite import CompositeSerializer, composite, inside, sequence
from statetool.serializers.typeutils.masks import read_mask, write_mask
from statetool.types import (
    VARIANT,
    BitmapType,
    DecimalType,
    Field,
    ListType,
    LogicalType,
    Scalar,
    StructType,
    TimestampType,
)
from statetool.types.java_hash import hash_big_decimal, hash_binary, to_int32

_I64_SIGN: Final = -(1 << 63)
_MAX_PRECISION: Final = 38
_MAX_FRACTION: Final = 9


class DecimalDataSerializer(Serializer):
    """``DecimalDataSerializer``: precision and scale are stored in the snapshot."""

    def __init__(self, name: str, version: int, precision: int, scale: int) -> None:
        super().__init__(name, version)
        self.precision = precision
        self.scale = scale

    @property
    def logical(self) -> LogicalType:
        return DecimalType(self.precision, self.scale)

    def decode(self, c: Cursor) -> Decimal:
        start = c.pos
        if self.precision <= COMPACT_DIGITS:
            unscaled = c.i8()
        else:
            raw = c.bytes4("decimal")
            if not raw:
                raise c.fail("a decimal of no bytes", pos=start)
            unscaled = int.from_bytes(raw, "big", signed=True)
        if abs(unscaled) >= 10**self.precision:
            raise c.fail(f"a decimal of more than {self.precision} digits", pos=start)
        return to_decimal(unscaled, self.scale)

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, Decimal):
            raise EncodeError(f"{value!r} is not a decimal")
        unscaled = unscaled_of(value, self.precision, self.scale)
        if self.precision <= COMPACT_DIGITS:
            out.i8(unscaled)
        else:
            out.bytes4(twos_complement(unscaled))

    def program(self) -> Op:
        return SqlDecimal(self.precision)

    def hash_code(self, value: Any) -> int:
        return hash_big_decimal(*from_decimal(value))

    def write_payload(self, out: Output) -> None:
        out.i4(self.precision)
        out.i4(self.scale)


class TimestampDataSerializer(Serializer):
    """``TimestampDataSerializer``: i64 millis, i32 nano of milli above precision 3."""

    def __init__(self, name: str, version: int, precision: int) -> None:
        super().__init__(name, version)
        self.precision = precision
        self.length = 8 if precision <= COMPACT_FRACTION else 12

    @property
    def logical(self) -> LogicalType:
        return TimestampType("ms" if self.precision <= COMPACT_FRACTION else "ns", zoned=False, digits=self.precision)

    def decode(self, c: Cursor) -> int:
        millis = c.i8()
        if self.precision <= COMPACT_FRACTION:
            return millis
        nano = c.i4()
        if not 0 <= nano < 1_000_000:
            raise c.fail(f"{nano} is not a nano of milli", pos=c.pos - 4)
        return millis * 1_000_000 + nano

    def encode(self, out: Output, value: Any) -> None:
        if not isinstance(value, int):
            raise EncodeError(f"{value!r} is not a timestamp")
        if self.precision <= COMPACT_FRACTION:
            out.i8(value)
        else:
            out.i8(value // 1_000_000)
            out.i4(value % 1_000_000)

    def program(self) -> Op:
        return SqlTimestamp(self.precision)

    def hash_code(self, value: Any) -> int:
        millis, nano = (value, 0) if self.precision <= COMPACT_FRACTION else divmod(value, 1_000_000)
        return to_int32(31 * to_int32(millis ^ (millis >> 32)) + nano)

    def write_payload(self, out: Output) -> None:
        out.i4(self.precision)


def _read_decimal(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    precision, scale = c.i4(), c.i4()
    if not (1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision):
        raise c.fail(f"a decimal of precision {precision} and scale {scale}", pos=c.pos - 8)
    return DecimalDataSerializer(name, version, precision, scale)


def _read_timestamp(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    precision = c.i4()
    if not 0 <= precision <= _MAX_FRACTION:
        raise c.fail(f"a timestamp of precision {precision}", pos=c.pos - 4)
    return TimestampDataSerializer(name, version, precision)


class WindowKeySerializer(CompositeSerializer):
    """``WindowKeySerializer``: i64 window (end), key row."""

    steps = ("key",)

    @property
    def logical(self) -> LogicalType:
        return StructType.of(window=Scalar("int64"), key=self.nested[0].logical)

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return c.i8(), self.nested[0].decode(c)

    def encode(self, out: Output, value: Any) -> None:
        window, key = sequence(value, "window key", 2)
        out.i8(window)
        self.nested[0].encode(out, key)

    def program(self) -> Op:
        return Struct(("window", "key"), (Fixed("i64"), self.nested[0].program()))


class LinkedListSerializer(CompositeSerializer):
    """``LinkedListSerializer``: i32 n, a bit mask of nulls if the outer version has one, the other elements."""

    @staticmethod
    def read_outer(c: Cursor, outer_version: int) -> bool:
        return c.bool() if outer_version == 3 else outer_version == 2

    def write_outer(self, out: Output) -> None:
        if self.outer_version == 3:
            out.bool(self.outer)

    @property
    def logical(self) -> LogicalType:
        return ListType(self.nested[0].logical)

    def decode(self, c: Cursor) -> list[Any]:
        n = c.i4()
        if n < 0 or n > (c.left * 8 if self.outer else c.left):
            raise c.fail(f"{n} elements in {c.left} bytes", pos=c.pos - 4)
        nulls = read_mask(c, n) if self.outer else [False] * n
        with inside("element"):
            return [None if null else self.nested[0].decode(c) for null in nulls]

    def encode(self, out: Output, value: Any) -> None:
        out.i4(len(sequence(value, "list")))
        if self.outer:
            write_mask(out, [v is None for v in value])
        with inside("element"):
            for item in value:
                if item is not None or not self.outer:
                    self.nested[0].encode(out, item)

    def program(self) -> Op:
        if self.needs_frame:
            return PerRecord(self.decode)
        element = self.nested[0].program()
        return or_per_record(MaskedList(element) if self.outer else Repeated(element), self.decode)


class SortedMapSerializer(MapSerializer):
    """``SortedMapSerializer``: its snapshot has a Java stream of the comparator before the nested block."""

    def write_payload(self, out: Output) -> None:
        out += self.outer
        write_nested(out, self.nested)


def _read_sorted_map(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    comparator = take_java_stream(c)
    nested = reader.nested(c)
    if len(nested) != 2:
        raise c.fail(f"{name} has {len(nested)} nested serializers, expected 2")
    return SortedMapSerializer(name, version, 0, comparator, nested)


class PairSerializer(CompositeSerializer):
    """Two i64 of the sequenced multiset state."""

    arity = 2
    steps: tuple[str, ...] = ("first", "second")
    length = 16

    @property
    def logical(self) -> LogicalType:
        return StructType(tuple(Field(n, part.logical) for n, part in self.children()))

    def decode(self, c: Cursor) -> tuple[Any, ...]:
        return tuple(s.decode(c) for s in self.nested)

    def encode(self, out: Output, value: Any) -> None:
        for s, v in zip(self.nested, sequence(value, self.type_name, len(self.nested)), strict=True):
            s.encode(out, v)

    def program(self) -> Op:
        return Struct(self.steps, tuple(s.program() for s in self.nested))


class MetaSqnInfoSerializer(PairSerializer):
    """``MetaSqnInfoSerializer``."""

    steps = ("high_sqn", "size")


class RowSqnInfoSerializer(PairSerializer):
    """``RowSqnInfoSerializer``."""

    steps = ("first_sqn", "last_sqn")


class SqnNodeSerializer(PairSerializer):
    """``linked.NodeSerializer``: row, sequence number, neighbours and timestamp."""

    arity = 6
    steps = ("row", "sqn", "previous", "next", "next_for_record", "timestamp")
    length = -1


class RowDataKeySerializer(WrapperSerializer):
    """``RowDataKeySerializer``: the row. Its snapshot has two generated functions as Java bytes, then the row's snapshot."""

    def write_payload(self, out: Output) -> None:
        out += self.outer
        self.nested[0].write_snapshot(out)


def _read_row_data_key(reader: SnapshotReader, c: Cursor, name: str, version: int) -> Serializer:
    start = c.pos
    c.bytes4("generated equaliser")
    c.bytes4("generated hash function")
    functions = bytes(c.data[start : c.pos])
    return RowDataKeySerializer(name, version, 0, functions, (reader.snapshot(c),))


def _decode_text(c: Cursor) -> str:
    start = c.pos + 4
    raw = c.bytes4("string")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise c.fail(f"not UTF-8: {e.reason}", pos=start + e.start) from e


def _encode_text(out: Output, value: Any) -> None:
    out.bytes4(value.encode("utf-8"))


def _decode_sorted_long(c: Cursor) -> int:
    return c.i8() ^ _I64_SIGN


def _encode_sorted_long(out: Output, value: Any) -> None:
    out.i8(value ^ _I64_SIGN)


def _decode_variant(c: Cursor) -> tuple[bytes, bytes]:
    value_size, metadata_size = c.i4(), c.i4()
    return c.take(value_size, "variant value"), c.take(metadata_size, "variant metadata")


def _encode_variant(out: Output, value: Any) -> None:
    content, metadata = sequence(value, "variant", 2)
    out.i4(len(content))
    out.i4(len(metadata))
    out += content
    out += metadata


TYPES: Final = (
    SimpleType(
        name="StringData", logical=Scalar("string"), length=-1, op=Counted(text=True), decode=_decode_text,
        encode=_encode_text, hash_code=lambda v: hash_binary(v.encode("utf-8")),
    ),
    SimpleType(
        name="SortedLong", logical=Scalar("int64"), length=8, op=SignFlippedLong(), decode=_decode_sorted_long,
        encode=_encode_sorted_long,
    ),
    SimpleType(
        name="Variant", logical=VARIANT, length=-1,
        decode=_decode_variant, encode=_encode_variant,
    ),
    SimpleType(
        name="Bitmap", logical=BitmapType(), length=-1, op=Counted(), decode=Cursor.bytes4, encode=Output.bytes4
    ),
)  # fmt: skip

SNAPSHOTS: Final = {
    **simple_readers(TYPES),
    "DecimalDataSerializer$DecimalSerializerSnapshot": SnapshotClass(_read_decimal, (3,)),
    "TimestampDataSerializer$TimestampDataSerializerSnapshot": SnapshotClass(_read_timestamp, (1,)),
    "WindowKeySerializer$WindowKeySerializerSnapshot": composite(WindowKeySerializer),
    "LinkedListSerializer$LinkedListSerializerSnapshot": composite(LinkedListSerializer, outer_versions=(1, 2, 3)),
    "SortedMapSerializerSnapshot": SnapshotClass(_read_sorted_map, (3,)),
    "MetaSqnInfoSerializer$MetaSqnInfoSerializerSnapshot": composite(MetaSqnInfoSerializer, outer_versions=(0,)),
    "RowSqnInfoSerializer$RowSqnInfoSerializerSnapshot": composite(RowSqnInfoSerializer, outer_versions=(0,)),
    "NodeSerializer$NodeSerializerSnapshot": composite(SqnNodeSerializer, outer_versions=(0,)),
    "RowDataKeySerializerSnapshot": SnapshotClass(_read_row_data_key, (0,)),
}
