"""How long real Flink restores what statetool writes: ``python -m tests.perf.restore_bench [--keys 1000000] [--repeat 3]``.

A job of Flink with RocksDB writes a canonical and a native savepoint of one state, statetool converts each to both forms, and the job is
restored from each in turn: seconds from its submission until all tasks run.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
from pathlib import Path
from typing import Final, Literal

import statetool
from tests.perf.flink.bench import run_java

_FORMS: Final[dict[Literal["canonical", "native"], Literal["rocksdb"] | None]] = {
    "canonical": None,
    "native": "rocksdb",
}


def restore_seconds(savepoint: str, keys: int) -> float:
    """Return the seconds in which a job of Flink restores a savepoint."""
    text = run_java("perf.PerfGen", ["restore", "accounts", "rocksdb", str(keys), savepoint])
    found = re.search(r"restore submit-to-running ([\d.]+) s", text)
    assert found, text
    return float(found[1])


def size_bytes(savepoint: str) -> int:
    return sum(file.stat().st_size for file in Path(savepoint).iterdir())


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.restore_bench")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
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
        seconds: dict[str, list[float]] = {name: [] for name in savepoints}
        for _ in range(given.repeat):
            for name, savepoint in savepoints.items():
                seconds[name].append(restore_seconds(savepoint, given.keys))
        for name, savepoint in savepoints.items():
            own = " ".join(f"{s:.2f}" for s in sorted(seconds[name]))
            print(f"{name}: {size_bytes(savepoint) / 1e6:.1f} MB, restored in {own} s")


if __name__ == "__main__":
    main()
