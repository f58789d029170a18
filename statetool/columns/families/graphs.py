"""Columns of values written by Kryo: rewritten by kernels and then decoded, or decoded one by one if kernels do not support them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.batch import Batch, Column
from statetool.columns.families.leaves import decode_each
from statetool.errors import StatetoolError
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.graphs.rewrite import rewritten
from statetool.kernels.values import program as ir
from statetool.types import LogicalType


def decode_graph(b: Batch, op: ir.Graph, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    data, starts, after, served = rewritten(b.data, op, pos, end)
    quick = np.flatnonzero(served)
    if not len(quick):
        return decode_each(b, op.decode, logical, pos, end)
    try:
        ends = np.append(starts[quick[1:]], len(data))
        array, _ = replace(b, data=data).run(ir.Flagged(op.root.shown, null_flag=0), logical, starts[quick], ends)
    except StatetoolError:
        # The reference path raises the error again, with the value's position in the file.
        return decode_each(b, op.decode, logical, pos, end)
    if len(quick) == len(pos):
        return array, after
    slow = np.flatnonzero(~served)
    slow_values, after[slow] = decode_each(b, op.decode, logical, pos[slow], end[slow])
    order = np.empty(len(pos), dtype=np.int64)
    order[quick] = np.arange(len(quick))
    order[slow] = len(quick) + np.arange(len(slow))
    return pa.concat_arrays([array, slow_values]).take(as_arrow(order)), after
