"""Export of a snapshot table with Spark, to files or to a lakehouse table.

Each task reads one split and writes one file, or one per key group if key groups are folders. Tasks write Parquet and Avro themselves
(:mod:`statetool.spark.write.file_export`). Everything else is passed to Spark as rows, and Spark's committer publishes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from statetool.columns.storable import is_plain
from statetool.errors import OptionError, TargetExistsError
from statetool.io.files import is_local
from statetool.spark.lakes import lake_error
from statetool.spark.write.file_export import export_files, is_own_target, parquet_codec, spark_parquet_style
from statetool.spark.write.targets import spark_target
from statetool.tables.export.directories import CHECKPOINT, export_place, new_directory
from statetool.tables.export.files import KEY_GROUP, FileStyle, avro_style, csv_style
from statetool.tables.export.files import STYLES as _FILES

if TYPE_CHECKING:
    from statetool.spark.frames import SparkTable
    from statetool.tables.request import ScanRequest

#: Formats that Spark can write, with Spark's names; Avro needs an additional package.
_OF_SPARK: Final = {"parquet": "parquet", "jsonl": "json"}
#: Table formats, which commit additions atomically, with Spark's names.
_TABLES: Final = {"delta": "delta", "iceberg": "iceberg"}
STYLES: Final = (*_FILES, *_TABLES)


class SparkPlanner(Protocol):
    """Plans tables of an operator for tasks of a session."""

    def plan_on_spark(self, request: ScanRequest) -> SparkTable:
        """Plan the request."""
        ...


def export_table(
    operator: SparkPlanner,
    request: ScanRequest,
    target: str,
    *,
    style: str = "parquet",
    by_key_group: bool = False,
    append_as: int | None = None,
) -> int:
    """Write a table to a new directory, or to a table of the session, and return the number of rows.

    Parameters
    ----------
    operator
        An operator (:class:`statetool.Operator`) loaded with a Spark session.
    request
        The data to export, and the options for showing values.
    target
        A directory; for Iceberg a table name.
    style
        ``parquet``, ``avro``, ``csv`` or ``jsonl``; ``delta`` or ``iceberg`` if the session has them. Except in Avro, keys without fields are
        written as the text ``{}``, because Spark cannot write them otherwise.
    by_key_group
        Partition by the column ``key_group``, which names the folders of files.
    append_as
        The checkpoint's id: the rows are added to those of other checkpoints, with the id in the column ``checkpoint_id``. For files, each
        checkpoint is a separate folder ``checkpoint_id=<id>`` below the target, written like a new directory.

    Raises
    ------
    TargetExistsError
        The target exists; with ``append_as``, it already has rows of this checkpoint.
    OptionError
        The table already has a column of that name, or has no key groups.
    MissingDependencyError
        Spark has no file system for the target, or lacks the format.
    StatetoolError
        Error raised in a task, with its location.
    """
    if by_key_group:
        request = replace(request, key_group=True)
    table = operator.plan_on_spark(request)
    if append_as is not None and CHECKPOINT in table.scan.schema.names:
        raise OptionError(f"the table already has a column {CHECKPOINT}", hint="export it without --append")
    if style in _TABLES:
        frame = _storable(table.frame())
        return _write_table(frame, target, _TABLES[style], append_as, by_key_group=by_key_group)
    place = export_place(table.scan.schema, target, append_as)
    by = KEY_GROUP if by_key_group else None
    own_style = _own_style(table, place, style, by, request.table)
    if own_style is not None:
        return export_files(table, place, own_style, by)
    counted, count = _observe_rows(_storable(table.frame()))
    # Text of times is in UTC, as files of tasks have it, and not in the time zone of the session.
    writer = counted.write.format(_OF_SPARK[style]).option("timeZone", "UTC")
    writer = writer.partitionBy(*[KEY_GROUP] * by_key_group)
    if is_own_target(table.spark, place) and is_local(place):
        with new_directory(place) as written:
            writer.mode("error").save(f"file://{written}")
    else:
        writer.mode("error").save(spark_target(table.spark, place))
    return count()


def _own_style(table: SparkTable, place: str, style: str, by: str | None, name: str) -> FileStyle | None:
    """Return the style in which tasks write files themselves; ``None`` if Spark writes them."""
    if style in ("avro", "csv"):
        return avro_style(name) if style == "avro" else csv_style()
    if style != "parquet" or not is_own_target(table.spark, place):
        return None
    codec = parquet_codec(table.spark)
    schema = pa.schema([field for field in table.scan.schema if field.name != by])
    return spark_parquet_style(schema, codec) if codec is not None and is_plain(schema) else None


def _write_table(frame: Any, target: str, provider: str, checkpoint: int | None, *, by_key_group: bool) -> int:
    """Write to a lakehouse table in one transaction, and return the number of rows."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    place = target if _is_name(target) else spark_target(spark, target)
    partitions = [KEY_GROUP] * by_key_group
    if checkpoint is not None:
        _refuse_twice(spark, place, provider, checkpoint)
        frame = frame.withColumn(CHECKPOINT, f.lit(checkpoint).cast("bigint"))
        partitions = [CHECKPOINT, *partitions]
    writer = frame.write.format(provider).mode("error" if checkpoint is None else "append").partitionBy(*partitions)
    try:
        writer.saveAsTable(place) if _is_name(place) else writer.save(place)
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        if (missing := lake_error(error, provider)) is not None:
            raise missing from error
        if re.search("ALREADY_EXISTS|PATH_EXISTS|already exists", text):
            raise TargetExistsError(
                f"{target} already exists", hint="choose a new table, or --append to that of other checkpoints"
            ) from error
        raise
    # Lakehouse catalogs create a table with a command that does not trigger an observation. They count rows without reading data.
    return int(_rows_of(spark, place, provider, checkpoint).count())


def _is_name(target: str) -> bool:
    """Return True if a target is a table name rather than a path; Delta takes both."""
    return "/" not in target


def _rows_of(spark: Any, place: str, provider: str, checkpoint: int | None) -> Any:
    """Return the rows of a lakehouse table; if it has ``checkpoint_id``, those of one checkpoint."""
    from pyspark.sql import functions as f

    table = spark.table(place) if _is_name(place) else spark.read.format(provider).load(place)
    return table if checkpoint is None else table.filter(f.col(CHECKPOINT) == checkpoint)


def _refuse_twice(spark: Any, place: str, provider: str, checkpoint: int) -> None:
    """Raise an error if a table already has rows of a checkpoint: adding them again would duplicate them."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        rows = _rows_of(spark, place, provider, checkpoint)
        rows.schema  # noqa: B018  # a client of Spark Connect has asked nothing before
    except (PySparkException, Py4JJavaError) as error:
        if re.search("NOT_FOUND|NOT_EXIST|UNRESOLVED_COLUMN", str(error)):
            return  # no such table or column yet, or no such format, which the write reports
        raise
    if not rows.isEmpty():
        raise TargetExistsError(f"{place} has rows of checkpoint {checkpoint}", hint="delete these rows first")


def _storable(frame: Any) -> Any:
    """Return the frame with structs without fields as text, because Spark cannot write them otherwise.

    Keys of SQL operators that have one group for all rows are such structs.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    types = {field.name: field.dataType for field in frame.schema.fields}
    empty = [name for name, kind in types.items() if isinstance(kind, StructType) and not kind.fields]
    return frame.withColumns({name: f.lit("{}") for name in empty}) if empty else frame


def _observe_rows(frame: Any) -> tuple[Any, Callable[[], int]]:
    """Return the frame with a counter of the rows that pass through, so that nothing is read twice."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation("export")
    return frame.observe(observation, f.count(f.lit(1)).alias("rows")), lambda: int(observation.get["rows"])
