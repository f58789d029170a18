"""Files that tasks write themselves: Parquet by Arrow, Avro by ``fastavro``, because PySpark has no Avro package.

A task converts a split to files without sending rows to Spark's JVM, which takes several times as long per row as reading it. The driver
publishes them (:mod:`statetool.tables.export.files`). Small tables are written by the driver without tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from statetool.columns.storable import storable_schema
from statetool.io.threads import in_threads
from statetool.spark import private
from statetool.spark.frames import SparkTable
from statetool.spark.private import is_remote
from statetool.spark.schema import spark_schema
from statetool.spark.source.guard import read_checked
from statetool.spark.tasks import run_tasks
from statetool.tables.export.files import THREADS, FileStyle, Written, export_splits, parquet_style
from statetool.tables.splits import Split

#: Schemes that both this process and tasks can write to in the same way as they read, without configuration of Spark.
_SCHEMES: Final = ("file", "s3", "gs", "gcs", "abfs", "abfss", "az")
#: Parquet codecs by Spark's names.
_CODECS: Final = {
    "none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "brotli": "brotli", "lz4": "lz4", "lz4_raw": "lz4",
}  # fmt: skip
_CODEC: Final = "spark.sql.parquet.compression.codec"


def is_own_target(spark: Any, target: str) -> bool:
    """Return True if tasks can write to a target themselves: not if only Spark can access it, or if a Spark Connect server would write."""
    if is_remote(spark):
        return False
    scheme, separator, _ = target.partition("://")
    if not separator:
        default = private.default_file_system(spark)
        return default is not None and default.startswith("file:")
    return scheme in _SCHEMES


def parquet_codec(spark: Any) -> str | None:
    """Return the Parquet codec that a session asks for; ``None`` if Arrow does not have it."""
    return _CODECS.get(spark.conf.get(_CODEC, "snappy").lower())


def export_files(table: SparkTable, target: str, style: FileStyle, by: str | None) -> int:
    """Write a planned table by tasks, or by the driver if it is small; parameters, result and errors as for :func:`export_splits`."""

    def run(write: Callable[[Split], Written], splits: Sequence[Split]) -> Iterable[Written]:
        return in_threads(write, splits, THREADS) if table.is_small else run_tasks(table.spark, write, splits)

    read = partial(read_checked, row_bytes=None)
    return export_splits(table.scan.splits, table.scan.schema, target, style, by, run=run, read=read)


def spark_parquet_style(schema: pa.Schema, codec: str) -> FileStyle:
    """Return the style of Parquet files for a table without folders, with the metadata of Spark's files: types and calendar."""
    import pyspark

    described = {
        "org.apache.spark.version": pyspark.__version__,
        "org.apache.spark.sql.parquet.row.metadata": spark_schema(storable_schema(schema)).json(),
    }
    return parquet_style(codec, described)
