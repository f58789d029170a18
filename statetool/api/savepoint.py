"""What users hold: an open savepoint, and how one is opened and verified.

With a Spark session, tables are Spark DataFrames; without one, ``to_arrow`` and the ``..._batches`` methods give the same rows
in this process, with no JVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Unpack

from statetool.api.connector_tables import connector_table, split_ends
from statetool.api.execution import ShownMapping, needed_session, shown_records
from statetool.api.inspect import Comparison, ComparisonOptions, StatisticsOptions, checked, compared, each_of, measured
from statetool.api.operator import Operator
from statetool.declaring.classes import Declarations, PythonTypes, declared_classes, python_types, read_declarations
from statetool.declaring.flink_types import parse_type
from statetool.errors import OptionError, UnknownNameError, warn
from statetool.serializers.base import Serializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import metadata_rows
from statetool.types.declared import TypeContext
from statetool.types.options import name_list, whole_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.api.report import ReportOptions
    from statetool.compatibility.verdicts import Check
    from statetool.statistics.statistics import Statistics
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
        Its directory, or its metadata file: a local path or any URI that fsspec can open.
    spark
        Session for the DataFrame methods; everything else works without. On PySpark 4 it gets to know the data sources.
    uids
        Names for operators of snapshots before Flink 2.0, which store only hashes of them.
    rebase
        ``{old prefix: new prefix}`` for files that absolute paths no longer reach.
    key_types
        ``{operator: type}``: a SQL type (``"DOUBLE"``), a type of :mod:`statetool.flink`, or any operator whose keys are of the same
        type. Only needed for a change log on top of nothing whose bytes fit keys of several types, or of no common one.
    declarations
        What the snapshot does not say of its classes: :class:`ClassDeclaration` objects, Avro schema files (``*.avsc``) or folders of
        them. Those made by :func:`declare` come first.
    kryo
        2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5 (Flink 2.x), where the version of the metadata does not tell.
    python
        What states of a PyFlink job hold, by the names that the job gave them (:mod:`statetool.pyflink`, or text): ``{"count":
        Types.LONG(), "items": ListState(Types.STRING()), "sizes": "MapState(STRING, LONG)"}``; a type alone is that of a value, reducing
        or aggregating state. ``operator.count`` is the state of one operator. Undeclared states are byte arrays, several values in each.
    unsafe_pickle
        Load the pickles of ``PICKLED_BYTE_ARRAY`` states, shown as JSON. This runs what they say: only for snapshots that you trust.
    local_bytes
        DataFrame methods read tables of at most so many stored bytes at once, here, so that queries need no Python worker
        (PySpark 4): what ``spark.statetool.localBytes`` says by default, or 8 MiB.

    Raises
    ------
    SnapshotNotFoundError, FormatError
        There is no snapshot, or its metadata is damaged.
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
    """Check that a snapshot is whole.

    Every handle resolves, lengths match, key groups are there exactly once, offsets are sound, every entry can be walked and
    every key lies in the key group of its hash code (where that lies in user code: of the formula that a sample of the keys proves, and
    then what does not fit is a warning). Memory does not grow with the size of the state.

    Parameters
    ----------
    src
        The snapshot's path, or an open one.
    deep
        Decode every value to its last byte too, and compare checksums.
    spark
        Check the contents in tasks of a cluster; otherwise in ``threads`` of this process (one a core by default).
    uids, rebase
        As in :func:`load`.
    most
        Stop after about so many problems.
    allow_unread
        Accept keyed or operator state that cannot be read (serializers that statetool does not know). Otherwise a snapshot with
        such state is not ``ok``.

    What no reader can see is not found: a changed letter or digit inside of a value, where Flink writes no checksum.

    Raises
    ------
    SnapshotNotFoundError
        There is no snapshot.
    FormatError
        Its metadata is damaged.
    """
    from statetool.verification.verify import verify_inventory

    whole_number("most", most, least=1)
    savepoint = load(src, rebase=rebase) if isinstance(src, str) else src
    savepoint = savepoint.with_uids(uids) if uids else savepoint
    return verify_inventory(
        savepoint.inventory, each_of(spark, threads), deep=deep, most=most, allow_unread=allow_unread
    )


def check(
    a: str | Savepoint,
    b: str | Savepoint | None = None,
    *,
    flink: str | None = None,
    backend: Literal["heap", "rocksdb"] | None = None,
) -> Check:
    """Tell whether a job would restore from a snapshot, before it does.

    Headers are read; of states with POJOs also the values, unless they are in databases of RocksDB.

    Parameters
    ----------
    a
        The snapshot to restore.
    b
        A snapshot of the new job: start it empty and take a savepoint. What it does not say (state that it registers later, subclasses
        that it has not met) is not checked, or unknown.
    flink
        The release that restores, such as ``"2.3"``; by default 1.20 or 2.3, as the metadata of ``b`` says. Without ``b`` it is
        only checked what that release reads.
    backend
        The state backend of the new job; by default what ``b`` tells, and where it does not, what all of them do.

    Returns
    -------
    Check
        ``verdict``: ``fully``, ``after_migration`` (Flink converts values as it restores or reads them), ``unknown`` or ``not``; ``operators``
        and their ``states``, each with its own, a reason and a remedy; ``warnings`` about what is lost or may change though the
        restore succeeds; ``ok``.

    Raises
    ------
    OptionError
        Neither ``b`` nor ``flink``; a release or backend that is not known.
    FormatError
        A damaged header. An operator with state that only statetool cannot read is ``unknown``.
    """
    old, new = (load(s) if isinstance(s, str) else s for s in (a, a if b is None else b))
    return checked(old.inventory, None if b is None else new.inventory, flink, backend)


class Savepoint:
    """An open snapshot. ``sp["uid"]`` is an operator; iteration gives their names."""

    def __init__(self, inventory: Inventory, spark: SparkSession | None = None, local_bytes: int | None = None) -> None:
        self._inventory = inventory
        self._spark = spark
        self._local_bytes = local_bytes

    @property
    def inventory(self) -> Inventory:
        """What the snapshot holds, read from its metadata."""
        return self._inventory

    @property
    def spark(self) -> SparkSession | None:
        """The session that was given to :func:`load`."""
        return self._spark

    @property
    def path(self) -> str:
        """The path as it was given."""
        return self._inventory.path

    @property
    def checkpoint_id(self) -> int:
        """Id of the checkpoint; 0 for savepoints that the State Processor API wrote."""
        return self._inventory.metadata.checkpoint_id

    @property
    def metadata_version(self) -> int:
        """Version of the ``_metadata`` format, 2 to 7."""
        return self._inventory.metadata.version

    @property
    def operators(self) -> ShownMapping[Operator]:
        """Operators by uid, or by hex id where no uid is known."""
        return ShownMapping({name: self[name] for name in self._inventory.operators}, self._repr_html_)

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
        """Return what completes ``sp["``."""
        return list(self)

    def with_uids(self, uids: Iterable[str]) -> Savepoint:
        """Return the savepoint with names for operators known by id only; each uid is hashed as Flink does.

        Raises
        ------
        UnknownNameError
            No operator has such a uid.
        """
        return Savepoint(self._inventory.with_uids(uids), self._spark, self._local_bytes)

    def with_session(self, spark: SparkSession) -> Savepoint:
        """Return the savepoint with a session for its DataFrame methods.

        Unlike :func:`load` it does not make the data sources known: :func:`statetool.register` does.
        """
        _prepare(spark, sources=False)
        return Savepoint(self._inventory, spark, self._local_bytes)

    def metadata_rows(self, table: str) -> list[Any]:
        """Return the rows of ``operators``, ``states``, ``files``, ``key_groups`` or ``in_flight`` as records.

        Raises
        ------
        UnknownNameError
            There is no such table.
        """
        return metadata_rows(table, self._inventory.operators.values())

    def to_arrow(self, table: str) -> pa.Table:
        """Return a metadata table (``operators``, ``states``, ``files``, ``key_groups``, ``in_flight``) as Arrow, with no JVM."""
        from statetool.tables.metadata import metadata_table

        return metadata_table(table, self.metadata_rows(table))

    def _metadata_table(self, table: str) -> DataFrame | pa.Table:
        if self._spark is None:
            return self.to_arrow(table)
        from statetool.spark.tables import arrow_frame

        return arrow_frame(self._spark, self.to_arrow(table))

    def files(self) -> DataFrame | pa.Table:
        """Return every piece of state and where it lies: a DataFrame, or an Arrow table if no session was given."""
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
        """Return every source: its connector, numbers of splits, and problems that a cross-check of readers and enumerator finds.

        Columns: :class:`statetool.connectors.rows.SourceRow`. ``backlog`` is inferred (``backlog_inferred_from`` says by what): a hybrid
        source that is not at its last one, change data capture that reads the snapshot; and by what the parameters say.

        Parameters
        ----------
        ends, behind
            What is written next, as for :meth:`Operator.lag`, and how far before that a split counts as behind.
        last_source
            The index of the last source of hybrid ones, from 0 on.

        Raises
        ------
        OptionError
            ``ends`` without ``behind`` or the other way round; a number that is none, or below 0.
        """
        from statetool.connectors.backlog import BacklogRules, source_rows
        from statetool.connectors.rows import SourceRow

        rules = BacklogRules(ends=None if ends is None else split_ends(ends), behind=behind, last_source=last_source)
        return shown_records(self._spark, SourceRow, source_rows(self._inventory.operators.values(), rules))

    def source_checks(self) -> DataFrame | pa.Table:
        """Return what a cross-check of readers and enumerators finds: :class:`statetool.connectors.checks.SourceCheck`."""
        return connector_table(self._spark, "source_checks", self._inventory.operators.values())

    def sinks(self) -> DataFrame | pa.Table:
        """Return every operator of a sink, and how much it has not committed: :class:`statetool.connectors.rows.SinkRow`."""
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
            There is no such table.
        """
        from statetool.connectors.tables import connector_rows

        return connector_rows(table, self._inventory.operators.values())

    def stats(self, **options: Unpack[StatisticsOptions]) -> Statistics:
        """Measure what is large, where and since when; values are not decoded where their size is enough.

        Parameters
        ----------
        operators
            Names of the operators to measure; by default all.
        largest
            How many of the largest keys, values, lists and maps are named; 10 by default.
        parallelism
            Show the skew over subtasks, and what a restore reads, for this parallelism too.
        ttl_ms
            A time to live, by which values that have one are counted as expired.
        now_ms
            Epoch milliseconds that ages and timers count from; by default now.
        bandwidth_mib, latency_ms
            MiB a second that a subtask reads, and milliseconds that a request waits, by which the time of a restore is reckoned: 100 and
            20 by default.
        spark
            Measure in tasks of a cluster; otherwise in ``threads`` of this process (one a core by default).

        Returns
        -------
        Statistics
            Tables of plain rows: ``operators``, ``states``, ``sizes`` (by state, key group and subtask; the bytes of all rows are together
            those of the files), ``largest``, ``distribution``, ``skew``, ``ages``, ``timers``, ``restore``. ``rows(table)`` gives records,
            ``to_arrow(table)`` Arrow.

        Raises
        ------
        OptionError
            An option that makes no sense.
        FormatError, DecodeError
            Damaged bytes. State that only statetool cannot read is counted as ``unread``.
        """
        return measured(self._inventory, **options)

    def diff(self, other: Savepoint | str, **options: Unpack[ComparisonOptions]) -> Comparison:
        """Compare with another snapshot, key by key; this one is ``before``.

        Backend, form, release, parallelism and max parallelism of the two may differ. Equal bytes are not decoded, and equal values
        with other bytes are equal. Operators belong together by uid.

        Parameters
        ----------
        other
            The snapshot ``after``, or its path: it is opened with the types and the ``rebase`` of this one.
        operators, states
            Names of those that are compared; by default all.
        keys
            Keys that are compared, as plain values (see :meth:`Operator.keyed_state`), of one operator.
        access_times
            Whether values with a time to live differ that were only accessed at another time; by default they do.
        threads
            Threads of this process, one a core by default; with a session, differences are counted in tasks.

        Returns
        -------
        Comparison
            ``structure``, what the snapshots say differently of states; ``summary()``, counts by state; ``frame()``, ``batches()`` and
            ``to_arrow()``, the differences; ``equal``.

        Raises
        ------
        UnknownNameError
            Neither has such an operator or state.
        OptionError, EncodeError
            Keys of no operator, or of another type; ``other`` is neither a savepoint nor a path.
        FormatError
            A damaged header. State that only statetool cannot read is named by :attr:`Comparison.unread`, and the two are not ``equal``.
        """
        return compared(self._inventory, self._opened(other), self._spark, **options)

    def _opened(self, other: Savepoint | str) -> Inventory:
        """Return another snapshot, opened as this one was where only its path is given."""
        match other:
            case Savepoint():
                return other.inventory
            case str():
                return Inventory(other, rebase=self._inventory.rebase, types=self._inventory.types)
        raise OptionError(f"{other!r} is neither a savepoint nor a path", hint="sp.diff(statetool.load(path))")

    def report(self, target: str, other: Savepoint | None = None, **options: Unpack[ReportOptions]) -> bool:
        """Write one HTML page of all answers about the snapshot, which loads and runs nothing; what cannot be answered is said in its place.

        Parameters
        ----------
        target
            A new file: a local path or any URI that fsspec can open.
        other
            A snapshot of the new job, against which it is checked (:func:`check`, with ``flink`` and ``backend``) and compared (:meth:`diff`).
        history
            A directory with checkpoints of the job, whose growth is shown.
        allow_unread
            Do not count state that cannot be read as a failure.

        Others as for :func:`verify` and :meth:`stats`. Returns whether all was answered and read, the snapshot and its sources are whole,
        and, if that was asked, a job would restore with nothing lost or changed.

        Raises
        ------
        OptionError, TargetExistsError, WriteFailedError
            An option that makes no sense; the file is there, or cannot be written.
        """
        from statetool.api.report import reported

        return reported(self._inventory, None if other is None else other.inventory, target, options).ok

    def register(self, prefix: str) -> list[str]:
        """Make temporary views ``<prefix>_<uid>_keyed_state``, ``..._timers`` and ``..._<state>`` for ``spark.sql``.

        Nothing is read before a query asks for it.

        Returns
        -------
        list of str
            Names of the views, in the order of operators and tables; characters that SQL names cannot have are underscores in
            them, and ``_2``, ``_3`` follow where a name is taken.

        Warns
        -----
        UserWarning
            Keyed or operator state of an operator cannot be listed, and has no views: says why.
        """
        from statetool.spark.views import register_views

        for row in self.metadata_rows("states"):
            if row.kind == "unread":
                warn(f"no views of the {row.scope} state of {row.operator!r}: {row.reason}", stacklevel=2)

        tables = [(o.name, t, o) for o in self.operators.values() for t in o.tables]
        return register_views(needed_session(self._spark), prefix, tables, local_bytes=self._local_bytes)


def register(spark: object) -> None:
    """Make the data sources ``flink-state`` and ``flink-state-metadata`` known to a Spark session (PySpark 4).

    Raises
    ------
    MissingDependencyError
        PySpark is older than 4, which has no Python data sources.
    """
    from statetool.spark.session import register as register_sources

    register_sources(spark)
