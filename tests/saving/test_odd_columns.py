"""Columns of an unexpected type: written exactly, or rejected with a ``StatetoolError``."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.errors import EncodeError, StatetoolError, UnknownNameError
from statetool.formats.operator_id import operator_id_for_uid

ROWS = pa.array([1, 2])
STAMPS = pa.array([1_500_000_000_123_000, 2_000], pa.timestamp("us", "UTC"))
NANOS = pa.array([7, 8], pa.int32())


def written(tmp_path: Path, *bootstraps: Any) -> st.Operator:
    writer = st.SavepointWriter.new(max_parallelism=8).with_operator("op", *bootstraps, parallelism=2)
    return writer.write(str(tmp_path / "sp"), flink_version="2.3")["op"]


def keyed(tmp_path: Path, columns: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    op = written(tmp_path, st.bootstrap_keyed_state(pa.table(columns), **{"key": "k", **options}))
    return sorted(op.to_arrow().to_pylist(), key=repr)


def test_nanoseconds_of_a_key_of_several_columns_are_kept(tmp_path: Path) -> None:
    columns = {"k": ROWS, "t": pa.array([1, 1], pa.timestamp("us")), "t_nanos": NANOS, "v": ROWS}
    assert [row["key"]["f1_nanos"] for row in keyed(tmp_path, columns, key=["k", "t"])] == [7, 8]


@pytest.mark.parametrize("is_key", [False, True])
def test_nanoseconds_that_a_type_does_not_keep_are_refused(tmp_path: Path, is_key: bool) -> None:
    """Nanoseconds since the epoch are not turned into milliseconds."""
    declared = {"key": "t", "key_type": flink.DATE} if is_key else {"states": {"t": st.value(flink.DATE)}}
    columns = {"k": ROWS, "t": STAMPS, "t_nanos": NANOS, "v": ROWS}
    with pytest.raises(EncodeError, match="digits below the ms that the type keeps"):
        keyed(tmp_path, columns, **declared)
    columns["t_nanos"] = pa.array([0, 0])
    expected = [
        datetime.fromtimestamp(1_500_000_000.123, timezone.utc),
        datetime(1970, 1, 1, 0, 0, 0, 2000, timezone.utc),
    ]
    times = [row["key" if is_key else "t"] for row in keyed(tmp_path, columns, **declared)]
    assert sorted(times, reverse=True) == expected


def test_a_state_may_have_the_name_of_nanoseconds(tmp_path: Path) -> None:
    columns = {"k": ROWS, "t": STAMPS, "t_nanos": pa.array([10_000, -1])}
    declared = {"t": st.value(flink.DATE), "t_nanos": st.value("BIGINT")}
    op = written(tmp_path, st.bootstrap_keyed_state(pa.table(columns), key="k", states=declared))
    assert op.to_arrow().sort_by("key").column("t_nanos").to_pylist() == [10_000, -1]
    table = op.to_arrow()
    more = table.set_column(2, "t_nanos", pa.compute.add(table["t_nanos"], 1))
    again = st.SavepointWriter.new(max_parallelism=8).with_operator("op", st.bootstrap_keyed_state(more, like=op))
    read = again.write(str(tmp_path / "again"), flink_version="2.3")["op"].to_arrow()
    assert read.sort_by("key").to_pylist() == more.sort_by("key").to_pylist()


@pytest.mark.parametrize(
    ("stamps", "nanos"),
    [
        (pa.array([1001, 2], pa.timestamp("ns")), NANOS),
        (pa.array([1 << 60, 2], pa.timestamp("s")), NANOS),
        (STAMPS, pa.array(["7", "x"])),
        (STAMPS, pa.array([0.5, 1.0])),
        (STAMPS, pa.array([{"a": 1}, {"a": 2}])),
    ],
)
def test_nanoseconds_that_are_none_are_refused(tmp_path: Path, stamps: pa.Array, nanos: pa.Array) -> None:
    with pytest.raises(EncodeError, match="row with key 1"):
        keyed(tmp_path, {"k": ROWS, "v": stamps, "v_nanos": nanos})


def test_a_struct_of_nanoseconds_that_has_no_timestamp_is_refused(tmp_path: Path) -> None:
    column = pa.array([{"timestamp": "x", "nanos": 1}, {"timestamp": "y", "nanos": 2}])
    with pytest.raises(EncodeError, match="a column of type string where a timestamp is written"):
        keyed(tmp_path, {"k": ROWS, "v": column}, states={"v": st.value(flink.INSTANT)})


NO_INTEGERS = [
    pa.array([0.5, 1.0]),
    pa.array(["a", "1"]),
    pa.array([1 << 63, 1], pa.uint64()),
    pa.array([[1], [2]]),
    pa.array([None, 1]),
]


@pytest.mark.parametrize("column", NO_INTEGERS, ids=lambda a: str(a.type))
def test_columns_that_count_hold_integers(tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"k": ROWS, "timestamp": column, "list_index": column, "value": ROWS})
    timers = table.select(["k", "timestamp"])
    for name, state in (
        (
            "list_index",
            st.bootstrap_keyed_state(table.select(["k", "list_index", "value"]), key="k", key_group="list_index"),
        ),
        ("list_index", st.bootstrap_state("s", table, key="k")),
        ("list_index", st.bootstrap_list_state("s", table, subtask="list_index")),
        ("timestamp", st.bootstrap_keyed_state(table.select(["k", "value"]), key="k", timers=timers)),
    ):
        with pytest.raises(EncodeError, match=rf"in column '{name}'|timestamps of timers are epoch milliseconds"):
            written(tmp_path, state)


@pytest.mark.parametrize("name", ["domain", "service"])
def test_services_of_timers_are_text_of_any_kind(tmp_path: Path, name: str) -> None:
    texts = pa.array(["event", "processing"])
    for place, column in enumerate((texts, texts.dictionary_encode(), texts.cast(pa.large_string()))):
        timers = pa.table({"k": ROWS, "timestamp": ROWS, name: column})
        state = st.bootstrap_keyed_state(pa.table({"k": ROWS, "v": ROWS}), key="k", timers=timers)
        read = written(tmp_path / str(place), state).to_arrow("timers").sort_by("key")
        assert read[name].to_pylist() == texts.to_pylist()


def test_a_domain_without_letters_is_refused(tmp_path: Path) -> None:
    timers = pa.table({"k": ROWS, "timestamp": ROWS, "domain": ["event", ""]})
    with pytest.raises(StatetoolError, match="timers of domain ''"):
        written(tmp_path, st.bootstrap_keyed_state(pa.table({"k": ROWS, "v": ROWS}), key="k", timers=timers))


def test_a_state_without_a_name_comes_back(tmp_path: Path) -> None:
    assert keyed(tmp_path, {"k": ROWS, "": ROWS}) == [{"key": 1, "": 1}, {"key": 2, "": 2}]


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([ROWS, ROWS, ROWS], names=["k", "v", "v"])
    with pytest.raises(UnknownNameError, match="two columns 'v'"):
        written(tmp_path, st.bootstrap_keyed_state(table, key="k"))


def test_floats_of_two_bytes_become_larger_ones(tmp_path: Path) -> None:
    column = pa.array(np.array([1.5, float("-inf")], dtype=np.float16))
    rows = keyed(tmp_path, {"k": ROWS, "v": column}, states={"v": st.value("FLOAT")})
    assert [row["v"] for row in rows] == [1.5, float("-inf")]


def test_names_may_hold_surrogates_that_stand_alone(tmp_path: Path) -> None:
    """Java allows such texts, and hashes a question mark for each lone surrogate."""
    state = st.bootstrap_keyed_state(pa.table({"k": ROWS, "v": ROWS}), key="k", states={"\ud800": st.value(column="v")})
    writer = st.SavepointWriter.new(max_parallelism=8).with_operator("a\ud800", state, parallelism=2)
    savepoint = writer.write(str(tmp_path / "sp"), flink_version="2.3")
    assert [o.uid for o in savepoint.operators.values()] == ["a\ud800"]
    assert savepoint["a\ud800"].operator_id == operator_id_for_uid("a?")
    assert list(savepoint["a\ud800"].states) == ["\ud800"]
