"""SQL over the tables of snapshots with DuckDB, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeAlias

from typing_extensions import Unpack

from statetool.api.catalog import Catalog, table_places
from statetool.api.load import load
from statetool.api.operator import Operator
from statetool.api.savepoint import Savepoint
from statetool.errors import OptionError
from statetool.snapshot.metadata_tables import METADATA_TABLES
from statetool.tables.request import ScanRequest, list_options
from statetool.types.operators import name_in_sql
from statetool.types.options import ReadingOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from statetool.tables.sql.engine import Engine
    from statetool.tables.sql.source import TableSource

#: Snapshots to query: one, a directory of them, or some by schema name.
Snapshots: TypeAlias = "str | Savepoint | Catalog | Mapping[str, str | Savepoint]"
#: Names of schemas that DuckDB has.
_OF_DUCKDB: Final = ("main", "temp", "system", "information_schema", "pg_catalog")


class SavepointTables:
    """The tables of a snapshot for :class:`statetool.tables.sql.engine.Engine`: those of its operators, and its metadata tables.

    Parameters
    ----------
    open_savepoint
        Opens the snapshot, when a query first needs it.
    options
        Options for showing values.
    """

    def __init__(self, open_savepoint: Callable[[], Savepoint], options: ReadingOptions) -> None:
        self._open_savepoint = open_savepoint
        self._options = options

    @cached_property
    def savepoint(self) -> Savepoint:
        """The snapshot."""
        return self._open_savepoint()

    @cached_property
    def _places(self) -> dict[str, tuple[Operator, str]]:
        return table_places(self.savepoint)

    @property
    def names(self) -> list[str]:
        """Names of the tables. A table of an operator takes precedence over a metadata table of the same name."""
        return [*dict.fromkeys((*METADATA_TABLES, *self._places))]

    def open(self, name: str) -> TableSource | pa.Table:
        """Return a table."""
        from statetool.tables.sql.source import TableSource

        if name not in self._places:
            return self.savepoint.to_arrow(name)
        operator, table = self._places[name]
        return TableSource(operator.inventory, ScanRequest.of(table, **self._options))


@list_options(ReadingOptions)
def query(
    snapshots: Snapshots,
    sql: str,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    **options: Unpack[ReadingOptions],
) -> pa.RecordBatchReader:
    """Run SQL over the tables of snapshots with DuckDB, in this process, and return the result as a stream.

    Tables have the names of :attr:`Database.tables`: ``<operator>_keyed_state``, ``<operator>_timers``, ``<operator>_<state>``. Each
    snapshot is a schema and also has the tables ``operators``, ``states``, ``files``, ``key_groups`` and ``in_flight``. Only the tables,
    columns and keys that the query needs are read, batch by batch.

    Parameters
    ----------
    snapshots
        The path of a snapshot, an open one, a catalog (its newest snapshot is the default schema), or snapshots by schema name (the last
        one is the default).
    sql
        The statement, in DuckDB's dialect.
    memory_limit
        Memory of DuckDB itself, by default ``"512MB"``. What does not fit is written to a temporary directory.
    threads
        Threads of DuckDB, by default one per core.
    ttl, ttl_ms, now_ms
        Form of values with a TTL: ``show`` (default) returns only the value, ``raw`` a struct of ``last_access`` (timestamp) and
        ``value``. ``hide_expired`` omits values that had expired at ``now_ms`` (epoch milliseconds, by default the current time),
        ``ttl_ms`` milliseconds after their last access.
    nanos
        Digits below the microsecond: ``companion`` (default) keeps them in an int column ``<name>_nanos`` (0..999) if the type can
        have them, ``always`` for all SQL timestamps above precision 3. ``error`` raises an error, and ``truncate`` drops them.
    decimals
        Form of Java's BigDecimal and BigInteger. ``decimal`` (default): decimal(38,18) and decimal(38,0), with the scale of each
        BigDecimal in a column ``<name>_scale``; a value that does not fit is an error. ``plain``: the same without that column.
        ``string``: their exact text.
    presence
        ``companion`` (default) adds a bool column ``<name>_present`` to ``keyed_state`` for states whose values can be null
        themselves (Scala's ``None``). It is true for keys that have the state. ``omit`` does not add it.
    on_error
        ``error`` (default), or ``keep_raw``: a value that cannot be decoded is null, and its bytes are in the map ``_undecoded``.
    columns
        Field names of rows, ``{"key": ["user"]}``, or field names and types of rows for which the snapshot has none,
        ``{"state": "ROW<id BIGINT, name STRING>"}``, by ``key``, state, or path (``state.value``).

    Returns
    -------
    pyarrow.RecordBatchReader
        The rows. It is empty if the statement has no result.

    Raises
    ------
    UnknownNameError
        A table does not exist. The error suggests similar names.
    OptionError
        The SQL is not valid, or DuckDB cannot run it.
    MissingDependencyError
        DuckDB is not installed.
    StatetoolError
        A table cannot be read.
    """
    import pyarrow as pa

    result = engine(snapshots, memory_limit=memory_limit, threads=threads, **options).query(sql)
    return pa.RecordBatchReader.from_batches(pa.schema([]), ()) if result is None else result


def engine(
    snapshots: Snapshots,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    **options: Unpack[ReadingOptions],
) -> Engine:
    """Return an engine for several queries; parameters and errors as for :func:`query`."""
    from statetool.tables.sql.engine import MEMORY_LIMIT, Engine

    tables: dict[str, SavepointTables] = {}
    for name, opener in _openers(snapshots):
        if name in tables:
            raise OptionError(
                f"two snapshots have the schema name {name!r}", hint="pass snapshots by name: --attach, or a mapping"
            )
        tables[name] = SavepointTables(opener, options)
    if not tables:
        raise OptionError("there is no snapshot to query")
    return Engine(tables, memory_limit=memory_limit or MEMORY_LIMIT, threads=threads)


def _openers(snapshots: Snapshots) -> Iterable[tuple[str, Callable[[], Savepoint]]]:
    match snapshots:
        case Catalog():
            databases = [snapshots[name] for name in snapshots]
            return [(_schema(d.name), partial(getattr, d, "savepoint")) for d in databases if not d.head.problem]
        case Mapping():
            return [(_schema(name), _opener(snapshot)) for name, snapshot in snapshots.items()]
    path = snapshots.path if isinstance(snapshots, Savepoint) else snapshots
    return [(_schema(path.removesuffix("/_metadata").rstrip("/").rpartition("/")[2]), _opener(snapshots))]


def _opener(snapshot: str | Savepoint) -> Callable[[], Savepoint]:
    return lambda: load(snapshot) if isinstance(snapshot, str) else snapshot


def _schema(name: str) -> str:
    """Return the name of a snapshot's schema."""
    plain = name_in_sql(name) or "snapshot"
    return f"{plain}_" if plain in _OF_DUCKDB else plain
