"""Write streams in threads of this process, without a JVM.

Tables are ``pyarrow.Table`` s and datasets, and shuffled entries are stored on local disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from statetool.errors import EncodeError, OptionError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.stream import Stream
from statetool.io.threads import in_threads
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
from statetool.saving.bootstrap.datasets import dataset_batches, is_dataset
from statetool.saving.bootstrap.portions import BATCH_ROWS, TablesInPortions, comes_in_portions
from statetool.saving.composition import StreamWriteTask
from statetool.saving.publish import StagedFile, Staging
from statetool.saving.recomputing.entries import ComputedEntries
from statetool.saving.streams.carried import merge_carried
from statetool.saving.streams.keyed import AddedEntries, CarriedEntries, KeyedStreams, is_read_where_written
from statetool.saving.streams.output import NewStream, UnshuffledStreams
from statetool.saving.streams.runs import PackedRun, Segments, Spill, deal_run, lowest_of

if TYPE_CHECKING:
    from statetool.saving.composition import Streams
    from statetool.saving.streams.elements import ElementStreams

MEMORY_BYTES: Final = 64 << 20
#: Portions of files to copy per thread: enough that all threads end at about the same time.
_PORTIONS: Final = 4
#: Maximum number of files that are copied before the write is checked to be still going on.
_MOST_COPIES: Final = 16
Progress: TypeAlias = Callable[[int], object]
_Recipe: TypeAlias = RowEncoder | ElementEncoder
#: Work that runs concurrently: a function that makes batches of entries, and the stored bytes that it reads.
_Work: TypeAlias = tuple[Callable[[], Iterable[EntryBatch]], int]


class LocalRunner:
    """Runner in threads of this process.

    Parameters
    ----------
    threads
        Number of threads; one per core by default.
    progress
        Called with the number of bytes processed, for carried entries and for each copied file.
    """

    def __init__(self, threads: int | None = None, progress: Progress | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1
        self._progress = progress or (lambda _: None)
        self._memory_bytes = max(1 << 20, MEMORY_BYTES // self.threads)

    @property
    def parallelism(self) -> int:
        return 1

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> TableSchema:
        """Return the schemas of a bootstrap's tables and its timer services."""
        schema = _checked(bootstrap.data).schema
        if isinstance(bootstrap, ElementBootstrap) or bootstrap.timers is None:
            return TableSchema(schema=schema)
        timers = _checked(bootstrap.timers)
        return TableSchema(schema=schema, timers=timers.schema, services=services_of(timers))

    def run(self, tasks: Sequence[StreamWriteTask], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of each task, one task after the other."""
        return [self._run(task, staging) for task in tasks]

    def _run(self, task: StreamWriteTask, staging: Staging) -> list[NewStream]:
        streams = task.streams
        if isinstance(streams, UnshuffledStreams):
            return list(in_threads(streams.writer(staging), streams.subtasks, self.threads))
        with Spill() as spill:
            if isinstance(streams, KeyedStreams):
                write = self._keyed(spill, streams, task, staging)
            else:
                write = self._elements(spill, streams, task, staging)
            return list(in_threads(write, streams.subtasks, self.threads))

    def _elements(
        self, spill: Spill, streams: ElementStreams, task: StreamWriteTask, staging: Staging
    ) -> Callable[[int], NewStream]:
        """Partition the elements of tables, and return the function that writes the stream of a subtask."""
        self._deal(spill, streams.prefix, _encode(_batches(task.tables)), self.threads)
        segments = spill.segments()

        def write(subtask: int) -> NewStream:
            own = segments.within(streams.numbers(subtask))
            return streams.write(subtask, [own], staging, self._memory_bytes)

        return write

    def _keyed(
        self, spill: Spill, streams: KeyedStreams, task: StreamWriteTask, staging: Staging
    ) -> Callable[[int], NewStream]:
        """Partition entries of small tables and of datasets, and carried entries that change their key groups.

        Return the function that writes the stream of a subtask, with entries of large tables and carried ones that keep their key groups.
        """
        subtasks = max(1, len(streams.subtasks))
        large: list[tuple[pa.Table, RowEncoder]] = []
        small: list[tuple[Any, RowEncoder]] = []
        for data, recipe in task.tables:
            assert isinstance(recipe, RowEncoder)
            in_memory = isinstance(data, pa.Table) and comes_in_portions(data, subtasks)
            (large if in_memory else small).append((data, recipe))
        rows = TablesInPortions(large, streams.max_parallelism, self.threads)
        staying, moving = _separate(task.kept, streams)
        self._deal(spill, streams.prefix, chain(moving, _encode(_batches(small))), self.threads, streams.lists)
        others = spill.segments()
        gatherer = streams.gatherer(self._memory_bytes)
        threads = max(1, self.threads // subtasks)

        def fits(numbers: range) -> bool:
            return not len(others.within(numbers)) and rows.size_bytes(numbers) <= self._memory_bytes

        def gather(numbers: range) -> PackedRun | None:
            entries = rows.entries(numbers)
            return None if entries is None else gatherer.gather(entries)

        def merge(subtask: int, kept: Sequence[CarriedEntries]) -> Iterator[Segments | PackedRun]:
            numbers = streams.numbers(subtask)
            with Spill() as of_rows:
                for own in rows.cut(numbers):
                    self._deal(of_rows, streams.prefix, _encode(rows.batches(own)), threads, streams.lists)
                new = others.within(numbers).beside(of_rows.segments())
                yield from merge_carried(streams, kept, new, self._memory_bytes)
            self._progress(sum(entries.size_bytes for entries in kept))

        def portions(subtask: int) -> Iterator[Segments | PackedRun]:
            if subtask in staying:
                yield from merge(subtask, staying[subtask])
                return
            for in_memory, ranges in groupby(rows.cut(streams.numbers(subtask)), fits):
                if in_memory:
                    yield from filter(None, in_threads(gather, ranges, threads, ahead=1))
                    continue
                for own in ranges:
                    with Spill() as of_rows:
                        self._deal(of_rows, streams.prefix, _encode(rows.batches(own)), threads, streams.lists)
                        yield others.within(own).beside(of_rows.segments())

        return lambda subtask: streams.write(subtask, portions(subtask), staging, self._memory_bytes)

    def _deal(
        self, spill: Spill, prefix: int, work: Iterable[_Work], threads: int, lists: Collection[int] = ()
    ) -> None:
        """Store entries on local disk by their key groups; ``lists`` as in :func:`lowest_of`."""

        def deal(work: tuple[int, _Work]) -> None:
            place, (batches, size) = work
            for batch in batches():
                run = deal_run(batch, prefix)
                spill.add(run, place, lowest=lowest_of(batch, run.numbers, lists))
            self._progress(size)

        for _ in in_threads(deal, enumerate(work), threads):
            pass

    def copy_all(self, streams: Sequence[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        portions = copy_portions(streams, _PORTIONS * self.threads)
        copied = in_threads(lambda portion: staging.copy(portion, self._progress), portions, self.threads)
        return [file for portion in copied for file in portion]


def copy_portions(streams: Sequence[Stream], portions: int) -> list[Sequence[Stream]]:
    """Cut streams to copy into about this many portions, for one thread or task each, of a limited number of files."""
    size = max(1, min(_MOST_COPIES, len(streams) // portions))
    return [streams[i : i + size] for i in range(0, len(streams), size)]


def write_empty(streams: Streams, subtasks: Sequence[int], staging: Staging) -> list[NewStream]:
    """Write a stream with only a header for each subtask without entries."""
    with Spill() as nothing:
        portions = [nothing.segments()]
        return [streams.write(subtask, portions, staging, MEMORY_BYTES) for subtask in subtasks]


def _separate(
    kept: Iterable[CarriedEntries | AddedEntries | ComputedEntries], streams: KeyedStreams
) -> tuple[dict[int, list[CarriedEntries]], list[_Work]]:
    """Return carried entries that keep their key groups, by subtask, and the others."""
    staying: dict[int, list[CarriedEntries]] = {}
    moving: list[_Work] = []
    for entries in kept:
        if is_read_where_written(entries):
            for subtask, own in entries.by_subtask(streams):
                staying.setdefault(subtask, []).append(own)
        else:
            moving.append((entries.batches, entries.size_bytes))
    return staying, moving


def _batches(tables: Iterable[tuple[Any, _Recipe]]) -> Iterator[tuple[_Recipe, pa.RecordBatch]]:
    return ((recipe, rows) for data, recipe in tables for rows in batches_of(data, recipe))


def batches_of(data: Any, recipe: _Recipe) -> Iterator[pa.RecordBatch]:
    """Return the rows of a table or dataset that a recipe encodes, in batches of :data:`BATCH_ROWS`."""
    if not is_dataset(data):
        return iter(data.to_batches(BATCH_ROWS))
    return dataset_batches(data, data.schema, columns_of(data, recipe), BATCH_ROWS)


def columns_of(dataset: Any, recipe: _Recipe) -> list[str]:
    """Return the columns of a dataset that a recipe needs."""
    names: list[str] = dataset.schema.names
    return [names[i] for i in recipe.columns(names)] if isinstance(recipe, RowEncoder) else names


def _encode(batches: Iterable[tuple[_Recipe, pa.RecordBatch]]) -> Iterator[_Work]:
    for recipe, rows in batches:
        yield partial(table_entries, recipe, rows), 0


def services_of(timers: Any) -> tuple[tuple[str | None, str | None], ...]:
    """Return the distinct (domain, service) pairs of timers; ``None`` if the column is absent."""
    names = [n for n in SERVICE_COLUMNS if n in timers.schema.names]
    if not names:
        return check_services([{}])
    batches = dataset_batches(timers, timers.schema, names, BATCH_ROWS) if is_dataset(timers) else [timers]
    try:
        distinct = [_distinct(rows, names) for rows in batches]
        return check_services(_distinct(pa.concat_tables(distinct), names).to_pylist() if distinct else [])
    except UnicodeDecodeError as e:
        raise EncodeError(f"a string that is not valid UTF-8 in {' or '.join(names)}: {e.object!r}") from e


def _distinct(rows: pa.Table | pa.RecordBatch, names: Sequence[str]) -> pa.Table:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    return table.select(names).group_by(names).aggregate([])


def _checked(data: Any) -> Any:
    if not isinstance(data, pa.Table) and not is_dataset(data):
        raise OptionError(f"{type(data).__name__} is not a pyarrow.Table, a dataset of Arrow or a Spark DataFrame")
    return data
