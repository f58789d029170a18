"""Rows of the tables of statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from statetool.errors import UnknownNameError, several, suggest
from statetool.types.operators import OperatorRecord, operator_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Scope = Literal["keyed", "operator", ""]
Part = Literal["entries", "header", "framing", "unread", "raw", "in flight", "coordinator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow(OperatorRecord):
    """Bytes of one state in one key group of one subtask, or bytes outside of entries.

    ``size_bytes`` of all rows of an operator add up to the size of its files. ``part`` is ``entries``: the bytes of keys (with namespace
    and map key) and of values; ``header``: names of states, and serializers; ``framing``: lengths and marks between entries, minus
    the bytes saved by compression, and those that a database stores twice (so it can be negative); ``unread``: unreadable bytes; or other
    state of the operator: ``raw``, ``in flight``, ``coordinator``.

    ``keys`` counts distinct keys of the job; ``None`` for timers, operator state, and keys that cannot be distinguished. ``key_group`` is
    ``None`` for bytes of several key groups: those outside of entries in databases and logs. ``entries``, ``key_bytes`` and ``value_bytes`` of
    unreadable bytes are ``None``.
    """

    scope: Scope
    state: str | None
    part: Part
    subtask: int | None
    key_group: int | None
    entries: int | None
    keys: int | None
    key_bytes: int | None
    value_bytes: int | None
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSizeRow(OperatorRecord):
    """One state over all subtasks. ``share`` is its share of all bytes of the operator's entries; ``largest_value`` is in bytes.

    All numbers of keyed state are ``None`` if some of the operator's keyed state could not be read.
    """

    scope: str
    state: str
    kind: str
    entries: int | None
    keys: int | None
    key_bytes: int | None
    value_bytes: int | None
    size_bytes: int | None
    mean_value: float | None
    largest_value: int | None
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestRow(OperatorRecord):
    """One of the largest keys, values, lists or maps.

    ``what`` is ``key`` (a key with all of its states, timers not counted), ``value``, ``list`` or ``map`` (of one key and namespace).
    ``length`` counts entries of a key, elements of a list, entries of a map. ``key`` is the key as text, ``key_bytes`` its bytes
    in hex.
    """

    what: str
    state: str | None
    key: str
    key_bytes: str
    key_group: int
    subtask: int
    length: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionRow(OperatorRecord):
    """Number of sizes from ``at_least`` to ``at_most``; ``what`` is ``key_bytes``, ``value_bytes`` or ``length`` (of lists and maps)."""

    state: str
    what: str
    at_least: int
    at_most: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewRow(OperatorRecord):
    """One subtask's share of an operator's keyed entries at a parallelism; ``of_mean`` is 1 if all subtasks have the same."""

    parallelism: int
    subtask: int
    key_groups: int
    entries: int
    size_bytes: int
    of_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeRow(OperatorRecord):
    """Values with TTL by last access, in a span of milliseconds before now; ``None`` means unbounded.

    ``expired`` counts those older than the given TTL; ``None`` if none was given.
    """

    state: str
    age_at_least_ms: int | None
    age_below_ms: int | None
    count: int
    expired: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRow(OperatorRecord):
    """Timers by firing time, in a span of milliseconds from now; below 0 is overdue. ``None`` means unbounded.

    Whether event-time timers are overdue depends on the job's watermark, which a snapshot does not have. ``first_ms`` and ``last_ms``
    are epoch milliseconds.
    """

    state: str
    domain: str
    in_at_least_ms: int | None
    in_below_ms: int | None
    count: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRow(OperatorRecord):
    """Bytes that one subtask reads to restore an operator's state, and the approximate time.

    ``own_bytes`` are those of its key groups; the rest of ``read_bytes`` belongs to other subtasks (files of databases are fetched whole).
    ``files`` counts distinct files (state inside the metadata has none), ``requests`` the streams opened, one after another.
    """

    parallelism: int
    subtask: int
    files: int
    requests: int
    read_bytes: int
    own_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSizeRow(OperatorRecord):
    """One operator. ``size_bytes`` is the size of its files; ``snappy_ratio`` is compressed over plain bytes of a sample of entries.

    ``entries_bytes``, ``entries`` and ``keys`` are ``None`` if some of its keyed state could not be read: ``unread_bytes``.
    """

    parallelism: int
    max_parallelism: int
    size_bytes: int
    entries_bytes: int | None
    header_bytes: int
    framing_bytes: int
    unread_bytes: int
    other_bytes: int
    entries: int | None
    keys: int | None
    snappy_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """One state in one of a job's checkpoints, and the change since the previous one; ``None`` in the first.

    ``entries`` and ``size_bytes`` are ``None`` if keyed state could not be read.
    """

    checkpoint_id: int
    path: str
    operator: str
    operator_name: str = field(init=False)
    state: str
    entries: int | None
    size_bytes: int | None
    entries_added: int | None
    bytes_added: int | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator_name", operator_name(self.operator))


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedOperatorRow(OperatorRecord):
    """One operator, by its metadata and the properties of its table files.

    ``stored_bytes`` is exact: the size of its files. ``entries`` and ``size_bytes`` (keys and values before compression) are estimates, and
    ``None`` if they are unknown for some state. ``at_least`` and ``at_most`` are bounds of the entries; ``at_most`` is ``None`` if it is unknown.
    """

    parallelism: int
    max_parallelism: int
    files: int
    stored_bytes: int
    entries: int | None
    at_least: int
    at_most: int | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedStateRow(OperatorRecord):
    """One state over all subtasks; numbers as in :class:`EstimatedOperatorRow`.

    ``stored_bytes`` is ``None`` if the state shares its files with others. ``basis`` is the origin of the number of entries: ``metadata``
    (exact), ``table properties`` (estimate with bounds), or the reason why it is unknown.
    """

    scope: str
    state: str
    kind: str
    entries: int | None
    at_least: int
    at_most: int | None
    key_bytes: int | None
    value_bytes: int | None
    size_bytes: int | None
    stored_bytes: int | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedRangeRow(OperatorRecord):
    """A range of key groups of one subtask: one state of a database, or one key group of a stream.

    ``state`` is ``None`` for all states of a stream together. Other numbers as in :class:`EstimatedStateRow`.
    """

    state: str | None
    subtask: int
    first_key_group: int
    last_key_group: int
    entries: int | None
    at_least: int
    at_most: int | None
    stored_bytes: int


#: Tables of estimates by name.
ESTIMATES: Final[Mapping[str, type[Any]]] = {
    "operators": EstimatedOperatorRow,
    "states": EstimatedStateRow,
    "key_groups": EstimatedRangeRow,
}

#: Tables of statistics by name.
TABLES: Final[Mapping[str, type[Any]]] = {
    "operators": OperatorSizeRow,
    "states": StateSizeRow,
    "sizes": SizeRow,
    "largest": LargestRow,
    "distribution": DistributionRow,
    "skew": SkewRow,
    "ages": AgeRow,
    "timers": TimerRow,
    "restore": RestoreRow,
}


class RecordTables:
    """Tables of plain rows, small regardless of the size of the state.

    Parameters
    ----------
    records
        The dataclass of the rows of each table.
    tables
        The rows, or a function that returns them and is called once they are needed.
    """

    def __init__(
        self, records: Mapping[str, type[Any]], tables: Mapping[str, list[Any] | Callable[[], list[Any]]]
    ) -> None:
        self._records = records
        self._tables = dict(tables)

    @property
    def tables(self) -> tuple[str, ...]:
        """Return the names of the tables."""
        return tuple(self._tables)

    def rows(self, table: str) -> list[Any]:
        """Return the rows of a table as records.

        Raises
        ------
        UnknownNameError
            There is no such table.
        """
        if table not in self._tables:
            raise UnknownNameError(f"no statistics table {table!r}", hint=suggest(table, self._tables))
        rows = self._tables[table]
        if callable(rows):
            rows = self._tables[table] = rows()
        return rows

    def to_arrow(self, table: str) -> pa.Table:
        """Return a table as Arrow; raises the errors of :meth:`rows`."""
        from statetool.tables.metadata import records_table

        return records_table(self._records[table], self.rows(table))

    def to_pandas(self, table: str) -> pd.DataFrame:
        """Return a table as a pandas DataFrame. Integers beside nulls stay integers.

        Raises
        ------
        UnknownNameError
            There is no such table.
        MissingDependencyError
            pandas is not installed.
        """
        from statetool.columns.to_pandas import pandas_frame

        return pandas_frame(self.to_arrow(table))

    def __repr__(self) -> str:
        tables = ", ".join(f"{name}: {several(len(self.rows(name)), 'row')}" for name in self._tables)
        return f"{type(self).__name__}({tables})"
