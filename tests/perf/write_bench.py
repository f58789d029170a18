"""Benchmark of writing: ``python -m tests.perf.write_bench [--rows 1000000] [--spark]``.

Prints MB/s of encoded bytes for columns by kernels and value by value, with their ratio, then for complete savepoints (five entries per
key: a long, a string, a double, a map of two).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import statetool as st
from statetool import flink
from statetool.columns.encode import _Plain, encode_column
from statetool.columns.pieces import pack
from statetool.columns.to_plain import arrow_to_plain
from statetool.serializers.core.base import Serializer

_PLAIN_ROWS = 20_000


def accounts(n: int) -> pa.Table:
    """Return a table of ``n`` keys."""
    rng = np.random.default_rng(1)
    offsets = pa.array(np.arange(0, 2 * n + 1, 2, dtype=np.int32))
    return pa.table(
        {
            "id": np.arange(n),
            "count": rng.integers(0, 1 << 40, n),
            "name": pa.array([f"user-{i}" for i in range(n)]),
            "score": rng.random(n),
            "balances": pa.MapArray.from_arrays(offsets, pa.array(["eur", "usd"] * n), pa.array(rng.random(2 * n))),
        }
    )


def columns(table: pa.Table) -> list[tuple[str, Serializer, pa.Array]]:
    """Return columns of the most common families, with their types."""
    one = {name: table[name].combine_chunks() for name in table.column_names}
    order = flink.pojo("com.acme.Order", {"id": "BIGINT", "name": "STRING", "score": "DOUBLE"})
    struct = pa.StructArray.from_arrays([one["id"], one["name"], one["score"]], names=["id", "name", "score"])
    return [
        ("long", flink.LONG, one["count"]),
        ("double", flink.DOUBLE, one["score"]),
        ("string", flink.STRING, one["name"]),
        ("map of string and double", flink.map_of("STRING", "DOUBLE"), one["balances"]),
        ("POJO of three", order, struct),
    ]


def best(run: Callable[[], Any], times: int = 3) -> float:
    """Return the seconds of the fastest run."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def write(data: Any, parallelism: int, **more: Any) -> None:
    """Write one savepoint."""
    states = {
        "count": st.value("BIGINT"),
        "name": st.value("STRING"),
        "score": st.value("DOUBLE"),
        "balances": st.map_of("STRING", "DOUBLE"),
    }
    bootstrap = st.bootstrap_keyed_state(data, key="id", states=states)
    with tempfile.TemporaryDirectory(prefix="statetool-bench-") as folder:
        start = time.perf_counter()
        writer = st.SavepointWriter.new().with_operator("accounts", bootstrap, parallelism=parallelism)
        writer.write(str(Path(folder) / "sp"), **more)
        took = time.perf_counter() - start
        size = sum(p.stat().st_size for p in (Path(folder) / "sp").iterdir()) / 1e6
    print(f"  {took:.2f} s, {size:.0f} MB, {size / took:.0f} MB/s")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.write_bench")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    table = accounts(given.rows)
    for name, serializer, array in columns(table):
        size = len(encode_column(serializer, array).data) / 1e6
        kernels = size / best(lambda s=serializer, a=array: encode_column(s, a))  # type: ignore[misc]
        few = array.slice(0, _PLAIN_ROWS)
        small = len(encode_column(serializer, few).data) / 1e6
        plain = small / best(
            lambda s=serializer, a=few: pack(_Plain(s, arrow_to_plain(a, s.logical))),  # type: ignore[misc]
            times=1,
        )
        print(f"{name}: kernels {kernels:.0f} MB/s, value by value {plain:.1f} MB/s, {kernels / plain:.0f} times")
    print("this process:")
    for _ in range(2):
        write(table, 4)
    if given.spark:
        from statetool.spark.session import local_session

        spark = local_session(cores="2")
        with tempfile.TemporaryDirectory(prefix="statetool-bench-") as folder:
            import pyarrow.parquet as pq

            pq.write_table(table, Path(folder) / "table.parquet", row_group_size=given.rows // 8)
            print("Spark, local[2]:")
            for _ in range(3):
                write(spark.read.parquet(str(Path(folder) / "table.parquet")), 4)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"peak of this process {peak} MB")


if __name__ == "__main__":
    main()
