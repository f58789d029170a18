"""Differences of two snapshots as a DataFrame with one partition per unit, so that nothing is shuffled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from statetool.analysis.comparison.compare import differences
from statetool.analysis.comparison.plan import Unit
from statetool.analysis.comparison.records import DIFFERENCES
from statetool.spark.schema import spark_schema
from statetool.spark.workers import begin_task


def differences_frame(spark: Any, units: Sequence[Unit]) -> Any:
    """Return the differences of units as a DataFrame; tasks compute them whenever it is evaluated."""
    schema = spark_schema(DIFFERENCES)
    planned = list(units)
    if not planned:
        return spark.createDataFrame([], schema)

    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from differences(planned[number])

    return spark.range(0, len(planned), 1, len(planned)).mapInArrow(compare, schema)
