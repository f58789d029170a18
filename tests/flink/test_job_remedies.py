"""Flink restores what the commands that ``check`` prints for refused jobs write (``tests/support/flink/job_remedies.py``)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs, job_remedies
from tests.support.flink.pairs import short
from tests.support.flink.versions import flink_versions
from tools.flink_jars import DEFAULT_VERSIONS

#: One pair of each kind of command. The command that writes the table runs all.
SAMPLE: Final = ("StateIntToLong", "WindowEvictorAdded", "UidRenamed", "RevisedMaxParallelism")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("version", [v for v in flink_versions(metafunc, DEFAULT_VERSIONS) if v in DEFAULT_VERSIONS])


def test_flink_restores_what_the_printed_commands_write(version: str, tmp_path: Path) -> None:
    release = short(version)
    snapshots = unpack(job_pairs.SNAPSHOTS, tmp_path / "snapshots")
    rows = [
        r
        for r in job_remedies.refused(job_pairs.table(), SAMPLE)
        if r.written_by == r.release == release and r.pair in SAMPLE
    ]
    found = [row for row, _ in job_remedies.run(snapshots, tmp_path, rows, [version], simple=True)]
    assert len(found) == len(SAMPLE) * len(job_remedies.KNOWN)
    assert set(found) == {r for r in job_remedies.table() if r.pair in SAMPLE and r.written_by == r.release == release}
