"""Differences between two snapshots, as :meth:`statetool.Savepoint.diff` returns them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from statetool.api.execution import Execution
from statetool.errors import UNREAD, several

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from statetool.analysis.comparison.compare import UnitCounts
    from statetool.analysis.comparison.plan import ComparisonPlan
    from statetool.analysis.comparison.records import DifferenceCounts, StructureDifference

#: Differences that notebooks show with a comparison.
_MAX_SHOWN: Final = 10


class Comparison:
    """Differences between two snapshots: in their metadata and headers, in counts, and key by key.

    Until you request counts or differences, only headers are read. Notebooks show the counts and the first differences.
    """

    def __init__(self, plan: ComparisonPlan, execution: Execution, paths: tuple[str, str] = ("A", "B")) -> None:
        self._plan = plan
        #: Paths of the snapshots, for the commands in findings.
        self._paths = paths
        self._execution = execution
        #: Number of differences that are retained per compared unit during counting.
        self._kept_by_unit = 100

    @property
    def structure(self) -> tuple[StructureDifference, ...]:
        """Differing operators, states, kinds and types (severity ``difference``), and differences that do not affect values (``note``)."""
        return self._plan.structure

    @cached_property
    def _counted(self) -> list[UnitCounts]:
        from statetool.analysis.comparison.compare import CountTask, count_differences

        return list(
            self._execution.map(count_differences, [CountTask(unit, self._kept_by_unit) for unit in self._plan.units])
        )

    def summary(self) -> list[DifferenceCounts]:
        """Compare everything and return counts by operator and state, those with differences first.

        Raises
        ------
        FormatError, DecodeError
            Bytes are damaged. Undamaged state that statetool cannot read is listed in :attr:`unread` instead.
        """
        from statetool.analysis.comparison.compare import sum_counts

        return sum_counts(self._counted)

    @property
    def unread(self) -> tuple[str, ...]:
        """Reasons why some state could not be compared; errors as for :meth:`summary`."""
        reasons = [*map(str, self._plan.unread), *(c.unread for c in self._counted if c.unread)]
        return tuple(dict.fromkeys(reasons))

    @property
    def equal(self) -> bool:
        """Whether everything was compared and there are no differences other than notes; errors as for :meth:`summary`."""
        structure = any(s.severity == "difference" for s in self.structure)
        return not structure and not self.unread and not any(s.added + s.removed + s.changed for s in self.summary())

    def first(self, limit: int) -> pa.Table:
        """Return the first differences, found during counting; errors as for :meth:`summary`. :meth:`to_arrow` returns all."""
        import pyarrow as pa

        from statetool.analysis.comparison.compare import rows_of

        if limit > self._kept_by_unit:
            self._kept_by_unit = limit
            self.__dict__.pop("_counted", None)
        return pa.concat_tables([*(rows_of(c) for c in self._counted), _no_differences()]).slice(0, limit)

    def batches(self, *, skip_unread: bool = False) -> Iterator[pa.RecordBatch]:
        """Compare in this process and yield differences: ``operator``, ``state``, ``key_group``, ``key``, ``namespace``, ``map_key``,
        ``list_index``, ``change`` (``added``, ``removed``, ``changed``), ``before``, ``after``.

        Keys and values are text. Nested values are JSON, and bytes are ``0x`` and hex. Splits, transactions and files of sources and sinks
        are JSON of what a connector decodes. A changed list has one row per differing element.

        Parameters
        ----------
        skip_unread
            Skip state that statetool cannot read and list it in :attr:`unread`.

        Raises
        ------
        FormatError, DecodeError
            Bytes are damaged.
        UnknownSerializerError, UnsupportedError
            Statetool cannot read some state, and ``skip_unread`` is not set.
        """
        from statetool.analysis.comparison.compare import differences

        if not skip_unread:
            self._refuse_unread()
        for unit in self._plan.units:
            with suppress(*UNREAD) if skip_unread else nullcontext():
                yield from differences(unit)

    def _refuse_unread(self) -> None:
        for error in self._plan.unread:
            raise error

    def to_arrow(self) -> pa.Table:
        """Read all differences into memory; columns and errors as for :meth:`batches`."""
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(), schema=_no_differences().schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return all differences as a pandas DataFrame; columns and errors as for :meth:`batches`.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        from statetool.columns.to_pandas import pandas_frame

        return pandas_frame(self.to_arrow())

    def __repr__(self) -> str:
        return f"Comparison({several(len(self._plan.units), 'part')} of state)"

    def _repr_html_(self) -> str:
        from statetool.reporting.verdicts.notebook import comparison_html

        (a, b), rows = self._paths, self.first(_MAX_SHOWN).to_pylist()
        return comparison_html(self.structure, self.summary(), rows, self.unread, a=a, b=b)

    def frame(self) -> DataFrame:
        """Return all differences as a DataFrame, without a shuffle; columns as for :meth:`batches`.

        Each partition holds some key groups.

        Raises
        ------
        MissingDependencyError
            No session was given, and none is active.
        UnknownSerializerError, UnsupportedError
            Statetool cannot read some state. If only tasks find out, the query fails.
        """
        from statetool.spark.differences import differences_frame

        self._refuse_unread()
        return differences_frame(self._execution.require_session(), self._plan.units)


def _no_differences() -> pa.Table:
    from statetool.analysis.comparison.records import DIFFERENCES

    return DIFFERENCES.empty_table()
