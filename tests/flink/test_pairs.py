"""The verdicts of ``check`` match Flink's behavior, with every pair restored again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora.archives import unpack
from tests.support.flink import pairs
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


def test_flink_does_with_each_pair_what_the_table_says(flink: FlinkMachine, tmp_path: Path) -> None:
    compare(flink, tmp_path, avro=False)


def test_flink_does_with_each_pair_of_avro_what_the_table_says(avro_flink: FlinkMachine, tmp_path: Path) -> None:
    compare(avro_flink, tmp_path, avro=True)


def compare(flink: FlinkMachine, work: Path, *, avro: bool) -> None:
    """Restore all pairs of Avro or all others, and compare the results with the table."""
    snapshots = unpack(pairs.SNAPSHOTS, work / "snapshots")
    for old in pairs.releases_before(flink.version):
        rows = pairs.table(avro=avro)
        kept = [r for r in rows if (r.written_by, r.release) == (old, pairs.short(flink.version))]
        found = list(pairs.outcomes(flink, snapshots, work, old, pairs.suites(avro=avro)))
        assert found == kept, (
            f"python -m tests.support.flink.pairs{' --avro DIR' if avro else ''} writes the table again"
        )
