"""DataFrames whose rows go to tasks: batches, and the related settings of the session."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from statetool.spark import tables
from statetool.spark.tables import collect_rows, map_in_arrow

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "sum": [sum(batch.column(0).to_pylist())]})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [128, 128, 44]),
        ({ROWS: "100"}, [100, 100, 100]),
        ({ROWS: "0"}, [128, 128, 44]),
        ({BYTES: "64MB"}, [128, 128, 44]),
    ],
)
def test_the_jvm_hands_over_few_rows_at_a_time(spark: Any, given: dict[str, str], expected: list[int]) -> None:
    session = spark.newSession()
    for name, value in given.items():
        session.conf.set(name, value)
    frame = session.range(0, 300, 1, 1).mapInArrow(sizes, "rows LONG, sum LONG")
    assert [row.rows for row in collect_rows(frame)] == expected
    assert {name: session.conf.get(name, None) for name in (ROWS, BYTES)} == {ROWS: None, BYTES: None} | given


def test_small_rows_come_in_batches_of_spark_if_it_limits_their_bytes(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    frame = session.range(0, 300, 1, 1).mapInArrow(sizes, "rows LONG, sum LONG")
    assert [row.rows for row in collect_rows(frame, large=False)] == [300]
    wide = session.range(0, 100, 1, 1).selectExpr("id", "repeat('x', 2000000) AS text")
    assert max(row.rows for row in collect_rows(wide.mapInArrow(sizes, "rows LONG, sum LONG"), large=False)) < 50
    monkeypatch.setattr(tables, "_MOST_BYTES", "spark.sql.unknown")  # as in earlier releases
    assert [row.rows for row in collect_rows(frame, large=False)] == [128, 128, 44]


def test_settings_are_as_before_where_a_task_fails(spark: Any) -> None:
    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ZeroDivisionError

    session = spark.newSession()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        collect_rows(session.range(1).mapInArrow(fails, "id LONG"))
    assert session.conf.get(ROWS, None) is None


def test_tasks_get_batches_of_many_rows_and_of_bounded_bytes(spark: Any) -> None:
    session = spark.newSession()
    (all_rows,) = collect_rows(map_in_arrow(session.range(0, 3000, 1, 1), sizes, "rows LONG, sum LONG"))
    assert (all_rows.rows, all_rows.sum) == (3000, 3000 * 2999 // 2)
    wide = session.range(0, 300, 1, 1).selectExpr("id", "repeat('x', 200000) AS text")  # 128 rows are 25 MB
    assert [row.rows for row in collect_rows(map_in_arrow(wide, sizes, "rows LONG, sum LONG"))] == [256, 44]


@pytest.mark.parametrize(
    ("given", "by_default", "is_limited"),
    [(None, "2147483647", False), (None, "64MB", True), ("2147483647", "64MB", True)],
)
def test_a_default_without_a_limit_is_not_the_choice_of_the_user(
    given: str | None, by_default: str, is_limited: bool
) -> None:
    def get(_: str, *default: None) -> str | None:
        return given if default else given or by_default

    assert tables._limits_bytes(SimpleNamespace(conf=SimpleNamespace(get=get))) is is_limited
