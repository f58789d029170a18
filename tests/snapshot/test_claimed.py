"""Checkpoints after a job claimed a native savepoint, whose table files they name in their own directory (FLINK-39964)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import SnapshotNotFoundError
from statetool.formats.metadata.handles import FileHandle, IncrementalHandle, KeyedHandle, RelativeFileHandle
from statetool.formats.metadata.writer import write_metadata
from tests.support.snapshots.trees import INCREMENTAL, link, metadata_of, replace_file


def run(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, " ".join(done.output.split())


def claimed(corpus: Path, folder: Path) -> tuple[Path, Path]:
    """Return a checkpoint, and the savepoint that has its table files.

    Flink writes only files of the savepoint as relative. New ones, which include all files of a database that are not tables, are absolute.
    """
    link(corpus / INCREMENTAL / "snapshot", folder / "job")
    savepoint = folder / "savepoint-5ca1ab-0123456789ab"
    savepoint.mkdir()
    snapshot = folder / "job" / "chk-4"
    metadata = metadata_of(snapshot)

    def of_savepoint(handle: KeyedHandle) -> KeyedHandle:
        if not isinstance(handle, IncrementalHandle):
            return handle
        shared = []
        for name, stream in handle.shared:
            assert isinstance(stream, FileHandle)
            file = stream.path.rpartition("/")[2]
            if (folder / "job" / "shared" / file).exists():
                shutil.move(folder / "job" / "shared" / file, savepoint / file)
            shared.append((name, RelativeFileHandle(path=file, size_bytes=stream.size_bytes)))
        return replace(handle, shared=tuple(shared))

    operators = tuple(
        replace(o, subtasks=tuple(replace(s, managed_keyed=of_savepoint(s.managed_keyed)) for s in o.subtasks))
        for o in metadata.operators
    )
    replace_file(snapshot / "_metadata", write_metadata(replace(metadata, operators=operators)))
    return snapshot, savepoint


def test_one_finding_and_a_copy(corpus: Path, tmp_path: Path) -> None:
    """M7."""
    snapshot, savepoint = claimed(corpus, tmp_path)
    count = len(list(savepoint.iterdir()))
    assert count > 20
    found = st.verify(str(snapshot))
    (error,) = [p for p in found.problems if p.severity == "error"]
    assert f"{count} files" in error.problem
    assert "FLINK-39964" in error.problem
    assert f"--rebase {snapshot}={savepoint}" in error.problem
    assert not found.truncated
    code, text = run("check", snapshot, "--flink", "2.3.0")
    assert code == 1
    assert text.count("FLINK-39964") == 1
    assert "of the snapshot do not exist" not in text
    assert f"--rebase {snapshot}={savepoint}" in text
    rebase = {str(snapshot): str(savepoint)}
    with pytest.raises(SnapshotNotFoundError):
        st.copy(str(snapshot), str(tmp_path / "half"))
    st.copy(str(snapshot), str(tmp_path / "whole"), rebase=rebase)
    shutil.rmtree(savepoint)
    before = st.verify(str(corpus / INCREMENTAL / "snapshot" / "chk-4"))
    after = st.verify(str(tmp_path / "whole"))
    assert (after.ok, after.entries) == (True, before.entries)


def test_the_savepoint_may_be_elsewhere(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, savepoint = claimed(corpus, tmp_path)
    elsewhere = Path(shutil.move(savepoint, tmp_path / "job" / "chk-4" / "elsewhere"))
    (error,) = [p for p in st.verify(str(snapshot)).problems if p.severity == "error"]
    assert f"--rebase {snapshot}=SAVEPOINT" in error.problem
    monkeypatch.chdir(tmp_path / "job")
    assert st.verify("chk-4", rebase={"chk-4": str(elsewhere)}).ok
    assert st.verify("chk-4", rebase={str(snapshot): "chk-4/elsewhere"}).ok


@pytest.mark.parametrize("case", ["v2_3_0-rocksdb-full", "v2_3_0-rocksdb-native"])
def test_other_missing_files_are_not_of_a_savepoint(case: str, corpus: Path, tmp_path: Path) -> None:
    """Full checkpoints and savepoints have all files in their own directory."""
    root = link(corpus / case / "snapshot", tmp_path / "full")
    snapshot = max(root.rglob("_metadata")).parent
    for file in snapshot.iterdir():
        if file.name != "_metadata":
            file.unlink()
    errors = [p for p in st.verify(str(snapshot)).problems if p.severity == "error"]
    assert errors
    assert not any("FLINK-39964" in p.problem for p in errors)
    code, text = run("check", snapshot, "--flink", "2.3.0")
    assert code == 1
    assert "FLINK-39964" not in text
    assert "do not exist" in text
