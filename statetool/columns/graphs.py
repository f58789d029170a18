"""Decoding of columns written by Kryo: rewritten by kernels and then decoded, or decoded one by one if kernels do not support them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.choices import Choices
from statetool.columns.leaves import Column
from statetool.errors import StatetoolError
from statetool.kernels import program as ir
from statetool.kernels.arrays import Positions
from statetool.kernels.rewrite import rewritten
from statetool.types import LogicalType


class Graphs(Choices):
    """Decoding of one batch that includes Kryo values."""

    def graph(self, op: ir.Graph, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        data, starts, after, served = rewritten(self.data, op, pos, end)
        quick = np.flatnonzero(served)
        if not len(quick):
            return self.per_record(op.decode, logical, pos, end)
        try:
            ends = np.append(starts[quick[1:]], len(data))
            array, _ = type(self)(data, self.options).run(
                ir.Flagged(op.root.shown, null_flag=0), logical, starts[quick], ends
            )
        except StatetoolError:
            # The reference path raises the error again, with the value's position in the file.
            return self.per_record(op.decode, logical, pos, end)
        if len(quick) == len(pos):
            return array, after
        slow = np.flatnonzero(~served)
        slow_values, after[slow] = self.per_record(op.decode, logical, pos[slow], end[slow])
        order = np.empty(len(pos), dtype=np.int64)
        order[quick] = np.arange(len(quick))
        order[slow] = len(quick) + np.arange(len(slow))
        return pa.concat_arrays([array, slow_values]).take(as_arrow(order)), after
