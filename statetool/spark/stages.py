"""Functions that run as tasks over items, such as splits: each task receives only its own items.

The items are rows of the plan. Spark sends the function of a query to every task, so a function that held thousands of items would make the
work of all tasks together quadratic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from statetool.columns.arrays import as_binary
from statetool.spark.schema import spark_schema
from statetool.spark.workers import begin_task

Batches: TypeAlias = Iterator[pa.RecordBatch]
#: Pickled items in, rows out.
ItemTask: TypeAlias = Callable[[Iterator[bytes]], Batches]
#: Up to this many items stay in the function: to unpickle them takes a task a millisecond, less than a shuffle.
FEW_ITEMS: Final = 32
ITEMS: Final = pa.schema([pa.field("item", pa.binary())])
_BATCH_ITEMS: Final = 256
_BATCH_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A function over the rows of the stage before it.

    Its rows are then dealt evenly to ``partitions``; ``None`` leaves them in the partitions of the stage before.
    """

    function: Callable[[Batches], Batches]
    schema: pa.Schema
    partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Stages of a query. The first one reads the numbers from 0 to ``count``, each in a separate partition unless ``one_task``."""

    count: int
    one_task: bool = False
    stages: tuple[Stage, ...]

    def frame(self, spark: Any) -> Any:
        """Return the rows of the last stage as a DataFrame."""
        frame = spark.range(0, self.count, 1, 1 if self.one_task else max(1, self.count))
        for stage in self.stages:
            frame = frame.mapInArrow(stage.function, spark_schema(stage.schema))
            if stage.partitions is not None:
                frame = frame.repartition(stage.partitions)
        return frame


def stages_of_items(items: Sequence[bytes], task: ItemTask, schema: pa.Schema, *, one_task: bool = False) -> Stages:
    """Return the stages that call a function for each pickled item in a separate task, or with ``one_task`` in a single one.

    The rows of a single task pass through a shuffle, so that it reads all items before a LIMIT begins. A LIMIT that is satisfied early would
    stop the worker while it reads, and the next query would start another one.
    """
    if one_task or len(items) <= FEW_ITEMS:
        stage = Stage(function=_task_of_numbers(items, task), schema=schema, partitions=1 if one_task else None)
        return Stages(count=len(items), one_task=one_task, stages=(stage,))
    return stages_of_source(lambda: items, len(items), task, schema)


def stages_of_source(
    source: Callable[[], Iterable[bytes]], partitions: int, task: ItemTask, schema: pa.Schema
) -> Stages:
    """Return the stages that call a function in tasks for the pickled items that ``source`` yields in a task before them."""

    def items(batches: Batches) -> Batches:
        begin_task()
        for _ in batches:
            waiting: list[bytes] = []
            for item in source():
                if len(waiting) == _BATCH_ITEMS or sum(map(len, waiting)) + len(item) > _BATCH_BYTES:
                    yield _batch(waiting)
                    waiting = []
                waiting.append(item)
            yield _batch(waiting)

    def run(batches: Batches) -> Batches:
        begin_task()
        return task(item for batch in batches for item in batch.column(0).to_pylist())

    first = Stage(function=items, schema=ITEMS, partitions=partitions)
    return Stages(count=1, stages=(first, Stage(function=run, schema=schema)))


def _task_of_numbers(items: Sequence[bytes], task: ItemTask) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        begin_task()
        return task(items[number] for batch in batches for number in batch.column(0).to_pylist())

    return run


def _batch(items: Sequence[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([as_binary(items)], schema=ITEMS)
