"""One operator of an open snapshot: its tables as Spark DataFrames, or in this process as Arrow.

Without a session, ``to_arrow`` and the ``..._batches`` methods give the same rows with no JVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from statetool.errors import OptionError, suggest
from statetool.formats.channel_state import Side
from statetool.plan.inventory import Inventory
from statetool.plan.operator import OperatorInventory
from statetool.plan.rows import metadata_rows
from statetool.plan.state_info import StateInfo
from statetool.plan.state_tables import KEYED_STATE, TIMERS
from statetool.serializers.base import Serializer
from statetool.serializers.java_types import serializer_of_type
from statetool.types.java import parse_java_type
from statetool.types.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.arrow.scan import TableScan

Record: TypeAlias = "StateInfo | tuple[Operator, str] | str"


class Operator:
    """One operator of a savepoint: a namespace of tables."""

    def __init__(self, inventory: Inventory, operator: OperatorInventory, spark: SparkSession | None) -> None:
        self._inventory = inventory
        self._operator = operator
        self._spark = spark

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
    def states(self) -> Mapping[str, StateInfo]:
        """States by name (that of their tables where keyed and operator state share it), with kind, types, and whether they can be
        decoded."""
        table_of = {state: table for table, state in self._operator.state_tables.items()}
        return MappingProxyType({table_of.get((s.scope, s.name), s.name): s for s in self._operator.states})

    @property
    def tables(self) -> list[str]:
        """Names of the tables that the operator has: ``keyed_state``, ``timers``, and each state's long form.

        That has the state's name; where it would not be the only one (keyed and operator state of one name, a state called
        ``timers``), ``keyed:`` or ``operator:`` comes before it.
        """
        states = self._operator.states
        keyed = [s for s in states if s.scope == "keyed"]
        void = [s for s in keyed if s.namespace_type in ("VoidNamespace", "GlobalWindow")]
        tables = [KEYED_STATE] if void else []
        if any(s.kind == "timers" for s in keyed):
            tables.append(TIMERS)
        return [*tables, *self._operator.state_tables]

    def __repr__(self) -> str:
        return f"Operator({self.name!r}, tables={self.tables})"

    # ---- Spark --------------------------------------------------------------------------------

    def keyed_state(
        self, states: Sequence[str] | None = None, *, keys: Sequence[Any] | None = None, **options: Any
    ) -> DataFrame:
        """Return one row a key: ``key`` and a column for each state without a namespace.

        Parameters
        ----------
        states
            States wanted; others are skipped undecoded.
        keys
            Keys wanted; only their key groups are read. A filter on ``key`` does the same (PySpark 4).
        **options
            ``ttl``, ``ttl_ms``, ``now_ms``, ``nanos``, ``decimals``, ``columns``, ``on_error``
            (:class:`statetool.types.options.ReadOptions`), ``key_group=True`` for a column with the key group,
            ``split_bytes`` and ``memory_bytes``.

        Raises
        ------
        UnknownNameError, OptionError, UnsupportedError
        """
        return self._frame(KEYED_STATE, states=states, keys=keys, **options)

    def state(self, name: str, *, keys: Sequence[Any] | None = None, **options: Any) -> DataFrame:
        """Return one state in long form.

        Keyed: ``key``, ``namespace`` where there is one, ``list_index`` or ``map_key``, ``value``. List and union state:
        ``value``; broadcast state: ``key``, ``value``; ``subtask=True`` adds the subtask.
        """
        names = self._operator.state_tables
        own = [t for t, (_, n) in names.items() if n == name]
        return self._frame(own[0] if len(own) == 1 else name, keys=keys, **options)

    def table(self, name: str, **options: Any) -> DataFrame:
        """Return one of :attr:`tables`; options as for :meth:`keyed_state`."""
        return self._frame(name, **options)

    def windows(self, name: str, *, keys: Sequence[Any] | None = None, **options: Any) -> DataFrame:
        """Return the contents of windows: the long form of a state whose namespace is a window."""
        self._check_window(name)
        return self._frame(name, keys=keys, **options)

    def timers(self, *, keys: Sequence[Any] | None = None, **options: Any) -> DataFrame:
        """Return timers: ``key``, ``namespace``, ``timestamp`` (epoch ms), ``domain`` (event, processing), ``service``."""
        return self._frame(TIMERS, keys=keys, **options)

    def in_flight(self, side: Side | None = None, like: Record | None = None, **options: Any) -> DataFrame | pa.Table:
        """Return data in flight (unaligned checkpoints): a DataFrame, or an Arrow table if no session was given.

        Without ``like`` a row for each channel: ``side``, ``subtask``, ``gate`` and ``channel`` (of outputs result partition and
        subpartition), ``buffers``, ``size_bytes``, ``elements`` (records, watermarks and others), ``cut_bytes`` of elements that go on
        in another channel's data.

        Parameters
        ----------
        side
            ``input`` or ``output``.
        like
            What the records are, which no snapshot says: a state (of ``states``) with values or elements of the same type, or
            the same of another operator as ``(operator, name)``; or a Java type (``"com.acme.Order"``, declared; ``"String"``).
            Then there is a row for each element: ``subtask``, ``gate``, ``channel``, ``value``, ``timestamp``, ``element``
            (``record``, ``watermark``, ...), ``marker``, and ``part``, the bytes of a cut one.
        **options
            As for :meth:`keyed_state`: ``nanos``, ``decimals``, ``ttl``.

        Raises
        ------
        OptionError
            ``like`` without ``side``.
        FormatError
            The bytes are no stream elements, or not of this type.
        """
        if like is None:
            rows = [r for r in metadata_rows("in_flight", [self._operator]) if side in (None, r.side)]
            return self._rows_table("in_flight", rows)
        if side is None:
            raise OptionError("records in flight are read from one side", hint="pass side='input' or side='output'")
        from statetool.arrow.scan import scan_in_flight

        scan = scan_in_flight(self._operator, side, self._record(like), **split_options(options))
        if self._spark is not None:
            from statetool.spark.frames import scan_frame

            return scan_frame(self._spark, scan)
        import pyarrow as pa

        return pa.Table.from_batches(scan.batches(), schema=scan.schema)

    def _rows_table(self, table: str, rows: list[Any]) -> DataFrame | pa.Table:
        from statetool.arrow.metadata import metadata_table

        found = metadata_table(table, rows)
        if self._spark is None:
            return found
        from statetool.spark.frames import metadata_frame

        return metadata_frame(self._spark, found)

    def _record(self, like: Record) -> Serializer:
        """Return the serializer that ``like`` of :meth:`in_flight` means."""
        match like:
            case str():
                return serializer_of_type(parse_java_type(like), self._operator.types)
            case StateInfo():
                return self._inventory.operator(like.operator).value_serializer(like.name)
            case (Operator() as other, str(name)):
                return other._operator.value_serializer(name)
        raise OptionError(f"like={like!r} is neither a state nor (operator, state name) nor a Java type")

    def _frame(self, table: str, **arguments: Any) -> DataFrame:
        from statetool.spark.frames import table_frame

        spark = needed_session(self._spark)
        return table_frame(spark, self._inventory, self._operator, table, **arguments)

    def _check_window(self, name: str) -> None:
        info = self.states.get(name)
        if info is not None and (info.namespace_type is None or not info.namespace_type.endswith("Window")):
            raise OptionError(f"state {name!r} has no window namespace", hint=f"read it with op.state({name!r})")

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
        from statetool.ops.compiled_plan import CompiledPlan

        with InputFile(plan) as f:
            compiled = CompiledPlan(bytes(f.read_at(0, f.size)))
        states = [*(meta for _, meta in self._operator.keyed_states.values()), *self._operator.operator_states.values()]
        if node is None:
            node = compiled.node_of(self.operator_id, self._operator.uid)
        return compiled.columns(node, states)

    # ---- Arrow --------------------------------------------------------------------------------

    def scan(self, table: str, **arguments: Any) -> TableScan:
        """Plan a table (arguments of :func:`statetool.arrow.scan.scan_table`, and of ``ReadOptions``)."""
        from statetool.arrow.scan import scan_table

        return scan_table(self._operator, table, **split_options(arguments))

    def batches(self, table: str, **arguments: Any) -> Iterator[pa.RecordBatch]:
        """Read a table in this process, batch by batch, with no JVM."""
        return self.scan(table, **arguments).batches()

    def keyed_state_batches(self, **arguments: Any) -> Iterator[pa.RecordBatch]:
        """Read ``keyed_state`` in this process, batch by batch, with no JVM."""
        return self.batches(KEYED_STATE, **arguments)

    def to_arrow(self, table: str = KEYED_STATE, **arguments: Any) -> pa.Table:
        """Read a whole table into memory, with no JVM."""
        import pyarrow as pa

        scan = self.scan(table, **arguments)
        return pa.Table.from_batches(scan.batches(), schema=scan.schema)


_READ_OPTIONS = tuple(ReadOptions.__dataclass_fields__)


def split_options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Gather the fields of ``ReadOptions`` among keyword arguments into ``options``.

    Raises
    ------
    OptionError
        An option that does not exist.
    """
    others = ("states", "keys", "key_group", "subtask", "split_bytes", "memory_bytes", "options")
    for name in arguments:
        if name not in _READ_OPTIONS and name not in others:
            raise OptionError(f"no option {name!r}", hint=suggest(name, (*_READ_OPTIONS, *others)))
    rest = {k: v for k, v in arguments.items() if k not in _READ_OPTIONS}
    reads = {k: v for k, v in arguments.items() if k in _READ_OPTIONS}
    if reads:
        rest["options"] = ReadOptions(**reads)
    return rest


def needed_session(spark: SparkSession | None) -> SparkSession:
    """Return the session that was given, or else the one that is active in this process.

    Raises
    ------
    MissingDependencyError
        There is none.
    """
    if spark is not None:
        return spark
    from statetool.spark.session import active_session

    return active_session()
