"""Write a table of state to files, in this process or on Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from statetool.api.execution import Execution
from statetool.tables.request import ScanRequest

if TYPE_CHECKING:
    from statetool.spark.frames import SparkTable
    from statetool.tables.scan import TableScan


class Planner(Protocol):
    """The part of :class:`statetool.Operator` that an export uses."""

    @property
    def execution(self) -> Execution:
        """Where the export runs."""
        ...

    def plan(self, request: ScanRequest) -> TableScan:
        """Plan a table for this process."""
        ...

    def plan_on_spark(self, request: ScanRequest) -> SparkTable:
        """Plan a table for tasks."""
        ...


def export_request(
    operator: Planner, request: ScanRequest, target: str, *, style: str, by_key_group: bool, append_as: int | None
) -> int:
    """Write the table of a request and return the number of rows; parameters and errors as for :meth:`statetool.Operator.export`."""
    if operator.execution.spark is not None:
        from statetool.spark.write.export import export_table

        return export_table(operator, request, target, style=style, by_key_group=by_key_group, append_as=append_as)
    from statetool.tables.export.files import export_scan
    from statetool.tables.export.lakes import LAKES, export_to_lake

    scan = operator.plan(replace(request, key_group=request.key_group or by_key_group))
    if style in LAKES:
        return export_to_lake(scan, target, style=style, by_key_group=by_key_group, append_as=append_as)
    return export_scan(
        scan,
        request.table,
        target,
        style=style,
        by_key_group=by_key_group,
        append_as=append_as,
        threads=operator.execution.threads,
    )
