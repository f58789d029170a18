"""Restarts of the job that follows checkpoints, with a query whose checkpoints Flink deletes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from unittest.mock import MagicMock

import pytest

import statetool
from statetool.errors import CheckpointDeletedError
from statetool.jobs import follow

ARGUMENTS = ["/checkpoints", "--operator", "counts", "--target", "/table", "--offsets", "/offsets"]


def _queries(rows: int, restarts: int) -> Iterator[MagicMock]:
    """Yield queries that each complete another batch and then meet a deleted checkpoint; the last one ends."""
    for batch in count():
        progress = {"batchId": batch, "numInputRows": rows}
        query = MagicMock(lastProgress=progress, recentProgress=[progress])
        if batch < restarts:
            query.awaitTermination.side_effect = CheckpointDeletedError("deleted")
        yield query


@pytest.mark.parametrize(
    ("once", "rows", "restarts", "code", "starts"),
    [
        (True, 0, 99, 3, 6),  # batches without rows: each checkpoint was deleted before it was read
        (True, 1, 20, 0, 21),
        (False, 0, 20, 0, 21),  # a continuous job waits for the next checkpoint
    ],
)
def test_a_job_that_ends_stops_if_it_reads_nothing(
    monkeypatch: pytest.MonkeyPatch, once: bool, rows: int, restarts: int, code: int, starts: int
) -> None:
    start = MagicMock(side_effect=_queries(rows, restarts))
    stream = MagicMock()
    stream.trigger.return_value.start = start
    spark = MagicMock()
    frame = spark.readStream.format.return_value.options.return_value.load.return_value
    frame.writeStream.foreachBatch.return_value.option.return_value = stream
    monkeypatch.setattr(follow, "local_session", lambda **_: spark)
    monkeypatch.setattr(statetool, "register", lambda _: None)
    monkeypatch.setattr(statetool, "fold_into", lambda *_, **__: None)
    assert follow.main([*ARGUMENTS, *(["--once"] if once else [])]) == code
    assert start.call_count == starts


@pytest.mark.parametrize(("given", "trigger"), [("5", "5 seconds"), ("1 minute", "1 minute")])
def test_a_number_alone_is_seconds(monkeypatch: pytest.MonkeyPatch, given: str, trigger: str) -> None:
    spark = MagicMock()
    monkeypatch.setattr(follow, "local_session", lambda **_: spark)
    monkeypatch.setattr(statetool, "register", lambda _: None)
    monkeypatch.setattr(statetool, "fold_into", lambda *_, **__: None)
    assert follow.main([*ARGUMENTS, "--every", given]) == 0
    frame = spark.readStream.format.return_value.options.return_value.load.return_value
    frame.writeStream.foreachBatch.return_value.option.return_value.trigger.assert_called_once_with(
        processingTime=trigger
    )
