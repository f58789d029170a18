"""Random conditions remove exactly the keys that one query over all rows selects, or are refused.

Thousands of them: ``python -m tests.support.checks.condition_check``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import statetool
from tests.support.checks.condition_check import check
from tests.support.checks.corpus_check import Case
from tests.support.quick import examples
from tests.support.snapshots.entries import readable
from tests.support.zoo import ZOO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
KEYS: dict[str, tuple[str, list[Any]]] = {
    "bool": ("BOOLEAN", [True, False]),
    "tiny": ("TINYINT", list(range(-50, 50))),
    "int": ("INT", [i * 7919 - 300_000 for i in range(200)]),
    "long": ("BIGINT", [i * (1 << 40) for i in range(-100, 100)]),
    "double": ("DOUBLE", [i / 4 - 20 for i in range(200)]),
    "decimal": ("DECIMAL(20, 4)", [Decimal(i * 12345).scaleb(-4) for i in range(200)]),
    "date": ("DATE", [date(2025, 6, 1) + timedelta(days=i) for i in range(200)]),
    "time": ("TIMESTAMP_NTZ", [(START + timedelta(minutes=37 * i)).replace(tzinfo=None) for i in range(200)]),
    "instant": ("TIMESTAMP", [START + timedelta(minutes=37 * i) for i in range(200)]),
    "text": ("STRING", [f"é{i % 7}-{i}'" for i in range(200)]),
    "row": ("ROW<f0 INT, f1 STRING>", [{"f0": i % 20, "f1": f"r{i}"} for i in range(200)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A savepoint with an operator for each of several types of keys."""
    path = str(tmp_path_factory.mktemp("keys") / "sp")
    writer = statetool.SavepointWriter.new(max_parallelism=32)
    for name, (kind, values) in KEYS.items():
        n = len(values)
        times = [START + timedelta(minutes=11 * i) if i % 5 else None for i in range(n)]
        rows = pa.table(
            {
                "key": values,
                "n": [i * i - 50 if i % 3 else None for i in range(n)],
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "l": pa.array([list(range(i % 4)) for i in range(n)], pa.list_(pa.int64())),
                "m": pa.array(
                    [[(f"k{j}", j * i) for j in range(i % 3)] for i in range(n)], pa.map_(pa.string(), pa.int64())
                ),
            }
        )
        types = {
            "n": statetool.value("BIGINT"),
            "ts": statetool.value("TIMESTAMP"),
            "l": statetool.list_of("BIGINT"),
            "m": statetool.map_of("STRING", "BIGINT"),
        }
        state = statetool.bootstrap_keyed_state(rows, states=types, key_type=kind)
        writer = writer.with_operator(name, state, parallelism=2)
    writer.write(path, flink_version="2.3")
    return path


def test_random_conditions(keys: str) -> None:
    figures = check([keys, ZOO], examples(36), seed=1)
    assert figures.differences == []
    assert figures.trials["of some keys"] > examples(36) / 3
    assert figures.trials["refused"] >= examples(36) // 12


@pytest.mark.full
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_many_random_conditions(keys: str, corpus: Path, tmp_path: Path, zone: str) -> None:
    kinds = ("v1_20_5-rocksdb-native", "v2_3_0-changelog-hashmap", "v2_3_0-rocksdb-canonical")
    paths = [keys, ZOO, *(str(readable(Case(corpus / kind), tmp_path / kind)) for kind in kinds)]
    command = [
        sys.executable,
        "-m",
        "tests.support.checks.condition_check",
        *paths,
        "--conditions",
        "200",
        "--seed",
        str(len(zone)),
    ]
    done = subprocess.run(command, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


@pytest.mark.full
def test_random_conditions_on_spark(spark: SparkSession, keys: str) -> None:
    assert check([keys], 22, seed=3, spark=spark).differences == []
