"""SQL over the tables of snapshots with DuckDB, in this process and with bounded memory."""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from statetool.errors import OptionError, StatetoolError, UnknownNameError, suggest, warn
from statetool.tables.duckdb_settings import use_utc
from statetool.tables.sql.duckdb_tables import DuckDBTable, quote, relation, require_duckdb
from statetool.tables.sql.source import TableSource

#: Default memory of DuckDB itself. What does not fit is written to a temporary directory.
MEMORY_LIMIT: Final = "512MB"
#: Queries with these words may list tables that they do not name.
_LISTS_TABLES: Final = re.compile(r"\b(show|describe|pragma|information_schema|duckdb_\w+|pg_\w+|sqlite_\w+)\b", re.I)
_NO_TABLE: Final = re.compile(r"Table with name (\S+) does not exist")
_BATCH_ROWS: Final = 10_000


class SnapshotTables(Protocol):
    """The tables of one snapshot."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the tables."""
        ...

    def open(self, name: str) -> TableSource | pa.Table:
        """Return a table."""
        ...


def connect(memory_limit: str = MEMORY_LIMIT, threads: int | None = None) -> Any:
    """Return a connection to a DuckDB in memory, in UTC, that downloads nothing and does not look for tables among Python's variables.

    Raises
    ------
    MissingDependencyError
        DuckDB is not installed.
    OptionError
        ``memory_limit`` is not a size.
    """
    duckdb = require_duckdb()
    config: dict[str, Any] = {
        "memory_limit": memory_limit,
        # DuckDB creates the directory when a query needs it, and removes it at the end.
        "temp_directory": os.path.join(tempfile.gettempdir(), f"statetool-sql-{uuid.uuid4().hex}"),
        "autoinstall_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    if threads is not None:
        config["threads"] = threads
    try:
        connection = duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        raise OptionError(f"memory limit {memory_limit!r}: {_message(error)}", hint="pass a size such as 2GB") from None
    # Wherever Python looks interactive, DuckDB prints a progress bar among the rows of a query that takes two seconds.
    connection.execute("SET enable_progress_bar = false")
    use_utc(connection)
    return connection


class Engine:
    """SQL queries over snapshots: each is a schema. Tables are opened when a query names them.

    Parameters
    ----------
    snapshots
        The tables of each snapshot by schema name. The last one is the default schema.
    memory_limit
        Memory of DuckDB itself. What does not fit is written to a temporary directory.
    threads
        Threads of DuckDB, by default one per core.
    """

    def __init__(
        self,
        snapshots: Mapping[str, SnapshotTables],
        *,
        memory_limit: str = MEMORY_LIMIT,
        threads: int | None = None,
    ) -> None:
        self.snapshots = dict(snapshots)
        self.default = list(self.snapshots)[-1]
        self.connection = connect(memory_limit, threads)
        self._opened: dict[tuple[str, str], DuckDBTable | pa.Table] = {}
        for schema in self.snapshots:
            self.connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}")
        self._use(self.default)

    def names(self) -> list[str]:
        """Return the names of all tables, with their schema unless it is the default one."""
        tables = [(schema, name) for schema, own in self.snapshots.items() for name in own.names]
        return [name if schema == self.default else f"{schema}.{name}" for schema, name in tables]

    def columns_in(self, sql: str) -> list[str]:
        """Return the columns of the tables that a statement names."""
        tables = self._open_named(sql)
        return list(dict.fromkeys(name for place in tables for name in self._opened[place].schema.names))

    def query(self, sql: str) -> pa.RecordBatchReader | None:
        """Run SQL and return its result as a stream; ``None`` if the statement has no result.

        Raises
        ------
        UnknownNameError
            A table does not exist.
        OptionError
            The SQL is not valid, or DuckDB cannot run it.
        StatetoolError
            A table cannot be read.
        """
        import duckdb

        self._open_named(sql)
        try:
            result = self.connection.sql(sql)
            if result is None:
                return None
            stream = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_arrow_reader
            reader = stream(_BATCH_ROWS)
        except duckdb.Error as error:
            raise self._error(error, sql) from error
        return pa.RecordBatchReader.from_batches(reader.schema, self._checked(reader, sql))

    def open_all(self) -> None:
        """Make all tables available to DuckDB. Those that cannot be opened cause a warning."""
        for schema, snapshot in self.snapshots.items():
            for name in snapshot.names:
                try:
                    self._open(schema, name)
                except StatetoolError as error:
                    warn(f"{schema}.{name} is left out of SQL: {error}", stacklevel=2)

    def _open_named(self, sql: str) -> list[tuple[str, str]]:
        """Open the tables whose names are words of a statement, and return their schemas and names."""
        if _LISTS_TABLES.search(sql):
            self.open_all()
        words = set(re.findall(r"\w+", sql.lower()))
        schemas = [s for s in self.snapshots if s == self.default or s in words]
        named = [(schema, name) for schema in schemas for name in self.snapshots[schema].names if name in words]
        for schema, name in named:
            self._open(schema, name)
        return named

    def _open(self, schema: str, name: str) -> None:
        if (schema, name) in self._opened:
            return
        import duckdb

        source = self.snapshots[schema].open(name)
        table = DuckDBTable(source) if isinstance(source, TableSource) else source
        self._use(schema)
        try:
            rows = (
                relation(self.connection, table)
                if isinstance(table, DuckDBTable)
                else self.connection.from_arrow(table)
            )
            rows.create_view(name)
        except duckdb.Error as error:
            raise OptionError(f"table {name!r} is not available in DuckDB: {_message(error)}") from error
        finally:
            self._use(self.default)
        self._opened[schema, name] = table

    def _use(self, schema: str) -> None:
        self.connection.execute(f"SET schema = '{schema}'")

    def _checked(self, reader: pa.RecordBatchReader, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a result. Errors of tables are raised instead of DuckDB's."""
        import duckdb

        try:
            yield from reader
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise self._error(error, sql) from error

    def _error(self, error: Exception, sql: str) -> Exception:
        for table in self._opened.values():
            if isinstance(table, DuckDBTable) and table.errors:
                cause = table.errors[0]
                table.errors.clear()
                return cause
        message = _message(error)
        if (found := _NO_TABLE.search(message)) is not None:
            name = found[1].strip('"')
            return UnknownNameError(f"no table {name!r}", hint=suggest(name.lower(), self.names()))
        return OptionError(message)


def _message(error: Exception) -> str:
    """Return DuckDB's message in one line, without the copy of the query."""
    return " ".join(str(error).partition("\nLINE ")[0].split())
