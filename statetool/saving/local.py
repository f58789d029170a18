"""Write streams in threads of this process, with no JVM: tables are ``pyarrow.Table`` s, dealt entries lie on local disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from statetool.errors import OptionError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.stream import Stream
from statetool.io.threads import in_threads
from statetool.saving.bootstrap import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    KeyedBootstrap,
    Table,
    checked_services,
    table_entries,
)
from statetool.saving.composition import StreamJob
from statetool.saving.publish import StagedFile, Staging
from statetool.saving.streams.output import NewStream
from statetool.saving.streams.runs import Spill, dealt

if TYPE_CHECKING:
    from statetool.saving.composition import Streams

MEMORY_BYTES: Final = 64 << 20
#: Rows that are encoded at once: few enough that their entries stay in the processor's cache.
_BATCH_ROWS: Final = 1 << 14
Progress: TypeAlias = Callable[[int], object]


class LocalRunner:
    """Runs in threads of this process.

    Parameters
    ----------
    threads
        How many, by default one a core.
    progress
        Called with a number of bytes once they are done: of entries kept of a base, and of each copied file.
    """

    def __init__(self, threads: int | None = None, progress: Progress | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1
        self._progress = progress or (lambda _: None)

    @property
    def parallelism(self) -> int:
        return 1

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return the schemas of a bootstrap's tables, and the services of its timers."""
        table = _table(bootstrap.data)
        if isinstance(bootstrap, ElementBootstrap) or bootstrap.timers is None:
            return Table(schema=table.schema)
        timers = _table(bootstrap.timers)
        return Table(schema=table.schema, timers=timers.schema, services=services_of(timers))

    def run(self, jobs: Sequence[StreamJob], staging: Staging) -> list[list[NewStream]]:
        """Write the streams of each job, one job after the other."""
        return [self._run(job, staging) for job in jobs]

    def _run(self, job: StreamJob, staging: Staging) -> list[NewStream]:
        streams = job.streams
        with Spill() as spill:

            def deal(work: tuple[int, tuple[Callable[[], Iterable[EntryBatch]], int]]) -> None:
                place, (batches, size) = work
                for batch in batches():
                    spill.add(dealt(batch, streams.prefix), place)
                self._progress(size)

            list(in_threads(deal, enumerate(_work(job)), self.threads))
            segments = spill.segments()
            share = max(1 << 20, MEMORY_BYTES // self.threads)

            def write(subtask: int) -> NewStream:
                return streams.write(subtask, segments.within(streams.numbers(subtask)), staging, share)

            return list(in_threads(write, streams.subtasks, self.threads))

    def copy_all(self, streams: Sequence[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""

        def copy(stream: Stream) -> StagedFile:
            staged = staging.copy(stream)
            self._progress(stream.size_bytes)
            return staged

        return list(in_threads(copy, streams, self.threads))


def write_empty(streams: Streams, subtasks: Sequence[int], staging: Staging) -> list[NewStream]:
    """Write the streams of subtasks that got no entries and keep nothing: a header each."""
    with Spill() as nothing:
        segments = nothing.segments()
        return [streams.write(subtask, segments, staging, MEMORY_BYTES) for subtask in subtasks]


def _work(job: StreamJob) -> Iterator[tuple[Callable[[], Iterable[EntryBatch]], int]]:
    """Yield the sources that are dealt at the same time: a function that makes batches of entries, and the stored bytes it reads."""
    for kept in job.kept:
        yield kept.batches, kept.size_bytes
    for data, recipe in job.tables:
        for rows in _table(data).to_batches(max_chunksize=_BATCH_ROWS):
            yield lambda rows=rows, recipe=recipe: table_entries(recipe, rows), 0  # type: ignore[misc]


def services_of(timers: pa.Table) -> tuple[tuple[str | None, str | None], ...]:
    """Return the different (domain, service) of timers; ``None`` where there is no such column."""
    names = [n for n in SERVICE_COLUMNS if n in timers.column_names]
    rows = timers.select(names).group_by(names).aggregate([]).to_pylist() if names else [{}]
    return checked_services(rows)


def _table(data: Any) -> pa.Table:
    if not isinstance(data, pa.Table):
        raise OptionError(f"{type(data).__name__} is neither a pyarrow.Table nor a Spark DataFrame")
    return data
