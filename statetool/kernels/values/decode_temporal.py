"""Kernels for dates and times, all of fixed size.

Arguments as in :mod:`statetool.kernels.values.decode_fixed`. Layouts: :class:`statetool.kernels.values.program.Temporal`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.codes import BAD_TEMPORAL, DATE_RANGE, OK, RANGE, TRUNCATED
from statetool.kernels.core.jit import jit
from statetool.kernels.values.decode_fixed import read_i4, read_i8

_MILLIS, _MILLIS_NANOS, _SECONDS_NANOS, _DATE, _TIME, _DATE_TIME = range(6)
_I64_MIN: Final = -(1 << 63)
_I32_MIN: Final = -(1 << 31)


@jit
def _days(year, month, day):
    """Return the days from 1970-01-01 to a date of the proleptic Gregorian calendar."""
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    yoe = y - era * 400
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


@jit
def _month_days(year, month):
    """Return the number of days in a month."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@jit
def read_date(data, p):
    """Return ``(code, is null, days since 1970-01-01)`` of the LocalDate at ``p`` (uint64)."""
    year = read_i4(data, p)
    month = np.int64(data[p + np.uint64(4)])
    day = np.int64(data[p + np.uint64(5)])
    if year == _I32_MIN:
        return (OK if month == 0x80 and day == 0 else BAD_TEMPORAL), True, np.int64(0)
    if month < 1 or month > 12 or day < 1 or day > _month_days(year, month):
        return BAD_TEMPORAL, False, np.int64(0)
    return OK, False, _days(year, month, day)


@jit
def read_time(data, p):
    """Return ``(code, is null, second of day, nano of second)`` of the LocalTime at ``p`` (uint64)."""
    hour = np.int64(data[p])
    minute = np.int64(data[p + np.uint64(1)])
    second = np.int64(data[p + np.uint64(2)])
    nano = read_i4(data, p + np.uint64(3))
    if hour == 0x80:
        right = minute == 0x80 and second == 0 and nano == _I32_MIN
        return (OK if right else BAD_TEMPORAL), True, np.int64(0), np.int64(0)
    if hour > 23 or minute > 59 or second > 59 or nano < 0 or nano > 999999999:
        return BAD_TEMPORAL, False, np.int64(0), np.int64(0)
    return OK, False, (hour * 60 + minute) * 60 + second, nano


@jit
def _micros(seconds, nano):
    """Return ``(code, epoch micros)``; no intermediate result overflows."""
    micro = nano // 1000
    if seconds < 0:
        seconds += 1
        micro -= 1000000
    if seconds > 9223372036854 or seconds < -9223372036854:
        return RANGE, np.int64(0)
    if (seconds == 9223372036854 and micro > 775807) or (seconds == -9223372036854 and micro < -775808):
        return RANGE, np.int64(0)
    return OK, seconds * 1000000 + micro


@jit
def _load_instant(data, p, kind):
    """Return ``(code, is null, epoch micros, nanos below the microsecond)`` for the first three kinds."""
    v = read_i8(data, p)
    zero = np.int64(0)
    if kind == _MILLIS:
        if v == _I64_MIN:
            return OK, True, zero, zero
        if v > 9223372036854775 or v < -9223372036854775:
            return RANGE, False, zero, zero
        return OK, False, v * 1000, zero
    nano = read_i4(data, p + np.uint64(8))
    if v == _I64_MIN and nano == (0 if kind == _MILLIS_NANOS else _I32_MIN):
        return OK, True, zero, zero
    if nano < 0 or nano > 999999999:
        return BAD_TEMPORAL, False, zero, zero
    if kind == _MILLIS_NANOS:
        if v == _I64_MIN or nano // 1000000 != v % 1000:
            return BAD_TEMPORAL, False, zero, zero
        v = v // 1000
    code, micros = _micros(v, nano)
    return code, False, micros, nano % 1000


@jit
def _load_date_time(data, p):
    """Return ``(code, is null, micros since 1970-01-01T00:00, nanos below the microsecond)`` of a LocalDateTime."""
    code, no_date, days = read_date(data, p)
    zero = np.int64(0)
    if code != OK:
        return code, False, zero, zero
    code, no_time, second, nano = read_time(data, p + np.uint64(6))
    if code != OK or no_date != no_time:
        return BAD_TEMPORAL, False, zero, zero
    if no_date:
        return OK, True, zero, zero
    code, micros = _micros(days * 86400 + second, nano)
    return code, False, micros, nano % 1000


@jit
def load_temporal(data, pos, end, kind, size, out, below, valid, after):
    """Load temporal values: epoch micros (``date``: days, ``time``: nanos of day) into ``out`` int64[n].

    ``below`` int32[n] receives the nanos below the microsecond. ``kind`` indexes ``TEMPORAL_KINDS``.
    """
    for i in range(pos.shape[0]):
        after[i] = pos[i] + size
        if after[i] > end[i]:
            return TRUNCATED, i
        p = np.uint64(pos[i])
        nano = np.int64(0)
        if kind <= _SECONDS_NANOS:
            code, null, value, nano = _load_instant(data, p, kind)
        elif kind == _DATE_TIME:
            code, null, value, nano = _load_date_time(data, p)
        elif kind == _DATE:
            code, null, value = read_date(data, p)
            if value > 2147483647 or value < -2147483648:
                code = DATE_RANGE
        else:
            code, null, second, nano = read_time(data, p)
            value = second * 1000000000 + nano
            nano = np.int64(0)
        if code != OK:
            return code, i
        out[i] = value
        below[i] = nano
        valid[i] = 0 if null else 1
    return OK, 0
