"""Write the state of operators on Spark.

Tasks encode rows into binary records, Spark shuffles them by subtask and sorts them (on disk where they are many), and one task a
subtask writes its stream front to back. What is wrong with a row travels as a record too, so that the driver raises our own
error, at once and without attempts that would fail alike.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from inspect import signature
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from statetool.arrow.bootstrap import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    KeyedBootstrap,
    StreamJob,
    Table,
    checked_services,
)
from statetool.arrow.gather import SubtaskStream, write_streams
from statetool.arrow.records import RECORDS, SORTED_BY, table_records
from statetool.errors import OptionError, StatetoolError
from statetool.formats.stream import Stream
from statetool.spark.schema import spark_schema
from statetool.spark.tables import arrow_frame, map_in_arrow
from statetool.spark.tasks import run_tasks
from statetool.write.publish import StagedFile, Staging
from statetool.write.recipe import ElementRecipe, KeyedRecipe, StreamRecipe

_RESULT: Final = pa.schema([pa.field("result", pa.binary())])
_FAILED: Final = -1
_DEFAULT_PARALLELISM: Final = 4
_LEAST_PARTITIONS: Final = 32


class SparkRunner:
    """Makes streams of subtasks on Spark.

    Parameters
    ----------
    read_kept
        Reads the records of state that stays, in tasks.
    """

    def __init__(self, spark: Any, read_kept: Callable[[Any], Iterable[pa.RecordBatch]]) -> None:
        self.spark = spark
        self._read_kept = read_kept

    @property
    def parallelism(self) -> int:
        """Parallelism of operators that do not say theirs: the default of the session."""
        try:
            return int(self.spark.sparkContext.defaultParallelism)
        except (AttributeError, NotImplementedError, RuntimeError):  # Spark Connect has no context
            return _DEFAULT_PARALLELISM

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return what the tables of a bootstrap look like; timers are read once for their services."""
        schema = _arrow_schema(self._frame(bootstrap.data))
        if isinstance(bootstrap, ElementBootstrap) or bootstrap.timers is None:
            return Table(schema=schema)
        timers = self._frame(bootstrap.timers)
        names = [n for n in SERVICE_COLUMNS if n in timers.columns]
        rows = [r.asDict() for r in timers.select(*names).distinct().collect()] if names else [{}]
        return Table(schema=schema, timers=_arrow_schema(timers), services=checked_services(rows))

    def streams(self, jobs: Sequence[StreamJob], staging: Staging) -> list[list[SubtaskStream]]:
        """Make the streams of all jobs in one shuffle; a subtask's number there is its place among all subtasks."""
        frames, recipes, slots = [], [], 0
        for job in jobs:
            frames += [
                map_in_arrow(self._frame(data), _encoder(recipe, slots), spark_schema(RECORDS))
                for data, recipe in job.tables
            ]
            if job.kept:
                n = len(job.kept)
                numbers = self.spark.range(0, n, 1, n)
                frames.append(numbers.mapInArrow(_keeper(self._read_kept, job.kept, slots), spark_schema(RECORDS)))
            recipes.append((slots, job.recipe))
            slots += job.recipe.parallelism
        found: list[list[SubtaskStream]] = [[] for _ in jobs]
        if not frames:
            return found
        records = _dealt(reduce(lambda a, b: a.unionAll(b), frames), min(slots, self.most_partitions))
        written = records.sortWithinPartitions(*SORTED_BY).mapInArrow(_writer(recipes, staging), spark_schema(_RESULT))
        for row in written.collect():
            result = pickle.loads(row.result)
            if isinstance(result, StatetoolError):
                raise result
            index, stream = result
            found[index].append(stream)
        return found

    @property
    def most_partitions(self) -> int:
        """Partitions of the shuffle; where there are more subtasks, one task writes several, one after another."""
        return max(_LEAST_PARTITIONS, 4 * self.parallelism)

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target, each in a task."""
        return run_tasks(self.spark, staging.copy, streams)

    def _frame(self, data: Any) -> Any:
        if isinstance(data, pa.Table):
            return arrow_frame(self.spark, data)
        if not hasattr(data, "mapInArrow"):
            raise OptionError(f"{type(data).__name__} is neither a Spark DataFrame nor a pyarrow.Table")
        return data


def _arrow_schema(frame: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    # Timestamps are shown in UTC whatever the session's zone is; PySpark 3.5 does not ask.
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(frame.schema, timezone="UTC")
    return to_arrow_schema(frame.schema)


def _dealt(records: Any, partitions: int) -> Any:
    """Bring the records of each subtask into one partition: evenly where this Spark can, else by hash."""
    if hasattr(records, "repartitionById"):
        from pyspark.sql import functions as f

        return records.repartitionById(partitions, f.expr(f"subtask % {partitions}"))
    return records.repartition(partitions, "subtask")


def _encoder(
    recipe: KeyedRecipe | ElementRecipe, first: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs in tasks: rows to records, whose subtasks are numbered from ``first`` on."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                for records in table_records(recipe, batch):
                    yield _numbered(records, first)
        except StatetoolError as error:
            yield _failure(error)

    return run


def _keeper(
    read_kept: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], first: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs in tasks: numbers of kept pieces to their records."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for records in read_kept(tasks[number]):
                        yield _numbered(records, first)
        except StatetoolError as error:
            yield _failure(error)

    return run


def _numbered(records: pa.RecordBatch, first: int) -> pa.RecordBatch:
    if first == 0:
        return records
    slots = pc.add(records.column(0), pa.scalar(first, pa.int32()))
    return pa.RecordBatch.from_arrays([slots, *records.columns[1:]], schema=RECORDS)


def _failure(error: StatetoolError) -> pa.RecordBatch:
    row = {"subtask": 0, "group": _FAILED, "state": _FAILED, "key": b"", "value": pickle.dumps(error)}
    return pa.RecordBatch.from_pylist([row], schema=RECORDS)


def _writer(
    recipes: Sequence[tuple[int, StreamRecipe]], staging: Staging
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs in tasks: sorted records to streams."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for made in write_streams(recipes, staging, _unfailed(batches)):
                yield _result(made)
        except StatetoolError as error:
            yield _result(error)

    return run


def _unfailed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows and batch.column(2)[0].as_py() == _FAILED:
            error = pickle.loads(batch.column(4)[0].as_py())
            assert isinstance(error, StatetoolError)
            raise error
        yield batch


def _result(result: tuple[int, SubtaskStream] | StatetoolError) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], type=pa.binary())], schema=_RESULT)
