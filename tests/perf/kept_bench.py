"""Bytes and CPU seconds of changes of a native savepoint: ``python -m tests.perf.kept_bench [--keys 2000000] [--times 3]``.

One state is large, and one is small. Each change is written once with carried table files, and once completely. Prints a line for each.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import statetool
from tests.perf.sql_bench import cpu_seconds

_TEXT_BYTES: Final = 100
_FORMS: Final[dict[str, dict[str, Any]]] = {"carried": {}, "whole": {"format": "native", "backend": "rocksdb"}}


def _write_base(keys: int, path: str) -> None:
    numbers = np.arange(keys)
    raw = np.random.default_rng(1).bytes(keys * _TEXT_BYTES // 2).hex()
    texts = [raw[i * _TEXT_BYTES : (i + 1) * _TEXT_BYTES] for i in range(keys)]
    state = statetool.bootstrap_keyed_state(pa.table({"key": numbers, "text": texts, "n": numbers}), key="key")
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=4)
    writer.write(path, flink_version="2.3", **_FORMS["whole"])


def _plus_one(table: pa.Table) -> pa.Table:
    return table.set_column(table.schema.get_field_index("n"), "n", pc.add(table["n"], 1))


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(prog="tests.perf.kept_bench")
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    changes: dict[str, Callable[[str, str, dict[str, Any]], object]] = {
        "transform": lambda base, dst, form: statetool.load(base)["op"].transform(_plus_one, states=["n"]).write(dst, **form),
        "state rename": lambda base, dst, form: statetool.rename_states(base, dst, "op", {"n": "m"}, **form),
        "drop": lambda base, dst, form: statetool.drop(base, dst, states={"op": ["n"]}, **form),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        _write_base(given.keys, f"{folder}/base")
        for name, change in changes.items():
            for form, options in _FORMS.items():
                seconds, sizes = [], {True: 0, False: 0}
                for number in range(given.times):
                    target = Path(folder, f"{name}-{form}-{number}")
                    start = cpu_seconds()
                    change(f"{folder}/base", str(target), options)
                    seconds.append(cpu_seconds() - start)
                    sizes = {True: 0, False: 0}
                    for file in target.iterdir():
                        sizes["-copy-" in file.name] += file.stat().st_size
                        file.unlink()
                print(
                    f"{name}, {form}: {min(seconds):.2f} s of CPU, {sizes[False] / 1e6:.1f} MB written, {sizes[True] / 1e6:.1f} MB copied",
                    flush=True,
                )


if __name__ == "__main__":
    main()
