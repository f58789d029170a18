"""Columns as text: one form for all types, the same for equal values."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from statetool.columns.python_values import as_python
from statetool.columns.types import table_column
from statetool.tables.kinds.keyed import UNDECODED, Columns
from statetool.types import LogicalType
from statetool.types.options import ReadOptions

#: Exact values: nothing is rounded, and values that no table can show are bytes.
EXACT: Final = ReadOptions(nanos="companion", decimals="string", ttl="raw", on_error="keep_raw")
#: The same options without last access times.
EXACT_VALUES: Final = replace(EXACT, ttl="show")


def texts_of(columns: Columns, options: ReadOptions, state: str) -> dict[str, pa.StringArray]:
    """Convert the columns of a state to text, by name. Values that could not be decoded are ``0x`` and their bytes.

    Numbers, text, dates and times are as Arrow writes them, bytes are hexadecimal, and nested values are JSON. Maps are pairs sorted by
    key, as Java's maps have no order.
    """
    texts = {name: as_text(name, logical, array, options) for name, logical, array in columns if name != UNDECODED}
    raw = next((array for name, _, array in columns if name == UNDECODED), None)
    if raw is not None and raw.null_count < len(raw):
        for column, key in (("value", state), ("map_key", f"{state}.map_key")):
            if column in texts:
                texts[column] = _with_bytes(texts[column], raw, key)
    return texts


def undecoded_rows(columns: Columns) -> pa.BooleanArray | None:
    """Return which rows have a value that could not be decoded, ``None`` if all could be."""
    raw = next((array for name, _, array in columns if name == UNDECODED), None)
    return None if raw is None or raw.null_count == len(raw) else raw.is_valid()


def as_text(name: str, logical: LogicalType, array: pa.Array, options: ReadOptions) -> pa.StringArray:
    """Convert a column to text."""
    arrays = table_column(logical, options).arrays(array)
    if len(arrays) == 1:
        return _text(arrays[0])
    rows = zip(*(_plain(a) for a in arrays), strict=True)
    return pa.array([None if row[0] is None else _json(list(row)) for row in rows], type=pa.string())


def _with_bytes(column: pa.StringArray, raw: pa.Array, key: str) -> pa.StringArray:
    rows: list[str | None] = column.to_pylist()
    for i, undecoded in enumerate(raw.to_pylist()):
        for name, value in undecoded or ():
            if name == key:
                rows[i] = f"0x{value.hex()}"
    return pa.array(rows, type=pa.string())


def _text(array: pa.Array) -> pa.StringArray:
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_binary(kind):
        return pa.array([None if v is None else f"0x{v.hex()}" for v in array.to_pylist()], type=pa.string())
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.string())
    if pa.types.is_nested(kind) or pa.types.is_duration(kind):
        return pa.array([None if v is None else _json(v) for v in _plain(array)], type=pa.string())
    return pc.cast(array, pa.string())


def _plain(array: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        texts: list[Any] = _text(array).to_pylist()
        return texts
    return as_python(array, _time)


def _time(number: int, kind: pa.DataType) -> str | int:
    """Return a time inside a value as text, like one that is a column of its own; of durations, the number."""
    if pa.types.is_duration(kind):
        return number
    text: str = pc.cast(pa.scalar(number, kind), pa.string()).as_py()
    return text


def _json(value: Any) -> str:
    return json.dumps(_sort_maps(value), ensure_ascii=False, separators=(", ", ": "))


def _sort_maps(value: Any) -> Any:
    """Return a value for JSON, with maps (the only lists of pairs) sorted by key.

    Absent fields of a value whose class may have subclasses are left out: which columns there are depends on the subclasses that a
    snapshot describes.
    """
    if isinstance(value, dict):
        is_open = bool(value) and next(reversed(value)).lstrip("_") == "class"
        return {k: _sort_maps(v) for k, v in value.items() if v is not None or not is_open}
    if isinstance(value, list):
        rows = [_sort_maps(v) for v in value]
        if value and all(isinstance(v, tuple) for v in value):
            rows.sort(key=lambda pair: json.dumps(pair[0], default=str))
        return rows
    if isinstance(value, tuple):
        return [_sort_maps(v) for v in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
