"""Tables of one operator of an open snapshot: as Arrow, pandas, Polars or DuckDB, without a JVM, and as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from statetool.api.execution import Execution
from statetool.io.open_files import keeping_open
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.notebook import HtmlMapping
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_info import StateInfo
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.tables.keys.text import Key
from statetool.tables.request import KeyedOptions, ScanOptions, ScanRequest, list_options
from statetool.types.options import ReadingOptions, name_list, whole_number

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from statetool.api.write.writer import SavepointWriter
    from statetool.saving.composition import SourceOperator
    from statetool.spark.frames import SparkTable
    from statetool.tables.look_up import KeyContent, KeyReader
    from statetool.tables.rows import Rows
    from statetool.tables.scan import TableScan
    from statetool.tables.sql.source import TableSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How an open snapshot and its operators are read and edited.

    Attributes
    ----------
    execution
        Where DataFrame methods and analyses run.
    driver_read_limit
        DataFrame methods read tables of up to this many bytes on disk at once, on the driver; see :func:`statetool.load`.
    edit
        Starts edits of a snapshot.
    """

    execution: Execution
    edit: Callable[[Inventory, Access], SavepointWriter]
    driver_read_limit: int | None = None


class OperatorTables:
    """One operator as a namespace of tables."""

    def __init__(self, inventory: Inventory, operator: OperatorInventory, access: Access) -> None:
        self._inventory = inventory
        self._operator = operator
        self._access = access
        self._reader: tuple[object, KeyReader] | None = None

    @property
    def name(self) -> str:
        """The uid, or the operator id if the uid is not known."""
        return self._operator.label

    @property
    def uid(self) -> str | None:
        """The uid, if it is stored or was given."""
        return self._operator.uid or None

    @property
    def inventory(self) -> OperatorInventory:
        """Everything known about the operator without reading its state: serializers, files, key groups."""
        return self._operator

    @property
    def source(self) -> SourceOperator:
        """The operator with its snapshot, from which another snapshot takes its bytes."""
        from statetool.saving.composition import SourceOperator

        return SourceOperator(self._inventory, self._operator)

    @property
    def execution(self) -> Execution:
        """Where DataFrame methods run: on the session given to :func:`load`, or in this process."""
        return self._access.execution

    @property
    def operator_id(self) -> str:
        """The 32 hex digits of the operator id."""
        return self._operator.state.operator_id

    @property
    def parallelism(self) -> int:
        """Parallelism of the job."""
        return self._operator.state.parallelism

    @property
    def max_parallelism(self) -> int:
        """Number of key groups."""
        return self._operator.state.max_parallelism

    @property
    def states(self) -> HtmlMapping[StateInfo]:
        """States by name, with kind, types, and whether they can be decoded.

        If keyed and operator state share a name, the name is that of the state's table.
        """
        table_of = {state: table for table, state in self._operator.state_tables.items()}
        return HtmlMapping(
            {table_of.get((s.scope, s.name), s.name): s for s in self._operator.states}, self._repr_html_
        )

    @property
    def tables(self) -> list[str]:
        """Names of the operator's tables: ``keyed_state``, ``timers``, ``waiting``, ``matches``, ``windows``
        (:mod:`statetool.api.operator`), and each state's long form.

        A long form has the state's name. If that is ambiguous (keyed and operator state share a name, or a state is called ``timers``),
        it is prefixed with ``keyed:`` or ``operator:``.
        """
        states = self._operator.states
        keyed = [s for s in states if s.scope == "keyed"]
        without_namespace = [s for s in keyed if s.namespace_type in ("VoidNamespace", "GlobalWindow")]
        tables = [KEYED_STATE] if without_namespace else []
        if any(s.kind == "timers" for s in keyed):
            tables.append(TIMERS)
        return [*tables, *self._operator.views, *self._operator.state_tables]

    def __repr__(self) -> str:
        return f"Operator({self._operator.label.display!r}, tables={self.tables})"

    def _repr_html_(self) -> str:
        from statetool.snapshot.notebook import operator_html

        return operator_html(self._operator, self.tables)

    @list_options(ScanOptions)
    def head(self, n: int = 5, table: str | None = None, **options: Unpack[ScanOptions]) -> Rows:
        """Read the first rows of a table in this process, without Spark. Notebooks show them as a table.

        Parameters
        ----------
        n
            Maximum number of rows.
        table
            One of :attr:`tables`, by default the first.
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
        """
        from statetool.connectors.hints import bytes_hints
        from statetool.tables.rows import Rows, first_rows

        whole_number("n", n, least=1)
        name = (self.tables or [KEYED_STATE])[0] if table is None else table
        rows = first_rows(self.scan(name, **options), n)
        return Rows(rows, f"{self.name}: {name}", bytes_hints(self.inventory, self.states, name, options.get("states")))

    @list_options(ReadingOptions)
    def get(self, key: Key, states: Sequence[str] | None = None, **options: Unpack[ReadingOptions]) -> KeyContent:
        """Look up one key: its keyed states in all namespaces (windows), and its timers.

        Only the key group of the key is read, and of RocksDB and ForSt databases only blocks that may contain it. All keys are read if
        equal keys can have other bytes (``BigDecimal`` of another scale, maps), and all key groups if only user code knows the key's.

        Parameters
        ----------
        key
            A plain value: a number, string, ``Decimal``, date or time. For tuples, rows and POJOs a tuple of the fields, or a dict by name.
        states
            States to read, ``timers`` for all timers; by default everything.
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
        KeyContent
            ``key``, ``key_group``, ``states`` and ``timers``. ``content["state"]`` is the value of a state without a
            namespace. It is false if the operator has nothing of the key.

        Raises
        ------
        UnknownNameError
            The operator has no such state.
        EncodeError
            The key does not have the type of the operator's keys.
        OptionError
            The operator has no keyed state, several stored keys equal the given one, or an option is not valid.
        DecodeError
            A value does not fit its type.
        FormatError
            The snapshot is damaged in another way.
        """
        from statetool.tables.look_up import KeyReader
        from statetool.types.options import ReadOptions

        names = None if states is None else name_list("states", states)
        asked = names, tuple(options.items())
        if self._reader is None or self._reader[0] != asked:
            self._reader = asked, KeyReader(self._operator, names, ReadOptions.of(**options))
        return self._reader[1].get(key)

    @list_options(ScanOptions)
    def count(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> int:
        """Return the number of rows of a table, without decoding states.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        """
        scan = self.scan(table, **options)
        return sum(batch.num_rows for batch in scan.select(scan.schema.names[:1]).batches())

    @list_options(ScanOptions)
    def scan(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> TableScan:
        """Plan a table: its Arrow schema and the splits for tasks.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        """
        return self.plan(ScanRequest.of(table, **options))

    def plan(self, request: ScanRequest) -> TableScan:
        """Plan the request. Only headers are read."""
        from statetool.tables.scan import scan_table

        return scan_table(self._operator, request)

    @list_options(ScanOptions)
    def batches(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> Iterator[pa.RecordBatch]:
        """Read a table in this process, batch by batch, without a JVM.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        """
        return self.scan(table, **options).batches()

    @list_options(ScanOptions)
    def reader(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pa.RecordBatchReader:
        """Return a reader of a table that is read batch by batch, for libraries that consume Arrow streams. It can be consumed once.

        :meth:`scan` returns an object that such libraries can read several times.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        """
        return self.scan(table, **options).reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the first of :attr:`tables` as an Arrow C stream, for libraries such as pyarrow, Polars and DataFusion."""
        return self.scan(next(iter(self.tables), KEYED_STATE)).__arrow_c_stream__(requested_schema)

    @list_options(KeyedOptions)
    def keyed_state_batches(
        self, states: Sequence[str] | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> Iterator[pa.RecordBatch]:
        """Read ``keyed_state`` in this process, batch by batch, without a JVM.

        Parameters
        ----------
        states
            States to read. Others are skipped undecoded.
        keys
            Keys to read, as plain values: numbers, strings, bytes, ``Decimal`` and tuples of them, dates as days since 1970-01-01,
            timestamps as numbers in the unit of their type. Only their key groups are read.
        key_group
            ``True`` adds the int column ``key_group``.
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
        """
        return self.batches(KEYED_STATE, states=states, keys=keys, **options)

    @list_options(ScanOptions)
    def to_arrow(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pa.Table:
        """Read a whole table into memory, without a JVM; from 32 MiB of stored bytes on up to eight threads.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        DecodeError
            A value does not fit its type, or cannot be shown with these options. The error has the file, offset, operator, state and
            key group.
        FormatError
            The snapshot is damaged in another way.
        """
        with keeping_open():
            return self.scan(table, **options).to_table()

    @list_options(ScanOptions)
    def to_pandas(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pd.DataFrame:
        """Read a whole table as a pandas frame.

        Integer columns with nulls stay integers, maps are dicts, and lists are lists.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        """
        from statetool.columns.to_pandas import pandas_frame

        return pandas_frame(self.to_arrow(table, **options))

    @list_options(ScanOptions)
    def to_polars(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pl.LazyFrame:
        """Return a lazy frame of Polars, which reads the table batch by batch when it is collected.

        States in columns that the query does not need are not decoded. Conditions such as ``pl.col("key") == 5`` and ``is_in`` limit the
        read to these keys, if keys are integers, booleans or strings.

        Parameters
        ----------
        table
            One of :attr:`tables`.
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
        MissingDependencyError
            Polars is not installed.
        """
        from statetool.tables.sql.polars_frames import lazy_frame

        return lazy_frame(self._source_of(table, options))

    @list_options(ScanOptions)
    def to_duckdb(
        self, table: str = KEYED_STATE, *, connection: Any = None, **options: Unpack[ScanOptions]
    ) -> duckdb.DuckDBPyRelation:
        """Return a relation of DuckDB, which reads the table batch by batch when it is executed.

        States in columns that the query does not need are not decoded. Conditions such as ``key = 5`` and ``key IN (5, 6)`` limit the read
        to these keys, if keys are integers, booleans or strings. Structs without fields are the text ``{}``.

        Parameters
        ----------
        table
            One of :attr:`tables`.
        connection
            The DuckDB connection. Defaults to that of the module ``duckdb``.
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
        MissingDependencyError
            DuckDB is not installed.
        """
        from statetool.tables.sql.duckdb_tables import DuckDBTable, relation, require_duckdb

        return relation(connection or require_duckdb(), DuckDBTable(self._source_of(table, options)))

    def _source_of(self, table: str, options: ScanOptions) -> TableSource:
        from statetool.tables.sql.source import TableSource

        return TableSource(self._operator, ScanRequest.of(table, **options))

    def frame(self, request: ScanRequest) -> DataFrame:
        """Run the request and return a DataFrame of the given session or the active one.

        Raises
        ------
        MissingDependencyError
            No session was given, and none is active.
        """
        return self.plan_on_spark(request).frame()

    def plan_on_spark(self, request: ScanRequest) -> SparkTable:
        """Plan the request for tasks of the given session or the active one; errors as for :meth:`frame`."""
        spark = self.execution.require_session()
        from statetool.spark.frames import SparkTable, plan_for_tasks

        return SparkTable(spark, plan_for_tasks(spark, self.plan, request), self._access.driver_read_limit)

    def read(self, request: ScanRequest) -> DataFrame | pa.Table:
        """Run the request and return a DataFrame of the given session, or an Arrow table without one."""
        scan = self.execution.plan(self.plan, request)
        return self.execution.scan_to_frame(scan, self._access.driver_read_limit)

    @list_options(ScanOptions)
    def export(
        self,
        target: str,
        table: str = KEYED_STATE,
        *,
        style: str = "parquet",
        by_key_group: bool = False,
        append_as: int | None = None,
        **options: Unpack[ScanOptions],
    ) -> int:
        """Write a table to a new directory and return the number of rows: in tasks of the given session, or else in this process.

        Parameters
        ----------
        target
            A directory; for Iceberg a table name. A failure leaves no directory that looks complete.
        table
            One of :attr:`tables`.
        style
            ``parquet``, ``avro``, ``csv`` (nested values are JSON) or ``jsonl``, ``delta`` or ``iceberg``. A session needs the last two in
            it; without a session they need the extras ``delta`` and ``iceberg``, and Iceberg a table ``catalog.namespace.table`` of a catalog in
            pyiceberg's configuration.
        by_key_group
            Partition by the column ``key_group``.
        append_as
            The checkpoint's id: the rows are added to those of other checkpoints, with the id in the column ``checkpoint_id``.
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
        TargetExistsError
            The target exists, or has rows of this checkpoint.
        OptionError
            The style needs Spark or cannot hold a type, or the table has no key groups.
        """
        from statetool.api.export import export_request

        request = ScanRequest.of(table, **options)
        return export_request(self, request, target, style=style, by_key_group=by_key_group, append_as=append_as)
