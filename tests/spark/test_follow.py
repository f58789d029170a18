"""The job that follows checkpoints, and its restarts with a query whose checkpoints Flink deletes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import statetool
from statetool.errors import CheckpointDeletedError
from statetool.jobs import follow
from tests.support.spark.data_sources import data_sources
from tests.support.spark.followed import follow_a_job

ARGUMENTS = ["/checkpoints", "--uid", "counts", "--target", "/table", "--offsets", "/offsets"]


@pytest.mark.full
@data_sources
def test_a_table_is_the_state(spark: Any, tmp_path: Path) -> None:
    """By a stream, or before PySpark 4.2 by batches of changes (``nox -s lakes`` has PySpark 4.0)."""
    target = str(tmp_path / "table")
    for truth in follow_a_job(tmp_path, target, "parquet"):
        assert {row.key: bytes(row.a) for row in statetool.read_folded(spark, target).collect()} == truth


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
