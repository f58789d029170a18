"""The number of checkpoints that a job must keep for batches of some duration."""

from __future__ import annotations

import pytest

from statetool.io.retention import BatchTimes


def times(*listings: range, period_ms: int = 2000) -> BatchTimes:
    found = BatchTimes()
    for listing in listings:
        found.add_listing({number: number * period_ms for number in listing})
    return found


@pytest.mark.parametrize(
    ("seconds", "oldest", "needed"), [(4.0, 6, None), (4.1, 6, 4), (1.9, 5, None), (2.1, 5, 4), (40.0, 4, 23)]
)
def test_the_number_of_checkpoints_to_keep(seconds: float, oldest: int, needed: int | None) -> None:
    found = times(range(1, 4), range(4, 7))
    found.start_batch(100.0, oldest)
    advice = found.end_batch(100.0 + seconds)
    if needed is None:
        assert advice is None
    else:
        assert advice == (
            f"batches start {seconds} s apart, and the job deletes a checkpoint after about 6.0 s "
            "(it keeps 3 checkpoints, and takes one each 2.0 s). "
            f"To read each one before it is deleted, set execution.checkpointing.num-retained: {needed}"
        )
    assert found.end_batch(1000.0) is None  # no batch since


def test_short_reads_beside_a_job_that_keeps_one_checkpoint() -> None:
    found = times(range(1, 2), range(2, 3))
    for seconds, warns in ((0.01, False), (0.03, True)):
        found.start_batch(0.0, 2)
        assert (found.end_batch(seconds) is not None) == warns


def test_too_little_is_known() -> None:
    for found in (
        times(range(4, 7)),
        times(range(1, 3), range(1, 4)),  # none was deleted
        times(range(1, 2), range(0), range(2, 2)),
        times(range(1, 4), range(4, 7), period_ms=0),
    ):
        found.start_batch(0.0, 4)
        assert found.end_batch(1000.0) is None


def test_checkpoints_that_are_not_listed_take_time_too() -> None:
    found = times(range(1, 3), range(11, 13), range(21, 24), range(31, 33))
    assert found.retained == 2  # at the third listing, one was not deleted yet
    found.start_batch(0.0, 32)
    assert "takes one each 2.0 s" in str(found.end_batch(60.0))
