"""CPU seconds of an operator with thousands of states: ``python -m tests.perf.wide_bench [--states 3000] [--keys 1000]``.

Bootstraps it and reads, measures and verifies it, each in a separate process, and does the same with one state of as many entries. To compare
two versions, run both in turn on the same machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import statetool
from tests.perf.all import watched


def bootstrap(path: Path, states: int, keys: int) -> Callable[[], object]:
    """Write the operator from an Arrow table."""
    numbers = np.arange(keys)
    names = [f"s{i}" for i in range(states)]
    data = pa.table({"id": numbers, **{name: numbers * i for i, name in enumerate(names)}})
    declared = {name: statetool.value("BIGINT") for name in names}
    state = statetool.bootstrap_keyed_state(data, key="id", states=declared)
    writer = statetool.SavepointWriter.new().with_operator("wide", state, parallelism=1)
    return lambda: writer.write(str(path))


def read(path: Path, states: int, keys: int) -> Callable[[], object]:
    """Read all rows, with a column per state."""

    def run() -> None:
        assert sum(batch.num_rows for batch in statetool.load(str(path))["wide"].batches()) == keys, states

    return run


def stats(path: Path, states: int, keys: int) -> Callable[[], object]:
    """Measure all states."""
    return lambda: statetool.load(str(path)).stats()


def verify(path: Path, states: int, keys: int) -> Callable[[], object]:
    """Decode and check every value."""
    return lambda: statetool.verify(str(path), deep=True)


WORKS: Final = {work.__name__: work for work in (bootstrap, read, stats, verify)}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.wide_bench")
    parser.add_argument("--states", type=int, default=3000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--stage", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage:
        run = WORKS[given.stage[0]](Path(given.stage[1]), given.states, given.keys)
        with watched() as seen:
            run()
        print(json.dumps(seen))
        return
    for states, keys in ((given.states, given.keys), (1, given.states * given.keys)):
        with tempfile.TemporaryDirectory(prefix="statetool-bench-") as folder:
            for work in WORKS:
                own = ["--states", str(states), "--keys", str(keys), "--stage", work, f"{folder}/savepoint"]
                done = subprocess.run(
                    [sys.executable, "-m", "tests.perf.wide_bench", *own], capture_output=True, text=True, check=True
                )
                seen = json.loads(done.stdout.splitlines()[-1])
                print(f"{states} states, {keys} keys, {work}: {seen['cpu']:.2f} CPU s, {seen['seconds']:.2f} s")


if __name__ == "__main__":
    main()
