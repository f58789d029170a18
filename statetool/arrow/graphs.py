"""Columns of values that Kryo wrote: rewritten by kernels and decoded from there, what they do not serve by the reference."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from statetool.arrow.choices import Choices
from statetool.arrow.leaves import Bytes, Column, Positions
from statetool.errors import StatetoolError
from statetool.kernels import graphs
from statetool.kernels import program as ir
from statetool.kernels.graph_program import FULL, compile_graph
from statetool.types import LogicalType

_LEAST_ROOM: Final = 1 << 12


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
        return pa.concat_arrays([array, slow]).take(pa.array(order)), after


def rewritten(data: Bytes, op: ir.Graph, pos: Positions, end: Positions) -> tuple[Bytes, Positions, Positions, Bytes]:
    """Rewrite values in fixed layouts.

    Returns
    -------
    out, starts, after, served
        uint8[:], read-only; int64[n], where each value is in it; int64[n], the position behind it in ``data``; bool[n], false for those
        that are not in ``out``.
    """
    prog, classes, names = compile_graph(op.root)
    n = len(pos)
    starts, after = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    served = np.zeros(n, dtype=np.uint8)
    st = graphs.state()
    out = np.empty(2 * int((end - pos).sum()) + _LEAST_ROOM, dtype=np.uint8)
    done = 0
    while True:
        done = graphs.rewrite(data, prog, classes, names, op.little, pos, end, done, out, st, starts, after, served)
        if done == n:
            break
        # Not larger than what is written of it and what one value may still take: the next step is twice that.
        more = np.empty(2 * len(out), dtype=np.uint8)
        more[: st[0]] = out[: st[0]]
        out = more
    whole = out[: st[0]]
    whole.flags.writeable = False
    return whole, starts, after, served.view(np.bool_)


def split_values(
    data: Bytes, op: ir.Graph, pos: Positions, end: Positions
) -> tuple[Positions, Positions, Positions] | None:
    """Find the values of comma-joined lists: counts of each list, starts and ends of all; ``None`` where kernels cannot."""
    layout = compile_graph(op.root)
    counts, st = np.empty_like(pos), graphs.state()
    starts = ends = np.empty(0, dtype=np.int64)
    scratch = np.empty(_LEAST_ROOM, dtype=np.uint8)
    while (code := graphs.split(data, *layout, op.little, pos, end, scratch, st, counts, starts, ends)) == FULL:
        scratch = np.empty(2 * len(scratch), dtype=np.uint8)
    if code != 0:
        return None
    starts, ends = (np.empty(int(counts.sum()), dtype=np.int64) for _ in range(2))
    graphs.split(data, *layout, op.little, pos, end, scratch, st, counts, starts, ends)
    return counts, starts, ends
