"""Columns of values that Kryo wrote: rewritten by kernels and decoded from there, what they do not serve by the reference."""

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
    """Decoding of one batch, with Kryo's values."""

    def graph(self, op: ir.Graph, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        data, starts, after, served = rewritten(self.data, op, pos, end)
        some = np.flatnonzero(served)
        if not len(some):
            return self.per_record(op.decode, logical, pos, end)
        try:
            ends = np.append(starts[some[1:]], len(data))
            array, _ = type(self)(data, self.options).run(
                ir.Flagged(op.root.shown, null_flag=0), logical, starts[some], ends
            )
        except StatetoolError:
            # Raised again with the place in the file that the value has.
            return self.per_record(op.decode, logical, pos, end)
        if len(some) == len(pos):
            return array, after
        others = np.flatnonzero(~served)
        slow, after[others] = self.per_record(op.decode, logical, pos[others], end[others])
        order = np.empty(len(pos), dtype=np.int64)
        order[some] = np.arange(len(some))
        order[others] = len(some) + np.arange(len(others))
        return pa.concat_arrays([array, slow]).take(as_arrow(order)), after
