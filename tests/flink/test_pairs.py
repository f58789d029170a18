"""Flink does with every pair what the table says; ``tests/compatibility/test_check.py`` compares the verdicts of ``check`` with the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.corpora.archives import unpack
from tests.support.flink import pairs
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.remedies import ACROSS, ASKED, MENDED, Remedied, remedied

pytestmark = pytest.mark.full
#: Suites of changed classes, and their pairs whose values no class of the new job holds.
_CONVERTED: Final = ("changed-classes", "java-serialized")
_DROPPED: Final = {
    "changed-KryoClassToRecord", "changed-KryoEnumLost", "changed-KryoShapeGone", "changed-Lost", "changed-PojoEnumLost", "changed-Zoo:Bat",
    "serialized-LostConstant", "serialized-NoMore", "serialized-WithoutConstructor",
}  # fmt: skip


def test_flink_does_with_each_pair_what_the_table_says(flink: FlinkMachine, tmp_path: Path) -> None:
    compare(flink, tmp_path, libraries=False)


def test_flink_does_with_each_pair_of_libraries_what_the_table_says(
    library_flink: FlinkMachine, tmp_path: Path
) -> None:
    compare(library_flink, tmp_path, libraries=True)


def compare(flink: FlinkMachine, work: Path, *, libraries: bool) -> None:
    """Restore the pairs whose jars Maven fetches, or all others, and compare the results with the table."""
    snapshots = unpack(pairs.SNAPSHOTS, work / "snapshots")
    for old in pairs.releases_before(flink.version):
        suites = pairs.suites(libraries=libraries)
        names = {s.name for s in suites}
        kept = {k: v for k, v in pairs.results(old, pairs.short(flink.version)).items() if k[0] in names}
        found = pairs.results_again(flink, snapshots, work, old, suites)
        left_out = kept.keys() - found.keys()
        assert found == {k: v for k, v in kept.items() if k not in left_out}, (
            f"python -m tests.support.flink.pairs{' --libraries' if libraries else ''} writes the table again"
        )
        # Of what both backends refuse, one was tried.
        assert {kept[k] for k in left_out} <= {"refused"}
        assert all({(suite, pair, b) for b in pairs.BACKENDS} & found.keys() for suite, pair, _ in left_out)


@pytest.mark.parametrize("backend", pairs.BACKENDS)
def test_flink_restores_what_the_suggested_commands_write(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    """Run as printed, the commands against refused pairs write savepoints that Flink restores, with the expected values."""
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    found = list(
        remedied(flink, snapshots, tmp_path, pairs.short(flink.version), backend, pairs.suites(libraries=False))
    )
    assert _unmended(found) == []
    assert sum(r.result != "empty" for r in found) > 25  # about half of the refused pairs are tried on one backend
    dropped = {r.pair for r in found if r.suite in _CONVERTED and r.result == "empty"}
    assert {p for p in dropped if not p.startswith("changed-PojoObjectGone")} <= _DROPPED


@pytest.mark.since(2, 0)
def test_flink_restores_what_the_suggested_commands_write_for_another_release(
    flink: FlinkMachine, tmp_path: Path
) -> None:
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    suites = [s for s in pairs.suites(libraries=False) if s.name in ACROSS]
    (old,) = [r for r in pairs.releases_before(flink.version) if r.startswith("1.")]
    found = list(remedied(flink, snapshots, tmp_path, old, "rocksdb", suites))
    assert _unmended(found) == []
    assert sum(r.result != "empty" for r in found) > 40


def test_flink_restores_what_the_suggested_commands_write_for_libraries(
    library_flink: FlinkMachine, tmp_path: Path
) -> None:
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    release = pairs.short(library_flink.version)
    suites = pairs.suites(libraries=True)
    found = list(remedied(library_flink, snapshots, tmp_path, release, "rocksdb", suites))
    for old in pairs.releases_before(library_flink.version)[:-1]:
        across = [s for s in suites if s.name in ACROSS]
        mended = list(remedied(library_flink, snapshots, tmp_path, old, "rocksdb", across))
        assert {r.result for r in mended} == {"same"}
        found += mended
    assert _unmended(found) == []
    assert sum(r.result != "empty" for r in found) > 5


def _unmended(found: Sequence[Remedied]) -> list[tuple[str, str, str]]:
    """Return the pairs whose commands are missing, fail, do not help or change values."""
    wanted = {r.pair: ("choice",) if r.pair in ASKED else MENDED for r in found}
    return [(r.suite, r.pair, r.result) for r in found if r.result not in wanted[r.pair]]
