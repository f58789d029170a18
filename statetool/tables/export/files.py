"""Files of an exported table: one or more per split, published together (:mod:`statetool.tables.export.directories`).

Files are written below ``<target>/_temporary``, by threads of this process or by tasks. Then the files of the successful attempts are moved
to the target, ``_SUCCESS`` is added, and the rest is removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_numpy
from statetool.columns.python_values import as_python, number_of
from statetool.columns.storable import is_plain, store_empty_structs
from statetool.columns.text_schemas import avro_schema
from statetool.entries.ahead import in_threads_ahead
from statetool.errors import MissingDependencyError, OptionError
from statetool.io.files import file_system, is_local
from statetool.io.targets import make_folders, writing
from statetool.io.threads import in_threads
from statetool.tables.export.directories import (
    STAGING,
    export_place,
    marked,
    new_directory,
    remove_folder,
    target_exists,
)
from statetool.tables.export.result_files import csv_header, csv_rows, json_lines, write_lines
from statetool.tables.read import read_split
from statetool.tables.scan import TableScan
from statetool.tables.splits import Split

#: Formats of files.
STYLES: Final = ("parquet", "avro", "csv", "jsonl")
#: A column that an export adds.
KEY_GROUP: Final = "key_group"
#: Dates and times are in the calendar of Spark 3 and later. Without this entry, Spark assumes that of older releases.
_SPARK_CALENDAR: Final = {"org.apache.spark.version": "3.5.0"}
#: In-memory size at which a row group of a Parquet file is written.
_GROUP_BYTES: Final = 64 << 20
#: Number of files moved, and of small files written, concurrently: the storage may be remote.
THREADS: Final = 8

Batches = Iterator[pa.RecordBatch]
#: Files below the staging directory, and the number of their rows.
Written: TypeAlias = tuple[list[str], int]


def export_splits(
    splits: Sequence[Split],
    schema: pa.Schema,
    target: str,
    style: FileStyle,
    by: str | None,
    *,
    run: Callable[[Callable[[Split], Written], Sequence[Split]], Iterable[Written]],
    read: Callable[[Split], Batches] = read_split,
) -> int:
    """Write a planned table as files to a directory that does not exist yet, and return the number of rows.

    Parameters
    ----------
    by
        A column whose values become folders (``key_group=7``) and are omitted from the files.
    run
        Calls a function for each split, in threads or in tasks.
    read
        Reads a split.

    Raises
    ------
    TargetExistsError
        The directory was created in the meantime.
    WriteFailedError
        The disk is full, or a permission is missing; nothing is left behind.
    StatetoolError
        Error raised while reading, with its location.
    """
    with new_directory(target) as place, ExitStack() as marks:
        fs, root = file_system(place)
        staging = f"{root}/{STAGING}"
        write = partial(_write_split, fs.unstrip_protocol(staging), style, by, read)
        with writing(target):
            try:
                make_folders(fs, root, exist_ok=False)
            except FileExistsError:
                raise target_exists(target) from None
            finish = None if is_local(target) else marks.enter_context(marked(fs, staging, target))
        written = list(run(write, splits))
        with writing(target):
            names = [name for of_split, _ in written for name in of_split]
            if not names and by is None:  # readers need a schema
                empty = pa.RecordBatch.from_pylist([], schema=schema)
                names = [_write_file(fs, staging, "", style, iter([empty]))]
            for folder in sorted({name.rpartition("/")[0] for name in names}):
                make_folders(fs, f"{root}/{folder}")
            for _ in in_threads(lambda name: fs.mv(f"{staging}/{name}", f"{root}/{name}"), names, THREADS):
                pass
            if finish is not None:
                finish()  # otherwise the marker may come back
            fs.pipe_file(f"{root}/_SUCCESS", b"")
            remove_folder(fs, staging)
    return sum(rows for _, rows in written)


def export_scan(
    scan: TableScan,
    name: str,
    target: str,
    *,
    style: str,
    by_key_group: bool,
    append_as: int | None,
    threads: int | None,
) -> int:
    """Write a planned table to a new directory in threads of this process, and return the number of rows.

    Parameters
    ----------
    name
        Name of the table, for the schema of Avro files.
    style
        One of :data:`STYLES`.
    by_key_group
        Whether the column ``key_group`` names folders and is omitted from the files.
    append_as
        The checkpoint's id, which names a folder ``checkpoint_id=<id>`` below the target.

    Raises
    ------
    TargetExistsError
        The directory exists.
    OptionError
        There is no such style, or Parquet files in the form of Spark do not have the type of a column.
    """
    if style not in STYLES:
        raise OptionError(f"there is no format {style!r}", hint=f"choose one of {', '.join(STYLES)}, delta, iceberg")
    place = export_place(scan.schema, target, append_as)
    by = KEY_GROUP if by_key_group else None
    if style == "parquet":
        for field in scan.schema:
            if not is_plain(pa.schema([field])):
                raise OptionError(
                    f"Parquet has no type for column {field.name!r} ({field.type})",
                    hint="pass --spark, choose --format jsonl, or leave it out with --states",
                )
    own = {
        "parquet": lambda: parquet_style("snappy", _SPARK_CALENDAR),
        "avro": lambda: avro_style(name),
        "csv": csv_style,
        "jsonl": jsonl_style,
    }[style]()
    return export_splits(
        scan.splits, scan.schema, place, own, by, run=lambda write, splits: in_threads_ahead(write, splits, threads)
    )


def _write_split(
    staging: str, style: FileStyle, by: str | None, read: Callable[[Split], Batches], split: Split
) -> tuple[list[str], int]:
    """Write the rows of a split; return the names of files below ``staging``, and the number of rows."""
    fs, root = file_system(staging)
    names = []
    rows = 0

    def count_batches() -> Batches:
        nonlocal rows
        for batch in read(split):
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
    make_folders(fs, f"{root}/{folder}")
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


def parquet_style(codec: str, metadata: Mapping[str, str]) -> FileStyle:
    """Return the style of Parquet files with this compression codec and these entries in their metadata."""
    return FileStyle("parquet", partial(_write_parquet, codec, dict(metadata)))


def csv_style() -> FileStyle:
    """Return the style of CSV files with a header. Nested values are JSON."""
    return FileStyle("csv", _write_csv)


def jsonl_style() -> FileStyle:
    """Return the style of files with one JSON object per row."""
    return FileStyle("jsonl", _write_jsonl)


def _write_csv(out: Any, batches: Batches) -> None:
    first = next(batches)
    write_lines(chain([csv_header(first.schema)], csv_rows(chain([first], batches))), out)


def _write_jsonl(out: Any, batches: Batches) -> None:
    write_lines(json_lines(batches), out)


def _write_parquet(codec: str, described: dict[str, str], out: Any, batches: Batches) -> None:
    import pyarrow.parquet as pq

    first = store_empty_structs(next(batches))
    schema = first.schema.with_metadata(described)
    with pq.ParquetWriter(out, schema, compression=codec) as writer:
        for group in batch_groups(chain([first], map(store_empty_structs, batches))):
            table = pa.Table.from_batches(group).replace_schema_metadata(described)
            writer.write_table(table, row_group_size=max(1, table.num_rows))


def batch_groups(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
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
        hint = "run: pip install 'statetool[avro]', with Spark for the Python of its workers"
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
