"""Metadata tables as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Final

import pyarrow as pa

from statetool.plan.rows import METADATA_TABLES

_TYPES: Final = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_(), "float": pa.float64()}


def metadata_schema(table: str) -> pa.Schema:
    """Return the schema of one of :data:`~statetool.plan.rows.METADATA_TABLES`."""
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
    """Return records of the inventory as a table."""
    return pa.Table.from_pylist([asdict(r) for r in rows], schema=metadata_schema(table))
