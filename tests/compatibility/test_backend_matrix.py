"""``check`` and real Flink agree which backend restores which form of keyed state (``backend_matrix.tsv``)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import statetool as st
from tests.support.corpora.archives import unpack
from tests.support.flink.backend_matrix import PACKED, RELEASES, cells, write_forms


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("backends"))


@pytest.mark.parametrize("release", RELEASES)
def test_check_says_what_flink_did(savepoints: Path, tmp_path: Path, release: str) -> None:
    """V1, V3, V4, V6."""
    of_release = [c for c in cells() if c.release == release]
    wrong = []
    for state, group in itertools.groupby(of_release, key=lambda cell: cell.state):
        written = dict(write_forms(savepoints / release / state, tmp_path / state, release, state))
        for cell in group:
            check = st.check(
                str(written[cell.form]),
                str(savepoints / release / cell.job),
                backend=cell.backend,
                flink_version=release.rpartition(".")[0],
            )
            if (check.verdict == "fully") != cell.is_restored or check.verdict == "unknown":
                wrong.append((cell, check.verdict, [c.message for c in check.causes]))
    assert not wrong


def test_each_answer_is_in_the_table_once() -> None:
    places = [(c.release, c.state, c.form, c.backend, c.job) for c in cells()]
    assert len(set(places)) == len(places)
    assert {c.release for c in cells()} == set(RELEASES)
    assert _restored("2.3.0", "forst") == {
        ("sync", "forst"),
        ("async", "forst"),
        ("sync", "rocksdb"),
        ("async", "rocksdb"),
    }


def _restored(release: str, backend: str) -> set[tuple[str, str]]:
    return {(c.state, c.form) for c in cells() if (c.release, c.backend) == (release, backend) and c.is_restored}
