"""Queries of the explorer: one SELECT, without files, settings and extensions, and with limits of rows, memory and time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final

import statetool
from statetool.api.query import SavepointTables, engine
from statetool.errors import OptionError
from statetool.tables.export.result_files import plain_rows

_MOST_ROWS: Final = 500
_MEMORY: Final = "512MB"
_SECONDS: Final = 30.0


def table_names(savepoint: statetool.Savepoint) -> Iterator[str]:
    """Yield the names of the tables of a query."""
    yield from SavepointTables(lambda: savepoint, {}).names


def run_query(savepoint: statetool.Savepoint, sql: str) -> tuple[list[str], list[dict[str, Any]], bool]:
    """Run a query, and return its columns, its first rows and whether there are more.

    Raises
    ------
    OptionError
        Not one SELECT, it reads something else than the tables of the snapshot, or it takes too long.
    StatetoolError
        A table cannot be read.
    """
    opened = engine(savepoint, memory_limit=_MEMORY, on_error="keep_raw")
    connection = opened.connection
    try:
        _check_select(connection, sql)
        opened.columns_in(sql)  # opens the tables, before nothing else can be opened
        for setting in ("enable_external_access = false", "lock_configuration = true"):
            connection.execute(f"SET {setting}")
        timer = threading.Timer(_SECONDS, connection.interrupt)
        timer.start()
        try:
            reader = opened.query(sql)
            rows: list[dict[str, Any]] = []
            for batch in reader or ():
                rows += plain_rows(batch.slice(0, _MOST_ROWS + 1 - len(rows)))
                if len(rows) > _MOST_ROWS:
                    break
        except OptionError as error:
            if "interrupt" in str(error).lower():
                raise OptionError(
                    f"the query took more than {_SECONDS:g} s", hint="run it with: statetool sql"
                ) from error
            raise
        finally:
            timer.cancel()
        names = [] if reader is None else list(reader.schema.names)
        return names, rows[:_MOST_ROWS], len(rows) > _MOST_ROWS
    finally:
        connection.close()


def _check_select(connection: Any, sql: str) -> None:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise OptionError(str(error).partition("\nLINE ")[0]) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise OptionError("only one SELECT statement can be run here", hint="run others with: statetool sql")
