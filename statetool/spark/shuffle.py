"""Deal what tasks make out to other tasks: one Spark shuffle between two functions of other layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from statetool.errors import StatetoolError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")


def deal_and_gather(
    spark: SparkSession,
    deal: Callable[[T], Iterable[tuple[int, P]]],
    items: Sequence[T],
    gather: Callable[[int, Iterator[P]], R],
    parts: int,
) -> list[R]:
    """Call ``deal`` for each item, and ``gather`` for each part with all that was dealt to it, in no fixed order.

    Parameters
    ----------
    deal, gather
        Run in tasks; picklable, like items, what is dealt, and results.
    parts
        How many parts there are: one task each.

    Returns
    -------
    list
        One result a part, in order.

    Raises
    ------
    StatetoolError
        What a task raised; Spark would turn it into text.
    """

    def dealt(item: T) -> Iterator[tuple[int, P | StatetoolError]]:
        try:
            yield from deal(item)
        except StatetoolError as error:
            yield 0, error

    def gathered(part: int, rows: Iterator[tuple[int, P | StatetoolError]]) -> Iterator[R | StatetoolError]:
        try:
            yield gather(part, map(_unfailed, rows))
        except StatetoolError as error:
            yield error

    context = spark.sparkContext
    some = context.parallelize(items, max(1, len(items))).flatMap(dealt)
    results = some.partitionBy(parts, _itself).mapPartitionsWithIndex(gathered).collect()
    failed = [r for r in results if isinstance(r, StatetoolError)]
    if failed:
        raise failed[0]
    return list(results)


def _itself(part: int) -> int:
    return part


def _unfailed(row: tuple[int, P | StatetoolError]) -> P:
    if isinstance(row[1], StatetoolError):
        raise row[1]
    return row[1]
