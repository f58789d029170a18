"""Kernels over the row of each entry, in tables with one row per key, and over the sizes of values."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import jit

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
