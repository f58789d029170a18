"""Kernels that compare and copy bytes, eight at a time, with loads and shifts that compile to one load or store."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import inlined, jit, read_soon

#: Prefetch distance: number of loop iterations between announcing a read and reading.
AHEAD: Final = 24


@inlined
def word_at(data, p):
    """Return the eight bytes from ``p`` (uint64) on as one number, which compares like the bytes."""
    word = np.uint64(0)
    for k in range(8):
        word = word << np.uint64(8) | np.uint64(data[p + np.uint64(k)])
    return word


@inlined
def copy_word(source, p, out, o):
    """Copy eight bytes; ``p`` and ``o`` are uint64."""
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(source[p + np.uint64(k)]) << np.uint64(8 * k)
    for k in range(8):
        out[o + np.uint64(k)] = np.uint8(word >> np.uint64(8 * k) & np.uint64(0xFF))


@inlined
def copy_bytes(source, start, size, out, o):
    """Copy ``size`` bytes from ``start`` to ``o``, which must not overlap, and return the position after them.

    No other byte is read or written.
    """
    if size < 8:
        for k in range(size):
            out[np.uint64(o + k)] = source[np.uint64(start + k)]
    else:
        last = size - 8
        at = np.int64(0)
        while at < last:
            copy_word(source, np.uint64(start + at), out, np.uint64(o + at))
            at += 8
        copy_word(source, np.uint64(start + last), out, np.uint64(o + last))
    return o + size


@jit
def copy_ranges(data, start, size, out, pos):
    """Copy ``size`` int64[n] bytes from ``start`` int64[n] of ``data`` to ``pos`` int64[n]."""
    last = start.shape[0] - 1
    for i in range(start.shape[0]):
        read_soon(data, start[min(i + AHEAD, last)])
        copy_bytes(data, start[i], size[i], out, pos[i])


@jit
def compare(a_data, a, a_end, b_data, b, b_end):
    """Compare byte ranges: negative, 0 or positive."""
    n = min(a_end - a, b_end - b)
    k = np.int64(0)
    while k + 8 <= n:
        v = word_at(a_data, np.uint64(a + k))
        w = word_at(b_data, np.uint64(b + k))
        if v != w:
            return -1 if v < w else 1
        k += 8
    while k < n:
        x = np.int64(a_data[np.uint64(a + k)])
        y = np.int64(b_data[np.uint64(b + k)])
        if x != y:
            return x - y
        k += 1
    return (a_end - a) - (b_end - b)


@inlined
def equal(data, a, a_end, b, b_end):
    """Return True if two byte ranges are equal. The last bytes are compared first, because neighbours in order differ most there."""
    size = a_end - a
    same = b_end - b == size
    if same and size < 8:
        k = np.int64(0)
        while same and k < size:
            same = data[np.uint64(a + k)] == data[np.uint64(b + k)]
            k += 1
    elif same:
        k = size - 8
        same = word_at(data, np.uint64(a + k)) == word_at(data, np.uint64(b + k))
        while same and k > 0:
            k = max(k - 8, np.int64(0))
            same = word_at(data, np.uint64(a + k)) == word_at(data, np.uint64(b + k))
    return same
