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

from statetool.arrow.bootstrap import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    KeyedBootstrap,
    OperatorPlan,
    Table,
    checked_services,
)
from statetool.arrow.gather import SubtaskStream, write_streams
from statetool.arrow.records import RECORDS, SORTED_BY, element_records, keyed_records
from statetool.errors import OptionError, StatetoolError
from statetool.formats.stream import Stream
from statetool.spark.schema import spark_schema
from statetool.spark.tasks import run_tasks
from statetool.write.publish import StagedFile, Staging
from statetool.write.recipe import StreamRecipe

_RESULT: Final = pa.schema([pa.field("result", pa.binary())])
_FAILED: Final = -1
_DEFAULT_PARALLELISM: Final = 4


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

    def keyed(self, plan: OperatorPlan, staging: Staging, kept: Sequence[Any] = ()) -> list[SubtaskStream]:
        """Make the keyed streams of an operator."""
        assert plan.keyed is not None
        frames = [self._records(data, _encoder(keyed_records, recipe)) for data, recipe in plan.keyed_tables]
        return self._streams(plan.keyed, staging, frames + self._kept(kept))

    def elements(self, plan: OperatorPlan, staging: Staging, kept: Sequence[Any] = ()) -> list[SubtaskStream]:
        """Make the operator state streams of an operator."""
        assert plan.elements is not None
        frames = [self._records(data, _encoder(element_records, recipe)) for data, recipe in plan.element_tables]
        return self._streams(plan.elements, staging, frames + self._kept(kept))

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target, each in a task."""
        return run_tasks(self.spark, staging.copy, streams)

    def _kept(self, tasks: Sequence[Any]) -> list[Any]:
        if not tasks:
            return []
        n = len(tasks)
        return [self.spark.range(0, n, 1, n).mapInArrow(_keeper(self._read_kept, tasks), spark_schema(RECORDS))]

    def _records(self, data: Any, encode: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Any:
        return self._frame(data).mapInArrow(encode, spark_schema(RECORDS))

    def _streams(self, recipe: StreamRecipe, staging: Staging, frames: list[Any]) -> list[SubtaskStream]:
        if not frames:
            return []
        records = _dealt(reduce(lambda a, b: a.unionAll(b), frames), recipe.parallelism)
        written = records.sortWithinPartitions(*SORTED_BY).mapInArrow(_writer(recipe, staging), spark_schema(_RESULT))
        streams = []
        for row in written.collect():
            result = pickle.loads(row.result)
            if isinstance(result, StatetoolError):
                raise result
            streams.append(result)
        return streams

    def _frame(self, data: Any) -> Any:
        if isinstance(data, pa.Table):
            return self.spark.createDataFrame(data.to_pandas() if self.spark.version.startswith("3.") else data)
        if not hasattr(data, "mapInArrow"):
            raise OptionError(f"{type(data).__name__} is neither a Spark DataFrame nor a pyarrow.Table")
        return data


def _arrow_schema(frame: Any) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    # Timestamps are shown in UTC whatever the session's zone is; PySpark 3.5 does not ask.
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(frame.schema, timezone="UTC")
    return to_arrow_schema(frame.schema)


def _dealt(records: Any, parallelism: int) -> Any:
    """Give each subtask a partition of its own, where this Spark can; else by hash, several may share one."""
    if hasattr(records, "repartitionById"):
        return records.repartitionById(parallelism, "subtask")
    return records.repartition(parallelism, "subtask")


def _encoder(
    encode: Callable[[Any, pa.RecordBatch], Iterable[pa.RecordBatch]], recipe: Any
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs in tasks: rows to records."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                yield from encode(recipe, batch)
        except StatetoolError as error:
            yield _failure(error)

    return run


def _keeper(
    read_kept: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs in tasks: numbers of kept pieces to their records."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from read_kept(tasks[number])
        except StatetoolError as error:
            yield _failure(error)

    return run


def _failure(error: StatetoolError) -> pa.RecordBatch:
    row = {"subtask": 0, "group": _FAILED, "state": _FAILED, "key": b"", "value": pickle.dumps(error)}
    return pa.RecordBatch.from_pylist([row], schema=RECORDS)


def _writer(recipe: StreamRecipe, staging: Staging) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what runs in tasks: sorted records to streams."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for stream in write_streams(recipe, staging, _unfailed(batches)):
                yield _result(stream)
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


def _result(result: SubtaskStream | StatetoolError) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], type=pa.binary())], schema=_RESULT)
