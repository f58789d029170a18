"""Benchmark of everything, compared with Flink's classes: ``python -m tests.perf.all [--keys 1000000] [--folder DIR] [--write]``.

Flink writes the state (kept in ``--folder`` for the next run). Then each benchmark runs several times in a separate process: statetool's,
and Flink's if it has an equivalent (also the State Processor API, whose jar Maven fetches). Flink reads
through a buffer of 64 KiB: its local stream has none, which would make statetool look better than it is. ``statetool doctor --warm`` runs
first. The table also has two limits of the machine and its load; a busy machine is warned of. ``--write`` puts the table into ``docs/operations/performance.md``; ``--only WORK``
runs a part.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from tests.perf.flink.bench import JavaRun, read_runs, run_java, state_processor_runs
from tests.perf.works import Run, path_of, snapshots, works

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations" / "performance.md"
MARKS: Final = ("<!-- {keys:,} keys: written by python -m tests.perf.all --write -->", "<!-- end of {keys:,} keys -->")
BUFFER: Final = 64 << 10
#: Flink's equivalent for reading: its iterator over entries, or a restored backend.
FLINK_MODES: Final = {"canonical": "iterate", "RocksDB native": "rocksdb1", "heap native": "hashmap1"}
#: Equivalents in the State Processor API.
PROCESSOR_WORKS: Final = {
    "bootstrap, in this process": "bootstrap",
    "bootstrap, Spark": "bootstrap",
    "Spark noop, canonical": "read",
    "rescale, in this process": "rescale",
    "rescale, the command": "rescale",
}
_FILE_BYTES: Final = 256 << 20
#: Reads by kernels and by Flink beside them, of which the best counts. During the first ones, the JVM compiles, and statetool gets its memory.
_READ_TIMES: Final = 7
#: Load average above which another process is busy.
_IDLE_LOAD: Final = 0.3


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Seconds of a work, first and later runs.

    ``cpu`` is the CPU time of all processes in later runs; ``worker_mb`` is the maximum memory of one of its Python processes.
    """

    work: str
    first: float
    later: float
    cpu: float = 0.0
    worker_mb: float = 0.0


def descendants() -> dict[int, tuple[str, float, float]]:
    """Return this process and its descendants: name, CPU seconds, resident MB."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    below: dict[int, list[int]] = {}
    found: dict[int, tuple[str, float, float]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
        except OSError:  # it has ended
            continue
        pid = int(entry.name)
        below.setdefault(int(fields[1]), []).append(pid)
        found[pid] = (name, sum(map(int, fields[11:15])) / ticks, int(fields[21]) * page / 1e6)
    todo, mine = [os.getpid()], {}
    while todo:
        pid = todo.pop()
        if pid in found:
            mine[pid] = found[pid]
        todo += below.get(pid, [])
    return mine


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Measure the block: its seconds, CPU seconds, and the maximum MB of one Python process below this one (otherwise of this one)."""
    seen = {"mb": 0.0}
    done = threading.Event()
    watching = 0.0

    def look() -> None:
        nonlocal watching
        while not done.wait(0.05):
            now = descendants()
            python = [mb for pid, (name, _, mb) in now.items() if name.startswith("python") and pid != os.getpid()]
            seen["mb"] = max([seen["mb"], *(python or [now[os.getpid()][2]])])
            watching = time.thread_time()

    before = sum(cpu for _, cpu, _ in descendants().values())
    start = time.perf_counter()
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
        seen["seconds"] = time.perf_counter() - start
        seen["cpu"] = sum(cpu for _, cpu, _ in descendants().values()) - before - watching
    finally:
        done.set()
        watcher.join()


def measured(work: str, run: Run, times: int) -> Figure:
    """Run a work several times in this process."""
    seconds, cpu, mb = [], [], 0.0
    for i in range(times):
        with tempfile.TemporaryDirectory(prefix="statetool-bench-") as target, watched() as seen:
            run(Path(target) / str(i))
        seconds.append(seen["seconds"])
        cpu.append(seen["cpu"])
        mb = max(mb, seen["mb"])
    return Figure(work=work, first=seconds[0], later=min(seconds), cpu=min(cpu), worker_mb=mb)


def limits(folder: Path) -> dict[str, float]:
    """Return the load before the run, and the machine's limits in GB/s: copying memory, and reading a cached file."""
    source = np.ones(_FILE_BYTES, dtype=np.uint8)
    target = np.empty_like(source)
    file = folder / "cached"
    file.write_bytes(source.data)

    def read() -> None:
        with file.open("rb", buffering=0) as f:
            while f.readinto(target[: 4 << 20].data):
                pass

    found = {"load": os.getloadavg()[0]}
    for name, run in (("memory copy", lambda: np.copyto(target, source)), ("cached read", read)):
        times = []
        for _ in range(4):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        found[name] = _FILE_BYTES / min(times) / 1e9
    file.unlink()
    return found


def make(folder: Path, keys: int) -> None:
    """Let Flink write the snapshots that do not exist yet."""
    for backend in sorted({backend for backend, _ in snapshots(keys).values()}):
        if not (folder / f"accounts-{backend}-canonical").exists():
            run_java("perf.PerfGen", ["make", "accounts", backend, str(keys), str(folder), f"accounts-{backend}"])


def table(figures: Sequence[Figure], flink: Mapping[str, Figure], machine: Mapping[str, float], keys: int) -> str:
    """Return figures as a Markdown table; ``flink`` has those of Flink, by statetool's works."""
    lines = [
        f"{keys:,} keys on {os.cpu_count()} cores. Memory copy {machine['memory copy']:.1f} GB/s, cached read "
        f"{machine['cached read']:.1f} GB/s. Load average before the run: {machine['load']:.1f}.",
        "",
        "| work | seconds | CPU | memory | Flink's classes | their CPU | ratio of seconds | ratio of CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in figures:
        beside = flink.get(f.work)
        cells = [f.work, f"{f.first:.2f} / {f.later:.2f}", f"{f.cpu:.2f}", f"{f.worker_mb:,.0f} MB"]
        if beside is None:
            cells += [""] * 4
        else:
            cells += [f"{beside.work}: {beside.first:.2f} / {beside.later:.2f}", f"{beside.cpu:.2f}"]
            cells += [f"{f.later / beside.later:.2f}", f"{f.cpu / beside.cpu:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *_ratios({f.work: f for f in figures}, flink)])


def _ratios(figures: Mapping[str, Figure], flink: Mapping[str, Figure]) -> list[str]:
    """Return ratios of reading to two comparable single-threaded readers: Flink's iterator, and RocksDB without decoding."""
    reads = {work: f for work, f in figures.items() if work.startswith("kernels")}
    iterator, scan = (flink.get("kernels into Arrow, canonical"), figures.get("bare rocksdict scan, RocksDB native"))
    texts = []
    if iterator:
        times = (
            f"{work.partition(', ')[2]} {f.later / iterator.later:.2f} (CPU {f.cpu / iterator.cpu:.2f})"
            for work, f in reads.items()
        )
        texts.append(f"Flink's iterator over the canonical savepoint: {', '.join(times)}")
    if scan and (native := reads.get("kernels into Arrow, RocksDB native")):
        texts.append(f"a bare scan: RocksDB native {native.later / scan.later:.2f}")
    return ["", f"Kernels into Arrow as a multiple of {'; of '.join(texts)}."] if texts else []


def written(page: str, figures: str, keys: int) -> str:
    """Return the page with the figures for this number of keys replaced."""
    begin, end = (mark.format(keys=keys) for mark in MARKS)
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{figures}\n\n{end}{rest.partition(end)[2]}"


def _beside(folder: Path, work: str, keys: int, times: int) -> Figure | None:
    """Run Flink's equivalent of a work; ``None`` if there is none."""
    kind, _, snapshot = work.partition(", ")
    if kind == "kernels into Arrow":
        mode = FLINK_MODES[snapshot]
        runs, _ = read_runs(mode, "accounts", path_of(folder, snapshot), repeat=times, buffer=BUFFER)
        return _of_java(mode, runs)
    if work not in PROCESSOR_WORKS:
        return None
    mode = PROCESSOR_WORKS[work]
    with tempfile.TemporaryDirectory(prefix="statetool-bench-") as made:
        written = Path(made) / "accounts"
        runs = state_processor_runs("bootstrap", keys, written, repeat=times if mode == "bootstrap" else 1)
        if mode != "bootstrap":
            runs = state_processor_runs(mode, keys, Path(f"{written}-0"), repeat=times)
    return _of_java(f"State Processor API, {mode}", runs)


def _of_java(work: str, runs: Sequence[JavaRun]) -> Figure:
    """Return the figure of runs in one JVM."""
    seconds = [run.seconds for run in runs]
    return Figure(work=work, first=seconds[0], later=min(seconds), cpu=min(run.cpu for run in runs))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.all")
    parser.add_argument("--keys", type=int, default=1_000_000, help="1, 5 or 20 million")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "statetool-perf")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", action="append", help="works whose names begin so")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    folder = given.folder.resolve() / str(given.keys)
    folder.mkdir(parents=True, exist_ok=True)
    # Modules stay compiled, as after installation and the first start: compiling all takes each process a third of a second.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    machine = {} if given.stage else limits(folder)
    if machine and machine["load"] > _IDLE_LOAD:
        print(
            f"warning: other processes are busy (load average {machine['load']:.1f}); only ratios will tell something",
            file=sys.stderr,
        )
    todo = works(folder, given.keys)
    if given.stage:
        print(json.dumps(asdict(measured(given.stage, todo[given.stage](), given.times))))
        return
    make(folder, given.keys)
    subprocess.run([sys.executable, "-m", "statetool", "doctor", "--warm"], check=True, stdout=subprocess.DEVNULL)
    figures: list[Figure] = []
    flink: dict[str, Figure] = {}
    for work in todo:
        if given.only and not work.startswith(tuple(given.only)):
            continue
        times = max(given.times, _READ_TIMES) if work.startswith("kernels") else given.times
        own = ["--keys", str(given.keys), "--folder", str(given.folder), "--times", str(times), "--stage", work]
        done = subprocess.run(
            [sys.executable, "-m", "tests.perf.all", *own], capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{work}: {done.stderr}")
        figures.append(Figure(**json.loads(done.stdout.splitlines()[-1])))
        print(f"{work}: {figures[-1].first:.2f} / {figures[-1].later:.2f} s", file=sys.stderr, flush=True)
        if beside := _beside(folder, work, given.keys, times):
            flink[work] = beside
    text = table(figures, flink, machine, given.keys)
    print(text)
    if given.write:
        PAGE.write_text(written(PAGE.read_text(), text, given.keys))


if __name__ == "__main__":
    main()
