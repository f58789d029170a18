"""Seconds of reads from an object store with 50 ms per request and without: ``python -m tests.perf.remote_bench [--write] [SNAPSHOT ...]``.

The files of snapshots on local disk are objects of a simulated store (:mod:`tests.support.servers.simulated_store`). A read with latency should
take at most one and a half times as long as without, apart from the first requests. ``--write`` puts the requests and CPU seconds, which hardly
depend on other processes, into ``docs/operations/performance.md``.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import statetool
from statetool.io.requests import REQUESTS
from tests.perf.write_bench import accounts
from tests.support.servers.simulated_store import SimulatedFileSystem, World, add_file, simulated_store
from tests.support.snapshots.build import LONG
from tests.support.snapshots.canonical import Subtask, composite_key, encoded, group_of, keyed, serializer
from tests.support.snapshots.incremental import Job
from tests.support.snapshots.native import native_savepoint

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations" / "performance.md"
MARKS: Final = (
    "<!-- written by python -m tests.perf.remote_bench --write -->",
    "<!-- end of the table of reads from an object store -->",
)
LATENCY: Final = 0.05
_TIMES: Final = 3


def large_streams(root: Path) -> str:
    """Write a canonical savepoint with four files of 25 MB."""
    return _bootstrapped(root, keys=1_000_000, parallelism=4)


def small_streams(root: Path) -> str:
    """Write a canonical savepoint with 128 files of 150 kB."""
    return _bootstrapped(root, keys=200_000, parallelism=128)


def _bootstrapped(root: Path, *, keys: int, parallelism: int) -> str:
    state = statetool.bootstrap_keyed_state(accounts(keys), key="id")
    path = root / "savepoint"
    statetool.SavepointWriter.new().with_operator("op", state, parallelism=parallelism).write(str(path))
    return str(path)


def large_tables(root: Path) -> str:
    """Write an incremental checkpoint of one database with 12 files of 8 MB."""
    draw = random.Random(1)
    with Job(root / "checkpoints") as job:
        for key in range(12 * 8_000):
            job.put("a", key, draw.randbytes(1000))
            if key % 8_000 == 7_999:
                job.flush()
        job.checkpoint()
    return str(root / "checkpoints" / "chk-1")


def small_tables(root: Path) -> str:
    """Write a native savepoint with 16 databases, each with four states in small files."""
    root.mkdir(exist_ok=True)
    long, states = serializer(LONG), [keyed(name, "value", LONG) for name in "abcd"]
    subtasks: list[list[tuple[str, int, bytes, bytes]]] = [[] for _ in range(16)]
    for key in range(16 * 125):
        group = group_of(long, key, 128)
        of_key = composite_key(encoded(long, key))
        subtasks[group // 8] += [(meta.name, group, of_key, encoded(long, key)) for meta in states]
    native_savepoint(root, [Subtask(key=LONG, states=states, entries=entries) for entries in subtasks])
    return str(root)


SNAPSHOTS: Final[dict[str, Callable[[Path], str]]] = {
    "canonical, 4 large files": large_streams,
    "canonical, 128 small files": small_streams,
    "RocksDB, 12 large files": large_tables,
    "RocksDB, 16 databases of small files": small_tables,
}


def read(path: str, rebase: dict[str, str]) -> object:
    """Read all rows in this thread."""
    return sum(b.num_rows for b in statetool.load(path, uids=["op"], rebase=rebase)["op"].batches())


def one_key(path: str, rebase: dict[str, str]) -> object:
    """Read the states of one key."""
    return statetool.load(path, uids=["op"], rebase=rebase)["op"].to_arrow(keys=[7])


def stats(path: str, rebase: dict[str, str]) -> object:
    """Measure all states."""
    return statetool.load(path, uids=["op"], rebase=rebase).stats()


def verify(path: str, rebase: dict[str, str]) -> object:
    """Decode and check every value."""
    return statetool.verify(path, deep=True, rebase=rebase)


WORKS: Final = {"`read`": read, "one key": one_key, "`stats`": stats, "`verify`": verify}


def upload(world: World, path: str) -> tuple[str, dict[str, str]]:
    """Make the files of a snapshot objects, and return its URI and where its files are."""
    folder = Path(path).parent
    for file in folder.rglob("*"):
        if file.is_file():
            add_file(world, f"bucket{file}", file.read_bytes())
    return f"sim://bucket{path}", {str(folder): f"sim://bucket{folder}"}


def measure(world: World, work: Callable[[], object], latency: float) -> tuple[float, float]:
    """Return the seconds and CPU seconds of a work whose requests take ``latency`` seconds."""
    world.latency = latency
    best = (float("inf"), 0.0)
    for _ in range(_TIMES):
        REQUESTS.reset()
        SimulatedFileSystem.clear_instance_cache()  # a new process has no listings
        world.requests.clear()
        cpu, start = time.process_time(), time.perf_counter()
        work()
        best = min(best, (time.perf_counter() - start, time.process_time() - cpu))
    return best


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.remote_bench")
    parser.add_argument("snapshots", nargs="*", metavar="SNAPSHOT", help="beginnings of names; all by default")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    given = parser.parse_args()
    lines = [
        "| snapshot | work | requests | one after another | at a time | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for name in [n for n in SNAPSHOTS if not given.snapshots or n.startswith(tuple(given.snapshots))]:
        with tempfile.TemporaryDirectory(prefix="statetool-bench-") as folder, simulated_store(0) as world:
            path, rebase = upload(world, SNAPSHOTS[name](Path(folder) / "root"))
            for work, run in WORKS.items():
                without, _ = measure(world, partial(run, path, rebase), 0)
                seconds, cpu = measure(world, partial(run, path, rebase), LATENCY)
                counts = (len(world.requests), world.chain(), world.in_flight())
                lines.append(f"| {name} | {work} | {' | '.join(map(str, counts))} | {cpu:.2f} |")
                mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
                print(f"{lines[-1]} {without:.2f} s without latency, {seconds:.2f} s with it, {mb} MB", flush=True)
    if given.write:
        before, _, rest = PAGE.read_text().partition(MARKS[0])
        table = "\n".join(lines)
        PAGE.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


if __name__ == "__main__":
    main()
