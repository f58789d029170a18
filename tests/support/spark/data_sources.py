"""Helpers for tests that use Spark, on PySpark 3.5 as well as on 4."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from statetool.spark.session import has_data_sources

data_sources = pytest.mark.skipif(not has_data_sources(), reason="PySpark before 4.0 has no Python data sources")


def pushes_filters() -> bool:
    """Return True if this PySpark pushes filters down to Python data sources."""
    try:
        from pyspark.sql.datasource import EqualTo  # noqa: F401
    except ImportError:
        return False
    return True


pushed_filters = pytest.mark.skipif(
    not pushes_filters(), reason="PySpark before 4.1 pushes no filters to Python sources"
)


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame as Arrow's Python values."""
    if hasattr(frame, "toArrow"):
        rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
        return rows
    return [row for batch in frame._collect_as_arrow() for row in pa.Table.from_batches([batch]).to_pylist()]
