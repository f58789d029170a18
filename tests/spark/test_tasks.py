"""Functions that run as tasks: without a query if possible, in the same workers as queries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from statetool.errors import FormatError
from statetool.spark.tasks import run_tasks

SHORT_TRACES = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"


def square(number: int) -> int:
    if number < 0:
        raise FormatError("a number below zero", hint="take another one")
    return number * number


def daemon_of(_: object) -> int:
    return os.getppid()


def daemon_of_queries(spark: Any) -> int:
    def daemon(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"daemon": pa.array([os.getppid()], pa.int64())})

    return int(spark.range(0, 1, 1, 1).mapInArrow(daemon, "daemon BIGINT").collect()[0].daemon)


@pytest.mark.parametrize("tasks", [None, 1, 2, 9])
def test_results_come_in_the_order_of_the_items(spark: Any, tasks: int | None) -> None:
    assert run_tasks(spark, square, [3, 1, 2], tasks=tasks) == [9, 1, 4]
    assert run_tasks(spark, square, [], tasks=tasks) == []


def test_an_error_of_ours_is_raised_as_itself(spark: Any) -> None:
    with pytest.raises(FormatError, match="a number below zero"):
        run_tasks(spark, square, [1, -1])


@pytest.mark.parametrize("short", ["true", "false"])
def test_queries_have_the_same_workers(spark: Any, short: str) -> None:
    session = spark.newSession()
    session.conf.set(SHORT_TRACES, short)
    before = dict(spark.sparkContext.environment)
    assert run_tasks(session, daemon_of, [0]) == [daemon_of_queries(session)]
    assert spark.sparkContext.environment == before
