"""Analysis of whole snapshots: large state, growth, differences, compatibility. Heavy packages are imported at first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypedDict, TypeVar

from typing_extensions import Unpack

from statetool.api.execution import needed_session
from statetool.errors import UNREAD
from statetool.io.threads import in_threads
from statetool.snapshot.inventory import Inventory
from statetool.tables.option_text import Key
from statetool.types.options import name_list, refuse_unknown, whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.comparison.compare import UnitCounts
    from statetool.comparison.plan import ComparisonPlan
    from statetool.comparison.records import DifferenceCounts, StructureDifference
    from statetool.compatibility.verdicts import Check
    from statetool.statistics.records import GrowthRow
    from statetool.statistics.statistics import Statistics

T = TypeVar("T")
R = TypeVar("R")


class StatisticsOptions(TypedDict, total=False):
    """Options of :meth:`statetool.Savepoint.stats`."""

    operators: Sequence[str] | None
    largest: int
    parallelism: int | None
    ttl_ms: int | None
    now_ms: int | None
    bandwidth_mib: float
    latency_ms: float
    spark: SparkSession | None
    threads: int | None


def measured(inventory: Inventory, **options: Unpack[StatisticsOptions]) -> Statistics:
    """Measure operators; see :meth:`statetool.Savepoint.stats`."""
    from statetool.statistics.statistics import (
        BANDWIDTH_MIB,
        LATENCY_MS,
        MOST_LARGEST,
        StatisticsRequest,
        statistics_of,
    )

    refuse_unknown(options, list(StatisticsOptions.__annotations__))
    request = StatisticsRequest.of(
        largest=options.get("largest", MOST_LARGEST),
        parallelism=options.get("parallelism"),
        ttl_ms=options.get("ttl_ms"),
        now_ms=options.get("now_ms"),
        bandwidth_mib=options.get("bandwidth_mib", BANDWIDTH_MIB),
        latency_ms=options.get("latency_ms", LATENCY_MS),
    )
    names = _optional_names("operators", options.get("operators"))
    operators = list(inventory.operators.values()) if names is None else [inventory.operator(n) for n in names]
    return statistics_of(operators, request, each_of(options.get("spark"), options.get("threads")))


def growth(root: str, *, rebase: Mapping[str, str] | None = None, threads: int | None = None) -> list[GrowthRow]:
    """Measure every complete snapshot below a directory, and the growth from each to the next of its job.

    Parameters
    ----------
    root
        A directory with checkpoints: a local path or any URI that fsspec can list.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    threads
        Threads of this process, by default one per core.

    Raises
    ------
    SnapshotNotFoundError
        There is no complete snapshot below it.
    FormatError, DecodeError
        Bytes are damaged.
    """
    from statetool.statistics.growth import growth_rows

    return growth_rows(root, tuple((rebase or {}).items()), each_of(None, threads))


class Comparison:
    """Differences between two snapshots: in their metadata and headers, in counts, and key by key.

    Until you request counts or differences, only headers are read.
    """

    def __init__(self, plan: ComparisonPlan, spark: SparkSession | None, threads: int | None) -> None:
        self._plan = plan
        self._spark = spark
        self._each = each_of(spark, threads)
        #: Number of differences that are retained per compared unit during counting.
        self._kept_by_unit = 100

    @property
    def structure(self) -> tuple[StructureDifference, ...]:
        """Differing operators, states, kinds and types (severity ``difference``), and differences that do not affect values (``note``)."""
        return self._plan.structure

    @cached_property
    def _counted(self) -> list[UnitCounts]:
        from statetool.comparison.compare import CountTask, count_differences

        return list(self._each(count_differences, [CountTask(unit, self._kept_by_unit) for unit in self._plan.units]))

    def summary(self) -> list[DifferenceCounts]:
        """Compare everything and return counts by operator and state, those with differences first.

        Raises
        ------
        FormatError, DecodeError
            Bytes are damaged. Undamaged state that statetool cannot read is listed in :attr:`unread` instead.
        """
        from statetool.comparison.compare import sum_counts

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

        from statetool.comparison.compare import rows_of

        if limit > self._kept_by_unit:
            self._kept_by_unit = limit
            self.__dict__.pop("_counted", None)
        return pa.concat_tables([*(rows_of(c) for c in self._counted), _no_differences()]).slice(0, limit)

    def batches(self, *, skip_unread: bool = False) -> Iterator[pa.RecordBatch]:
        """Compare in this process and yield differences: ``operator``, ``state``, ``key_group``, ``key``, ``namespace``, ``map_key``,
        ``list_index``, ``change`` (``added``, ``removed``, ``changed``), ``before``, ``after``.

        Keys and values are text. Nested values are JSON, and bytes are ``0x`` and hex. A changed list has one row per differing element.

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
        from statetool.comparison.compare import differences

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

    def frame(self) -> DataFrame:
        """Return all differences as a DataFrame, without a shuffle; columns as for :meth:`batches`.

        Each partition holds some key groups.

        Raises
        ------
        MissingDependencyError
            There is no session.
        UnknownSerializerError, UnsupportedError
            Statetool cannot read some state. If only tasks find out, the query fails.
        """
        from statetool.spark.differences import differences_frame

        self._refuse_unread()
        return differences_frame(needed_session(self._spark), self._plan.units)


def _no_differences() -> pa.Table:
    from statetool.comparison.records import DIFFERENCES

    return DIFFERENCES.empty_table()


def checked(old: Inventory, new: Inventory | None, flink: str | None, backend: str | None) -> Check:
    """Check whether a job would restore from a snapshot; see :func:`statetool.check`."""
    from statetool.compatibility.check import check_inventories

    return check_inventories(old, new, flink, backend)


class ComparisonOptions(TypedDict, total=False):
    """Options of :meth:`statetool.Savepoint.diff`."""

    operators: Sequence[str] | None
    states: Sequence[str] | None
    keys: Sequence[Key] | None
    access_times: bool
    threads: int | None


def compared(
    before: Inventory, after: Inventory, spark: SparkSession | None, **options: Unpack[ComparisonOptions]
) -> Comparison:
    """Compare two snapshots; see :meth:`statetool.Savepoint.diff`."""
    from statetool.comparison.plan import ComparisonRequest, plan_comparison

    refuse_unknown(options, list(ComparisonOptions.__annotations__))
    keys = options.get("keys")
    request = ComparisonRequest(
        operators=_optional_names("operators", options.get("operators")),
        states=_optional_names("states", options.get("states")),
        keys=None if keys is None else tuple(keys),
        access_times=options.get("access_times", True),
    )
    return Comparison(plan_comparison(before, after, request), spark, options.get("threads"))


def _optional_names(option: str, names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else name_list(option, names)


def each_of(spark: SparkSession | None, threads: int | None) -> Callable[[Callable[[T], R], Sequence[T]], Iterable[R]]:
    """Return a function that maps another function over many items, in tasks of a session or in threads of this process."""
    if threads is not None:
        whole_number("threads", threads, least=1)
    if spark is None:
        return partial(in_threads, threads=threads)
    from statetool.spark.tasks import run_tasks

    return partial(run_tasks, spark)
