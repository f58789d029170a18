"""DuckDB and Polars read the same values as ``to_arrow``, and pushing down columns and keys changes no result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import statetool
from statetool.columns.python_values import number_of, as_python
from statetool.columns.storable import storable_schema, store_empty_structs
from statetool.errors import StatetoolError
from statetool.sql.duckdb_tables import quote, require_duckdb
from statetool.tables.scan import TableScan

duckdb = require_duckdb()


def tables_of(path: Path) -> Iterator[tuple[statetool.Operator[Any], str, pa.Table]]:
    """Yield the tables of a snapshot that can be read."""
    for operator in statetool.load(str(path)).operators.values():
        for table in operator.tables:
            try:
                yield operator, table, operator.to_arrow(table, on_error="keep_raw", decimals="string")
            except StatetoolError:
                continue


def snapshots(root: Path) -> list[Path]:
    return sorted(f.parent for f in root.rglob("_metadata"))


def values(table: pa.Table) -> list[str]:
    """Return rows in an order, with dates, times and durations as numbers."""
    columns = [as_python(column.combine_chunks(), number_of) for column in table.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


def plain(table: pa.Table) -> pa.Table:
    """Return a table with the types that DuckDB returns."""
    batches = [store_empty_structs(batch) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, storable_schema(table.schema))
