"""Run functions of other layers as Spark tasks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa

from statetool.columns.arrays import as_binary
from statetool.errors import StatetoolError
from statetool.spark.schema import spark_schema
from statetool.spark.workers import begin_task, check_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
#: What tasks return: a pickled object a row.
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
        How many tasks there are, by default one an item.

    Raises
    ------
    StatetoolError
        What a task raised; Spark would try again, and turn it into text.
    """
    if not items:
        return []
    check_workers(spark)
    # Each task unpickles its own items only.
    pickled = [pickle.dumps(item) for item in items]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    result: R | StatetoolError = function(pickle.loads(pickled[number]))
                except StatetoolError as error:
                    result = error
                yield result_batch((number, result))

    numbers = spark.range(0, len(items), 1, min(len(items), tasks or len(items)))
    rows = numbers.mapInArrow(run, spark_schema(RESULT)).collect()
    results = dict(pickle.loads(row.result) for row in rows)
    for result in results.values():
        if isinstance(result, StatetoolError):
            raise result
    return [results[i] for i in range(len(items))]


def result_batch(result: object) -> pa.RecordBatch:
    """Return an object as a batch of results."""
    return pa.RecordBatch.from_arrays([as_binary([pickle.dumps(result)])], schema=RESULT)
