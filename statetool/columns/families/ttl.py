"""Columns of values with a time to live."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import null_where
from statetool.columns.batch import Batch, Column
from statetool.columns.families.leaves import load_ints
from statetool.columns.types import arrow_type, member_arrays
from statetool.kernels.core.arrays import Int64s, Mask
from statetool.kernels.core.codes import RANGE, refuse
from statetool.kernels.values import program as ir
from statetool.types import LogicalType, TtlType

_MAX_MILLIS: Final = (1 << 63) // 1000


def decode_ttl(b: Batch, value: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    assert isinstance(logical, TtlType)
    access, body = load_ints(b, 8, pos, end)
    array, after = b.part("value", value, logical.value, body, end, None)
    if b.options.ttl == "raw":
        refuse((access >= _MAX_MILLIS) | (access <= -_MAX_MILLIS), RANGE, pos)
        kind = arrow_type(logical, b.options)
        times = pa.Array.from_buffers(kind.field(0).type, len(pos), [None, pa.py_buffer(access * 1000)])
        parts = [times, *member_arrays(array, logical.value, b.options)]
        return pa.StructArray.from_buffers(kind, len(pos), [None], children=parts), after
    if b.options.ttl == "hide_expired":
        array = null_where(array, _find_expired(b, access))
    return array, after


def _find_expired(b: Batch, access: Int64s) -> Mask:
    """Return which values have expired by their last access."""
    assert b.options.ttl_ms is not None
    assert b.options.now_ms is not None
    return access <= b.options.now_ms - b.options.ttl_ms


def find_unexpired(b: Batch, op: ir.Op, starts: Int64s) -> Mask | None:
    """Return which elements (already decoded) stay when expired ones are hidden, ``None`` for all."""
    if b.options.ttl != "hide_expired":
        return None
    flag = None
    if isinstance(op, ir.Flagged):
        flag, op = op.null_flag, op.value
    if not isinstance(op, ir.Ttl):
        return None
    timed = np.ones(len(starts), dtype=np.bool_) if flag is None else b.data[starts] != flag
    at = starts[timed] + (0 if flag is None else 1)
    access, _ = load_ints(b, 8, at, at + 8)
    fresh = np.ones(len(starts), dtype=np.bool_)
    fresh[timed] = ~_find_expired(b, access)
    return fresh
