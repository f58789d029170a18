"""Kernels over the row of each entry, in tables with one row per key, and over the sizes and offsets of values."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import jit, read_soon
from statetool.kernels.core.words import AHEAD

#: Maximum bytes, or elements, of an Arrow array with offsets of 32 bits.
MAX_OFFSET: Final = 0x7FFFFFFF


@jit
def mark_rows(rows, valid):
    """Mark the rows that have an entry.

    Parameters
    ----------
    rows
        int64[n], the row of each entry.
    valid
        bool[m], out, at first False.

    Returns
    -------
    1 if the rows ascend and no two are equal, otherwise 0
    """
    ascending = 1
    last = np.int64(-1)
    for i in range(rows.shape[0]):
        row = rows[i]
        valid[np.uint64(row)] = True
        if row <= last:
            ascending = 0
        last = row
    return ascending


@jit
def count_rows(rows, counts):
    """Count the entries of each row.

    Parameters
    ----------
    rows
        int64[n], the row of each entry.
    counts
        int64[m], out, at first zero.

    Returns
    -------
    1 if the rows ascend, otherwise 0
    """
    ascending = 1
    last = np.int64(-1)
    for i in range(rows.shape[0]):
        row = rows[i]
        counts[np.uint64(row)] += 1
        if row < last:
            ascending = 0
        last = row
    return ascending


@jit
def add_offsets(sizes, offsets):
    """Add up sizes to Arrow offsets.

    Parameters
    ----------
    sizes
        int64[n], not negative.
    offsets
        int32[n + 1], out.

    Returns
    -------
    int64
        The sum. If it exceeds :data:`MAX_OFFSET`, the offsets are incomplete.
    """
    total = np.int64(0)
    offsets[0] = 0
    for i in range(sizes.shape[0]):
        total += sizes[i]
        if total > MAX_OFFSET:
            return total
        offsets[i + 1] = total
    return total


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
