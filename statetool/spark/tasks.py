"""Execution of functions of other layers as Spark tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from statetool.columns.arrays import as_binary
from statetool.errors import StatetoolError
from statetool.spark.private import is_remote
from statetool.spark.stages import stages_of_items
from statetool.spark.workers import begin_task, check_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
#: Function that takes pickled items with their numbers, and yields each number with its result.
Call = Callable[[Iterable[bytes]], Iterator[tuple[int, Any]]]
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

    def call(pickled: Iterable[bytes]) -> Iterator[tuple[int, R | StatetoolError]]:
        for number, item in (pickle.loads(p) for p in pickled):
            try:
                yield number, function(item)
            except StatetoolError as error:
                yield number, error

    count = min(len(items), tasks or len(items))
    run = _run_by_query if is_remote(spark) else _run
    results = dict(run(spark, call, [pickle.dumps(numbered) for numbered in enumerate(items)], count))
    for result in results.values():
        if isinstance(result, StatetoolError):
            raise result
    return [results[i] for i in range(len(items))]


def _run(spark: Any, call: Call, items: Sequence[bytes], tasks: int) -> list[tuple[int, Any]]:
    """Run tasks without a query: planning one and moving rows by Arrow make a first job two seconds longer."""

    def run(own_items: Iterator[bytes]) -> Iterator[tuple[int, Any]]:
        begin_task()
        return call(own_items)

    context = spark.sparkContext
    with _workers_of_queries(spark):
        return list(context.parallelize(items, tasks).mapPartitions(run).collect())


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


def _run_by_query(spark: Any, call: Call, items: Sequence[bytes], tasks: int) -> list[tuple[int, Any]]:
    """Run tasks by a query: a Spark Connect server supports nothing else."""

    def run(portions: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
        for portion in portions:
            yield from map(result_batch, call(pickle.loads(portion)))

    bounds = [len(items) * i // tasks for i in range(tasks + 1)]
    portions = [pickle.dumps(items[start:end]) for start, end in pairwise(bounds)]
    rows = stages_of_items(portions, run, RESULT).frame(spark).collect()
    return [pickle.loads(row.result) for row in rows]


def result_batch(result: object) -> pa.RecordBatch:
    """Return an object as a batch of results."""
    return pa.RecordBatch.from_arrays([as_binary([pickle.dumps(result)])], schema=RESULT)
