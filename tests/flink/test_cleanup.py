"""Clean-up beside a real job that takes checkpoints all the time: no file that a retained checkpoint needs is ever touched.

Each job restores the last checkpoint of the one before it and claims it, so its checkpoints need files in the directories of earlier jobs.
"""

from __future__ import annotations

import os
import random
import shutil
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import DirectoryInUseError, SnapshotNotFoundError
from tests.support.flink.follower import complete
from tests.support.flink.machine import FlinkMachine
from tests.support.patience import eventually
from tests.support.snapshots.trees import absolute_names

pytestmark = pytest.mark.full
#: A long run has 100: ``STATETOOL_CLEANUP_ROUNDS=100 pytest --full --timeout=0 tests/flink/test_cleanup.py``.
#: ``--flink-versions 1.20.5`` and then ``2.3.0`` run all cases with both releases.
ROUNDS: Final = int(os.environ.get("STATETOOL_CLEANUP_ROUNDS", "25"))
#: Rounds after which the next job continues from the last checkpoint.
ROUNDS_OF_A_JOB: Final = 8
#: A busy machine refuses more rounds and replaces more checkpoints before they are looked at: at most so many times the rounds are tried.
MOST_TIMES: Final = 4
#: Seconds in which a job on a busy machine takes a checkpoint, and Flink has deleted what it no longer needs.
MONTH: Final = 30 * 86_400
CONFIG: Final = {
    "execution.checkpointing.interval": "150 ms",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.num-retained": "2",
    # Forces all state into files instead of _metadata.
    "execution.checkpointing.data-inline-threshold": "1 b",
    "state.backend.rocksdb.use-bloom-filter": "false",
    # The earlier and the later names.
    "execution.savepoint-restore-mode": "CLAIM",
    "execution.state-recovery.claim-mode": "CLAIM",
}
MERGING: Final = {
    "execution.checkpointing.file-merging.enabled": "true",
    "execution.checkpointing.file-merging.across-checkpoint-boundary": "true",
}
#: The machine's cluster has the storage of the change files.
CHANGELOG: Final = {
    "state.changelog.enabled": "true",
    "state.backend.changelog.enabled": "true",
    "state.changelog.periodic-materialize.interval": "300 ms",
    "state.backend.changelog.periodic-materialize.interval": "300 ms",
}

#: ForSt has its working files in the checkpoint directory.
REUSE: Final = {
    "state.backend.forst.primary-dir": "checkpoint-dir",
    # Jobs with synchronous state have their working files on local disk by default.
    "state.backend.forst.sync.enforce-local": "false",
}


def files_below(folder: Path) -> list[Path]:
    """List the files, whatever the running job deletes meanwhile: a folder that vanishes has none (``rglob`` raises)."""
    return [Path(at, name) for at, _, names in os.walk(folder) for name in names]


def age(folder: Path, *, but: str = "") -> None:
    """Make all files of jobs that have ended a month old."""
    then = time.time() - MONTH
    for file in files_below(folder):
        if but not in file.parts and ".statetool-trash" not in file.parts:
            try:
                os.utime(file, (then, then))
            except FileNotFoundError:  # the running job deletes files that it claimed
                continue


def lose_file(folder: Path) -> Path:
    """Write a file that no checkpoint needs, as a failed attempt leaves it."""
    file = folder / str(uuid.uuid4())
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"lost")
    then = time.time() - MONTH
    os.utime(file, (then, then))
    return file


def check_whole(root: Path, running: str, moved: set[str]) -> int:
    """Check that no checkpoint names a moved file, and that those of the running job have all files; return the number of checkpoints.

    A job that claims a checkpoint deletes files that earlier checkpoints of the old job may still name, so these can be incomplete.
    """
    checked = 0
    names = {Path(file).name for file in moved}
    for job in (j for j in root.iterdir() if j.is_dir()):
        for _, path in complete(job):
            try:
                named = absolute_names(Path(path))
            except FileNotFoundError:  # Flink deleted it
                continue
            assert not named & names, f"{path} names files that were moved"
            checked += 1
            if job.name == running:
                check_complete(path)
    return checked


def check_complete(path: str) -> None:
    """Check that a checkpoint has all files, or that Flink is deleting it: it deletes shared files and metadata at the same time."""

    def is_complete_or_gone() -> bool:
        return not Path(path, "_metadata").exists() or statetool.verify(path).ok

    eventually(
        is_complete_or_gone, retry=SnapshotNotFoundError, every=0, describe=lambda: statetool.verify(path).problems[:3]
    )


def is_named(newest: bytes, texts: Iterable[str]) -> bool:
    """Return True if metadata contains one of some parts of paths."""
    return any(text.encode() in newest for text in texts)


def newest_metadata(job: Path) -> bytes:
    """Return the metadata of the newest checkpoint, empty if Flink deletes all of them meanwhile."""
    for _, path in reversed(complete(job)):
        try:
            return Path(path, "_metadata").read_bytes()
        except FileNotFoundError:
            continue
    return b""


def wait_for_checkpoint(job: Path, number: int = 0) -> int:
    """Wait for a checkpoint with a higher id, and return the newest id."""

    def newest() -> int:
        taken = max((taken for taken, _ in complete(job)), default=0)
        return taken if taken > number else 0

    return eventually(newest)


def clean(directory: Path, outcomes: Counter[str], moved: set[str], **options: Any) -> None:
    try:
        done = statetool.delete_orphans(str(directory), min_age="1d", **options)
    except (DirectoryInUseError, SnapshotNotFoundError):
        outcomes["refused"] += 1
    else:
        outcomes["cleaned" if done.moved else "nothing"] += 1
        moved |= {str(directory / row.path) for row in done.moved}


@pytest.mark.parametrize(
    ("backend", "more"),
    [
        pytest.param("hashmap", {}, id="hashmap"),
        pytest.param("rocksdb", {}, id="rocksdb"),
        pytest.param("rocksdb", MERGING, id="rocksdb-file-merging"),
    ],
)
def test_no_file_that_a_checkpoint_needs_is_touched(
    flink: FlinkMachine, tmp_path: Path, backend: str, more: dict[str, str]
) -> None:
    run_beside_a_job(flink, tmp_path / "checkpoints", backend, more)


@pytest.mark.since(2, 0)
def test_no_file_of_a_forst_job_is_touched(flink: FlinkMachine, tmp_path: Path) -> None:
    run_beside_a_job(flink, tmp_path / "checkpoints", "forst", {})


@pytest.mark.in_turn(0)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize("place", ["outside", "below"])
def test_no_file_of_a_changelog_is_touched(flink: FlinkMachine, backend: str, place: str) -> None:
    """The change files are outside of the checkpoint directory, or in a folder of it."""
    log = flink.work / "changes" / "log"
    shutil.rmtree(log, ignore_errors=True)
    root = log.parent if place == "below" else flink.work / "checkpoints-beside-changes"
    run_beside_a_job(flink, root, backend, CHANGELOG, log)
    shutil.rmtree(root, ignore_errors=True)


def run_beside_a_job(
    flink: FlinkMachine, root: Path, backend: str, more: dict[str, str], log: Path | None = None
) -> None:
    config = {**CONFIG, **more, "execution.checkpointing.dir": root.as_uri(), "state.checkpoints.dir": root.as_uri()}
    chance, outcomes, moved, lost = random.Random(1), Counter[str](), set[str](), set[str]()
    checked = claimed = changes = newest_id = 0
    lost_changes: set[Path] = set()
    ended: list[str] = []

    def was_tried() -> bool:
        # File merging has one file per checkpoint here, and ForSt writes all files again after a restore.
        needs_earlier = bool(claimed) or backend != "rocksdb" or more is MERGING
        return needs_earlier and (log is None or changes >= 3) and outcomes["cleaned"] >= 3 and checked >= ROUNDS

    job = flink.call("follow", action="start", backend=backend, config=config)["job"]
    try:
        wait_for_checkpoint(root / job)
        for number in range(MOST_TIMES * ROUNDS):
            if number >= ROUNDS and was_tried():
                break
            if number % ROUNDS_OF_A_JOB == 1:
                wait_for_checkpoint(root / job)
                flink.call("follow", action="stop", job=job)
                ended.append(job)
                if log is not None:
                    lost_changes.add(lose_file(log / job / "dstl"))
                newest = complete(root / job)[-1][1]
                job = flink.call("follow", action="start", backend=backend, config=config, snapshot=newest)["job"]
            age(root, but=job)
            time.sleep(chance.random() / 5)
            refused = outcomes["refused"] + 2 * bool(complete(root / job))
            clean(root, outcomes, moved)
            clean(root / job, outcomes, moved)
            assert outcomes["refused"] >= refused, "the job writes there"
            for old in ended:
                lost.add(str(lose_file(root / old / "shared")))
                clean(root / old, outcomes, moved)
            checked += check_whole(root, job, moved)
            # The round that starts a job runs before its first checkpoint, and the next rounds after it.
            newest_id = wait_for_checkpoint(root / job)
            # The first checkpoint needs files of earlier jobs. RocksDB soon replaces them.
            named = newest_metadata(root / job)
            claimed += is_named(named, [f"{old}/" for old in ended])
            changes += is_named(named, [f"{job}/dstl/"])
        wait_for_checkpoint(root / job, newest_id)
    finally:
        flink.call("follow", action="stop", job=job)
    # Checkpoints needed files of earlier jobs and change files, and were read; of the rounds, some were not refused.
    assert was_tried(), (claimed, changes, checked, outcomes)
    newest = complete(root / job)[-1][1]
    counts = statetool.load(newest)["counts"].to_arrow()
    assert counts.num_rows
    age(root)
    clean(root, outcomes, moved)

    def all_are_moved() -> bool:
        if lost <= moved:
            return True
        # Refused if Flink, which deletes files also after the end of a job, has deleted one meanwhile.
        age(root)
        clean(root, outcomes, moved)
        return False

    eventually(all_are_moved, describe=lambda: (lost - moved, outcomes))
    assert all(file.exists() for file in lost_changes)
    if log is not None and root in log.parents:
        assert {row.path for row in statetool.orphans(str(root), min_age="1d")} >= set(map(str, lost_changes))
    assert check_whole(root, job, moved)
    job = flink.call("follow", action="start", backend=backend, config=config, snapshot=newest)["job"]
    try:
        wait_for_checkpoint(root / job)
    finally:
        flink.call("follow", action="stop", job=job)


def clean_found(root: Path) -> None:
    """Clean up a directory, again if Flink has deleted the checkpoints that were found."""
    while True:
        try:
            statetool.delete_orphans(str(root), min_age="1h")
        except SnapshotNotFoundError:
            continue
        return


def copy_whole(root: Path, target: Path) -> None:
    """Copy a directory, again if Flink, which deletes files also after the end of a job, has deleted one meanwhile."""

    def is_copied() -> bool:
        try:
            shutil.copytree(root, target)
        except shutil.Error:
            shutil.rmtree(target)
            return False
        return True

    eventually(is_copied, every=0)


def working_files(root: Path) -> set[Path]:
    return {p for p in files_below(root) if p.match("shared/op_*/db/*")}


@pytest.mark.since(2, 1)
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
            clean_found(root)
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
    copy_whole(root, copy)
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
