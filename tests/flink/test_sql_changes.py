"""A changed GROUP BY: Flink continues from the merged groups with the results of the new query from the start.

``python -m tests.support.flink.sql_changes`` judges all pairs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flink.machine import FlinkMachine
from tests.support.flink.sql_changes import Runs, judge
from tests.support.flink.sql_pairs import PAIRS

pytestmark = pytest.mark.full


@pytest.mark.in_turn(0)  # the state is the same in all releases, but for its snapshots
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_coarser_groups_go_on(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    pair = next(p for p in PAIRS if p.name == "keys: coarser, all sums")
    judged = judge(Runs(flink, backend, tmp_path), pair)
    assert (judged.verdict, judged.flink_says) == ("converted", "same")
