"""``check`` and real Flink agree which backend restores which form of keyed state (``backend_matrix.tsv``)."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

import statetool as st
from tests.support.corpora.archives import unpack
from tests.support.flink.backend_matrix import PACKED, RELEASES, cells, write_forms
from tests.support.flink.forms import Api


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(PACKED, tmp_path_factory.mktemp("backends"))


@pytest.mark.parametrize("release", RELEASES)
def test_check_says_what_flink_did(savepoints: Path, tmp_path: Path, release: str) -> None:
    """V1, V3, V6, K1, T1. RocksDB reads the native format of the heap as if it were canonical: no rule foresees where that fails."""
    written = {
        api: dict(write_forms(savepoints / release / api, tmp_path / api, release, api))
        for api in get_args(Api)
        if (savepoints / release / api).exists()
    }
    wrong = []
    for cell in cells():
        if cell.release == release:
            # Only ForSt has asynchronous state: on other backends, asynchronous operators have synchronous state.
            new = written[cell.job if cell.backend == "forst" else "sync"][cell.backend]
            short = release.rpartition(".")[0]
            check = st.check(str(written[cell.state][cell.form]), str(new), backend=cell.backend, flink_version=short)
            is_unknown = (cell.form, cell.backend) == ("heap", "rocksdb")
            if check.ok != cell.is_restored or (check.verdict == "unknown") != is_unknown:
                wrong.append((cell, check.verdict, check.warnings))
    assert not wrong


def test_each_answer_is_in_the_table_once() -> None:
    places = [(c.release, c.state, c.form, c.backend, c.job) for c in cells()]
    assert len(set(places)) == len(places)
    assert {c.release for c in cells()} == set(RELEASES)
    assert _restored("2.3.0", "rocksdb") == {("sync", "canonical"), ("sync", "rocksdb"), ("sync", "forst")}
    assert _restored("2.3.0", "forst") == {("sync", "rocksdb"), ("sync", "forst"), ("async", "forst")}


def _restored(release: str, backend: str) -> set[tuple[str, str]]:
    return {(c.state, c.form) for c in cells() if (c.release, c.backend) == (release, backend) and c.is_restored}
