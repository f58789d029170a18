from __future__ import annotations

import json
import shutil
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, SnapshotNotFoundError, TargetExistsError
from statetool.formats.metadata.handles import FileHandle, RelativeFileHandle, SegmentHandle, file_streams, streams_of
from statetool.formats.metadata.model import handles_of
from tests.support.quick import quick
from tests.support.snapshots.trees import link, metadata_of, replace_file

CASES = (
    "v1_13_6-rocksdb-incremental/snapshot/chk-6",
    "v1_15_4-rocksdb-canonical/snapshot",
    "v1_20_5-rocksdb-native/snapshot",
    "v2_3_0-changelog-hashmap/snapshot/chk-3",
    "v2_3_0-changelog-materialized/snapshot/chk-4",
    "v2_3_0-changelog-rocksdb/snapshot/chk-3",
    "v2_3_0-file-merging-hashmap/snapshot/chk-3",
    "v2_3_0-file-merging-rocksdb/snapshot/chk-4",
    "v2_3_0-finished/snapshot/chk-3",
    "v2_3_0-forst/snapshot/chk-3",
    "v2_3_0-hashmap-checkpoint/snapshot/chk-2",
    "v2_3_0-hashmap-checkpoint-inline/snapshot/chk-2",
    "v2_3_0-rocksdb-full/snapshot/chk-2",
    "v2_3_0-rocksdb-heap-timers/snapshot/chk-3",
    "v2_3_0-rocksdb-incremental/snapshot/chk-4",
    "v2_3_0-rocksdb-incremental-inline/snapshot/chk-3",
    "v2_3_0-unaligned/snapshot/chk-2",
)


def files_below(folder: Path) -> list[str]:
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())


@pytest.mark.parametrize(
    "case", quick(CASES, "v2_3_0-changelog-rocksdb/snapshot/chk-3", "v2_3_0-file-merging-hashmap/snapshot/chk-3")
)
def test_a_copy_needs_nothing_of_the_original(case: str, corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / case.partition("/")[0], tmp_path / "original")
    source = root / case.partition("/")[2]
    target = tmp_path / "copies" / "one"
    before = statetool.verify(str(source), deep=True)
    old = metadata_of(source)
    done = statetool.copy(str(source), str(target), compare=True)
    assert done.metadata_file == str(target / "_metadata")
    shutil.rmtree(root)
    after = statetool.verify(str(target), deep=True, allow_unread=True)
    assert after.ok
    assert after.unread == before.unread
    assert (after.entries, after.keys, len(after.problems)) == (before.entries, before.keys, len(before.problems))
    (row,) = statetool.list_snapshots(str(target.parent))
    assert row.complete
    assert row.shared_bytes == 0
    assert row.own_bytes == done.size_bytes == sum(f.stat().st_size for f in target.iterdir())
    assert statetool.orphans(str(target.parent), min_age=0) == []
    new = metadata_of(target)
    assert (new.version, new.checkpoint_id, new.properties) == (old.version, old.checkpoint_id, old.properties)
    assert [o.operator_id for o in new.operators] == [o.operator_id for o in old.operators]


def test_paths_are_relative_where_they_were(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4"
    statetool.copy(str(source), str(tmp_path / "copy"))
    old, new = (
        [s for h in handles_of(metadata_of(folder)) for s in streams_of(h)] for folder in (source, tmp_path / "copy")
    )
    assert [type(s) for s in new] == [type(s) for s in old]
    assert {FileHandle, RelativeFileHandle} == {type(s) for s in new}
    for stream in new:
        if isinstance(stream, FileHandle):
            assert stream.path.startswith(f"file:{tmp_path}/copy/")
        if isinstance(stream, RelativeFileHandle):
            assert (tmp_path / "copy" / stream.path).stat().st_size == stream.size_bytes


def test_segments_become_files_of_their_own(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-file-merging-rocksdb" / "snapshot" / "chk-4"
    done = statetool.copy(str(source), str(tmp_path / "copy"))
    old = [s for h in handles_of(metadata_of(source)) for s, _ in file_streams(h)]
    new = [s for h in handles_of(metadata_of(tmp_path / "copy")) for s, _ in file_streams(h)]
    assert [s.size_bytes for s in new] == [s.size_bytes for s in old]
    for before, after in zip(old, new, strict=True):
        assert isinstance(before, SegmentHandle)
        assert isinstance(after, FileHandle if before.scope == 1 else RelativeFileHandle)
    assert len(done.files) == len({(s.path, s.start) for s in old if isinstance(s, SegmentHandle)})


def test_a_copy_of_a_copy(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-changelog-materialized" / "snapshot" / "chk-4"
    first = statetool.copy(str(source), str(tmp_path / "first"))
    second = statetool.copy(str(tmp_path / "first"), str(tmp_path / "second"), compare=True)
    assert sorted(f.size_bytes for f in first.files) == sorted(f.size_bytes for f in second.files)


def test_to_another_file_system_and_back(corpus: Path, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    source = corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4"
    try:
        statetool.copy(str(source), "memory://copies/one")
        streams = [
            s for h in handles_of(statetool.load("memory://copies/one")._inventory.metadata) for s in streams_of(h)
        ]
        absolute = [s.path for s in streams if isinstance(s, FileHandle)]
        assert absolute
        assert all(p.startswith("memory://copies/one/") for p in absolute)
        assert statetool.verify("memory://copies/one", deep=True).ok
        statetool.copy("memory://copies/one", str(tmp_path / "back"))
        assert statetool.verify(str(tmp_path / "back")).ok
    finally:
        memory.rm("/copies", recursive=True)


def test_dry_run_writes_nothing(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4"
    plan = statetool.copy(str(source), str(tmp_path / "copy"), dry_run=True)
    assert plan.metadata_file is None
    assert not (tmp_path / "copy").exists()
    row = statetool.list_snapshots(str(source))[0]
    assert plan.size_bytes == row.own_bytes + row.shared_bytes


def test_an_existing_target_is_refused(corpus: Path, tmp_path: Path) -> None:
    source = str(corpus / "v2_3_0-finished" / "snapshot" / "chk-3")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_bytes(b"mine")
    for dry_run in (True, False):
        with pytest.raises(TargetExistsError):
            statetool.copy(source, str(tmp_path / "full"), dry_run=dry_run)
    assert files_below(tmp_path / "full") == ["mine"]
    with pytest.raises(TargetExistsError):
        statetool.copy(source, source)


def test_a_snapshot_that_is_not_whole_is_not_copied(corpus: Path, tmp_path: Path) -> None:
    source = link(corpus / "v2_3_0-hashmap-checkpoint" / "snapshot" / "chk-2", tmp_path / "chk-2")
    file = next(f for f in sorted(source.iterdir()) if f.name != "_metadata")
    whole = file.read_bytes()
    replace_file(file, whole[:-1])
    with pytest.raises(FormatError, match="the metadata says"):
        statetool.copy(str(source), str(tmp_path / "copy"))
    file.unlink()
    with pytest.raises(SnapshotNotFoundError):
        statetool.copy(str(source), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_a_copy_that_differs_is_not_published(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from statetool.formats.stream import Stream
    from statetool.saving.publish import StagedFile, Staging

    def broken(self: Staging, source: Stream, name: str) -> StagedFile:
        with source.open() as f, self.create() as out:
            data = bytearray(f.read_at(0, source.size_bytes))
            data[-1] ^= 1
            out.write(data)
        return out.staged

    monkeypatch.setattr(Staging, "_copy", broken)
    source = str(corpus / "v2_3_0-hashmap-checkpoint" / "snapshot" / "chk-2")
    with pytest.raises(FormatError, match="differs"):
        statetool.copy(source, str(tmp_path / "copy"), compare=True)
    assert not (tmp_path / "copy").exists()


def test_the_command(corpus: Path, tmp_path: Path) -> None:
    source = str(corpus / "v2_3_0-rocksdb-incremental" / "snapshot" / "chk-4")
    target = str(tmp_path / "copy")
    planned = CliRunner().invoke(cli, ["copy", source, target, "--dry-run", "--output", "json"])
    assert planned.exit_code == 0
    assert {"source", "start", "size_bytes"} == set(json.loads(planned.stdout)[0])
    assert not Path(target).exists()
    done = CliRunner().invoke(cli, ["copy", source, target, "--output", "json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["metadata_file"] == f"{target}/_metadata"
    assert "bytes, to" in done.stderr
    again = CliRunner().invoke(cli, ["copy", source, target])
    assert again.exit_code == 2
    assert "already" in again.stderr


def test_what_an_edit_carries_over_is_whole(corpus: Path, tmp_path: Path) -> None:
    """Sizes in changelog handles differ from those of their files."""
    source = corpus / "v2_3_0-changelog-rocksdb" / "snapshot" / "chk-3"
    statetool.change_uids(str(source), str(tmp_path / "renamed"), {"orders": "renamed"})
    logs = {f.stat().st_size for f in (corpus / "v2_3_0-changelog-rocksdb" / "dstl").rglob("*") if f.is_file()}
    assert logs <= {f.stat().st_size for f in (tmp_path / "renamed").iterdir()}
    assert statetool.verify(str(tmp_path / "renamed"), deep=True).ok
