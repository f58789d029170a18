"""A directory of snapshots as a catalog: each snapshot is a database with the tables of its operators, and metadata are tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, make_dataclass
from datetime import datetime, timezone
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Literal

from typing_extensions import Unpack

from statetool.api.execution import Execution
from statetool.api.load import load, name_operators
from statetool.api.operator import Operator
from statetool.api.savepoint import Savepoint
from statetool.errors import OptionError, StatetoolError, UnknownNameError, suggest, warn
from statetool.java.declaring.classes import Declarations, PythonTypes
from statetool.operations.cluster.paths import names_reader, resolve_directory
from statetool.operations.directories.heads import SnapshotHead, snapshot_heads
from statetool.serializers.core.base import Serializer
from statetool.snapshot.metadata_tables import METADATA_TABLES
from statetool.snapshot.uids import find_all
from statetool.tables.request import ScanOptions, ScanRequest, list_options
from statetool.types.operators import OperatorLabel, name_in_sql, operator_names_in_sql, unique_names
from statetool.types.options import name_list

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: Metadata tables of a catalog, in addition to ``snapshots``.
METADATA: Final = ("operators", "states", "files")


def catalog(
    spark: SparkSession | None,
    root: str,
    *,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    key_types: Mapping[str, Operator | Serializer | str] | None = None,
    declarations: Declarations = (),
    kryo: Literal[2, 5] | None = None,
    python: PythonTypes | None = None,
    unsafe_pickle: bool = False,
    columns_from_plan: str | None = None,
    jars: Iterable[str | os.PathLike[str]] = (),
    driver_read_limit: int | None = None,
) -> Catalog:
    """Open every snapshot below a directory as a catalog. Only the heads of ``_metadata`` files are read.

    Parameters
    ----------
    spark
        The session of its DataFrames. With ``None``, tables are Arrow tables and no JVM is needed.
    root
        A directory: a local path or any URI that fsspec can list. Or the URL of a job, for the directory of its checkpoints.
    uids
        Uids of operators, for snapshots before Flink 2.0, which store only hashes of uids.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    key_types
        ``{operator: type}``: a SQL type (``"DOUBLE"``), a type of :mod:`statetool.flink`, or any operator with keys of the same type.
        Only needed for a changelog without a materialized base, if its bytes fit several key types, or no common one.
    declarations
        Declarations of classes that the snapshot does not describe: :class:`ClassDeclaration` objects, JSON files, Avro schema files
        (``*.avsc``) or folders of them. They take precedence over those of :func:`declare`, and all over ``jars``.
    kryo
        2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5 (Flink 2.x), if the metadata version does not determine it.
    python
        Types of the states of a PyFlink job, by their names in the job (:mod:`statetool.pyflink`, or text): ``{"count": Types.LONG(),
        "items": ListState(Types.STRING()), "sizes": "MapState(STRING, LONG)"}``. A plain type declares a value, reducing or
        aggregating state. ``operator.count`` is the state of one operator. Undeclared states are byte arrays, each with several values.
    unsafe_pickle
        Load the pickles of ``PICKLED_BYTE_ARRAY`` states and show them as JSON. This executes code in the pickles: use it only for
        snapshots that you trust.
    columns_from_plan
        The SQL job's compiled plan (``COMPILE PLAN``), a local path or URI. All tables get its names for the fields of rows. ``columns=``
        of a read takes precedence. Reading an operator that the plan does not fit raises an error.
    jars
        The jars of the job that wrote the snapshot, folders of classes, or class files, local or by any URI that fsspec can open. Classes
        that the snapshot does not describe are read from their class files when a value needs them, and so are the ``hashCode()`` methods
        of keys. Strings of the classes name operators whose uid the snapshot does not store. No code runs.
    driver_read_limit
        DataFrame methods read tables of up to this many bytes on disk at once, on the driver, so that queries need no Python worker
        (PySpark 4). Defaults to ``spark.statetool.localBytes``, or 8 MiB.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist or cannot be listed.
    """
    opener = partial(
        load,
        spark=spark,
        uids=name_list("uids", uids),
        rebase=rebase,
        key_types=key_types,
        declarations=declarations,
        kryo=kryo,
        python=python,
        unsafe_pickle=unsafe_pickle,
        columns_from_plan=columns_from_plan,
        jars=name_list("jars", jars),
        driver_read_limit=driver_read_limit,
    )
    directory, read_names = resolve_directory(root), names_reader(root)
    if read_names is None:
        return Catalog(directory, Execution(spark), opener)
    return Catalog(directory, Execution(spark), lambda path: name_operators(opener(path), read_names))


def table_places(savepoint: Savepoint) -> dict[str, tuple[Operator, str]]:
    """Return the operator of each table of a snapshot, and the table's name within it, by the table's name in SQL."""
    names, places = [], []
    of_operators = operator_names_in_sql(savepoint.inventory.labels)
    for operator in savepoint.operators.values():
        flat = {n for n, s in operator.states.items() if s.scope == "keyed" and s.kind in ("list", "map")}
        for table in operator.tables:
            names.append(
                name_in_sql(f"{of_operators[operator.inventory.label]}_{table}{'_elements' if table in flat else ''}")
            )
            places.append((operator, table))
    return dict(zip(unique_names(names), places, strict=True))


class Database:
    """A snapshot in a catalog; ``database["summary_keyed_state"]`` is a table."""

    def __init__(self, head: SnapshotHead, execution: Execution, opener: Callable[[str], Savepoint]) -> None:
        self._execution = execution
        self._opener = opener
        self.head = head

    @property
    def name(self) -> str:
        """The database's name as an SQL identifier: ``chk_42``."""
        return self.head.database

    @cached_property
    def savepoint(self) -> Savepoint:
        """The snapshot, opened on first use."""
        return self._opener(self.head.path)

    @cached_property
    def _places(self) -> dict[str, tuple[Operator, str]]:
        return table_places(self.savepoint)

    @property
    def tables(self) -> list[str]:
        """Names of its tables: ``<operator>_keyed_state``, ``<operator>_timers``, ``<operator>_<state>``.

        ``<operator>`` is the uid. Without a known uid, it is the name, or the operator id if the name is unknown or not unique.
        ``<operator>_<state>_elements`` holds a keyed list or map flattened, with one row per element or entry.
        """
        return list(self._places)

    def __getitem__(self, name: str) -> DataFrame | pa.Table:
        return self.table(name)

    def _ipython_key_completions_(self) -> list[str]:
        return self.tables

    @list_options(ScanOptions)
    def table(self, name: str, **options: Unpack[ScanOptions]) -> DataFrame | pa.Table:
        """Return a table: a DataFrame, or an Arrow table if the catalog has no session.

        Parameters
        ----------
        name
            One of :attr:`tables`; ``summary.balances$elements`` is the same as ``summary_balances_elements``. It may begin with the name
            of the operator, its id or a prefix of the id (at least 4 hex digits) instead of the uid, if that is unique.
        states
            States to read. Others are skipped undecoded.
        keys
            Keys to read, as plain values: numbers, strings, bytes, ``Decimal`` and tuples of them, dates as days since 1970-01-01,
            timestamps as numbers in the unit of their type. Only their key groups are read.
        key_group
            ``True`` adds the int column ``key_group``.
        subtask
            For operator state, ``True`` adds the int column ``subtask``, and shows every subtask's copy of union and broadcast state.
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
        split_bytes
            Target split size in bytes on disk. Defaults to 64 MiB, or less if some cores would otherwise be idle.
        memory_bytes
            Key groups above this size (32 MiB by default) are merged as a stream, or spilled to local disk.

        Raises
        ------
        UnknownNameError
            The table does not exist. The error suggests similar names.
        """
        operator, table = self.place(name)
        return operator.read(ScanRequest.of(table, **options))

    def place(self, name: str) -> tuple[Operator, str]:
        """Return the operator of a table and the table's name within it; errors as for :meth:`table`."""
        plain = name_in_sql(name)
        if plain not in self._places:
            plain = self._by_operator(plain) or plain
        if plain not in self._places:
            raise UnknownNameError(f"no table {name!r} in {self.name}", hint=suggest(plain, self._places)).at(
                file=self.head.path
            )
        return self._places[plain]

    def _by_operator(self, plain: str) -> str | None:
        """Return the table whose name begins with another name or id prefix of its operator, ``None`` if absent.

        Raises
        ------
        OptionError
            There are several.
        """
        stored = self.savepoint.inventory.labels
        labels = [OperatorLabel(o.operator_id, "", name_in_sql(o.name)) for o in stored]
        of_operators = operator_names_in_sql(stored)
        tables = []
        for name, (operator, _) in self._places.items():
            suffix = name.removeprefix(of_operators[operator.inventory.label])
            word = plain.removesuffix(suffix)
            if plain.endswith(suffix) and operator.operator_id in (word, *find_all(labels, word)):
                tables.append(name)
        if len(tables) > 1:
            raise OptionError(
                f"{len(tables)} tables are called {plain!r}", hint=f"pass a uid or an operator id: {', '.join(tables)}"
            )
        return tables[0] if tables else None

    def operators(self) -> DataFrame | pa.Table:
        """Return its operators."""
        return _metadata_table(self._execution, "operators", [self])

    def states(self) -> DataFrame | pa.Table:
        """Return its states with their types."""
        return _metadata_table(self._execution, "states", [self])

    def files(self) -> DataFrame | pa.Table:
        """Return every piece of state with its location."""
        return _metadata_table(self._execution, "files", [self])

    def __repr__(self) -> str:
        return f"Database({self.name!r}, {self.head.path!r})"


class Catalog:
    """Snapshots by database name, lowest checkpoint id first; see :func:`catalog`."""

    def __init__(self, root: str, execution: Execution, opener: Callable[[str], Savepoint]) -> None:
        self._execution = execution
        self._opener = opener
        self.root = root
        self._databases = {h.database: Database(h, execution, opener) for h in snapshot_heads(root)}

    @property
    def databases(self) -> list[str]:
        """Names of the databases."""
        return list(self._databases)

    def __getitem__(self, name: str) -> Database:
        plain = name_in_sql(name)
        if plain in self._databases:
            return self._databases[plain]
        beginning = [n for n in self._databases if n.startswith(plain) and n.startswith("savepoint_")]
        if len(beginning) == 1:
            return self._databases[beginning[0]]
        raise UnknownNameError(f"no snapshot {name!r} below {self.root}", hint=suggest(plain, self._databases))

    def __iter__(self) -> Iterator[str]:
        return iter(self._databases)

    def __len__(self) -> int:
        return len(self._databases)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name_in_sql(name) in self._databases

    def __repr__(self) -> str:
        return f"Catalog({self.root!r}, {len(self)} snapshots)"

    def _ipython_key_completions_(self) -> list[str]:
        return self.databases

    def refresh(self) -> Catalog:
        """Return the catalog for the current contents of the directory."""
        return Catalog(self.root, self._execution, self._opener)

    def at(self, *, checkpoint_id: int | None = None, time: datetime | str | int | None = None) -> Database:
        """Return the snapshot of a checkpoint id, or the newest at a time.

        Parameters
        ----------
        checkpoint_id
            The checkpoint id.
        time
            A datetime or ISO text (UTC if it has no time zone), or epoch milliseconds: selects the last snapshot whose ``_metadata`` was
            written at or before this time.

        Raises
        ------
        UnknownNameError
            No snapshot matches, or several jobs have this id.
        OptionError
            Neither or both were given, or ``time`` is not a valid time.
        """
        if (checkpoint_id is None) == (time is None):
            raise OptionError("pass either checkpoint_id= or time=")
        readable = self._readable()
        if checkpoint_id is not None:
            matching = [d for d in readable if d.head.checkpoint_id == checkpoint_id]
            if len(matching) != 1:
                near = ", ".join(d.name for d in matching or readable[-5:]) or "no snapshot"
                raise UnknownNameError(
                    f"{len(matching) or 'no'} snapshots below {self.root} have the id {checkpoint_id}",
                    hint=f"found {near}",
                )
            return matching[0]
        limit = _epoch_ms(time)
        before = [d for d in readable if d.head.modified_ms is not None and d.head.modified_ms <= limit]
        if not before:
            oldest = min((d.head.modified_ms for d in readable if d.head.modified_ms is not None), default=None)
            hint = "none has a time" if oldest is None else f"the oldest was written at {_utc(oldest)}"
            raise UnknownNameError(f"no snapshot below {self.root} was taken at or before {_utc(limit)}", hint=hint)
        return max(before, key=lambda d: (d.head.modified_ms or 0, d.head.checkpoint_id or 0))

    def snapshots(self) -> DataFrame | pa.Table:
        """Return the snapshots: database, path, job, kind, id, version, time."""
        return self._execution.records_to_frame(SnapshotHead, [d.head for d in self._databases.values()])

    def operators(self) -> DataFrame | pa.Table:
        """Return the operators of all snapshots."""
        return _metadata_table(self._execution, "operators", self._readable())

    def states(self) -> DataFrame | pa.Table:
        """Return the states of all snapshots with their types."""
        return _metadata_table(self._execution, "states", self._readable())

    def files(self) -> DataFrame | pa.Table:
        """Return every piece of state of all snapshots with its location."""
        return _metadata_table(self._execution, "files", self._readable())

    def _readable(self) -> list[Database]:
        return [d for d in self._databases.values() if not d.head.problem]

    def register(self, *names: str, prefix: str = "", as_name: str | None = None) -> list[str]:
        """Make snapshots databases of the Spark session's catalog, for SQL (PySpark 4).

        Each has its :attr:`Database.tables`, and ``operators``, ``states`` and ``files``. They are read when they are queried.

        Limitations, because statetool adds no Java code to Spark:

        * SQL does not find new snapshots by itself: call this method again.
        * ``VERSION AS OF`` is not supported: register the result of :meth:`at` under a name.
        * Names have no ``$``, and filters on the key do not skip key groups.

        Parameters
        ----------
        names
            Names of databases, by default all. Each table takes about 0.1 seconds.
        prefix
            Prefix of the database names.
        as_name
            Alternative name, if exactly one database is given.

        Returns
        -------
        list of str
            Names of the databases.

        Raises
        ------
        OptionError
            The session has a database of this name from another source.
        MissingDependencyError
            No session was given or is active, or PySpark is older than 4.
        """
        from statetool.spark.source.catalog import make_database
        from statetool.spark.source.table_source import metadata_sources, state_source

        spark = self._execution.require_session()
        chosen = [self[n] for n in names] if names else self._readable()
        if as_name is not None and len(chosen) != 1:
            raise OptionError(
                "as_name= renames one database", hint="pass its name: register('chk_42', as_name='before')"
            )
        registered = []
        for database in chosen:
            sources = metadata_sources(database.savepoint.inventory)
            for name in database.tables:
                try:
                    operator, table = database.place(name)
                    sources[name] = state_source(database.savepoint.inventory, operator.inventory, table)
                except StatetoolError as error:
                    warn(f"{database.name}.{name} is left out of SQL: {error}", stacklevel=2)
            registered.append(prefix + (as_name or database.name))
            make_database(spark, registered[-1], database.head.path, sources)
        return registered


def _metadata_table(execution: Execution, table: str, databases: Iterable[Database]) -> DataFrame | pa.Table:
    """Return the rows of each database's metadata table, after a column ``database``."""
    record = METADATA_TABLES[table].record
    columns = fields(record)
    row_type = make_dataclass(record.__name__, [("database", "str"), *((c.name, c.type) for c in columns)])
    rows = [
        row_type(d.name, *(getattr(r, c.name) for c in columns))
        for d in databases
        for r in d.savepoint.metadata_rows(table)
    ]
    return execution.records_to_frame(row_type, rows)


def _epoch_ms(time: datetime | str | int | None) -> int:
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    try:
        moment = datetime.fromisoformat(time.replace("Z", "+00:00")) if isinstance(time, str) else time
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise OptionError(
            f"time={time!r} is not a valid time", hint="pass 2026-01-31T12:00:00Z, a datetime or epoch milliseconds"
        )
    return int((moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp() * 1000)


def _utc(epoch_ms: int) -> str:
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{epoch_ms} epoch milliseconds"
