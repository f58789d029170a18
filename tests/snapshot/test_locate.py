from __future__ import annotations

import shutil
from pathlib import Path

import fsspec
import pytest

import statetool
from statetool.errors import SnapshotNotFoundError
from statetool.formats.metadata.handles import FileHandle
from statetool.io import files
from statetool.snapshot.locate import Locator


def test_many_files_in_a_far_directory_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Incremental checkpoints refer to thousands of files in one directory, which must not cause a request per file."""
    fs = fsspec.filesystem("memory")
    fs.pipe("/many/job/chk-1/_metadata", b"x")
    fs.pipe({f"/many/job/shared/f{i}": b"x" for i in range(200)})
    asked: list[str] = []
    listed: list[str] = []
    exists, list_dir = files.exists, files.list_dir

    def counted_exists(uri: str) -> bool:
        asked.append(uri)
        return exists(uri)

    def counted_list(uri: str) -> list[tuple[str, bool]]:
        listed.append(uri)
        return list_dir(uri)

    monkeypatch.setattr(files, "exists", counted_exists)
    monkeypatch.setattr(files, "list_dir", counted_list)
    locator = Locator("memory://many/job/chk-1/_metadata")
    for i in range(200):
        handle = FileHandle(size_bytes=1, path=f"memory://many/job/shared/f{i}")
        stream = locator.resolve(handle)
        assert stream is not None
        assert stream.file == handle.path
    assert len(asked) < 20
    assert listed == ["memory://many/job/shared"]
    with pytest.raises(
        SnapshotNotFoundError, match=r"gone of the snapshot.*\. Flink may have deleted it, as it does with a shared"
    ):
        locator.resolve(FileHandle(size_bytes=1, path="memory://many/job/shared/gone"))


def test_a_missing_shared_file_may_have_been_deleted_by_flink(sql_corpus: Path, tmp_path: Path) -> None:
    """Its listing and writes say so, as reads do."""
    shutil.copytree(sql_corpus / "sql_group_agg_rocksdb_incremental" / "snapshot", tmp_path / "job")
    min((tmp_path / "job" / "shared").iterdir()).unlink()
    (row,) = statetool.list_snapshots(str(tmp_path / "job"))
    assert row.problem is not None
    assert "(Flink may have deleted it, as it does with a shared file" in row.problem
    with pytest.raises(SnapshotNotFoundError, match="Flink may have deleted it, as it does with a shared file"):
        statetool.copy(row.path, str(tmp_path / "copy"))
