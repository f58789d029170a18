"""Avro files from Spark tasks: PySpark does not carry Spark's own Avro package.

Each task writes its files below ``<target>/_temporary``; the driver moves those of the attempts that won to the target, removes the
rest and adds ``_SUCCESS`` last, so that a failure leaves no half export that looks whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import chain, groupby
from typing import Any

import pyarrow as pa

from statetool.columns.python_values import as_python, number_of
from statetool.columns.text_schemas import avro_schema
from statetool.spark.tables import collected, map_in_arrow


def export_avro(frame: Any, target: str, *, name: str, by: str | None = None) -> None:
    """Write a DataFrame as Avro files to a directory that does not exist yet.

    Parameters
    ----------
    by
        A column whose values are folders (``key_group=7``) and are not in the files.
    """
    import fsspec

    fs, root = fsspec.core.url_to_fs(target)
    staging = f"{root}/_temporary"
    fs.makedirs(staging, exist_ok=False)
    try:
        written = collected(map_in_arrow(frame, _writer(target, name, by), "name STRING"))
        for folder in sorted({row["name"].rpartition("/")[0] for row in written}):
            fs.makedirs(f"{root}/{folder}", exist_ok=True)
        for row in written:
            fs.mv(f"{staging}/{row['name']}", f"{root}/{row['name']}")
        fs.rm(staging, recursive=True)
        fs.pipe_file(f"{root}/_SUCCESS", b"")
    except BaseException:
        fs.rm(root, recursive=True)
        raise


def _writer(target: str, name: str, by: str | None) -> Any:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import fastavro
        import fsspec

        first = next(batches, None)
        if first is None:
            return
        fields = [field for field in first.schema if field.name != by]
        schema = fastavro.parse_schema(avro_schema(pa.schema(fields), name=name))
        fs, root = fsspec.core.url_to_fs(target)
        # Rows of a key group lie together, so that one file is open at a time; otherwise there would only be more files.
        for value, rows in groupby(_records(first, batches), lambda row: None if by is None else row.pop(by)):
            folder = "" if by is None else f"{by}={value}/"
            file = f"{folder}part-{uuid.uuid4().hex}.avro"
            fs.makedirs(f"{root}/_temporary/{folder}", exist_ok=True)
            with fs.open(f"{root}/_temporary/{file}", "wb") as out:
                fastavro.writer(out, schema, rows, codec="deflate")
            yield pa.RecordBatch.from_pydict({"name": [file]})

    return write


def _records(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in chain([first], others):
        names = avro_schema(batch.schema, name="row")["fields"]
        columns = [[_value(v, column.type) for v in as_python(column, number_of)] for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield {f["name"]: v for f, v in zip(names, row, strict=True)}


def _value(value: Any, kind: pa.DataType) -> Any:
    """Turn what ``to_pylist`` gives into what the Avro schema wants (maps are lists of pairs there); times are numbers already."""
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
