"""SQL conditions on keys, evaluated by DuckDB on Arrow columns. DuckDB runs inside tasks, without access to files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.types import arrow_type
from statetool.columns.values import decode_framed
from statetool.errors import MissingDependencyError, OptionError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.saving.streams.filters import Bools, MaskFilter, key_bounds
from statetool.serializers.base import Serializer
from statetool.types.options import ReadOptions

_ROW: Final = "__statetool_row"
#: How a condition sees values.
OPTIONS: Final = ReadOptions(decimals="plain")
#: Functions whose result changes with each evaluation: of chance, and without parameters, of time.
_CHANGING: Final = """SELECT DISTINCT function_name FROM duckdb_functions()
WHERE stability = 'VOLATILE' OR stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameters) = 0"""
_TIME_KEYWORDS: Final = {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
_local = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateFilter(MaskFilter):
    """Filter by a condition on the column ``key``.

    Attributes
    ----------
    keep
        Whether keys that fulfil the condition stay and all others are removed, instead of the opposite.
    groups
        The key groups that may have such keys, ``None`` if unknown.
    """

    where: str
    keep: bool = False
    groups: frozenset[int] | None = None

    def may_change(self, key_group: int) -> bool:
        return self.groups is None or key_group in self.groups

    def mask(self, header: KeyedHeader, batch: EntryBatch) -> Bools:
        start, end = key_bounds(header, batch)
        ids, first = distinct(batch.data, start, end, batch.group)
        keys = decode_framed(header.key, batch.data, start[first], end[first], OPTIONS)
        fulfilled = np.zeros(len(first), dtype=np.bool_)
        fulfilled[matching_rows(pa.table({"key": keys}), self.where)] = True
        return fulfilled[ids] if self.keep else ~fulfilled[ids]

    def within(self, groups: frozenset[int]) -> PredicateFilter:
        """Return the filter for a snapshot in which only these key groups change."""
        return replace(self, groups=groups)


def is_key_predicate(where: str, key: Serializer) -> bool:
    """Return True if a condition can be evaluated with the column ``key`` only.

    Raises
    ------
    MissingDependencyError
        DuckDB is not installed.
    """
    try:
        matching_rows(pa.table({"key": pa.array([], type=arrow_type(key.logical, OPTIONS))}), where)
    except OptionError:
        return False
    return True


def check_repeatable(where: str) -> None:
    """Refuse a condition whose result changes with each evaluation: entries are counted, written and proved one after another.

    Raises
    ------
    OptionError
        The condition calls a function such as ``random()`` or ``now()``.
    MissingDependencyError
        DuckDB is not installed.
    """
    connection, _ = _connection()
    # A condition that cannot be parsed has no names. Its error is that of the evaluation.
    (tree,) = connection.execute("SELECT json_serialize_sql(?)", [f"SELECT 1 FROM keys WHERE (\n{where}\n)"]).fetchone()
    changing = {name for (name,) in connection.execute(_CHANGING).fetchall()} | _TIME_KEYWORDS
    for name in sorted(set(_names(json.loads(tree))) & changing):
        raise OptionError(
            f"the condition calls {name}, whose result changes with each evaluation",
            hint="use constants, such as TIMESTAMP '2026-01-31 12:00:00'",
        )


def _names(tree: Any) -> Iterator[str]:
    """Yield the names of all functions in a parsed condition, and of columns, which keywords such as ``current_date`` look like."""
    if isinstance(tree, dict):
        if tree.get("class") == "FUNCTION":
            yield tree["function_name"].lower()
        if tree.get("class") == "COLUMN_REF" and len(tree["column_names"]) == 1:
            yield tree["column_names"][0].lower()
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _names(part)


def matching_rows(table: pa.Table, where: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indexes of the rows that fulfil a SQL condition.

    Raises
    ------
    OptionError
        The condition cannot be evaluated.
    MissingDependencyError
        DuckDB is not installed.
    """
    connection, error_type = _connection()
    numbered = table.append_column(_ROW, pa.array(np.arange(table.num_rows, dtype=np.int64)))
    connection.register("keys", numbered)
    try:
        # The condition ends with its line, so that it cannot be followed by a comment that hides the parenthesis.
        found = connection.execute(f"SELECT {_ROW} FROM keys WHERE (\n{where}\n) ORDER BY {_ROW}").fetchnumpy()
    except error_type as error:
        columns = ", ".join(f"{f.name} ({f.type})" for f in table.schema)
        raise OptionError(
            f"the condition {where!r} cannot be evaluated: {str(error).splitlines()[0]}",
            hint=f"the columns are {columns}",
        ) from error
    finally:
        connection.unregister("keys")
    return np.asarray(found[_ROW], dtype=np.int64)


def _connection() -> tuple[Any, Any]:
    """Return the connection of this thread, and the class of its errors."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(
            "a SQL condition needs DuckDB", hint="run: pip install 'statetool[sql]'"
        ) from error
    if not hasattr(_local, "connection"):
        config: dict[str, Any] = {"enable_external_access": "false", "threads": "1", "lock_configuration": "true"}
        _local.connection = duckdb.connect(":memory:", config=config)
    return _local.connection, duckdb.Error
