from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import statetool
from statetool.columns.to_pandas import pandas_frame
from statetool.java.declaring.flink_types import parse_type
from statetool.tables.kinds.timer_times import times_of
from tests.support.zoo import ZOO


def test_types_are_those_that_a_person_expects() -> None:
    kinds = {
        "int": pa.int64(), "bool": pa.bool_(), "map": pa.map_(pa.string(), pa.list_(pa.int32())),
        "struct": pa.struct([("m", pa.map_(pa.int32(), pa.string()))]), "time": pa.timestamp("us", tz="UTC"),
        "decimal": pa.decimal128(5, 2), "bytes": pa.binary(), "nested": pa.map_(pa.list_(pa.int8()), pa.int8()),
    }  # fmt: skip
    rows = {
        "int": [2**62 + 1, None], "bool": [True, None], "map": [[("a", [1, None])], None],
        "struct": [{"m": [(1, "x")]}, None], "time": [dt.datetime(1066, 10, 14, tzinfo=dt.timezone.utc), None],
        "decimal": [Decimal("1.50"), None], "bytes": [b"\x00", None], "nested": [[([1], 2)], []],
    }  # fmt: skip
    frame = pandas_frame(pa.table({n: pa.array(rows[n], type=t) for n, t in kinds.items()}))
    assert frame["int"].tolist() == [2**62 + 1, pd.NA]
    assert (str(frame["int"].dtype), str(frame["bool"].dtype)) == ("Int64", "boolean")
    assert frame["map"].tolist() == [{"a": [1, None]}, None]
    assert frame["struct"].tolist() == [{"m": {1: "x"}}, None]
    assert frame["time"][0] == pd.Timestamp("1066-10-14", tz="UTC")
    assert frame["decimal"][0] == Decimal("1.50")
    assert frame["bytes"][0] == b"\x00"
    assert frame["nested"].tolist() == [[([1], 2)], {}]


def test_a_key_that_a_map_has_twice_is_not_lost() -> None:
    twice = pa.array([[("a", 1), ("a", 2)]], type=pa.map_(pa.string(), pa.int8()))
    assert pandas_frame(pa.table({"m": twice}))["m"][0] == [("a", 1), ("a", 2)]


def test_tables_of_a_snapshot() -> None:
    frame = statetool.load(ZOO)["with-ttl"].to_pandas(states=["plain", "ttl-map"])
    row = frame[frame["key"] == 0].iloc[0]
    assert (row["plain"], row["ttl-map"]) == (1700000078000, {"k0": 52, "k1": 65, "k2": 78, "k3": 39})


@pytest.mark.parametrize(
    ("number", "time"),
    [
        (0, dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)),
        (-62_135_596_800_000, dt.datetime(1, 1, 1, tzinfo=dt.timezone.utc)),
        (253_402_300_799_999, dt.datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=dt.timezone.utc)),
        (253_402_300_800_000, None),
        (2**63 - 1, None),
        (-(2**63), None),
    ],
)
def test_the_time_of_a_timer(number: int, time: dt.datetime | None) -> None:
    assert times_of(pa.array([number], type=pa.int64())).to_pylist() == [time]


def test_no_timer_no_time() -> None:
    assert len(times_of(pa.array([], type=pa.int64()))) == 0


def test_notebooks_show_operators_states_and_types() -> None:
    savepoint = statetool.load(ZOO)
    assert ">parallelism</th>" in savepoint.operators._repr_html_()
    assert ">namespace</th>" in savepoint["orders"].states._repr_html_()
    assert "pet" in savepoint["orders"].states._ipython_key_completions_()
    assert "declare the class" in savepoint["orders"]._repr_html_()
    assert parse_type("MAP<STRING, BIGINT>")._repr_html_().startswith("Map&lt;String, Long&gt;<ul><li>key: String")
