"""Run functions of other layers as Spark tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


def run_tasks(spark: SparkSession, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Call a function for each item, one task an item, and return the results in order.

    Parameters
    ----------
    function
        Runs in tasks; picklable, like items and results. The executors need statetool and its dependencies.
    """
    if not items:
        return []
    results: list[R] = spark.sparkContext.parallelize(items, len(items)).map(function).collect()
    return results
