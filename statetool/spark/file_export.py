"""Files that tasks write themselves: Parquet by Arrow, Avro by ``fastavro``, because PySpark has no Avro package.

A task converts a split to files without sending rows to Spark's JVM, which takes several times as long per row as reading it. All files
are written below ``<target>/_temporary``. The driver moves the files of the successful attempts to the target, removes the rest and adds
``_SUCCESS`` last, so that a failure leaves no partial export that looks complete. Small tables are written by the driver without tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_numpy
from statetool.columns.python_values import as_python, number_of
from statetool.columns.storable import is_empty_struct, storable_schema, store_empty_structs
from statetool.columns.text_schemas import avro_schema
from statetool.columns.types import is_variant
from statetool.errors import MissingDependencyError, TargetExistsError
from statetool.io.files import file_system
from statetool.io.targets import writing
from statetool.io.threads import in_threads
from statetool.spark import private
from statetool.spark.frames import SparkTable
from statetool.spark.guard import read_checked
from statetool.spark.private import is_remote
from statetool.spark.schema import spark_schema
from statetool.spark.tasks import run_tasks
from statetool.tables.splits import Split

#: Schemes that both this process and tasks can write to in the same way as they read, without configuration of Spark.
_SCHEMES: Final = ("file", "s3", "gs", "gcs", "abfs", "abfss", "az")
#: Parquet codecs by Spark's names.
_CODECS: Final = {
    "none": "none", "uncompressed": "none", "snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "brotli": "brotli", "lz4": "lz4", "lz4_raw": "lz4",
}  # fmt: skip
_CODEC: Final = "spark.sql.parquet.compression.codec"
#: In-memory size at which a row group of a Parquet file is written.
_GROUP_BYTES: Final = 64 << 20
#: Number of files moved, and of small files written, concurrently: the storage may be remote.
_THREADS: Final = 8

Batches = Iterator[pa.RecordBatch]


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


def is_plain(schema: pa.Schema) -> bool:
    """Return True if Parquet has the types of all columns: Spark stores intervals, variants and similar types in its own way."""
    return all(is_empty_struct(field.type) or _is_plain(field.type) for field in schema)


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_null(kind) or pa.types.is_duration(kind) or is_variant(kind) or is_empty_struct(kind):
        return False
    return all(_is_plain(kind.field(i).type) for i in range(kind.num_fields))


def export_files(table: SparkTable, target: str, style: FileStyle, by: str | None) -> int:
    """Write a planned table as files to a directory that does not exist yet, and return the number of rows.

    Parameters
    ----------
    by
        A column whose values become folders (``key_group=7``) and are omitted from the files.

    Raises
    ------
    TargetExistsError
        The directory was created in the meantime.
    WriteFailedError
        The disk is full, or a permission is missing; nothing is left behind.
    StatetoolError
        Error raised in a task, with its location.
    """
    fs, root = file_system(target)
    staging = f"{root}/_temporary"
    write = partial(_write_split, fs.unstrip_protocol(staging), style, by)
    with writing(target):
        try:
            fs.makedirs(root, exist_ok=False)
        except FileExistsError:
            raise TargetExistsError(f"{target} already exists", hint="choose a new directory") from None
    try:
        if table.is_small:
            written = list(in_threads(write, table.scan.splits, _THREADS))
        else:
            written = run_tasks(table.spark, write, table.scan.splits)
        with writing(target):
            names = [name for of_split, _ in written for name in of_split]
            if not names and by is None:  # readers need a schema
                empty = pa.RecordBatch.from_pylist([], schema=table.scan.schema)
                names = [_write_file(fs, staging, "", style, iter([empty]))]
            for folder in sorted({name.rpartition("/")[0] for name in names}):
                fs.makedirs(f"{root}/{folder}", exist_ok=True)
            for _ in in_threads(lambda name: fs.mv(f"{staging}/{name}", f"{root}/{name}"), names, _THREADS):
                pass
            _remove(fs, staging)
            fs.pipe_file(f"{root}/_SUCCESS", b"")
    except BaseException:
        _remove(fs, root)
        raise
    return sum(rows for _, rows in written)


def _remove(fs: Any, folder: str) -> None:
    """Remove a folder and its contents; in an object store it disappears with its last file."""
    with suppress(FileNotFoundError):
        fs.rm(folder, recursive=True)


def _write_split(staging: str, style: FileStyle, by: str | None, split: Split) -> tuple[list[str], int]:
    """Write the rows of a split; return the names of files below ``staging``, and the number of rows."""
    fs, root = file_system(staging)
    names = []
    rows = 0

    def count_batches() -> Batches:
        nonlocal rows
        for batch in read_checked(split, row_bytes=None):
            rows += batch.num_rows
            yield batch

    # Rows of a key group are adjacent, so that one file is open at a time; otherwise there would only be more files.
    with writing(staging):
        for value, parts in groupby(_parts(count_batches(), by), key=lambda part: part[0]):
            folder = "" if by is None else f"{by}={value}/"
            names.append(_write_file(fs, root, folder, style, (batch for _, batch in parts)))
    return names, rows


def _parts(batches: Batches, by: str | None) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Yield batches; with ``by``, split where its value changes, together with that value and without the column."""
    for batch in batches:
        if by is None:
            yield None, batch
            continue
        place = batch.schema.get_field_index(by)
        values = as_numpy(batch.column(place))
        left = pa.RecordBatch.from_arrays(
            [c for i, c in enumerate(batch.columns) if i != place], schema=batch.schema.remove(place)
        )
        cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
        for start, stop in pairwise(cuts):
            if start < stop:
                yield int(values[start]), left.slice(start, stop - start)


def _write_file(fs: Any, root: str, folder: str, style: FileStyle, batches: Batches) -> str:
    """Write a file with a unique name and return the name."""
    name = f"{folder}part-{uuid.uuid4().hex}.{style.suffix}"
    fs.makedirs(f"{root}/{folder}", exist_ok=True)
    with fs.open(f"{root}/{name}", "wb") as out:
        style.write(out, batches)
    return name


@dataclass(frozen=True, slots=True)
class FileStyle:
    """A file format: the file name suffix, and the function that writes batches (at least one) to an open file; picklable."""

    suffix: str
    write: Callable[[Any, Batches], None]


def avro_style(name: str) -> FileStyle:
    """Return the style of Avro files with this record name."""
    return FileStyle("avro", partial(_write_avro, name))


def parquet_style(schema: pa.Schema, codec: str) -> FileStyle:
    """Return the style of Parquet files for a table without folders, with the metadata of Spark's files: types and calendar."""
    import pyspark

    described = {
        "org.apache.spark.version": pyspark.__version__,
        "org.apache.spark.sql.parquet.row.metadata": spark_schema(storable_schema(schema)).json(),
    }
    return FileStyle("parquet", partial(_write_parquet, codec, described))


def _write_parquet(codec: str, described: dict[str, str], out: Any, batches: Batches) -> None:
    import pyarrow.parquet as pq

    first = store_empty_structs(next(batches))
    schema = first.schema.with_metadata(described)
    with pq.ParquetWriter(out, schema, compression=codec) as writer:
        for group in _groups(chain([first], map(store_empty_structs, batches))):
            table = pa.Table.from_batches(group).replace_schema_metadata(described)
            writer.write_table(table, row_group_size=max(1, table.num_rows))


def _groups(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
    """Combine batches into row groups."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _write_avro(name: str, out: Any, batches: Batches) -> None:
    try:
        import fastavro
    except ImportError as error:
        hint = "pip install 'statetool[avro]' for the Python of Spark's workers"
        raise MissingDependencyError(f"exporting Avro needs fastavro: {error}", hint=hint) from error

    first = next(batches)
    schema = avro_schema(first.schema, name=name)
    fastavro.writer(out, fastavro.parse_schema(schema), _records(schema, chain([first], batches)), codec="deflate")


def _records(schema: dict[str, Any], batches: Batches) -> Iterator[dict[str, Any]]:
    names = [field["name"] for field in schema["fields"]]
    for batch in batches:
        columns = [[_value(v, column.type) for v in as_python(column, number_of)] for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield dict(zip(names, row, strict=True))


def _value(value: Any, kind: pa.DataType) -> Any:
    """Convert a value of ``to_pylist`` to the form of the Avro schema (maps are lists of pairs there); times are already numbers."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        if pa.types.is_string(kind.key_type):
            return {k: _value(v, kind.item_type) for k, v in value}
        return [{"key": _value(k, kind.key_type), "value": _value(v, kind.item_type)} for k, v in value]
    if pa.types.is_list(kind):
        return [_value(v, kind.value_type) for v in value]
    if pa.types.is_struct(kind):
        names = avro_schema(pa.schema(list(kind)), name="row")["fields"]
        return {n["name"]: _value(value[f.name], f.type) for n, f in zip(names, kind, strict=True)}
    return value
