"""Open, inspect and verify savepoints.

With a Spark session, tables are Spark DataFrames. Without one, ``to_arrow`` and the ``..._batches`` methods return the same rows in this
process, without a JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Unpack

from statetool.api.connector_tables import connector_table, split_ends
from statetool.api.execution import ShownMapping, needed_session, shown_records
from statetool.api.inspect import (
    Comparison,
    ComparisonOptions,
    StatisticsOptions,
    checked,
    compared,
    each_of,
    measured,
    verification_html,
)
from statetool.api.operator import Operator
from statetool.declaring.classes import Declarations, PythonTypes, declared_classes, python_types, read_declarations
from statetool.declaring.flink_types import parse_type
from statetool.errors import OptionError, UnknownNameError, warn
from statetool.serializers.base import Serializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import metadata_rows
from statetool.snapshot.table_info import TableInfo, table_infos
from statetool.types.declared import TypeContext
from statetool.types.options import name_list, whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.api.report import Report, ReportOptions
    from statetool.compatibility.verdicts import Check
    from statetool.statistics.statistics import Statistics
    from statetool.tables.rows import Rows
    from statetool.verification.verify import Verification


def load(
    path: str,
    spark: SparkSession | None = None,
    *,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    key_types: Mapping[str, Operator | Serializer | str] | None = None,
    declarations: Declarations = (),
    kryo: Literal[2, 5] | None = None,
    python: PythonTypes | None = None,
    unsafe_pickle: bool = False,
    local_bytes: int | None = None,
) -> Savepoint:
    """Open a savepoint or checkpoint.

    Parameters
    ----------
    path
        Directory or metadata file of the snapshot: a local path or any URI that fsspec can open.
    spark
        Session for the DataFrame methods. Everything else works without one. On PySpark 4 this also registers the data sources.
    uids
        Uids of operators, for snapshots before Flink 2.0, which store only hashes of uids.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    key_types
        ``{operator: type}``: a SQL type (``"DOUBLE"``), a type of :mod:`statetool.flink`, or any operator with keys of the same type.
        Only needed for a changelog without a materialized base, if its bytes fit several key types, or no common one.
    declarations
        Declarations of classes that the snapshot does not describe: :class:`ClassDeclaration` objects, Avro schema files (``*.avsc``)
        or folders of them. Declarations by :func:`declare` take precedence.
    kryo
        2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5 (Flink 2.x), if the metadata version does not determine it.
    python
        Types of the states of a PyFlink job, by their names in the job (:mod:`statetool.pyflink`, or text): ``{"count": Types.LONG(),
        "items": ListState(Types.STRING()), "sizes": "MapState(STRING, LONG)"}``. A plain type declares a value, reducing or
        aggregating state. ``operator.count`` is the state of one operator. Undeclared states are byte arrays, each with several values.
    unsafe_pickle
        Load the pickles of ``PICKLED_BYTE_ARRAY`` states and show them as JSON. This executes code in the pickles: use it only for
        snapshots that you trust.
    local_bytes
        DataFrame methods read tables of up to this many bytes on disk at once, on the driver, so that queries need no Python worker
        (PySpark 4). Defaults to ``spark.statetool.localBytes``, or 8 MiB.

    Raises
    ------
    SnapshotNotFoundError, FormatError
        The snapshot does not exist, or its metadata is damaged.
    """
    keys = {
        name: other._operator.keyed.needed_key() if isinstance(other, Operator) else parse_type(other)
        for name, other in (key_types or {}).items()
    }
    classes = (*declared_classes(), *read_declarations(declarations))
    types = TypeContext(kryo=kryo, classes=classes, python=python_types(python or {}), unsafe_pickle=unsafe_pickle)
    names, moved = name_list("uids", uids), tuple((rebase or {}).items())
    inventory = Inventory(path, rebase=moved, uids=names, key_types=keys, types=types)
    if spark is not None:
        _prepare(spark, sources=True)
    return Savepoint(inventory, spark, local_bytes)


def _prepare(spark: SparkSession, *, sources: bool) -> None:
    from statetool.spark.session import prepare

    prepare(spark, sources=sources)


def verify(
    src: str | Savepoint,
    *,
    deep: bool = False,
    spark: SparkSession | None = None,
    uids: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
    threads: int | None = None,
    most: int = 1000,
    allow_unread: bool = False,
) -> Verification:
    """Check that a snapshot is complete and undamaged.

    The checks:

    * Every handle resolves, and lengths match.
    * Each key group exists exactly once.
    * Offsets are valid, and every entry can be parsed.
    * Every key is in the key group of its hash code. If ``hashCode()`` is user code, statetool uses a formula that a sample of the keys
      proves, and a key in another key group is a warning.

    Memory use does not grow with the size of the state. A changed letter or digit inside a value cannot be detected where Flink writes no
    checksum.

    Parameters
    ----------
    src
        The snapshot's path, or an open one.
    deep
        Also decode every value to its last byte, and compare checksums.
    spark
        Check the contents in tasks of a cluster. Without a session, ``threads`` of this process are used (by default one per core).
    uids, rebase
        As for :func:`load`.
    most
        Stop after about this many problems.
    allow_unread
        Accept keyed or operator state that cannot be read (serializers that statetool does not know). Otherwise a snapshot with
        such state is not ``ok``.

    Raises
    ------
    SnapshotNotFoundError
        The snapshot does not exist.
    FormatError
        The metadata is damaged.
    """
    from statetool.verification.verify import verify_inventory

    whole_number("most", most, least=1)
    savepoint = load(src, rebase=rebase) if isinstance(src, str) else src
    savepoint = savepoint.with_uids(uids) if uids else savepoint
    verification = verify_inventory(
        savepoint.inventory, each_of(spark, threads), deep=deep, most=most, allow_unread=allow_unread
    )
    return replace(verification, renderer=partial(verification_html, a=savepoint.path))


def check(
    a: str | Savepoint,
    b: str | Savepoint | None = None,
    *,
    flink: str | None = None,
    backend: Literal["heap", "rocksdb"] | None = None,
) -> Check:
    """Check whether a job would restore from a snapshot, and return the verdict.

    Only headers are read. For states with POJOs the values are read too, unless they are stored in RocksDB databases.

    Parameters
    ----------
    a
        The snapshot to restore.
    b
        A snapshot of the new job: start the job empty and take a savepoint. State that the job registers later, and subclasses that it has
        not seen yet, are unchecked or unknown.
    flink
        The Flink release that restores, such as ``"2.3"``. Defaults to 1.20 or 2.3, depending on the metadata of ``b``. Without ``b``,
        only support by this release is checked.
    backend
        The state backend of the new job. Defaults to the backend of ``b``. If ``b`` does not determine it, the check covers all backends.

    Returns
    -------
    Check
        ``verdict`` is ``fully``, ``after_migration`` (Flink converts values when it restores or reads them), ``unknown`` or ``not``.
        ``operators`` and their ``states`` each have a verdict, a reason and a remedy. ``warnings`` list losses and possible changes
        despite a successful restore. ``ok`` summarizes the result.

    Raises
    ------
    OptionError
        Neither ``b`` nor ``flink`` was given, or the release or backend is not known.
    FormatError
        A header is damaged. An operator with undamaged state that statetool cannot read is ``unknown`` instead.
    """
    old, new = (load(s) if isinstance(s, str) else s for s in (a, a if b is None else b))
    return checked(old.inventory, None if b is None else new.inventory, flink, backend)


class Savepoint:
    """An open snapshot. ``sp["uid"]`` is an operator, and iteration yields operator names."""

    def __init__(self, inventory: Inventory, spark: SparkSession | None = None, local_bytes: int | None = None) -> None:
        self._inventory = inventory
        self._spark = spark
        self._local_bytes = local_bytes

    @property
    def inventory(self) -> Inventory:
        """The contents of the snapshot, read from its metadata."""
        return self._inventory

    @property
    def spark(self) -> SparkSession | None:
        """The session given to :func:`load`."""
        return self._spark

    @property
    def path(self) -> str:
        """The path as given to :func:`load`."""
        return self._inventory.path

    @property
    def checkpoint_id(self) -> int:
        """Id of the checkpoint; 0 for savepoints written by the State Processor API."""
        return self._inventory.metadata.checkpoint_id

    @property
    def metadata_version(self) -> int:
        """Version of the ``_metadata`` format, 2 to 7."""
        return self._inventory.metadata.version

    @property
    def operators(self) -> ShownMapping[Operator]:
        """Operators by uid, or by hex id if the uid is not known."""
        return ShownMapping({name: self[name] for name in self._inventory.operators}, self._repr_html_)

    @property
    def tables(self) -> Rows:
        """All tables of all operators: ``operator``, ``table``, ``content``, ``key_type``, ``value_type``, ``reason``."""
        from statetool.tables.metadata import records_table
        from statetool.tables.rows import Rows

        infos = [
            info for operator in self.operators.values() for info in table_infos(operator.inventory, operator.tables)
        ]
        return Rows(records_table(TableInfo, infos), f"Tables of {self.path}")

    def __getitem__(self, name: str) -> Operator:
        if not isinstance(name, str):
            raise UnknownNameError(
                f"{name!r} is not the name of an operator",
                hint="sp['uid'] is an operator by uid or operator id, and sp['uid'].table(name) a table of it",
            )
        return Operator(self._inventory, self._inventory.operator(name), self._spark, self._local_bytes, self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._inventory.operators)

    def __contains__(self, name: object) -> bool:
        return name in self._inventory.operators

    def __repr__(self) -> str:
        return f"Savepoint({self.path!r}, {len(self._inventory.operators)} operators)"

    def _repr_html_(self) -> str:
        from statetool.snapshot.notebook import snapshot_html

        return snapshot_html(self._inventory)

    def _ipython_key_completions_(self) -> list[str]:
        """Return the completions of ``sp["``."""
        return list(self)

    def with_uids(self, uids: Iterable[str]) -> Savepoint:
        """Return the savepoint with uids for operators known only by id. Each uid is hashed as in Flink.

        Raises
        ------
        UnknownNameError
            No operator has the uid.
        """
        return Savepoint(self._inventory.with_uids(uids), self._spark, self._local_bytes)

    def with_session(self, spark: SparkSession) -> Savepoint:
        """Return the savepoint with a session for its DataFrame methods.

        Unlike :func:`load`, this does not register the data sources. Call :func:`statetool.register` to do so.
        """
        _prepare(spark, sources=False)
        return Savepoint(self._inventory, spark, self._local_bytes)

    def metadata_rows(self, table: str) -> list[Any]:
        """Return the rows of ``operators``, ``states``, ``files``, ``key_groups`` or ``in_flight`` as records.

        Raises
        ------
        UnknownNameError
            The table does not exist.
        """
        return metadata_rows(table, self._inventory.operators.values())

    def to_arrow(self, table: str) -> pa.Table:
        """Return a metadata table (``operators``, ``states``, ``files``, ``key_groups``, ``in_flight``) as Arrow, without a JVM."""
        from statetool.tables.metadata import metadata_table

        return metadata_table(table, self.metadata_rows(table))

    def _metadata_table(self, table: str) -> DataFrame | pa.Table:
        if self._spark is None:
            return self.to_arrow(table)
        from statetool.spark.tables import arrow_frame

        return arrow_frame(self._spark, self.to_arrow(table))

    def files(self) -> DataFrame | pa.Table:
        """Return every piece of state with its location: a DataFrame, or an Arrow table if no session was given."""
        return self._metadata_table("files")

    def states(self) -> DataFrame | pa.Table:
        """Return every state with its types: a DataFrame, or an Arrow table if no session was given."""
        return self._metadata_table("states")

    def key_groups(self) -> DataFrame | pa.Table:
        """Return every key group with its size on disk: a DataFrame, or an Arrow table if no session was given."""
        return self._metadata_table("key_groups")

    def sources(
        self, *, ends: Mapping[str, int | str] | Any = None, behind: int | None = None, last_source: int | None = None
    ) -> DataFrame | pa.Table:
        """Return every source: its connector, numbers of splits, and inconsistencies between readers and enumerator.

        Columns: :class:`statetool.connectors.rows.SourceRow`. ``backlog`` is inferred, with the reason in ``backlog_inferred_from``: a
        hybrid source is not at its last source, change data capture is in its snapshot phase, or the parameters imply it.

        Parameters
        ----------
        ends, behind
            End offsets, as for :meth:`Operator.lag`, and the lag from which a split counts as behind.
        last_source
            The index of the last source of hybrid sources, starting at 0.

        Raises
        ------
        OptionError
            Only one of ``ends`` and ``behind`` was given, or a number is not valid or negative.
        """
        from statetool.connectors.backlog import BacklogRules, source_rows
        from statetool.connectors.rows import SourceRow

        rules = BacklogRules(ends=None if ends is None else split_ends(ends), behind=behind, last_source=last_source)
        return shown_records(self._spark, SourceRow, source_rows(self._inventory.operators.values(), rules))

    def source_checks(self) -> DataFrame | pa.Table:
        """Return the inconsistencies between readers and enumerators: :class:`statetool.connectors.checks.SourceCheck`."""
        return connector_table(self._spark, "source_checks", self._inventory.operators.values())

    def sinks(self) -> DataFrame | pa.Table:
        """Return every operator of a sink, with its amount of uncommitted data: :class:`statetool.connectors.rows.SinkRow`."""
        return connector_table(self._spark, "sinks", self._inventory.operators.values())

    def commit_ids(self) -> DataFrame | pa.Table:
        """Return the sinks that commit by checkpoint id: :class:`statetool.connectors.commit_ids.CommitIdRow`."""
        from statetool.connectors.commit_ids import CommitIdRow, commit_id_rows

        rows = commit_id_rows(self._inventory.operators.values(), self._inventory.metadata.checkpoint_id)
        return shown_records(self._spark, CommitIdRow, rows)

    def connector_rows(self, table: str) -> list[Any]:
        """Return the rows of ``sources``, ``source_splits``, ``enumerators``, ``source_checks``, ``sinks`` or ``transactions``.

        Raises
        ------
        UnknownNameError
            The table does not exist.
        """
        from statetool.connectors.tables import connector_rows

        return connector_rows(table, self._inventory.operators.values())

    def stats(self, **options: Unpack[StatisticsOptions]) -> Statistics:
        """Measure sizes, skew and ages of the state. Values are decoded only if their size is not enough.

        Parameters
        ----------
        operators
            Names of the operators to measure; by default all.
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
        spark
            Measure in tasks of a cluster. Without a session, ``threads`` of this process are used (by default one per core).

        Returns
        -------
        Statistics
            Tables of plain rows: ``operators``, ``states``, ``sizes`` (by state, key group and subtask; the bytes of all rows add up to
            those of the files), ``largest``, ``distribution``, ``skew``, ``ages``, ``timers``, ``restore``. ``rows(table)`` returns
            records, ``to_arrow(table)`` returns Arrow.

        Raises
        ------
        OptionError
            An option is not valid.
        FormatError, DecodeError
            Bytes are damaged. Undamaged state that statetool cannot read is counted as ``unread`` instead.
        """
        return measured(self._inventory, **options)

    def diff(self, other: Savepoint | str, **options: Unpack[ComparisonOptions]) -> Comparison:
        """Compare with another snapshot, key by key. This snapshot is ``before``.

        Backend, format, release, parallelism and max parallelism of the two may differ. Equal bytes are not decoded. Equal values with
        different bytes count as equal. Operators are matched by uid.

        Parameters
        ----------
        other
            The snapshot ``after``, or its path, which is opened with the types and ``rebase`` of this snapshot.
        operators, states
            Names of operators and states to compare, by default all.
        keys
            Keys of one operator to compare, as plain values (see :meth:`Operator.keyed_state`).
        access_times
            Whether values with a TTL differ if only their last access differs. By default they do.
        threads
            Threads of this process, by default one per core. With a session, differences are counted in tasks.

        Returns
        -------
        Comparison
            ``structure``: differences between the declarations of states. ``summary()``: counts by state. ``frame()``, ``batches()`` and
            ``to_arrow()``: the differences. ``equal``: whether there are none.

        Raises
        ------
        UnknownNameError
            Neither snapshot has the operator or state.
        OptionError, EncodeError
            Keys were given without an operator or have another type, or ``other`` is neither a savepoint nor a path.
        FormatError
            A header is damaged. Undamaged state that statetool cannot read is listed in :attr:`Comparison.unread` instead, and the two
            snapshots are not ``equal``.
        """
        return compared(self._inventory, self._opened(other), self._spark, **options)

    def _opened(self, other: Savepoint | str) -> Inventory:
        """Return the inventory of another snapshot. A path is opened with the same types and ``rebase`` as this snapshot."""
        match other:
            case Savepoint():
                return other.inventory
            case str():
                return Inventory(other, rebase=self._inventory.rebase, types=self._inventory.types)
        raise OptionError(f"{other!r} is neither a savepoint nor a path", hint="sp.diff(statetool.load(path))")

    def report(
        self, target: str | None = None, other: Savepoint | str | None = None, **options: Unpack[ReportOptions]
    ) -> Report:
        """Collect all findings about the snapshot. Notebooks show them; with ``target`` they are also written to one HTML page.

        The page loads no resources and runs no scripts. A failed analysis is a finding with its error.

        Parameters
        ----------
        target
            A new file: a local path or any URI that fsspec can open.
        other
            A snapshot of the new job, or its path, to check this one against (:func:`check`, with ``flink`` and ``backend``) and to
            compare it with (:meth:`diff`).
        history
            A directory with checkpoints of the job, for showing their growth.
        allow_unread
            Do not count unreadable state as a failure.

        Others as for :func:`verify` and :meth:`stats`.

        Returns
        -------
        Report
            True as a condition (:attr:`Report.ok`) if every analysis succeeded, all state was read, the snapshot and its sources are
            consistent and, if requested, a job would restore without lost or changed state.

        Raises
        ------
        OptionError, TargetExistsError, WriteFailedError
            An option is not valid, or the file already exists or cannot be written.
        """
        from statetool.api.report import Report, reported

        return Report(reported(self._inventory, None if other is None else self._opened(other), target, options))

    def register(self, prefix: str) -> list[str]:
        """Create temporary views ``<prefix>_<uid>_keyed_state``, ``..._timers`` and ``..._<state>`` for ``spark.sql``.

        Data is read only when a query needs it.

        Returns
        -------
        list of str
            Names of the views, in the order of operators and tables. Characters that are not valid in SQL names become underscores, and
            duplicate names get the suffix ``_2``, ``_3``.

        Warns
        -----
        UserWarning
            Keyed or operator state of an operator cannot be listed and has no views. The warning gives the reason.
        """
        from statetool.spark.views import register_views

        for row in self.metadata_rows("states"):
            if row.kind == "unread":
                warn(f"no views of the {row.scope} state of {row.operator!r}: {row.reason}", stacklevel=2)

        tables = [(o.name, t, o) for o in self.operators.values() for t in o.tables]
        return register_views(needed_session(self._spark), prefix, tables, local_bytes=self._local_bytes)


def register(spark: object) -> None:
    """Register the data sources ``flink-state`` and ``flink-state-metadata`` with a Spark session (PySpark 4).

    Raises
    ------
    MissingDependencyError
        PySpark is older than 4 and has no Python data sources.
    """
    from statetool.spark.session import register as register_sources

    register_sources(spark)
