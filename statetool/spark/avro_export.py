"""Avro files from Spark tasks: PySpark does not carry Spark's own Avro package.

Each task writes one file below ``<target>/_temporary``; the driver moves those of the attempts that won to the target, removes the
rest and adds ``_SUCCESS`` last, so that a failure leaves no half export that looks whole.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from statetool.arrow.text_schemas import avro_schema
from statetool.spark.tables import map_in_arrow


def export_avro(frame: Any, target: str, *, name: str) -> None:
    """Write a DataFrame as Avro files to a directory that does not exist yet."""
    import fsspec

    fs, root = fsspec.core.url_to_fs(target)
    staging = f"{root}/_temporary"
    fs.makedirs(staging, exist_ok=False)
    try:
        written = map_in_arrow(frame, _writer(target, name), "name STRING").collect()
        for row in written:
            fs.mv(f"{staging}/{row['name']}", f"{root}/{row['name']}")
        fs.rm(staging, recursive=True)
        fs.pipe_file(f"{root}/_SUCCESS", b"")
    except BaseException:
        fs.rm(root, recursive=True)
        raise


def _writer(target: str, name: str) -> Any:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import fastavro
        import fsspec

        first = next(batches, None)
        if first is None:
            return
        schema = fastavro.parse_schema(avro_schema(first.schema, name=name))
        file = f"part-{uuid.uuid4().hex}.avro"
        fs, root = fsspec.core.url_to_fs(target)
        with fs.open(f"{root}/_temporary/{file}", "wb") as out:
            fastavro.writer(out, schema, _records(first, batches), codec="deflate")
        yield pa.RecordBatch.from_pydict({"name": [file]})

    return write


def _records(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in chain([first], others):
        names = avro_schema(batch.schema, name="row")["fields"]
        for row in batch.to_pylist():
            yield {f["name"]: _value(v, t.type) for f, v, t in zip(names, row.values(), batch.schema, strict=True)}


def _value(value: Any, kind: pa.DataType) -> Any:
    """Turn what ``to_pylist`` gives into what the Avro schema wants (maps are lists of pairs there)."""
    if value is None:
        return None
    if pa.types.is_duration(kind):
        return value // dt.timedelta(microseconds=1)
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
