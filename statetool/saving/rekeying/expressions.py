"""SQL expressions of one row, evaluated by DuckDB on Arrow columns. The rules are those of conditions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statetool.errors import OptionError
from statetool.saving.streams.condition_rules import ROW, TABLE, connection, is_changing, names_in
from statetool.saving.streams.predicates import similar_fields

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
    try:
        return names_in(sql)
    except OptionError as error:
        error.message = error.message.replace("the condition", "the expression", 1)
        raise


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
    import duckdb

    _check_names(table.schema, sql)
    own = connection()
    own.register(TABLE, table.append_column(ROW, pa.array(np.arange(table.num_rows, dtype=np.int64))))
    try:
        # The expression ends with its line, so that it cannot be followed by a comment that hides the parenthesis.
        query = f"SELECT (\n{sql}\n) AS {_RESULT} FROM {TABLE} ORDER BY {ROW}"
        result = own.sql(query).to_arrow_table()[_RESULT]
    except duckdb.Error as error:
        raise _invalid(table.schema, sql, str(error).splitlines()[0]) from error
    finally:
        own.unregister(TABLE)
    return result.combine_chunks() if result.num_chunks != 1 else result.chunk(0)


def _check_names(schema: pa.Schema, sql: str) -> None:
    columns = {name.lower(): name for name in schema.names}
    for name in sorted(names_of(sql)):
        if name.lower() not in columns:
            what = (
                f"calls {name.lower()}, whose result changes" if is_changing(name) else f"there is no column {name!r}"
            )
            raise _invalid(schema, sql, what)
        if (both := similar_fields(schema.field(columns[name.lower()]).type)) is not None:
            words = " and ".join(map(repr, both))
            raise _invalid(schema, sql, f"{name!r} has the fields {words}, which SQL does not distinguish")


def _invalid(schema: pa.Schema, sql: str, reason: str) -> OptionError:
    columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
    return OptionError(f"the expression {sql!r} cannot be evaluated: {reason}", hint=f"the columns are {columns}")
