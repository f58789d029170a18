"""Kernels that load numbers, flags and length-prefixed bytes at many positions.

All decoding kernels take ``data`` uint8[:] read-only; ``pos``, ``end`` int64[n], the first byte of each value and the first byte after its
frame; and ``after`` int64[n] out, the first byte after each value. They return ``(code, index)``.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import BAD_COUNT, BAD_FLAG, OK, TRUNCATED
from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes


@jit
def read_u2(data, p):
    """Return the unsigned 16-bit number at ``p`` (uint64) as int64."""
    return np.int64(data[p]) << 8 | np.int64(data[p + np.uint64(1)])


@jit
def _bits(data, p):
    """Return 32 bits at ``p`` as uint32; LLVM turns it into one load."""
    a, b = np.uint32(data[p]), np.uint32(data[p + np.uint64(1)])
    c, d = np.uint32(data[p + np.uint64(2)]), np.uint32(data[p + np.uint64(3)])
    return np.uint32(a << np.uint32(24) | b << np.uint32(16) | c << np.uint32(8) | d)


@jit
def read_u4(data, p):
    """Return the unsigned 32-bit number at ``p`` (uint64) as int64."""
    return np.int64(_bits(data, p))


@jit
def read_i4(data, p):
    """Return the signed 32-bit number at ``p`` (uint64) as int64."""
    return np.int64(np.int32(_bits(data, p)))


@jit
def read_i8(data, p):
    """Return the signed 64-bit number at ``p`` (uint64)."""
    return read_i4(data, p) << 32 | read_u4(data, p + np.uint64(4))


@jit
def load_fixed(data, pos, end, size, out, after):
    """Load big-endian integers of ``size`` bytes (1, 2, 4 or 8), sign-extended, into ``out`` int64[n]."""
    n = pos.shape[0]
    for i in range(n):
        after[i] = pos[i] + size
        if after[i] > end[i]:
            return TRUNCATED, i
    if size == 8:
        for i in range(n):
            out[i] = read_i8(data, np.uint64(pos[i]))
    elif size == 4:
        for i in range(n):
            out[i] = read_i4(data, np.uint64(pos[i]))
    elif size == 2:
        for i in range(n):
            v = read_u2(data, np.uint64(pos[i]))
            out[i] = v if v < 0x8000 else v - 0x10000
    else:
        for i in range(n):
            w = np.int64(data[np.uint64(pos[i])])
            out[i] = w if w < 0x80 else w - 0x100
    return OK, 0


@jit
def load_flags(data, pos, end, out, after):
    """Load bytes that must be 0 or 1 into ``out`` uint8[n]."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if p >= end[i]:
            return TRUNCATED, i
        flag = data[np.uint64(p)]
        if flag > 1:
            return BAD_FLAG, i
        out[i] = flag
        after[i] = p + 1
    return OK, 0


@jit
def check_bytes(data, pos, end, size, wanted, code, after):
    """Skip ``size`` bytes that must all equal ``wanted``; return ``code`` for the first value where they do not."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if size > end[i] - p:
            return TRUNCATED, i
        for k in range(p, p + size):
            if data[k] != wanted:
                return code, i
        after[i] = p + size
    return OK, 0


@jit
def first_unfilled(after, end):
    """Return the index of the first value that does not end where its frame does, -1 if all do."""
    for i in range(after.shape[0]):
        if after[i] != end[i]:
            return i
    return -1


@jit
def counted_sizes(data, pos, end, sizes, after):
    """Read i32 byte counts; ``after`` is the position after the bytes."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if p + 4 > end[i]:
            return TRUNCATED, i
        n = read_i4(data, np.uint64(p))
        if n < 0 or n > end[i] - p - 4:
            return BAD_COUNT, i
        sizes[i] = n
        after[i] = p + 4 + n
    return OK, 0


@jit
def bytes_fill(data, starts, offsets, out):
    """Copy ``offsets[i + 1] - offsets[i]`` bytes from ``starts[i]`` for each i."""
    for i in range(starts.shape[0]):
        copy_bytes(data, starts[i], np.int64(offsets[i + 1] - offsets[i]), out, np.int64(offsets[i]))
    return OK, 0
