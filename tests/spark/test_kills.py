"""Kills spread over a write: what is left either loads complete or has no ``_metadata``, and the next write succeeds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool as st
from statetool.errors import SnapshotNotFoundError

ROWS = 30_000
DRIVER_KILLS = 18
_WRITE = """
import sys
import pyarrow as pa, statetool as st
n = {rows}
table = pa.table({{"id": range(n), "v": range(n), "name": ["user-%d" % i for i in range(n)]}})
bootstrap = st.bootstrap_keyed_state(table, key="id")
writer = st.SavepointWriter.new().with_operator("op", bootstrap, parallelism=8)
writer.write(sys.argv[1] + "-warm", inline_bytes=0)
print("ready", flush=True)
writer.write(sys.argv[1], inline_bytes=0)
"""


def check(target: Path, rows: int = ROWS) -> bool:
    """Check what a kill has left; returns whether it is a savepoint."""
    try:
        sp = st.load(str(target), uids=["op"])
    except SnapshotNotFoundError:
        assert not (target / "_metadata").exists()
        return False
    assert sp["op"].to_arrow().num_rows == rows
    return True


def names(target: Path) -> set[str]:
    return {p.name for p in target.iterdir()} if target.exists() else set()


def write(target: Path, frame: Any, **options: Any) -> st.Savepoint:
    bootstrap = st.bootstrap_keyed_state(frame, key="id")
    writer = st.SavepointWriter.new().with_operator("op", bootstrap, parallelism=4)
    return writer.write(str(target), inline_bytes=0, **options)


def test_a_killed_driver_leaves_all_or_no_metadata(tmp_path: Path) -> None:
    target = tmp_path / "sp"
    took: float | None = None
    complete = 0
    for i in range(-1, DRIVER_KILLS):
        code = _WRITE.format(rows=ROWS)
        with subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            start = time.monotonic()
            if took is None:
                assert process.wait() == 0
                took = time.monotonic() - start
            else:
                time.sleep(took * i / DRIVER_KILLS)
                process.send_signal(signal.SIGKILL)
        for path in (tmp_path / "sp-warm").iterdir():
            path.unlink()
        if check(target):
            complete += 1
            for path in target.iterdir():
                path.unlink()
    assert complete < DRIVER_KILLS
    table = pa.table({"id": range(ROWS), "v": range(ROWS)})
    write(target, table)
    assert check(target)
    assert len(names(target)) == 5


def _dying(flag: str) -> Any:
    """Return a function for ``mapInArrow`` whose first call kills its process."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not os.path.exists(flag):
                with open(flag, "x"):
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return run


@pytest.mark.parametrize("stage", ["encode", "write"])
def test_a_killed_task_leaves_nothing_and_the_next_write_succeeds(
    spark: Any, tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, flag = tmp_path / "sp", str(tmp_path / "flag")
    frame = spark.range(0, 3000, 1, 3).selectExpr("id", "id * 2 as v")
    kill = _dying(flag)
    if stage == "encode":
        frame = frame.mapInArrow(kill, frame.schema)
    else:
        from statetool.spark import writer

        whole = writer._writer

        def deadly(*arguments: Any) -> Any:
            run = whole(*arguments)
            return lambda batches: run(kill(batches))

        monkeypatch.setattr(writer, "_writer", deadly)
    for _ in range(2):
        try:
            write(target, frame)
        except Exception as error:  # noqa: BLE001 - Spark's own, of many classes
            assert "_metadata" not in names(target), error
            assert names(target) == set()
    assert os.path.exists(flag)
    assert check(target, 3000)
    assert len(names(target)) == 5
