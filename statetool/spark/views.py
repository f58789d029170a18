"""Tables as temporary views, each read only when queried. A snapshot may have sixty tables, so their plans are created directly.

The splits of an operator with many files are planned by the queries of its views, in a task. Registering then costs the same whatever the
size of the snapshot.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

from statetool.io import files
from statetool.io.threads import in_threads
from statetool.snapshot.inventory import Inventory
from statetool.spark import private
from statetool.spark.frames import is_small, local_limit, plan_for_cores, row_limit, scan_stages, split_reader
from statetool.spark.schema import spark_schema
from statetool.spark.session import default_parallelism
from statetool.spark.stages import Stages, stages_of_source
from statetool.spark.workers import check_workers
from statetool.tables.request import ScanRequest
from statetool.tables.scan import column_names, plan_table, scan_table
from statetool.types.operators import name_in_sql, operator_names_in_sql, unique_names

_THREADS: Final = 8
#: The splits of operators with up to this many files are planned when their views are registered.
MANY_FILES: Final = 1000
#: Maximum number of tasks of a table whose splits are not planned yet; each reads several splits.
_MOST_TASKS: Final = 10_000


def register_views(
    spark: Any,
    prefix: str,
    inventory: Inventory,
    tables: Sequence[tuple[str, str]],
    *,
    local_bytes: int | None = None,
) -> list[str]:
    """Create a temporary view per ``(operator, table)`` and return their names; each is read only when queried."""
    names = _view_names(prefix, inventory, tables)
    planner = _Planner(spark, inventory, local_limit(spark, local_bytes))
    views = [(name, planner.stages(*table)) for name, table in zip(names, tables, strict=True)]
    check_workers(spark)
    if not _put(spark, views):
        for _ in in_threads(lambda view: view[1].frame(spark).createOrReplaceTempView(view[0]), views, _THREADS):
            pass
    return names


@dataclass
class _Planner:
    """Plans the tables of a snapshot; ``limit`` is the size up to which a table is read in one task."""

    spark: Any
    inventory: Inventory
    limit: int

    @cached_property
    def row_bytes(self) -> int:
        return row_limit(self.spark)

    @cached_property
    def cores(self) -> int:
        return default_parallelism(self.spark)

    @cached_property
    def can_plan_in_tasks(self) -> bool:
        """Whether tasks can open the metadata: those on other machines cannot read a file of this one."""
        return private.worker_python(self.spark) is not None or not files.is_local(self.inventory.metadata_file)

    def stages(self, operator: str, table: str) -> Stages:
        """Return the stages that read a table."""
        request = ScanRequest.of(table)
        own = self.inventory.operator(operator)
        size = own.stored_bytes(MANY_FILES) if self.can_plan_in_tasks else None
        if size is None:
            scan = plan_for_cores(lambda: self.cores, partial(scan_table, own), request)
            return scan_stages(scan, self.row_bytes, one_task=is_small(scan, self.limit))
        request = replace(request, options=replace(request.options, columns=column_names(own, request.options.columns)))
        tasks = min(_MOST_TASKS, max(self.cores, size // request.target_bytes))
        source = partial(_pickled_splits, self.inventory.opener(), own.state.operator_id, request, self.cores)
        return stages_of_source(source, tasks, split_reader(self.row_bytes), plan_table(own, request).schema)


def _pickled_splits(
    open_snapshot: Callable[[], Inventory], operator_id: str, request: ScanRequest, cores: int
) -> Iterator[bytes]:
    """Plan a table in a task."""
    operator = open_snapshot().operator(operator_id)
    yield from map(pickle.dumps, plan_for_cores(lambda: cores, partial(scan_table, operator), request).splits)


def _put(spark: Any, views: Sequence[tuple[str, Stages]]) -> bool:
    """Create views in the session's catalog directly, and return True if that is possible."""
    put = private.view_writer(spark)
    if put is None:
        return False
    try:
        for name, view in views:
            stages = [(s.function, spark_schema(s.schema), s.partitions) for s in view.stages]
            put(name, view.count, stages, one_task=view.one_task)
    except private.missing_part():
        return False
    return True


def _view_names(prefix: str, inventory: Inventory, tables: Sequence[tuple[str, str]]) -> list[str]:
    of_operators = operator_names_in_sql(inventory.labels)
    labels = {operator: inventory.operator(operator).label for operator, _ in tables}
    return unique_names(
        [name_in_sql(f"{prefix}_{of_operators[labels[operator]]}_{table}") for operator, table in tables]
    )
