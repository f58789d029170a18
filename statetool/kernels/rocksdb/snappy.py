"""Snappy decompression of many blocks at a time: one call per block would release and take the GIL each time.

After the varint of its uncompressed size, a block consists of elements. The two lowest bits of an element's first byte are its kind: 0 is a
literal of ``(byte >> 2) + 1`` bytes (from 60 on, the size minus one follows in 1 to 4 bytes), the others copy earlier bytes: 1 has
``(byte >> 2 & 7) + 4`` bytes and 11 bits of offset, 2 and 3 have ``(byte >> 2) + 1`` bytes and an offset of 2 or 4 bytes, little-endian.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import copy_bytes, copy_word


@inlined
def _number_at(data, p, end, size):
    """Return a little-endian number of up to four bytes; bytes after ``end`` count as 0."""
    number = np.int64(0)
    if p + 4 <= end:
        q = np.uint64(p)
        for k in range(4):
            number |= np.int64(data[q + np.uint64(k)]) << (8 * k)
        return number & ((np.int64(1) << (8 * size)) - 1)
    for k in range(min(size, end - p)):
        number |= np.int64(data[np.uint64(p + k)]) << (8 * k)
    return number


@inlined
def _repeat(out, o, offset, size, end):
    """Copy ``size`` bytes from ``offset`` bytes earlier, repeating them if ``offset`` is less than ``size``.

    Up to 15 bytes after them are also written, if before ``end``: later output replaces these.
    """
    if offset >= 8 and end - o >= size + 16:
        target = np.uint64(o)
        source = np.uint64(o - offset)
        stop = np.uint64(o + size)
        while target < stop:
            copy_word(out, source, out, target)
            copy_word(out, source + np.uint64(8), out, target + np.uint64(8))
            source += np.uint64(16)
            target += np.uint64(16)
    else:
        for k in range(size):
            out[np.uint64(o + k)] = out[np.uint64(o - offset + k)]


@jit
def _uncompress(data, p, end, out, start, stop):
    """Uncompress one block into ``out`` from ``start`` to ``stop``; return 0, or 1 if it is damaged."""
    while p < end and data[np.uint64(p)] >= 0x80:
        p += 1
    p += 1
    o = start
    while p < end:
        tag = np.int64(data[np.uint64(p)])
        p += 1
        kind = tag & 3
        if kind == 0:
            size = (tag >> 2) + 1
            if size > 60:
                more = size - 60
                size = _number_at(data, p, end, more) + 1
                p += more
            if size > end - p or size > stop - o:
                return 1
            if size <= 16 and end - p >= 16 and stop - o >= 16:
                copy_word(data, np.uint64(p), out, np.uint64(o))
                copy_word(data, np.uint64(p + 8), out, np.uint64(o + 8))
            else:
                copy_bytes(data, p, size, out, o)
            p += size
        else:
            if kind == 1:
                size = (tag >> 2 & 7) + 4
                offset = tag >> 5 << 8 | _number_at(data, p, end, 1)
                p += 1
            else:
                size = (tag >> 2) + 1
                offset = _number_at(data, p, end, 2 if kind == 2 else 4)
                p += 2 if kind == 2 else 4
            if p > end or offset == 0 or offset > o - start or size > stop - o:
                return 1
            _repeat(out, o, offset, size, stop)
        o += size
    return 0 if o == stop else 1


@jit
def plain_blocks(data, bodies, ends, kinds, out, starts, stops):
    """Copy uncompressed blocks (kind 0) and uncompress Snappy blocks (1), skipping all others.

    Parameters
    ----------
    bodies, ends, kinds
        int64[n], int64[n], uint8[n]: range of each block's bytes in ``data``, and its compression.
    starts, stops
        int64[n]: range of each block in ``out`` uint8[:].

    Returns
    -------
    Index of the first damaged block, -1 if there is none.
    """
    for i in range(bodies.shape[0]):
        if kinds[i] == 0:
            copy_bytes(data, bodies[i], stops[i] - starts[i], out, starts[i])
        elif kinds[i] == 1 and _uncompress(data, bodies[i], ends[i], out, starts[i], stops[i]) != 0:
            return i
    return -1
