"""One operator of an open snapshot: its tables as Spark DataFrames, sources and sinks, statistics and edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import Unpack

from statetool.api.execution import Execution
from statetool.api.operator_tables import OperatorTables
from statetool.errors import OptionError
from statetool.formats.channel_state import Side
from statetool.io.cursor import Cursor
from statetool.snapshot.metadata_tables import METADATA_TABLES, metadata_rows
from statetool.snapshot.state_info import StateInfo
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.snapshot.views import MATCHES, WAITING, WINDOWS, window_states
from statetool.tables.keys.text import Key
from statetool.tables.request import KeyedOptions, ScanOptions, ScanRequest, StateOptions, list_options
from statetool.types.java import parse_java_type
from statetool.types.options import DecimalsMode, ReadOptions, ShowingOptions, refuse_unknown

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.analysis.statistics.estimate import Estimate
    from statetool.analysis.statistics.statistics import Statistics
    from statetool.api.write.writer import SavepointWriter
    from statetool.java.declaring.states import StateType
    from statetool.serializers.core.base import Serializer

Record: TypeAlias = "StateInfo | tuple[Operator, str] | str"
#: A change of state values: SQL expressions by state, or a function from a table to a table.
Transformation: TypeAlias = "Mapping[str, str] | Callable[[Any], Any]"


class Operator(OperatorTables):
    """One operator of a savepoint: a namespace of tables. :meth:`statetool.Savepoint.__getitem__` returns it."""

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
        names = self._operator.state_tables
        tables = [t for t, (_, n) in names.items() if n == name]
        return self.frame(ScanRequest.of(tables[0] if len(tables) == 1 else name, keys=keys, **options))

    @list_options(ScanOptions)
    def table(self, name: str, **options: Unpack[ScanOptions]) -> DataFrame:
        """Return one of :attr:`tables`.

        Parameters
        ----------
        name
            One of :attr:`states`, or of :attr:`tables` if keyed and operator state share a name.
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
            One of :attr:`states`, or of :attr:`tables` if keyed and operator state share a name.
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
        """Measure sizes, skew and ages of the operator's state: :meth:`Savepoint.stats` of one operator.

        Parameters
        ----------
        largest
            Number of largest keys, values, lists and maps to return, by default 10.
        parallelism
            Also show the skew over subtasks, and the bytes read by a restore, for this parallelism.
        ttl_ms
            A TTL in milliseconds, for counting expired values among those with a TTL.
        now_ms
            Reference time for ages and timers in epoch milliseconds. Defaults to the current time.
        bandwidth_mib, latency_ms
            MiB per second that a subtask reads, and milliseconds of latency per request, for estimating the restore time. Default to 100
            and 20.
        spark, threads
            Measure in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.
        """
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
        """Estimate entries and bytes of the operator: :meth:`Savepoint.estimate_stats` of one operator.

        Parameters
        ----------
        spark, threads
            Read in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.
        """
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

        Parameters
        ----------
        change
            Either ``{state: expression}`` over the columns of ``op.keyed_state()``, which needs Spark. ``{"state.field": expression}``
            changes one field, which keeps its type. Values with a TTL keep their last access (in lists and maps they are structs, as with ``ttl="raw"``). An expression that sets a timestamp ``t`` with nanoseconds
            needs a second one for these: ``{"t": ..., "t_nanos": "0"}``.
            Or a function from the table ``op.keyed_state(ttl="raw", key_group=True)`` to a table whose columns replace the states of their
            names. New names are new states. Tables are Spark DataFrames, or ``pyarrow.Table`` s if the savepoint was opened without a session.
            A function that drops rows drops keys: keys missing from the result lose these states, but keep their timers. To remove keys
            with all their state, call :meth:`erase`.
        states
            States passed to a function, by default all. States that it does not return stay.
        where
            A SQL condition. Values of other keys are unchanged, so the type of the expression must hold them too.
        types
            Declared types (:func:`statetool.value`, ...) of states. By default a state whose column keeps its type keeps its serializer,
            and any other gets one that follows from the column. The kind of a state never changes.
        decimals
            Form of Java's big numbers, as in a read. ``decimal`` (default): each BigDecimal keeps its scale, stored in ``<name>_scale``,
            which increases if the new value needs more fraction digits. ``string``: text, written with exactly its digits, for numbers of
            more than 38 digits.
        in_batches
            Call the function for one batch of up to 65,536 rows at a time, so that memory does not grow with the state. The rows of a batch
            are complete keys, but the function does not see other keys. It is called with the first batch at once, to learn the columns,
            and with all batches when the savepoint is written, more than once for some. So it must return the same for the same batch.
            Only without a session: a DataFrame is never in memory as a whole.
        allow_missing
            Accept a condition that no key fulfills. Spark does not look for such a key then.

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

        Call ``.preview()`` or ``.write(target)`` on the result.

        Parameters
        ----------
        keys
            Keys as plain values, as for :meth:`Operator.keyed_state`.
        where
            Instead of keys, a SQL condition on the columns of ``keyed_state``, as for :func:`statetool.erase`.
        allow_missing
            Go on without keys that the operator does not have, or if no key fulfills the condition.
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
        """Remove all states, timers and windows of this operator except those of some keys.

        Parameters
        ----------
        keys
            Keys as plain values, as for :meth:`Operator.keyed_state`.
        where
            Instead of keys, a SQL condition on the columns of ``keyed_state``, as for :func:`statetool.erase`.
        allow_missing
            Go on without keys that the operator does not have, or if no key fulfills the condition.
        allow_empty
            Leave operators without any key, if they have none of the keys. Otherwise this is an error (:class:`MissingKeyError`).
        """
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
