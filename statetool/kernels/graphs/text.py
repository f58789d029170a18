"""Kernels that rewrite Kryo's variable-length numbers, strings and length-prefixed bytes in fixed layouts."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.core.words import copy_bytes
from statetool.kernels.graphs.flat_program import FULL, UNSERVED, WRITTEN
from statetool.kernels.values.decode_text import is_ascii, read_varint


@jit
def read_number(data, p, end):
    """Return ``(unsigned 32-bit number, position after)``; the position is -1 if it is not valid."""
    value, p = read_varint(data, p, end)
    return value, np.int64(p if value <= 0xFFFFFFFF else -1)


@jit
def read_long(data, p, end):
    """Return ``(64 bits, position after)`` of a number of at most 9 bytes."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while True:
        if p >= end:
            return np.int64(0), np.int64(-1)
        b = np.uint64(data[np.uint64(p)])
        p += 1
        if shift == 56:
            return np.int64(value | (b << shift)), np.int64(p)
        value |= (b & np.uint64(0x7F)) << shift
        if b < 0x80:
            return np.int64(value), np.int64(p)
        shift += np.uint64(7)


@jit
def unzigzag(v):
    """Return the signed number of a zigzag-encoded number."""
    return np.int64(np.uint64(v) >> np.uint64(1)) ^ -(v & 1)


@jit
def put4(out, o, v):
    """Write the low 32 bits of ``v`` big-endian and return the position after them."""
    out[o] = (v >> 24) & 0xFF
    out[o + 1] = (v >> 16) & 0xFF
    out[o + 2] = (v >> 8) & 0xFF
    out[o + 3] = v & 0xFF
    return o + 4


@jit
def put8(out, o, v):
    """Write 64 bits big-endian and return the position after them."""
    return put4(out, put4(out, o, v >> 32), v)


@jit
def _units(data, p, end, n, out, o):
    """Write UTF-16 code units of 1 to 3 bytes as UTF-8.

    Return ``(position after, output position after)``, -1 for a lone surrogate or damage.
    """
    bad = np.int64(-1)
    high = np.int64(0)
    for _ in range(n):
        if p >= end:
            return bad, o
        u = np.int64(data[p])
        p += 1
        if u >= 0x80:
            more = 1 if u >> 5 == 6 else (2 if u >> 4 == 14 else 0)
            if more == 0 or more > end - p:
                return bad, o
            u &= 0x1F if more == 1 else 0x0F
            for _k in range(more):
                u = (u << 6) | (np.int64(data[p]) & 0x3F)
                p += 1
        low = 0xDC00 <= u <= 0xDFFF
        if (high != 0) != low:
            return bad, o
        if low:
            c = 0x10000 + ((high - 0xD800) << 10) + (u - 0xDC00)
            out[o] = 0xF0 | (c >> 18)
            out[o + 1] = 0x80 | ((c >> 12) & 0x3F)
            out[o + 2] = 0x80 | ((c >> 6) & 0x3F)
            out[o + 3] = 0x80 | (c & 0x3F)
            o += 4
            high = np.int64(0)
        elif 0xD800 <= u <= 0xDBFF:
            high = u
        elif u < 0x80:
            out[o] = u
            o += 1
        elif u < 0x800:
            out[o] = 0xC0 | (u >> 6)
            out[o + 1] = 0x80 | (u & 0x3F)
            o += 2
        else:
            out[o] = 0xE0 | (u >> 12)
            out[o + 1] = 0x80 | ((u >> 6) & 0x3F)
            out[o + 2] = 0x80 | (u & 0x3F)
            o += 3
    return (bad if high != 0 else np.int64(p)), o


@jit
def write_text(data, p, end, out, st):
    """Write a non-null string as i32 size and UTF-8."""
    if p >= end:
        return np.int64(UNSERVED)
    o = st[WRITTEN]
    room = out.shape[0] - o - 4
    first = np.int64(data[p])
    if first < 0x80:
        q = p
        while q < end and data[np.uint64(q)] < 0x80:
            q += 1
        n = q + 1 - p
        if q >= end or n > room:
            return np.int64(UNSERVED if q >= end else FULL)
        put4(out, o, n)
        copy_bytes(data, p, n, out, o + 4)
        out[o + 3 + n] &= np.uint8(0x7F)
        st[WRITTEN] = o + 4 + n
        return np.int64(q + 1)
    n = first & 0x3F
    p += 1
    if first & 0x40:
        high_bits, p = read_number(data, p, end)
        if p < 0:
            return np.int64(UNSERVED)
        n |= high_bits << 6
    n -= 1
    if n < 0 or n > end - p:
        return np.int64(UNSERVED)
    if 3 * n > room:
        return np.int64(FULL)
    if is_ascii(data, p, n):
        put4(out, o, n)
        copy_bytes(data, p, n, out, o + 4)
        st[WRITTEN] = o + 4 + n
        return np.int64(p + n)
    p, after = _units(data, p, end, n, out, o + 4)
    if p < 0:
        return np.int64(UNSERVED)
    put4(out, o, after - o - 4)
    st[WRITTEN] = after
    return np.int64(p)


@jit
def write_counted(data, p, end, extra, out, st):
    """Rewrite bytes that follow their length plus 1: i32 length plus ``extra``, bytes."""
    n, p = read_number(data, p, end)
    n -= 1
    if p < 0 or n < 0 or n > end - p:
        return np.int64(UNSERVED)
    o = st[WRITTEN]
    if o + 4 + n > out.shape[0]:
        return np.int64(FULL)
    copy_bytes(data, p, n, out, put4(out, o, n + extra))
    st[WRITTEN] = o + 4 + n
    return np.int64(p + n)
