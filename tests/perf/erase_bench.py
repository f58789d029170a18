"""CPU seconds of erasing keys, compared with a copy: ``python -m tests.perf.erase_bench SNAPSHOT [--keys 1000] [--operator accounts] [--times 5]``.

Copies the snapshot and erases random keys of type BIGINT in turn. Prints a line for each turn, then the ratio of the least seconds and the
peak memory.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from pathlib import Path

import statetool
from tests.perf.sql_bench import cpu_seconds, peak_mb


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(prog="tests.perf.erase_bench")
    parser.add_argument("path")
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--among", type=int, default=20_000_000, help="number of keys in the snapshot, from 0 on")
    parser.add_argument("--operator", default="accounts")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    keys = sorted(random.Random(1).sample(range(given.among), given.keys))
    copied, erased = [], []
    for _ in range(given.times):
        with tempfile.TemporaryDirectory(dir=Path(given.path).parent) as folder:
            start = cpu_seconds()
            statetool.copy(given.path, f"{folder}/copy")
            copied.append(cpu_seconds() - start)
            shutil.rmtree(f"{folder}/copy")
            start = cpu_seconds()
            statetool.erase(given.path, f"{folder}/erased", keys=keys, operators=[given.operator], allow_missing=True)
            erased.append(cpu_seconds() - start)
        print(f"copy {copied[-1]:5.2f} s of CPU, erase {erased[-1]:5.2f}", flush=True)
    print(f"{min(erased) / min(copied):.2f} times the copy, peak {peak_mb():,.0f} MB")


if __name__ == "__main__":
    main()
