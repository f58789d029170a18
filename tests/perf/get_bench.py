"""Latency of look-ups: ``python -m tests.perf.get_bench [--groups N] [--keys N] [--times N] [--folder DIR]``.

Looks up keys in a few key groups of 780,000 keys each, as many as each of 128 key groups has in a state of 100 million keys, in a canonical
savepoint, a native one of RocksDB and one of the heap backend on local disk. Half of the keys do not exist. Prints the first look-up of a process,
then the median and the 95th percentile of three kinds of look-ups, as milliseconds of the clock and of the processor:

* ``disk``: the first one in its key group, whose bytes the system has to read from disk
* ``group``: the first one in its key group, whose bytes the system has in memory
* ``again``: all others
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import statetool
from statetool.entries.key_indexes import INDEXES
from tests.perf.large_bench import forget_files
from tests.perf.write_bench import accounts

NATIVE: Final[tuple[Literal["rocksdb", "heap"], ...]] = ("rocksdb", "heap")


def made(root: Path, keys: int, groups: int) -> dict[str, str]:
    """Write the savepoints, unless they exist, and return their paths by form."""
    paths = {form: str(root / form) for form in ("canonical", *NATIVE)}
    if not Path(paths["canonical"]).exists():
        state = statetool.bootstrap_keyed_state(accounts(keys), key="id")
        writer = statetool.SavepointWriter.new()
        writer.with_operator("op", state, parallelism=1, max_parallelism=groups).write(paths["canonical"])
    for form in NATIVE:
        if not Path(paths[form]).exists():
            statetool.convert(paths["canonical"], paths[form], format="native", backend=form)
    return paths


def milliseconds(operator: statetool.Operator, key: int, exists: bool) -> tuple[float, float]:
    """Return the duration of a look-up, and the time of the processor."""
    start, cpu = time.perf_counter(), time.process_time()
    found = operator.get(key).found
    taken = (time.perf_counter() - start) * 1000, (time.process_time() - cpu) * 1000
    assert found is exists
    return taken


def line(name: str, taken: Iterable[tuple[float, float]]) -> str:
    """Return the median and the 95th percentile of durations."""
    texts = []
    for part, unit in zip(zip(*taken, strict=True), ("ms", "ms of CPU"), strict=True):
        ascending = sorted(part)
        median, p95 = ascending[len(part) // 2], ascending[len(part) * 95 // 100]
        texts.append(f"median {median:6.1f}, p95 {p95:6.1f} {unit}")
    return f"  {name:6} {'; '.join(texts)}"


def main() -> None:
    """Print the figures of each form."""
    parser = argparse.ArgumentParser(prog="tests.perf.get_bench")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--keys", type=int, default=780_000, help="keys per key group")
    parser.add_argument("--times", type=int, default=400)
    parser.add_argument("--firsts", type=int, default=40)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    keys = given.keys * given.groups
    with tempfile.TemporaryDirectory(prefix="statetool-bench-") as temporary:
        for form, path in made(given.folder or Path(temporary), keys, given.groups).items():
            operator = statetool.load(path)["op"]
            draw = random.Random(1)

            def look_up(operator: statetool.Operator = operator, draw: random.Random = draw) -> tuple[float, float]:
                key = draw.randrange(2 * keys)
                return milliseconds(operator, key, exists=key < keys)

            first, cpu = milliseconds(operator, 0, exists=True)
            print(f"{form}: first {first:.1f} ms, {cpu:.1f} ms of CPU", flush=True)
            taken = []
            for _ in range(given.firsts):
                INDEXES.reset()
                forget_files(Path(path))
                taken.append(look_up())
            print(line("disk", taken), flush=True)
            taken = []
            for _ in range(given.firsts):
                INDEXES.reset()
                taken.append(look_up())
            print(line("group", taken), flush=True)
            print(line("again", [look_up() for _ in range(given.times)]), flush=True)


if __name__ == "__main__":
    main()
