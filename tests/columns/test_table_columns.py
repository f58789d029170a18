"""Columns of tables for types that are equal."""

from __future__ import annotations

from statetool.columns.types import table_column
from statetool.types.logical import TimestampType
from statetool.types.options import ReadOptions


def test_timestamps_that_differ_only_in_digits_have_columns_of_their_own() -> None:
    options = ReadOptions()
    for digits in (3, 9, 3):
        column = table_column(TimestampType("ns", zoned=False, digits=digits), options)
        assert [f.name for f in column.fields("at")] == (["at", "at_nanos"] if digits > 6 else ["at"])
