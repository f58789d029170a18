"""Conversion of Arrow values to Python values. Python's dates and times cover the years 1 to 9999. Arrow, Spark and Java have more."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa

_EPOCH: Final = dt.datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_DAY_MICROS: Final = 86_400_000_000
#: Days of 400 years, after which the calendar repeats.
_CYCLE_DAYS: Final = 146_097


def as_python(array: pa.Array, time: Callable[[int, pa.DataType], Any]) -> list[Any]:
    """Convert values like ``to_pylist``, but call ``time`` with the numbers of dates, timestamps and durations at any depth."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_date32(kind):
        numbers = array.view(pa.int32() if pa.types.is_date32(kind) else pa.int64()).to_pylist()
        return [None if n is None else time(n, kind) for n in numbers]
    if pa.types.is_struct(kind):
        names = [f.name for f in kind]
        parts = [as_python(array.field(i), time) for i in range(kind.num_fields)]
        rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        rows = rows if parts else [{} for _ in range(len(array))]
    elif pa.types.is_map(kind) or pa.types.is_list(kind):
        offsets = array.offsets.to_pylist()
        first, length = offsets[0], offsets[-1] - offsets[0]
        children = (array.keys, array.items) if pa.types.is_map(kind) else (array.values,)
        columns = [as_python(c.slice(first, length), time) for c in children]
        entries: list[Any] = list(zip(*columns, strict=True)) if pa.types.is_map(kind) else columns[0]
        rows = [entries[start - first : end - first] for start, end in pairwise(offsets)]
    else:
        rows = array.to_pylist()
        return rows
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def number_of(number: int, kind: pa.DataType) -> int:
    """Return the number unchanged, for :func:`as_python`."""
    return number


def rows_to_python(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows like ``to_pylist``, with dates and timestamps outside of Python's range as text.

    Their years are written as Spark does: ``+12345-01-31``, ``0000-01-31``, ``-0044-03-15 12:00:00``.
    """
    columns = [column_to_python(column) for column in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def column_to_python(column: pa.Array) -> list[Any]:
    """Return the values of a column as :func:`rows_to_python` does."""
    return as_python(column, _to_python_or_text)


def _to_python_or_text(number: int, kind: pa.DataType) -> dt.date | dt.timedelta | str:
    if pa.types.is_duration(kind):
        return dt.timedelta(microseconds=number)
    if pa.types.is_timestamp(kind):
        return _timestamp_to_python(number, zoned=kind.tz is not None)
    year, day = _date(number)
    return day if 1 <= year <= 9999 else _with_year(year, str(day))


def _timestamp_to_python(micros: int, *, zoned: bool) -> dt.datetime | str:
    days, below = divmod(micros, _DAY_MICROS)
    year, day = _date(days)
    time = dt.datetime.combine(day, (_EPOCH + dt.timedelta(microseconds=below)).time())
    time = time.replace(tzinfo=dt.timezone.utc) if zoned else time
    return time if 1 <= year <= 9999 else _with_year(year, str(time))


def _date(days: int) -> tuple[int, dt.date]:
    """Return the year and date of a day since 1970-01-01. Outside of Python's range, the date has an equivalent year from 1 to 400."""
    cycle, within = divmod(days + _EPOCH_DAY - 1, _CYCLE_DAYS)
    day = dt.date.fromordinal(within + 1)
    year = day.year + 400 * cycle
    return year, day.replace(year=year) if 1 <= year <= 9999 else day


def _with_year(year: int, text: str) -> str:
    """Replace the year, the first four digits, of a date or time as text."""
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}{text[4:]}"
