"""Flink's side of the benchmarks: write a large state, read it with Flink's classes (see ``docs/internals/benchmarks.md``).

``python -m tests.perf.flink.bench make SET BACKEND N DIR`` and ``... read MODE SET SNAPSHOT [--threads 2] [--repeat 3]``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.flink.machine import OPENS
from tools.flink_jars import DEFAULT_VERSIONS, compiled, flink_jars, java_tool
from tools.maven import maven_jars

VERSION: Final = DEFAULT_VERSIONS[0]
JAVA: Final = Path(__file__).parent / "java"
STATE_PROCESSOR: Final = Path(__file__).parent / "state_processor"
# Not "rocksdb": Flink returns keys of several states of a RocksDB backend more than once, so nothing could be checked.
MODES: Final = ("hashmap", "hashmap1", "rocksdb1", "iterate", "entries")


def run_java(
    main: str,
    arguments: Sequence[str],
    *,
    heap: str = "6g",
    buffer: int = 0,
    parallelism: int = 2,
    version: str = VERSION,
    sources: Path = JAVA,
    jars: Sequence[Path] = (),
) -> str:
    """Run one of the programs against the jars of a Flink release, by default the newest, and return its output.

    Parameters
    ----------
    buffer
        Size in bytes of the buffer for reading a snapshot's files; Flink's local stream has none.
    parallelism
        That of the job.
    sources, jars
        Location of the program, and its dependencies besides Flink.

    Raises
    ------
    FlinkUnavailableError
        There is no JDK, or the jars cannot be downloaded.
    RuntimeError
        The program failed.
    """
    with tempfile.TemporaryDirectory() as work:
        path = os.pathsep.join(map(str, [compiled(version, sources, jars=jars), *jars, *flink_jars(version)]))
        command = [
            java_tool("java"),
            *OPENS,
            f"-Xmx{heap}",
            f"-Djava.io.tmpdir={work}",
            f"-Dbuffer={buffer}",
            f"-Dperf.parallelism={parallelism}",
            "-cp",
            path,
            main,
            *arguments,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{main} failed: {done.stderr[-3000:]}")
    return done.stdout


@dataclass(frozen=True)
class JavaRun:
    """Seconds of a run in a JVM, and CPU seconds of the whole process meanwhile, with its compiler and garbage collector."""

    seconds: float
    cpu: float


def read_runs(
    mode: str, data: str, snapshot: str, *, threads: int = 2, repeat: int = 3, buffer: int = 0
) -> tuple[list[JavaRun], int]:
    """Let Flink read a snapshot several times in one process; return the runs, and the rows. ``buffer``: :func:`run_java`.

    Raises
    ------
    RuntimeError
        Flink failed, or the checksum of its result differs from that of the data.
    """
    text = run_java("perf.PerfRead", [mode, data, snapshot, str(threads), str(repeat)], buffer=buffer)
    found = re.findall(r"rows=(\d+) .* total=([\d.]+) s cpu=([\d.]+) s .* ok=(\S+)", text)
    if len(found) != repeat or any(ok == "false" for *_, ok in found):
        raise RuntimeError(f"Flink did not read all of it: {text}")
    return [JavaRun(float(seconds), float(cpu)) for _, seconds, cpu, _ in found], int(found[0][0])


def state_processor_runs(work: str, keys: int, savepoint: Path, *, repeat: int, heap: str = "6g") -> list[JavaRun]:
    """Run the State Processor API several times in one process.

    Parameters
    ----------
    work
        ``bootstrap`` writes the savepoints ``SAVEPOINT-0``, ``SAVEPOINT-1`` and so on. ``read`` and ``rescale`` take such a savepoint.

    Raises
    ------
    FlinkUnavailableError
        Maven is missing, or cannot fetch the jar.
    RuntimeError
        The program failed.
    """
    text = run_java(
        "perf.StateProcessor",
        [work, str(keys), str(savepoint), str(repeat)],
        heap=heap,
        sources=STATE_PROCESSOR,
        jars=maven_jars(f"state-processor-{VERSION}"),
    )
    found = re.findall(r"total=([\d.]+) s cpu=([\d.]+) s", text)
    return [JavaRun(float(seconds), float(cpu)) for seconds, cpu in found]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.flink.bench")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make")
    make.add_argument("data", choices=("accounts", "profiles"))
    make.add_argument("backend", choices=("hashmap", "rocksdb"))
    make.add_argument("keys", type=int)
    make.add_argument("folder", type=Path)
    read = commands.add_parser("read")
    read.add_argument("mode", choices=MODES)
    read.add_argument("data", choices=("accounts", "profiles"))
    read.add_argument("snapshot")
    read.add_argument("--threads", type=int, default=2)
    read.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    if given.command == "make":
        folder = given.folder.resolve()
        name = f"{given.data}-{given.backend}"
        sys.stdout.write(
            run_java("perf.PerfGen", ["make", given.data, given.backend, str(given.keys), str(folder), name])
        )
        return
    runs, rows = read_runs(given.mode, given.data, given.snapshot, threads=given.threads, repeat=given.repeat)
    seconds = [run.seconds for run in runs]
    print(
        f"{given.mode} seconds {' '.join(f'{s:.2f}' for s in seconds)}  CPU {min(run.cpu for run in runs):.2f}  "
        f"{rows / min(seconds):,.0f} rows/s"
    )


if __name__ == "__main__":
    main()
