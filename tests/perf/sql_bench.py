"""Speed of queries in DuckDB and Polars: ``python -m tests.perf.sql_bench PATH [--operator accounts]``.

Each stage runs in a separate process, so that its peak memory is measured alone, and reads the table twice: the first read compiles kernels.

* ``batches`` only reads the table.
* ``duckdb``, ``polars`` aggregate all columns of the stream but the map; the ratio is that to ``batches``. ``maps`` also lets DuckDB use the map,
  whose conversion from Arrow takes DuckDB longer than statetool takes to read the table.
* ``sql`` groups accounts by a name's first letters, ``read`` reads the columns that this query needs, and ``parquet`` lets DuckDB run it over
  the same rows in a Parquet file; the ratio is that to ``read`` and ``parquet`` together.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import statetool

STAGES = ("batches", "duckdb", "polars", "maps", "read", "parquet", "sql")
_MOST = "count(*), sum(key), sum(count), max(name), sum(len(events))"
_GROUPS = "SELECT left(name, 6) AS prefix, count(*), sum(count), avg(count) FROM {} GROUP BY prefix ORDER BY prefix"
_GROUPED_COLUMNS = ["count", "name"]


def stage(name: str, operator: statetool.Operator, folder: Path) -> Callable[[], object]:
    """Return a stage as a function."""
    if name == "batches":
        return lambda: sum(batch.num_rows for batch in operator.batches())
    if name == "duckdb":
        return lambda: operator.to_duckdb().aggregate(_MOST).fetchall()
    if name == "maps":
        return lambda: operator.to_duckdb().aggregate(f"{_MOST}, sum(cardinality(balances))").fetchall()
    if name == "polars":
        return lambda: polars_aggregate(operator)
    if name == "read":
        return lambda: sum(batch.num_rows for batch in operator.scan().select(_GROUPED_COLUMNS).batches())
    if name == "sql":
        return lambda: statetool.query({"sp": _Opened.path}, _GROUPS.format(_Opened.table)).read_all().num_rows
    return parquet(operator, folder)


class _Opened:
    """The snapshot and its table in SQL."""

    path = ""
    table = "accounts_keyed_state"


def polars_aggregate(operator: statetool.Operator) -> object:
    import polars as pl

    columns = pl.col("key").sum(), pl.col("count").sum(), pl.col("name").max(), pl.col("events").list.len().sum()
    frame = operator.to_polars().select(pl.len(), *columns)
    return frame.collect(engine="streaming").rows()


def parquet(operator: statetool.Operator, folder: Path) -> Callable[[], object]:
    """Write the table to a Parquet file and return the query over it."""
    import duckdb
    import pyarrow.parquet as pq

    file = folder / "accounts.parquet"
    scan = operator.scan()
    with pq.ParquetWriter(file, scan.schema) as writer:
        for batch in scan.batches():
            writer.write_batch(batch)
    return lambda: duckdb.sql(_GROUPS.format(f"'{file}'")).fetchall()


def cpu_seconds() -> float:
    """Return the CPU time of this process with all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mb() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_stage(name: str, path: str, operator: str) -> dict[str, Any]:
    """Run one stage in this process."""
    _Opened.path = path
    with tempfile.TemporaryDirectory() as folder:
        run = stage(name, statetool.load(path)[operator], Path(folder))
        run()
        cpu, start = cpu_seconds(), time.perf_counter()
        run()
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    return {"seconds": seconds, "cpu": cpu, "peak_mb": peak_mb()}


def main() -> None:
    """Run all stages and print a line per stage."""
    parser = argparse.ArgumentParser(prog="tests.perf.sql_bench")
    parser.add_argument("path")
    parser.add_argument("--operator", default="accounts")
    parser.add_argument("--stage", choices=STAGES)
    given = parser.parse_args()
    if given.stage:
        print(json.dumps(run_stage(given.stage, given.path, given.operator)))
        return
    results: dict[str, dict[str, Any]] = {}
    for name in STAGES:
        command = [sys.executable, "-m", "tests.perf.sql_bench", given.path, "--operator", given.operator]
        done = subprocess.run([*command, "--stage", name], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        results[name] = result = json.loads(done.stdout.splitlines()[-1])
        base = {"duckdb": ("batches",), "polars": ("batches",), "maps": ("batches",), "sql": ("read", "parquet")}.get(
            name
        )
        ratio = f"  {result['cpu'] / sum(results[b]['cpu'] for b in base):.2f} times {' + '.join(base)}" if base else ""
        print(
            f"{name:8} {result['seconds']:7.2f} s {result['cpu']:7.2f} s of CPU  peak {result['peak_mb']:5,.0f} MB{ratio}",
            flush=True,
        )


if __name__ == "__main__":
    main()
