"""A directory of checkpoints as a stream: every checkpoint exactly once, despite stops and restarts."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark before 4.0 has no Python data sources")
import statetool
from statetool.errors import CheckpointDeletedError, UnsupportedError
from statetool.spark.source import streaming
from statetool.spark.source.streaming import CheckpointStream, CheckpointTable
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.trees import JOB, checkpoint_root, link, replace_file
from tests.support.spark.data_sources import data_sources

pytestmark = pytest.mark.full


@pytest.fixture
def job(corpus: Path, tmp_path: Path) -> Path:
    return checkpoint_root(corpus, tmp_path) / JOB


def checkpoint(job: Path, number: int, *, of: int = 4) -> None:
    """Take a checkpoint: a copy of another one, by default of the fourth."""
    folder = job / f"chk-{number}"
    link(job / f"chk-{of}", folder)
    data = bytearray((folder / "_metadata").read_bytes())
    data[8:16] = number.to_bytes(8, "big")
    replace_file(folder / "_metadata", bytes(data))


def followed(spark: Any, job: Path, work: Path, *, operator: str = "timers", **options: str) -> Any:
    """Append new checkpoints to a Parquet table with a stream that resumes; return its query."""
    statetool.register(spark)
    frame = spark.readStream.format("flink-state").options(operatorUid=operator, **options).load(str(job))
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(work / "offsets"))
        .trigger(availableNow=True)
        .start(str(work / "table"))
    )
    query.awaitTermination()
    return query


def rows(spark: Any, work: Path) -> dict[int, list[Any]]:
    by_checkpoint: dict[int, list[Any]] = {}
    for row in spark.read.parquet(str(work / "table")).collect():
        by_checkpoint.setdefault(row.checkpoint_id, []).append((row.key, row.registered))
    return {n: sorted(r) for n, r in by_checkpoint.items()}


def texts(warned: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the texts of our warnings. The collector of garbage may add others about what tests before have left open."""
    return [str(warning.message) for warning in warned if issubclass(warning.category, UserWarning)]


def state(job: Path, number: int) -> list[Any]:
    table = statetool.load(str(job / f"chk-{number}"))["timers"].to_arrow().to_pylist()
    return sorted((r["key"], r["registered"]) for r in table)


@data_sources
class TestStream:
    def test_restarts_read_each_checkpoint_once(self, spark: Any, job: Path, tmp_path: Path) -> None:
        followed(spark, job, tmp_path)
        assert rows(spark, tmp_path) == {n: state(job, n) for n in (3, 4)}
        followed(spark, job, tmp_path)
        for number in (7, 8, 11):
            checkpoint(job, number)
        shutil.rmtree(job / "chk-3")
        query = followed(spark, job, tmp_path, maxSnapshotsPerTrigger="2")
        offsets = [json.loads(p.json)["sources"][0]["endOffset"] for p in query.recentProgress]
        assert [o["read"] for o in offsets if o["read"]][-2:] == ["7,8", "11"]
        expected = {n: state(job, 4) for n in (3, 4, 7, 8, 11)}
        assert rows(spark, tmp_path) == {**expected, 3: rows(spark, tmp_path)[3]}
        assert sum(map(len, rows(spark, tmp_path).values())) == 5 * len(state(job, 4))

    def test_a_checkpoint_that_is_gone(self, spark: Any, job: Path, tmp_path: Path) -> None:
        needed = statetool.load(str(job / "chk-4")).metadata_rows("files")
        own = [r.path for r in needed if r.operator == "timers" and r.slot == "managed keyed" and "/chk-4/" in r.path]
        Path(own[0]).unlink()
        with pytest.raises(Exception, match="checkpoint 4 was deleted before it was read"):
            followed(spark, job, tmp_path)
        followed(spark, job, tmp_path, failOnDataLoss="false")
        assert rows(spark, tmp_path) == {3: state(job, 3)}

    def test_at_once(self, spark: Any, job: Path) -> None:
        statetool.register(spark)
        read = spark.read.format("flink-state").option("operatorUid", "timers")
        frame = read.load(str(job))
        assert frame.columns == ["checkpoint_id", "checkpoint_time", "key", "registered"]
        assert {r.checkpoint_id for r in frame.collect()} == {3, 4}
        latest = read.option("startingCheckpoint", "latest").load(str(job))
        assert sorted((r.key, r.registered) for r in latest.collect()) == state(job, 4)
        with pytest.raises(Exception, match="a stream needs a directory of checkpoints"):
            spark.readStream.format("flink-state").option("operatorUid", "timers").load(
                str(job / "chk-4")
            ).writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()


@data_sources
@pytest.mark.parametrize(
    ("options", "read", "behind"),
    [
        ({"backlogThreshold": "4"}, "11", 0),
        ({"backlogThreshold": "4", "intervalDuringBacklog": "100000", "maxSnapshotsPerTrigger": "2"}, "3,7", 2),
        ({"backlogThreshold": "4", "skipBacklog": "true"}, "11", 0),
        ({"maxSnapshotsPerTrigger": "2"}, "3,4", 3),
    ],
)
def test_offsets_tell_of_backlog(job: Path, options: dict[str, str], read: str, behind: int) -> None:
    for number in (7, 8, 11):
        checkpoint(job, number)
    for number in (3, 4, 7, 8, 11):
        os.utime(job / f"chk-{number}" / "_metadata", (1_700_000_000 + 60 * number,) * 2)
    stream = CheckpointStream(CheckpointTable.of({"path": str(job), "operatorUid": "timers", **options}))
    offset = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    is_backlog = "backlogThreshold" in options and "skipBacklog" not in options
    last = int(read.rpartition(",")[2])
    assert offset == {"checkpoint": last, "read": read, "behind": behind, "isProcessingBacklog": is_backlog}
    following = stream.latestOffset(offset, stream.getDefaultReadLimit())
    assert following["isProcessingBacklog"] is (
        is_backlog and not behind
    )  # if there is nothing new, the offset does not change


def take(job: Job, n: int, keys: range) -> None:
    """Write ``n`` to some keys, delete the first of them, and take a checkpoint."""
    for key in keys:
        job.put("a", key, b"%d" % n)
    job.delete("a", keys[0])
    job.checkpoint()


def changed(spark: Any, root: Path, work: Path, **options: str) -> dict[tuple[int, int | None], list[Any]]:
    """Follow the changes up to now; return all so far by checkpoint and the checkpoint it was compared with."""
    followed(spark, root, work, operator="op", mode="changes", uids="op", **options)
    by_checkpoint: dict[tuple[int, int | None], list[Any]] = {}
    for row in spark.read.parquet(str(work / "table")).collect():
        by_checkpoint.setdefault((row.checkpoint_id, row.compared_with), []).append((row.change, row.key, row.a))
    return {place: sorted(rows) for place, rows in by_checkpoint.items()}


@pytest.mark.parametrize("planned", [False, True])
def test_a_query_that_ends_with_a_deleted_checkpoint_reads_the_next(job: Path, planned: bool) -> None:
    """Flink keeps one checkpoint: the newest at the start of the query is deleted before, or after, a batch with it was chosen."""
    shutil.rmtree(job / "chk-3")
    stream = CheckpointStream(
        CheckpointTable.of({"path": str(job), "operatorUid": "timers", "failOnDataLoss": "false"})
    )
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    if planned:
        first = stream.latestOffset(start, None)
        assert first["checkpoint"] == 4
    checkpoint(job, 5)
    shutil.rmtree(job / "chk-4")
    if planned:
        with pytest.warns(UserWarning, match="checkpoint 4 was deleted before it was read: Flink deleted checkpoint 4"):
            assert stream.partitions(start, first) == []
        start = first
    end = stream.latestOffset(start, None)
    assert end["checkpoint"] == 5
    assert stream.partitions(start, end)
    checkpoint(job, 6, of=5)
    assert stream.latestOffset(end, None) == end


def test_the_number_of_checkpoints_to_retain_is_said_once(job: Path) -> None:
    table = CheckpointTable.of({"path": str(job), "operatorUid": "timers", "failOnDataLoss": "false"})
    schema = table.schema
    checkpoint(job, 7, of=4)
    shutil.rmtree(job / "chk-3")
    shutil.rmtree(job / "chk-4")
    with pytest.warns(UserWarning, match="deleted before it was read") as warned:
        assert table.partitions([3, 4, 7], schema)
    first, second = texts(warned)
    assert first.endswith("To read all, let Flink keep more than 4 (execution.checkpointing.num-retained)")
    assert "num-retained" not in second
    strict = CheckpointTable.of({"path": str(job), "operatorUid": "timers"})
    with pytest.raises(CheckpointDeletedError, match=r"let Flink keep more than 3 .* or set failOnDataLoss to false"):
        strict.partitions([4], schema)


def test_a_slow_stream_is_told_before_anything_is_deleted(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def complete(number: int) -> None:
        """Take a checkpoint, two seconds after the one before, and delete all but the newest three."""
        checkpoint(job, number, of=number - 1)
        os.utime(job / f"chk-{number}" / "_metadata", (2 * number, 2 * number))
        shutil.rmtree(job / f"chk-{number - 3}", ignore_errors=True)

    for number in (5, 6, 7):
        complete(number)
    table = CheckpointTable.of({"path": str(job), "operatorUid": "timers", "startingCheckpoint": "7"})
    stream = CheckpointStream(table)
    start, newest = stream.initialOffset(), 7
    for seconds, completed, warns in ((2.0, 1, False), (4.1, 2, True), (4.1, 1, False)):
        end = stream.latestOffset(start, None)
        assert stream.partitions(start, end)
        clock[0] += seconds
        for number in range(newest + 1, newest + 1 + completed):
            complete(number)
        assert (job / f"chk-{newest}").exists()  # what was read is still there
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            stream.latestOffset(end, None)
        told = texts(warned)
        assert [text.rpartition("set ")[2] for text in told] == ["execution.checkpointing.num-retained: 4"] * warns
        start, newest = end, newest + completed


def test_a_stream_plans_only_checkpoints_that_it_can_read_in_time(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job takes a checkpoint each 2 s and keeps three. A batch takes 4.5 s, and the stream polls each 0.1 s."""
    clock = [14.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "time", lambda: clock[0])

    def complete(*numbers: int) -> None:
        for number in numbers:
            checkpoint(job, number, of=number - 1)
            os.utime(job / f"chk-{number}" / "_metadata", (2 * number, 2 * number))
            shutil.rmtree(job / f"chk-{number - 3}", ignore_errors=True)

    def poll(start: dict[str, Any], at_s: float) -> str:
        clock[0] = at_s
        return str(stream.latestOffset(start, None)["read"])

    complete(5, 6, 7)
    options = {"path": str(job), "operatorUid": "timers", "startingCheckpoint": "7", "failOnDataLoss": "false"}
    stream = CheckpointStream(CheckpointTable.of(options))
    start = stream.initialOffset()
    assert [poll(start, at_s) for at_s in (14.0, 14.1)] == ["7", "7"]
    first = stream.latestOffset(start, None)
    assert stream.partitions(start, first)
    complete(8, 9)
    with pytest.warns(UserWarning, match="num-retained: 4|left out") as warned:
        assert poll(first, 18.6) == "9"  # 8 is deleted at 22
    told, left_out = texts(warned)
    assert told.endswith("num-retained: 4")
    assert left_out.endswith("would delete before they are read are left out: a batch takes 4.4 s or more")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert poll(first, 19.7) == "7"  # neither can be read in time: the offset stays, to wait for the next one
        complete(10)
        assert poll(first, 20.1) == "10"
        assert poll(first, 21.7) == "7"
        assert poll(first, 23.8) == "8,9,10"  # the next one is late
        stream.table.follow = replace(stream.table.follow, ending=10)
        assert poll(first, 21.7) == "8,9,10"  # the last one of the query
    stream.table.follow = replace(stream.table.follow, ending=None, fail_on_data_loss=True)
    assert poll(first, 21.7) == "8,9,10"  # a deletion is an error


def test_tasks_of_a_deleted_checkpoint_say_so(spark: Any, job: Path) -> None:
    frame = statetool.load(str(job / "chk-4"), spark, local_bytes=0)["timers"].keyed_state()
    for file in (job / "chk-4").iterdir():
        file.unlink()
    with pytest.raises(CheckpointDeletedError, match="Flink deleted this checkpoint while it was read"):
        frame.collect()


def test_a_loss_that_no_row_would_tell_of_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_SMALL_BYTES", 0)
    options = {"path": str(tmp_path / "root"), "operatorUid": "op", "uids": "op"}
    table = CheckpointTable.of({**options, "mode": "changes", "failOnDataLoss": "false"})
    with Job(tmp_path / "root") as job:
        take(job, 1, range(4))
        take(job, 2, range(4))
        for key in range(1, 4):
            job.delete("a", key)
        job.checkpoint()
    assert table.partitions([3], table.schema, before=2)
    shutil.rmtree(tmp_path / "root" / "chk-1")
    with pytest.warns(UserWarning, match="checkpoint 1, with which"):
        assert table.partitions([2], table.schema, before=1)
    shutil.rmtree(tmp_path / "root" / "chk-2")
    with (
        pytest.warns(UserWarning, match="checkpoint 2, with which"),
        pytest.raises(
            UnsupportedError, match=r"checkpoint 3 replaces all rows.*no row that could tell.*later startingCheckpoint"
        ),
    ):
        table.partitions([3], table.schema, before=2)


@data_sources
class TestChanges:
    def test_each_checkpoint_against_the_one_that_was_read_before(self, spark: Any, tmp_path: Path) -> None:
        root = tmp_path / "root"
        with Job(root) as job:
            take(job, 1, range(4))
            take(job, 2, range(2, 5))
            first = {
                (1, None): [("insert", 1, b"1"), ("insert", 2, b"1"), ("insert", 3, b"1")],
                (2, 1): [("delete", 2, b"1"), ("insert", 4, b"2"), ("update", 3, b"2")],
            }
            assert changed(spark, root, tmp_path) == first
            take(job, 3, range(3, 5))
            shutil.rmtree(root / "chk-1")
            first |= {(3, 2): [("delete", 3, b"2"), ("update", 4, b"3")]}
            assert changed(spark, root, tmp_path) == first
            at_once = self.batch(spark, root, changes="true", startingCheckpoint="2", initialRows="false")
            assert at_once == [(3, "delete", 3), (3, "update", 4)]
            take(job, 4, range(9, 11))
            shutil.rmtree(root / "chk-3")
            with pytest.raises(Exception, match="checkpoint 3, with which the next one is to be compared, was deleted"):
                changed(spark, root, tmp_path)
            first |= {(4, None): [("insert", 1, b"1"), ("insert", 4, b"3"), ("insert", 10, b"4")]}
            assert changed(spark, root, tmp_path, failOnDataLoss="false") == first

    def batch(self, spark: Any, root: Path, **options: str) -> list[tuple[int, str, int]]:
        frame = spark.read.format("flink-state").options(operatorUid="op", uids="op", **options).load(str(root))
        return sorted((r.checkpoint_id, r.change, r.key) for r in frame.collect())

    def test_operator_state_has_no_changes(self, spark: Any, job: Path) -> None:
        statetool.register(spark)
        read = spark.read.format("flink-state").options(operatorUid="op-lists", changes="true", table="buffered")
        with pytest.raises(Exception, match="'buffered' is operator state: its elements have no keys"):
            read.load(str(job)).collect()
        with pytest.raises(Exception, match="hides values without a change to the state"):
            read.options(operatorUid="with-ttl", table="keyed_state", ttl="hide_expired", ttl_ms="5").load(
                str(job)
            ).collect()
