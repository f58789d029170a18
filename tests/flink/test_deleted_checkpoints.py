"""A real job keeps one checkpoint and soon takes the next one: every read reports that a checkpoint was deleted, never that it is damaged."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import CheckpointDeletedError, SnapshotNotFoundError
from statetool.jobs import follow
from statetool.spark.write.export import export_table
from statetool.tables.request import ScanRequest
from tests.support.flink.follower import complete
from tests.support.flink.machine import FlinkMachine
from tests.support.patience import eventually
from tests.support.spark.data_sources import data_sources

pytestmark = pytest.mark.full
READS = 200
#: These start Spark tasks, so fewer of them are enough.
ON_SPARK = 8
#: Seconds in which a job on a busy machine takes a checkpoint and deletes the one before.
CONFIG = {
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.num-retained": "1",
    # Forces all state into files instead of _metadata.
    "execution.checkpointing.data-inline-threshold": "1 b",
}
DELETED = "Flink deleted this checkpoint while it was read"

Read = Callable[[statetool.Savepoint, Path], object]


def rows(savepoint: statetool.Savepoint, _: Path) -> None:
    found = savepoint["counts"].to_arrow().to_pylist()
    assert len({r["key"] for r in found}) == len(found) > 0


def is_whole(savepoint: statetool.Savepoint, _: Path) -> None:
    verification = statetool.verify(savepoint, deep=True)
    assert verification.ok, verification.problems[:3]


def describe(savepoint: statetool.Savepoint, _: Path) -> None:
    for kind in ("operators", "states", "files"):
        assert savepoint.metadata_rows(kind)
    assert not [s for s in savepoint.metadata_rows("states") if s.kind == "unread"]


def report(savepoint: statetool.Savepoint, work: Path) -> None:
    assert savepoint.report(str(work / "report.html"))


#: Reads of an open snapshot, by name.
IN_PROCESS: dict[str, Read] = {
    "describe": describe,
    "rows": rows,
    "batches": lambda s, _: [b.num_rows for split in s["counts"].scan("keyed_state").splits for b in _batches(split)],
    "verify": is_whole,
    "stats": lambda s, _: s.stats().rows("states"),
    "report": report,
    "copy": lambda s, work: statetool.copy(s.path, str(work / "copy"), compare=True),
    "convert": lambda s, work: statetool.convert(s.path, str(work / "canonical")),
    "rescale": lambda s, work: statetool.rescale(s.path, str(work / "rescaled"), 64),
}
#: Arguments of commands that use the newest checkpoint below a folder, by name.
COMMANDS: dict[str, Callable[[str, Path], list[str]]] = {
    "info": lambda root, _: ["info", "--latest", root],
    "ls": lambda root, _: ["ls", "--latest", root],
    "states": lambda root, _: ["states", "--latest", root],
    "head": lambda root, _: ["head", "--latest", root, "counts"],
    "verify": lambda root, _: ["verify", "--latest", root],
    "stats": lambda root, _: ["stats", "--latest", root],
    "diff": lambda root, work: ["diff", "--latest", root, str(work.parent / "first")],
    "snapshots": lambda root, _: ["ls", root],
    "growth": lambda root, _: ["stats", root],
    "copy": lambda root, work: ["copy", "--latest", root, str(work / "copy")],
}


def _batches(split: Any) -> Iterator[Any]:
    from statetool.tables.read import read_split

    return read_split(split)


@data_sources
@pytest.mark.since(2, 0)
def test_a_deleted_checkpoint_is_no_damage(flink: FlinkMachine, spark: Any, tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    seconds = 1
    job = _start(flink, root, seconds)
    chance = random.Random(1)
    outcomes, of_earlier_jobs = Counter[str](), Counter[str]()
    try:
        _copy_first(root / job, tmp_path / "first")
        ways = cycle([*IN_PROCESS, *(f"statetool {name}" for name in COMMANDS)])
        for i, way in enumerate(islice(ways, READS - ON_SPARK)):
            recent = outcomes - of_earlier_jobs
            if recent["deleted"] > max(5, recent["read"] / 2):
                # A busy machine reads for longer than a checkpoint exists.
                flink.call("follow", action="stop", job=job)
                seconds, of_earlier_jobs = 3 * seconds, outcomes.copy()
                job = _start(flink, root, seconds)
            work = tmp_path / str(i)
            work.mkdir()
            time.sleep(chance.random() / 20)
            if way in IN_PROCESS:
                outcomes[_read(IN_PROCESS[way], root / job, work, late=i % 9 == 3)] += 1
            else:
                outcomes[_command(COMMANDS[way.removeprefix("statetool ")](str(root / job), work))] += 1
        for i in range(ON_SPARK):
            work = tmp_path / f"spark-{i}"
            work.mkdir()
            outcomes[_on_spark(i, spark, root / job, work, late=i % 2 == 0)] += 1
    finally:
        flink.call("follow", action="stop", job=job)
    assert outcomes.total() == READS
    assert outcomes["read"] > READS / 2
    assert outcomes["deleted"] > 2, outcomes


def _start(flink: FlinkMachine, root: Path, seconds: int) -> str:
    """Start a job that takes a checkpoint each few seconds, wait for the first one, and return its id."""
    config = {
        **CONFIG,
        "execution.checkpointing.dir": root.as_uri(),
        "execution.checkpointing.interval": f"{seconds} s",
    }
    job: str = flink.call("follow", action="start", backend="rocksdb", config=config)["job"]
    eventually(lambda: complete(root / job))
    return job


def _copy_first(job: Path, target: Path) -> None:
    def is_copied() -> bool:
        statetool.copy(complete(job)[-1][1], str(target))
        return True

    eventually(is_copied, retry=(IndexError, SnapshotNotFoundError))


def _is_deleted(file: Path) -> bool:
    return not file.exists()


def _newest(job: Path, *, late: bool, **options: Any) -> statetool.Savepoint:
    """Open the newest checkpoint; if ``late``, wait until Flink begins to delete it."""
    while True:
        found = complete(job)
        if not found:
            continue
        try:
            savepoint = statetool.load(found[-1][1], **options)
        except SnapshotNotFoundError as error:
            # A checkpoint deleted after it was found and before it was opened does not exist.
            assert not Path(found[-1][1], "_metadata").exists(), error
            continue
        if late:
            eventually(partial(_is_deleted, Path(savepoint.path, "_metadata")), every=0.002)
        return savepoint


def _read(read: Read, job: Path, work: Path, *, late: bool) -> str:
    savepoint = _newest(job, late=late)
    try:
        read(savepoint, work)
    except SnapshotNotFoundError as error:
        # The path of a deleted checkpoint no longer exists when it is opened again.
        assert isinstance(error, CheckpointDeletedError) or not Path(savepoint.path, "_metadata").exists(), error
        return "deleted"
    return "read"


def _command(arguments: list[str]) -> str:
    result = CliRunner().invoke(cli, arguments)
    if result.exit_code == 0 or (arguments[0] == "diff" and result.exit_code == 1):
        assert "cannot be read" not in result.output
        return "read"
    assert result.exit_code == 3, (arguments, result.output, result.exception)
    assert DELETED in result.output.splitlines()[-1], (arguments, result.output)
    return "deleted"


def _on_spark(i: int, spark: Any, job: Path, work: Path, *, late: bool) -> str:
    """Reads by DataFrame, by an export and by the follow job."""
    if i % 4 == 3:
        options = [
            "--uid",
            "counts",
            "--target",
            str(work / "table"),
            "--offsets",
            str(work / "offsets"),
            "--once",
        ]
        if (code := follow.main([str(job), *options])) != 0:
            assert code == 3  # on a busy machine, each checkpoint may be deleted before Spark has started its tasks
            return "deleted"
        assert statetool.read_folded(spark, str(work / "table")).count() > 0
        return "read"
    savepoint = _newest(job, late=late, spark=spark, driver_read_limit=0)
    try:
        if i % 4 == 0:
            assert savepoint["counts"].keyed_state().count() > 0
        elif i % 4 == 1:
            export_table(savepoint["counts"], ScanRequest.of("keyed_state"), str(work / "exported"))
        else:
            assert statetool.verify(savepoint, spark=spark).ok
    except CheckpointDeletedError:
        return "deleted"
    return "read"
