"""Columns of Java's ``BigInteger`` and ``BigDecimal``."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import bitmap
from statetool.columns.batch import Batch, Column
from statetool.columns.families.leaves import decode_each, load_ints
from statetool.columns.from_plain import decimal_error, scale_decimal
from statetool.columns.types import BIG_DECIMAL, BIG_INTEGER, SCALED_DECIMAL
from statetool.errors import StatetoolError
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import check
from statetool.kernels.values import decode_numbers as number_kernels
from statetool.serializers.typeutils.basic import read_big_decimal, read_big_integer
from statetool.types import LogicalType

_POWERS: Final = np.array([10**k for k in range(20)], dtype=np.uint64)
_DECIMAL_DIGITS: Final = 10**38


def decode_big_integer(b: Batch, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    if b.options.decimals == "string":
        return decode_each(b, read_big_integer, logical, pos, end)
    out, valid, wide, after = _load_big_numbers(b, pos, end)
    words = np.stack([out, out >> 63], axis=1)
    _fill_wide(b, words, wide, pos, end, _whole_words)
    return pa.Array.from_buffers(BIG_INTEGER, len(pos), [bitmap(valid), pa.py_buffer(words)]), after


def decode_big_decimal(b: Batch, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    if b.options.decimals == "string":
        return decode_each(b, read_big_decimal, logical, pos, end)
    n = len(pos)
    out, valid, wide, after = _load_big_numbers(b, pos, end)
    scales, low, high = (np.zeros(n, dtype=np.int64) for _ in range(3))
    present = np.flatnonzero(valid)
    scales[present], after[present] = load_ints(b, 4, after[present], end[present])
    number_kernels.scale_decimals(out, scales, 18, _POWERS, low, high, valid, wide)
    words = np.stack([low, high], axis=1)
    _fill_wide(b, words, wide, pos, end, _scale_words)
    nulls = bitmap(valid)
    decimals = pa.Array.from_buffers(BIG_DECIMAL, n, [nulls, pa.py_buffer(words)])
    if b.options.decimals == "plain":
        return decimals, after
    own = pa.Array.from_buffers(pa.int32(), n, [nulls, pa.py_buffer(scales.astype(np.int32))])
    return pa.StructArray.from_buffers(SCALED_DECIMAL, n, [nulls], children=[decimals, own]), after


def _load_big_numbers(b: Batch, pos: Int64s, end: Int64s) -> tuple[Int64s, Any, Any, Int64s]:
    n = len(pos)
    out, after = np.zeros(n, dtype=np.int64), np.empty_like(pos)
    valid, wide = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
    check(number_kernels.big_integers(b.data, pos, end, out, valid, wide, after), pos)
    return out, valid, wide, after


def _fill_wide(b: Batch, words: Int64s, wide: Bytes, pos: Int64s, end: Int64s, read: Callable[[Cursor], bytes]) -> None:
    """Decode the values too wide for kernels one by one into ``words`` int64[n, 2]."""
    for i in np.flatnonzero(wide).tolist():
        c = Cursor(b.data.data, int(pos[i]), int(end[i]))
        try:
            words[i] = np.frombuffer(read(c), dtype=np.int64)
        except StatetoolError as error:
            raise error.at(offset=int(pos[i])) from error.__cause__


def _whole_words(c: Cursor) -> bytes:
    value = read_big_integer(c)
    assert value is not None
    if abs(value) >= _DECIMAL_DIGITS:
        raise decimal_error("BigInteger", "38 digits")
    return value.to_bytes(16, "little", signed=True)


def _scale_words(c: Cursor) -> bytes:
    value = read_big_decimal(c)
    assert value is not None
    scaled: Decimal = scale_decimal(value)
    return int(scaled.scaleb(18)).to_bytes(16, "little", signed=True)
