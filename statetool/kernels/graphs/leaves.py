"""Kernels for Kryo's leaf values: numbers, dates and times, UUIDs. Arguments as in :mod:`statetool.kernels.graphs.walk`."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import jit
from statetool.kernels.graphs.flat_program import (
    BIG_DEC,
    BIG_INT,
    BOOL,
    BYTES,
    CHAR,
    DATE,
    DATE_TIME,
    ENUM,
    F32,
    F64,
    FULL,
    I8,
    I16,
    INSTANT,
    INT,
    LONG,
    MAX_OBJECTS,
    MILLIS,
    OBJECTS,
    OBJECTS_MET,
    TEXT,
    TIME,
    TIMESTAMP,
    UNKNOWN,
    UNSERVED,
    UUID,
    WRITTEN,
)
from statetool.kernels.graphs.text import put4, put8, read_long, read_number, unzigzag, write_counted, write_text

_I64_MIN: Final = -(1 << 63)
_I32_MIN: Final = -(1 << 31)
_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@jit
def _fixed(data, p, end, size, little, out, st):
    """Write a number of ``size`` bytes as big-endian; the input is little-endian if ``little``."""
    if size > end - p:
        return np.int64(UNSERVED)
    o = st[WRITTEN]
    for k in range(size):
        out[o + k] = data[p + size - 1 - k] if little else data[p + k]
    st[WRITTEN] = o + size
    return np.int64(p + size)


@jit
def _date(data, p, end, little, out, st):
    """Write a date as i32 year, u1 month, u1 day. Kryo 5: varint year, month, day; 2.24: i2 day, i2 month (big-endian), zigzag year."""
    bad = np.int64(UNSERVED)
    if little:
        year, p = read_number(data, p, end)
        if p < 0 or end - p < 2:
            return bad
        if year > 0x7FFFFFFF:
            year -= 0x100000000
        month, day = np.int64(data[p]), np.int64(data[p + 1])
        p += 2
    else:
        if end - p < 4 or data[p] != 0 or data[p + 2] != 0:
            return bad
        day, month = np.int64(data[p + 1]), np.int64(data[p + 3])
        year, p = read_number(data, p + 4, end)
        if p < 0:
            return bad
        year = unzigzag(year)
    if year == _I32_MIN or month < 1 or month > 12 or day < 1 or day > 31:
        return bad
    o = put4(out, st[WRITTEN], year)
    out[o] = month
    out[o + 1] = day
    st[WRITTEN] = o + 2
    return np.int64(p)


@jit
def _time(data, p, end, little, out, st):
    """Write a time as u1 hour, minute, second, i32 nano. Kryo 2.24 stores the nano before the second."""
    bad = np.int64(UNSERVED)
    hour, minute, second, nano = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if little:
        # The last non-zero part is inverted, and the parts after it are omitted.
        for k in range(4):
            if k == 3:
                nano, p = read_number(data, p, end)
                if p < 0:
                    return bad
                break
            if p >= end:
                return bad
            b = np.int64(data[p])
            p += 1
            last = b >= 0x80
            if last:
                b = 0xFF - b
            if k == 0:
                hour = b
            elif k == 1:
                minute = b
            else:
                second = b
            if last:
                break
    else:
        if end - p < 2:
            return bad
        hour, minute = np.int64(data[p]), np.int64(data[p + 1])
        nano, p = read_number(data, p + 2, end)
        if p < 0 or p >= end:
            return bad
        nano = unzigzag(nano)
        second = np.int64(data[p])
        p += 1
    if hour > 23 or minute > 59 or second > 59 or nano < 0 or nano > 999999999:
        return bad
    o = st[WRITTEN]
    out[o] = hour
    out[o + 1] = minute
    out[o + 2] = second
    st[WRITTEN] = put4(out, o + 3, nano)
    return np.int64(p)


@jit
def _date_time(data, p, end, little, out, st):
    """Write a date and a time; in Kryo 2.24 each of the two is a separate object."""
    for k in range(2):
        if not little:
            if p >= end or data[p] != 1:
                return np.int64(UNSERVED)
            p += 1
            # The parts are objects too, but no other value refers to them.
            if st[OBJECTS_MET] < MAX_OBJECTS:
                st[OBJECTS + 3 * st[OBJECTS_MET]] = -1
            st[OBJECTS_MET] += 1
        p = _date(data, p, end, little, out, st) if k == 0 else _time(data, p, end, little, out, st)
        if p < 0:
            return p
    return p


@jit
def _instant(data, kind, p, end, little, out, st):
    """Write seconds and nanos of an Instant or a Timestamp."""
    bad = np.int64(UNSERVED)
    if kind == INSTANT and not little:
        nanos, p = read_number(data, p, end)
        if p < 0:
            return bad
        nanos = unzigzag(nanos)
        seconds, p = read_long(data, p, end)
        seconds = unzigzag(seconds)
    else:
        seconds, p = read_long(data, p, end)
        if p < 0:
            return bad
        nanos, p = read_number(data, p, end)
        if kind == TIMESTAMP:
            seconds //= 1000
    if p < 0 or nanos < 0 or nanos > 999999999 or seconds == _I64_MIN:
        return bad
    st[WRITTEN] = put4(out, put8(out, st[WRITTEN], seconds), nanos)
    return np.int64(p)


@jit
def _uuid(data, p, end, little, out, st):
    """Write a UUID as length-prefixed text; its two halves are i64, little-endian in Kryo 5 and zigzag in 2.24."""
    o = put4(out, st[WRITTEN], np.int64(36))
    for half in range(2):
        if little:
            if end - p < 8:
                return np.int64(UNSERVED)
            bits = np.int64(0)
            for k in range(8):
                bits |= np.int64(data[p + k]) << (8 * k)
            p += 8
        else:
            bits, p = read_long(data, p, end)
            if p < 0:
                return np.int64(UNSERVED)
            bits = unzigzag(bits)
        for k in range(16):
            if k % 4 == 0 and ((half == 0 and k >= 8) or (half == 1 and k <= 4)):
                out[o] = 0x2D
                o += 1
            out[o] = _HEX[(bits >> (60 - 4 * k)) & 0xF]
            o += 1
    st[WRITTEN] = o
    return np.int64(p)


@jit
def write_leaf(data, kind, size, little, p, end, out, st):
    """Write a leaf value of ``kind``; ``size`` is the number of constants of an enum."""
    if kind == TEXT:
        return write_text(data, p, end, out, st)
    if kind == INT or kind == ENUM:
        v, p = read_number(data, p, end)
        v = v - 1 if kind == ENUM else unzigzag(v)
        if p < 0 or (kind == ENUM and (v < 0 or v >= size)):
            return np.int64(UNSERVED)
        st[WRITTEN] = put4(out, st[WRITTEN], v)
        return p
    if kind == LONG or kind == MILLIS:
        v, p = read_long(data, p, end)
        if p < 0 or (kind == MILLIS and v == _I64_MIN):
            return np.int64(UNSERVED)
        st[WRITTEN] = put8(out, st[WRITTEN], unzigzag(v) if kind == LONG else v)
        return p
    if kind == BOOL:
        if p >= end or data[p] > 1:
            return np.int64(UNSERVED)
        return _fixed(data, p, end, 1, False, out, st)
    if kind == I8:
        return _fixed(data, p, end, 1, False, out, st)
    if kind == I16 or kind == CHAR:
        return _fixed(data, p, end, 2, little, out, st)
    if kind == F32:
        return _fixed(data, p, end, 4, little, out, st)
    if kind == F64:
        return _fixed(data, p, end, 8, little, out, st)
    if kind == BYTES:
        return write_counted(data, p, end, 0, out, st)
    if kind == BIG_INT or kind == BIG_DEC:
        before = st[WRITTEN]
        p = write_counted(data, p, end, 4, out, st)
        if p < 0 or st[WRITTEN] == before + 4:
            return p if p < 0 else np.int64(UNSERVED)
        if kind == BIG_DEC:
            scale, p = read_number(data, p, end)
            if p < 0:
                return np.int64(UNSERVED)
            if st[WRITTEN] + 4 > out.shape[0]:
                return np.int64(FULL)
            st[WRITTEN] = put4(out, st[WRITTEN], unzigzag(scale))
        return p
    if kind == DATE:
        return _date(data, p, end, little, out, st)
    if kind == TIME:
        return _time(data, p, end, little, out, st)
    if kind == DATE_TIME:
        return _date_time(data, p, end, little, out, st)
    if kind == UUID:
        return _uuid(data, p, end, little, out, st)
    if kind == INSTANT or kind == TIMESTAMP:
        return _instant(data, kind, p, end, little, out, st)
    return np.int64(UNKNOWN)
