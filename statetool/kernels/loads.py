"""Kernels that load primitives, strings, big numbers and dates at many positions.

Common arguments: ``data`` uint8[:] read-only; ``pos``, ``end`` int64[n], first byte of each value and first byte beyond
its frame; ``after`` int64[n] out, first byte behind each value. All return ``(code, index)``.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.codes import (
    BAD_BIG_NUMBER,
    BAD_COUNT,
    BAD_FLAG,
    BAD_TEMPORAL,
    BAD_UNIT,
    LONE_SURROGATE,
    OK,
    RANGE,
    TRUNCATED,
)
from statetool.kernels.jit import jit


@jit
def load_fixed(data, pos, end, size, out, after):  # type: ignore[no-untyped-def]
    """Load big-endian integers of ``size`` bytes (1, 2, 4, 8), sign-extended, into ``out`` int64[n]."""
    bits = 64 - 8 * size
    for i in range(pos.shape[0]):
        p = pos[i]
        if p + size > end[i]:
            return TRUNCATED, i
        v = np.uint64(0)
        for k in range(size):
            v = (v << np.uint64(8)) | np.uint64(data[p + k])
        out[i] = np.int64(v << np.uint64(bits)) >> np.int64(bits)
        after[i] = p + size
    return OK, 0


@jit
def load_flags(data, pos, end, out, after):  # type: ignore[no-untyped-def]
    """Load bytes that must be 0 or 1 into ``out`` uint8[n]."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if p >= end[i]:
            return TRUNCATED, i
        if data[p] > 1:
            return BAD_FLAG, i
        out[i] = data[p]
        after[i] = p + 1
    return OK, 0


@jit
def read_varint(data, p, end):  # type: ignore[no-untyped-def]
    """Return ``(value, position after)``; the position is -1 where the number is cut off or too long."""
    value = np.int64(0)
    shift = 0
    while True:
        if p >= end or shift > 28:
            return value, np.int64(-1)
        b = np.int64(data[p])
        p += 1
        value |= (b & 0x7F) << shift
        if b < 0x80:
            return value, np.int64(p)
        shift += 7


@jit
def text_sizes(data, pos, end, extra, sizes, starts, units, valid, after):  # type: ignore[no-untyped-def]
    """Measure Flink strings: UTF-8 bytes into ``sizes``, first unit's position into ``starts``, unit counts.

    ``extra`` is 1 where 0 means null (``valid`` uint8[n] tells), else 0.
    """
    for i in range(pos.shape[0]):
        n, p = read_varint(data, pos[i], end[i])
        if p < 0:
            return TRUNCATED, i
        n -= extra
        if n < 0:
            valid[i] = 0
            sizes[i] = 0
            units[i] = 0
            starts[i] = p
            after[i] = p
            continue
        valid[i] = 1
        if n > end[i] - p:
            return TRUNCATED, i
        starts[i] = p
        units[i] = n
        high = np.uint8(0)
        for k in range(p, p + n):
            high |= data[k]
        if high < 0x80:
            sizes[i] = n
            after[i] = p + n
            continue
        size = np.int64(0)
        pending = False
        for _ in range(n):
            u, p = read_varint(data, p, end[i])
            if p < 0:
                return TRUNCATED, i
            if u > 0xFFFF:
                return BAD_UNIT, i
            low = 0xDC00 <= u <= 0xDFFF
            if pending != low:
                return LONE_SURROGATE, i
            if low:
                size += 4
                pending = False
            elif 0xD800 <= u <= 0xDBFF:
                pending = True
            else:
                size += 1 if u < 0x80 else (2 if u < 0x800 else 3)
        if pending:
            return LONE_SURROGATE, i
        sizes[i] = size
        after[i] = p
    return OK, 0


@jit
def text_fill(data, starts, units, end, offsets, out):  # type: ignore[no-untyped-def]
    """Write measured strings as UTF-8 to ``out`` uint8[:] at ``offsets`` int32[n + 1]."""
    for i in range(starts.shape[0]):
        p = starts[i]
        o = offsets[i]
        n = units[i]
        if offsets[i + 1] - o == n:
            for k in range(n):
                out[o + k] = data[p + k]
            continue
        high = np.int64(0)
        for _ in range(n):
            u, p = read_varint(data, p, end[i])
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
    return OK, 0


@jit
def counted_sizes(data, pos, end, sizes, after):  # type: ignore[no-untyped-def]
    """Read i32 byte counts; ``after`` is behind the bytes."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if p + 4 > end[i]:
            return TRUNCATED, i
        n = np.int64(data[p]) << 24 | np.int64(data[p + 1]) << 16 | np.int64(data[p + 2]) << 8 | np.int64(data[p + 3])
        if n > end[i] - p - 4:
            return BAD_COUNT, i
        sizes[i] = n
        after[i] = p + 4 + n
    return OK, 0


@jit
def copy_bytes(data, starts, offsets, out):  # type: ignore[no-untyped-def]
    """Copy ``offsets[i + 1] - offsets[i]`` bytes from ``starts[i]`` for each i."""
    for i in range(starts.shape[0]):
        p = starts[i]
        o = offsets[i]
        for k in range(offsets[i + 1] - o):
            out[o + k] = data[p + k]
    return OK, 0


@jit
def big_integers(data, pos, end, out, valid, wide, after):  # type: ignore[no-untyped-def]
    """Read BigIntegers into ``out`` int64[n]; ``wide`` uint8[n] marks those of more than 8 bytes (``out`` unset)."""
    for i in range(pos.shape[0]):
        p = pos[i]
        if p + 4 > end[i]:
            return TRUNCATED, i
        n = np.int64(data[p]) << 24 | np.int64(data[p + 1]) << 16 | np.int64(data[p + 2]) << 8 | np.int64(data[p + 3])
        p += 4
        wide[i] = 0
        valid[i] = 1
        if n < 4:
            valid[i] = 1 if n > 0 else 0
            out[i] = 10 if n == 3 else (1 if n == 2 else 0)
            after[i] = p
            continue
        n -= 4
        if n == 0 or n > end[i] - p:
            return BAD_BIG_NUMBER, i
        after[i] = p + n
        if n > 8:
            wide[i] = 1
            continue
        v = np.int64(0) if data[p] < 0x80 else np.int64(-1)
        for k in range(n):
            v = (v << 8) | np.int64(data[p + k])
        out[i] = v
    return OK, 0


@jit
def scale_decimals(unscaled, scales, target, powers, low, high, valid, wide):  # type: ignore[no-untyped-def]
    """Bring 64-bit unscaled values to scale ``target`` as 128-bit two's complement (``low``, ``high`` int64[n]).

    ``powers`` uint64[20] are powers of ten. Those whose scale is not in ``target - 18 .. target`` are marked ``wide``.
    """
    for i in range(unscaled.shape[0]):
        if valid[i] == 0 or wide[i] == 1:
            continue
        up = target - scales[i]
        if up < 0 or up > 18 or unscaled[i] == np.int64(-9223372036854775808):
            wide[i] = 1
            continue
        negative = unscaled[i] < 0
        a = np.uint64(-unscaled[i] if negative else unscaled[i])
        b = powers[up]
        mask = np.uint64(0xFFFFFFFF)
        s = np.uint64(32)
        a0, a1, b0, b1 = a & mask, a >> s, b & mask, b >> s
        p00, p01, p10 = a0 * b0, a0 * b1, a1 * b0
        mid = (p00 >> s) + (p01 & mask) + (p10 & mask)
        lo = (p00 & mask) | (mid << s)
        hi = a1 * b1 + (p01 >> s) + (p10 >> s) + (mid >> s)
        if negative:
            lo = ~lo + np.uint64(1)
            hi = ~hi + (np.uint64(1) if lo == np.uint64(0) else np.uint64(0))
        low[i] = np.int64(lo)
        high[i] = np.int64(hi)
    return OK, 0


_MILLIS, _MILLIS_NANOS, _SECONDS_NANOS, _DATE, _TIME, _DATE_TIME = range(6)
TEMPORAL_KINDS = ("millis", "millis_nanos", "seconds_nanos", "date", "time", "date_time")
TEMPORAL_SIZES = (8, 12, 12, 6, 7, 13)


@jit
def _int(data, p, size):  # type: ignore[no-untyped-def]
    v = np.int64(0) if data[p] < 0x80 else np.int64(-1)
    for k in range(size):
        v = (v << 8) | np.int64(data[p + k])
    return v


@jit
def _days(year, month, day):  # type: ignore[no-untyped-def]
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


@jit
def _month_days(year, month):  # type: ignore[no-untyped-def]
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@jit
def load_temporal(data, pos, end, kind, size, out, below, valid, after):  # type: ignore[no-untyped-def]
    """Load temporal values: epoch micros (``date``: days, ``time``: nanos of day) into ``out`` int64[n].

    ``below`` int32[n] gets the nanos below the microsecond. ``kind`` indexes ``TEMPORAL_KINDS``.
    """
    lowest = np.int64(-9223372036854775808)
    for i in range(pos.shape[0]):
        p = pos[i]
        if p + size > end[i]:
            return TRUNCATED, i
        after[i] = p + size
        valid[i] = 1
        below[i] = 0
        out[i] = 0
        if kind <= _SECONDS_NANOS:
            v = _int(data, p, 8)
            if kind == _MILLIS:
                if v == lowest:
                    valid[i] = 0
                    continue
                if v > 9223372036854775 or v < -9223372036854775:
                    return RANGE, i
                out[i] = v * 1000
                continue
            nano = _int(data, p + 8, 4)
            if v == lowest and nano == (0 if kind == _MILLIS_NANOS else -2147483648):
                valid[i] = 0
                continue
            if nano < 0 or nano > 999999999:
                return BAD_TEMPORAL, i
            if kind == _MILLIS_NANOS:
                if nano // 1000000 != v % 1000:
                    return BAD_TEMPORAL, i
                v = v // 1000
            if v > 9223372036853 or v < -9223372036854:
                return RANGE, i
            out[i] = v * 1000000 + nano // 1000
            below[i] = nano % 1000
            continue
        days = np.int64(0)
        null_date = False
        if kind != _TIME:
            year = _int(data, p, 4)
            month = np.int64(data[p + 4])
            day = np.int64(data[p + 5])
            p += 6
            null_date = year == -2147483648
            if null_date:
                if month != 0x80 or day != 0:
                    return BAD_TEMPORAL, i
            else:
                if month < 1 or month > 12 or day < 1 or day > _month_days(year, month):
                    return BAD_TEMPORAL, i
                days = _days(year, month, day)
        if kind == _DATE:
            valid[i] = 0 if null_date else 1
            if days > 2147483647 or days < -2147483648:
                return RANGE, i
            out[i] = days
            continue
        hour = _int(data, p, 1)
        minute = _int(data, p + 1, 1)
        second = _int(data, p + 2, 1)
        nano = _int(data, p + 3, 4)
        if hour == -128:
            if minute != -128 or second != 0 or nano != -2147483648:
                return BAD_TEMPORAL, i
            if kind == _DATE_TIME and not null_date:
                return BAD_TEMPORAL, i
            valid[i] = 0
            continue
        if null_date or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
            return BAD_TEMPORAL, i
        if nano < 0 or nano > 999999999:
            return BAD_TEMPORAL, i
        seconds = (hour * 60 + minute) * 60 + second
        if kind == _TIME:
            out[i] = seconds * 1000000000 + nano
            continue
        if days > 106751990 or days < -106751990:
            return RANGE, i
        out[i] = (days * 86400 + seconds) * 1000000 + nano // 1000
        below[i] = nano % 1000
    return OK, 0
