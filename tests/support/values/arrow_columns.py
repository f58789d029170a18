"""Columns as comparable lists: NaN equals NaN, times of any year are numbers, nulls hide their children."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from statetool.columns.decode import as_data, decode_column
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.types.options import ReadOptions


def rows_of(array: pa.Array) -> list[Any]:
    """Return the rows of an array, floats as text."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        rows = array.cast(pa.int64()).to_pylist()
    elif pa.types.is_date(kind):
        rows = array.cast(pa.int32()).to_pylist()
    elif pa.types.is_struct(kind):
        fields = [rows_of(array.field(i)) for i in range(kind.num_fields)]
        rows = [tuple(field[i] for field in fields) for i in range(len(array))]
    elif pa.types.is_map(kind):
        inner = list(zip(rows_of(array.keys), rows_of(array.items), strict=True))
        rows = _grouped(array, inner)
    elif pa.types.is_list(kind):
        rows = _grouped(array, rows_of(array.values))
    else:
        rows = [repr(v) if isinstance(v, float) else v for v in array.to_pylist()]
    return [row if there else None for row, there in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _grouped(array: pa.Array, inner: list[Any]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    return [inner[a:b] for a, b in pairwise(offsets)]


def by_kernels(
    s: Serializer, raw: bytes, starts: list[int], ends: list[int], options: ReadOptions
) -> tuple[pa.Array, list[int]]:
    """Decode with kernels."""
    pos, end = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    column, after = decode_column(s.program(), s.logical, as_data(raw), pos, end, options)
    return column, after.tolist()


def one_by_one(s: Serializer, raw: bytes, starts: list[int], ends: list[int]) -> tuple[list[Any], list[int]]:
    """Decode with plain Python."""
    values, after = [], []
    for start, end in zip(starts, ends, strict=True):
        c = Cursor(raw, start, end)
        values.append(s.decode(c))
        after.append(c.pos)
    return values, after
