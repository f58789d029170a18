from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from statetool.types import (
    BigDecimalType,
    DateType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    TtlType,
)
from statetool.types.display import display_value

_TEXT = Scalar("string")


@pytest.mark.parametrize(
    ("value", "logical", "text"),
    [
        (18364, DateType(), "2020-04-12"),
        (-719_529, DateType(), "-0001-12-31"),
        (2_932_897, DateType(), "10000-01-01"),
        (1_586_649_600_120, TimestampType("ms", zoned=True), "2020-04-12 00:00:00.12Z"),
        (-1, TimestampType("ns", zoned=False), "1969-12-31 23:59:59.999999999"),
        (3_723_000_000_000, Scalar("time"), "01:02:03"),
        (5, Scalar("day_interval"), "5 ms"),
        (True, Scalar("bool"), "true"),
        (b"\x00\xff", Scalar("binary"), "0x00ff"),
        (Decimal("1E+3"), BigDecimalType(), "1000"),
        ("it's", _TEXT, '"it\'s"'),
        (None, _TEXT, "null"),
        ((1, "x"), StructType.of(f0=Scalar("int64"), f1=_TEXT), "{f0: 1, f1: 'x'}"),
        ([("a", None)], MapType(_TEXT, DateType()), "{'a': null}"),
        ([1, 2], ListType(Scalar("int32")), "[1, 2]"),
        ((9, "v"), TtlType(_TEXT), "'v'"),
        ("x" * 200, _TEXT, "'" + "x" * 99 + "..."),
    ],
)
def test_values_are_as_people_write_them(value: Any, logical: LogicalType, text: str) -> None:
    assert display_value(value, logical) == text
