"""Write the state of operators in this process, with no JVM: tables are ``pyarrow.Table``s, sorted in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
from statetool.errors import OptionError
from statetool.write.publish import Staging
from statetool.write.recipe import StreamRecipe

_BATCH_ROWS = 1 << 16


class LocalRunner:
    """Makes streams of subtasks here (:class:`statetool.spark.writer.SparkRunner` makes them on Spark).

    ``parallelism`` is that of operators which do not say theirs; ``spark`` is no session.
    """

    parallelism = 1
    spark = None

    def describe(self, bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
        """Return what the tables of a bootstrap look like."""
        table = _table(bootstrap.data)
        if isinstance(bootstrap, ElementBootstrap) or bootstrap.timers is None:
            return Table(schema=table.schema)
        timers = _table(bootstrap.timers)
        return Table(schema=table.schema, timers=timers.schema, services=services_of(timers))

    def keyed(
        self, plan: OperatorPlan, staging: Staging, carried: Iterable[pa.RecordBatch] = ()
    ) -> list[SubtaskStream]:
        """Make the keyed streams of an operator; ``carried`` are records that are kept."""
        assert plan.keyed is not None
        batches = [*carried]
        for data, recipe in plan.keyed_tables:
            for batch in _table(data).to_batches(max_chunksize=_BATCH_ROWS):
                batches += keyed_records(recipe, batch)
        return _streams(plan.keyed, staging, batches)

    def elements(
        self, plan: OperatorPlan, staging: Staging, carried: Iterable[pa.RecordBatch] = ()
    ) -> list[SubtaskStream]:
        """Make the operator state streams of an operator."""
        assert plan.elements is not None
        batches = [*carried]
        for data, recipe in plan.element_tables:
            for batch in _table(data).to_batches(max_chunksize=_BATCH_ROWS):
                batches += element_records(recipe, batch)
        return _streams(plan.elements, staging, batches)


def _streams(recipe: StreamRecipe, staging: Staging, batches: Sequence[pa.RecordBatch]) -> list[SubtaskStream]:
    table = pa.Table.from_batches(batches, schema=RECORDS)
    table = table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in SORTED_BY]))
    return list(write_streams(recipe, staging, table.to_batches(max_chunksize=_BATCH_ROWS)))


def services_of(timers: pa.Table) -> tuple[tuple[str | None, str | None], ...]:
    """Return the different (domain, service) of timers; ``None`` where there is no such column."""
    names = [n for n in SERVICE_COLUMNS if n in timers.column_names]
    rows = timers.select(names).group_by(names).aggregate([]).to_pylist() if names else [{}]
    return checked_services(rows)


def _table(data: Any) -> pa.Table:
    if not isinstance(data, pa.Table):
        raise OptionError(f"{type(data).__name__} is neither a pyarrow.Table nor a Spark DataFrame")
    return data
