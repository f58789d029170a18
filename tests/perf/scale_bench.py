"""CPU seconds of work that grows with the number of files: ``python -m tests.perf.scale_bench [--files 200000] [--splits 5000] [WORK ...]``.

Each work runs in a separate process over synthetic checkpoints: their metadata is complete and their files are sparse. The seconds are those of
the process and of all processes below it. To compare two versions, run both in turn on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

import statetool
from statetool.formats.key_groups import range_for
from tests.perf.all import descendants, watched
from tests.support.snapshots import canonical
from tests.support.snapshots.build import LONG, STRING, map_of
from tests.support.snapshots.large import large_checkpoint

_MAX_PARALLELISM: Final = 32768
#: Items of the map of a large key, with 128 bytes each.
_ITEMS: Final = 3_450_000
#: Prepares a work and returns the function to measure.
Work: TypeAlias = Callable[[Path, argparse.Namespace], Callable[[], object]]


def _session() -> Any:
    from statetool.spark.session import local_session

    session = local_session(cores="2", name="statetool benchmark")
    session.sparkContext.setLogLevel("ERROR")
    session.range(0, 2, 1, 2).mapInArrow(_same, "id BIGINT").collect()
    return session


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def tasks(folder: Path, given: argparse.Namespace) -> Callable[[], object]:
    """Read a table of many splits, each with one row, by tasks."""
    path = _small_files(folder, given)
    operator = statetool.load(str(path), uids=["op"], spark=_session(), driver_read_limit=0)["op"]
    assert len(operator.scan("s").splits) == given.splits
    return lambda: operator.table("s").count()


def stats(folder: Path, given: argparse.Namespace) -> Callable[[], object]:
    """Measure a savepoint of many small files in this process."""
    path = _small_files(folder, given)
    return lambda: statetool.load(str(path)).stats()


def _small_files(folder: Path, given: argparse.Namespace) -> Path:
    """Return a savepoint of as many subtasks as splits, each with one entry."""
    path = folder / f"splits-{given.splits}"
    if not path.exists():
        path.mkdir()
        key = canonical.serializer(LONG)
        entry = canonical.composite_key(canonical.encoded(key, 7)), canonical.encoded(key, 8)
        groups = [range_for(i, given.splits, _MAX_PARALLELISM).start for i in range(given.splits)]
        state = canonical.keyed("s", "value", LONG)
        subtasks = [canonical.Subtask(key=LONG, states=[state], entries=[("s", g, *entry)]) for g in groups]
        canonical.savepoint(path, subtasks, max_parallelism=_MAX_PARALLELISM)
    return path


def large_key(folder: Path, given: argparse.Namespace) -> Callable[[], object]:
    """Measure a savepoint of one key whose map has 440 MB."""
    return lambda: statetool.load(str(_large_key(folder))).stats()


def _large_key(folder: Path) -> Path:
    """Return that savepoint; its entries are in memory while it is written."""
    path = folder / "large-key"
    if not path.exists():
        path.mkdir()
        key = canonical.serializer(LONG)
        group, stored = canonical.group_of(key, 7, _MAX_PARALLELISM), canonical.encoded(key, 7)
        value = b"\0\x65" + bytes(100)
        items = (canonical.composite_key(stored, user_key=i.to_bytes(8, "big")) for i in range(_ITEMS))
        state = canonical.keyed("m", "map", map_of(LONG, STRING))
        subtask = canonical.Subtask(key=LONG, states=[state], entries=[("m", group, item, value) for item in items])
        canonical.savepoint(path, [subtask], max_parallelism=_MAX_PARALLELISM)
    return path


def register(folder: Path, given: argparse.Namespace) -> Callable[[], object]:
    """Register the 24 views of a large checkpoint."""
    savepoint = statetool.load(str(_checkpoints(folder, given, 1) / "chk-1"), spark=_session())
    for operator in savepoint.operators.values():
        assert len(operator.tables) == 24
    return lambda: savepoint.register("large")


def directory(folder: Path, given: argparse.Namespace, *, command: list[str]) -> Callable[[], object]:
    """Run a command over five retained checkpoints."""
    root = _checkpoints(folder, given, 5)
    arguments = [a.replace("ROOT", str(root)) for a in command]
    return lambda: subprocess.run(
        [sys.executable, "-m", "statetool", *arguments], stdout=subprocess.DEVNULL, check=True
    )


def _checkpoints(folder: Path, given: argparse.Namespace, count: int) -> Path:
    root = folder / f"job-{given.files}"
    for number in range(1, count + 1):
        if not (root / f"chk-{number}").exists():
            large_checkpoint(root, given.files, checkpoint_id=number)
    return root


def _worker_seconds() -> float:
    """Return the CPU seconds of the Python processes below this one."""
    return sum(cpu for pid, (name, cpu, _) in descendants().items() if name.startswith("python") and pid != os.getpid())


WORKS: Final[dict[str, Work]] = {
    "tasks": tasks,
    "stats": stats,
    "large-key": large_key,
    "register": register,
    "latest": partial(directory, command=["info", "--latest", "ROOT"]),
    "ls": partial(directory, command=["ls", "ROOT"]),
    "chain": partial(directory, command=["chain", "ROOT"]),
    "orphans": partial(directory, command=["orphans", "ROOT"]),
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.scale_bench")
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}; all by default")
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--splits", type=int, default=5_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "statetool-scale")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.stage:
        run = WORKS[given.stage](given.folder, given)
        before = _worker_seconds()
        with watched() as seen:
            run()
        workers = _worker_seconds() - before
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"cpu": seen["cpu"], "workers": workers, "mb": max(own.ru_maxrss, children.ru_maxrss) >> 10}))
        return
    for work in given.works or WORKS:
        if work == "large-key":
            _large_key(given.folder)  # here, where its memory is not measured
        options = ["--files", str(given.files), "--splits", str(given.splits), "--folder", str(given.folder)]
        arguments = [sys.executable, "-m", "tests.perf.scale_bench", *options, "--stage", work]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{work}: {done.stderr}")
        figures = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{work}: {figures['cpu']:.2f} CPU s, {figures['workers']:.2f} of them in Python below, {figures['mb']:,} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
