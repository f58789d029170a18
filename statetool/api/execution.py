"""Execution in threads of this process or on Spark. No other module of the API asks whether there is a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from statetool.errors import OptionError
from statetool.types.options import whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.saving.composition import Runner
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import TableScan

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Execution:
    """Execution of reads and writes: in tasks of a Spark session, or in threads of this process if there is none.

    Attributes
    ----------
    spark
        The session, or ``None`` to work without Spark and without a JVM.
    threads
        Number of threads of this process, by default one per core.
    progress
        Called with the number of bytes processed, by writes in threads of this process.

    Raises
    ------
    OptionError
        ``threads`` is not a positive whole number.
    """

    spark: SparkSession | None = None
    threads: int | None = None
    progress: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            whole_number("threads", self.threads, least=1)

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """Call a function for each item and return the results in order. On Spark, each item is a task."""
        if self.spark is None:
            from statetool.entries.ahead import in_threads_ahead

            return in_threads_ahead(function, items, self.threads)
        from statetool.spark.tasks import run_tasks

        return run_tasks(self.spark, function, items)

    def runner(self) -> Runner:
        """Return the runner that writes the streams of a snapshot."""
        if self.spark is None:
            from statetool.saving.local import LocalRunner

            return LocalRunner(self.threads, self.progress)
        from statetool.spark.write.runner import SparkRunner

        return SparkRunner(self.spark)

    def to_frame(self, table: pa.Table) -> DataFrame | pa.Table:
        """Return a table as a DataFrame of the session, or without one as a table that notebooks show as HTML."""
        if self.spark is None:
            from statetool.tables.notebook_tables import show_in_notebooks

            return show_in_notebooks(table)
        from statetool.spark.tables import arrow_frame

        return arrow_frame(self.spark, table)

    def records_to_frame(self, record: type[Any], rows: list[Any]) -> DataFrame | pa.Table:
        """Return records of a dataclass as a table, one column per field; see :meth:`to_frame`."""
        from statetool.tables.metadata import records_table

        return self.to_frame(records_table(record, rows))

    def plan(self, plan: Callable[[ScanRequest], TableScan], request: ScanRequest) -> TableScan:
        """Plan a table of state by a function. On Spark, the splits are such that no core is idle."""
        if self.spark is None:
            return plan(request)
        from statetool.spark.frames import plan_for_tasks

        return plan_for_tasks(self.spark, plan, request)

    def scan_to_frame(self, scan: TableScan, driver_read_limit: int | None = None) -> DataFrame | pa.Table:
        """Return a planned table of state as a DataFrame of the session, or read it into an Arrow table without one.

        Parameters
        ----------
        driver_read_limit
            Tables of up to this many bytes on disk are read on the driver; see :func:`statetool.load`.
        """
        if self.spark is None:
            return scan.to_table()
        from statetool.spark.frames import SparkTable

        return SparkTable(self.spark, scan, driver_read_limit).frame()

    def schema_of(self, table: Any) -> pa.Schema:
        """Return the Arrow schema of a table made by a user's function.

        Raises
        ------
        OptionError
            It is not a DataFrame, or without a session, not a ``pyarrow.Table``.
        """
        if self.spark is None:
            import pyarrow as pa

            if isinstance(table, pa.Table):
                return table.schema
            raise OptionError(
                f"the function returns {type(table).__name__}, not a table",
                hint="return a pyarrow.Table, or open the savepoint with spark= to get and return DataFrames",
            )
        if not hasattr(table, "mapInArrow"):
            raise OptionError(
                f"the function returns {type(table).__name__}, not a DataFrame", hint="return a DataFrame"
            )
        from statetool.spark.schema import arrow_schema

        return arrow_schema(table)

    def require_session(self) -> SparkSession:
        """Return the session, or else the active one of this process.

        Raises
        ------
        MissingDependencyError
            No session was given, and none is active.
        """
        if self.spark is not None:
            return self.spark
        from statetool.spark.session import active_session

        return active_session()

    def prepare_session(self, *, sources: bool) -> None:
        """Prepare the session, if any, for reading snapshots.

        Parameters
        ----------
        sources
            Also register the data sources, on PySpark 4.
        """
        if self.spark is not None:
            from statetool.spark.session import prepare

            prepare(self.spark, sources=sources)
