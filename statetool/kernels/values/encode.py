"""Kernels that write encoded values: the inverse of the decode kernels.

``out`` is uint8[:], filled with zeros. ``pos`` int64[n] is the start of each value in it. Sizes are measured first, so nothing is
checked here.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes


@jit
def store_fixed(values, size, out, pos):
    """Write int64[n] as big-endian integers of ``size`` bytes (the low bytes)."""
    for i in range(values.shape[0]):
        v = values[i]
        p = np.uint64(pos[i])
        for k in range(size):
            out[p + np.uint64(k)] = (v >> (8 * (size - 1 - k))) & 0xFF


@jit
def varint_size(v):
    """Return the size in bytes of an unsigned base-128 number."""
    n = 1
    while v >= 0x80:
        v >>= 7
        n += 1
    return n


@jit
def measure_text(data, start, end, valid, extra, units, sizes):
    """Measure UTF-8 strings as Flink strings: UTF-16 units and bytes. Invalid strings take the one byte of null."""
    for i in range(start.shape[0]):
        if valid[i] == 0:
            units[i] = -1
            sizes[i] = 1
            continue
        n = np.int64(0)
        size = np.int64(0)
        for p in range(np.uint64(start[i]), np.uint64(end[i])):
            b = data[p]
            if b < 0x80:  # one unit of one byte
                n += 1
                size += 1
            elif b >= 0xF0:  # a pair of surrogates, three bytes each
                n += 2
                size += 6
            elif b >= 0xE0:  # U+0800 to U+FFFF: three bytes from U+4000 on
                n += 1
                size += 2 if b < 0xE4 else 3
            elif b >= 0xC0:
                n += 1
                size += 2
        units[i] = n
        sizes[i] = size + varint_size(n + extra)


@jit
def store_varint(v, out, o):
    """Write an unsigned base-128 number and return the position after it."""
    while v >= 0x80:
        out[o] = (v & 0x7F) | 0x80
        v >>= 7
        o += 1
    out[o] = v
    return o + 1


@jit
def store_text(data, start, end, units, sizes, extra, out, pos):
    """Write measured UTF-8 strings as Flink strings."""
    for i in range(start.shape[0]):
        o = pos[i]
        n = units[i]
        if n < 0:
            out[o] = 0
            continue
        o = store_varint(n + extra, out, o)
        if pos[i] + sizes[i] - o == n and end[i] - start[i] == n:  # ASCII
            copy_bytes(data, start[i], n, out, o)
            continue
        p = start[i]
        while p < end[i]:
            b = np.int64(data[p])
            if b < 0x80:
                out[o] = b
                o += 1
                p += 1
            elif b >= 0xF0:
                c = (
                    (b & 0x07) << 18
                    | (np.int64(data[p + 1]) & 0x3F) << 12
                    | (np.int64(data[p + 2]) & 0x3F) << 6
                    | (np.int64(data[p + 3]) & 0x3F)
                ) - 0x10000
                o = store_varint(0xD800 + (c >> 10), out, o)
                o = store_varint(0xDC00 + (c & 0x3FF), out, o)
                p += 4
            elif b >= 0xE0:
                c = (b & 0x0F) << 12 | (np.int64(data[p + 1]) & 0x3F) << 6 | (np.int64(data[p + 2]) & 0x3F)
                o = store_varint(c, out, o)
                p += 3
            else:
                o = store_varint((b & 0x1F) << 6 | (np.int64(data[p + 1]) & 0x3F), out, o)
                p += 2


@jit
def store_markers(lengths, sizes, out, pos):
    """Write the lengths after ambiguous keys: little-endian base 256 in ``sizes`` bytes."""
    for i in range(lengths.shape[0]):
        left = lengths[i]
        for k in range(sizes[i]):
            out[pos[i] + k] = left & 0xFF
            left >>= 8


@jit
def hash_text(data, start, end, out):
    """Compute ``String.hashCode`` of the units (varints) of Flink strings from ``start`` to ``end``, into int64[n]."""
    for i in range(start.shape[0]):
        h = np.uint32(0)
        p = start[i]
        while p < end[i]:
            u = np.uint32(0)
            shift = np.uint32(0)
            while True:
                b = np.uint32(data[p])
                p += 1
                u |= (b & np.uint32(0x7F)) << shift
                if b < 0x80:
                    break
                shift += np.uint32(7)
            h = h * np.uint32(31) + u
        out[i] = np.int64(np.int32(h))
