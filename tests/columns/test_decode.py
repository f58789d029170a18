"""Columns from byte positions: hand-written cases, with the positions of errors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from statetool import flink
from statetool.columns.decode import as_data, decode_column
from statetool.columns.from_plain import plain_to_arrow
from statetool.columns.values import map_values
from statetool.errors import DecodeError, StatetoolError, UnsupportedError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.values import program as ir
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from statetool.serializers.typeutils.basic import write_big_decimal, write_big_integer, write_string
from statetool.types import (
    BigDecimalType,
    BigIntegerType,
    DateType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)
from statetool.types.options import ReadOptions
from tests.support.snapshots import build
from tests.support.values.arrow_columns import by_kernels, one_by_one, rows_of

_DEFAULT = ReadOptions()
_TEXT = Scalar("string")
_I64 = Scalar("int64")
_INSTANT = TimestampType("ns", zoned=True)


def _decode(
    op: ir.Op, logical: LogicalType, *frames: bytes, options: ReadOptions = _DEFAULT, before: bytes = b""
) -> tuple[pa.Array, list[int]]:
    """Decode consecutive frames; the positions after the values count from each frame's start."""
    sizes = np.array([len(f) for f in frames], dtype=np.int64)
    ends = np.cumsum(sizes) + len(before)
    data = as_data(before + b"".join(frames))
    array, after = decode_column(op, logical, data, ends - sizes, ends, options)
    array.validate(full=True)
    return array, (after - (ends - sizes)).tolist()


def _string(value: str | None) -> bytes:
    out = Output()
    write_string(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("op", "logical"),
    [
        (ir.Fixed("char"), _TEXT),
        (ir.Text(), _TEXT),
        (ir.Constant(1), Scalar("null")),
        (ir.BigDec(), BigDecimalType()),
        (ir.BigInt(), BigIntegerType()),
        (ir.Temporal("date_time"), TimestampType("ns", zoned=False)),
        (ir.Counted(), Scalar("binary")),
        (ir.EnumIndex(("A",)), _TEXT),
        (ir.Struct((), ()), StructType(())),
        (ir.Flagged(ir.Struct(("a",), (ir.Text(),)), 1, 3), StructType.of(a=_TEXT)),
        (ir.Repeated(ir.Repeated(ir.Text())), ListType(ListType(_TEXT))),
        (ir.Pairs(ir.Text(), ir.Flagged(ir.Fixed("i64"), 1)), MapType(_TEXT, _I64)),
        (ir.Masked(("a",), (ir.Text(),), row_kind=True), StructType.of(a=_TEXT, _kind=_TEXT)),
        (ir.Pojo(("a",), (ir.Text(),)), StructType.of(a=_TEXT)),
        (ir.EitherOf(ir.Text(), ir.Fixed("i64")), StructType.of(left=_TEXT, right=_I64)),
        (ir.Ttl(ir.Repeated(ir.Text())), TtlType(ListType(_TEXT))),
        (ir.PerRecord(lambda c: c.i4()), Scalar("int32")),
    ],
)
def test_no_values_are_an_empty_column(op: ir.Op, logical: LogicalType) -> None:
    for mode in ("show", "raw"):
        array, after = _decode(op, logical, options=ReadOptions(ttl=mode))
        assert len(array) == 0
        assert after == []


def test_structs_without_fields_keep_their_number() -> None:
    array, after = _decode(ir.Struct((), ()), StructType(()), b"", b"", b"")
    assert array.to_pylist() == [{}, {}, {}]
    assert after == [0, 0, 0]
    array, _ = _decode(ir.Flagged(ir.Struct((), ()), 1), StructType(()), b"\0", b"\1", b"\0")
    assert array.to_pylist() == [{}, None, {}]


class TestText:
    def test_units_of_one_to_three_bytes_and_pairs(self) -> None:
        words = ["", "abc", "é", "\u07ff\u0800\uffff", "\U0001f600", None, "a" * 300, "x\U0010ffffy", "\0"]
        array, after = _decode(ir.Text(), _TEXT, *map(_string, words))
        assert array.to_pylist() == words
        assert after == [len(_string(w)) for w in words]

    def test_overlong_units_are_the_characters_that_they_say(self) -> None:
        """Flink can read them, so their bytes must not be copied as ASCII."""
        array, after = _decode(ir.Text(), _TEXT, b"\x03\xc1\x00B", b"\x03\xc1\x80\x00\x42")
        assert array.to_pylist() == ["AB", "AB"]
        assert after == [4, 5]

    @pytest.mark.parametrize("text", ["\ud800", "a\udc00", "\udc00\ud800", "\ud800x", "\ud800\ud800\udc00"])
    def test_lone_surrogate_is_refused_by_both_ways(self, text: str) -> None:
        with pytest.raises(DecodeError, match="lone surrogate") as caught:
            _decode(ir.Text(), _TEXT, _string("fine"), _string(text), before=b"......")
        assert caught.value.where.offset == 6 + len(_string("fine"))
        with pytest.raises(DecodeError, match="lone surrogate") as caught:
            plain_to_arrow(["fine", text], _TEXT, _DEFAULT, offsets=[6, 11])
        assert caught.value.where.offset == 11

    def test_length_beyond_the_frame_allocates_nothing(self) -> None:
        with pytest.raises(DecodeError, match="beyond the end") as caught:
            _decode(ir.Text(), _TEXT, _string("a"), b"\xff\xff\xff\xff\x0fabc")
        assert caught.value.where.offset == 2

    def test_unit_above_16_bits(self) -> None:
        with pytest.raises(DecodeError, match="UTF-16"):
            _decode(ir.Text(), _TEXT, b"\x02\x80\x80\x04..")

    def test_bytes_that_are_not_utf8_say_where(self) -> None:
        op = ir.Counted(text=True)
        assert _decode(op, _TEXT, b"\0\0\0\2\xc3\xa9")[0].to_pylist() == ["é"]
        with pytest.raises(DecodeError, match="not UTF-8") as caught:
            _decode(op, _TEXT, b"\0\0\0\1a", b"\0\0\0\2a\xff")
        assert caught.value.where.offset == 10


def test_char_is_a_string_of_one_unit() -> None:
    array, _ = _decode(ir.Fixed("char"), _TEXT, b"\0a", b"\x20\xac", b"\0a", b"\0\0")
    assert array.to_pylist() == ["a", "€", "a", "\0"]
    assert array.type == pa.string()
    with pytest.raises(DecodeError, match="lone surrogate") as caught:
        _decode(ir.Fixed("char"), _TEXT, b"\0a", b"\xd8\0")
    assert caught.value.where.offset == 2


@pytest.mark.parametrize(("kind", "size"), [("bool", 1), ("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8), ("f64", 8)])
def test_numbers_do_not_reach_beyond_their_frame(kind: Any, size: int) -> None:
    with pytest.raises(DecodeError, match="beyond the end") as caught:
        _decode(ir.Fixed(kind), _I64, bytes(size), bytes(size - 1), before=b"..")
    assert caught.value.where.offset == 2 + size


@pytest.mark.parametrize("kind", ["i8", "i16", "i32", "i64"])
def test_integers_have_signs(kind: Any) -> None:
    size = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}[kind]
    numbers = [0, 1, -1, -2, (1 << 8 * size - 1) - 1, -(1 << 8 * size - 1), 0x5A, -0x5A]
    frames = [n.to_bytes(size, "big", signed=True) for n in numbers]
    assert _decode(ir.Fixed(kind), _I64, *frames)[0].to_pylist() == numbers


class TestBigNumbers:
    #: Around 8 bytes, 38 digits, and the constants that have codes.
    numbers = (None, 0, 1, 10, -1, 127, -128, (1 << 63) - 1, -(1 << 63), 1 << 63, -(10**38) + 1, 10**38 - 1, 10**30)

    @staticmethod
    def _integer(value: int | None) -> bytes:
        out = Output()
        write_big_integer(out, value)
        return bytes(out)

    @staticmethod
    def _decimal(value: Decimal | None) -> bytes:
        out = Output()
        write_big_decimal(out, value)
        return bytes(out)

    def test_integers_of_any_size_beside_each_other(self) -> None:
        array, after = _decode(ir.BigInt(), BigIntegerType(), *map(self._integer, self.numbers))
        assert array.type == pa.decimal128(38, 0)
        assert array.to_pylist() == list(self.numbers)
        assert after == [len(self._integer(n)) for n in self.numbers]

    @pytest.mark.parametrize("number", [10**38, -(10**38), 1 << 200])
    def test_integer_of_39_digits_is_refused_or_text(self, number: int) -> None:
        with pytest.raises(DecodeError, match="decimals='string'") as caught:
            _decode(ir.BigInt(), BigIntegerType(), self._integer(5), self._integer(number))
        assert caught.value.where.offset == 5
        text = ReadOptions(decimals="string")
        array, _ = _decode(ir.BigInt(), BigIntegerType(), self._integer(number), options=text)
        assert array.to_pylist() == [str(number)]

    def test_decimals_come_to_scale_18(self) -> None:
        words = [
            "1",
            "1.50",
            "-0.000000000000000001",
            "12345678901234567890.123",
            "1E+5",
            "-9223372036854775808",
            "0E-30",
        ]
        values = [None, *map(Decimal, words)]
        array, after = _decode(ir.BigDec(), BigDecimalType(), *map(self._decimal, values))
        (decimals, scales) = array.flatten()
        assert decimals.type == pa.decimal128(38, 18)
        assert decimals.to_pylist() == values
        assert scales.to_pylist() == [None, 0, 2, 18, 3, -5, 0, 30]
        plain, _ = _decode(
            ir.BigDec(), BigDecimalType(), *map(self._decimal, values), options=ReadOptions(decimals="plain")
        )
        assert plain.equals(decimals)
        assert after == [len(self._decimal(v)) for v in values]

    @pytest.mark.parametrize("word", ["1E-19", "100000000000000000000", "-1E+20", "1E+1000000"])
    def test_decimal_that_would_be_rounded_is_refused(self, word: str) -> None:
        frames = self._decimal(Decimal("1")), self._decimal(Decimal(word))
        with pytest.raises(DecodeError, match="decimals='string'") as caught:
            _decode(ir.BigDec(), BigDecimalType(), *frames)
        assert caught.value.where.offset == len(frames[0])
        array, _ = _decode(ir.BigDec(), BigDecimalType(), *frames, options=ReadOptions(decimals="string"))
        assert array.to_pylist() == ["1", str(Decimal(word))]

    @pytest.mark.parametrize("raw", [b"\0\0\0\4", b"\xff\xff\xff\xff", b"\0\0\0\7\1\2", b"\x7f\xff\xff\xff\1"])
    def test_bad_length(self, raw: bytes) -> None:
        for op in (ir.BigInt(), ir.BigDec()):
            with pytest.raises(DecodeError, match="big number"):
                _decode(op, BigIntegerType(), raw)


class TestTimes:
    @staticmethod
    def _instant(seconds: int, nano: int) -> bytes:
        return seconds.to_bytes(8, "big", signed=True) + nano.to_bytes(4, "big", signed=True)

    @pytest.mark.parametrize("micros", [(1 << 63) - 1, -(1 << 63), 0, -1])
    def test_all_of_64_bits(self, micros: int) -> None:
        raw = self._instant(micros // 1_000_000, micros % 1_000_000 * 1000)
        assert rows_of(_decode(ir.Temporal("seconds_nanos"), _INSTANT, raw)[0]) == [(micros, 0)]

    @pytest.mark.parametrize("micros", [1 << 63, -(1 << 63) - 1, 1 << 80])
    def test_beyond_64_bits(self, micros: int) -> None:
        raw = self._instant(min(micros // 1_000_000, (1 << 63) - 1), micros % 1_000_000 * 1000)
        with pytest.raises(DecodeError, match="64 bits"):
            _decode(ir.Temporal("seconds_nanos"), _INSTANT, raw)
        with pytest.raises(DecodeError, match="64 bits"):
            plain_to_arrow([micros * 1000], _INSTANT, _DEFAULT)

    def test_digits_below_the_microsecond(self) -> None:
        frames = self._instant(1, 1000), self._instant(-1, 999_999_999), self._instant(-(1 << 63), -(1 << 31))
        with pytest.raises(DecodeError, match="nanos='always'") as caught:
            _decode(ir.Temporal("seconds_nanos"), _INSTANT, *frames, options=ReadOptions(nanos="error"))
        assert caught.value.where.offset == 12
        cut, _ = _decode(ir.Temporal("seconds_nanos"), _INSTANT, *frames, options=ReadOptions(nanos="truncate"))
        assert rows_of(cut) == [1_000_001, -1, None]
        op = ir.Struct(("x",), (ir.Temporal("seconds_nanos"),))
        both, _ = _decode(op, StructType.of(x=_INSTANT), *frames, options=ReadOptions(nanos="companion"))
        assert [f.name for f in both.type] == ["x", "x_nanos"]
        assert rows_of(both) == [(1_000_001, 0), (-1, 999), (None, None)]

    def test_companions_inside_of_lists(self) -> None:
        op = ir.Repeated(ir.Temporal("seconds_nanos"))
        raw = b"\0\0\0\1" + self._instant(0, 7)
        array, _ = _decode(op, ListType(_INSTANT), raw, options=ReadOptions(nanos="companion"))
        assert rows_of(array) == [[(0, 7)]]

    def test_dates_of_any_year_that_fit(self) -> None:
        def date(year: int, month: int = 1, day: int = 1) -> bytes:
            return year.to_bytes(4, "big", signed=True) + bytes((month, day))

        days = _decode(
            ir.Temporal("date"), DateType(), date(1970), date(-1, 2, 28), date(99999), date(-(1 << 31), 128, 0)
        )
        assert rows_of(days[0]) == [0, -719835, 35804357, None]
        with pytest.raises(DecodeError, match="32 bits"):
            _decode(ir.Temporal("date"), DateType(), date((1 << 31) - 1))
        with pytest.raises(DecodeError, match="32 bits") as caught:
            plain_to_arrow([1, 1 << 31], DateType(), _DEFAULT, offsets=[0, 6])
        assert caught.value.where.offset == 6
        for wrong in (date(2023, 2, 29), date(2024, 13), date(2024, 4, 31), date(-(1 << 31), 128, 1)):
            with pytest.raises(DecodeError, match="not a date"):
                _decode(ir.Temporal("date"), DateType(), wrong)

    def test_half_a_null_date_time(self) -> None:
        null_date, null_time = b"\x80\0\0\0\x80\0", b"\x80\x80\0\x80\0\0\0"
        local = TimestampType("ns", zoned=False)
        assert _decode(ir.Temporal("date_time"), local, null_date + null_time)[0].to_pylist() == [None]
        for wrong in (null_date + bytes(7), b"\0\0\x07\xb2\1\1" + null_time):
            with pytest.raises(DecodeError, match="not a date or time"):
                _decode(ir.Temporal("date_time"), local, wrong)


class TestTtl:
    op = ir.Repeated(ir.Ttl(ir.Fixed("i8")))
    logical = ListType(TtlType(Scalar("int8")))
    raw = b"\0\0\0\2" + (1000).to_bytes(8, "big") + b"\1" + (2000).to_bytes(8, "big") + b"\2"

    def test_elements_that_expired_are_left_out(self) -> None:
        options = ReadOptions(ttl="hide_expired", ttl_ms=500, now_ms=1500)
        assert _decode(self.op, self.logical, self.raw, b"\0\0\0\0", options=options)[0].to_pylist() == [[2], []]
        assert _decode(self.op, self.logical, self.raw)[0].to_pylist() == [[1, 2]]

    def test_last_access_beside_the_value(self) -> None:
        array, _ = _decode(self.op, self.logical, self.raw, options=ReadOptions(ttl="raw"))
        assert rows_of(array) == [[(1_000_000, 1), (2_000_000, 2)]]

    def test_last_access_beyond_64_bits_of_microseconds(self) -> None:
        raw = (1 << 62).to_bytes(8, "big") + b"\1"
        options = ReadOptions(ttl="raw")
        with pytest.raises(DecodeError, match="64 bits"):
            _decode(ir.Ttl(ir.Fixed("i8")), TtlType(Scalar("int8")), raw, options=options)
        with pytest.raises(DecodeError, match="64 bits"):
            plain_to_arrow([(1 << 62, 1)], TtlType(Scalar("int8")), options)


class TestDamage:
    @pytest.mark.parametrize(
        "element", [ir.Fixed("i8"), ir.Fixed("i64"), ir.Text(), ir.Constant(0), ir.Repeated(ir.Text())]
    )
    @pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\x10\0\1"])
    def test_count_beyond_the_frame_allocates_nothing(self, element: ir.Op, count: bytes) -> None:
        for op in (ir.Repeated(element), ir.Pairs(element, element)):
            with pytest.raises(DecodeError, match="a count that does not fit") as caught:
                _decode(op, MapType(_I64, _I64) if isinstance(op, ir.Pairs) else ListType(_I64), b"\0\0\0\0", count)
            assert caught.value.where.offset == 4

    def test_many_lists_of_many_elements_of_no_bytes(self) -> None:
        with pytest.raises(DecodeError, match="smaller batches"):
            _decode(ir.Repeated(ir.Constant(0)), ListType(Scalar("null")), *[b"\0\x10\0\0"] * 100)

    def test_path_of_types_to_what_is_wrong(self) -> None:
        op = ir.Struct(("a", "b"), (ir.Fixed("i8"), ir.Repeated(ir.Struct(("x",), (ir.Fixed("bool"),)))))
        logical = StructType.of(a=Scalar("int8"), b=ListType(StructType.of(x=Scalar("bool"))))
        with pytest.raises(DecodeError, match="flag byte") as caught:
            _decode(op, logical, b"\1\0\0\0\2\1\7")
        assert caught.value.where.type_path == "b.element.x"
        assert caught.value.where.offset == 6

    def test_pojo_names_the_field_whose_flag_is_wrong(self) -> None:
        with pytest.raises(DecodeError, match="flag byte") as caught:
            _decode(ir.Pojo(("a", "b"), (ir.Fixed("i8"),) * 2), StructType.of(a=_I64, b=_I64), b"\2\0\1\3\1")
        assert caught.value.where.type_path == "b"
        assert caught.value.where.offset == 3

    def test_skipping_says_what_is_wrong_with_elements(self) -> None:
        op = ir.Repeated(ir.Flagged(ir.Text(), 1))
        with pytest.raises(DecodeError, match="flag byte"):
            _decode(op, ListType(_TEXT), b"\0\0\0\1\5\1")

    @pytest.mark.parametrize(
        ("op", "raw", "message"),
        [
            (ir.Constant(1), b"\1", "not the byte"),
            (ir.Constant(1, 42), b"\0", "not the byte"),
            (ir.Flagged(ir.Constant(1), 1, 2), b"\1\0\1", "padding"),
            (ir.Masked(("a",), (ir.Constant(1),), row_kind=False), b"\xc0", "unused bits"),
            (ir.EnumIndex(("A", "B")), b"\0\0\0\2", "constants of the enum"),
            (ir.EnumIndex(("A", "B")), b"\xff\xff\xff\xff", "constants of the enum"),
            (ir.Pojo(("a",), (ir.Constant(1),)), b"\4\0\0", "flags of a POJO"),
        ],
    )
    def test_bytes_that_flink_never_writes(self, op: ir.Op, raw: bytes, message: str) -> None:
        logical = StructType.of(a=Scalar("null")) if isinstance(op, ir.Masked | ir.Pojo) else Scalar("null")
        with pytest.raises(DecodeError, match=message) as caught:
            _decode(op, logical, raw, before=b"...")
        assert 3 <= (caught.value.where.offset or 0) < 3 + len(raw)

    def test_null_key_says_which(self) -> None:
        op = ir.Pairs(ir.Text(), ir.Fixed("i8"))
        with pytest.raises(DecodeError, match="null key") as caught:
            _decode(op, MapType(_TEXT, Scalar("int8")), b"\0\0\0\2\2a\1\0\2")
        assert caught.value.where.offset == 7

    def test_keys_that_are_always_null(self) -> None:
        with pytest.raises(UnsupportedError, match="only be null"):
            _decode(ir.Pairs(ir.Constant(1), ir.Fixed("i8")), MapType(Scalar("null"), Scalar("int8")), b"\0\0\0\0")


def _open_pojo() -> bytes:
    """Return a POJO with a known subclass, which kernels do not read."""
    return build.pojo(
        "Base", {"a": build.INT}, registered={"Sub": build.pojo("Sub", {"a": build.INT, "b": build.STRING})}
    )


@pytest.mark.parametrize(
    "snapshot",
    [
        build.list_of(_open_pojo()),
        build.map_of(build.STRING, _open_pojo()),
        build.list_of(build.tuple_of(build.INT, _open_pojo())),
        build.tuple_of(build.list_of(_open_pojo()), build.LONG),
    ],
)
def test_lists_and_maps_of_what_kernels_cannot_skip(snapshot: bytes) -> None:
    s = snapshot_reader().snapshot(Cursor(snapshot))
    base: tuple[Any, ...] = (1, None, "Base")
    sub: tuple[Any, ...] = (2, "x", "Sub")
    frames, starts = Output(), []
    for value in _shaped(s, [base, sub, base]), _shaped(s, []), _shaped(s, [sub]):
        starts.append(len(frames))
        s.encode(frames, value)
    ends = [*starts[1:], len(frames)]
    values, after = one_by_one(s, bytes(frames), starts, ends)
    column, behind = by_kernels(s, bytes(frames), starts, ends, _DEFAULT)
    assert rows_of(column) == rows_of(plain_to_arrow(values, s.logical, _DEFAULT))
    assert behind == after == ends


def _shaped(s: Serializer, pojos: list[Any]) -> Any:
    match s.logical:
        case MapType():
            return [(f"k{i}", p) for i, p in enumerate(pojos)]
        case ListType(StructType(fields)) if len(fields) == 2:
            return [(i, p) for i, p in enumerate(pojos)]
        case ListType():
            return pojos
        case _:
            return pojos, 7


def test_records_that_arrow_cannot_hold_say_where_they_are() -> None:
    op = ir.PerRecord(lambda c: c.i8())
    with pytest.raises(StatetoolError, match="does not fit int8") as caught:
        _decode(op, Scalar("int8"), bytes(8), bytes(6) + b"\1\0", before=b".")
    assert caught.value.where.offset == 9


def _map_values(*frames: bytes) -> list[int | None]:
    ends = np.cumsum([len(f) for f in frames])
    pos = ends - np.array([len(f) for f in frames])
    return map_values(flink.LONG, as_data(b"".join(frames)), pos, ends, _DEFAULT).to_pylist()  # type: ignore[no-any-return]


def test_values_of_maps_follow_their_null_flags() -> None:
    values = [bytes([0]) + k.to_bytes(8, "big") for k in (5, 6)]
    assert _map_values(*values) == [5, 6]
    assert _map_values(values[0], bytes([1]), values[1], bytes([1])) == [5, None, 6, None]


@pytest.mark.parametrize(
    ("frame", "offset", "words"),
    [
        (b"", 9, "a map entry without its null flag"),
        (bytes([2]), 9, "the null flag of a map entry is 2"),
        (bytes([0, 1]), 10, "the value goes beyond the end of its frame"),
        (bytes(10), 18, "1 bytes follow a value"),
    ],
)
def test_damaged_values_of_maps_name_their_position(frame: bytes, offset: int, words: str) -> None:
    with pytest.raises(DecodeError, match=words) as caught:
        _map_values(bytes(9), frame, bytes(9))
    assert caught.value.where.offset == offset
