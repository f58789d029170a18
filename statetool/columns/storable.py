"""Columns in a form that file formats and engines accept."""

from __future__ import annotations

import pyarrow as pa


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
