from __future__ import annotations

import json
import os
import time
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError, SnapshotNotFoundError
from statetool.operations.directories.orphans import age_seconds
from tests.support.snapshots import build, canonical
from tests.support.snapshots.trees import INCREMENTAL, JOB, absolute_names, checkpoint_root, link, replace_file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def size_of(*folders: Path) -> int:
    return sum(f.stat().st_size for folder in folders for f in folder.rglob("*") if f.is_file())


# ---- list ---------------------------------------------------------------------------------------


def test_list_of_checkpoints_and_savepoints(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    third, fourth = root / JOB / "chk-3", root / JOB / "chk-4"
    rows = {Path(r.path).name: r for r in statetool.list_snapshots(str(root))}
    assert list(rows) == ["savepoint-5ca1ab-0123456789ab", "chk-3", "chk-4"]
    assert [r.kind for r in rows.values()] == ["savepoint", "checkpoint", "checkpoint"]
    assert [r.format for r in rows.values()] == ["canonical", None, None]
    assert [r.checkpoint_id for r in rows.values()] == [2, 3, 4]
    assert {r.metadata_version for r in rows.values()} == {6}
    assert [r.job for r in rows.values()] == ["5ca1ab", JOB, JOB]
    assert all(r.complete and r.problem == "" for r in rows.values())
    assert [r.newest for r in rows.values()] == [False, False, True]
    assert rows["chk-4"].own_bytes == size_of(fourth)
    assert rows["chk-3"].own_bytes == size_of(third)
    shared = {f.name: f.stat().st_size for f in (root / JOB / "shared").iterdir()}
    assert rows["chk-3"].shared_bytes == sum(shared[n] for n in absolute_names(third) if n in shared)
    assert rows["chk-4"].modified_ms == (fourth / "_metadata").stat().st_mtime_ns // 1_000_000


def test_the_newest_is_one_that_would_restore(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    only_in_fourth = absolute_names(root / JOB / "chk-4") - absolute_names(root / JOB / "chk-3")
    victim = next(f for f in sorted((root / JOB / "shared").iterdir()) if f.name in only_in_fourth)
    victim.unlink()
    rows = {r.checkpoint_id: r for r in statetool.list_snapshots(str(root))}
    assert not rows[4].complete
    assert victim.name in rows[4].problem
    assert "missing" in rows[4].problem
    assert [i for i, r in rows.items() if r.newest] == [3]
    assert [i for i, r in rows.items() if r.newest_of_job] == [3]


def test_what_is_not_complete_says_why(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    own = next(f for f in sorted((root / JOB / "chk-3").iterdir()) if f.name != "_metadata")
    replace_file(own, own.read_bytes()[:-1])
    (root / JOB / "chk-4" / "_metadata").unlink()
    savepoint = root / "savepoint-5ca1ab-0123456789ab"
    replace_file(savepoint / "_metadata", (savepoint / "_metadata").read_bytes()[:500])
    rows = {Path(r.path).name: r for r in statetool.list_snapshots(str(root))}
    assert not any(r.complete or r.newest for r in rows.values())
    assert "too short" in rows["chk-3"].problem
    assert own.name in rows["chk-3"].problem
    assert "no _metadata" in rows["chk-4"].problem
    assert rows["chk-4"].checkpoint_id is None
    assert "cannot be read" in rows["savepoint-5ca1ab-0123456789ab"].problem
    text = run("ls", str(root))
    assert text.exit_code == 0
    assert "no _metadata" in text.stderr


def test_a_snapshot_whose_files_lie_outside_of_it_hides_no_other_one(tmp_path: Path) -> None:
    for name in ("chk-1", "chk-2"):
        (tmp_path / name).mkdir()
        canonical.savepoint(tmp_path / name, [canonical.Subtask(key=build.STRING, states=[])])
    file = tmp_path / "chk-1" / "_metadata"
    file.write_bytes(file.read_bytes().replace(b"\0\7keyed-0", b"\0\7../ed-0"))
    bad, good = sorted(statetool.list_snapshots(str(tmp_path)), key=lambda r: r.path)
    assert "a relative path leads out of the snapshot" in bad.problem
    assert good.complete


def test_jobs_are_told_apart(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    other = link(corpus / "v2_3_0-hashmap-checkpoint" / "snapshot", root / ("ab" * 16))
    stamp = time.time() + 1000
    source = other / "chk-2" / "_metadata"
    replace_file(source, source.read_bytes())
    os.utime(source, (stamp, stamp))
    rows = statetool.list_snapshots(str(root))
    assert {r.path for r in rows if r.newest_of_job} == {str(root / JOB / "chk-4"), str(other / "chk-2")}
    assert [r.path for r in rows if r.newest] == [str(other / "chk-2")]


def test_metadata_before_version_4_has_its_kind_from_the_name(corpus: Path) -> None:
    rows = statetool.list_snapshots(str(corpus / "v1_15_4-rocksdb-incremental"))
    assert [(r.kind, r.type_name, r.metadata_version) for r in rows] == [("checkpoint", None, 3)] * 2
    (row,) = statetool.list_snapshots(str(corpus / "v1_15_4-rocksdb-canonical"))
    assert row.kind == "unknown"


def test_every_case_of_the_corpus_is_complete(corpus: Path) -> None:
    rows = statetool.list_snapshots(str(corpus))
    assert len(rows) > 40
    assert [r.problem for r in rows if r.problem] == []


def test_directories_by_uri(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    memory = fsspec.filesystem("memory")
    memory.put(str(root), "/directories/checkpoints", recursive=True)
    try:
        here = statetool.list_snapshots(str(root))
        there = statetool.list_snapshots("memory://directories/checkpoints")
        assert [Path(r.path).name for r in there] == [Path(r.path).name for r in here]
        assert [(r.own_bytes, r.shared_bytes) for r in there] == [(r.own_bytes, r.shared_bytes) for r in here]
        assert all(r.complete and r.modified_ms for r in there)
        assert there[-1].path == f"memory://directories/checkpoints/{JOB}/chk-4"
        chains = [statetool.chain(r) for r in (str(root), "memory://directories/checkpoints")]
        assert [c.freed_bytes for c in chains[0].checkpoints] == [c.freed_bytes for c in chains[1].checkpoints]
        memory.pipe_file("/directories/checkpoints/left", b"over")
        (orphan,) = statetool.orphans("memory://directories/checkpoints", min_age=0)
        assert orphan.path == "memory://directories/checkpoints/left"
    finally:
        memory.rm("/directories", recursive=True)


def test_ls_command(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    rows = json.loads(run("ls", str(root), "--output", "json").stdout)
    assert [r["newest"] for r in rows] == [False, False, True]
    assert "chk-4" in run("ls", str(root)).stdout
    tables = json.loads(run("ls", str(root / JOB / "chk-4"), "--output", "json").stdout)
    assert {"operator", "operator_name", "operator_id", "uid", "table"} == set(tables[0])
    assert run("ls", str(root / "nothing")).exit_code == 3
    (tmp_path / "empty").mkdir()
    assert json.loads(run("ls", str(tmp_path / "empty"), "--output", "json").stdout) == []


# ---- chain --------------------------------------------------------------------------------------


def test_chain_of_incremental_checkpoints(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path) / JOB
    third, fourth = root / "chk-3", root / "chk-4"
    named = {3: absolute_names(third), 4: absolute_names(fourth)}
    sizes = {f.name: f.stat().st_size for f in root.rglob("*") if f.is_file() and f.name != "_metadata"}
    metadata = {n: (root / f"chk-{n}" / "_metadata").stat().st_size for n in (3, 4)}
    chain = statetool.chain(str(root))
    first, second = chain.checkpoints
    assert (first.checkpoint_id, second.checkpoint_id) == (3, 4)
    assert first.total_bytes == first.new_bytes == metadata[3] + sum(sizes[n] for n in named[3])
    assert second.reused_bytes == sum(sizes[n] for n in named[3] & named[4]) > 0
    assert second.new_bytes == metadata[4] + sum(sizes[n] for n in named[4] - named[3])
    assert second.total_bytes == second.new_bytes + second.reused_bytes
    assert second.reuse == round(second.reused_bytes / second.total_bytes, 4)
    assert first.freed_bytes == metadata[3] + sum(sizes[n] for n in named[3] - named[4])
    assert (first.freed_files, second.freed_files) == (len(named[3] - named[4]), len(named[4] - named[3]))
    by_name = {Path(f.path).name: f for f in chain.files}
    assert set(by_name) == named[3] | named[4]
    for name, file in by_name.items():
        ids = [n for n in (3, 4) if name in named[n]]
        assert (file.first_checkpoint, file.last_checkpoint, file.references) == (ids[0], ids[-1], len(ids))
        assert file.size_bytes == file.needed_bytes == sizes[name]


def test_what_chain_says_is_freed_is_what_deleting_frees(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path) / JOB
    freed = statetool.chain(str(root)).checkpoints[0].freed_bytes
    before = size_of(root)
    metadata = root / "chk-3" / "_metadata"
    metadata.unlink()
    for orphan in statetool.orphans(str(root), min_age=0):
        Path(orphan.path).unlink()
    assert before - size_of(root) == freed
    (left,) = [r for r in statetool.list_snapshots(str(root)) if r.complete]
    assert left.checkpoint_id == 4


def test_chain_of_merged_files_counts_segments(corpus: Path) -> None:
    chain = statetool.chain(str(corpus / "v2_3_0-file-merging-rocksdb"))
    (only,) = chain.checkpoints
    assert only.reused_bytes == 0
    assert all(f.size_bytes is not None and 0 < f.needed_bytes <= f.size_bytes for f in chain.files)
    assert only.freed_bytes >= only.total_bytes


def test_chain_names_what_it_could_not_read(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path) / JOB
    replace_file(root / "chk-4" / "_metadata", b"no")
    shown = run("chain", str(root), "--output", "json")
    assert shown.exit_code == 0
    chain = json.loads(shown.stdout)
    assert [c["checkpoint_id"] for c in chain["checkpoints"]] == [3]
    assert chain["unreadable"][0]["path"].endswith("chk-4")
    assert "chk-4" in run("chain", str(root)).stderr


# ---- orphans ------------------------------------------------------------------------------------


def test_orphans_are_what_no_metadata_names(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path)
    assert statetool.orphans(str(root), min_age=0) == []
    old, young = root / JOB / "shared" / "old", root / JOB / "taskowned" / "young"
    young.parent.mkdir(exist_ok=True)
    for file in (old, young):
        file.write_bytes(b"bytes")
    now = time.time()
    os.utime(old, (now - 8 * 86400, now - 8 * 86400))
    assert [o.path for o in statetool.orphans(str(root))] == [str(old)]
    assert [o.path for o in statetool.orphans(str(root), min_age="0s")] == [str(old), str(young)]
    assert statetool.orphans(str(root), min_age="9d") == []
    shown = run("orphans", str(root))
    assert shown.exit_code == 1
    assert "old" in shown.stdout
    assert "young" not in shown.stdout
    assert "nothing was deleted" in shown.stderr
    assert old.exists()
    assert run("orphans", str(root), "--min-age", "9d").exit_code == 0


def test_files_of_an_unfinished_checkpoint_are_orphans_once_they_are_old(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path) / JOB
    file = root / "chk-9" / "0f0f"
    file.parent.mkdir()
    file.write_bytes(b"bytes")
    assert statetool.orphans(str(root)) == []
    (orphan,) = statetool.orphans(str(root), min_age=0)
    assert orphan.path == str(file)
    assert "no _metadata" in orphan.reason


def test_orphans_refuses_to_judge_without_all_metadata(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path) / JOB
    with pytest.raises(SnapshotNotFoundError, match="retained"):
        statetool.orphans(str(root / "shared"), min_age=0)
    assert statetool.orphans(str(root / "shared"), min_age=0, retained=[str(root)]) == []
    metadata = root / "chk-3" / "_metadata"
    replace_file(metadata, metadata.read_bytes()[:100])
    with pytest.raises(FormatError, match="chk-3"):
        statetool.orphans(str(root), min_age=0)
    refused = run("orphans", str(root), "--min-age", "0s")
    assert refused.exit_code == 3
    assert refused.stdout == ""
    judged = statetool.orphans(str(root), min_age=0, ignore_unreadable=True)
    assert {Path(o.path).parent.name for o in judged} == {"chk-3", "shared"}


def test_a_copy_whose_original_is_still_there_has_no_orphans(corpus: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from statetool.formats.metadata import write_metadata
    from statetool.formats.metadata.handles import FileHandle, IncrementalHandle
    from tests.support.snapshots.trees import metadata_of

    original, copy = (link(corpus / INCREMENTAL / "snapshot", tmp_path / n) for n in ("original", "copy"))

    def here(stream: object) -> object:
        if isinstance(stream, FileHandle):
            return replace(stream, path=f"file:{original}/shared/{stream.path.rpartition('/')[2]}")
        return stream

    for n in (3, 4):
        metadata = metadata_of(original / f"chk-{n}")
        operators = []
        for operator in metadata.operators:
            subtasks = []
            for s in operator.subtasks:
                handle = s.managed_keyed
                if isinstance(handle, IncrementalHandle):
                    lists = {
                        name: tuple((n, here(f)) for n, f in getattr(handle, name)) for name in ("shared", "private")
                    }
                    handle = replace(handle, meta=here(handle.meta), **lists)  # type: ignore[arg-type]
                subtasks.append(replace(s, managed_keyed=handle))
            operators.append(replace(operator, subtasks=tuple(subtasks)))
        replace_file(copy / f"chk-{n}" / "_metadata", write_metadata(replace(metadata, operators=tuple(operators))))
    assert statetool.orphans(str(copy), min_age=0) == []
    assert all(r.complete for r in statetool.list_snapshots(str(copy)))


def test_ages() -> None:
    assert [age_seconds(a) for a in ("7d", "12h", "30m", "45s", "2w", "1.5h", 10)] == [
        604800, 43200, 1800, 45, 1209600, 5400, 10,
    ]  # fmt: skip
    for wrong in ("7", "d", "-1d", "7 days", -1):
        with pytest.raises(OptionError, match="age"):
            age_seconds(wrong)
    assert run("orphans", ".", "--min-age", "soon").exit_code == 2
