"""Results as DataFrames of a session, or as Arrow tables where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.snapshot.state_info import StateInfo


T = TypeVar("T")


class ShownMapping(Mapping[str, T]):
    """Things by name, which notebooks show as a table and complete by their names."""

    def __init__(self, found: dict[str, T], html: Callable[[], str]) -> None:
        self._found = found
        self._html = html

    def __getitem__(self, name: str) -> T:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(self._found)

    def _repr_html_(self) -> str:
        return self._html()

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


def remarks(states: Mapping[str, StateInfo], table: str) -> list[str]:
    """Return why of the states in a table some stay bytes, and what would make more of them."""
    shown = [s for s in states.values() if s.scope == "keyed"] if table == "keyed_state" else [states.get(table)]
    return [f"{s.name}: {s.reason}" for s in shown if s is not None and s.reason]


def shown_records(spark: SparkSession | None, record: type[Any], rows: list[Any]) -> DataFrame | pa.Table:
    """Return records as a DataFrame, or as an Arrow table if no session was given."""
    from statetool.tables.metadata import records_table

    found = records_table(record, rows)
    if spark is None:
        return found
    from statetool.spark.tables import arrow_frame

    return arrow_frame(spark, found)


def needed_session(spark: SparkSession | None) -> SparkSession:
    """Return the session that was given, or else the one that is active in this process.

    Raises
    ------
    MissingDependencyError
        There is none.
    """
    if spark is not None:
        return spark
    from statetool.spark.session import active_session

    return active_session()
