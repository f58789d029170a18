"""Kills spread over a write: the result either loads completely or has no ``_metadata``, and the next write succeeds."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool as st
from statetool.errors import SnapshotNotFoundError
from tests.support.servers.cluster import with_archives

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

ROWS = 30_000
ERASED = 1_000
DRIVER_ROWS = 300_000
DRIVER_KILLS = 18
#: Each write, asked for by a line, has a process of its own. Only the first process loads the package and the kernels.
_WRITE = """
import os, signal, sys
import pyarrow as pa, statetool as st
n = {rows}
table = pa.table({{"id": range(n), "v": range(n), "name": ["user-%d" % i for i in range(n)]}})
bootstrap = st.bootstrap_keyed_state(table, key="id")
writer = st.SavepointWriter.new().with_operator("op", bootstrap, parallelism=8)
writer.write(sys.argv[1] + "-warm", inline_bytes=0)
for how in sys.stdin:
    pid = os.fork()
    if pid == 0:
        print(os.getpid(), flush=True)
        writer.write(sys.argv[1], inline_bytes=0)
        print("written", flush=True)
        if how == "to be killed\\n":
            signal.pause()
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""

SPARK_DRIVER_KILLS = 3
_SPARK_WRITE = """
import sys
from pyspark.sql import SparkSession
import statetool as st
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map={settings}).getOrCreate()
def write(target):
    frame = spark.range(0, {rows}, 1, 6).selectExpr("id", "id * 2 AS v")
    bootstrap = st.bootstrap_keyed_state(frame, key="id")
    st.SavepointWriter.new().with_operator("op", bootstrap, parallelism=6).write(target, inline_bytes=0)
write(sys.argv[1] + "-warm")
print("ready", flush=True)
if sys.argv[2] == "erase":
    st.erase(sys.argv[1] + "-warm", sys.argv[1], list(range({erased})), spark=spark)
else:
    write(sys.argv[1])
print("written", flush=True)
"""


def check(target: Path, rows: int = ROWS) -> bool:
    """Check the result of a kill; return True if it is a savepoint."""
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
    took = 0.0
    complete = 0
    command = [sys.executable, "-c", _WRITE.format(rows=DRIVER_ROWS), str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # The second one measures the duration of a write.
        for i in range(-2, DRIVER_KILLS):
            process.stdin.write(b"to be killed\n" if i >= 0 else b"to its end\n")
            process.stdin.flush()
            pid = int(process.stdout.readline())
            start = time.monotonic()
            if i < 0:
                assert process.stdout.readline() == b"written\n"
                took = time.monotonic() - start
                assert process.stdout.readline() == b"ended 0\n"
            else:
                time.sleep(took * i / DRIVER_KILLS)
                os.kill(pid, signal.SIGKILL)
                said = [process.stdout.readline()]
                said += [process.stdout.readline()] if said == [b"written\n"] else []
                assert said[-1] == b"ended -9\n"
            if check(target, DRIVER_ROWS):
                complete += i >= 0
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
        from statetool.spark.write import runner

        gatherer = runner._gatherer

        def deadly(*arguments: Any) -> Any:
            run = gatherer(*arguments)
            return lambda batches: run(kill(batches))

        monkeypatch.setattr(runner, "_gatherer", deadly)
    for _ in range(2):
        try:
            write(target, frame)
        except Exception as error:  # noqa: BLE001 - Spark raises many classes
            assert "_metadata" not in names(target), error
            assert names(target) == set()
    assert os.path.exists(flag)
    assert check(target, 3000)
    assert len(names(target)) == 5


@contextmanager
def cluster_write(target: Path, what: str = "write") -> Iterator[subprocess.Popen[bytes]]:
    """Run a write, or an erasure with its proof, on separate executors up to its beginning; all of its processes end with the block."""
    environment = os.environ | {
        "PYTHONPATH": str(Path(st.__file__).parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    code = _SPARK_WRITE.format(rows=ROWS, erased=ERASED, settings=with_archives())
    command = [sys.executable, "-c", code, str(target), what]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            for pid in [process.pid, *(pid for pid, _ in descendants(process.pid))]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(f"{target}-warm")


def descendants(root: int) -> list[tuple[int, str]]:
    """Return the processes below one, with their command lines."""
    listed = subprocess.run(["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [(int(pid), int(parent), args) for pid, parent, args in (x.split(None, 2) for x in listed.splitlines()[1:])]
    below = [(root, "")]
    for parent, _ in below:
        below += [(pid, args) for pid, above, args in rows if above == parent]
    return below[1:]


def test_killed_spark_drivers_and_executors_leave_all_or_nothing(tmp_path: Path) -> None:
    target = tmp_path / "sp"
    with cluster_write(target) as process:
        start = time.monotonic()
        executors = [pid for pid, args in descendants(process.pid) if "CoarseGrainedExecutorBackend" in args]
        assert len(executors) == 2
        time.sleep(0.3)
        os.kill(executors[0], signal.SIGKILL)
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"  # Spark runs the lost tasks again
        took = time.monotonic() - start
    assert check(target)
    assert len(names(target)) == 7
    shutil.rmtree(target)
    for i in range(SPARK_DRIVER_KILLS):
        erases = i % 2 == 1
        with cluster_write(target, "erase" if erases else "write") as process:
            time.sleep(took * (i + 0.5) / (SPARK_DRIVER_KILLS + 1))
        if check(target, ROWS - ERASED if erases else ROWS):
            shutil.rmtree(target)
    with cluster_write(target) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
    assert check(target)
    assert len(names(target)) == 7
