"""Flink's side of the benchmarks works, and its output is read correctly."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from tests.perf.flink import bench

pytestmark = pytest.mark.full

_KEYS = 3000


@pytest.mark.usefixtures("newest_flink")
def test_generated_states_are_what_both_sides_read(tmp_path: Path) -> None:
    bench.run_java("perf.PerfGen", ["make", "accounts", "rocksdb", str(_KEYS), str(tmp_path), "small"], heap="1g")
    for kind, mode in (("canonical", "hashmap1"), ("native", "rocksdb1")):
        snapshot = tmp_path / f"small-{kind}" / "sp"
        _, rows = bench.read_seconds(mode, "accounts", str(snapshot), repeat=1)
        assert rows == _KEYS
        table = statetool.load(str(snapshot))["accounts"].to_arrow().sort_by("key")
        assert table["key"].to_pylist() == list(range(_KEYS))
        assert table["count"].to_pylist() == [7 * k + 3 for k in range(_KEYS)]
        assert table["events"][5].as_py() == [5, 5 ^ 0x5DEECE66D, 1_700_000_005_000]
        assert dict(table["balances"][8].as_py()) == {"EUR": 2.0, "USD": -4.0}
