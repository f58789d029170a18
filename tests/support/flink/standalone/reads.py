"""Reads beside a job that deletes each checkpoint when the next one is complete."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import CheckpointDeletedError, StatetoolError
from tests.support.flink.standalone.cluster import StandaloneCluster

#: State backends by their names in :func:`start_job`.
BACKENDS: Final = {
    "RocksDB, incremental": {"type": "rocksdb", "incremental": "true"},
    "heap": {"type": "hashmap", "incremental": "false"},
}
#: Ways to read: the newest checkpoint of a job by its URL or in its directory, all rows by the API or some by a command.
WAYS: Final = ("load, URL", "load, directory", "head, URL", "head, directory")
_KEYS: Final = 100_000
_MOST_DELETED: Final = 5
#: Longest pause in seconds, before ``head``, and after ``load`` as a person makes it: reads begin at any time between two checkpoints.
_LONGEST_PAUSE_S: Final = 0.5


@dataclass(slots=True)
class Reads:
    """Numbers of reads.

    Attributes
    ----------
    at_once, next_one, later
        Reads of the first checkpoint, of the next one because the first was deleted, and of a later one.
    errors
        Messages of other errors: false alarms.
    seconds
        Duration of each read, including those of deleted checkpoints, without the pause.
    """

    at_once: int = 0
    next_one: int = 0
    later: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, deleted: int) -> None:
        """Count a read after a number of deleted checkpoints."""
        self.at_once += deleted == 0
        self.next_one += deleted == 1
        self.later += deleted > 1


def start_job(cluster: StandaloneCluster, backend: str, period_s: float = 1) -> str:
    """Start a job with 100,000 keys that takes a checkpoint in each period, wait until the keys exist, and return its id."""
    options = BACKENDS[backend]
    job = cluster.submit(
        backend,
        jobs_keys=str(_KEYS),
        execution_checkpointing_interval=f"{round(1000 * period_s)} ms",
        execution_checkpointing_incremental=options["incremental"],
        state_backend_incremental=options["incremental"],
        state_backend=options["type"],
        state_backend_type=options["type"],
    )
    cluster.wait_until(job, "RUNNING")
    cluster.wait("all keys", lambda: _has_all_keys(cluster, job))
    return job


def _has_all_keys(cluster: StandaloneCluster, job: str) -> bool:
    try:
        return _rows(f"flink://127.0.0.1:{cluster.port}/{job}") == _KEYS
    except StatetoolError:  # no checkpoint yet
        return False


def _rows(path: str, pause: float = 0) -> int:
    savepoint = statetool.load(path, uids=["counts"])
    time.sleep(pause)
    return int(savepoint["counts"].to_arrow().num_rows)


def read_newest(cluster: StandaloneCluster, job: str, way: str, count: int) -> Reads:
    """Read the newest checkpoint of a job many times; ``way`` is one of :data:`WAYS`."""
    verb, place = way.split(", ")
    path = f"flink://127.0.0.1:{cluster.port}/{job}" if place == "URL" else str(cluster.checkpoints / job)
    found, pauses = Reads(), random.Random(0)
    for _ in range(count):
        pause = pauses.uniform(0, _LONGEST_PAUSE_S)
        start = time.perf_counter() + pause
        if verb == "load":
            _load(path, found, pause)
        else:
            time.sleep(pause)
            _head(path, found)
        found.seconds.append(time.perf_counter() - start)
    return found


def _load(path: str, found: Reads, pause: float) -> None:
    for deleted in range(_MOST_DELETED):
        try:
            newest = path if "://" in path else next(r.path for r in statetool.list_snapshots(path) if r.newest)
            rows = _rows(newest, pause if deleted == 0 else 0)
        except CheckpointDeletedError:
            continue
        except (StatetoolError, StopIteration) as error:
            found.errors.append(repr(error))
            return
        if rows != _KEYS:
            found.errors.append(f"{rows} rows")
        found.add(deleted)
        return
    found.add(_MOST_DELETED)


def _head(path: str, found: Reads) -> None:
    command = ["head", path, "counts", "keyed_state", "-n", "3", "--name-uid", "counts"]
    done = CliRunner().invoke(cli, command if "://" in path else [*command, "--latest"], prog_name="statetool")
    if done.exit_code or len(done.stdout.splitlines()) != 4:
        found.errors.append(done.output)
    found.add(done.stderr.count("reading the next one"))


def head_seconds(path: str, count: int) -> tuple[float, float]:
    """Run ``statetool head`` as a process of its own, and return the median duration and the median CPU time, in seconds."""
    command = [
        sys.executable,
        "-m",
        "statetool",
        "head",
        path,
        "counts",
        "keyed_state",
        "-n",
        "3",
        "--name-uid",
        "counts",
    ]
    durations, cpu = [], []
    for _ in range(count):
        start, before = time.perf_counter(), _children_seconds()
        subprocess.run(command, check=True, capture_output=True)
        durations.append(time.perf_counter() - start)
        cpu.append(_children_seconds() - before)
    return median(durations), median(cpu)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
