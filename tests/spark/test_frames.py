from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import statetool
from statetool.columns.python_values import rows_to_python
from statetool.errors import DecodeError, OptionError, TargetExistsError
from statetool.spark.source.guard import reject_unsupported_rows
from statetool.spark.write.export import export_table
from statetool.tables.request import ScanRequest
from tests.support.corpora.archives import HERE, unpack
from tests.support.quick import quick
from tests.support.snapshots.stored import groups_of
from tests.support.spark.data_sources import data_sources, pushed_filters, rows_of

CASE = "v2_3_0-rocksdb-canonical"


@pytest.fixture(scope="module")
def path(corpus: Path) -> str:
    return str(corpus / CASE / "snapshot")


@pytest.fixture(scope="module")
def savepoint(path: str, spark: Any) -> statetool.Savepoint:
    return statetool.load(path, spark=spark)


@data_sources
def test_data_source_by_uid_and_by_id(path: str, spark: Any, savepoint: statetool.Savepoint) -> None:
    statetool.register(spark)
    reader = spark.read.format("flink-state").option("table", "keyed_state")
    by_uid = reader.option("operatorUid", "timers").load(path)
    by_id = reader.option("operatorId", savepoint["timers"].operator_id).option("operatorUid", "timers").load(path)
    assert by_uid.schema.simpleString() == "struct<key:string,registered:int>"
    assert sorted(by_uid.collect()) == sorted(by_id.collect())
    assert by_uid.count() == savepoint["timers"].to_arrow().num_rows


@pushed_filters
def test_equalities_on_the_key_prune_to_its_key_group(savepoint: statetool.Savepoint) -> None:
    from pyspark.sql.datasource import EqualNullSafe, EqualTo, GreaterThan, In

    from statetool.spark.source.options import SourceOptions
    from statetool.spark.source.sources import FlinkStateReader

    def groups(*filters: Any) -> int:
        options = SourceOptions(
            {"path": savepoint.path, "operatorUid": "timers", "table": "keyed_state", "prune": "true"}
        )
        reader = FlinkStateReader(options)
        assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark checks them all again
        return len(groups_of(p.split for p in reader.partitions()))

    everything = groups()
    assert everything > 5
    assert groups(EqualTo(("key",), "timer-0")) == 1
    assert groups(EqualNullSafe(("key",), "timer-0")) == 1
    assert groups(In(("key",), ("timer-0", "timer-1"))) == 2
    assert groups(In(("key",), ("timer-0", "timer-1")), EqualTo(("key",), "timer-1")) == 1
    assert groups(GreaterThan(("key",), "timer-0")) == everything
    assert groups(EqualTo(("registered",), 7)) == everything


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("key = 'timer-3'", {"timer-3"}),
        ("key IN ('timer-3', 'timer-4', 'nobody')", {"timer-3", "timer-4"}),
        ("key <=> 'timer-3'", {"timer-3"}),
        ("key = 'timer-3' OR key = 'timer-5'", {"timer-3", "timer-5"}),
        ("key = 'timer-3' AND registered > 0", {"timer-3"}),
        ("key = 'timer-3' AND key = 'timer-4'", set()),
        ("key IS NULL", set()),
    ],
)
def test_filters_give_the_right_rows(savepoint: statetool.Savepoint, condition: str, keys: set[str]) -> None:
    rows = savepoint["timers"].keyed_state().filter(condition).collect()
    assert {r["key"] for r in rows} == keys


def test_keys_argument_prunes(savepoint: statetool.Savepoint) -> None:
    rows = savepoint["by-tuple"].keyed_state(keys=[("", 0)]).collect()
    assert [(r["key"]["f0"], r["key"]["f1"], r["count"]) for r in rows] == [("", 0, 3)]


def test_views_for_sql(savepoint: statetool.Savepoint, spark: Any) -> None:
    names = savepoint.register("sp")
    assert "sp_timers_keyed_state" in names
    assert "sp_win_tumble_reduce_window_contents" in names
    (row,) = spark.sql("SELECT count(*) AS n, sum(registered) AS s FROM sp_timers_keyed_state").collect()
    assert (row["n"], row["s"]) == (14, sum(savepoint["timers"].to_arrow()["registered"].to_pylist()))


def test_windows_and_metadata_frames(savepoint: statetool.Savepoint) -> None:
    windows = savepoint["win-tumble-reduce"].windows("window-contents")
    assert windows.columns == ["key", "namespace", "value"]
    assert windows.selectExpr("namespace.start").count() == 5
    with pytest.raises(OptionError, match="window"):
        savepoint["timers"].windows("registered")
    assert savepoint.states().count() == len(savepoint.metadata_rows("states"))
    assert savepoint.key_groups().filter("operator = 'timers' AND size_bytes > 0").count() > 5


@data_sources
def test_metadata_by_the_data_source(savepoint: statetool.Savepoint, spark: Any) -> None:
    statetool.register(spark)
    source = spark.read.format("flink-state-metadata").option("table", "operators").load(savepoint.path)
    assert source.count() == len(savepoint.operators)


def test_errors_of_tasks_carry_the_place(corpus: Path, spark: Any) -> None:
    op = statetool.load(str(corpus / "v2_3_0-hashmap-canonical" / "snapshot"), spark=spark)["orders"]
    with pytest.raises(Exception, match=r"(?s)Cat.*state pet, key group"):
        op.keyed_state(states=["pet"]).collect()


def test_a_map_with_a_key_twice_is_refused() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    fine = pa.record_batch({"m": pa.array([[("a", 1)], None, [("a", 2), ("b", 3)]], type=kind)})
    assert list(reject_unsupported_rows(iter([fine]))) == [fine]
    twice = pa.record_batch({"m": pa.array([[("a", 1), ("a", 2)]], type=kind)})
    with pytest.raises(DecodeError, match="long form"):
        list(reject_unsupported_rows(iter([twice])))
    nested = pa.record_batch({"l": pa.array([[[("a", 1), ("a", 2)]]], type=pa.list_(kind))})
    with pytest.raises(DecodeError):
        list(reject_unsupported_rows(iter([nested])))


@pytest.mark.parametrize("style", quick(["parquet", "avro", "jsonl"], "parquet"))
def test_export_of_keys_without_fields(tmp_path: Path, spark: Any, style: str) -> None:
    """An SQL operator that sorts all rows has one key without fields."""
    case = unpack(HERE / "corpus" / "sql-operators.tar.xz", tmp_path) / "sql-operators" / "1.20.5" / "temporal_sort"
    (op,) = [o for o in statetool.load(str(case), spark=spark).operators.values() if "dataState" in o.tables]
    target = tmp_path / "out"
    assert export_table(op, ScanRequest(), str(target), style=style) == 1
    if style == "parquet":
        (row,) = pq.read_table(str(target)).to_pylist()
        assert row["key"] == "{}"
    elif style == "jsonl":
        (line,) = [line for p in target.glob("*.json") for line in p.read_text().splitlines()]
        row = json.loads(line)
        assert row["key"] == "{}"
    else:
        import fastavro

        (part,) = [p for p in target.glob("*.avro") if p.stat().st_size]
        with part.open("rb") as f:
            (row,) = fastavro.reader(f)
        assert row["key"] == {}
    assert "f1" in str(row["dataState"])


@pytest.mark.parametrize("style", quick(["parquet", "avro", "jsonl"], "avro"))
def test_export(savepoint: statetool.Savepoint, tmp_path: Path, style: str) -> None:
    op = savepoint["with-ttl"]
    target = str(tmp_path / "out")
    assert export_table(op, ScanRequest(), target, style=style) == 13
    with pytest.raises(TargetExistsError):
        export_table(op, ScanRequest(), target, style=style)
    expected = {r["key"]: r for r in op.to_arrow().to_pylist()}
    if style == "parquet":
        exported = {r["key"]: r for r in pq.read_table(target).to_pylist()}
    elif style == "jsonl":
        lines = [line for p in Path(target).glob("*.json") for line in p.read_text().splitlines()]
        exported = {r["key"]: r for r in map(json.loads, lines)}
        expected = {k: {**v, "ttl-map": dict(v["ttl-map"])} for k, v in expected.items()}
    else:
        import fastavro

        exported = {}
        for file in Path(target).glob("*.avro"):
            with file.open("rb") as f:
                exported |= {r["key"]: r for r in fastavro.reader(f)}
        renamed = {k.replace("-", "_"): k for k in next(iter(expected.values()))}
        exported = {k: {renamed[n]: v for n, v in r.items()} for k, r in exported.items()}
        expected = {k: {**v, "ttl-map": dict(v["ttl-map"])} for k, v in expected.items()}
    assert exported.keys() == expected.keys()
    for key, row in expected.items():
        assert exported[key] == row
    assert (Path(target) / "_SUCCESS").exists()
    assert not (Path(target) / "_temporary").exists()


@data_sources
@pytest.mark.parametrize("way", quick(["here", "tasks", "source"], "source"))
def test_queries_on_one_frame_do_not_prune_each_other(path: str, spark: Any, way: str) -> None:
    """Spark runs the second query on a relation with the partitions planned for the first."""
    operator = statetool.load(path, spark=spark, local_bytes=1 << 30 if way == "here" else 0)["timers"]
    everything = operator.to_arrow().num_rows
    source = spark.read.format("flink-state").option("operatorUid", "timers")
    frame = source.load(path) if way == "source" else operator.keyed_state()
    one, other = frame.filter("key = 'timer-3'"), frame.filter("key = 'timer-5'")
    assert (one.count(), other.count(), one.count()) == (1, 1, 1)
    assert one.union(other).count() == 2
    assert (frame.count(), one.count(), frame.count()) == (everything, 1, everything)
    assert one.join(frame.filter("key <> 'timer-3'"), "key", "full").count() == everything


def test_options_of_a_frame_are_those_of_arrow(savepoint: statetool.Savepoint) -> None:
    op = savepoint["by-tuple"]
    with pytest.raises(OptionError, match=r"no option 'nanoz'. did you mean nanos"):
        op.keyed_state(nanoz="error")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="did you mean states"):
        op.keyed_state(state=["count"])  # type: ignore[call-arg]
    options: dict[str, Any] = {"key_group": True, "split_bytes": 1000, "memory_bytes": 1000}
    assert sorted(map(repr, rows_of(op.keyed_state(**options)))) == sorted(
        map(repr, op.to_arrow(**options).to_pylist())
    )


def test_names_of_columns_go_to_spark(tmp_path: Path, spark: Any) -> None:
    table = pa.table({"key": pa.array([{"f0": 1}], pa.struct({"f0": pa.int64()})), "n": pa.array([2], pa.int64())})
    bootstrap = statetool.bootstrap_keyed_state(table, key_type="ROW<id BIGINT>")
    statetool.SavepointWriter.new().with_operator("o", bootstrap).write(str(tmp_path / "sp"))
    op = statetool.load(str(tmp_path / "sp"), spark=spark)["o"]
    assert rows_of(op.keyed_state(columns={"key": ["user"]})) == [{"key": {"user": 1}, "n": 2}]
    assert rows_of(op.keyed_state(columns={"key": ["user"]}).filter("key.user = 1")) == [{"key": {"user": 1}, "n": 2}]
    assert rows_of(op.state("n", columns={"key": ["user"]})) == [{"key": {"user": 1}, "value": 2}]


def test_years_that_python_does_not_have_are_shown_as_by_spark(tmp_path: Path, spark: Any) -> None:
    days = pa.array([2_932_897, -719_163, -800_000, (1 << 31) - 1, 0], pa.int32())
    micros = pa.array([d * 86_400_000_000 + 123_456 for d in (2_932_897, -719_163, -800_000, 9_000_000, 0)], pa.int64())
    columns = {"day": days.cast(pa.date32()), "local": micros.cast(pa.timestamp("us"))}
    bootstrap = statetool.bootstrap_keyed_state(pa.table({"key": [1, 2, 3, 4, 5], **columns}), key="key")
    statetool.SavepointWriter.new().with_operator("o", bootstrap).write(str(tmp_path / "sp"))
    op = statetool.load(str(tmp_path / "sp"), spark=spark)["o"]
    frame = op.keyed_state(nanos="truncate")
    texts = frame.selectExpr("key", "CAST(day AS STRING) AS day", "CAST(local AS STRING) AS local").collect()
    shown = {r["key"]: r for b in op.batches(nanos="truncate") for r in rows_to_python(b)}
    assert {r["key"]: (r["day"], r["local"]) for r in texts} == {
        k: (str(r["day"]), str(r["local"])) for k, r in shown.items()
    }
    assert export_table(op, ScanRequest.of(nanos="truncate"), str(tmp_path / "avro"), style="avro") == 5
