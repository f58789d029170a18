"""Savepoints written on Spark have the same content as those written in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import statetool as st
from statetool.errors import EncodeError, OptionError
from statetool.saving.local import write_empty
from statetool.spark.frames import LOCAL_BYTES
from statetool.spark.tables import arrow_frame
from statetool.spark.write import runner
from statetool.spark.write.export import export_table
from statetool.tables.request import ScanRequest
from tests.support.spark.data_sources import rows_of

pyspark = pytest.importorskip("pyspark")


def bootstraps(data: Any, timers: Any, elements: Any) -> list[Any]:
    states = {
        "count": st.value("BIGINT"),
        "name": st.value("STRING"),
        "tags": st.list_of("STRING"),
        "balances": st.map_of("STRING", "DOUBLE"),
    }
    return [
        st.bootstrap_keyed_state(data, key="id", states=states, timers=timers),
        st.bootstrap_list_state("offsets", elements),
        st.bootstrap_broadcast_state("rules", elements, key="value"),
    ]


def test_spark_and_arrow_write_the_same_rows(spark: Any, tmp_path: Path) -> None:
    n = 3000
    data = pa.table(
        {
            "id": range(n),
            "count": [i if i % 3 else None for i in range(n)],
            "name": [f"user-{i}" for i in range(n)],
            "tags": [["a"] * (i % 4) for i in range(n)],
            "balances": pa.array([[("eur", float(i))] for i in range(n)], pa.map_(pa.string(), pa.float64())),
        }
    )
    timers = pa.table(
        {"id": range(0, n, 7), "timestamp": range(0, n, 7), "domain": ["event", "processing"] * 214 + ["event"]}
    )
    elements = pa.table({"value": range(20)})
    frames = [
        spark.createDataFrame(
            [tuple(dict(v) if k == "balances" else v for k, v in r.items()) for r in t.to_pylist()], schema
        ).repartition(5)
        for t, schema in (
            (data, "id long, count long, name string, tags array<string>, balances map<string,double>"),
            (timers, "id long, timestamp long, domain string"),
            (elements, "value long"),
        )
    ]
    by_arrow = st.SavepointWriter.new().with_operator("op", *bootstraps(data, timers, elements), parallelism=3)
    by_spark = st.SavepointWriter.new().with_operator("op", *bootstraps(*frames), parallelism=3)
    a = by_arrow.write(str(tmp_path / "a"), flink_version="2.3")["op"]
    b = by_spark.write(str(tmp_path / "b"), flink_version="2.3")["op"]
    for table in ("keyed_state", "timers", "offsets", "rules"):
        left, right = (sorted(op.to_arrow(table).to_pylist(), key=repr) for op in (a, b))
        assert left == right
        assert left
    # Streams are sorted, so equal rows give equal bytes, whatever the partitioning.
    sizes = [sorted(p.stat().st_size for p in (tmp_path / d).iterdir()) for d in ("a", "b")]
    assert sizes[0] == sizes[1]


def test_no_value_of_an_arrow_table_changes_on_the_way_to_spark(spark: Any) -> None:
    big = (1 << 53) + 1
    table = pa.table(
        {
            "id": pa.array([big, None, -big], pa.int64()),
            "small": pa.array([1, None, 255], pa.uint8()),
            "name": pa.array(["a", None, ""], pa.large_string()),
            "at": pa.array([1, None, -1], pa.timestamp("ms", "UTC")),
            "local": pa.array([1000, None, -1000], pa.timestamp("ns")),
            "lists": pa.array([[None, big], None, []], pa.list_(pa.int64())),
            "word": pa.array(["x", None, "x"]).dictionary_encode(),
        }
    )
    expected = [
        {**row, "local": None if row["local"] is None else row["local"].to_pydatetime()} for row in table.to_pylist()
    ]
    assert rows_of(arrow_frame(spark, table)) == expected
    assert arrow_frame(spark, table.slice(0, 0)).count() == 0


def test_what_spark_cannot_hold_is_refused(spark: Any) -> None:
    for column in (pa.array([1], pa.timestamp("ns")), pa.array([[1 << 63]], pa.list_(pa.uint64()))):
        with pytest.raises(EncodeError, match="column 'x' of type"):
            arrow_frame(spark, pa.table({"x": column}))


def test_the_driver_raises_what_tasks_found(spark: Any, tmp_path: Path) -> None:
    df = spark.range(100).selectExpr("id % 50 as id", "id + 32700 as v")
    with pytest.raises(EncodeError, match=r"key .* occurs twice"):
        st.SavepointWriter.new().with_operator("op", st.bootstrap_keyed_state(df, key="id")).write(str(tmp_path / "sp"))
    small = st.bootstrap_keyed_state(df, key="id", states={"v": st.value("SMALLINT")})
    with pytest.raises(EncodeError, match=r"does not fit int16.*column 'v' of the row with key"):
        st.SavepointWriter.new().with_operator("op", small).write(str(tmp_path / "sp"))
    nulls = st.bootstrap_keyed_state(
        df.selectExpr("nullif(string(id), '7') as id", "v").dropDuplicates(["id"]), key="id"
    )
    with pytest.raises(EncodeError, match=r"a row without a key: id None, v 327\d7 \[operator op"):
        st.SavepointWriter.new().with_operator("op", nulls).write(str(tmp_path / "sp"))
    assert not (tmp_path / "sp").exists()


def test_names_that_spark_takes_apart_are_written_and_shown(spark: Any, tmp_path: Path) -> None:
    names = ["a.b", "`quoted`", "key", "Total", "total", 'it\'s "x"']
    data = pa.table({"id": [1, 2], **{f"c{i}": [i, i + 10] for i in range(len(names))}})
    states = {n: st.value("BIGINT", column=f"c{i}") for i, n in enumerate(names)}
    st.SavepointWriter.new().with_operator("a b", st.bootstrap_keyed_state(data, key="id", states=states)).write(
        str(tmp_path / "a"), flink_version="2.3"
    )
    sp = st.load(str(tmp_path / "a"), spark=spark)
    views = sp.register("odd")
    assert len(set(views)) == len(views) == 1 + len(names)
    assert all(spark.table(v).count() == 2 for v in views)
    shown = sp["a b"].keyed_state()
    change = st.bootstrap_keyed_state(shown.where("key = 2"), like=sp["a b"])
    after = st.SavepointWriter.from_existing(sp).with_operator("a b", change).write(str(tmp_path / "b"))["a b"]
    (row,) = after.to_arrow("keyed_state").to_pylist()
    assert row == {"key": 2, "a.b": 10, "`quoted`": 11, "key_": 12, "Total": 13, "total_": 14, 'it\'s "x"': 15}
    for style in ("parquet", "avro", "jsonl"):
        assert export_table(sp["a b"], ScanRequest(), str(tmp_path / style), style=style) == 2
    exported = pq.read_table(str(tmp_path / "parquet")).to_pylist()
    assert sorted(r["a.b"] for r in exported) == [0, 10]


def test_kept_elements_are_copied_by_tasks_also_where_no_row_is_dealt(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = st.bootstrap_list_state("old", pa.table({"value": range(20)}))
    base = st.SavepointWriter.new().with_operator("op", old, parallelism=4).write(str(tmp_path / "base"))
    left_to_the_driver: list[int] = []

    def recorded(streams: Any, subtasks: Any, staging: Any) -> Any:
        left_to_the_driver.extend(subtasks)
        return write_empty(streams, subtasks, staging)

    monkeypatch.setattr(runner, "write_empty", recorded)
    new = st.bootstrap_list_state("new", spark.createDataFrame([(1.5,)], "value DOUBLE"))
    written = st.SavepointWriter.from_existing(base).with_operator("op", new).write(str(tmp_path / "sp"))
    assert left_to_the_driver == []
    assert sorted(written["op"].to_arrow("old")["value"].to_pylist()) == list(range(20))
    assert written["op"].to_arrow("new")["value"].to_pylist() == [1.5]


def test_many_kept_elements_are_copied_by_tasks_without_a_frame_too(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit for the driver is based on the bytes of the base's elements."""
    old = st.bootstrap_list_state("old", pa.table({"value": [b"x" * 1000] * 20}))
    st.SavepointWriter.new().with_operator("op", old, parallelism=4).write(str(tmp_path / "base"))
    base = st.load(str(tmp_path / "base"), spark=spark)
    new = st.bootstrap_list_state("new", pa.table({"value": [1.5]}))
    in_tasks: list[int] = []
    run_tasks = runner.SparkRunner._run_tasks

    def recorded(self: Any, jobs: Any, staging: Any) -> Any:
        in_tasks.append(len(jobs))
        return run_tasks(self, jobs, staging)

    monkeypatch.setattr(runner.SparkRunner, "_run_tasks", recorded)
    for limit, expected in (("10000", 1), ("1000000", 0)):
        spark.conf.set(LOCAL_BYTES, limit)
        try:
            writer = st.SavepointWriter.from_existing(base).with_operator("op", new)
            written = writer.write(str(tmp_path / f"sp-{limit}"))
        finally:
            spark.conf.unset(LOCAL_BYTES)
        assert in_tasks.pop() == expected
        assert written["op"].to_arrow("old").num_rows == 20


@pytest.mark.parametrize("expression", ["array()", "map()", "named_struct('f0', array())"])
def test_void_is_refused_by_the_name_of_its_column(spark: Any, tmp_path: Path, expression: str) -> None:
    frame = spark.sql(f"SELECT 1L AS key, {expression} AS v")
    with pytest.raises(OptionError, match=r"column 'v' has the type .*void.*CAST"):
        _write_frame(frame, tmp_path)


@pytest.mark.full
def test_texts_that_spark_makes_of_bytes_are_refused(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 7L AS key, CAST(X'636166E9' AS STRING) AS v")
    with pytest.raises(EncodeError, match=r"not valid UTF-8: b'caf\\xe9', in column 'v' of the row with key 7"):
        _write_frame(frame, tmp_path)
    fine = _write_frame(spark.sql("SELECT 7L AS key, decode(X'636166E9', 'ISO-8859-1') AS v"), tmp_path)
    assert fine["op"].to_arrow()["v"].to_pylist() == ["café"]


def _write_frame(frame: Any, tmp_path: Path) -> st.Savepoint:
    bootstrap = st.bootstrap_keyed_state(frame)
    return st.SavepointWriter.new(max_parallelism=8).with_operator("op", bootstrap).write(str(tmp_path / "sp"))
