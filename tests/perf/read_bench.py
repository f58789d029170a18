"""Read speed of a canonical savepoint: ``python -m tests.perf.read_bench PATH [--operator accounts]``.

Each stage runs in a separate process, so that its peak memory is measured alone. ``kernels`` reads all splits into Arrow on two threads,
once cold and then warm; ``to_arrow`` makes one table; ``spark`` writes to the noop sink on ``local[2]`` three times, after the session has
started; ``lookup`` reads one key. CPU seconds are the least of the three. ``--flink MODE`` also lets Flink read it on two threads (a mode of :mod:`tests.perf.flink.bench`, such as
``rocksdb1``), and prints the speed of each stage relative to Flink.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import statetool
from statetool.snapshot.metadata_tables import key_group_rows
from tests.perf.flink.bench import MODES, read_runs

STAGES = ("kernels", "to_arrow", "spark", "lookup")


def timed(action: Callable[[], int]) -> tuple[float, float, int]:
    """Return the seconds, the CPU seconds of this process, and the count that the action returned."""
    start, cpu = time.perf_counter(), time.process_time()
    rows = action()
    return time.perf_counter() - start, time.process_time() - cpu, rows


def kernels(operator: statetool.Operator) -> Callable[[], int]:
    from statetool.tables.read import read_split

    splits = operator.scan("keyed_state", split_bytes=16 << 20).splits

    def run() -> int:
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda s: sum(b.num_rows for b in read_split(s)), splits))

    return run


def spark_noop(path: str, operator: str, *, cores: int = 2) -> Callable[[], int]:
    from statetool.spark.session import local_session

    spark = local_session(cores=str(cores), name="bench")
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(1).count()

    def run() -> int:
        frame = statetool.load(path, spark=spark)[operator].keyed_state()
        frame.write.format("noop").mode("overwrite").save()
        return 0

    return run


def run_stage(stage: str, path: str, name: str) -> dict[str, Any]:
    """Run one stage in this process."""
    operator = statetool.load(path)[name]
    size = sum(g.size_bytes or 0 for g in key_group_rows(operator._operator))
    if stage == "spark":
        action = spark_noop(path, name)
    elif stage == "kernels":
        action = kernels(operator)
    elif stage == "to_arrow":
        action = lambda: int(operator.to_arrow().num_rows)  # noqa: E731
    else:
        action = lambda: int(operator.to_arrow(keys=[12345]).num_rows)  # noqa: E731
    times = [timed(action) for _ in range(3)]
    peak = max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    seconds, cpu, rows = zip(*times, strict=True)
    return {"stage": stage, "seconds": seconds, "cpu": min(cpu), "rows": rows[0], "bytes": size, "peak_mb": peak}


def main() -> None:
    """Run all stages and print a line per stage."""
    parser = argparse.ArgumentParser(prog="tests.perf.read_bench")
    parser.add_argument("path")
    parser.add_argument("--operator", default="accounts")
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--flink", choices=MODES, help="let Flink read it, too")
    parser.add_argument("--data", choices=("accounts", "profiles"), default="accounts")
    given = parser.parse_args()
    if given.stage:
        print(json.dumps(run_stage(given.stage, given.path, given.operator)))
        return
    rows = 0
    flink: list[float] = []
    if given.flink:
        runs, rows = read_runs(given.flink, given.data, given.path)
        flink = [run.seconds for run in runs]
        shown = " ".join(f"{s:6.3f}" for s in flink)
        cpu = f" CPU {min(run.cpu for run in runs):.3f}"
        print(f"{'Flink':10} seconds (first, second, third) {shown}{cpu} {rows / min(flink):12,.0f} rows/s", flush=True)
    for stage in STAGES:
        command = [sys.executable, "-m", "tests.perf.read_bench", given.path, "--operator", given.operator]
        done = subprocess.run([*command, "--stage", stage], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        result = json.loads(done.stdout.splitlines()[-1])
        rows = max(rows, result["rows"])
        best = min(result["seconds"])
        speed = "" if stage == "lookup" else f" {rows / best:12,.0f} rows/s"
        if speed and result["bytes"]:  # unknown for databases
            speed += f" {result['bytes'] / best / 1e6:8,.0f} MB/s"
        if flink and stage != "lookup":
            first, warm = flink[0] / result["seconds"][0], min(flink) / best
            speed += f"  {first:.1f} times Flink's speed cold, {warm:.1f} warm"
        shown = " ".join(f"{s:6.3f}" for s in result["seconds"])
        # Spark's JVM and its workers are other processes.
        cpu = "" if stage == "spark" else f" CPU {result['cpu']:.3f}"
        print(
            f"{stage:10} seconds (first, second, third) {shown}{cpu}{speed}  peak {result['peak_mb']:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
