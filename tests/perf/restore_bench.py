"""How long real Flink restores what statetool writes: ``python -m tests.perf.restore_bench [--keys 1000000] [--repeat 3] [--parallelism 2,3]``.

A job of Flink with RocksDB and parallelism 2 writes a canonical and a native savepoint of one state, statetool converts each to both forms, and
the job is restored from each in turn, at each parallelism: seconds from its submission until all tasks run.

``python -m tests.perf.restore_bench --from-parquet --keys 100000000 [--folder DIR]`` is for more keys than a job of Flink writes in an hour:
Spark writes both forms from Parquet files. It prints CPU seconds, the memory of the driver and of the largest worker, sizes and seconds of
restores, and their ratios. 100 million keys need about 60 GB of disk.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import statetool
from tests.perf import large_bench
from tests.perf.flink.bench import run_java

_FORMS: Final[dict[Literal["canonical", "native"], Literal["rocksdb"] | None]] = {
    "canonical": None,
    "native": "rocksdb",
}


def restore_seconds(savepoint: str, keys: int, parallelism: int = 2) -> float:
    """Return the seconds in which a job of Flink restores a savepoint."""
    text = run_java("perf.PerfGen", ["restore", "accounts", "rocksdb", str(keys), savepoint], parallelism=parallelism)
    found = re.search(r"restore submit-to-running ([\d.]+) s", text)
    assert found, text
    return float(found[1])


def size_bytes(savepoint: str) -> int:
    return sum(file.stat().st_size for file in Path(savepoint).iterdir())


def compare_from_parquet(folder: Path, keys: int, repeat: int) -> None:
    """Write both forms on Spark, restore them, and print figures."""
    large_bench.make(folder, keys)
    cpu, least = {}, {}
    for form in _FORMS:
        found = large_bench.run(f"{form}, Spark", folder, keys)
        cpu[form] = found["cpu"]
        memory = f"driver {found['driver']:,.0f} MB, a worker {found['worker']:,.0f} MB"
        print(f"{form}: {found['seconds']:.1f} s, {found['cpu']:.1f} CPU s, {memory}", flush=True)
    for form in _FORMS:
        savepoint = str(folder / form)
        seconds = sorted(restore_seconds(savepoint, keys) for _ in range(repeat))
        least[form] = seconds[0]
        own = " ".join(f"{s:.2f}" for s in seconds)
        print(f"{form}: {size_bytes(savepoint) / 1e6:,.1f} MB, restored in {own} s", flush=True)
    ratios = (found["native"] / found["canonical"] for found in (cpu, least))
    print("native / canonical: CPU {:.2f}, restore {:.2f}".format(*ratios))
    shutil.rmtree(folder)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.restore_bench")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--parallelism", default="2", help="of the restored jobs, separated by commas")
    parser.add_argument("--from-parquet", action="store_true", help="Spark writes both forms from Parquet files")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "statetool-perf" / "restores")
    given = parser.parse_args()
    if given.from_parquet:
        compare_from_parquet(given.folder.resolve() / str(given.keys), given.keys, given.repeat)
        return
    with tempfile.TemporaryDirectory() as work:
        run_java("perf.PerfGen", ["make", "accounts", "rocksdb", str(given.keys), work, "made"])
        savepoints = {f"Flink's {form}": f"{work}/made-{form}/sp" for form in _FORMS}
        for form, backend in _FORMS.items():
            savepoints[f"our {form}"] = f"{work}/{form}"
            base = savepoints["Flink's canonical" if form == "native" else "Flink's native"]
            for target in (f"{work}/{form}-first", f"{work}/{form}"):  # the first compiles the kernels
                before = resource.getrusage(resource.RUSAGE_SELF)
                statetool.convert(base, target, format=form, backend=backend)
                after = resource.getrusage(resource.RUSAGE_SELF)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"convert to {form}: {cpu:.2f} CPU s")
        compare(savepoints, given.keys, [int(number) for number in given.parallelism.split(",")], given.repeat)


def compare(savepoints: Mapping[str, str], keys: int, parallelisms: Sequence[int], repeat: int) -> None:
    """Restore savepoints in turn, and print the seconds of each."""
    for parallelism in parallelisms:
        seconds: dict[str, list[float]] = {name: [] for name in savepoints}
        for _ in range(repeat):
            for name, savepoint in savepoints.items():
                seconds[name].append(restore_seconds(savepoint, keys, parallelism))
        for name, savepoint in savepoints.items():
            own = " ".join(f"{s:.2f}" for s in sorted(seconds[name]))
            size = size_bytes(savepoint) / 1e6
            print(f"{name}: {size:.1f} MB, restored at parallelism {parallelism} in {own} s", flush=True)


if __name__ == "__main__":
    main()
