"""Clean-up: only orphans move, only if nothing writes, and everything can be moved back."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import fsspec
import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import (
    DirectoryInUseError,
    FormatError,
    OptionError,
    SnapshotNotFoundError,
    StatetoolError,
    TargetExistsError,
    UnknownNameError,
)
from statetool.io import targets
from statetool.operations.directories import cleanup, roots
from statetool.operations.directories.cleanup import is_state_file
from statetool.operations.directories.survey import Survey, survey
from statetool.operations.directories.trash import Trash
from tests.support.servers.flink_rest import flink_rest
from tests.support.snapshots.trees import INCREMENTAL, JOB, absolute_names, checkpoint_root, link, replace_file

OTHER_JOB = "0" * 31 + "b"
DAY = 86_400


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def tree_of(root: Path) -> dict[str, str]:
    """Return a digest of each file outside of trash folders."""
    return {
        str(f.relative_to(root)): hashlib.sha256(f.read_bytes()).hexdigest()
        for f in sorted(root.rglob("*"))
        if f.is_file() and ".statetool-trash" not in f.parts
    }


def age(root: Path, days: float = 30) -> None:
    then = time.time() - days * DAY
    for file in root.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


def orphan(folder: Path, name: str | None = None, days: float = 30) -> Path:
    """Write a file that no metadata names."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (name or str(uuid.uuid4()))
    file.write_bytes(file.name.encode())
    then = time.time() - days * DAY
    os.utime(file, (then, then))
    return file


@pytest.fixture
def root(corpus: Path, tmp_path: Path) -> Path:
    """Checkpoints of one job (copies, so that their times can change) that ended a month ago."""
    linked = checkpoint_root(corpus, tmp_path / "linked")
    shutil.copytree(linked, tmp_path / "checkpoints")
    age(tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


def test_orphans_move_to_the_trash_and_back(root: Path) -> None:
    before = tree_of(root)
    lost = [
        orphan(root / JOB / "shared"),
        orphan(root / JOB / "chk-9"),
        orphan(root / JOB / "shared" / f"job_{JOB}_op_abc_1_2"),
        orphan(root / "savepoint-5ca1ab-abcdefabcdef"),
    ]
    with_lost = tree_of(root)
    done = statetool.delete_orphans(str(root))
    assert {str(root / row.path) for row in done.moved} == set(map(str, lost))
    assert done.kept == ()
    assert tree_of(root) == before
    assert statetool.delete_orphans(str(root)).moved == ()
    assert [s.checkpoint_id for s in statetool.list_snapshots(str(root))] == [2, 3, 4]
    assert len(statetool.restore_deleted(str(root), done.trash_id)) == len(lost)
    assert tree_of(root) == with_lost
    assert [f.stat().st_mtime for f in lost] == pytest.approx([time.time() - 30 * DAY] * 4, abs=600)
    assert statetool.restore_deleted(str(root), done.trash_id) == []


def test_only_state_files_move(root: Path) -> None:
    """Working files of ForSt, files of the user, and names that Flink does not make stay."""
    kept = [
        orphan(root, "README.txt"),
        orphan(root, str(uuid.uuid4())),
        orphan(root / JOB / "shared", "notes"),
        orphan(root / JOB / "shared" / "op_x__1_2__attempt_0" / "db", "000012.sst"),
        orphan(root / JOB / "shared" / "op_x__1_2__attempt_0" / "db", str(uuid.uuid4())),
        orphan(root / JOB / "dstl"),
        orphan(root / "data" / "chk-x"),
    ]
    moved = orphan(root / JOB / "shared")
    done = statetool.delete_orphans(str(root))
    assert [row.path for row in done.moved] == [str(moved.relative_to(root))]
    assert {row.path for row in done.kept} == set(map(str, kept))
    assert all(f.exists() for f in kept)
    shown = run("orphans", str(root), "--delete")
    assert shown.exit_code == 1
    assert "README.txt (not a state file" in shown.stderr


@pytest.mark.parametrize(
    "place", [f"{JOB}/shared", f"{JOB}/chk-5", f"{JOB}/taskowned", "savepoint-5ca1ab-abcdefabcdef", "x"]
)
def test_a_young_file_anywhere_refuses_everything(root: Path, place: str) -> None:
    lost = orphan(root / JOB / "shared")
    young = orphan(root / place, days=0.9)
    with pytest.raises(DirectoryInUseError, match=r"1 file younger than the threshold") as caught:
        statetool.delete_orphans(str(root), min_age="1d")
    assert str(young) in str(caught.value)
    assert lost.exists()
    assert not (root / ".statetool-trash").exists()
    assert statetool.delete_orphans(str(root), min_age="12h").moved


def test_young_metadata_and_times_in_the_future_refuse(root: Path) -> None:
    lost, metadata = orphan(root / JOB / "shared"), root / JOB / "chk-3" / "_metadata"
    for then in (time.time() - 60, time.time() + 30 * DAY):
        os.utime(metadata, (then, then))
        with pytest.raises(DirectoryInUseError, match="a job may be writing"):
            statetool.delete_orphans(str(root))
    assert lost.exists()


def test_ages_are_those_of_the_store(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose clock is a year ahead does not take files of today for old ones."""
    lost = orphan(root / JOB / "shared", days=0)
    monkeypatch.setattr(time, "time", lambda: 2 * 10**9)
    with pytest.raises(DirectoryInUseError):
        statetool.delete_orphans(str(root))
    assert lost.exists()


@pytest.mark.parametrize("wrong", ["0s", "59m", 0])
def test_a_threshold_of_less_than_an_hour_is_refused(root: Path, wrong: str | int) -> None:
    with pytest.raises(OptionError, match="--older-than 1h"):
        statetool.delete_orphans(str(root), min_age=wrong)


def test_unknown_metadata_refuses_everything(root: Path) -> None:
    """Metadata that is damaged, or of a version of the format that comes later, may name any file."""
    lost, metadata = orphan(root / JOB / "shared"), root / JOB / "chk-3" / "_metadata"
    good = metadata.read_bytes()
    for bad in (good[:100], good[:4] + (99).to_bytes(4, "big") + good[8:], b""):
        metadata.write_bytes(bad)
        age(root)
        with pytest.raises(FormatError, match="cannot be read"):
            statetool.delete_orphans(str(root))
    assert lost.exists()
    assert run("orphans", str(root), "--delete", "--ignore-unreadable").exit_code == 2


def test_parts_of_a_job_are_refused(root: Path) -> None:
    for part in ("shared", "taskowned", "chk-3"):
        (root / JOB / part).mkdir(exist_ok=True)
        with pytest.raises(OptionError, match="part of the files of a job"):
            statetool.delete_orphans(str(root / JOB / part))
    empty = root.parent / "empty"
    empty.mkdir()
    with pytest.raises(SnapshotNotFoundError, match="needed files are unknown"):
        statetool.delete_orphans(str(empty))


def test_a_link_behind_which_snapshots_may_be_is_refused(root: Path, tmp_path: Path) -> None:
    lost = orphan(root / JOB / "shared")
    shutil.move(str(root / "savepoint-5ca1ab-0123456789ab"), str(tmp_path / "elsewhere"))
    (root / "savepoint-5ca1ab-0123456789ab").symlink_to(tmp_path / "elsewhere")
    os.utime(root / "savepoint-5ca1ab-0123456789ab", (0, 0), follow_symlinks=True)
    with pytest.raises(OptionError, match="symbolic link"):
        statetool.delete_orphans(str(root))
    assert lost.exists()


def claimed(root: Path) -> set[str]:
    """Move a checkpoint to the directory of another job, as if that had claimed it: its files stay. Return their names."""
    names = absolute_names(root / JOB / "chk-4")
    shutil.move(str(root / JOB / "chk-4"), str(root / OTHER_JOB / "chk-5"))
    shutil.rmtree(root / JOB / "chk-3")
    return names


def test_files_that_a_job_beside_it_has_claimed_stay(root: Path) -> None:
    names = claimed(root)
    lost = orphan(root / JOB / "shared")
    now = time.time()
    os.utime(root / OTHER_JOB / "chk-5" / "_metadata", (now, now))
    done = statetool.delete_orphans(str(root / JOB))
    assert str(root / JOB / done.moved[0].path) == str(lost) or len(done.moved) > 1
    assert not {Path(row.path).name for row in done.moved} & names
    assert statetool.list_snapshots(str(root / OTHER_JOB))[0].complete


def test_files_that_a_savepoint_elsewhere_needs_stay_if_it_is_named(root: Path, tmp_path: Path) -> None:
    shutil.move(str(root / JOB / "chk-4"), str(tmp_path / "elsewhere" / "chk-4"))
    names = absolute_names(tmp_path / "elsewhere" / "chk-4")
    done = statetool.delete_orphans(str(root), retained=[str(tmp_path / "elsewhere")])
    assert not {Path(row.path).name for row in done.moved} & names


def test_a_job_beside_it_without_a_checkpoint_refuses(root: Path) -> None:
    """It may have restored a snapshot of this job, and its needs are not known yet."""
    lost = orphan(root / JOB / "shared")
    orphan(root / OTHER_JOB / "shared", days=0)
    with pytest.raises(DirectoryInUseError, match="has no complete checkpoint yet"):
        statetool.delete_orphans(str(root / JOB))
    assert lost.exists()


def test_a_changelog_below_the_root_belongs_to_the_checkpoints_that_name_its_files(root: Path, corpus: Path) -> None:
    """A job writes its changelog to ``<root>/log/<job>/dstl`` while the directory of an older job is cleaned up."""
    case = "v2_3_0-changelog-rocksdb"
    lost, lost_log = orphan(root / JOB / "shared"), orphan(root / "log" / JOB / "dstl")
    link(corpus / case / "dstl", root / "log" / "of-all")
    (log,) = (root / "log" / "of-all").iterdir()
    log.rename(root / "log" / OTHER_JOB)
    young = orphan(root / "log" / OTHER_JOB / "dstl", days=0)
    with pytest.raises(DirectoryInUseError, match=rf"log/{OTHER_JOB} has no complete checkpoint yet"):
        statetool.delete_orphans(str(root / JOB))
    shutil.copytree(corpus / case / "snapshot", root / OTHER_JOB)
    written = json.loads((corpus / case / "case.json").read_text())["config"]["dstl.dfs.base-path"]
    rebase = {f"{written}/{log.name}": str(root / "log" / OTHER_JOB)}
    done = statetool.delete_orphans(str(root / JOB), rebase=rebase)
    assert [str(root / JOB / row.path) for row in done.moved] == [str(lost)]
    age(root)
    done = statetool.delete_orphans(str(root), rebase=rebase)
    assert done.moved == ()
    assert {row.path for row in done.kept} == {str(young), str(lost_log)}
    found = {row.path for row in statetool.orphans(str(root), rebase=rebase)}
    assert {str(young), str(lost_log)} <= found


def test_files_of_operators_stay(root: Path) -> None:
    """Only operators know which files in ``taskowned`` they need."""
    kept = [orphan(root / JOB / "taskowned"), orphan(root / JOB / "taskowned" / f"job_{JOB}_tm_1")]
    moved = orphan(root / JOB / "shared")
    done = statetool.delete_orphans(str(root))
    assert [row.path for row in done.moved] == [str(moved.relative_to(root))]
    assert {(row.path, row.reason.partition(",")[0]) for row in done.kept} == {(str(f), "in taskowned") for f in kept}
    assert "operators may need" in run("orphans", str(root), "--delete").stderr


def of_own(root: Path) -> Path:
    """Give jobs directories of their own, as without subdirectories for job ids. The second has claimed a checkpoint of the first."""
    own = root.parent / "own"
    shutil.copytree(root / JOB, own / "orders")
    shutil.move(str(own / "orders" / "chk-4"), str(own / "payments" / "chk-5"))
    shutil.rmtree(own / "orders" / "chk-3")
    savepoint = root / "savepoint-5ca1ab-0123456789ab"
    shutil.copytree(savepoint, own / "orders" / savepoint.name)
    age(own)
    return own


def test_jobs_beside_the_root_are_read_without_job_ids_in_paths(root: Path) -> None:
    own = of_own(root)
    names = absolute_names(own / "payments" / "chk-5")
    lost = orphan(own / "orders" / "shared")
    done = statetool.delete_orphans(str(own / "orders"))
    assert lost.name in {Path(row.path).name for row in done.moved}
    assert not {Path(row.path).name for row in done.moved} & names
    assert done.directories == (str(own / "orders"), str(own / "payments"))
    assert str(own / "payments") in run("orphans", str(own / "orders"), "--delete").stderr
    listed = {Path(row.path).name for row in statetool.orphans(str(own / "orders"), min_age=0)}
    assert not listed & names


@pytest.mark.parametrize("kind", ["link", "elsewhere", "root-elsewhere", "only-root-elsewhere"])
def test_jobs_beside_the_root_are_read_through_links(root: Path, kind: str) -> None:
    """The root is named through a link, or the job beside it is in another volume, or the root is, by whichever path it is named."""
    own = of_own(root)
    names = absolute_names(own / "payments" / "chk-5")
    named = own / "orders"
    rebase = {}
    if kind == "link":
        named = root.parent / "link"
        named.symlink_to(own / "orders")
    else:
        job = "payments" if kind == "elsewhere" else "orders"
        volume = root.parent / "volumes" / "volume"
        volume.parent.mkdir()
        shutil.move(str(own / job), str(volume))
        (own / job).symlink_to(volume)
        if kind == "only-root-elsewhere":
            # Its metadata has the path through the link.
            shutil.copytree(root / JOB / "chk-3", volume / "chk-3")
            rebase = {f"/checkpoints/public/{INCREMENTAL}/{JOB}": str(named)}
            named = volume
            age(volume)
    lost = orphan(own / "orders" / "shared")
    done = statetool.delete_orphans(str(named), rebase=rebase)
    assert lost.name in {Path(row.path).name for row in done.moved}
    assert not {Path(row.path).name for row in done.moved} & names
    assert len(statetool.restore_deleted(str(named), done.trash_id)) == len(done.moved)


def test_a_link_to_the_root_does_not_hide_the_jobs_beside_it(root: Path) -> None:
    names = claimed(root)
    named = root.parent / "link"
    named.symlink_to(root / JOB)
    lost = orphan(root / JOB / "shared")
    done = statetool.delete_orphans(str(named), retained=[str(root)])
    assert lost.name in {Path(row.path).name for row in done.moved}
    assert not {Path(row.path).name for row in done.moved} & names
    assert done.directories == (str(root / JOB), str(root))


def test_the_directory_of_a_job_in_another_volume_has_jobs_beside_its_link(root: Path) -> None:
    """The link to the directory hides nothing. That of another job does, until its directory is named."""
    names = claimed(root)
    for job in (JOB, OTHER_JOB):
        volume = root.parent / "volumes" / job[:4] / "data"
        volume.parent.mkdir(parents=True)
        shutil.move(str(root / job), str(volume))
        (root / job).symlink_to(volume)
    lost = orphan(root / JOB / "shared")
    with pytest.raises(OptionError, match=f"{OTHER_JOB} is a symbolic link"):
        statetool.delete_orphans(str(root / JOB))
    done = statetool.delete_orphans(str(root / JOB), retained=[str(root / OTHER_JOB)])
    assert lost.name in {Path(row.path).name for row in done.moved}
    assert not {Path(row.path).name for row in done.moved} & names


@pytest.mark.parametrize("place", ["root", "beside", "beside-own", "retained"])
def test_a_link_to_a_volume_that_is_not_mounted_refuses(root: Path, place: str) -> None:
    own = of_own(root)
    cleaned, retained = root / JOB, root.parent / "retained"
    shutil.copytree(root / "savepoint-5ca1ab-0123456789ab", retained / "savepoint-5ca1ab-0123456789ab")
    if place == "beside-own":
        cleaned = own / "orders"
    folder = {"root": root / JOB / "shared", "beside": root, "beside-own": own, "retained": retained}[place]
    (folder / "volume").symlink_to(root.parent / "unmounted")
    lost = orphan(cleaned / "shared")
    with pytest.raises(OptionError, match=r"volume.* is a symbolic link to .*unmounted"):
        statetool.delete_orphans(str(cleaned), retained=[str(retained)])
    assert lost.exists()


def test_a_directory_beside_the_root_that_cannot_be_listed_refuses(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = of_own(root)
    listing = os.scandir

    def scandir(path: str) -> Any:  # root reads every directory, whatever its mode
        if Path(path) == own / "payments":
            raise PermissionError(13, "Permission denied", path)
        return listing(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        with pytest.raises(OptionError, match="cannot be listed"):
            statetool.delete_orphans(str(own / "orders"))


def surveys(monkeypatch: pytest.MonkeyPatch, change: Callable[[int], None]) -> list[int]:
    """Call a function before each survey with its number."""
    numbers: list[int] = []

    def changed(*arguments: object, **options: object) -> Survey:
        numbers.append(len(numbers))
        change(numbers[-1])
        return survey(*arguments, **options)  # type: ignore[arg-type]

    for module in (cleanup, roots):
        monkeypatch.setattr(module, "survey", changed)
    return numbers


def test_a_checkpoint_that_a_survey_misses_is_noticed_by_the_next(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job beside it completes a checkpoint that needs claimed files, after its directory was listed."""
    names = claimed(root)
    lost = orphan(root / JOB / "shared")
    hidden = root.parent / "hidden"
    shutil.move(str(root / OTHER_JOB / "chk-5"), str(hidden))

    def change(number: int) -> None:
        if number == 1:
            shutil.move(str(hidden), str(root / OTHER_JOB / "chk-5"))

    numbers = surveys(monkeypatch, change)
    done = statetool.delete_orphans(str(root / JOB), retained=[str(root / "savepoint-5ca1ab-0123456789ab")])
    assert not {Path(row.path).name for row in done.moved} & names
    assert str(lost.name) in {Path(row.path).name for row in done.moved}
    assert len(numbers) == 4  # two that differ, one that agrees, and one afterwards


def test_metadata_that_always_changes_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed(root)
    lost = orphan(root / JOB / "shared")

    def change(number: int) -> None:
        shutil.move(str(root / OTHER_JOB / f"chk-{number + 5}"), str(root / OTHER_JOB / f"chk-{number + 6}"))

    surveys(monkeypatch, change)
    with pytest.raises(DirectoryInUseError, match="faster than they can be read"):
        statetool.delete_orphans(str(root / JOB))
    assert lost.exists()


@pytest.mark.parametrize("readable", [True, False])
def test_files_that_new_metadata_names_afterwards_are_moved_back(
    root: Path, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    claimed(root)
    hidden = root.parent / "hidden"
    shutil.move(str(root / OTHER_JOB / "chk-5"), str(hidden))
    if not readable:
        (hidden / "_metadata").write_bytes(b"?")
    before = tree_of(root)

    def change(number: int) -> None:
        if number == 2:
            shutil.move(str(hidden), str(root / OTHER_JOB / "chk-5"))

    surveys(monkeypatch, change)
    with pytest.raises(DirectoryInUseError, match="moved back"):
        statetool.delete_orphans(str(root / JOB))
    if readable:
        assert statetool.list_snapshots(str(root / OTHER_JOB))[0].complete
    else:
        # Any file may be needed.
        assert {name: data for name, data in tree_of(root).items() if "chk-5" not in name} == before


def test_an_interrupted_clean_up_can_be_restored(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends between the two names of a file, after some files were moved and before others."""
    lost = [orphan(root / JOB / "shared", f"{i}0000000-0000-4000-8000-000000000000") for i in range(1, 4)]
    before = tree_of(root)
    real, calls = targets.remove, []

    def remove(uri: str) -> None:
        if "shared" in uri:
            calls.append(uri)
            if len(calls) == 2:
                raise KeyboardInterrupt
        real(uri)

    monkeypatch.setattr(targets, "remove", remove)
    with pytest.raises(KeyboardInterrupt):
        statetool.delete_orphans(str(root))
    monkeypatch.undo()
    (trash_id,) = [p.name for p in (root / ".statetool-trash").iterdir()]
    assert not lost[0].exists()
    assert lost[1].exists()
    assert len(statetool.restore_deleted(str(root), trash_id)) == 2
    assert tree_of(root) == before


class Failing:
    """Calls of functions of the system for local files, of which the one of a number fails."""

    NAMES: Final = ("link", "unlink", "mkdir", "open", "fsync")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
        self.left = number
        self.error = error
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self.failing(getattr(os, name)))

    def failing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise self.error
            return function(*arguments, **options)

        return call


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), KeyboardInterrupt()])
@pytest.mark.parametrize("restoring", [False, True])
def test_failures_at_each_call_lose_no_file_and_block_nothing(
    root: Path, error: BaseException, restoring: bool
) -> None:
    """After each, a further clean-up and restores of all trash folders give the directory as it was."""
    for i in range(1, 4):
        orphan(root / JOB / "shared", f"{i}0000000-0000-4000-8000-000000000000")
    before, number, failed = tree_of(root), 0, True
    while failed:
        number += 1
        trash_id = statetool.delete_orphans(str(root)).trash_id if restoring else ""
        with pytest.MonkeyPatch.context() as patch:
            failing = Failing(patch, number, error)
            try:
                if restoring:
                    statetool.restore_deleted(str(root), trash_id)
                else:
                    statetool.delete_orphans(str(root))
            except (StatetoolError, OSError, KeyboardInterrupt):
                pass
            failed = failing.left <= 0
        statetool.delete_orphans(str(root))
        for folder in (root / ".statetool-trash").iterdir():
            if (folder / "manifest.json").exists():
                statetool.restore_deleted(str(root), folder.name)
        assert tree_of(root) == before, number
    assert number > 5


_DELETE: Final = "import sys, statetool; print('ready', flush=True); statetool.delete_orphans(sys.argv[1])"
_RESTORE: Final = "import sys, statetool; print('ready', flush=True); statetool.restore_deleted(*sys.argv[1:])"


@pytest.mark.full
def test_kills_lose_no_file_and_block_nothing(root: Path) -> None:
    """Processes that clean up and restore are killed after random times."""
    lost = [orphan(root / JOB / "shared") for _ in range(300)]
    before, chance, halves = tree_of(root), random.Random(1), 0
    for _ in range(int(os.environ.get("STATETOOL_CLEANUP_KILLS", "6"))):
        done = statetool.delete_orphans(str(root))
        for program, arguments in ((_RESTORE, [str(root), done.trash_id]), (_DELETE, [str(root)])):
            with subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(chance.random() * 0.4)
                process.kill()
            halves += 0 < sum(file.exists() for file in lost) < len(lost)
        statetool.delete_orphans(str(root))
        for folder in (root / ".statetool-trash").iterdir():
            if (folder / "manifest.json").exists():
                statetool.restore_deleted(str(root), folder.name)
        assert tree_of(root) == before
    print(f"{halves} kills in the middle")


def test_restore_never_overwrites(root: Path) -> None:
    first, second = orphan(root / JOB / "shared"), orphan(root / JOB / "shared")
    done = statetool.delete_orphans(str(root))
    first.write_bytes(b"another")
    with pytest.raises(TargetExistsError, match="1 file cannot be restored"):
        statetool.restore_deleted(str(root), done.trash_id)
    assert first.read_bytes() == b"another"
    assert second.exists()
    first.unlink()
    assert len(statetool.restore_deleted(str(root), done.trash_id)) == 1
    with pytest.raises(UnknownNameError, match=done.trash_id):
        statetool.restore_deleted(str(root), done.trash_id[:-1])
    manifest = root / ".statetool-trash" / done.trash_id / "manifest.json"
    manifest.write_text(json.dumps({"files": [{"path": "../x", "size_bytes": 1, "modified_ms": 1, "reason": ""}]}))
    with pytest.raises(FormatError, match="outside of the directory"):
        statetool.restore_deleted(str(root), done.trash_id)
    manifest.write_text("{")
    with pytest.raises(FormatError, match="manifest"):
        statetool.restore_deleted(str(root), done.trash_id)


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), -1, "9" * 400 + "d", True, "inf"])
def test_ages_that_are_none_are_refused(root: Path, wrong: float | str) -> None:
    for call in (statetool.orphans, statetool.delete_orphans):
        with pytest.raises(OptionError, match="is not a valid age"):
            call(str(root), min_age=wrong)


ROW: Final = {"path": "x", "size_bytes": 1, "modified_ms": 1, "reason": ""}


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"null",
        b"[]",
        b'{"files": 1}',
        b'{"files": [1]}',
        b'{"files": [{}]}',
        json.dumps({"files": [{**ROW, "more": 1}]}).encode(),
        json.dumps({"files": [{**ROW, "path": 1}]}).encode(),
        json.dumps({"files": [{**ROW, "path": ""}]}).encode(),
        json.dumps({"files": [{**ROW, "path": "a\0b"}]}).encode(),
        json.dumps({"files": [{**ROW, "path": "a/../../b"}]}).encode(),
        json.dumps({"files": [{**ROW, "path": "/b"}]}).encode(),
        json.dumps({"files": [{**ROW, "path": "\ud800"}]}).encode(),
        json.dumps({"files": [{**ROW, "size_bytes": "1"}]}).encode(),
        json.dumps({"files": [{**ROW, "size_bytes": 1e999}]}).encode(),
        json.dumps({"files": [{**ROW, "modified_ms": []}]}).encode(),
    ],
)
def test_odd_manifests_are_errors_of_one_line(root: Path, odd: bytes) -> None:
    lost = orphan(root / JOB / "shared")
    done = statetool.delete_orphans(str(root))
    manifest = root / ".statetool-trash" / done.trash_id / "manifest.json"
    manifest.write_bytes(odd)
    refused = run("orphans", str(root), "--restore", done.trash_id)
    assert refused.exit_code == 3, refused.output
    assert "Traceback" not in refused.output
    assert "manifest" in refused.stderr
    assert not lost.exists()


def test_a_manifest_that_is_a_directory_is_an_error(root: Path) -> None:
    orphan(root / JOB / "shared")
    done = statetool.delete_orphans(str(root))
    manifest = root / ".statetool-trash" / done.trash_id / "manifest.json"
    manifest.unlink()
    manifest.mkdir()
    with pytest.raises(StatetoolError):
        statetool.restore_deleted(str(root), done.trash_id)


@pytest.mark.parametrize("case", ["rocksdb-native", "rocksdb-incremental", "hashmap-canonical"])
def test_a_path_with_nul_is_an_error_of_one_line(corpus: Path, tmp_path: Path, case: str) -> None:
    shutil.copytree(corpus / f"v2_3_0-{case}" / "snapshot", tmp_path / "top" / "job")
    metadata = max((tmp_path / "top").rglob("_metadata"))
    data = metadata.read_bytes()
    names = [f.name.encode() for f in (tmp_path / "top").rglob("*") if f.name.encode() in data]
    snapshot, root = str(metadata.parent), str(tmp_path / "top")
    for name in (min(names), max(names)):
        metadata.write_bytes(data.replace(name, name[:-1] + b"\0"))
        age(tmp_path / "top")
        for command, *arguments in (
            ["verify", snapshot],
            ["verify", snapshot, "--deep"],
            ["check", snapshot, "--flink", "2.3"],
            ["copy", snapshot, str(tmp_path / "copy")],
            ["convert", snapshot, str(tmp_path / "copy")],
            ["info", snapshot],
            ["ls", root],
            ["chain", root],
            ["orphans", root],
            ["orphans", root, "--delete"],
            ["chain", root, "--delete", metadata.parent.name],
        ):
            result = run(command, *arguments)
            assert isinstance(result.exception, SystemExit | None), (command, result.exception)
            assert "Traceback" not in result.output
        assert "NUL" in run("verify", snapshot).output
        assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("wrong", ["", "..", "x/..", "a\0b"])
def test_names_that_are_no_trash_folders_are_refused(root: Path, wrong: str) -> None:
    orphan(root / JOB / "shared")
    statetool.delete_orphans(str(root))
    with pytest.raises(UnknownNameError, match="has no trash folder"):
        statetool.restore_deleted(str(root), wrong)


def test_a_checkpoint_is_deleted_with_the_files_that_only_it_needs(root: Path) -> None:
    before = tree_of(root)
    freed = {r.checkpoint_id: r for r in statetool.chain(str(root / JOB)).checkpoints}[3]
    done = statetool.delete_checkpoint(str(root / JOB), 3)
    assert done.moved[0].path == "chk-3/_metadata"
    assert sum(row.size_bytes for row in done.moved) == freed.freed_bytes
    assert len(done.moved) == freed.freed_files + 1
    left = {r.checkpoint_id: r for r in statetool.list_snapshots(str(root / JOB))}
    assert left[4].complete
    assert statetool.verify(str(root / JOB / "chk-4"), deep=True).ok
    restored = statetool.restore_deleted(str(root / JOB), done.trash_id)
    assert restored[-1].path == "chk-3/_metadata"
    assert tree_of(root) == before
    assert statetool.verify(str(root / JOB / "chk-3"), deep=True).ok


def test_the_newest_checkpoint_and_unknown_ones_are_not_deleted(root: Path) -> None:
    with pytest.raises(OptionError, match="newest complete snapshot"):
        statetool.delete_checkpoint(str(root / JOB), 4)
    with pytest.raises(UnknownNameError, match="'7'"):
        statetool.delete_checkpoint(str(root / JOB), "7")
    link(root / JOB, root / OTHER_JOB)
    with pytest.raises(OptionError, match="2 snapshots have the id 3"):
        statetool.delete_checkpoint(str(root), "3")
    age(root)
    done = statetool.delete_checkpoint(str(root), str(root / JOB / "chk-3"))
    # The other job's copy names files with the same names, so only the metadata moves.
    assert [row.path for row in done.moved] == [f"{JOB}/chk-3/_metadata"]


def test_a_young_file_refuses_the_deletion_of_a_checkpoint(root: Path) -> None:
    orphan(root / JOB / "shared", days=0)
    with pytest.raises(DirectoryInUseError):
        statetool.delete_checkpoint(str(root / JOB), 3)
    assert (root / JOB / "chk-3" / "_metadata").exists()


def test_a_running_job_of_the_cluster_refuses(root: Path, tmp_path: Path) -> None:
    lost = orphan(root / JOB / "shared")
    with flink_rest("2.3", tmp_path / "cluster") as rest:
        assert statetool.delete_orphans(str(root), cluster=rest.url).moved
        running = rest.jobs["orders"]
        orphan(root / running / "shared")
        with pytest.raises(DirectoryInUseError, match="has its directory there"):
            statetool.delete_orphans(str(root), cluster=rest.url)
        with pytest.raises(DirectoryInUseError, match=r"uses .*checkpoints"):
            statetool.delete_orphans(str(tmp_path / "cluster"), cluster=rest.url)
        refused = run("orphans", str(root), "--delete", "--cluster", rest.url)
        assert refused.exit_code == 3
        with pytest.raises(OptionError, match="not the URL of a cluster"):
            statetool.delete_orphans(str(root), cluster="localhost")
    assert not lost.exists()


def test_object_stores_copy_before_they_delete(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = fsspec.filesystem("memory")
    orphan(root / JOB / "shared")
    fs.put(str(root), "/cleanup", recursive=True)
    try:
        from datetime import datetime, timedelta, timezone

        then = datetime.now(timezone.utc) - timedelta(days=30)
        for name in fs.find("/cleanup"):
            fs.store[name].created = fs.store[name].modified = then
        uri = "memory://cleanup"
        done = statetool.delete_orphans(uri)
        assert len(done.moved) == 1
        assert not fs.exists(f"/cleanup/{done.moved[0].path}")
        assert statetool.orphans(uri, min_age=0) == []
        statetool.restore_deleted(uri, done.trash_id)
        assert fs.exists(f"/cleanup/{done.moved[0].path}")
    finally:
        fs.rm("/cleanup", recursive=True)


def test_commands(root: Path) -> None:
    lost = orphan(root / JOB / "shared")
    done = run("orphans", str(root), "--delete", "--older-than", "8d")
    assert done.exit_code == 0, done.output
    assert not lost.exists()
    command = done.stderr.rpartition("run: statetool ")[2].split()
    assert run(*command).exit_code == 0
    assert lost.exists()
    assert run("orphans", str(root), "--delete").exit_code == 0
    assert "nothing to delete" in run("orphans", str(root), "--delete").stderr
    done = run("chain", str(root / JOB), "--delete", "3", "--output", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["path"] == "chk-3/_metadata"


def test_trash_is_no_snapshot(root: Path) -> None:
    trash = Trash.new(str(root))
    assert Path(trash.folder).parent == root / ".statetool-trash"
    statetool.delete_checkpoint(str(root / JOB), 3)
    assert [s.checkpoint_id for s in statetool.list_snapshots(str(root))] == [2, 4]
    assert statetool.orphans(str(root), min_age=0) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("shared/{}", True),
        ("x/shared/{}", True),
        ("chk-1/{}", True),
        ("taskowned/job_1_tm_2/{}", True),
        ("savepoint-5ca1ab-0123456789ab/{}", True),
        ("savepoint-5ca1ab-0123456789ab/" + "0" * 32 + "-keyed-{}", True),
        ("{}", False),
        ("shared/x/{}", False),
        ("shared/{}.sst", False),
        ("shared/job_1/db/{}", False),
        ("chk-1/_metadata", False),
        ("chk-x/{}", False),
    ],
)
def test_names_of_state_files(path: str, expected: bool) -> None:
    assert is_state_file(f"/jobs/{path.format(uuid.uuid4())}", "/jobs") is expected


def test_replaced_files_are_not_hard_links(root: Path) -> None:
    """The copies of the fixture are independent of the corpus."""
    replace_file(root / JOB / "chk-3" / "_metadata", b"")
    assert (root / JOB / "chk-4" / "_metadata").stat().st_nlink == 1


def test_the_url_of_a_job_is_refused() -> None:
    for delete in (statetool.delete_orphans, lambda url: statetool.delete_checkpoint(url, 1)):
        with pytest.raises(OptionError, match="is the URL of a job"):
            delete("flink://localhost:1/orders")
