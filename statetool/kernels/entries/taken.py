"""Kernel that finds the content of ranges of elements, for values of any size."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import jit, read_soon
from statetool.kernels.core.words import AHEAD


@jit
def range_offsets(offsets, start, count, new, at, size):
    """Look up ranges of elements, which are concatenated.

    Parameters
    ----------
    offsets
        int32 or int64[m + 1], the start of each element, and the end: in bytes of text, or in elements of a child.
    start, count
        int64[n]: first element and number of elements of each range.
    new
        int64[k + 1] out, the offsets of the elements of all ranges.
    at, size
        int64[n] out: start and size of the content of each range.
    """
    new[0] = 0
    j = 0
    last = start.shape[0] - 1
    for i in range(start.shape[0]):
        read_soon(offsets, start[min(i + AHEAD, last)])
        first = np.int64(offsets[start[i]])
        at[i] = first
        base = new[j] - first
        for k in range(start[i] + 1, start[i] + count[i] + 1):
            j += 1
            new[j] = base + offsets[k]
        size[i] = new[j] - base - first
