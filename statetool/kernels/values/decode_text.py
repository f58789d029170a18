"""Kernels that convert Flink strings (UTF-16 code units as varints) to UTF-8 in two passes, sizes first.

Arguments as in :mod:`statetool.kernels.values.decode_fixed`. Follows ``StringValue.readString``.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import BAD_UNIT, LONE_SURROGATE, OK, TRUNCATED
from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes


@jit
def read_varint(data, p, end):
    """Return ``(value, position after)``; the position is -1 if the number is truncated or longer than 5 bytes."""
    value = np.int64(0)
    shift = 0
    while True:
        if p >= end or shift > 28:
            return value, np.int64(-1)
        b = np.int64(data[np.uint64(p)])
        p += 1
        value |= (b & 0x7F) << shift
        if b < 0x80:
            return value, np.int64(p)
        shift += 7


@jit
def is_ascii(data, p, n):
    """Return True if ``n`` bytes from ``p`` are all below 80 hex, so that each is one code unit."""
    start = np.uint64(p)
    high = np.uint8(0)
    for k in range(np.uint64(n)):
        high |= data[start + np.uint64(k)]
    return high < 0x80


@jit
def _measure(data, p, n, end):
    """Return ``(code, UTF-8 bytes, position after)`` of ``n`` code units."""
    size = np.int64(0)
    pending = False
    for _ in range(n):
        u, p = read_varint(data, p, end)
        if p < 0:
            return TRUNCATED, size, p
        if u > 0xFFFF:
            return BAD_UNIT, size, p
        low = 0xDC00 <= u <= 0xDFFF
        if pending != low:
            return LONE_SURROGATE, size, p
        if low:
            size += 4
            pending = False
        elif 0xD800 <= u <= 0xDBFF:
            pending = True
        else:
            size += 1 if u < 0x80 else (2 if u < 0x800 else 3)
    return (LONE_SURROGATE if pending else OK), size, p


@jit
def text_sizes(data, pos, end, extra, sizes, starts, units, valid, after):
    """Measure Flink strings: UTF-8 bytes into ``sizes``, position of the first code unit into ``starts``, counts into ``units``.

    ``extra`` is 1 if a length of 0 means null (``valid`` uint8[n] receives the flags), otherwise 0.
    """
    for i in range(pos.shape[0]):
        p = pos[i]
        stop = end[i]
        if p < stop and data[np.uint64(p)] < 0x80:
            n = np.int64(data[np.uint64(p)])
            p += 1
        else:
            n, p = read_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, i
        n -= extra
        starts[i] = p
        valid[i] = 1 if n >= 0 else 0
        if n < 0:
            n = np.int64(0)
        if n > stop - p:
            return TRUNCATED, i
        units[i] = n
        if is_ascii(data, p, n):
            sizes[i] = n
            after[i] = p + n
            continue
        code, size, p = _measure(data, p, n, stop)
        if code != OK:
            return code, i
        sizes[i] = size
        after[i] = p
    return OK, 0


@jit
def _fill(data, p, n, end, out, o):
    """Write ``n`` validated code units as UTF-8."""
    high = np.int64(0)
    for _ in range(n):
        u, p = read_varint(data, p, end)
        if u < 0x80:
            out[o] = u
            o += 1
        elif u < 0x800:
            out[o] = 0xC0 | (u >> 6)
            out[o + 1] = 0x80 | (u & 0x3F)
            o += 2
        elif 0xD800 <= u <= 0xDBFF:
            high = u
        elif 0xDC00 <= u <= 0xDFFF:
            c = 0x10000 + ((high - 0xD800) << 10) + (u - 0xDC00)
            out[o] = 0xF0 | (c >> 18)
            out[o + 1] = 0x80 | ((c >> 12) & 0x3F)
            out[o + 2] = 0x80 | ((c >> 6) & 0x3F)
            out[o + 3] = 0x80 | (c & 0x3F)
            o += 4
        else:
            out[o] = 0xE0 | (u >> 12)
            out[o + 1] = 0x80 | ((u >> 6) & 0x3F)
            out[o + 2] = 0x80 | (u & 0x3F)
            o += 3


@jit
def text_fill(data, starts, units, after, offsets, out):
    """Write measured strings as UTF-8 to ``out`` uint8[:] at ``offsets`` int32[n + 1]."""
    for i in range(starts.shape[0]):
        n = units[i]
        # One byte per code unit means ASCII; an overlong varint of an ASCII unit has the UTF-8 size of one, but more bytes.
        if after[i] - starts[i] != n:
            _fill(data, starts[i], n, after[i], out, np.int64(offsets[i]))
            continue
        copy_bytes(data, starts[i], n, out, np.int64(offsets[i]))
    return OK, 0
