"""Checkpoints of a ForSt job whose working files are in the checkpoint directory, and are reused by its checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import statetool
from statetool.errors import DirectoryInUseError
from tests.flink.test_cleaned import CONFIG, age, wait_for_checkpoint
from tests.support.flink.follower import complete
from tests.support.flink.machine import FlinkMachine
from tests.support.snapshots.trees import absolute_names

pytestmark = [pytest.mark.full, pytest.mark.since(2, 1)]
REUSE = {
    "state.backend.forst.primary-dir": "checkpoint-dir",
    # Jobs with synchronous state have their working files on local disk by default.
    "state.backend.forst.sync.enforce-local": "false",
}


def working_files(root: Path) -> set[Path]:
    return {p for p in root.rglob("shared/op_*/db/*") if p.is_file()}


def test_reused_files_are_found_after_a_copy_and_never_called_garbage(flink: FlinkMachine, tmp_path: Path) -> None:
    root, copy = tmp_path / "checkpoints", tmp_path / "copy"
    config = {**CONFIG, **REUSE, "execution.checkpointing.dir": root.as_uri(), "state.checkpoints.dir": root.as_uri()}
    job = flink.call("follow", action="start", backend="forst", config=config)["job"]
    try:
        newest = wait_for_checkpoint(root / job)
        for _ in range(3):
            newest = wait_for_checkpoint(root / job, newest)
        assert working_files(root), "ForSt has its working files elsewhere"
        with pytest.raises(DirectoryInUseError):
            statetool.delete_orphans(str(root), min_age="1h")
    finally:
        flink.call("follow", action="stop", job=job)
    path = complete(root / job)[-1][1]
    rows = statetool.load(path)["counts"].to_arrow().sort_by("key")
    assert rows.num_rows
    assert statetool.verify(path, deep=True).ok
    named = absolute_names(Path(path))
    reused = {p for p in working_files(root) if p.name in {Path(n).name for n in named}}
    assert reused, "no working file is part of the checkpoint"
    # Files that only the database needed are garbage now; those of checkpoints are not.
    shutil.copytree(root, copy)
    age(root)
    moved = {Path(r.path).name for r in statetool.delete_orphans(str(root), min_age="1d").moved}
    assert not moved & {p.name for p in reused}
    assert statetool.verify(path, deep=True).ok
    shutil.move(root, tmp_path / "gone")
    copied = str(copy / Path(path).relative_to(root))
    assert statetool.load(copied)["counts"].to_arrow().sort_by("key") == rows
    assert statetool.verify(copied, deep=True).ok
    shutil.move(tmp_path / "gone", root)
    job = flink.call("follow", action="start", backend="forst", config=config, snapshot=path)["job"]
    try:
        wait_for_checkpoint(root / job)
    finally:
        flink.call("follow", action="stop", job=job)
