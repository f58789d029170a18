"""Rewriting of Kryo's values in fixed layouts: runs the kernels of :mod:`statetool.kernels.graphs.walk` with enough room."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.arrays import Bytes, Int64s, Mask
from statetool.kernels.core.codes import UNKNOWN_OPERATION, coded_error
from statetool.kernels.graphs import walk as graphs
from statetool.kernels.graphs.flat_program import FULL, STATE_WORDS, UNKNOWN, WRITTEN, compile_graph
from statetool.kernels.values import program as ir

_LEAST_ROOM: Final = 1 << 12


def rewritten(data: Bytes, op: ir.Graph, pos: Int64s, end: Int64s) -> tuple[Bytes, Int64s, Int64s, Mask]:
    """Rewrite values in fixed layouts.

    Returns
    -------
    out, starts, after, served
        uint8[:], read-only: the values in their new layout; int64[n]: the start of each value in it; int64[n]: the position after each
        value in ``data``; bool[n]: false for values that only the reference decoder reads, which are not in ``out``.
    """
    layout = compile_graph(op.root, op.little)
    n = len(pos)
    starts, after = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    served = np.zeros(n, dtype=np.uint8)
    st = np.zeros(STATE_WORDS, dtype=np.int64)
    out = np.empty(2 * int((end - pos).sum()) + _LEAST_ROOM, dtype=np.uint8)
    next_value = 0
    while True:
        next_value = graphs.rewrite(data, layout, pos, end, next_value, out, st, starts, after, served)
        if st[WRITTEN] == UNKNOWN:
            raise coded_error(UNKNOWN_OPERATION)
        if next_value == n:
            break
        # Double the size each time. The value that did not fit is written again.
        larger = np.empty(2 * len(out), dtype=np.uint8)
        larger[: st[WRITTEN]] = out[: st[WRITTEN]]
        out = larger
    written = out[: st[WRITTEN]]
    written.flags.writeable = False
    return written, starts, after, served.view(np.bool_)


def split_values(data: Bytes, op: ir.Graph, pos: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s] | None:
    """Find the values of comma-joined lists: counts of each list, starts and ends of all values; ``None`` if kernels cannot."""
    layout = compile_graph(op.root, op.little)
    counts, st = np.empty_like(pos), np.zeros(STATE_WORDS, dtype=np.int64)
    starts = ends = np.empty(0, dtype=np.int64)
    scratch = np.empty(_LEAST_ROOM, dtype=np.uint8)
    while (code := graphs.split(data, layout, pos, end, scratch, st, counts, starts, ends)) == FULL:
        scratch = np.empty(2 * len(scratch), dtype=np.uint8)
    if code == UNKNOWN:
        raise coded_error(UNKNOWN_OPERATION)
    if code != 0:
        return None
    starts, ends = (np.empty(int(counts.sum()), dtype=np.int64) for _ in range(2))
    graphs.split(data, layout, pos, end, scratch, st, counts, starts, ends)
    return counts, starts, ends
