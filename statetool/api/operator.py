"""One operator of an open snapshot: its tables as Spark DataFrames, or in this process as Arrow.

Without a session, ``to_arrow`` and the ``..._batches`` methods give the same rows with no JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import Unpack

from statetool.api.connector_tables import lag_table, source_table, transactions_table
from statetool.api.execution import ShownMapping, needed_session, shown_records
from statetool.api.inspect import StatisticsOptions, measured
from statetool.errors import OptionError
from statetool.formats.channel_state import Side
from statetool.io.cursor import Cursor
from statetool.serializers.base import Serializer
from statetool.serializers.java_types import serializer_snapshot
from statetool.serializers.table import snapshot_reader
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import METADATA_TABLES, metadata_rows
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_info import StateInfo
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.snapshot.views import MATCHES, WAITING, WINDOWS, is_window
from statetool.tables.option_text import Key
from statetool.tables.request import KeyedOptions, ScanOptions, ScanRequest, StateOptions
from statetool.types.java import parse_java_type
from statetool.types.options import ReadOptions, ShowingOptions, refuse_unknown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.api.edits import Edits
    from statetool.api.savepoint import Savepoint
    from statetool.api.transform import Transformation, TransformOptions
    from statetool.spark.frames import SparkTable
    from statetool.statistics.statistics import Statistics
    from statetool.tables.scan import TableScan

Record: TypeAlias = "StateInfo | tuple[Operator, str] | str"


class Operator:
    """One operator of a savepoint: a namespace of tables."""

    def __init__(
        self,
        inventory: Inventory,
        operator: OperatorInventory,
        spark: SparkSession | None,
        local_bytes: int | None = None,
        savepoint: Savepoint | None = None,
    ) -> None:
        self._inventory = inventory
        self._savepoint = savepoint
        self._operator = operator
        self._spark = spark
        self._local_bytes = local_bytes

    @property
    def name(self) -> str:
        """The uid, or the operator id where no uid is known."""
        return self._operator.label

    @property
    def uid(self) -> str | None:
        """The uid, if it is stored or was given."""
        return self._operator.uid or None

    @property
    def inventory(self) -> OperatorInventory:
        """What is known of the operator without reading its state: serializers, files, key groups."""
        return self._operator

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
    def states(self) -> ShownMapping[StateInfo]:
        """States by name (that of their tables where keyed and operator state share it), with kind, types, and whether they can be
        decoded."""
        table_of = {state: table for table, state in self._operator.state_tables.items()}
        return ShownMapping(
            {table_of.get((s.scope, s.name), s.name): s for s in self._operator.states}, self._repr_html_
        )

    @property
    def tables(self) -> list[str]:
        """Names of the tables that the operator has: ``keyed_state``, ``timers``, ``waiting``, ``matches``, ``windows`` (:mod:`statetool.api.operator`),
        and each state's long form.

        A long form has the state's name; where that is ambiguous (keyed and operator state of one name, a state called ``timers``),
        ``keyed:`` or ``operator:`` comes before it.
        """
        states = self._operator.states
        keyed = [s for s in states if s.scope == "keyed"]
        without_namespace = [s for s in keyed if s.namespace_type in ("VoidNamespace", "GlobalWindow")]
        tables = [KEYED_STATE] if without_namespace else []
        if any(s.kind == "timers" for s in keyed):
            tables.append(TIMERS)
        return [*tables, *self._operator.views, *self._operator.state_tables]

    def __repr__(self) -> str:
        return f"Operator({self.name!r}, tables={self.tables})"

    def _repr_html_(self) -> str:
        from statetool.snapshot.notebook import operator_html

        return operator_html(self._operator, self.tables)

    # ---- Spark --------------------------------------------------------------------------------

    def keyed_state(
        self, states: Sequence[str] | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return one row a key: ``key`` and a column for each state without a namespace.

        Parameters
        ----------
        states
            States wanted; others are skipped undecoded.
        keys
            Keys wanted, as plain values: numbers, strings, bytes, ``Decimal`` and tuples of them, dates as days since 1970-01-01,
            timestamps as numbers in the unit of their type. Only their key groups are read.
        key_group
            ``True`` adds the int column ``key_group``.
        ttl, ttl_ms, now_ms
            Of values with a time to live: ``show`` the value alone (default), ``raw`` a struct of ``last_access`` (timestamp) and
            ``value``, ``hide_expired`` no value that had expired at ``now_ms`` (epoch milliseconds, by default now), ``ttl_ms``
            milliseconds after its last access.
        nanos
            Digits below the microsecond: ``companion`` (default) keeps them in an int column ``<name>_nanos`` (0..999) where the type
            can have them, ``always`` beside all SQL timestamps above precision 3; ``error`` refuses them, ``truncate`` drops them.
        decimals
            Java's BigDecimal as decimal(38,18) and BigInteger as decimal(38,0), an error where one does not fit: ``decimal``
            (default), with the scale of each BigDecimal in a column ``<name>_scale``; ``plain`` without that column; ``string`` is their
            exact text.
        presence
            ``companion`` (default) adds a bool column ``<name>_present`` to ``keyed_state`` beside states whose values can be null
            themselves (Scala's ``None``), true for keys that have the state; ``omit`` does not.
        on_error
            ``error`` (default), or ``keep_raw``: a value that cannot be decoded is null, its bytes are in the map ``_undecoded``.
        columns
            Names for the fields of rows, ``{"key": ["user"]}``, or names and types of rows whose snapshot has none,
            ``{"state": "ROW<id BIGINT, name STRING>"}``, by ``key``, state, or path (``state.value``).
        split_bytes
            Bytes of a task on disk, about: by default 64 MiB, less where cores would have nothing to read.
        memory_bytes
            Key groups above this (128 MiB by default) are merged as they stream by, or go through local disk.

        Raises
        ------
        UnknownNameError
            The operator has no such state, or none without a namespace.
        OptionError
            An option that does not exist, has no such value, or does not go with another one.
        EncodeError
            A key is not of the type of the operator's keys.
        UnsupportedError
            A type that Arrow and Spark do not have.
        """
        return self.frame(ScanRequest.of(KEYED_STATE, states=states, keys=keys, **options))

    def state(self, name: str, *, keys: Sequence[Key] | None = None, **options: Unpack[StateOptions]) -> DataFrame:
        """Return one state in long form.

        Keyed: ``key``, ``namespace`` where there is one, ``list_index`` or ``map_key``, ``value``. List and union state:
        ``value``; broadcast state: ``key``, ``value``.

        Parameters
        ----------
        name
            One of :attr:`states`, or of :attr:`tables` where keyed and operator state share a name.
        subtask
            Of operator state, ``True`` adds the int column ``subtask``, and shows every subtask's copy of union and broadcast state.
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`keyed_state`, as are the errors; operator state has neither ``keys`` nor ``key_group``.
        """
        names = self._operator.state_tables
        tables = [t for t, (_, n) in names.items() if n == name]
        return self.frame(ScanRequest.of(tables[0] if len(tables) == 1 else name, keys=keys, **options))

    def table(self, name: str, **options: Unpack[ScanOptions]) -> DataFrame:
        """Return one of :attr:`tables`.

        Parameters
        ----------
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`keyed_state`, :meth:`timers` and :meth:`state`, as far as the table has them; errors are the same.
        """
        return self.frame(ScanRequest.of(name, **options))

    def timers(
        self, *, states: Sequence[str] | None = None, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return timers: ``key``, ``namespace``, ``timestamp`` (epoch ms), ``time`` (the same as a timestamp; null outside of the years 1
        to 9999, and not looked at where timers are written), ``domain`` (event, processing), ``service``.

        Parameters
        ----------
        states
            Names of the timer states wanted (``_timer_state/event_user-timers``).
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`keyed_state`, as are the errors.
        """
        return self.frame(ScanRequest.of(TIMERS, states=states, keys=keys, **options))

    def waiting(self, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]) -> DataFrame:
        """Return the elements that wait in an operator.

        Of asynchronous I/O the calls that had not come back, or whose results wait for an earlier one: ``value``, ``timestamp``,
        ``element`` (``record``, ``watermark``, ...), ``marker``, ``subtask``, in their order. Of complex event processing the events that the
        watermark had not reached: ``key``, ``timestamp``, ``value``.

        Parameters
        ----------
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors; asynchronous I/O has neither ``keys`` nor ``key_group``.

        Raises
        ------
        OptionError
            Nothing waits in such an operator.
        """
        return self._view(WAITING, "no queue of elements that wait", keys, options)

    def matches(self, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]) -> DataFrame:
        """Return the matches of complex event processing that have begun: a row for each match.

        ``key``; ``status`` (``partial``, or ``completed`` and not yet emitted); ``waiting_for``, the pattern that comes next; ``state``, what
        Flink calls that inside; ``start_ms``, ``previous_ms``: times of its first and its last event (the latter where that is stored);
        ``events``, a map of patterns to their events. ``events`` is null where Flink itself would find none in its buffer.

        Parameters
        ----------
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors.

        Raises
        ------
        OptionError
            The operator matches no patterns.
        """
        return self._view(MATCHES, "no matches of patterns", keys, options)

    def windows(
        self, name: str | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> DataFrame:
        """Return windows with all of their state, or one state in its long form.

        Without a name a row for each key and window: ``key``, ``window`` (global windows have no such column), and a column for each
        state that is kept by window: contents, states of triggers, the user's own. Merged windows are shown as they are now.

        Parameters
        ----------
        name
            A state whose namespace is a window: its long form.
        keys, key_group, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`Operator.keyed_state`, as are the errors.

        Raises
        ------
        OptionError
            The operator has no windows, or the namespace of the state is none.
        """
        if name is None:
            return self._view(WINDOWS, "no state that is kept by window", keys, options)
        if name in self._operator.listed_keyed:
            namespace = self._operator.listed_keyed[name][1].namespace
            if namespace is None or not is_window(namespace):
                raise OptionError(f"state {name!r} has no window namespace", hint=f"read it with op.state({name!r})")
        return self.frame(ScanRequest.of(name, keys=keys, **options))

    def _view(self, table: str, nothing: str, keys: Sequence[Key] | None, options: KeyedOptions) -> DataFrame:
        if table not in self._operator.views:
            self._operator.check_listed("keyed", "operator")
            raise OptionError(
                f"operator {self._operator.label!r} has {nothing}", hint="op.tables are those that it has"
            )
        return self.frame(ScanRequest.of(table, keys=keys, **options))

    def frame(self, request: ScanRequest) -> DataFrame:
        """Return what a request asks for as a DataFrame, in the session that was given or the active one.

        Raises
        ------
        MissingDependencyError
            There is no session.
        """
        return self.planned(request).frame()

    def planned(self, request: ScanRequest) -> SparkTable:
        """Return what a request asks for, planned for the tasks of the session that was given or the active one; errors as :meth:`frame`."""
        spark = needed_session(self._spark)
        from statetool.spark.frames import SparkTable, plan_for_tasks

        return SparkTable(spark, plan_for_tasks(spark, self.plan, request), self._local_bytes)

    def in_flight(
        self, side: Side | None = None, like: Record | None = None, **options: Unpack[ShowingOptions]
    ) -> DataFrame | pa.Table:
        """Return data in flight (unaligned checkpoints): a DataFrame, or an Arrow table if no session was given.

        Without ``like`` a row for each channel: ``side``, ``subtask``, ``gate`` and ``channel`` (of outputs result partition and
        subpartition), ``buffers``, ``size_bytes``, ``elements`` (records, watermarks and others); of these elements, the number of
        ``attributes`` (they describe the records behind them) and of those that say backlog (``backlog_attributes``; ``backlog`` is what
        the last one says); ``cut_bytes`` of elements that go on in another channel's data.

        Parameters
        ----------
        side
            ``input`` or ``output``.
        like
            What the records are, which no snapshot says: a state (of ``states``) with values or elements of the same type, or
            the same of another operator as ``(operator, name)``; or a Java type (``"com.acme.Order"``, declared; ``"String"``).
            Then there is a row for each element: ``subtask``, ``gate``, ``channel``, ``value``, ``timestamp``, ``element``
            (``record``, ``watermark``, ...), ``marker``, and ``part``, the bytes of a cut one.
        ttl, ttl_ms, now_ms, nanos, decimals, presence
            As for :meth:`keyed_state`; without ``like`` there is nothing to show by them.

        Raises
        ------
        OptionError
            ``like`` without ``side``; an option that does not exist.
        FormatError
            The bytes are no stream elements, or not of this type.
        """
        refuse_unknown(options, list(ShowingOptions.__annotations__))
        read_options = ReadOptions.of(**options)
        if like is None:
            rows = [r for r in metadata_rows("in_flight", [self._operator]) if side in (None, r.side)]
            return shown_records(self._spark, METADATA_TABLES["in_flight"].record, rows)
        if side is None:
            raise OptionError("records in flight are read from one side", hint="pass side='input' or side='output'")
        from statetool.tables.scan import scan_in_flight

        scan = scan_in_flight(self._operator, side, self._record(like), options=read_options)
        if self._spark is not None:
            from statetool.spark.frames import SparkTable

            return SparkTable(self._spark, scan, self._local_bytes).frame()
        import pyarrow as pa

        return pa.Table.from_batches(scan.batches(), schema=scan.schema)

    def source_splits(self, connector: str | None = None) -> DataFrame | pa.Table:
        """Return the splits that the readers of a source hold, with where they are: a DataFrame, or Arrow without a session.

        Parameters
        ----------
        connector
            Name of the connector, where the bytes do not tell it.

        Raises
        ------
        OptionError
            The operator is no source.
        UnknownNameError, FormatError
            There is no such connector; bytes that are not its own, or damaged.
        """
        return source_table(self._spark, "source_splits", self._operator, connector)

    def enumerator(self, connector: str | None = None) -> DataFrame | pa.Table:
        """Return the splits that the enumerator of a source keeps, and whether they are assigned; as :meth:`source_splits`."""
        return source_table(self._spark, "enumerators", self._operator, connector)

    def lag(self, ends: Mapping[str, int | str] | Any, connector: str | None = None) -> DataFrame | pa.Table:
        """Return how far each split that a reader holds is behind its end; DataFrame or Arrow as :meth:`source_splits`.

        Parameters
        ----------
        ends
            What is written next, by ``topic:partition`` or by the split's id: a mapping, or a table (Arrow or DataFrame) with the
            columns ``topic``, ``partition``, ``offset``, or ``split``, ``position``.
        """
        return lag_table(self._spark, self._operator, ends, connector)

    def transactions(self) -> DataFrame | pa.Table:
        """Return what a sink has written and not committed: transactions, files; a DataFrame, or Arrow without a session.

        Raises
        ------
        OptionError
            The operator is no sink.
        """
        return transactions_table(self._spark, self._operator)

    def stats(self, **options: Unpack[StatisticsOptions]) -> Statistics:
        """Measure what is large, where and since when; parameters, result and errors as those of :meth:`Savepoint.stats`."""
        options.setdefault("operators", [self.name])
        return measured(self._inventory, **options)

    def transform(self, change: Transformation, **options: Unpack[TransformOptions]) -> Edits:
        """Change values of states; ``.preview()`` shows what differs, ``.write(target)`` writes the savepoint.

        Parameters and errors as those of :meth:`statetool.api.edits.Edits.transform`.
        """
        from statetool.api.edits import Edits

        return Edits(base=self._savepoint).transform(self.name, change, **options)

    def _record(self, like: Record) -> Serializer:
        """Return the serializer that ``like`` of :meth:`in_flight` means."""
        match like:
            case str():
                types = self._operator.types
                return snapshot_reader(types).snapshot(Cursor(serializer_snapshot(parse_java_type(like), types)))
            case StateInfo():
                return self._inventory.operator(like.operator).value_serializer(like.name)
            case (Operator() as other, str(name)):
                return other._operator.value_serializer(name)
        raise OptionError(f"like={like!r} is neither a state nor (operator, state name) nor a Java type")

    def columns_from_plan(self, plan: str, *, node: int | None = None) -> dict[str, list[str]]:
        """Return names for the rows of a SQL operator, to be passed on as ``columns=``.

        Parameters
        ----------
        plan
            Path or URI of the JSON that ``COMPILE PLAN`` wrote for the job.
        node
            Id of the operator's node in it; by default the number that the uid begins with (``4_group-aggregate``), or the node
            to one of whose uids the operator's id belongs.

        Raises
        ------
        OptionError, FormatError, SnapshotNotFoundError
        """
        from statetool.io.files import InputFile
        from statetool.sql_plans.compiled_plan import CompiledPlan

        with InputFile(plan) as f:
            compiled = CompiledPlan(bytes(f.read_at(0, f.size)))
        states = [*(meta for _, meta in self._operator.keyed_states.values()), *self._operator.operator_states.values()]
        if node is None:
            node = compiled.node_of(self.operator_id, self._operator.uid)
        return compiled.columns(node, states)

    # ---- Arrow --------------------------------------------------------------------------------

    def scan(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> TableScan:
        """Plan a table: its Arrow schema and the splits that tasks read; options as for :meth:`table`."""
        return self.plan(ScanRequest.of(table, **options))

    def plan(self, request: ScanRequest) -> TableScan:
        """Plan what a request asks for; reads headers only."""
        from statetool.tables.scan import scan_table

        return scan_table(self._operator, request)

    def batches(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> Iterator[pa.RecordBatch]:
        """Read a table in this process, batch by batch, with no JVM; options as for :meth:`table`."""
        return self.scan(table, **options).batches()

    def keyed_state_batches(
        self, states: Sequence[str] | None = None, *, keys: Sequence[Key] | None = None, **options: Unpack[KeyedOptions]
    ) -> Iterator[pa.RecordBatch]:
        """Read ``keyed_state`` in this process, batch by batch, with no JVM; parameters as for :meth:`keyed_state`."""
        return self.batches(KEYED_STATE, states=states, keys=keys, **options)

    def to_arrow(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pa.Table:
        """Read a whole table into memory, with no JVM.

        Parameters
        ----------
        table
            One of :attr:`tables`.
        states, keys, key_group, subtask, ttl, ttl_ms, now_ms, nanos, decimals, presence, on_error, columns, split_bytes, memory_bytes
            As for :meth:`table`, as are the errors.

        Raises
        ------
        DecodeError
            A value that does not fit its type, or that the options do not let be shown; with file, offset, operator, state and key
            group.
        FormatError
            Other damage.
        """
        import pyarrow as pa

        scan = self.scan(table, **options)
        return pa.Table.from_batches(scan.batches(), schema=scan.schema)

    def to_pandas(self, table: str = KEYED_STATE, **options: Unpack[ScanOptions]) -> pd.DataFrame:
        """Read a whole table as a pandas frame: integers stay such beside nulls, maps are dicts, lists lists; as :meth:`to_arrow`."""
        from statetool.columns.to_pandas import pandas_frame

        return pandas_frame(self.to_arrow(table, **options))
