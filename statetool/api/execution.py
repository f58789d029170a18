"""Results as DataFrames of a session, or as Arrow tables without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.saving.composition import Runner
    from statetool.snapshot.state_info import StateInfo

T = TypeVar("T")


class ShownMapping(Mapping[str, T]):
    """A mapping by name that notebooks show as a table and complete by its names."""

    def __init__(self, items: dict[str, T], html: Callable[[], str]) -> None:
        self._items = items
        self._html = html

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def _repr_html_(self) -> str:
        return self._html()

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


def remarks(states: Mapping[str, StateInfo], table: str) -> list[str]:
    """Return the reasons why states in a table stay bytes, with the declarations that would decode them."""
    shown = [s for s in states.values() if s.scope == "keyed"] if table == "keyed_state" else [states.get(table)]
    return [f"{s.name}: {s.reason}" for s in shown if s is not None and s.reason]


def shown_records(spark: SparkSession | None, record: type[Any], rows: list[Any]) -> DataFrame | pa.Table:
    """Return records as a DataFrame, or as an Arrow table if no session was given."""
    from statetool.tables.metadata import records_table

    table = records_table(record, rows)
    if spark is None:
        return table
    from statetool.spark.tables import arrow_frame

    return arrow_frame(spark, table)


def needed_session(spark: SparkSession | None) -> SparkSession:
    """Return the given session, or else the active one of this process.

    Raises
    ------
    MissingDependencyError
        There is no session.
    """
    if spark is not None:
        return spark
    from statetool.spark.session import active_session

    return active_session()


def runner_of(
    spark: SparkSession | None, progress: Callable[[int], object] | None = None, threads: int | None = None
) -> Runner:
    """Return the runner of a session, or threads of this process if there is none."""
    if spark is not None:
        from statetool.spark.runner import SparkRunner

        return SparkRunner(spark)
    from statetool.saving.local import LocalRunner

    return LocalRunner(threads, progress)
