"""Given keys become values of the type of an operator's keys, or an error."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from statetool.errors import EncodeError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.serializers.typeutils.enums import EnumSerializer
from statetool.tables.keys.parser import KeyTypeError, kind_of, parse_key
from statetool.tables.keys.text import KeyText, exact_key, key_to_json, parse_keys
from tests.support.given_keys import given_key
from tests.support.snapshots.build import simple, tuple_of
from tests.support.snapshots.canonical import serializer

_ROW = "org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot"


def of(text: str) -> Serializer:
    """Return the serializer of a type as keys have it."""
    if text == "enum":
        return EnumSerializer("EnumSerializer$EnumSerializerSnapshot", 3, "a.Color", ("RED", "BLUE"), (0, 1))
    if text.startswith("SQL "):
        types = [SqlType(root=part, length=0x7FFFFFFF) for part in text.removeprefix("SQL ").split()]
        return RowDataSerializer(_ROW, 3, b"", tuple(types), ()).as_key()
    if text.startswith("Tuple"):
        return serializer(tuple_of(*map(simple, text[text.index("<") + 1 : -1].split(", "))))
    return serializer(simple(text))


def parsed(text: str, key: Any) -> Any:
    """Return the plain value of a key, which its serializer must write and read unchanged."""
    key_type = of(text)
    plain = parse_key(exact_key(key), key_type)
    out = Output()
    key_type.encode(out, plain)
    assert repr(key_type.decode(Cursor(bytes(out)))) == repr(plain)
    return plain


EPOCH_DAY = dt.date(1970, 1, 2)
ZONE = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("String", "\ud800", "\ud800"),
        ("String", KeyText("null"), "null"),
        ("Char", "\ud800", "\ud800"),
        ("Char", KeyText("7"), "7"),
        ("enum", KeyText("BLUE"), "BLUE"),
        ("Boolean", KeyText("false"), False),
        ("Byte", KeyText("-128"), -128),
        ("Long", np.int32(7), 7),
        ("BigInt", 1 << 80, 1 << 80),
        ("Float", 0.1, float(np.float32(0.1))),
        ("Float", float(np.float32(0.1)), float(np.float32(0.1))),
        ("Float", KeyText("1.5"), 1.5),
        ("Double", KeyText("1e3"), 1000.0),
        ("Double", KeyText("-0.0"), -0.0),
        ("Double", KeyText("-Infinity"), float("-inf")),
        ("Double", KeyText("NaN"), float("nan")),
        ("BigDec", KeyText("1.50"), Decimal("1.50")),
        ("LocalDate", EPOCH_DAY, 1),
        ("LocalDate", KeyText("+12345-02-28"), 3789449),
        ("LocalDate", KeyText("-0044-03-15"), -735525),
        ("LocalTime", dt.time(0, 0, 1), 1_000_000_000),
        ("Instant", dt.datetime(1970, 1, 1, 2, 0, 1, tzinfo=ZONE), 1_000_000_000),
        ("Instant", KeyText("1970-01-01 00:00:00.000000001+00:00"), 1),
        ("Instant", np.datetime64("1970-01-01T00:00:00.000000001"), None),
        ("LocalDateTime", np.datetime64("1970-01-01T00:00:00.000000001"), 1),
        ("LocalDateTime", KeyText("1970-01-01T00:00"), 0),
        ("Tuple2<String, Boolean>", ("a", True), ("a", True)),
        ("Tuple2<Long, LocalDate>", [1, "1970-01-02"], (1, 1)),
        ("Tuple1<String>", KeyText("a"), None),
        ("SQL VARCHAR", KeyText("a"), ("a",)),
        ("SQL VARCHAR", "a", ("a",)),
        ("SQL VARCHAR", ("a",), ("a",)),
        ("SQL VARCHAR", None, (None,)),
        ("SQL VARCHAR", "\ud800", None),
        ("SQL BIGINT", KeyText("7"), (7,)),
        ("SQL BIGINT", True, None),
        ("SQL VARCHAR BIGINT", ("a", None), ("a", None)),
        ("SQL VARCHAR BIGINT", ("a", 1.0), None),
        ("String", 1, None),
        ("String", b"a", None),
        ("Char", "ab", None),
        ("enum", KeyText("PURPLE"), None),
        ("enum", "red", None),
        ("Boolean", 1, None),
        ("Boolean", KeyText("True"), None),
        ("Long", True, None),
        ("Long", 1.0, None),
        ("Long", "1", None),
        ("Long", KeyText("007"), None),
        ("Long", KeyText("-0"), None),
        ("Long", KeyText("1_000"), None),
        ("Long", KeyText("٣"), None),
        ("Long", KeyText(" 1"), None),
        ("Long", 1 << 63, None),
        ("Byte", 128, None),
        pytest.param("Long", 1 << 20_000, None, id="Long of thousands of digits"),
        pytest.param("Double", 1 << 20_000, None, id="Double of thousands of digits"),
        ("Double", 1, None),
        ("Double", KeyText("1"), None),
        ("Double", KeyText("01.0"), None),
        ("Double", KeyText("1.00000000000000000001"), None),
        ("Double", KeyText("1e999"), None),
        ("Float", 0.1 + 1e-12, None),
        ("Float", 1e300, None),
        ("BigDec", 1.5, None),
        ("BigDec", KeyText("1e3"), None),
        ("LocalDate", 1, None),
        ("LocalDate", KeyText("2026-02-29"), None),
        ("LocalDate", KeyText("20260101"), None),
        ("LocalDate", dt.datetime(2026, 1, 1), None),
        ("Instant", 1, None),
        ("Instant", dt.datetime(2026, 1, 1), None),
        ("Instant", KeyText("2026-01-01T25:00:00Z"), None),
        ("LocalDateTime", KeyText("2026-01-01T00:00:00Z"), None),
        ("Date", KeyText("1970-01-01T00:00:00.0001Z"), None),
        ("Tuple2<String, Boolean>", ("a", 1), None),
        ("Tuple2<String, Boolean>", ("a",), None),
        ("Tuple2<String, Boolean>", KeyText("a"), None),
    ],
)
def test_keys_are_parsed_by_their_type_exactly(text: str, key: Any, expected: Any) -> None:
    if expected is not None:
        assert repr(parsed(text, key)) == repr(expected)
        return
    with pytest.raises(EncodeError) as error:
        parsed(text, key)
    if isinstance(error.value, KeyTypeError) and not isinstance(key, int):
        assert repr(key) not in error.value.reason


@pytest.mark.parametrize("text", ["LocalDate", "Instant", "LocalDateTime", "LocalTime", "SQL DATE", "BigDec"])
@pytest.mark.parametrize("number", [-5_000_000, 0, 1, 86_399_999_999_999])
def test_stored_numbers_of_any_size_can_be_given(text: str, number: int) -> None:
    key_type = of(text)
    value: Any = Decimal(number) if text == "BigDec" else number % 100_000
    plain = (value,) if text.startswith("SQL") else value
    key = given_key(plain, key_type.logical)
    (again,) = parse_keys("keys", json.dumps([key_to_json(exact_key(key))]))
    assert parse_key(again, key_type) == parse_key(key, key_type) == plain


def test_kinds_tell_types_apart_that_one_text_may_fit() -> None:
    assert kind_of(of("Long")) == kind_of(of("Byte")) == kind_of(of("SQL INT")) == "whole number"
    assert len({kind_of(of(t)) for t in ("String", "Long", "Double", "BigDec", "LocalDate", "Instant")}) == 6
    assert kind_of(of("Tuple1<String>")) != kind_of(of("String"))
