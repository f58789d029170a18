"""Flink's side of the benchmarks works, and its output is read correctly."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from tests.perf.flink import bench

pytestmark = pytest.mark.full

_KEYS = 3000
_PROCESSED = 500


@pytest.mark.usefixtures("newest_flink")
def test_generated_states_are_what_both_sides_read(tmp_path: Path) -> None:
    bench.run_java("perf.PerfGen", ["make", "accounts", "rocksdb", str(_KEYS), str(tmp_path), "small"], heap="1g")
    for kind, mode in (("canonical", "hashmap1"), ("native", "rocksdb1")):
        snapshot = tmp_path / f"small-{kind}" / "sp"
        (run,), rows = bench.read_runs(mode, "accounts", str(snapshot), repeat=1)
        assert rows == _KEYS
        assert run.seconds > 0
        assert run.cpu > 0
        table = statetool.load(str(snapshot))["accounts"].to_arrow().sort_by("key")
        assert table["key"].to_pylist() == list(range(_KEYS))
        assert table["count"].to_pylist() == [7 * k + 3 for k in range(_KEYS)]
        assert table["events"][5].as_py() == [5, 5 ^ 0x5DEECE66D, 1_700_000_005_000]
        assert dict(table["balances"][8].as_py()) == {"EUR": 2.0, "USD": -4.0}


def assert_accounts(savepoint: Path, max_parallelism: int) -> None:
    """Check every value of a savepoint that the State Processor API wrote."""
    operator = statetool.load(str(savepoint), uids=["accounts"])["accounts"]
    assert operator.max_parallelism == max_parallelism
    table = operator.to_arrow().sort_by("key")
    assert table["key"].to_pylist() == list(range(_PROCESSED))
    assert table["count"].to_pylist() == [7 * k + 3 for k in range(_PROCESSED)]
    assert table["name"].to_pylist() == [f"user-{k}" for k in range(_PROCESSED)]
    assert table["score"].to_pylist() == [k / 7.0 for k in range(_PROCESSED)]
    balances = [dict(row) for row in table["balances"].to_pylist()]
    assert balances == [{"eur": k * 0.25, "usd": k * -0.5} for k in range(_PROCESSED)]


@pytest.mark.usefixtures("state_processor")
def test_the_state_processor_reads_what_statetool_writes_and_the_reverse(tmp_path: Path) -> None:
    written = tmp_path / "written"
    assert len(bench.state_processor_runs("bootstrap", _PROCESSED, written, repeat=1, heap="1g")) == 1
    assert_accounts(Path(f"{written}-0"), 128)
    rescaled = tmp_path / "rescaled"
    statetool.rescale(f"{written}-0", str(rescaled), 200)
    bench.state_processor_runs("rescale", _PROCESSED, rescaled, repeat=1, heap="1g")
    assert_accounts(Path(f"{rescaled}-rescaled-0"), 300)
