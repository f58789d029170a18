"""SQL conditions on keys, evaluated by DuckDB on Arrow columns. DuckDB runs inside tasks, without access to files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.types import table_column
from statetool.columns.values import decode_framed
from statetool.errors import OptionError
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.saving.streams.condition_rules import (
    ROW,
    TABLE,
    changing_result,
    connection,
    is_changing,
    names_in,
    statement,
)
from statetool.saving.streams.filters import Bools, MaskFilter, key_bounds
from statetool.serializers.core.base import Serializer
from statetool.types.options import ReadOptions

#: How a condition sees values.
OPTIONS: Final = ReadOptions(decimals="plain")


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
        fulfilled[matching_rows(key_columns(header.key, keys), self.where)] = True
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
    if {name.lower() for name in names_in(where)} - {"key"}:
        return False
    check_columns(pa.schema(table_column(key.logical, OPTIONS).fields("key")), where)
    return True


def key_columns(key: Serializer, decoded: pa.Array) -> pa.Table:
    """Return decoded keys as the columns that tables show: ``key``, and beside it for example the nanoseconds of a timestamp."""
    column = table_column(key.logical, OPTIONS)
    return pa.Table.from_arrays(column.arrays(decoded), schema=pa.schema(column.fields("key")))


def check_columns(schema: pa.Schema, where: str) -> None:
    """Check that a condition can be evaluated on rows with these columns.

    Raises
    ------
    OptionError, MissingDependencyError
        As for :func:`matching_rows`.
    """
    matching_rows(schema.empty_table(), where)


def matching_rows(table: pa.Table, where: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indexes of the rows that fulfil a SQL condition.

    Raises
    ------
    OptionError
        The condition cannot be evaluated.
    MissingDependencyError
        DuckDB is not installed.
    """
    import duckdb

    check_names(table.schema, where)
    own = connection()
    own.register(TABLE, table.append_column(ROW, pa.array(np.arange(table.num_rows, dtype=np.int64))))
    try:
        found = own.execute(statement(where)).fetchnumpy()
    except duckdb.Error as error:
        raise invalid(table.schema, where, str(error).splitlines()[0]) from error
    finally:
        own.unregister(TABLE)
    return np.asarray(found[ROW], dtype=np.int64)


def check_names(schema: pa.Schema, where: str) -> None:
    """Check that a condition names columns only, and none with fields whose names differ only in case: DuckDB would read the first one."""
    columns = {name.lower(): name for name in schema.names}
    for name in sorted(names_in(where)):
        if name.lower() in columns:
            field = schema.field(columns[name.lower()])
            if (both := similar_fields(field.type)) is not None:
                words = " and ".join(map(repr, both))
                raise invalid(schema, where, f"{field.name!r} has the fields {words}, which SQL does not distinguish")
        elif is_changing(name):
            raise changing_result(where, name)
        else:
            raise invalid(schema, where, f"there is no column {name!r}")


def similar_fields(kind: pa.DataType) -> tuple[str, str] | None:
    """Return two fields of a struct inside a type whose names differ only in case, ``None`` if there are none."""
    seen: dict[str, str] = {}
    for i in range(kind.num_fields):
        field = kind.field(i)
        if pa.types.is_struct(kind) and (other := seen.setdefault(field.name.lower(), field.name)) != field.name:
            return other, field.name
        if (found := similar_fields(field.type)) is not None:
            return found
    return None


def invalid(schema: pa.Schema, where: str, reason: str) -> OptionError:
    """Return the error of a condition that cannot be evaluated on rows with these columns."""
    columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
    return OptionError(f"the condition {where!r} cannot be evaluated: {reason}", hint=f"the columns are {columns}")
