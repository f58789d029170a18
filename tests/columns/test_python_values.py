"""Dates and times of any year as Python values or as text."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from statetool.columns.python_values import as_python, number_of, rows_to_python

_DAY = 86_400_000_000
KIND = pa.struct(
    [
        pa.field("day", pa.date32()),
        pa.field("local", pa.timestamp("us")),
        pa.field("list", pa.list_(pa.field("element", pa.timestamp("us", tz="UTC"), nullable=False))),
        pa.field("map", pa.map_(pa.date32(), pa.duration("us"))),
        pa.field("whole", pa.struct([pa.field("never_null", pa.date32(), nullable=False)])),
        pa.field("nothing", pa.struct([])),
        pa.field("none", pa.null()),
    ]
)


def column(values: list[Any], kind: pa.DataType, numbers: pa.DataType) -> pa.Array:
    return pa.array(values, numbers).view(kind)


def shown(values: list[Any], kind: pa.DataType, numbers: pa.DataType) -> list[Any]:
    return [r["x"] for r in rows_to_python(pa.record_batch({"x": column(values, kind, numbers)}))]


@given(st.dates(), st.datetimes())
def test_what_python_has_is_as_arrow_shows_it(day: dt.date, time: dt.datetime) -> None:
    zoned = time.replace(tzinfo=dt.timezone.utc)
    span = dt.timedelta(days=day.toordinal() - 5, microseconds=7)
    row = {"day": day, "local": time, "list": [zoned], "map": [(day, span)], "whole": None, "nothing": {}, "none": None}
    rows = [row, {**row, "whole": {"never_null": day}}, None]
    batch = pa.record_batch({"x": pa.array(rows, KIND)})
    assert rows_to_python(batch) == batch.to_pylist()
    assert rows_to_python(batch.slice(2)) == [{"x": None}]


def test_days_of_other_years() -> None:
    def days(text: str) -> int:
        return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days

    last, first = days("9999-12-31"), days("0001-01-01")
    values = [last, last + 1, first, first - 1, first - 366, first - 367, (1 << 31) - 1, -(1 << 31), None]
    assert shown(values, pa.date32(), pa.int32()) == [
        dt.date.max, "+10000-01-01", dt.date.min, "0000-12-31", "0000-01-01", "-0001-12-31", "+5881580-07-11",
        "-5877641-06-23", None,
    ]  # fmt: skip


def test_timestamps_of_other_years() -> None:
    first = (dt.datetime.min - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    values = [first - 1, first, (1 << 63) - 1, -(1 << 63)]
    assert shown(values, pa.timestamp("us"), pa.int64()) == [
        "0000-12-31 23:59:59.999999", dt.datetime.min, "+294247-01-10 04:00:54.775807", "-290308-12-21 19:59:05.224192",
    ]  # fmt: skip
    (zoned,) = shown([first - _DAY], pa.timestamp("us", tz="UTC"), pa.int64())
    assert zoned == "0000-12-31 00:00:00+00:00"


def test_other_years_inside_of_values() -> None:
    numbers = pa.struct(
        [
            ("day", pa.int32()),
            ("local", pa.int64()),
            ("list", pa.list_(pa.int64())),
            ("map", pa.map_(pa.int32(), pa.int64())),
            ("whole", pa.struct([("never_null", pa.int32())])),
            ("nothing", pa.struct([])),
            ("none", pa.null()),
        ]
    )
    far = {
        "day": 1 << 30, "local": 1 << 62, "list": [1 << 62], "map": [(1 << 30, 5)], "whole": {"never_null": 1 << 30},
        "nothing": {}, "none": None,
    }  # fmt: skip
    array = column([far, far], KIND, numbers)
    assert as_python(array, number_of) == [far, far]
    assert as_python(array.slice(1), number_of) == [far]
    (row,) = rows_to_python(pa.record_batch({"x": array}).slice(1))
    assert row["x"]["day"].startswith("+29")
    assert row["x"]["list"][0].endswith("+00:00")
    assert row["x"]["map"] == [(row["x"]["day"], dt.timedelta(microseconds=5))]
    assert row["x"]["whole"] == {"never_null": row["x"]["day"]}
