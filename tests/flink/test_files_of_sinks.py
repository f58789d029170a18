"""Files that only the state of sinks names, in real Flink: clean-up leaves them, copies take them along, and restores lose no number.

``WriteAheadJob`` (``tests/support/flink/write_ahead``) writes all numbers with a sink on Flink's ``GenericWriteAheadSink``, which keeps the
records of each checkpoint in a file in ``taskowned``, and with two file sinks, whose parts are below the directory of the checkpoints.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import statetool
from statetool.errors import OptionError
from tests.support.checks.cleanup_check import run
from tests.support.cleanup.jobs import KINDS as KINDS_OF_JOBS
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.write_ahead_job import SOURCE, UIDS, Job
from tests.support.snapshots.trees import age, lose_file

pytestmark = pytest.mark.full
#: A long run has 100: ``STATETOOL_CLEANUP_ROUNDS=100 pytest --full --timeout=0 tests/flink/test_files_of_sinks.py``.
ROUNDS: Final = int(os.environ.get("STATETOOL_CLEANUP_ROUNDS", "2"))


@pytest.fixture(scope="module")
def ahead(flink: FlinkMachine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink with the job."""
    machine = FlinkMachine(flink.version, tmp_path_factory.mktemp(f"ahead-{flink.version}"), (SOURCE,))
    yield machine
    machine.close()


def test_clean_up_leaves_what_only_state_names(ahead: FlinkMachine, tmp_path: Path) -> None:
    job = Job(ahead, tmp_path / "checkpoints", tmp_path / "checkpoints" / "table")
    path = job.take()
    lost = lose_file(Path(path).parent / "shared")
    age(job.root)
    moved = [row.path for row in statetool.delete_orphans(str(job.root), min_age="1d").moved]
    assert moved == [str(lost.relative_to(job.root))]
    assert statetool.verify(path).ok
    job.restore(path)


@pytest.mark.in_turn(0)
@pytest.mark.parametrize("verb", ["copy", "convert", "rescale"])
def test_copies_take_along_what_only_state_names(ahead: FlinkMachine, tmp_path: Path, verb: str) -> None:
    """Restored after the original is gone. Its parts of file sinks are in the system that these write to, so they stay."""
    job = Job(ahead, tmp_path / "checkpoints", tmp_path / "table")
    path = job.take()
    target = str(tmp_path / "a copy")
    if verb == "rescale":
        statetool.rescale(path, target, 16, parallelism=1)
    elif verb == "convert":
        statetool.convert(path, target)
    else:
        statetool.copy(path, target)
    shutil.rmtree(job.root)
    assert statetool.verify(target, deep=True).ok
    job.restore(target)


@pytest.mark.in_turn(0)
def test_a_savepoint_needs_files_of_the_job(ahead: FlinkMachine, tmp_path: Path) -> None:
    """``verify`` says so, ``orphans`` keeps them, and a copy restores without them."""
    job = Job(ahead, tmp_path / "checkpoints", tmp_path / "table")
    job.start(hold=True)
    try:
        job.checkpoint()
        savepoint = job.savepoint(tmp_path / "savepoints")
    finally:
        job.stop()
    notes = [p.problem for p in statetool.verify(savepoint).problems if p.state == "pending-checkpoints"]
    assert len(notes) == 1
    assert "taskowned" in notes[0]
    for checkpoint in job.root.glob("*/chk-*"):
        shutil.rmtree(checkpoint)
    age(tmp_path / "savepoints")
    age(job.root)
    statetool.delete_orphans(str(job.root), min_age="1d", retained=[str(tmp_path / "savepoints")])
    copy = str(tmp_path / "copy")
    statetool.copy(savepoint, copy)
    (taskowned,) = job.root.glob("*/taskowned")
    taskowned.rename(tmp_path / "gone")
    (warning,) = [p for p in statetool.verify(savepoint).problems if p.severity == "warning"]
    assert "do not exist" in warning.problem
    assert statetool.verify(copy).ok
    job.restore(copy)


@pytest.mark.in_turn(1)
def test_lost_files_of_sinks_are_found_before_flink_fails(ahead: FlinkMachine, tmp_path: Path) -> None:
    """A part that a file sink continues is gone: Flink fails. Records of the write-ahead sink are gone: it sends nothing, for ever."""
    job = Job(ahead, tmp_path / "checkpoints", tmp_path / "table")
    path = job.take()
    out = tmp_path / "out"
    shutil.copytree(job.out, out)
    for part in (job.out / "open").iterdir():
        part.unlink()
    problems = statetool.verify(path).problems
    assert {p.severity for p in problems if "continues it" in p.problem} == {"error"}
    with pytest.raises(FlinkRefusedError, match="File Not Found"):
        job.restore(path)
    named = statetool.load(path, uids=UIDS)
    gone = [r for r in named.table_commits().to_pylist() if r["outcome"] == "will_fail"]
    assert {r["operator"] for r in gone} == {"open"}
    statetool.drop_transactions(named, str(tmp_path / "without"), "open", [r["name"] for r in gone])
    job.restore(str(tmp_path / "without"))
    shutil.rmtree(job.out)
    shutil.move(out, job.out)
    for file in job.root.glob("*/taskowned/*"):
        file.unlink()
    (warning,) = [p for p in statetool.verify(path).problems if p.severity == "warning"]
    assert "files that only this state names do not exist" in warning.problem
    with pytest.raises(AssertionError):
        job.restore(path, within=5)
    assert job.sent() == []


#: Kinds of directories around the one that is cleaned up.
KINDS: Final = ("job", "all", "link", "own", "own-link", "volume")


@pytest.mark.in_turn(1)
@pytest.mark.parametrize("kind", KINDS)
def test_no_file_that_a_restore_needs_is_moved(ahead: FlinkMachine, tmp_path: Path, kind: str) -> None:
    """Rounds of jobs that each claim the last checkpoint of the job before, and a clean-up beside each."""
    chance = random.Random(kind)
    top = tmp_path / "top"
    job = Job(ahead, top / "checkpoints", top / "table")
    own = kind in ("own", "own-link", "volume")
    path: str | None = None
    lost: list[Path] = []
    moved = refused = 0
    for number in range(ROUNDS):
        more = {"execution.checkpointing.create-subdir": "false", "state.checkpoints.create-subdir": "false"}
        if own:
            job.root = top / f"job-{number}"
            if kind == "volume" and number % 2:
                (tmp_path / f"volume-{number}").mkdir()
                top.mkdir(exist_ok=True)
                job.root.symlink_to(tmp_path / f"volume-{number}")
        path = job.take(chance.randint(1, 2), path, claim=bool(chance.getrandbits(1)), more=more if own else None)
        age(tmp_path)
        for cleaned in directories(job.root, kind, tmp_path):
            lost.append(lose_file(cleaned / "shared"))
            done = statetool.delete_orphans(str(cleaned), min_age="1d")
            moved += len(done.moved)
        if kind == "own-link":
            (top / "unmounted").symlink_to(tmp_path / "unmounted")
            with pytest.raises(OptionError, match="does not exist"):
                statetool.delete_orphans(str(job.root), min_age="1d")
            refused += 1
            (top / "unmounted").unlink()
    assert moved >= len(lost) == len([file for file in lost if not file.exists()])
    assert path is not None
    assert not [p for p in statetool.verify(path).problems if p.severity != "note"]
    print(f"{kind}: {ROUNDS} rounds, {moved} files moved, {refused} clean-ups refused")
    job.restore(path)


@pytest.mark.in_turn(0)
@pytest.mark.parametrize("kind", ["write-ahead"])
def test_random_cleanups_leave_what_restores_need(flink: FlinkMachine, kind: str) -> None:
    """A sample of ``python -m tests.cleanup_check``."""
    figures = run(kind, KINDS_OF_JOBS[kind], flink.version, 2, 3)
    assert figures.faults == []
    assert figures.counts["restores"] > 1


def directories(root: Path, kind: str, work: Path) -> list[Path]:
    """Return the directories to clean up: those of the jobs, or that of all jobs, or links to them."""
    if kind == "all":
        return [root]
    jobs = sorted(p for p in (root.parent if kind in ("own", "own-link", "volume") else root).iterdir() if holds_job(p))
    if kind not in ("link", "own-link"):
        return jobs
    links = []
    for job in jobs:
        link = work / f"link-to-{job.name}"
        if not link.is_symlink():
            link.symlink_to(job)
        links.append(link)
    return links


def holds_job(folder: Path) -> bool:
    return (folder / "shared").is_dir()
