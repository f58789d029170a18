"""The data sources ``flink-state`` and ``flink-state-metadata`` (PySpark 4).

Options of ``flink-state``, in any case, with or without underscores:

=========================================  ==================================================================================
``path``                                   the snapshot (the argument of ``load``), or a directory of checkpoints:
                                           :mod:`statetool.spark.source.streaming`
``clusters``                               file with credentials of Flink clusters (:mod:`statetool.operations.cluster.clusters`), for the URL of a job;
                                           a file of the driver's machine
``operatorUid`` or ``operatorId``          the operator: its uid, operator id, unique name, or unique prefix of the id
``table``                                  ``keyed_state`` (default), ``timers``, or a state's name (its long form); for a
                                           state also ``stateVarName``, the option of Spark's state data source
``readRegisteredTimers``                   ``true``: the table ``timers``, as in Spark's state data source
``states``                                 JSON list or comma-separated: columns of ``keyed_state``; others are skipped
                                           undecoded (Spark does not pass the columns of a query to Python data sources)
``keys``                                   JSON list of keys: ``[1, "a", {"tuple": ["b", 2]}, {"bytes": "00ff"}, {"decimal": "1.50"}]``;
                                           only their key groups are read
``ttl``, ``ttl_ms``, ``now_ms``,           form of values (:class:`statetool.tables.request.ScanOptions`)
``nanos``, ``decimals``, ``presence``, ``on_error``
``columns``                                JSON object ``{path: [names]}`` or ``{path: "ROW<...>"}``: names, or names and types, for
                                           the fields of rows (``ReadOptions.columns``)
``columnsFromPlan``                        the SQL job's compiled plan (path or URI), which names fields of rows; ``columns`` takes precedence
``key_group``, ``subtask``                 ``true`` adds the column
``split_bytes``, ``memory_bytes``          size and memory of tasks (:class:`statetool.tables.request.ScanOptions`)
``uids``                                   JSON list or comma-separated: uids for ids that the snapshot does not name
``rebase``                                 JSON object ``{old prefix: new prefix}`` for files that were moved
``declarations``                           JSON list or comma-separated: Avro schema files (or folders) of classes that the
                                           snapshot does not describe
``jars``                                   JSON list or comma-separated: the job's jars, which have the classes that the snapshot does
                                           not describe
``python``, ``unsafePickle``               JSON object of state names and PyFlink types (``{"count": "LONG"}``); ``true`` loads pickles
``rowBytes``                               maximum row size, in Arrow bytes, that a task passes to its JVM: 128 MiB by default, an eighth
                                           of Spark's default heap; a larger row is an error
``prune``                                  ``true`` prunes by filters on ``key``; use it only for a DataFrame with a single query
``kryo``                                   ``2`` or ``5``: Kryo's version, if the metadata version does not determine it
=========================================  ==================================================================================

With ``prune``, ``=``, ``<=>`` and ``IN`` on ``key`` (or on every field of a tuple key) read only the key groups of those keys. Spark does
not push ``OR``. Spark (4.3) caches the plan that it made with the filters of one query, and reuses it for other queries on the same
DataFrame. So without ``prune`` nothing is pruned: filters are correct and read everything. Planning runs in a Python process of the
driver, ``read`` in tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from statetool.errors import OptionError, UnsupportedError, suggest
from statetool.snapshot.metadata_tables import METADATA_TABLES, metadata_rows
from statetool.spark.schema import spark_schema
from statetool.spark.source.guard import read_checked
from statetool.spark.source.options import (
    METADATA_OPTIONS,
    SnapshotOptions,
    SourceOptions,
    normalize_options,
    resolve_job,
)
from statetool.spark.source.pruning import allowed_keys
from statetool.spark.source.streaming import CheckpointsReader, CheckpointStream, CheckpointTable, is_root
from statetool.spark.source.table_source import parse_source
from statetool.tables.keys.text import Key
from statetool.tables.metadata import metadata_schema, metadata_table
from statetool.tables.scan import scan_table
from statetool.tables.splits import Split

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class SplitPartition(InputPartition):
    """One split."""

    def __init__(self, split: Split) -> None:
        super().__init__(0)
        self.split = split


class FlinkStateSource(DataSource):
    """``spark.read.format("flink-state")``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(resolve_job(options))

    @classmethod
    def name(cls) -> str:
        return "flink-state"

    def schema(self) -> StructType:
        schema: StructType
        if is_root(self.options):
            schema = spark_schema(CheckpointTable.of(self.options).schema)
            return schema
        options = SourceOptions(self.options)
        schema = spark_schema(scan_table(options.operator, options.request).schema)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        if is_root(self.options):
            return CheckpointsReader(CheckpointTable.of(self.options))
        return self.snapshot_reader()

    def snapshot_reader(self) -> DataSourceReader:
        """Return the reader of one snapshot."""
        return FlinkStateReader(SourceOptions(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        raise UnsupportedError(
            "Spark cannot write with format flink-state: it does not bring rows to the tasks of their key groups for a data source in Python",
            hint="write with statetool.write(df, path, uid=...), or with statetool.SavepointWriter",
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if not is_root(self.options):
            raise OptionError(
                "a stream needs a directory of checkpoints",
                hint="load the directory of the job, add the option mode to the URL of a job, or read this snapshot with spark.read",
            )
        return CheckpointStream(CheckpointTable.of(self.options))


class PlainFlinkStateSource(FlinkStateSource):
    """``flink-state`` without pruning: Spark rejects sources that accept filters in sessions with pushdown disabled."""

    def snapshot_reader(self) -> DataSourceReader:
        return PlainReader(SourceOptions(self.options))


class PlainReader(DataSourceReader):
    """Reader that plans on the driver and reads splits in tasks."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.keys: list[Key] | None = None

    def partitions(self) -> Sequence[InputPartition]:
        scan = scan_table(self.options.operator, self.options.request_for(self.keys))
        return [SplitPartition(s) for s in scan.splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from read_checked(partition.split, row_bytes=self.options.row_bytes)


class FlinkStateReader(PlainReader):
    """Reader of only the key groups of keys allowed by filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Prune by equalities on the key, if requested; Spark evaluates every filter again."""
        key = self.options.key_serializer if self.options.prune and self.options.request.keys is None else None
        if key is not None:
            self.keys = allowed_keys(filters, key)
        return filters


class FlinkStateMetadataSource(DataSource):
    """``spark.read.format("flink-state-metadata")``.

    Options: ``path``; ``table`` (operators, states by default, files, key_groups); ``uids``, ``rebase``.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(resolve_job(options))

    @classmethod
    def name(cls) -> str:
        return "flink-state-metadata"

    @property
    def _known_options(self) -> dict[str, str]:
        return normalize_options(self.options, METADATA_OPTIONS)

    @property
    def _table(self) -> str:
        table = self._known_options.get("table", "states")
        if table not in METADATA_TABLES:
            raise OptionError(f"no metadata table {table!r}", hint=suggest(table, METADATA_TABLES))
        return table

    def schema(self) -> StructType:
        schema: StructType = spark_schema(metadata_schema(self._table))
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return MetadataReader(SnapshotOptions.parse(self._known_options), self._table)


class CatalogTableSource(DataSource):
    """Data source of ``CREATE TABLE ... USING flink-state-table``, which :mod:`statetool.spark.source.catalog` runs."""

    @classmethod
    def name(cls) -> str:
        return "flink-state-table"

    def schema(self) -> StructType:
        raise OptionError(
            "flink-state-table has no schema of its own",
            hint="read a snapshot with format flink-state, or register a catalog",
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        of_metadata, options = parse_source(schema)
        if of_metadata:
            return MetadataReader(SnapshotOptions.parse(options), options["table"])
        return PlainReader(SourceOptions(options))


class MetadataReader(DataSourceReader):
    """Reader of metadata in one task."""

    def __init__(self, snapshot: SnapshotOptions, table: str) -> None:
        self.snapshot = snapshot
        self.table = table

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = metadata_rows(self.table, self.snapshot.open().operators.values())
        yield from metadata_table(self.table, rows).to_batches()
