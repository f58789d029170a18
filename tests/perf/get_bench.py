"""Latency of look-ups: ``python -m tests.perf.get_bench [--keys N] [--times N]``.

Looks up keys of one key group with a million keys, as many as each of 128 key groups has in a state of 128 million keys, in a canonical savepoint
and in a native one of RocksDB on local disk. Prints the first look-up of a process, and the median and 95th percentile of those after it, in
milliseconds. Half of the keys do not exist.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import statetool
from tests.perf.write_bench import accounts


def made(root: Path, keys: int) -> dict[str, str]:
    """Write the savepoints, and return their paths by form."""
    state = statetool.bootstrap_keyed_state(accounts(keys), key="id")
    paths = {"canonical": str(root / "canonical"), "rocksdb": str(root / "native")}
    writer = statetool.SavepointWriter.new()
    writer.with_operator("op", state, parallelism=1, max_parallelism=1).write(paths["canonical"])
    statetool.convert(paths["canonical"], paths["rocksdb"], format="native", backend="rocksdb")
    return paths


def milliseconds(operator: statetool.Operator, key: int, exists: bool) -> float:
    """Return the duration of a look-up."""
    start = time.perf_counter()
    found = operator.get(key).found
    taken = (time.perf_counter() - start) * 1000
    assert found is exists
    return taken


def main() -> None:
    """Print a line per form."""
    parser = argparse.ArgumentParser(prog="tests.perf.get_bench")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=400)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="statetool-bench-") as folder:
        for form, path in made(Path(folder), given.keys).items():
            operator = statetool.load(path)["op"]
            draw = random.Random(1)
            first = milliseconds(operator, 0, exists=True)
            keys = [draw.randrange(2 * given.keys) for _ in range(given.times)]
            taken = sorted(milliseconds(operator, key, exists=key < given.keys) for key in keys)
            median, p95 = taken[len(taken) // 2], taken[len(taken) * 95 // 100]
            print(f"{form:12} first {first:7.1f} ms, median {median:6.1f} ms, p95 {p95:6.1f} ms", flush=True)


if __name__ == "__main__":
    main()
