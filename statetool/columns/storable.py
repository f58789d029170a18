"""Columns in a form that file formats and engines accept."""

from __future__ import annotations

import pyarrow as pa

from statetool.columns.types import is_variant


def is_empty_struct(kind: pa.DataType) -> bool:
    """Return True for structs without fields: keys of SQL operators that have one group for all rows."""
    return pa.types.is_struct(kind) and not kind.num_fields


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of :func:`store_empty_structs`."""
    return pa.schema([f.with_type(pa.string()) if is_empty_struct(f.type) else f for f in schema])


def store_empty_structs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with structs without fields as the text ``{}``."""
    if not any(is_empty_struct(c.type) for c in batch.columns):
        return batch
    arrays = [pa.array(["{}"] * len(c), pa.string()) if is_empty_struct(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=storable_schema(batch.schema))


def is_plain(schema: pa.Schema) -> bool:
    """Return True if Parquet has the types of all columns: Spark stores intervals, variants and similar types in its own way."""
    return all(is_empty_struct(field.type) or _is_plain(field.type) for field in schema)


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_null(kind) or pa.types.is_duration(kind) or is_variant(kind) or is_empty_struct(kind):
        return False
    return all(_is_plain(kind.field(i).type) for i in range(kind.num_fields))
