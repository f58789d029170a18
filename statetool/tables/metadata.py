"""Metadata tables as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Final

import pyarrow as pa

from statetool.snapshot.metadata_tables import METADATA_TABLES

_TYPES: Final = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_(), "float": pa.float64(), "bytes": pa.binary()}


def metadata_schema(table: str) -> pa.Schema:
    """Return the schema of one of :data:`~statetool.snapshot.metadata_tables.METADATA_TABLES`."""
    return record_schema(METADATA_TABLES[table].record)


def record_schema(record: type[Any]) -> pa.Schema:
    """Return the schema of a table whose rows are records of a dataclass."""
    columns = []
    for field in fields(record):
        text = str(field.type)
        optional = text.endswith("| None")
        kind = _TYPES.get(text.removesuffix(" | None"), pa.string())
        columns.append(pa.field(field.name, kind, nullable=optional))
    return pa.schema(columns)


def metadata_table(table: str, rows: Sequence[Any]) -> pa.Table:
    """Return the rows of one of :data:`~statetool.snapshot.metadata_tables.METADATA_TABLES` as a table."""
    return records_table(METADATA_TABLES[table].record, rows)


def records_table(record: type[Any], rows: Sequence[Any]) -> pa.Table:
    """Return records of a dataclass as a table."""
    return pa.Table.from_pylist([asdict(r) for r in rows], schema=record_schema(record))
