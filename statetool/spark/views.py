"""Tables as temporary views, each read only when queried. A snapshot may have sixty tables, so their plans are created directly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from statetool.io.threads import in_threads
from statetool.spark import private
from statetool.spark.frames import is_small, local_limit, plan_for_tasks, reader, row_limit, split_ids_frame
from statetool.spark.schema import spark_schema
from statetool.spark.workers import check_workers
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan

_THREADS: Final = 8
_NAME: Final = re.compile(r"\W", re.ASCII)


def register_views(
    spark: Any, prefix: str, tables: Sequence[tuple[str, str, Any]], *, local_bytes: int | None = None
) -> list[str]:
    """Create a temporary view per ``(operator, table, Operator)`` and return their names; each is read only when queried."""
    names = _view_names(prefix, [(operator, table) for operator, table, _ in tables])
    limit = local_limit(spark, local_bytes)
    views = [
        (name, plan_for_tasks(spark, operator.plan, ScanRequest.of(table)))
        for name, (_, table, operator) in zip(names, tables, strict=True)
    ]
    check_workers(spark)
    if not _put(spark, views, limit):
        for _ in in_threads(lambda view: _create(spark, *view, one_task=is_small(view[1], limit)), views, _THREADS):
            pass
    return names


def _put(spark: Any, views: Sequence[tuple[str, TableScan]], limit: int) -> bool:
    """Create views in the session's catalog directly, and return True if that is possible."""
    put = private.view_writer(spark)
    if put is None:
        return False
    row_bytes = row_limit(spark)
    try:
        for name, scan in views:
            function = reader(scan.splits, row_bytes)
            put(name, function, spark_schema(scan.schema), len(scan.splits), one_task=is_small(scan, limit))
    except private.missing_part():
        return False
    return True


def _create(spark: Any, name: str, scan: TableScan, *, one_task: bool) -> None:
    """Create a view with Spark's public API.

    A small table is read in one task followed by a shuffle, so that it is read completely before a LIMIT begins. A LIMIT that is satisfied
    early would stop the worker while it reads, and the next query would start another one.
    """
    frame = split_ids_frame(spark, len(scan.splits), one_task=one_task).mapInArrow(
        reader(scan.splits, row_limit(spark)), spark_schema(scan.schema)
    )
    (frame.repartition(1) if one_task else frame).createOrReplaceTempView(name)


def _view_names(prefix: str, tables: Sequence[tuple[str, str]]) -> list[str]:
    wanted = [_NAME.sub("_", f"{prefix}_{operator}_{table}").lower() for operator, table in tables]
    taken = set(wanted)
    names: list[str] = []
    for plain in wanted:
        name, n = plain, 1
        while name in names or (name != plain and name in taken):
            n += 1
            name = f"{plain}_{n}"
        names.append(name)
    return names
