"""Write the state of operators in this process, with no JVM: tables are ``pyarrow.Table``s, sorted in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
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
from statetool.arrow.gather import SubtaskStream, write_subtask
from statetool.arrow.records import records_of, table_records
from statetool.errors import OptionError
from statetool.formats.key_groups import prefix_size
from statetool.formats.stream import Stream
from statetool.kernels.deal import key_heads
from statetool.write.order import order_of_keys
from statetool.write.publish import StagedFile, Staging
from statetool.write.recipe import StreamRecipe
from statetool.write.streams import Records

_BATCH_ROWS = 1 << 16


class LocalRunner:
    """Makes streams of subtasks here (:class:`statetool.spark.writer.SparkRunner` makes them on Spark).

    Parameters
    ----------
    read_kept
        Reads the records of state that stays.
    """

    spark = None

    def __init__(self, read_kept: Callable[[Any], Iterable[pa.RecordBatch]]) -> None:
        self._read_kept = read_kept

    @property
    def parallelism(self) -> int:
        return 1

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return what the tables of a bootstrap look like."""
        table = _table(bootstrap.data)
        if isinstance(bootstrap, ElementBootstrap) or bootstrap.timers is None:
            return Table(schema=table.schema)
        timers = _table(bootstrap.timers)
        return Table(schema=table.schema, timers=timers.schema, services=services_of(timers))

    def streams(self, jobs: Sequence[StreamJob], staging: Staging) -> list[list[SubtaskStream]]:
        """Make the streams of each job, one job after the other."""
        return [self._streams_of(job, staging) for job in jobs]

    def _streams_of(self, job: StreamJob, staging: Staging) -> list[SubtaskStream]:
        batches = [batch for task in job.kept for batch in self._read_kept(task)]
        for data, recipe in job.tables:
            for batch in _table(data).to_batches(max_chunksize=_BATCH_ROWS):
                batches += table_records(recipe, batch)
        return _streams(job.recipe, staging, batches)

    def copy_all(self, streams: list[Stream], staging: Staging) -> list[StagedFile]:
        """Copy streams into the target."""
        return [staging.copy(s) for s in streams]


def _streams(recipe: StreamRecipe, staging: Staging, batches: Sequence[pa.RecordBatch]) -> list[SubtaskStream]:
    prefix = prefix_size(recipe.max_parallelism) if recipe.keyed else 0
    parts: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        for subtask in pc.unique(batch.column(0)).to_pylist():
            some = batch.filter(pc.equal(batch.column(0), subtask))
            parts.setdefault(subtask, []).append(some)
    return [
        write_subtask(recipe, staging, subtask, _sorted(parts.pop(subtask), prefix, by_index=bool(recipe.joined)))
        for subtask in sorted(parts)
    ]


def _sorted(batches: Sequence[pa.RecordBatch], prefix: int, *, by_index: bool) -> Iterator[Records]:
    """Yield the records of one subtask in the order of key group, state and key.

    ``prefix`` bytes of keys are the key group. Where ``by_index`` is set, records of one key follow the 8 bytes that their values
    start with.
    """
    table = pa.Table.from_batches(batches)
    wide = [table.column(i).cast(pa.large_binary()) for i in (3, 4)]
    table = pa.table([*table.columns[:3], *wide], names=table.column_names).combine_chunks()
    for batch in table.to_batches():
        records = records_of(batch)
        if by_index:
            index = np.empty(len(records), dtype=np.uint64)
            key_heads(records.value_data, records.value, records.value_end, index)
            records = records.take(np.argsort(index, kind="stable"))
        key = records.key + prefix
        order, _ = order_of_keys(records.key_data, records.group, records.state, key, records.key_end)
        for at in range(0, len(records), _BATCH_ROWS):
            yield records.take(order[at : at + _BATCH_ROWS])


def services_of(timers: pa.Table) -> tuple[tuple[str | None, str | None], ...]:
    """Return the different (domain, service) of timers; ``None`` where there is no such column."""
    names = [n for n in SERVICE_COLUMNS if n in timers.column_names]
    rows = timers.select(names).group_by(names).aggregate([]).to_pylist() if names else [{}]
    return checked_services(rows)


def _table(data: Any) -> pa.Table:
    if not isinstance(data, pa.Table):
        raise OptionError(f"{type(data).__name__} is neither a pyarrow.Table nor a Spark DataFrame")
    return data
