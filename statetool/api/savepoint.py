"""An open savepoint or checkpoint.

With a Spark session, tables are Spark DataFrames. Without one, ``to_arrow`` and the ``..._batches`` methods return the same rows in this
process, without a JVM.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from statetool.api.comparison import Comparison
from statetool.api.execution import Execution
from statetool.api.operator import Operator
from statetool.api.operator_tables import Access
from statetool.errors import OptionError, UnknownNameError, warn
from statetool.operations.cluster.paths import resolve_path
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import metadata_rows
from statetool.snapshot.notebook import HtmlMapping
from statetool.snapshot.table_info import TableInfo, table_infos
from statetool.tables.keys.text import Key
from statetool.types.options import name_list

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from statetool.analysis.statistics.estimate import Estimate
    from statetool.analysis.statistics.statistics import Statistics
    from statetool.api.report import Report
    from statetool.tables.rows import Rows


class Savepoint:
    """An open snapshot, see :func:`statetool.load`. ``sp["uid"]`` is an operator, and iteration yields uids.

    Operators without a uid are listed by operator id. A unique name or a unique prefix of the id (at least 4 hex digits) selects one too.
    """

    def __init__(self, inventory: Inventory, access: Access) -> None:
        self._inventory = inventory
        self._access = access

    @property
    def inventory(self) -> Inventory:
        """The contents of the snapshot, read from its metadata."""
        return self._inventory

    @property
    def execution(self) -> Execution:
        """Where DataFrame methods run: on the session given to :func:`load`, or in this process."""
        return self._access.execution

    @property
    def spark(self) -> SparkSession | None:
        """The session given to :func:`load`."""
        return self.execution.spark

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
    def operators(self) -> HtmlMapping[Operator]:
        """Operators by uid, or by hex id if the uid is not known."""
        return HtmlMapping({name: self[name] for name in self._inventory.operators}, self._repr_html_)

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
                hint="sp['uid'] returns an operator by uid, name or id prefix, and sp['uid'].table(name) one of its tables",
            )
        return Operator(self._inventory, self._inventory.operator(name), self._access)

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
        return Savepoint(self._inventory.with_uids(uids), self._access)

    def with_names(self, names: Mapping[str, str], possible: Mapping[str, tuple[str, ...]] | None = None) -> Savepoint:
        """Return the savepoint with names for operators whose name it does not store, by operator id.

        Parameters
        ----------
        possible
            The names that other operators may have, for messages.
        """
        return Savepoint(self._inventory.with_names(names, possible), self._access)

    def with_session(self, spark: SparkSession) -> Savepoint:
        """Return the savepoint with a session for its DataFrame methods.

        Unlike :func:`load`, this does not register the data sources. Call :func:`statetool.register` to do so.
        """
        execution = Execution(spark)
        execution.prepare_session(sources=False)
        return self.with_execution(execution)

    def with_execution(self, execution: Execution) -> Savepoint:
        """Return the savepoint with another execution, whose session, if any, is not prepared."""
        return Savepoint(self._inventory, replace(self._access, execution=execution))

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
        return self.execution.to_frame(self.to_arrow(table))

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
        from statetool.connectors.edits.positions import positions_in
        from statetool.connectors.rows import SourceRow

        rules = BacklogRules(ends=None if ends is None else positions_in(ends), behind=behind, last_source=last_source)
        return self.execution.records_to_frame(SourceRow, source_rows(self._inventory.operators.values(), rules))

    def source_checks(self) -> DataFrame | pa.Table:
        """Return the inconsistencies between readers and enumerators: :class:`statetool.connectors.checks.SourceCheck`."""
        return self._connector_table("source_checks")

    def table_schemas(self) -> DataFrame | pa.Table:
        """Return the schemas of tables in CDC pipelines: :class:`statetool.connectors.layouts.pipeline_schemas.TableSchemaRow`."""
        from statetool.connectors.layouts.pipeline_schemas import TableSchemaRow, table_schema_rows

        rows = table_schema_rows(self._inventory.operators.values())
        return self.execution.records_to_frame(TableSchemaRow, rows)

    def sinks(self) -> DataFrame | pa.Table:
        """Return every operator of a sink, with its amount of uncommitted data: :class:`statetool.connectors.rows.SinkRow`."""
        return self._connector_table("sinks")

    def commit_ids(self) -> DataFrame | pa.Table:
        """Return the sinks that commit by checkpoint id: :class:`statetool.connectors.commit_ids.CommitIdRow`."""
        from statetool.connectors.commit_ids import CommitIdRow, commit_id_rows

        rows = commit_id_rows(self._inventory.operators.values(), self._inventory.metadata.checkpoint_id)
        return self.execution.records_to_frame(CommitIdRow, rows)

    def table_commits(
        self,
        *,
        paimon: str | None = None,
        iceberg: str | None = None,
        delta: str | None = None,
        kafka: str | None = None,
        kafka_settings: Mapping[str, Any] | None = None,
        jdbc: str | None = None,
    ) -> DataFrame | pa.Table:
        """Compare uncommitted transactions with a table, Kafka or a database: :class:`statetool.connectors.outside.table_commits.TableCommitRow`.

        Give one of ``paimon``, ``iceberg``, ``delta``, ``kafka`` and ``jdbc``. Without them, files of sinks are looked for where they were
        written.

        Parameters
        ----------
        paimon, iceberg, delta
            Folder of the table (Iceberg: or its metadata file).
        kafka
            Brokers of a running Kafka: ``host:port``, separated by commas.
        kafka_settings
            More settings of ``kafka-python``'s admin client, such as ``security_protocol``.
        jdbc
            URL of the PostgreSQL, MySQL or MariaDB of JDBC's exactly-once sink: ``postgresql://user@host:port/database``, also in the form of
            the JDBC driver. The password may be in ``PGPASSWORD`` or ``MYSQL_PWD``.

        Raises
        ------
        OptionError
            Several are given, or none and no sink writes files; the folder is not such a table, the URL is not valid, or the snapshot has no such committer.
        FormatError
            Metadata of the table is damaged.
        ConnectionFailedError
            Kafka or the database did not answer in time, or refused.
        MissingDependencyError
            ``kafka-python`` or the driver of the database is not installed.
        """
        from statetool.connectors.outside.commit_checks import commit_check_rows
        from statetool.connectors.outside.table_commits import TableCommitRow

        rows = commit_check_rows(
            self._inventory.operators.values(),
            paimon=paimon,
            iceberg=iceberg,
            delta=delta,
            kafka=kafka,
            kafka_settings=kafka_settings,
            jdbc=jdbc,
        )
        return self.execution.records_to_frame(TableCommitRow, rows)

    def connector_rows(self, table: str) -> list[Any]:
        """Return the rows of ``sources``, ``source_splits``, ``enumerators``, ``source_checks``, ``sinks`` or ``transactions``.

        Raises
        ------
        UnknownNameError
            The table does not exist.
        """
        from statetool.connectors.tables import connector_rows

        return connector_rows(table, self._inventory.operators.values())

    def _connector_table(self, table: str) -> DataFrame | pa.Table:
        from statetool.connectors.tables import CONNECTOR_TABLES

        return self.execution.records_to_frame(CONNECTOR_TABLES[table].record, self.connector_rows(table))

    def stats(
        self,
        *,
        operators: Sequence[str] | None = None,
        largest: int = 10,
        parallelism: int | None = None,
        ttl_ms: int | None = None,
        now_ms: int | None = None,
        bandwidth_mib: float = 100.0,
        latency_ms: float = 20.0,
        spark: SparkSession | None = None,
        threads: int | None = None,
    ) -> Statistics:
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
        spark, threads
            Measure in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.

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
        from statetool.analysis.statistics.statistics import StatisticsRequest, statistics_of

        request = StatisticsRequest.of(
            largest=largest,
            parallelism=parallelism,
            ttl_ms=ttl_ms,
            now_ms=now_ms,
            bandwidth_mib=bandwidth_mib,
            latency_ms=latency_ms,
        )
        names = list(self) if operators is None else name_list("operators", operators)
        return statistics_of([self._inventory.operator(n) for n in names], request, Execution(spark, threads).map)

    def estimate_stats(
        self,
        *,
        operators: Sequence[str] | None = None,
        spark: SparkSession | None = None,
        threads: int | None = None,
    ) -> Estimate:
        """Estimate entries and bytes without reading entries: with one small request per file, at most.

        Sources are the metadata, headers, and the manifests and table properties of RocksDB. See :meth:`stats` for exact numbers.

        Parameters
        ----------
        operators
            Names of the operators to estimate; by default all.
        spark, threads
            Read in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.

        Returns
        -------
        Estimate
            Tables of plain rows: ``operators``, ``states`` and ``key_groups``. Each number of entries has a lower and an upper bound. Unknown
            numbers are ``None``: streams of canonical savepoints and of the heap backend do not store numbers of entries.

        Raises
        ------
        OptionError
            An option is not valid.
        FormatError
            Bytes are damaged.
        """
        from statetool.analysis.statistics.estimate import estimate_of

        names = list(self) if operators is None else name_list("operators", operators)
        return estimate_of([self._inventory.operator(n) for n in names], Execution(spark, threads).map)

    def diff(
        self,
        other: Savepoint | str,
        *,
        operators: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        keys: Sequence[Key] | None = None,
        access_times: bool = True,
        match: str | Mapping[str, str] | None = None,
        threads: int | None = None,
    ) -> Comparison:
        """Compare with another snapshot, key by key. This snapshot is ``before``.

        Backend, format, release, parallelism and max parallelism of the two may differ. Equal bytes are not decoded. Equal values with
        different bytes count as equal. Operators are matched by uid, or by ``match``.

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
        match
            Which operators of ``other`` have other ids: ``"auto"`` matches those with evidence that fits no other operator
            (:func:`statetool.match`), or pass the file of ``statetool match``, or ``{old uid or id: new uid or id}``.
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
        from statetool.analysis.comparison.plan import ComparisonRequest, plan_comparison
        from statetool.saving.uids import with_ids_of

        request = ComparisonRequest(
            operators=None if operators is None else name_list("operators", operators),
            states=None if states is None else name_list("states", states),
            keys=None if keys is None else tuple(keys),
            access_times=access_times,
        )
        execution = Execution(self.spark, threads)
        after = self._open_other(other)
        before = with_ids_of(self._inventory, after, match)
        return Comparison(plan_comparison(before, after, request), execution, (self.path, after.path))

    def _open_other(self, other: Savepoint | str) -> Inventory:
        """Return the inventory of another snapshot. A path is opened with the same types and ``rebase`` as this snapshot."""
        match other:
            case Savepoint():
                return other.inventory
            case str():
                mine = self._inventory
                path = resolve_path(other, mine.rebase)
                return Inventory(path, rebase=mine.rebase, types=mine.types, columns_from_plan=mine.columns_from_plan)
        raise OptionError(f"{other!r} is neither a savepoint nor a path", hint="pass statetool.load(path) or the path")

    def report(
        self,
        target: str | None = None,
        other: Savepoint | str | None = None,
        *,
        history: str | None = None,
        deep: bool = False,
        allow_unread: bool = False,
        flink_version: str | None = None,
        backend: Literal["heap", "rocksdb", "forst"] | None = None,
        other_jars: Iterable[str | os.PathLike[str]] | None = None,
        largest: int = 10,
        parallelism: int | None = None,
        ttl_ms: int | None = None,
        now_ms: int | None = None,
        spark: SparkSession | None = None,
        threads: int | None = None,
    ) -> Report:
        """Collect all findings about the snapshot. Notebooks show them; with ``target`` they are also written to one HTML page.

        The page loads no resources and runs no scripts. A failed analysis is a finding with its error.

        Parameters
        ----------
        target
            A new file: a local path or any URI that fsspec can open.
        other
            A snapshot of the new job, or its path, to compare this one with (:meth:`diff`).
        history
            A directory with checkpoints of the job, for showing their growth.
        deep
            Also decode every value to its last byte, and compare checksums.
        allow_unread
            Do not count unreadable state as a failure.
        flink_version
            The Flink release that restores, such as ``"2.3"``. Defaults to the releases that can have written ``other``. Without ``other``,
            only support by this release is checked.
        backend
            The state backend of the new job. Defaults to the backend of ``other``.
        other_jars
            The jars of the new job. Defaults to those with which ``other`` was opened.
        largest
            Number of largest keys, values, lists and maps to return, by default 10.
        parallelism
            Also show the skew over subtasks, and the bytes read by a restore, for this parallelism.
        ttl_ms
            A TTL in milliseconds, for counting expired values among those with a TTL.
        now_ms
            Reference time for ages and timers in epoch milliseconds. Defaults to the current time.
        spark, threads
            Measure in tasks of a cluster. Without a session, this many threads of this process are used, by default one per core.

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
        from statetool.api.report import Report, collect_report

        facts = collect_report(
            self._inventory,
            None if other is None else self._open_other(other),
            target,
            Execution(spark, threads),
            history=history,
            deep=deep,
            allow_unread=allow_unread,
            flink_version=flink_version,
            backend=backend,
            other_jars=other_jars,
            largest=largest,
            parallelism=parallelism,
            ttl_ms=ttl_ms,
            now_ms=now_ms,
        )
        return Report(facts)

    def register(self, prefix: str) -> list[str]:
        """Create temporary views ``<prefix>_<operator>_keyed_state``, ``..._timers`` and ``..._<state>`` for ``spark.sql``.

        ``<operator>`` is the uid. Without a known uid, it is the name, or the operator id if the name is unknown or not unique. Data is read only when a query needs it.

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

        tables = [(o.name, t) for o in self.operators.values() for t in o.tables]
        spark = self.execution.require_session()
        return register_views(spark, prefix, self._inventory, tables, local_bytes=self._access.driver_read_limit)
