"""Benchmark of catching up: ``python -m tests.perf.catch_up_bench [--keys 200000] [--changed 0.01]``.

Prints the CPU seconds of migrating a whole savepoint and of catching up with it, for values that are expensive and cheap to convert.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import statetool
from statetool import flink
from statetool.columns.types import arrow_type
from statetool.serializers.core.base import Serializer
from statetool.types.options import ReadOptions

_CHEAP: Final = {"count": flink.INT, "customer": flink.STRING, "town": flink.STRING}
_COSTLY: Final = _CHEAP | {"amount": flink.BIG_DECIMAL, "created": flink.LONG, "tags": flink.list_of("STRING")}


def _column(name: str, keys: int, changed: float) -> pa.Array:
    """Return values of a field. Some counts differ from those of the other savepoint."""
    count = np.arange(keys, dtype=np.int32)
    if name == "count":
        count[np.random.default_rng(1).permutation(keys)[: int(keys * changed)]] += 1
        return pa.array(count)
    if name == "created":
        return pa.array(np.arange(keys))
    if name == "tags":
        return pa.ListArray.from_arrays(np.arange(0, 2 * keys + 1, 2, dtype=np.int32), pa.array(["a", "b"] * keys))
    texts = {"amount": "{}.50", "customer": "customer-{}", "town": "town"}
    return pa.array([texts[name].format(i) for i in range(keys)])


def _savepoint(path: Path, fields: dict[str, Serializer], keys: int, changed: float, number: int) -> Any:
    """Write a savepoint of one operator with two subtasks."""
    order = flink.pojo("com.acme.Order", fields)
    if keys:
        orders: pa.Array = pa.StructArray.from_arrays([_column(f, keys, changed) for f in fields], names=list(fields))
    else:
        orders = pa.array([], arrow_type(order.logical, ReadOptions()))
    table = pa.table({"key": np.arange(keys), "order": orders})
    bootstrap = statetool.bootstrap_keyed_state(table, states={"order": statetool.value(order)})
    writer = statetool.SavepointWriter.new().with_operator("orders", bootstrap, parallelism=2)
    return writer.with_checkpoint_id(number).write(str(path))


def cpu_seconds(run: Callable[[str], Any], folder: Path, name: str, times: int = 2) -> float:
    """Return the CPU seconds of the fastest run. Each writes to another directory."""
    found = []
    for i in range(times):
        start = time.process_time()
        run(str(folder / f"{name}-{i}"))
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.catch_up_bench")
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--changed", type=float, default=0.01)
    given = parser.parse_args()
    for label, fields in (("expensive", _COSTLY), ("cheap", _CHEAP)):
        with tempfile.TemporaryDirectory(prefix="statetool-bench-") as name:
            folder = Path(name)
            a = _savepoint(folder / "a", fields, given.keys, 0, 1)
            b = _savepoint(folder / "b", fields, given.keys, given.changed, 2)
            job = _savepoint(folder / "job", fields | {"count": flink.LONG}, 0, 0, 0)
            migrated = str(folder / "migrated")
            statetool.migrate(a, migrated, to=job)
            whole = cpu_seconds(lambda dst, b=b, job=job: statetool.migrate(b, dst, to=job), folder, "whole")  # type: ignore[misc]
            caught_up = cpu_seconds(
                lambda dst, m=migrated, a=a, b=b, job=job: statetool.catch_up(m, a, b, dst, to=job),  # type: ignore[misc]
                folder,
                "caught-up",
            )
        print(f"{label}: migrate {whole:.2f} s, catch-up {caught_up:.2f} s, {whole / caught_up:.1f} times")


if __name__ == "__main__":
    main()
