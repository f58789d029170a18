"""Flink does with pairs of jobs what their table says; ``tests/compatibility/test_job_pairs.py`` compares the verdicts of ``check`` with it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.flink import job_pairs
from tests.support.flink.pairs import short
from tests.support.flink.versions import flink_versions
from tools.flink_jars import DEFAULT_VERSIONS

pytestmark = pytest.mark.full
#: One pair of each kind. The command that writes the table runs all.
SAMPLE: Final = (
    "PatternRenamedLast", "PatternCondition", "WindowToSession", "WindowEvictorAdded", "StateValueToList", "StateKeySelector",
    "OperatorListToUnion", "BroadcastToList", "KeyedToOperator", "GeneratedSwappedUnnamed", "UidToHash", "TimersToFlatMap",
)  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("version", [v for v in flink_versions(metafunc, DEFAULT_VERSIONS) if v in DEFAULT_VERSIONS])


def test_flink_does_with_pairs_of_jobs_what_the_table_says(version: str, tmp_path: Path) -> None:
    release = short(version)
    rows = [r for r in job_pairs.table() if r.written_by == r.release == release and r.pair in SAMPLE]
    assert {r.pair for r in rows} == set(SAMPLE)
    # No pair of the sample depends on the backend.
    assert job_pairs.results_again(version, tmp_path, SAMPLE) == {r.pair: r.flink for r in rows}
