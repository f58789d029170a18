"""Decoding of many values at once by a program: vectors of byte positions in, Arrow columns out.

``decode_column`` walks the program tree once per batch. Each operation is a function of :mod:`statetool.columns.families`, a few kernel calls
over all values. The offset of an error is the
position of the failing value in ``data``, which callers convert to a location in a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow
from statetool.columns.batch import Batch, Column, struct_of
from statetool.columns.families.big_numbers import decode_big_decimal, decode_big_integer
from statetool.columns.families.binary import decode_binary_data, decode_filling
from statetool.columns.families.collections import decode_blocks, decode_masked_list, decode_pairs, decode_repeated
from statetool.columns.families.graphs import decode_graph
from statetool.columns.families.leaves import (
    check_constant,
    copy_ranges,
    decode_bitmaps,
    decode_choice,
    decode_counted,
    decode_each,
    decode_nulls,
    decode_temporal,
    decode_text,
    load_frames,
    load_ints,
)
from statetool.columns.families.sql import (
    build_epochs,
    decode_bytes_decimal,
    decode_clock,
    decode_fixed_as,
    decode_sql_decimal,
    decode_sql_timestamp,
)
from statetool.columns.families.stream_elements import decode_stream_elements
from statetool.columns.families.structs import (
    decode_either,
    decode_flagged,
    decode_masked,
    decode_pojo,
    decode_struct,
    decode_union,
)
from statetool.columns.families.ttl import decode_ttl
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import NULL_VALUE, TRUNCATED, refuse
from statetool.kernels.values import program as ir
from statetool.types import BitmapType, LogicalType
from statetool.types.options import ReadOptions


def as_data(buffer: Any) -> Bytes:
    """Return a buffer as a read-only array of the type that kernels are compiled for."""
    data = np.frombuffer(buffer, dtype=np.uint8)
    data.flags.writeable = False
    return data


def decode_column(
    op: ir.Op, logical: LogicalType, data: Bytes, pos: Int64s, end: Int64s, options: ReadOptions
) -> Column:
    """Decode one value at each position.

    Parameters
    ----------
    op, logical
        Program and logical type of the serializer.
    data
        uint8[:], read-only.
    pos, end
        int64[n]: first byte of each value, and first byte after its frame.

    Returns
    -------
    array, after
        A column of ``arrow_type(logical, options)``, and the first byte after each value.

    Raises
    ------
    DecodeError
        ``where.offset`` is the position in ``data``, ``where.type_path`` the path inside the type.
    """
    return Batch(data, options, _decode).run(op, logical, pos, end)


def _decode(b: Batch, op: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    if isinstance(op, ir.Leaf):
        return _decode_leaf(b, op, logical, pos, end)
    match op:
        case ir.Struct():
            return decode_struct(b, op, struct_of(logical), pos, end)
        case ir.Flagged(value, null_flag, padding):
            return decode_flagged(b, value, null_flag, padding, logical, pos, end)
        case ir.NonNullFlag(value, flag):
            return b.run(value, logical, check_constant(b, 1, flag, NULL_VALUE, pos, end), end)
        case ir.Repeated(element):
            return decode_repeated(b, element, logical, pos, end)
        case ir.Pairs(key, value):
            return decode_pairs(b, key, value, logical, pos, end)
        case ir.Pojo(names, parts):
            return decode_pojo(b, names, parts, struct_of(logical), pos, end)
        case ir.Masked():
            return decode_masked(b, op, struct_of(logical), pos, end)
        case ir.EitherOf(left, right):
            return decode_either(b, left, right, struct_of(logical), pos, end)
        case ir.Blocks(key, value):
            return decode_blocks(b, key, value, logical, pos, end)
        case ir.MaskedList(element):
            return decode_masked_list(b, element, logical, pos, end)
        case ir.StreamElement():
            return decode_stream_elements(b, op, struct_of(logical), pos, end)
        case ir.Union():
            return decode_union(b, op, logical, pos, end)
        case ir.Ttl(value):
            return decode_ttl(b, value, logical, pos, end)
    assert_never(op)


def _decode_leaf(b: Batch, op: ir.Leaf, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    """Decode values without parts, or with parts after a size in bytes."""
    match op:
        case ir.Fixed(kind):
            return decode_fixed_as(b, kind, logical, pos, end)
        case ir.Text(nullable):
            return decode_text(b, nullable, pos, end)
        case ir.Constant(size, byte):
            return decode_nulls(b, size, byte, logical, pos, end)
        case ir.EnumIndex(names):
            return decode_choice(b, names, pos, end)
        case ir.SignFlippedLong():
            raw, after = load_ints(b, 8, pos, end)
            return as_arrow(raw ^ np.int64(-(1 << 63))), after
        case ir.Temporal(kind):
            return decode_temporal(b, kind, logical, pos, end)
        case ir.BigInt():
            return decode_big_integer(b, logical, pos, end)
        case ir.BigDec():
            return decode_big_decimal(b, logical, pos, end)
        case ir.Counted(text):
            array, after = decode_counted(b, text, pos, end)
            return decode_bitmaps(b, array, pos) if isinstance(logical, BitmapType) else array, after
        case ir.BinaryData():
            return decode_binary_data(b, op, logical, pos, end)
        case ir.SqlDecimal(precision):
            return decode_sql_decimal(b, precision, logical, pos, end)
        case ir.SqlTimestamp(precision):
            return decode_sql_timestamp(b, precision, logical, pos, end)
        case ir.Clock(unit):
            return decode_clock(b, unit, pos, end)
        case ir.Epoch(unit):
            raw, after = load_ints(b, 8, pos, end)
            return build_epochs(b, raw, unit, logical, pos), after
        case ir.FixedBytes(size):
            refuse(pos + size > end, TRUNCATED, pos)
            return copy_ranges(b, pos, pos + size), pos + size
        case ir.BytesDecimal(size):
            return decode_bytes_decimal(b, size, logical, pos, end)
        case ir.Framed(value):
            first, after = load_frames(b, pos, end)
            return decode_filling(b, value, logical, first, after), after
        case ir.Rest():
            return copy_ranges(b, pos, end), end
        case ir.Graph():
            return decode_graph(b, op, logical, pos, end)
        case ir.PerRecord(decode):
            return decode_each(b, decode, logical, pos, end)
    assert_never(op)
