"""What ``check`` says is what Flink does: every pair restored anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flink import pairs
from tests.flink.machine import FlinkMachine
from tests.support.corpora import unpack


@pytest.mark.full
def test_flink_does_with_each_pair_what_the_table_says(flink: FlinkMachine, tmp_path: Path) -> None:
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    for old in pairs.releases_before(flink.version):
        kept = [r for r in pairs.table() if (r.written_by, r.release) == (old, pairs.short(flink.version))]
        found = list(pairs.outcomes(flink, snapshots, tmp_path, old))
        assert found == kept, "python -m tests.flink.pairs writes the table anew"
