"""Selection of the next checkpoints to read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from statetool.errors import OptionError, SnapshotNotFoundError, UnsupportedError
from statetool.io.listing import list_files
from statetool.operations.directories.following import (
    BEFORE_ALL,
    FollowOptions,
    Step,
    completed_checkpoints,
    first_offset,
    next_step,
)
from tests.support.snapshots.trees import JOB, checkpoint_root, link, replace_file


@pytest.fixture
def root(corpus: Path, tmp_path: Path) -> Path:
    """Return a directory with checkpoints 3 and 4, and copies of 4 as 5 to 12, a minute apart."""
    root = checkpoint_root(corpus, tmp_path)
    job = root / JOB
    for number in range(3, 13):
        folder = job / f"chk-{number}"
        if number > 4:
            link(job / "chk-4", folder)
        data = bytearray((folder / "_metadata").read_bytes())
        data[8:16] = number.to_bytes(8, "big")
        replace_file(folder / "_metadata", bytes(data))
        os.utime(folder / "_metadata", (1_700_000_000 + 60 * number,) * 2)
    return root


def steps(root: Path, **options: Any) -> list[Step]:
    """Return all steps of a reader that starts from scratch."""
    follow = FollowOptions(**options)
    found = completed_checkpoints(str(root))
    after, taken = first_offset(found, follow), []
    while (step := next_step(found, after, follow, follow.most)).chosen:
        taken.append(step)
        after = step.chosen[-1]
    return taken


def chosen(root: Path, **options: Any) -> list[tuple[int, ...]]:
    return [s.chosen for s in steps(root, **options)]


def test_checkpoints_in_the_order_of_their_ids(root: Path) -> None:
    assert [h.checkpoint_id for h in completed_checkpoints(str(root))] == [*range(3, 13)]
    assert steps(root) == [Step(chosen=tuple(range(3, 13)), behind=0, is_backlog=False)]
    assert chosen(root, most=4) == [(3, 4, 5, 6), (7, 8, 9, 10), (11, 12)]
    assert [s.behind for s in steps(root, most=4)] == [6, 2, 0]
    assert chosen(root, starting=5, ending=7) == [(5, 6, 7)]
    assert chosen(root, starting="latest") == [(12,)]
    assert chosen(root, starting=40) == []


def test_backlog(root: Path) -> None:
    assert steps(root, threshold=5) == [Step(chosen=(12,), behind=0, is_backlog=True)]
    assert chosen(root, threshold=5, backlog_interval_ms=180_000) == [(3, 6, 9, 12)]
    assert chosen(root, threshold=5, backlog_interval_ms=180_000, most=2) == [(3, 6), (7, 10), (11, 12)]
    assert chosen(root, threshold=9, skip_backlog=True) == [(12,)]
    assert chosen(root, threshold=10, skip_backlog=True) == [(*range(3, 13),)]


def test_an_interval_below_that_of_the_job_leaves_out_none_and_says_so(root: Path) -> None:
    with pytest.warns(UserWarning, match=r"intervalDuringBacklog=59999 .* leaves out none"):
        assert chosen(root, threshold=5, backlog_interval_ms=59_999) == [(*range(3, 13),)]


def test_the_newest_waits_until_it_is_whole(root: Path) -> None:
    metadata = root / JOB / "chk-12" / "_metadata"
    replace_file(metadata, metadata.read_bytes()[:1000])
    assert chosen(root) == [(*range(3, 12),)]


def test_metadata_of_an_unknown_version_is_said_and_not_waited_for(root: Path) -> None:
    newest = root / JOB / "chk-12" / "_metadata"
    data = newest.read_bytes()
    replace_file(newest, data[:4] + (99).to_bytes(4, "big") + data[8:])
    with pytest.raises(UnsupportedError, match="chk-12 has metadata version 99"):
        steps(root)


def test_two_jobs_are_refused(root: Path) -> None:
    link(root / JOB / "chk-4", root / ("ab" * 16) / "chk-4")
    with pytest.raises(OptionError, match=r"4 exists twice.*one job"):
        completed_checkpoints(str(root))
    assert first_offset([], FollowOptions()) == BEFORE_ALL


def test_options_that_make_no_sense_are_refused() -> None:
    assert FollowOptions.parse(
        {"startingCheckpoint": "7", "backlogThreshold": "3", "skipBacklog": "TRUE"}
    ) == FollowOptions(starting=7, threshold=3, skip_backlog=True)
    assert FollowOptions.parse({"changes": "true"}) == FollowOptions.parse({"mode": "changes"})
    assert FollowOptions.parse({"mode": "changes", "initialRows": "false"}) == FollowOptions(
        changes=True, initial_rows=False
    )
    for wrong in (
        {"mode": "some"},
        {"mode": "full", "changes": "true"},
        {"mode": "changes", "changes": "false"},
        {"initialRows": "false"},
        {"startingCheckpoint": "first"},
        {"maxSnapshotsPerTrigger": "0"},
        {"skipBacklog": "true"},
        {"intervalDuringBacklog": "10"},
        {"backlogThreshold": "-1"},
        {"failOnDataLoss": "maybe"},
        {"startingCheckpoint": "7", "endingCheckpoint": "6"},
    ):
        with pytest.raises(OptionError):
            FollowOptions.parse(wrong)


def test_a_directory_that_is_deleted_while_it_is_listed_is_left_out(tmp_path: Path) -> None:
    for name in ("chk-1", "chk-2", "chk-3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_metadata").write_bytes(b"")
    listing = list_files(str(tmp_path))
    assert next(listing).uri == str(tmp_path / "chk-1" / "_metadata")
    shutil.rmtree(tmp_path / "chk-2")
    assert [f.uri for f in listing] == [str(tmp_path / "chk-3" / "_metadata")]
    with pytest.raises(SnapshotNotFoundError):
        list(list_files(str(tmp_path / "nothing")))
