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


def polled(*polls: float, batch: tuple[float, int] | None = None) -> BatchTimes:
    """Beside a job that keeps two checkpoints and takes one each 10 s, the newest at 60 s."""
    found = times(range(3, 5), range(5, 7), period_ms=10_000)
    for now in polls:
        if batch is not None and now > batch[0]:
            found.start_batch(*batch)
            batch = None
        found.add_poll(now)
    return found


@pytest.mark.parametrize(
    ("polls", "least"),
    [
        ((0.0, 0.1, 0.2, 5.2), 4.9),  # polls follow each other at once: the batch took nearly all of 5 s
        ((0.0, 5.0), 0.0),  # no pause is known
        ((0.0, 4.0, 8.0), 0.0),  # polls are 4 s apart: the batch may have been short
        ((0.0, 4.0, 8.0, 16.0), 4.0),
    ],
)
def test_a_batch_took_at_least_the_time_without_the_pause_before_the_next_poll(
    polls: tuple[float, ...], least: float
) -> None:
    found = polled(*polls, batch=(polls[-2], 6))
    assert found.least_read_s == pytest.approx(least)


@pytest.mark.parametrize(
    ("read_s", "now_s", "readable"),
    [
        (4.9, 61, (5, 6)),
        (4.9, 66, (6,)),  # 5 is deleted at 70, when 7 is complete
        (19.9, 66, ()),  # the next one will be readable
        (20.9, 66, (5, 6)),  # none will ever be
        (0.0, 66, (5, 6)),
        (
            4.9,
            71,
            (5, 6),
        ),  # 5 should not exist any more: the clocks differ, or the checkpoint that replaces it takes long
    ],
)
def test_checkpoints_that_can_be_read_in_time(read_s: float, now_s: float, readable: tuple[int, ...]) -> None:
    found = times(range(3, 5), range(5, 7), period_ms=10_000)
    found.least_read_s = read_s
    assert found.readable((5, 6), now_s * 1000) == readable


def test_all_are_read_if_no_deletion_is_known() -> None:
    found = times(range(5, 7), period_ms=10_000)
    found.least_read_s = 4.9
    assert found.readable((5, 6), 66_000) == (5, 6)
