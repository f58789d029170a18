"""Execution of a write on Spark.

Small inputs that are not DataFrames are written by threads of the driver, because Spark stages would take longer than the work. Otherwise
tasks convert rows to packed runs. Spark shuffles these by subtask, one run of some kilobytes per row, and a task writes the streams of its
subtasks from local disk. If all tasks run on this machine, runs are stored in files, and only their positions are shuffled. If the max parallelism
stays the same, entries of the base are read by the task that writes their subtask, and only their description travels. Otherwise they are
shuffled as the rows are. An error in a row also travels as a row, so that the driver raises the
original error at once, without retries, which would fail too. Only the default parallelism needs a ``sparkContext``, which Spark Connect does not have.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow, as_binary
from statetool.errors import OptionError, StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.stream import Stream
from statetool.saving.bootstrap import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    ElementEncoder,
    KeyedBootstrap,
    RowEncoder,
    TableSchema,
    check_services,
    table_entries,
)
from statetool.saving.bootstrap.datasets import dataset_batches, dataset_parts, is_dataset
from statetool.saving.bootstrap.portions import BATCH_ROWS
from statetool.saving.composition import StreamWriteTask
from statetool.saving.local import LocalRunner, columns_of, copy_portions, services_of, write_empty
from statetool.saving.publish import StagedFile, Staging
from statetool.saving.recomputing.entries import ComputedEntries
from statetool.saving.streams.carried import merge_carried
from statetool.saving.streams.keyed import AddedEntries, CarriedEntries, KeyedStreams, is_read_where_written
from statetool.saving.streams.output import NewStream, UnshuffledStreams
from statetool.saving.streams.runs import PackedRun, Spill, cuts, deal_run, order_of_groups, pack_run
from statetool.spark.frames import local_limit
from statetool.spark.schema import arrow_schema, spark_schema
from statetool.spark.session import default_parallelism
from statetool.spark.stages import ItemTask, stages_of_items
from statetool.spark.tables import arrow_frame, collect_rows, map_in_arrow
from statetool.spark.tasks import RESULT, result_batch, run_tasks
from statetool.spark.workers import begin_task
from statetool.spark.write.run_files import RunFile, run_folder

if TYPE_CHECKING:
    from statetool.saving.composition import Streams

#: Runs in the shuffle: ``slot`` numbers the subtasks of all writes, ``place`` orders the runs of a slot. A run is ``data``, or stored in ``file``, in
#: which ``starts`` then are positions. ``kept`` describes entries of the base that the task of the slot reads (pickled).
_RUNS: Final = pa.schema(
    [
        pa.field("slot", pa.int32()),
        pa.field("place", pa.int64()),
        pa.field("numbers", pa.binary()),
        pa.field("starts", pa.binary()),
        pa.field("data", pa.binary()),
        pa.field("file", pa.string()),
        pa.field("kept", pa.binary()),
        pa.field("error", pa.binary()),
    ]
)
#: Spark passes many rows at once to a worker, whatever their size.
_RUN_BYTES: Final = 32 << 10
_MEMORY_BYTES: Final = 64 << 20
#: Stored bytes per task that copies files or reads entries of the base.
_TASK_BYTES: Final = 32 << 20
#: Entries that a task only describes count as this many bytes: 512 descriptions are one task.
_DESCRIBED_BYTES: Final = 64 << 10
_LEAST_PARTITIONS: Final = 32
#: Spilled runs are numbered by slot times this, plus the key group, which is smaller.
_SLOT_STRIDE: Final = 1 << 16
#: Item that stands for an empty run of each slot.
_EMPTY_RUNS: Final = b""
Rows: TypeAlias = Iterator[pa.RecordBatch]
Kept: TypeAlias = CarriedEntries | AddedEntries | ComputedEntries


class SparkRunner:
    """Runner of tasks in a session, whose executors need statetool and its dependencies."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    @property
    def parallelism(self) -> int:
        """Default parallelism of operators: that of the session."""
        return default_parallelism(self.spark)

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> TableSchema:
        """Return the schemas of a bootstrap's tables; timers are read once to find their services."""
        schema = bootstrap.data.schema if is_dataset(bootstrap.data) else arrow_schema(self._frame(bootstrap.data))
        if isinstance(bootstrap, ElementBootstrap) or bootstrap.timers is None:
            return TableSchema(schema=schema)
        if is_dataset(bootstrap.timers):
            timers = bootstrap.timers
            return TableSchema(schema=schema, timers=timers.schema, services=services_of(timers))
        timers = self._frame(bootstrap.timers)
        names = [n for n in SERVICE_COLUMNS if n in timers.columns]
        rows = [r.asDict() for r in timers.select(*names).distinct().collect()] if names else [{}]
        return TableSchema(schema=schema, timers=arrow_schema(timers), services=check_services(rows))

    def run(self, writes: Sequence[StreamWriteTask], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of all writes: small writes on the driver, the others in tasks."""
        sizes = [size_here(write) for write in writes]
        if sum(s for s in sizes if s is not None) > local_limit(self.spark):
            sizes = [None] * len(writes)
        on_driver = iter(LocalRunner().run([j for j, s in zip(writes, sizes, strict=True) if s is not None], staging))
        in_tasks = iter(self._run_tasks([j for j, s in zip(writes, sizes, strict=True) if s is None], staging))
        return [next(in_tasks if size is None else on_driver) for size in sizes]

    def _run_tasks(self, writes: Sequence[StreamWriteTask], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of writes in tasks."""
        unshuffled = [(i, s) for i, write in enumerate(writes) if isinstance(s := write.streams, UnshuffledStreams)]
        parts = [(i, s.of_subtask(n)) for i, s in unshuffled for n in s.subtasks]
        written: list[list[NewStream]] = [[] for _ in writes]
        results = run_tasks(self.spark, partial(_write_part, staging=staging), [part for _, part in parts])
        for (i, _), stream in zip(parts, results, strict=True):
            written[i].append(stream)
        shuffled = [i for i, write in enumerate(writes) if not isinstance(write.streams, UnshuffledStreams)]
        for i, streams in zip(shuffled, self._shuffle_streams([writes[i] for i in shuffled], staging), strict=True):
            written[i] = streams
        return written

    def _shuffle_streams(self, writes: Sequence[StreamWriteTask], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of writes in one shuffle; a slot is the index of a subtask among those of all writes."""
        streams = [s for write in writes if not isinstance(s := write.streams, UnshuffledStreams)]
        firsts = list(accumulate((max(s.subtasks, default=-1) + 1 for s in streams), initial=0))
        streams_by_slot = list(zip(firsts, streams, strict=False))
        written: list[list[NewStream]] = [[] for _ in writes]
        slots = sum(len(s.subtasks) for s in streams)
        with run_folder(self.spark) as folder:
            frames = self._frames_of_runs(writes, streams_by_slot, folder)
            if slots and frames:
                partitions = min(slots, max(_LEAST_PARTITIONS, 4 * self.parallelism))
                runs = _shuffle(reduce(lambda a, b: a.unionAll(b), frames), partitions)
                results = runs.mapInArrow(_gatherer(streams_by_slot, staging), spark_schema(RESULT))
                for row in collect_rows(results, large=folder is None):
                    result = pickle.loads(row.result)
                    if isinstance(result, StatetoolError):
                        raise result
                    index, stream = result
                    written[index].append(stream)
        for of_job, all_streams in zip(written, streams, strict=True):
            without_entries = sorted(set(all_streams.subtasks) - {stream.subtask for stream in of_job})
            of_job += write_empty(all_streams, without_entries, staging)
            of_job.sort(key=lambda s: s.subtask)
        return written

    def _frames_of_runs(
        self, writes: Sequence[StreamWriteTask], streams_by_slot: Sequence[tuple[int, Streams]], folder: str | None
    ) -> list[Any]:
        """Return DataFrames of the runs of base entries, and of each table; the runs are stored in the folder, if any."""
        frames = []
        tasks = tasks_by_size([(i, k) for i, write in enumerate(writes) for k in write.kept])
        slots = [first + n for first, s in streams_by_slot for n in s.kept_bytes]
        if tasks or slots:
            items = [*map(pickle.dumps, tasks), *([_EMPTY_RUNS] if slots else [])]
            dealer = _carried_dealer(streams_by_slot, slots, folder)
            frames.append(stages_of_items(items, dealer, _RUNS).frame(self.spark))
        tables = ((i, *table) for i, write in enumerate(writes) for table in write.tables)
        for number, (i, data, recipe) in enumerate(tables, start=1):
            first, streams = streams_by_slot[i]
            target = RunTarget(streams, first, folder)
            if is_dataset(data):
                items = [pickle.dumps(part) for part in enumerate(dataset_parts(data, _TASK_BYTES))]
                deal_part = _part_dealer(target, recipe, number, data.schema, columns_of(data, recipe))
                frames.append(stages_of_items(items, deal_part, _RUNS).frame(self.spark))
                continue
            deal = _table_dealer(target, recipe, number)
            frames.append(map_in_arrow(self._frame(data), deal, spark_schema(_RUNS)))
        return frames

    def copy_all(self, streams: Sequence[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target; one task copies many small streams."""
        size = sum(s.size_bytes for s in streams)
        if size <= local_limit(self.spark):
            return LocalRunner().copy_all(streams, staging)
        portions = copy_portions(streams, max(2 * self.parallelism, -(-size // _TASK_BYTES)))
        return [file for portion in run_tasks(self.spark, staging.copy, portions) for file in portion]

    def _frame(self, data: Any) -> Any:
        if isinstance(data, pa.Table):
            return arrow_frame(self.spark, data)
        if not hasattr(data, "mapInArrow"):
            raise OptionError(f"{type(data).__name__} is not a Spark DataFrame, a pyarrow.Table or a dataset of Arrow")
        return data


def _write_part(streams: UnshuffledStreams, staging: Staging) -> NewStream:
    """Write the only stream of a part."""
    return streams.write(streams.subtasks[0], staging)


def size_here(write: StreamWriteTask) -> int | None:
    """Return the bytes that a write reads; ``None`` if it reads a DataFrame or a dataset."""
    if isinstance(write.streams, UnshuffledStreams):
        return write.streams.size_bytes
    tables = [data for data, _ in write.tables]
    if not all(isinstance(data, pa.Table) for data in tables):
        return None
    of_tables = sum(int(data.nbytes) for data in tables)
    return sum(k.size_bytes for k in write.kept) + sum(write.streams.kept_bytes.values()) + of_tables


def tasks_by_size(kept: Sequence[tuple[int, Kept]]) -> list[list[tuple[int, int, Kept]]]:
    """Distribute ``(write, base entries)`` to tasks of about the same size, as ``(index among all, write, base entries)``."""
    tasks: list[list[tuple[int, int, Kept]]] = []
    bytes_left = 0
    for place, (index, entries) in enumerate(kept):
        if bytes_left <= 0:
            tasks.append([])
            bytes_left = _TASK_BYTES
        tasks[-1].append((place, index, entries))
        bytes_left -= _DESCRIBED_BYTES if is_read_where_written(entries) else entries.size_bytes
    return tasks


def _shuffle(runs: Any, partitions: int) -> Any:
    """Move the runs of each slot into one partition: evenly if this Spark version can, otherwise by hash."""
    if hasattr(runs, "repartitionById"):
        from pyspark.sql import functions as f

        return runs.repartitionById(partitions, f.expr(f"slot % {partitions}"))
    return runs.repartition(partitions, "slot")


@dataclass(frozen=True, slots=True)
class RunTarget:
    """Streams that runs belong to, the slot of their first subtask, and the folder in which runs are stored, ``None`` if Spark shuffles them."""

    streams: Streams
    first: int
    folder: str | None

    def runs(self, place: int, batches: Iterable[EntryBatch]) -> Rows:
        """Pack entries into runs, each for one slot."""
        if self.folder is None:
            for batch in batches:
                pieces = [
                    piece
                    for run in _small_runs(batch, self.streams)
                    for piece in run.parts(self.streams.owners(run.numbers), _RUN_BYTES)
                ]
                yield self._rows(place, pieces, [piece.data.data for piece in pieces])
            return
        with RunFile(self.folder) as file:
            for batch in batches:
                run = deal_run(batch, self.streams.prefix)
                stored = replace(run, data=run.data[:0], starts=run.starts + file.append(run))
                edges = [0, *(np.flatnonzero(np.diff(self.streams.owners(run.numbers))) + 1).tolist(), len(run.numbers)]
                pieces = [
                    replace(stored, numbers=stored.numbers[a:b], starts=stored.starts[a : b + 1])
                    for a, b in pairwise(edges)
                ]
                yield self._rows(place, pieces, [b""] * len(pieces), file.path)

    def _rows(
        self, place: int, pieces: Sequence[PackedRun], data: Sequence[Any], file: str | None = None
    ) -> pa.RecordBatch:
        slots = [self.first + int(self.streams.owners(piece.numbers[:1])[0]) for piece in pieces]
        columns = [(piece.numbers.data, piece.starts.data, raw) for piece, raw in zip(pieces, data, strict=True)]
        return _batch_of_runs(slots, place, columns, file)


def _table_dealer(target: RunTarget, recipe: RowEncoder | ElementEncoder, number: int) -> Callable[[Rows], Rows]:
    """Return the task function that converts rows of a table to runs."""

    def run(batches: Rows) -> Rows:
        from pyspark import TaskContext

        begin_task()
        context = TaskContext.get()
        place = number << 32 | (0 if context is None else context.partitionId())
        return _or_error(target.runs(place, (e for batch in batches for e in table_entries(recipe, batch))))

    return run


def _part_dealer(
    target: RunTarget, recipe: RowEncoder | ElementEncoder, number: int, schema: pa.Schema, columns: Sequence[str]
) -> ItemTask:
    """Return the task function that reads parts of a dataset and converts their rows to runs."""

    def run(items: Iterator[bytes]) -> Rows:
        for place, files in map(pickle.loads, items):
            rows = chain.from_iterable(dataset_batches(file, schema, columns, BATCH_ROWS) for file in files)
            entries = (e for batch in rows for e in table_entries(recipe, batch))
            yield from _or_error(target.runs(number << 32 | place, entries))

    return run


def _carried_dealer(
    streams_by_slot: Sequence[tuple[int, Streams]], slots: Sequence[int], folder: str | None
) -> ItemTask:
    """Return the task function that describes base entries or converts them to runs; :data:`_EMPTY_RUNS` gives one empty run per slot."""

    def run(items: Iterator[bytes]) -> Rows:
        for item in items:
            if item == _EMPTY_RUNS:
                yield _batch_of_runs(slots, 0, [(b"", bytes(8), b"")] * len(slots))
            else:
                for place, index, entries in pickle.loads(item):
                    first, streams = streams_by_slot[index]
                    if is_read_where_written(entries):
                        assert isinstance(streams, KeyedStreams)
                        yield from _or_error(_descriptions(streams, first, place, entries))
                    else:
                        yield from _or_error(RunTarget(streams, first, folder).runs(place, entries.batches()))

    return run


def _descriptions(streams: KeyedStreams, first: int, place: int, entries: CarriedEntries) -> Rows:
    """Describe base entries to the slots that read and write them."""
    for subtask, own in entries.by_subtask(streams):
        yield pa.RecordBatch.from_pylist(
            [{"slot": first + subtask, "place": place, "kept": pickle.dumps(own)}], schema=_RUNS
        )


def _batch_of_runs(
    slots: Sequence[int], place: int, packed_columns: Sequence[tuple[Any, Any, Any]], file: str | None = None
) -> pa.RecordBatch:
    n = len(slots)
    numbers, starts, data = (as_binary([columns[i] for columns in packed_columns]) for i in range(3))
    places = as_arrow(np.full(n, place, dtype=np.int64))
    arrays = [
        as_arrow(np.array(slots, dtype=np.int32)),
        places,
        numbers,
        starts,
        data,
        pa.nulls(n, pa.string()) if file is None else pa.repeat(file, n),
        pa.nulls(n, pa.binary()),
        pa.nulls(n, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_RUNS)


def _small_runs(batch: EntryBatch, streams: Streams) -> Iterator[PackedRun]:
    """Pack entries so that no key group is much larger than a row should be."""
    run = deal_run(batch, streams.prefix)
    large = np.flatnonzero(np.diff(run.starts) > _RUN_BYTES)
    if not len(large):
        yield run
        return
    for piece in cuts(batch, order_of_groups(batch.group, batch.state), batch.group, _RUN_BYTES):
        yield pack_run(batch, piece, streams.prefix)


def _or_error(batches: Rows) -> Rows:
    """Yield batches; an error ends them and becomes one more row."""
    try:
        yield from batches
    except StatetoolError as error:
        yield pa.RecordBatch.from_pylist([{"slot": 0, "place": 0, "error": pickle.dumps(error)}], schema=_RUNS)


def _gatherer(streams_by_slot: Sequence[tuple[int, Streams]], staging: Staging) -> Callable[[Rows], Rows]:
    """Return the task function that writes runs as streams; ``streams_by_slot`` pairs each write's first slot with its streams."""

    def run(batches: Rows) -> Rows:
        begin_task()
        try:
            with Spill() as spill:
                kept = _spill(batches, spill)
                segments = spill.segments()
                for slot in sorted(kept):
                    index = _job_of(slot, streams_by_slot)
                    first, streams = streams_by_slot[index]
                    of_slot = segments.within(streams.numbers(slot - first), slot * _SLOT_STRIDE)
                    portions: Iterable[Any] = [of_slot]
                    if kept[slot]:
                        assert isinstance(streams, KeyedStreams)
                        portions = merge_carried(streams, kept[slot], of_slot, _MEMORY_BYTES)
                    yield result_batch((index, streams.write(slot - first, portions, staging, _MEMORY_BYTES)))
        except StatetoolError as error:
            yield result_batch(error)

    return run


def _job_of(slot: int, streams_by_slot: Sequence[tuple[int, Streams]]) -> int:
    """Return the index of the write that a slot belongs to."""
    return max(i for i, (first, s) in enumerate(streams_by_slot) if first <= slot and len(s.subtasks))


def _spill(batches: Rows, spill: Spill) -> dict[int, list[CarriedEntries]]:
    """Write runs to local disk, except those already stored there. Return the described entries of the base by slot, for all slots."""
    described: dict[int, list[CarriedEntries]] = {}
    for slot, place, groups, starts, data, file, kept, error in chain.from_iterable(_values(b) for b in batches):
        if error is not None:
            failed = pickle.loads(error)
            assert isinstance(failed, StatetoolError)
            raise failed
        of_slot = described.setdefault(slot, [])
        if kept is not None:
            of_slot.append(pickle.loads(kept))
        elif len(groups):
            numbers, edges = np.frombuffer(groups, dtype=np.int64), np.frombuffer(starts, dtype=np.int64)
            if file is not None:
                spill.add_stored(file, numbers, edges, place, slot * _SLOT_STRIDE)
            else:
                spill.add(PackedRun(np.frombuffer(data, dtype=np.uint8), numbers, edges), place, slot * _SLOT_STRIDE)
    return described


def _values(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = [batch.column(i) for i in range(len(_RUNS))]
    for i in range(batch.num_rows):
        slot, place, numbers, starts, data, file, kept, error = (c[i] for c in columns)
        buffers = numbers.as_buffer(), starts.as_buffer(), data.as_buffer()
        yield slot.as_py(), place.as_py(), *buffers, file.as_py(), kept.as_py(), error.as_py()
