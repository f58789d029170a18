"""Tables of operators in DuckDB, read when a query needs them.

DuckDB scans objects like ``pyarrow.dataset.Dataset``: it asks them for a reader of some columns, and of the rows that fulfil some of the
conditions of the query. It does not evaluate these conditions again, so they are evaluated here on all rows. Arrow compares most types as
DuckDB does, but not floating-point numbers (for DuckDB, NaN is the largest). Conditions on these stay in DuckDB, see :func:`_selection`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from statetool.columns.storable import storable_schema, store_empty_structs
from statetool.errors import MissingDependencyError, StatetoolError
from statetool.tables.sql.conditions import arrow_condition, columns_of
from statetool.tables.sql.source import TableSource
from statetool.types.table_columns import distinct_names


class DuckDBTable(pyarrow.dataset.Dataset):
    """A table as the part of a dataset that DuckDB uses.

    Attributes
    ----------
    errors
        Errors raised while DuckDB read the table, which DuckDB replaces by its own.
    """

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._schema = pa.schema([f.with_type(distinct_fields(f.type)) for f in storable_schema(source.schema)])
        self.errors: list[StatetoolError | OSError] = []

    @property
    def schema(self) -> pa.Schema:
        """The schema of all columns."""
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> DuckDBScan:
        """Return the read of some columns and rows; called by DuckDB."""
        return DuckDBScan(self, self._schema.names if columns is None else list(columns), filter)

    def batches(self, columns: Sequence[str], expression: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows for which an expression is true."""
        try:
            condition = None if expression is None else arrow_condition(expression)
            if expression is None:
                needed = list(columns)
            else:
                used = self._schema.names if condition is None else columns_of(condition)
                needed = [*columns, *(name for name in self._schema.names if name in used and name not in columns)]
            for batch in self._source.scan(needed, condition).batches():
                rows = self._renamed(store_empty_structs(batch))
                if expression is None:
                    yield rows
                    continue
                matching = pa.Table.from_batches([rows]).filter(expression).select(columns)
                yield from matching.to_batches()
        except (StatetoolError, OSError) as error:
            self.errors.append(error)
            raise

    def _renamed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the names of fields in the schema."""
        schema = pa.schema([self._schema.field(name) for name in rows.schema.names])
        if schema.types == rows.schema.types:
            return rows
        return pa.RecordBatch.from_arrays([c.view(f.type) for c, f in zip(rows, schema, strict=True)], schema=schema)


class DuckDBScan:
    """One read of a table."""

    def __init__(self, table: DuckDBTable, columns: Sequence[str], expression: Any) -> None:
        self._table = table
        self._columns = columns
        self._expression = expression

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream; called by DuckDB."""
        schema = pa.schema([self._table.schema.field(name) for name in self._columns])
        return pa.RecordBatchReader.from_batches(schema, self._table.batches(self._columns, self._expression))


def require_duckdb() -> Any:
    """Return the module ``duckdb``.

    Raises
    ------
    MissingDependencyError
        DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError(f"this needs DuckDB: {error}", hint="run: pip install 'statetool[sql]'") from error
    return duckdb


def relation(connection: Any, table: DuckDBTable) -> Any:
    """Return a table as a relation of a DuckDB connection."""
    whole = connection.from_arrow(table)
    if not any(_compares_floats(field.type) for field in table.schema):
        return whole
    return whole.project(", ".join(_selection(field) for field in table.schema))


def distinct_fields(kind: pa.DataType) -> pa.DataType:
    """Return a type in which underscores are appended to names of fields that differ from others of their struct at most in case.

    DuckDB does not distinguish these: of both, it would always read the first. Columns are named in the same way
    (:func:`~statetool.types.table_columns.state_columns`).

    Examples
    --------
    >>> distinct_fields(pa.struct([("A", pa.int64()), ("a", pa.int64())]))
    StructType(struct<A: int64, a_: int64>)
    """
    if pa.types.is_struct(kind):
        fields = list(kind)
        names = distinct_names(field.name for field in fields)
        return pa.struct([f.with_name(names[f.name]).with_type(distinct_fields(f.type)) for f in fields])
    if pa.types.is_map(kind):
        return pa.map_(distinct_fields(kind.key_type), distinct_fields(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(distinct_fields(kind.value_type)))
    return kind


def quote(name: str) -> str:
    """Return a name as an SQL identifier.

    Examples
    --------
    >>> quote('a "b"')
    '"a ""b""\"'
    """
    return '"' + name.replace('"', '""') + '"'


def _selection(field: pa.Field) -> str:
    """Return the SQL for a column, in a form whose conditions DuckDB evaluates itself if Arrow would compare differently."""
    name = quote(field.name)
    return f"CASE WHEN {name} IS NULL THEN NULL ELSE {name} END AS {name}" if _compares_floats(field.type) else name


def _compares_floats(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_compares_floats(field.type) for field in kind)
    return bool(pa.types.is_floating(kind))
