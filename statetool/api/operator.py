"""Tables of one operator of an open snapshot: as Spark DataFrames, or in this process as Arrow.

Without a session, ``to_arrow`` and the ``..._batches`` methods return the same rows without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import Unpack

from statetool.api.execution import Execution
from statetool.errors import OptionError
from statetool.formats.channel_state import Side
from statetool.io.cursor import Cursor
from statetool.io.open_files import keeping_open
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import METADATA_TABLES, metadata_rows
from statetool.snapshot.notebook import HtmlMapping
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_info import StateInfo
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.snapshot.views import MATCHES, WAITING, WINDOWS, window_states
from statetool.tables.keys.text import Key
from statetool.tables.request import KeyedOptions, ScanOptions, ScanRequest, StateOptions, list_options
from statetool.types.java import parse_java_type
from statetool.types.options import DecimalsMode, ReadOptions, ShowingOptions, refuse_unknown, whole_number

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.analysis.statistics.estimate import Estimate
    from statetool.analysis.statistics.statistics import Statistics
    from statetool.api.write.writer import SavepointWriter
    from statetool.java.declaring.states import StateType
    from statetool.saving.composition import SourceOperator
    from statetool.serializers.core.base import Serializer
    from statetool.spark.frames import SparkTable
    from statetool.tables.rows import Rows
    from statetool.tables.scan import TableScan
    from statetool.tables.sql.source import TableSource

Record: TypeAlias = "StateInfo | tuple[Operator, str] | str"
#: A change of state values: SQL expressions by state, or a function from a table to a table.
Transformation: TypeAlias = "Mapping[str, str] | Callable[[Any], Any]"


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


class Operator:
    """One operator of a savepoint: a namespace of tables. :meth:`statetool.Savepoint.__getitem__` returns it."""

    def __init__(self, inventory: Inventory, operator: OperatorInventory, access: Access) -> None:
        self._inventory = inventory
        self._operator = operator
        self._access = access

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
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.
        """
        from statetool.connectors.hints import bytes_hints
        from statetool.tables.rows import Rows, first_rows

        whole_number("n", n, least=1)
        name = (self.tables or [KEYED_STATE])[0] if table is None else table
        rows = first_rows(self.scan(name, **options), n)
        return Rows(rows, f"{self.name}: {name}", bytes_hints(self.inventory, self.states, name, options.get("states")))

    # ---- Spark --------------------------------------------------------------------------------

    @list_options(KeyedOptions)
    def keyed_state(
        self, states: Sequence[str] | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return one row per key: ``key`` and a column for each state without a namespace.

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

        Raises
        ------
        UnknownNameError
            The operator has no such state, or no state without a namespace.
        OptionError
            An option or its value is not valid, or conflicts with another option.
        EncodeError
            A key does not have the type of the operator's keys.
        UnsupportedError
            Arrow and Spark do not support a type.
        """
        return self.frame(ScanRequest.of(KEYED_STATE, states=states, keys=keys, **options))

    @list_options(StateOptions)
    def state(self, name: str, *, keys: Sequence[Key] | None = None, **options: Unpack[StateOptions]) -> DataFrame:
        """Return one state in long form.

        Columns of keyed state: ``key``, ``namespace`` if any, ``list_index`` or ``map_key``, ``value``. Columns of list and union state:
        ``value``. Columns of broadcast state: ``key``, ``value``.

        Parameters
        ----------
        name
            One of :attr:`states`, or of :attr:`tables` if keyed and operator state share a name.
        subtask
            For operator state, ``True`` adds the int column ``subtask``, and shows every subtask's copy of union and broadcast state.
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`keyed_state`, as are the errors. Operator state has neither ``keys`` nor ``key_group``.
        """
        names = self._operator.state_tables
        tables = [t for t, (_, n) in names.items() if n == name]
        return self.frame(ScanRequest.of(tables[0] if len(tables) == 1 else name, keys=keys, **options))

    @list_options(ScanOptions)
    def table(self, name: str, **options: Unpack[ScanOptions]) -> DataFrame:
        """Return one of :attr:`tables`.

        Parameters
        ----------
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`keyed_state`, :meth:`timers` and :meth:`state`, if they apply to the table. Errors are the same.
        """
        return self.frame(ScanRequest.of(name, **options))

    @list_options(KeyedOptions)
    def timers(
        self, *, states: Sequence[str] | None = None, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return timers.

        Columns: ``key``, ``namespace``, ``timestamp`` (epoch ms), ``time`` (the same as a timestamp), ``domain`` (event, processing),
        ``service``. ``time`` is null outside of the years 1 to 9999, and ignored when timers are written.

        Parameters
        ----------
        states
            Names of the timer states to read (``_timer_state/event_user-timers``).
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`keyed_state`, as are the errors.
        """
        return self.frame(ScanRequest.of(TIMERS, states=states, keys=keys, **options))

    @list_options(KeyedOptions)
    def waiting(self, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]) -> DataFrame:
        """Return the elements that an operator has buffered.

        For asynchronous I/O: calls that have not returned, or whose results wait for an earlier one, in their order. Columns: ``value``,
        ``timestamp``, ``element`` (``record``, ``watermark``, ...), ``marker``, ``subtask``. For complex event processing: events that the
        watermark has not reached. Columns: ``key``, ``timestamp``, ``value``. For SQL joins: rows whose look-ups have not returned.
        Columns: ``key``, ``value``, ``timestamp``, ``watermark`` (the last one before the row). A delta join has ``input`` (``left`` or
        ``right``), ``left`` and ``right`` in place of ``value``.

        Parameters
        ----------
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors. Asynchronous I/O has neither ``keys`` nor ``key_group``.

        Raises
        ------
        OptionError
            Operators of this kind do not buffer elements.
        """
        return self._view(WAITING, "no queue of buffered elements", keys, options)

    @list_options(KeyedOptions)
    def matches(self, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]) -> DataFrame:
        """Return the started matches of complex event processing, one row per match.

        Columns:

        * ``key``
        * ``status``: ``partial``, or ``completed`` and not yet emitted
        * ``waiting_for``: the next pattern
        * ``state``: Flink's internal name of the NFA state
        * ``start_ms``, ``previous_ms``: times of the first and the last event (the latter if it is stored)
        * ``events``: a map of patterns to their events, null if Flink itself would find no events in its buffer

        Parameters
        ----------
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors.

        Raises
        ------
        OptionError
            The operator does not match patterns.
        """
        return self._view(MATCHES, "no pattern matches", keys, options)

    @list_options(KeyedOptions)
    def windows(
        self, name: str | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return windows with all their state, or one state in its long form.

        Without a name there is one row per key and window: ``key``, ``window`` (global windows have no such column; ``window_end`` in
        milliseconds for the slices of SQL's TUMBLE, HOP and CUMULATE), and a column for each state with a window namespace: contents, trigger state, user state. Merged windows appear as the merged window.

        Parameters
        ----------
        name
            A state whose namespace is a window, to be returned in its long form.
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors.

        Raises
        ------
        OptionError
            The operator has no windows, or the namespace of the state is not a window.
        """
        if name is None:
            return self._view(WINDOWS, "no state per window", keys, options)
        keyed = {n: meta for n, (_, meta) in self._operator.listed_keyed.items()}
        if name in keyed and name not in window_states(keyed):
            raise OptionError(f"state {name!r} has no window namespace", hint=f"read it with op.state({name!r})")
        return self.frame(ScanRequest.of(name, keys=keys, **options))

    def _view(self, table: str, nothing: str, keys: Sequence[Key] | None, options: KeyedOptions) -> DataFrame:
        if table not in self._operator.views:
            self._operator.check_listed("keyed", "operator")
            raise OptionError(
                f"operator {self._operator.label.display!r} has {nothing}", hint="op.tables lists its tables"
            )
        return self.frame(ScanRequest.of(table, keys=keys, **options))

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

    @list_options(ShowingOptions)
    def in_flight(
        self, side: Side | None = None, like: Record | None = None, **options: Unpack[ShowingOptions]
    ) -> DataFrame | pa.Table:
        """Return in-flight data (unaligned checkpoints): a DataFrame, or an Arrow table if no session was given.

        Without ``like`` there is one row per channel:

        * ``side``, ``subtask``, ``gate`` and ``channel`` (for outputs: result partition and subpartition)
        * ``buffers``, ``size_bytes``, ``elements`` (records, watermarks and others)
        * ``attributes``: number of record attributes among the elements (they describe the records after them)
        * ``backlog_attributes``: number of these that signal backlog; ``backlog`` is the value of the last one
        * ``cut_bytes``: bytes of elements that continue in another channel's data. An output may start with the end of one, whose length is
          in the other channel. Without ``like``, the numbers of an output, all but ``buffers`` and ``size_bytes``, are therefore estimates

        Parameters
        ----------
        side
            ``input`` or ``output``.
        like
            Type of the records, which no snapshot stores: a state (of ``states``) with values or elements of the same type, such a
            state of another operator as ``(operator, name)``, or a Java type (``"com.acme.Order"``, declared; ``"String"``).
            The result then has one row per element: ``subtask``, ``gate``, ``channel``, ``value``, ``timestamp``, ``element``
            (``record``, ``watermark``, ...), ``marker``, and ``part``, the bytes of a cut element.
        ttl, ttl_ms, now_ms, nanos, decimals, presence
            As for :meth:`keyed_state`. They have no effect without ``like``.

        Raises
        ------
        OptionError
            ``like`` was given without ``side``, or an option does not exist.
        FormatError
            The bytes are not stream elements, or not of this type.
        """
        refuse_unknown(options, list(ShowingOptions.__annotations__))
        read_options = ReadOptions.of(**options)
        if like is None:
            rows = [r for r in metadata_rows("in_flight", [self._operator]) if side in (None, r.side)]
            return self.execution.records_to_frame(METADATA_TABLES["in_flight"].record, rows)
        if side is None:
            raise OptionError("like= needs a side of the channels", hint="pass side='input' or side='output'")
        from statetool.tables.scan import scan_in_flight

        scan = scan_in_flight(self._operator, side, self._record(like), options=read_options)
        return self.execution.scan_to_frame(scan, self._access.driver_read_limit)

    def source_splits(self, connector: str | None = None) -> DataFrame | pa.Table:
        """Return the splits of a source's readers with their positions: a DataFrame, or Arrow without a session.

        Parameters
        ----------
        connector
            Name of the connector, if the bytes do not identify it.

        Raises
        ------
        OptionError
            The operator is not a source.
        UnknownNameError, FormatError
            The connector does not exist, or the bytes are damaged or of another connector.
        """
        return self._source_table("source_splits", connector)

    def enumerator(self, connector: str | None = None) -> DataFrame | pa.Table:
        """Return the splits of a source's enumerator, and whether they are assigned; otherwise as for :meth:`source_splits`."""
        return self._source_table("enumerators", connector)

    def _source_table(self, table: str, connector: str | None) -> DataFrame | pa.Table:
        from statetool.connectors.sources import require_source

        require_source(self._operator, connector)
        return self._connector_table(table, connector)

    def _connector_table(self, table: str, connector: str | None = None) -> DataFrame | pa.Table:
        from statetool.connectors.tables import CONNECTOR_TABLES, connector_rows

        rows = connector_rows(table, [self._operator], connector)
        return self.execution.records_to_frame(CONNECTOR_TABLES[table].record, rows)

    def lag(self, ends: Mapping[str, int | str] | Any, connector: str | None = None) -> DataFrame | pa.Table:
        """Return the lag of each split of the source's readers; DataFrame or Arrow as for :meth:`source_splits`.

        Parameters
        ----------
        ends
            End offsets by ``topic:partition`` or by split id: a mapping, or a table (Arrow or DataFrame) with the columns ``topic``,
            ``partition``, ``offset``, or ``split``, ``position``.
        """
        from statetool.connectors.edits.positions import positions_in
        from statetool.connectors.lag import LagRow, lag_rows
        from statetool.connectors.sources import require_source

        rows = lag_rows(require_source(self._operator, connector), positions_in(ends))
        return self.execution.records_to_frame(LagRow, rows)

    def transactions(self) -> DataFrame | pa.Table:
        """Return the uncommitted transactions and files of a sink: a DataFrame, or Arrow without a session.

        Raises
        ------
        OptionError
            The operator is not a sink.
        """
        from statetool.connectors.sinks import require_sink

        require_sink(self._operator)
        return self._connector_table("transactions")

    def stats(
        self,
        *,
        largest: int = 10,
        parallelism: int | None = None,
        ttl_ms: int | None = None,
        now_ms: int | None = None,
        bandwidth_mib: float = 100.0,
        latency_ms: float = 20.0,
        spark: SparkSession | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Measure sizes, skew and ages of the operator's state; parameters, result and errors as for :meth:`Savepoint.stats`."""
        from statetool.analysis.statistics.statistics import StatisticsRequest, statistics_of

        request = StatisticsRequest.of(
            largest=largest,
            parallelism=parallelism,
            ttl_ms=ttl_ms,
            now_ms=now_ms,
            bandwidth_mib=bandwidth_mib,
            latency_ms=latency_ms,
        )
        return statistics_of([self._operator], request, Execution(spark, threads).map)

    def estimate_stats(self, *, spark: SparkSession | None = None, threads: int | None = None) -> Estimate:
        """Estimate entries and bytes of the operator; parameters, result and errors as for :meth:`Savepoint.estimate_stats`."""
        from statetool.analysis.statistics.estimate import estimate_of

        return estimate_of([self._operator], Execution(spark, threads).map)

    def transform(
        self,
        change: Transformation,
        *,
        states: Sequence[str] | None = None,
        where: str | None = None,
        types: Mapping[str, StateType] | None = None,
        decimals: DecimalsMode = "decimal",
        in_batches: bool = False,
        allow_missing: bool = False,
    ) -> SavepointWriter:
        """Change state values of this operator by SQL expressions or by a function. Everything else keeps its bytes.

        Call ``.preview()`` on the result to show the differences, or ``.write(target)`` to write the savepoint.

        Parameters and errors as for :meth:`statetool.SavepointWriter.transform`.

        Returns
        -------
        SavepointWriter
            Edits of the whole savepoint, to which others can be added.
        """
        edits = self._access.edit(self._inventory, self._access)
        return edits.transform(
            self.name,
            change,
            states=states,
            where=where,
            types=types,
            decimals=decimals,
            in_batches=in_batches,
            allow_missing=allow_missing,
        )

    def erase(
        self, keys: Iterable[Key] | None = None, *, where: str | None = None, allow_missing: bool = False
    ) -> SavepointWriter:
        """Remove all states, timers and windows of some keys of this operator. Everything else keeps its bytes.

        Call ``.preview()`` or ``.write(target)`` on the result. Parameters and errors as for :meth:`statetool.SavepointWriter.erase`.
        """
        return self._access.edit(self._inventory, self._access).erase(
            self.name, keys, where=where, allow_missing=allow_missing
        )

    def keep(
        self,
        keys: Iterable[Key] | None = None,
        *,
        where: str | None = None,
        allow_missing: bool = False,
        allow_empty: bool = False,
    ) -> SavepointWriter:
        """Remove all states, timers and windows of this operator except those of some keys; otherwise as :meth:`erase`."""
        return self._access.edit(self._inventory, self._access).keep(
            self.name, keys, where=where, allow_missing=allow_missing, allow_empty=allow_empty
        )

    def _record(self, like: Record) -> Serializer:
        """Return the serializer that ``like`` of :meth:`in_flight` selects."""
        match like:
            case str():
                from statetool.serializers.table import snapshot_reader
                from statetool.serializers.typeutils.java_types import serializer_snapshot

                types = self._operator.types
                return snapshot_reader(types).snapshot(Cursor(serializer_snapshot(parse_java_type(like), types)))
            case StateInfo():
                return self._inventory.operator(like.operator).value_serializer(like.name)
            case (Operator() as other, str(name)):
                return other._operator.value_serializer(name)
        raise OptionError(f"like={like!r} is not a state, (operator, state name) or Java type")

    def columns_from_plan(self, plan: str, *, node: int | None = None) -> dict[str, list[str]]:
        """Return field names for the rows of a SQL operator, to pass as ``columns=``.

        Parameters
        ----------
        plan
            Path or URI of the job's ``COMPILE PLAN`` JSON.
        node
            Id of the operator's node in the plan. Defaults to the number at the start of the uid (``4_group-aggregate``), or the node
            with a uid that hashes to the operator id, or the number in the name (``GroupAggregate[4]``).

        Raises
        ------
        OptionError, FormatError, SnapshotNotFoundError
        """
        from statetool.sql_plans.compiled_plan import CompiledPlan

        return self._operator.columns_of(CompiledPlan.read(plan), node)

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
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.

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

    @list_options(ScanOptions)
    def count(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> int:
        """Return the number of rows of a table, without decoding states; parameters and errors as for :meth:`to_arrow`."""
        scan = self.scan(table, **options)
        return sum(batch.num_rows for batch in scan.select(scan.schema.names[:1]).batches())

    # ---- Arrow --------------------------------------------------------------------------------

    @list_options(ScanOptions)
    def scan(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> TableScan:
        """Plan a table: its Arrow schema and the splits for tasks; options as for :meth:`table`."""
        return self.plan(ScanRequest.of(table, **options))

    def plan(self, request: ScanRequest) -> TableScan:
        """Plan the request. Only headers are read."""
        from statetool.tables.scan import scan_table

        return scan_table(self._operator, request)

    @list_options(ScanOptions)
    def batches(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> Iterator[pa.RecordBatch]:
        """Read a table in this process, batch by batch, without a JVM; options as for :meth:`table`."""
        return self.scan(table, **options).batches()

    @list_options(ScanOptions)
    def reader(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pa.RecordBatchReader:
        """Return a reader of a table that is read batch by batch, for libraries that consume Arrow streams. It can be consumed once.

        :meth:`scan` returns an object that such libraries can read several times.

        Parameters
        ----------
        table
            One of :attr:`tables`.
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.
        """
        return self.scan(table, **options).reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the first of :attr:`tables` as an Arrow C stream, for libraries such as pyarrow, Polars and DataFusion."""
        return self.scan(next(iter(self.tables), KEYED_STATE)).__arrow_c_stream__(requested_schema)

    @list_options(KeyedOptions)
    def keyed_state_batches(
        self, states: Sequence[str] | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> Iterator[pa.RecordBatch]:
        """Read ``keyed_state`` in this process, batch by batch, without a JVM; parameters as for :meth:`keyed_state`."""
        return self.batches(KEYED_STATE, states=states, keys=keys, **options)

    @list_options(ScanOptions)
    def to_arrow(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pa.Table:
        """Read a whole table into memory, without a JVM; from 32 MiB of stored bytes on up to eight threads.

        Parameters
        ----------
        table
            One of :attr:`tables`.
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.

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
        """Read a whole table as a pandas frame; otherwise as for :meth:`to_arrow`.

        Integer columns with nulls stay integers, maps are dicts, and lists are lists.
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
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.

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
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.

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
