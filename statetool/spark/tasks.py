"""Execution of functions of other layers as Spark tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from statetool.columns.arrays import as_binary
from statetool.errors import StatetoolError
from statetool.spark.schema import spark_schema
from statetool.spark.workers import begin_task, check_workers, is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
#: Function that takes the indexes of items, and yields each with its result.
Called = Callable[[Iterable[int]], Iterator[tuple[int, Any]]]
#: A variable that Spark sets for the workers of queries, and the setting that controls it.
_SHORT: Final = "SPARK_SIMPLIFIED_TRACEBACK"
_SHORT_IN_QUERIES: Final = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
#: Result of tasks: one pickled object per row.
RESULT: Final = pa.schema([pa.field("result", pa.binary())])


def run_tasks(
    spark: SparkSession, function: Callable[[T], R], items: Sequence[T], *, tasks: int | None = None
) -> list[R]:
    """Call a function for each item and return the results in order; works on Spark Connect too.

    Parameters
    ----------
    function
        Runs in tasks; picklable, like items and results. The executors need statetool and its dependencies.
    tasks
        Number of tasks, by default one per item.

    Raises
    ------
    StatetoolError
        Error raised in a task. Spark would retry, and convert it to text.
    """
    if not items:
        return []
    check_workers(spark)
    # Each task unpickles only its own items.
    pickled = [pickle.dumps(item) for item in items]

    def called(numbers: Iterable[int]) -> Iterator[tuple[int, R | StatetoolError]]:
        for number in numbers:
            try:
                yield number, function(pickle.loads(pickled[number]))
            except StatetoolError as error:
                yield number, error

    count = min(len(items), tasks or len(items))
    run = _run_by_query if is_remote(spark) else _run
    results = dict(run(spark, called, len(items), count))
    for result in results.values():
        if isinstance(result, StatetoolError):
            raise result
    return [results[i] for i in range(len(items))]


def _run(spark: Any, called: Called, size: int, tasks: int) -> list[tuple[int, Any]]:
    """Run tasks on indexes without a query: planning one and moving rows by Arrow make a first job two seconds longer."""

    def run(numbers: Iterator[int]) -> Iterator[tuple[int, Any]]:
        begin_task()
        return called(numbers)

    context = spark.sparkContext
    with _workers_of_queries(spark):
        return list(context.parallelize(range(size), tasks).mapPartitions(run).collect())


@contextmanager
def _workers_of_queries(spark: Any) -> Iterator[None]:
    """Give tasks the same environment as the session's queries, to share their workers: Spark starts others if the environment differs."""
    environment = spark.sparkContext.environment
    if _SHORT in environment or spark.conf.get(_SHORT_IN_QUERIES, "true") != "true":
        yield
        return
    environment[_SHORT] = "1"
    try:
        yield
    finally:
        environment.pop(_SHORT, None)


def _run_by_query(spark: Any, called: Called, size: int, tasks: int) -> list[tuple[int, Any]]:
    """Run tasks on indexes by a query: a Spark Connect server supports nothing else."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            yield from map(result_batch, called(batch.column(0).to_pylist()))

    rows = spark.range(0, size, 1, tasks).mapInArrow(run, spark_schema(RESULT)).collect()
    return [pickle.loads(row.result) for row in rows]


def result_batch(result: object) -> pa.RecordBatch:
    """Return an object as a batch of results."""
    return pa.RecordBatch.from_arrays([as_binary([pickle.dumps(result)])], schema=RESULT)
