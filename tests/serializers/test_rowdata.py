"""Binary rows: values that are preserved to the last bit, and bytes that are rejected, by the plain decoder and by kernels alike."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

from statetool.columns.decode import as_data, decode_column
from statetool.errors import EncodeError, FormatError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.declared import sql_snapshot
from statetool.serializers.sql.java_classes import NEWEST
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import ArrayDataSerializer, MapDataSerializer, RowDataSerializer
from statetool.types.java_hash import hash_binary
from statetool.types.options import ReadOptions
from tests.support.snapshots import canonical

_PREFIX: Final = "org.apache.flink.table.runtime.typeutils."
INT, BIGINT = SqlType(root="INT"), SqlType(root="BIGINT")
STRING = SqlType(root="VARCHAR", length=0x7FFFFFFF)
WIDE = SqlType(root="DECIMAL", precision=38, scale=2)
NARROW = SqlType(root="DECIMAL", precision=4, scale=2)
PRECISE = SqlType(root="TIMESTAMP", precision=9)


def row(*types: SqlType) -> RowDataSerializer:
    return RowDataSerializer(_PREFIX + "RowDataSerializer$RowDataSerializerSnapshot", 3, b"", types, ())


def encoded(s: Serializer, value: Any) -> bytes:
    out = Output()
    s.encode(out, value)
    return bytes(out)


def columns(s: Serializer, raw: bytes, **options: Any) -> pa.Array:
    pos, end = np.array([0], dtype=np.int64), np.array([len(raw)], dtype=np.int64)
    array, after = decode_column(s.program(), s.logical, as_data(raw), pos, end, ReadOptions(**options))
    assert after.tolist() == [len(raw)]
    array.validate(full=True)
    return array


def refused(s: Serializer, raw: bytes, message: str, **options: Any) -> None:
    """Check that both ways reject the bytes, the kernels with this message."""
    with pytest.raises(StatetoolError):
        s.decode(Cursor(raw))
    with pytest.raises(StatetoolError, match=message) as caught:
        columns(s, raw, **options)
    assert caught.value.where.offset is not None


# ---- preserved ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0x7FC00000, 0x7F800001, 0xFFC12345, 0xFF8ABCDE, 0x7FFFFFFF])
def test_every_bit_of_a_float_that_is_no_number(bits: int) -> None:
    """Rows contain raw bits (``floatToRawIntBits``), including payloads and signaling NaNs."""
    s = row(SqlType(root="FLOAT"))
    raw = bytearray(encoded(s, (1.0, "+I")))
    raw[12:16] = bits.to_bytes(4, "little")
    assert encoded(s, s.decode(Cursor(bytes(raw)))) == raw
    (shown,) = columns(s, bytes(raw)).field(0).to_numpy(zero_copy_only=False).view(np.uint32)
    assert shown == bits


@pytest.mark.parametrize("bits", [0x7FF8 << 48, 0x7FF0000000000001, 0xFFF8123456789ABC])
def test_every_bit_of_a_double_that_is_no_number(bits: int) -> None:
    s = row(SqlType(root="DOUBLE"))
    raw = bytearray(encoded(s, (1.0, "+I")))
    raw[12:20] = bits.to_bytes(8, "little")
    assert encoded(s, s.decode(Cursor(bytes(raw)))) == raw
    assert columns(s, bytes(raw)).field(0).to_numpy(zero_copy_only=False).view(np.uint64)[0] == bits


def test_both_zeros() -> None:
    s = row(SqlType(root="FLOAT"), SqlType(root="DOUBLE"))
    raw = encoded(s, (-0.0, -0.0, "+I"))
    assert raw[12:16] == struct.pack("<f", -0.0)
    assert repr(columns(s, raw)[0].as_py()) == "{'f0': -0.0, 'f1': -0.0, '_kind': '+I'}"


def test_decimals_to_the_last_of_38_digits() -> None:
    s = row(WIDE)
    for value in (
        Decimal("9" * 36 + ".99"),
        Decimal("-" + "9" * 36 + ".99"),
        Decimal("0.01"),
        Decimal("-0.01"),
        Decimal(0),
    ):
        raw = encoded(s, (value, "+I"))
        assert columns(s, raw)[0]["f0"].as_py() == s.decode(Cursor(raw))[0] == value


@pytest.mark.parametrize("precision", [6, 9])
def test_nanoseconds_are_kept_where_the_type_has_them(precision: int) -> None:
    s = row(SqlType(root="TIMESTAMP", precision=precision))
    raw = encoded(s, (1_700_000_000_123_456_789, "+I"))
    assert s.decode(Cursor(raw))[0] == 1_700_000_000_123_456_789
    for nanos in ("error", "companion")[: 2 if precision == 6 else 1]:
        with pytest.raises(StatetoolError, match="digits below the microsecond"):
            columns(s, raw, nanos=nanos)
    with_nanos = columns(s, raw, nanos="always")
    fitting = encoded(s, (1_700_000_000_123_456_000, "+I"))
    assert [f.name for f in columns(s, fitting).type] == (
        ["f0", "_kind"] if precision == 6 else [f.name for f in with_nanos.type]
    )
    assert [f.name for f in with_nanos.type] == ["f0", "f0_nanos", "_kind"]
    assert with_nanos.field(0).cast(pa.int64()).to_pylist() == [1_700_000_000_123_456]
    assert with_nanos.field(1).to_pylist() == [789]
    assert columns(s, raw, nanos="truncate").field(0).cast(pa.int64()).to_pylist() == [1_700_000_000_123_456]


def test_the_same_key_of_a_map_twice() -> None:
    s = MapDataSerializer(_PREFIX + "MapDataSerializer$MapDataSerializerSnapshot", 3, b"", (STRING, INT))
    raw = encoded(s, [("a", 1), ("a", 2)])
    assert s.decode(Cursor(raw)) == [("a", 1), ("a", 2)]
    assert columns(s, raw).to_pylist() == [[("a", 1), ("a", 2)]]


def test_row_kinds() -> None:
    s = row(INT)
    for kind in ("+I", "-U", "+U", "-D"):
        raw = encoded(s, (1, kind))
        assert s.decode(Cursor(raw)) == (1, kind)
        assert columns(s, raw).to_pylist() == [{"f0": 1, "_kind": kind}]
    assert encoded(s, (1,)) == encoded(s, (1, "+I"))


def test_strings_of_seven_and_eight_bytes() -> None:
    """Up to seven bytes are stored in the slot itself."""
    s = row(STRING)
    assert len(encoded(s, ("1234567", "+I"))) == 4 + 16
    assert len(encoded(s, ("12345678", "+I"))) == 4 + 24
    for text in ("", "é€", "1234567", "12345678", "😀" * 3):
        raw = encoded(s, (text, "+I"))
        assert columns(s, raw)[0]["f0"].as_py() == s.decode(Cursor(raw))[0] == text


# ---- two forms of null --------------------------------------------------------------------------


def test_null_keys_of_generated_projections() -> None:
    """Projections reserve space for the null of a wide decimal or a precise timestamp; ``RowDataSerializer`` does not."""
    s = row(WIDE, PRECISE, INT)
    short, long = encoded(s, (None, None, 1)), encoded(s.as_key(), (None, None, 1))
    assert len(short) == 4 + 8 + 3 * 8
    assert long == bytes.fromhex(
        "00000038" + "0003000000000000" + "0000000020000000" + "0000000030000000" + "0100000000000000" + "00" * 24
    )
    for raw in (short, long):
        assert s.decode(Cursor(raw)) == (None, None, 1, "+I")
        assert columns(s, raw).to_pylist() == [{"f0": None, "f1": None, "f1_nanos": None, "f2": 1, "_kind": "+I"}]
    forms = s.as_key().key_forms((None, None, 1))
    assert forms == ((long, hash_binary(long[4:])), (short, hash_binary(short[4:])))
    assert s.as_key().hash_code((None, None, 1)) == hash_binary(long[4:])
    assert len(row(INT).as_key().key_forms((None,))) == 1


# ---- rejected -----------------------------------------------------------------------------------


def test_a_key_of_another_kind_than_insert() -> None:
    s = row(INT)
    raw = encoded(s, (1, "-D"))
    refused(s.as_key(), raw, "another kind")


def test_a_nested_row_of_another_kind_than_insert() -> None:
    s = row(SqlType(root="ROW", parts=(("a", INT),)))
    raw = bytearray(encoded(s, ((1,), "+I")))
    raw[4 + 16] = 3
    refused(s, bytes(raw), "another kind")


@pytest.mark.parametrize(
    ("types", "value", "at", "byte", "message"),
    [
        ((INT,), (1,), 4, 4, "not a row kind"),
        ((SqlType(root="BOOLEAN"),), (True,), 12, 2, "neither 0 nor 1"),
        ((STRING,), ("abc",), 19, 0x88, "more than 7 bytes"),
        ((STRING,), ("é",), 12, 0xFF, "not UTF-8"),
        ((STRING,), ("x" * 9,), 20, 0xFF, "not UTF-8"),
        ((STRING,), ("x" * 9,), 12, 17, "goes beyond"),
        ((STRING,), ("x" * 9,), 16, 24, "goes beyond"),
        ((STRING,), ("x" * 9,), 15, 0x80, "goes beyond"),
        ((PRECISE,), (5,), 14, 0x10, "not a nano of milli"),
        ((PRECISE,), (5,), 16, 17, "goes beyond"),
        ((NARROW,), (Decimal("99.99"),), 14, 1, "more digits"),
        ((WIDE,), (Decimal(1),), 12, 17, "goes beyond|more digits"),
        ((SqlType(root="NULL"),), (None,), 5, 0, "only be null"),
        ((SqlType(root="ARRAY", parts=(("element", INT),)),), ([1, 2],), 20, 0x7F, "does not fit"),
        (
            (SqlType(root="MAP", parts=(("k", INT), ("v", INT))),),
            ([(1, 2)],),
            40,
            0,
            "more keys than values|goes beyond",
        ),
    ],
)
def test_damage(types: tuple[SqlType, ...], value: tuple[Any, ...], at: int, byte: int, message: str) -> None:
    s = row(*types)
    raw = bytearray(encoded(s, value))
    assert raw[at] != byte
    raw[at] = byte
    refused(s, bytes(raw), message)


@pytest.mark.parametrize("unit", [0xD800, 0xDFFF])
@pytest.mark.parametrize("rest", ["abcd", "x" * 9])
def test_half_of_a_surrogate_pair(unit: int, rest: str) -> None:
    """Texts are UTF-8, which cannot encode half a pair: such texts are neither written nor replaced, in the slot and outside."""
    s, half = row(STRING), chr(unit)
    with pytest.raises(EncodeError, match="surrogates not allowed"):
        encoded(s, (half + rest, "+I"))
    raw = encoded(s, ("\u20ac" + rest, "+I"))
    refused(s, raw.replace("\u20ac".encode(), half.encode("utf-8", "surrogatepass")), "not UTF-8")


def test_parts_that_overlap() -> None:
    """Many slots that share one part could expand to far more data than exists."""
    s = ArrayDataSerializer(_PREFIX + "ArrayDataSerializer$ArrayDataSerializerSnapshot", 3, b"", (STRING,))
    raw = bytearray(encoded(s, ["x" * 40] * 20))
    slots = 4 + 4 + 4
    for k in range(20):
        raw[slots + 8 * k : slots + 8 * k + 8] = struct.pack("<ii", 200, 8)
    refused(s, bytes(raw), "overlap")


def test_a_null_key_of_a_map() -> None:
    """The plain decoder keeps it; an Arrow map cannot."""
    s = MapDataSerializer(_PREFIX + "MapDataSerializer$MapDataSerializerSnapshot", 3, b"", (STRING, INT))
    raw = encoded(s, [(None, 1)])
    assert s.decode(Cursor(raw)) == [(None, 1)]
    with pytest.raises(StatetoolError, match="null key"):
        columns(s, raw)


@pytest.mark.parametrize(
    ("types", "value"),
    [
        ((INT,), (1, 2, 3)), ((INT,), ("x",)), ((INT,), (1 << 31,)), ((STRING,), (1,)), ((STRING,), ("\ud800",)),
        ((NARROW,), (Decimal("0.001"),)), ((NARROW,), (Decimal(100),)), ((NARROW,), (1.5,)), ((INT,), (1, "+X")),
        ((SqlType(root="TIME", precision=3),), (1,)), ((SqlType(root="VARBINARY", length=3),), ("x",)),
        ((SqlType(root="BOOLEAN"),), (1,)), ((SqlType(root="NULL"),), (1,)),
        ((SqlType(root="ROW", parts=(("a", INT),)),), ((1, 2),)),
        ((SqlType(root="MAP", parts=(("k", INT), ("v", INT))),), ([(1,)],)),
    ],
)  # fmt: skip
def test_what_a_row_cannot_hold(types: tuple[SqlType, ...], value: tuple[Any, ...]) -> None:
    with pytest.raises(EncodeError):
        encoded(row(*types), value)


def test_a_decimal_of_fewer_digits_behind_the_point_is_the_same_number() -> None:
    s = row(NARROW)
    assert encoded(s, (Decimal("1.5"),)) == encoded(s, (Decimal("1.50"),)) == encoded(s, (Decimal("1.500"),))


def test_raw_values() -> None:
    """With a known serializer, one that only writes null (data views), and an unknown one."""
    base = "org.apache.flink.api.common.typeutils.base."
    raw_type = [SqlType(root="RAW", serializer=name) for name in (
        base + "StringSerializer", "org.apache.flink.table.dataview.NullSerializer", "com.acme.OwnSerializer",
    )]  # fmt: skip
    s = row(*raw_type)
    for value in (("a", b"\0", b"xyz", "+I"), (None, None, None, "+I")):
        raw = encoded(s, value)
        assert s.decode(Cursor(raw)) == value
        assert list(columns(s, raw)[0].as_py().values()) == list(value)
    inner_null = bytearray(encoded(row(raw_type[2]), (b"\0", "+I")))
    refused(row(raw_type[0]), bytes(inner_null), "null inside")
    longer = encoded(row(raw_type[2]), (b"\x02axx", "+I"))
    refused(row(raw_type[0]), longer, "does not fill")


# ---- names --------------------------------------------------------------------------------------


def test_rows_of_what_follows_flink_2_3_have_the_names_of_their_fields() -> None:
    """Version 4 of the snapshot: like version 3, then whether there are names, and one name per field."""
    declared = SqlType(root="ROW", parts=(("f0", BIGINT), ("f1", STRING)))
    old = sql_snapshot(declared, NEWEST)
    name = _PREFIX + "RowDataSerializer$RowDataSerializerSnapshot"
    head = len(name) + 2
    assert old[head : head + 4] == b"\0\0\0\3"

    def read(behind: bytes) -> Serializer:
        raw = old[:head] + b"\0\0\0\4" + old[head + 4 :] + behind
        s = canonical.serializer(raw)
        out = Output()
        s.write_snapshot(out)
        assert bytes(out) == raw
        return s

    named = read(b"\1\0\2id\0\4name")
    assert [f.name for f in columns(named, encoded(named, (7, "x", "+I"))).type] == ["id", "name", "_kind"]
    for without in (b"\0", b"\1\0\2id\0\2ID", b"\1\0\5_kind\0\1a"):
        s = read(without)
        assert [f.name for f in columns(s, encoded(s, (7, "x", "+I"))).type] == ["f0", "f1", "_kind"]
    for cut in (b"", b"\1", b"\1\0\2id", b"\2"):
        with pytest.raises(FormatError):
            read(cut)
