"""Many references are found at once in a listing as they are one after another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from statetool.operations.directories import file_index, survey
from statetool.operations.directories.chain import chain
from statetool.operations.directories.orphans import orphans
from statetool.operations.directories.snapshots import list_snapshots
from statetool.operations.directories.survey import FoundSnapshot, names_of
from tests.support.quick import fewer_uncompiled
from tests.support.snapshots.large import large_checkpoint
from tests.support.snapshots.trees import checkpoint_root, link, random_tree


def surveyed(root: Path, *, columns: bool) -> list[FoundSnapshot]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "columns_pay_off", lambda size_bytes: columns)
        found = survey.survey([str(root)])
        assert (found.file_index() is not None) == columns
        return found.snapshots


def check(root: Path) -> list[FoundSnapshot]:
    """Compare a survey by the index with one without it, and return its snapshots."""
    snapshots, expected = surveyed(root, columns=True), surveyed(root, columns=False)
    assert snapshots == expected
    assert names_of(snapshots) == names_of(expected)
    return snapshots


@pytest.mark.parametrize("cases", ["corpus", "sql_corpus", "jobs", "connector_cases"])
def test_corpora(request: pytest.FixtureRequest, cases: str) -> None:
    assert len(check(request.getfixturevalue(cases))) > 7


@pytest.mark.parametrize("seed", fewer_uncompiled([*range(20)], 0, 1, 2))
def test_random_directories(tmp_path: Path, seed: int) -> None:
    random_tree(tmp_path / "at", seed)
    check(tmp_path / "at")
    shutil.move(tmp_path / "at", tmp_path / "moved")
    check(tmp_path / "moved")


@pytest.mark.parametrize("deleted", fewer_uncompiled(["none", "all", "some", "shared", "copied"], "some", "copied"))
def test_moved_snapshots(tmp_path: Path, deleted: str) -> None:
    """Files are looked for where others were found, even if they also exist in their original place."""
    original, copy = tmp_path / "all" / "original", tmp_path / "all" / "copy"
    for number in (1, 2):
        large_checkpoint(original, 40, checkpoint_id=number, states=1)
    shutil.copytree(original, copy, copy_function=_copied)
    shared = sorted((original / "shared").iterdir())
    for path in {"none": [], "all": shared, "some": shared[1::3], "shared": shared[:1], "copied": []}[deleted]:
        path.unlink()
    if deleted == "copied":
        shutil.rmtree(copy / "shared")
    elif deleted == "some":
        (copy / "shared" / shared[4].name).unlink()
    with (copy / "chk-1" / "_metadata").open("r+b") as f:
        content = f.read().replace(
            shared[7].name.encode(), b"op-0-none"[: len(shared[7].name)].ljust(len(shared[7].name), b".")
        )
        f.seek(0)
        f.write(content)
    check(tmp_path / "all")
    check(copy)


def _copied(source: str, target: str) -> None:
    """Copy metadata. A table file, which is empty and long, becomes a link: 2 GB of zeros take seconds."""
    (shutil.copy2 if Path(source).name == "_metadata" else os.link)(source, target)


def test_files_that_are_too_short_or_in_too_many_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large_checkpoint(tmp_path, 40, states=1)
    files = sorted((tmp_path / "shared").iterdir())
    os.truncate(files[3], 10)
    (snapshot,) = check(tmp_path)
    assert "too short: 1 file" in snapshot.problem
    monkeypatch.setattr(file_index, "_MOST_DIRECTORIES", 0)
    check(tmp_path)


def test_directories_are_reported_the_same(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(checkpoint_root(corpus, tmp_path))
    link(corpus / "v2_3_0-hashmap-canonical" / "snapshot", tmp_path / "checkpoints" / "copy")
    expected = list_snapshots(root), chain(root), orphans(root, min_age=0)
    monkeypatch.setattr(survey, "columns_pay_off", lambda size_bytes: True)
    assert (list_snapshots(root), chain(root), orphans(root, min_age=0)) == expected
