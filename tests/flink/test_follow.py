"""A real job takes checkpoints while a stream follows: the stream reads the complete state of each exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.flink.follower import POLLING, Follower, complete
from tests.support.flink.machine import FlinkMachine
from tests.support.patience import eventually
from tests.support.spark.data_sources import data_sources
from tests.support.values.changes import fold

pytestmark = pytest.mark.full
CONFIG = {
    # Only checkpoints that the test takes: Flink takes its first one at a random time within the interval.
    "execution.checkpointing.interval": "365 d",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.incremental": "true",
}


def counts(path: str) -> list[tuple[int, int]]:
    table = statetool.load(path)["counts"].to_arrow().to_pylist()
    return sorted((r["key"], r["count"] or 0) for r in table)


@data_sources
@pytest.mark.since(1, 20)
@pytest.mark.in_turn(0)  # the stream reads both forms and both releases of metadata
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_stream_follows_a_job(flink: FlinkMachine, spark: Any, tmp_path: Path, backend: str) -> None:
    root = tmp_path / "checkpoints"
    config = {**CONFIG, "execution.checkpointing.dir": root.as_uri()}
    job = flink.call("follow", action="start", backend=backend, config=config)["job"]
    statetool.register(spark)
    truth: dict[int, list[tuple[int, int]]] = {}
    read: dict[int, list[tuple[int, int]]] = {}
    batches: dict[int, int] = {}

    def keep(frame: Any, batch: int) -> None:
        found: dict[int, list[tuple[int, int]]] = {}
        for row in frame.collect():
            found.setdefault(row.checkpoint_id, []).append((row["key"], row["count"] or 0))
        for number, rows in found.items():
            assert batches.setdefault(number, batch) == batch
            read[number] = sorted(rows)

    def start() -> Any:
        frame = spark.readStream.format("flink-state").option("operatorUid", "counts").load(str(root / job))
        stream = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "offsets"))
        return stream.trigger(processingTime=POLLING).start()

    query = None
    try:
        for number in range(1, 31):
            flink.call("follow", action="checkpoint", job=job)
            truth |= {taken: counts(path) for taken, path in complete(root / job) if taken not in truth}
            if number in (1, 11, 21):
                if query is not None:
                    query.stop()
                query = start()
            assert query is not None
            query.processAllAvailable()
    finally:
        flink.call("follow", action="stop", job=job)
        if query is not None:
            query.stop()
    assert len(truth) >= 30
    assert read == truth
    assert_retained(root / job)


def assert_retained(job: Path) -> None:
    """Check that of thirty checkpoints all but the last three were deleted while the stream ran."""
    eventually(lambda: len(list(job.glob("chk-*"))) <= 3)  # Flink deletes them also after the end of the job
    assert len(list(job.glob("chk-*"))) == 3


@data_sources
@pytest.mark.since(2, 0)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_the_fold_of_the_changes_is_the_state(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    """The stream is a separate process, which is stopped and restarted, and killed while it reads."""
    root = tmp_path / "checkpoints"
    config = {**CONFIG, "execution.checkpointing.dir": root.as_uri()}
    job = flink.call("follow", action="start", backend=backend, config=config)["job"]
    truth: dict[int, dict[Any, Any]] = {}

    def take() -> int:
        flink.call("follow", action="checkpoint", job=job)
        for taken, path in complete(root / job):
            if taken not in truth:
                truth[taken] = {r["key"]: r for r in statetool.load(path)["counts"].to_arrow().to_pylist()}
        return max(truth)

    number = take()
    stream = Follower(root / job, tmp_path)
    try:
        stream.wait_for(number)  # only the last three are retained, and Spark starts slowly on a busy machine
        for at in range(2, 31):
            number = take()
            if at in (8, 22):
                stream.stop()
                number = take()
                stream = Follower(root / job, tmp_path)
            elif at == 15:
                stream.kill()
                number = take()
                stream = Follower(root / job, tmp_path)
            stream.wait_for(number)
        stream.stop()
    finally:
        stream.kill()
        flink.call("follow", action="stop", job=job)
    assert len(truth) >= 30
    changes = stream.changes()
    assert [number for number, _ in changes] == [*truth]
    kinds: Counter[str] = Counter()
    state: dict[Any, Any] = {}
    for number, rows in changes:
        fold(state, rows, ("key",))
        kinds.update(r["change"] for r in rows)
        assert {r["key"]: r for r in state.values()} == truth[number]
    assert set(kinds) == {"insert", "update", "delete"}
    assert_retained(root / job)
