"""Moved snapshots with absolute paths: every handle is found again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import fsspec
import pytest

from statetool.errors import SnapshotNotFoundError
from statetool.formats.metadata.handles import FileHandle, SegmentHandle, file_streams
from statetool.formats.metadata.model import handles_of
from statetool.io import files
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.locate import Locator
from tests.support.corpora.archives import HERE
from tests.support.snapshots.trees import link, metadata_of

CASES = (
    "v1_13_6-rocksdb-incremental",
    "v1_15_4-rocksdb-incremental",
    "v1_17_2-rocksdb-incremental",
    "v1_20_5-hashmap-checkpoint",
    "v1_20_5-rocksdb-incremental",
    "v2_3_0-changelog-hashmap",
    "v2_3_0-changelog-materialized",
    "v2_3_0-changelog-rocksdb",
    "v2_3_0-file-merging-hashmap",
    "v2_3_0-file-merging-rocksdb",
    "v2_3_0-finished",
    "v2_3_0-forst",
    "v2_3_0-hashmap-checkpoint",
    "v2_3_0-hashmap-checkpoint-compressed",
    "v2_3_0-hashmap-checkpoint-inline",
    "v2_3_0-rocksdb-full",
    "v2_3_0-rocksdb-heap-timers",
    "v2_3_0-rocksdb-incremental",
    "v2_3_0-rocksdb-incremental-inline",
    "v2_3_0-unaligned",
    "v2_3_0-unaligned-inline",
)


def places(snapshot: str, *, rebase: tuple[tuple[str, str], ...] = ()) -> list[str]:
    """Return the location of every file of a snapshot; each must have the size in its handle."""
    inventory = Inventory(snapshot, rebase=rebase)
    locator = Locator(inventory.metadata_file, rebase)
    paths = []
    for handle in handles_of(inventory.metadata):
        for stream, is_log in file_streams(handle):
            place = locator.resolve(stream)
            assert place is not None
            with place.open() as f:
                f.read_at(0, 1 if is_log else place.size_bytes)
            paths.append(place.file)
    return paths


def test_all_checkpoints_of_the_corpus_are_tried(corpus: Path) -> None:
    kinds = {p.parent.name: json.loads(p.read_text())["kind"] for p in corpus.glob("*/case.json")}
    assert {name for name, kind in kinds.items() if kind == "checkpoint"} == set(CASES)
    assert HERE.name == "tests"


@pytest.mark.parametrize("case", CASES)
def test_a_copy_under_another_root(case: str, corpus: Path, tmp_path: Path) -> None:
    root = tmp_path / "deep" / "copy"
    link(corpus / case, root)
    metadata = json.loads((root / "case.json").read_text())["metadata"]
    paths = places(str((root / "snapshot" / metadata).parent))
    assert all(Path(f).is_relative_to(root) for f in paths)
    assert paths or "inline" in case


def test_a_path_from_inside_the_snapshot(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4")
    assert places(".") == places("_metadata")
    assert any("shared" in f for f in places("."))


@pytest.mark.parametrize(
    "case", ["v2_3_0-rocksdb-incremental", "v2_3_0-file-merging-rocksdb", "v2_3_0-changelog-rocksdb"]
)
def test_a_copy_on_another_file_system(case: str, corpus: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(corpus / case), "/moved", recursive=True)
    try:
        metadata = json.loads((corpus / case / "case.json").read_text())["metadata"]
        paths = places(f"memory://moved/snapshot/{metadata.rpartition('/')[0]}")
        assert paths
        assert all(f.startswith("memory://moved/") for f in paths)
    finally:
        memory.rm("/moved", recursive=True)


@pytest.mark.parametrize(
    ("case", "folder"),
    [
        ("v2_3_0-rocksdb-incremental", "snapshot/shared"),
        ("v2_3_0-file-merging-rocksdb", "snapshot/shared"),
        ("v2_3_0-file-merging-hashmap", "snapshot/taskowned"),
        ("v2_3_0-changelog-rocksdb", "dstl"),
    ],
)
def test_files_that_were_torn_apart_need_a_rebase(case: str, folder: str, corpus: Path, tmp_path: Path) -> None:
    link(corpus / case, tmp_path / "copy")
    described = json.loads((tmp_path / "copy" / "case.json").read_text())
    elsewhere = tmp_path / "far" / "away" / "from" / "here" / "and" / "renamed"
    elsewhere.parent.mkdir(parents=True)
    shutil.move(tmp_path / "copy" / folder, elsewhere)
    snapshot = tmp_path / "copy" / "snapshot" / Path(described["metadata"]).parent
    streams = [s for h in handles_of(metadata_of(snapshot)) for s, _ in file_streams(h)]
    name = folder.rpartition("/")[2]
    gone = next(s.path for s in streams if isinstance(s, FileHandle | SegmentHandle) and f"/{name}/" in s.path)
    old = gone[: gone.index(f"/{name}/") + len(name) + 1]
    with pytest.raises(SnapshotNotFoundError) as caught:
        places(str(snapshot))
    message = str(caught.value)
    assert gone in message or old in message
    assert str(snapshot) in message
    assert str(tmp_path / "copy" / "snapshot" / "/".join(gone.split("/")[-2:])) in message or "dstl" in message
    assert "rebase" in message
    for spelling in (old, files.local_path(old), f"{old}/"):
        paths = places(str(snapshot), rebase=((spelling, str(elsewhere)),))
        assert any(Path(f).is_relative_to(elsewhere) for f in paths)
    with pytest.raises(SnapshotNotFoundError) as caught:
        places(str(snapshot), rebase=((old, str(tmp_path / "wrong")),))
    assert str(tmp_path / "wrong") in str(caught.value)


def test_a_rebase_names_whole_folders(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "file").write_bytes(b"x")
    locator = Locator(str(tmp_path / "chk-1" / "_metadata"), (("/old", str(tmp_path / "new")),))
    with pytest.raises(SnapshotNotFoundError):
        locator.resolve(FileHandle(size_bytes=1, path="file:/older/file"))
    os.rename(tmp_path / "newer" / "file", tmp_path / "new" / "file")
    place = locator.resolve(FileHandle(size_bytes=1, path="file:/old/file"))
    assert place is not None
    assert place.file == str(tmp_path / "new" / "file")
