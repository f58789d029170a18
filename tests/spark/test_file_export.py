"""Files written by tasks: Spark reads the same rows from them as from its DataFrames."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import statetool
from statetool.columns.storable import is_plain
from statetool.errors import StatetoolError, TargetExistsError, WriteFailedError
from statetool.spark.frames import LOCAL_BYTES
from statetool.spark.write.export import export_table
from statetool.spark.write.file_export import is_own_target
from statetool.tables.request import ScanRequest
from tests.support.spark.data_sources import rows_of
from tests.support.zoo import ZOO

CODEC = "spark.sql.parquet.compression.codec"


@pytest.fixture(params=["driver", "tasks"])
def session(request: pytest.FixtureRequest, spark: Any) -> Any:
    """A session whose small tables are written by the driver, or also by tasks."""
    made = spark.newSession()
    made.conf.set("spark.sql.session.timeZone", "UTC")
    if request.param == "tasks":
        made.conf.set(LOCAL_BYTES, "0")
    return made


def same_as_frame(operator: statetool.Operator, table: str, target: str) -> int:
    """Compare an export with the DataFrame; return the number of rows."""
    request = ScanRequest.of(table, decimals="string")
    frame = operator.frame(request)
    rows = export_table(operator, request, target)
    exported = frame.sparkSession.read.parquet(target)
    assert exported.schema == frame.schema, table
    assert sorted(map(repr, exported.collect())) == sorted(map(repr, frame.collect())), table
    assert rows == exported.count()
    return rows


def written_by_tasks(target: str) -> bool:
    return all("part-" in f.name and "-c000" not in f.name for f in Path(target).rglob("*.parquet"))


@pytest.mark.parametrize("uid", ["timers", "with-ttl", "by-tuple"])
def test_spark_reads_what_the_frame_has(session: Any, tmp_path: Path, uid: str) -> None:
    operator = statetool.load(ZOO, spark=session)[uid]
    for table in operator.tables:
        target = str(tmp_path / table.replace("/", "_"))
        same_as_frame(operator, table, target)
        assert written_by_tasks(target)


@pytest.mark.full
def test_spark_reads_all_types_of_a_job(session: Any, corpus: Path, tmp_path: Path) -> None:
    savepoint = statetool.load(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"), spark=session)
    rows = own = 0
    for number, operator in enumerate(savepoint.operators.values()):
        for table in operator.tables:
            target = str(tmp_path / f"{number}-{table.replace('/', '_')}")
            rows += same_as_frame(operator, table, target)
            own += written_by_tasks(target)
    assert rows > 1000
    assert own > 50


def test_days_and_times_of_any_year_stay(session: Any, tmp_path: Path) -> None:
    days = pa.array([2_932_897, -719_163, -800_000, 0], pa.int32())
    micros = pa.array([d * 86_400_000_000 + 123_456 for d in (2_932_897, -719_163, -800_000, 0)], pa.int64())
    columns = {"day": days.cast(pa.date32()), "local": micros.cast(pa.timestamp("us"))}
    state = statetool.bootstrap_keyed_state(pa.table({"key": [1, 2, 3, 4], **columns}), key="key")
    statetool.SavepointWriter.new().with_operator("o", state).write(str(tmp_path / "sp"))
    operator = statetool.load(str(tmp_path / "sp"), spark=session)["o"]
    target = str(tmp_path / "out")
    assert export_table(operator, ScanRequest.of(nanos="truncate"), target) == 4
    texts = ["key", "CAST(day AS STRING)", "CAST(local AS STRING)"]
    exported = session.read.parquet(target).selectExpr(*texts).collect()
    assert sorted(exported) == sorted(operator.keyed_state(nanos="truncate").selectExpr(*texts).collect())


@pytest.mark.parametrize(("local_bytes", "jobs"), [(None, 0), (0, 1)])
def test_what_is_small_is_what_the_caller_says(spark: Any, tmp_path: Path, local_bytes: int | None, jobs: int) -> None:
    operator = statetool.load(ZOO, spark=spark, local_bytes=local_bytes)["timers"]
    context = spark.sparkContext
    group = f"export {local_bytes}"
    context.setJobGroup(group, "")
    try:
        assert export_table(operator, ScanRequest(), str(tmp_path / "out")) == 14
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    context._jsc.sc().listenerBus().waitUntilEmpty(600_000)  # Spark's list of jobs is filled by another thread
    assert len(context.statusTracker().getJobIdsForGroup(group)) == jobs


def test_a_table_without_rows_has_its_columns(session: Any, tmp_path: Path) -> None:
    operator = statetool.load(ZOO, spark=session)["timers"]
    request = ScanRequest.of(keys=["nobody"])
    assert export_table(operator, request, str(tmp_path / "out")) == 0
    assert session.read.parquet(str(tmp_path / "out")).schema == operator.frame(request).schema
    assert export_table(operator, request, str(tmp_path / "groups"), by_key_group=True) == 0
    assert [p.name for p in (tmp_path / "groups").iterdir()] == ["_SUCCESS"]


def test_rows_of_a_key_group_are_one_file_of_each_task(session: Any, tmp_path: Path) -> None:
    data = pa.table({"key": pa.array(range(5000)), "v": pa.array(range(5000))})
    state = statetool.bootstrap_keyed_state(data, key="key")
    writer = statetool.SavepointWriter.new(max_parallelism=8).with_operator("o", state, parallelism=2)
    writer.write(str(tmp_path / "sp"))
    operator = statetool.load(str(tmp_path / "sp"), spark=session)["o"]
    target = tmp_path / "out"
    assert export_table(operator, ScanRequest(), str(target), by_key_group=True) == 5000
    assert [len(list((target / f"key_group={g}").iterdir())) for g in range(8)] == [1] * 8
    exported = rows_of(session.read.parquet(str(target)))
    expected = operator.to_arrow(key_group=True).to_pylist()
    assert sorted(tuple(r[n] for n in ("key", "v", "key_group")) for r in exported) == sorted(
        tuple(r[n] for n in ("key", "v", "key_group")) for r in expected
    )


@pytest.mark.parametrize(("codec", "stored"), [("zstd", "ZSTD"), ("none", "UNCOMPRESSED"), ("lz4_raw", "LZ4")])
def test_files_have_the_codec_of_the_session(spark: Any, tmp_path: Path, codec: str, stored: str) -> None:
    session = spark.newSession()
    session.conf.set(CODEC, codec)
    operator = statetool.load(ZOO, spark=session)["timers"]
    assert export_table(operator, ScanRequest(), str(tmp_path / "out")) == 14
    codecs = {
        pq.ParquetFile(f).metadata.row_group(0).column(0).compression for f in (tmp_path / "out").glob("*.parquet")
    }
    assert codecs == {stored}


def test_groups_of_rows_are_bounded(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetool.tables.export.files._GROUP_BYTES", 1 << 16)
    data = pa.table({"key": pa.array(range(200_000))}).append_column("v", pa.array(range(200_000)))
    state = statetool.bootstrap_keyed_state(data, key="key")
    statetool.SavepointWriter.new().with_operator("o", state, parallelism=1).write(str(tmp_path / "sp"))
    operator = statetool.load(str(tmp_path / "sp"), spark=spark)["o"]
    assert export_table(operator, ScanRequest(), str(tmp_path / "out")) == 200_000
    (file,) = (tmp_path / "out").glob("*.parquet")
    stored = pq.ParquetFile(file).metadata
    assert stored.num_rows == 200_000
    assert stored.num_row_groups > 1


@pytest.mark.parametrize("style", ["parquet", "avro"])
def test_an_error_leaves_nothing(session: Any, tmp_path: Path, style: str) -> None:
    data = pa.table({"key": pa.array(range(2000)), "v": pa.array([f"value {i}" for i in range(2000)])})
    state = statetool.bootstrap_keyed_state(data, key="key")
    statetool.SavepointWriter.new().with_operator("o", state, parallelism=2).write(str(tmp_path / "sp"), inline_bytes=0)
    stream = max((f for f in (tmp_path / "sp").iterdir() if f.name != "_metadata"), key=lambda f: f.stat().st_size)
    stream.write_bytes(stream.read_bytes()[:-1000] + b"\xff" * 1000)
    operator = statetool.load(str(tmp_path / "sp"), spark=session)["o"]
    with pytest.raises(StatetoolError, match="key group"):
        export_table(operator, ScanRequest(), str(tmp_path / "out"), style=style)
    assert not (tmp_path / "out").exists()


def test_a_directory_that_appears_meanwhile_stays_as_it_is(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "of-others").touch()
    operator = statetool.load(ZOO, spark=spark)["timers"]
    monkeypatch.setattr("statetool.tables.export.directories.exists", lambda _: False)
    with pytest.raises(TargetExistsError, match="already exists"):
        export_table(operator, ScanRequest(), str(tmp_path / "out"))
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["of-others"]


def test_a_full_disk_is_an_error_of_ours_and_leaves_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("statetool.tables.export.files._write_file", full)
    operator = statetool.load(ZOO, spark=spark)["timers"]
    with pytest.raises(WriteFailedError, match="cannot write: No space left"):
        export_table(operator, ScanRequest(), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_types_that_spark_stores_in_its_own_way_are_left_to_it() -> None:
    nested = pa.struct([pa.field("a", pa.list_(pa.duration("us")))])
    for kind in (pa.null(), pa.duration("us"), nested, pa.map_(pa.string(), pa.struct([]))):
        assert not is_plain(pa.schema([("c", kind)]))
    assert is_plain(pa.schema([("key", pa.struct([])), ("v", pa.list_(pa.decimal128(38, 18)))]))


@pytest.mark.parametrize(
    ("target", "own"),
    [("rows", True), ("/rows", True), ("file:///rows", True), ("s3://b/rows", True), ("s3a://b/rows", False), ("hdfs://h/rows", False)],
)  # fmt: skip
def test_targets_that_only_spark_knows_are_its_own(spark: Any, target: str, own: bool) -> None:
    assert is_own_target(spark, target) is own


def test_a_path_is_on_the_default_file_system_of_spark(spark: Any) -> None:
    configuration = spark._jsc.hadoopConfiguration()
    before = configuration.get("fs.defaultFS")
    configuration.set("fs.defaultFS", "hdfs://name:8020")
    try:
        assert not is_own_target(spark, "/rows")
        assert is_own_target(spark, "file:///rows")
    finally:
        configuration.set("fs.defaultFS", before)
