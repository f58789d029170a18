"""SQL expressions of one row, evaluated by DuckDB on Arrow columns. The rules are those of conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from statetool.errors import OptionError
from statetool.saving.streams.condition_rules import ROW, TABLE, connection, names_in
from statetool.saving.streams.predicates import check_names, invalid

_RESULT = "__statetool_result"


def names_of(sql: str) -> frozenset[str]:
    """Return the columns that an expression names, as it writes them.

    Raises
    ------
    OptionError
        It is not an expression of one row with a lasting result.
    MissingDependencyError
        DuckDB is not installed.
    """
    with _called_expression():
        return names_in(sql)


def result_type(schema: pa.Schema, sql: str) -> pa.DataType:
    """Return the type of an expression's results on rows with these columns; errors as for :func:`evaluate`."""
    return evaluate(schema.empty_table(), sql).type


def evaluate(table: pa.Table, sql: str) -> pa.Array:
    """Return the result of a SQL expression for each row.

    Raises
    ------
    OptionError
        The expression cannot be evaluated.
    MissingDependencyError
        DuckDB is not installed.
    """
    with _called_expression():
        return _evaluate(table, sql)


def _evaluate(table: pa.Table, sql: str) -> pa.Array:
    import duckdb

    check_names(table.schema, sql)
    own = connection()
    own.register(TABLE, table.append_column(ROW, pa.array(np.arange(table.num_rows, dtype=np.int64))))
    try:
        # The expression ends with its line, so that it cannot be followed by a comment that hides the parenthesis.
        query = f"SELECT (\n{sql}\n) AS {_RESULT} FROM {TABLE} ORDER BY {ROW}"
        result = own.sql(query).to_arrow_table()[_RESULT]
    except duckdb.Error as error:
        raise invalid(table.schema, sql, str(error).splitlines()[0]) from error
    finally:
        own.unregister(TABLE)
    return result.combine_chunks() if result.num_chunks != 1 else result.chunk(0)


@contextmanager
def _called_expression() -> Iterator[None]:
    """Call what is evaluated an expression in errors that speak of a condition."""
    try:
        yield
    except OptionError as error:
        error.message = error.message.replace("the condition", "the expression", 1)
        raise
