"""Kernels over the entries of canonical key groups: find them, split their keys, compare them.

A canonical key group is: u2 state id; entries of i4 key length, key, i4 value length, value; the last entry of a state has
bit 0x80 of its first key byte set and is followed by the u2 id of the next state, FFFF for none.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import BAD_FLAG, OK, TRUNCATED
from statetool.kernels.jit import jit

FULL: Final = 100
BAD_PREFIX: Final = 101
BAD_STATE: Final = 102
BAD_LENGTH: Final = 103
TRAILING: Final = 104

WALK_MESSAGES: Final = {
    TRUNCATED: "the key group ends inside an entry",
    BAD_PREFIX: "a key does not start with the number of its key group",
    BAD_STATE: "a state id that the header does not have",
    BAD_LENGTH: "an entry whose length does not fit its key group",
    TRAILING: "bytes trail after the end of the key group",
}


@jit
def _i4(data, p):  # type: ignore[no-untyped-def]
    q = np.uint64(p)
    a, b = np.uint32(data[q]), np.uint32(data[q + np.uint64(1)])
    c, d = np.uint32(data[q + np.uint64(2)]), np.uint32(data[q + np.uint64(3)])
    return np.int64(np.int32(a << np.uint32(24) | b << np.uint32(16) | c << np.uint32(8) | d))


@jit
def walk(data, starts, ends, numbers, prefix, states, cursor, limit, state, group, key, key_end, value, value_end):  # type: ignore[no-untyped-def]
    """Collect entries of key groups that lie in ``data``.

    Parameters
    ----------
    data
        uint8[:].
    starts, ends, numbers
        int64[k]: bytes of each key group (``ends`` may lie beyond ``limit``), and its number.
    prefix
        Bytes of the key-group prefix, 1 or 2.
    states
        Number of states in the header.
    cursor
        int64[3], in and out: index of the key group, position of the next entry (-1: its start), state id.
    limit
        Bytes of ``data`` that are there.
    state, group, key, key_end, value, value_end
        int64[n] out: state id, key group, and where key (behind its prefix) and value of each entry are.

    Returns
    -------
    code, count, position
        ``OK`` when all key groups are done, ``FULL`` when the outputs are full or ``data`` ends inside an entry of a key
        group that goes on; else what is wrong at ``position``.
    """
    n = 0
    while cursor[0] < starts.shape[0]:
        k = cursor[0]
        end = ends[k]
        p = cursor[1]
        if p < 0:
            p = starts[k]
            if p + 2 > limit:
                return (FULL if end > limit else TRUNCATED), n, p
            cursor[2] = np.int64(data[p]) << 8 | np.int64(data[p + 1])
            if cursor[2] >= states:
                return BAD_STATE, n, p
            p += 2
            cursor[1] = p
        while True:
            if n == state.shape[0]:
                return FULL, n, p
            if p + 4 > end:
                return TRUNCATED, n, p
            if p + 4 > limit:
                return FULL, n, p
            key_size = _i4(data, p)
            if key_size < prefix or p + 8 + key_size > end:
                return BAD_LENGTH, n, p
            if p + 8 + key_size > limit:
                return FULL, n, p
            q = p + 4 + key_size
            value_size = _i4(data, q)
            if value_size < 0 or q + 4 + value_size > end:
                return BAD_LENGTH, n, q
            stop = q + 4 + value_size
            first = data[p + 4]
            last = first >= 0x80
            if stop + (2 if last else 0) > limit:
                if end > limit:
                    return FULL, n, p
                return TRUNCATED, n, p
            number = np.int64(first & 0x7F)
            if prefix == 2:
                number = number << 8 | np.int64(data[p + 5])
            if number != numbers[k]:
                return BAD_PREFIX, n, p + 4
            state[n] = cursor[2]
            group[n] = number
            key[n] = p + 4 + prefix
            key_end[n] = q
            value[n] = q + 4
            value_end[n] = stop
            n += 1
            p = stop
            if last:
                if p + 2 > end:
                    return TRUNCATED, n, p
                following = np.int64(data[p]) << 8 | np.int64(data[p + 1])
                p += 2
                if following == 0xFFFF:
                    if p != end:
                        return TRAILING, n, p
                    break
                if following >= states:
                    return BAD_STATE, n, p - 2
                cursor[2] = following
            cursor[1] = p
        cursor[0] = k + 1
        cursor[1] = -1
    return OK, n, np.int64(0)


@jit
def skip_length_markers(data, start, stop, end, after):  # type: ignore[no-untyped-def]
    """Step over the length behind ambiguous keys: little-endian base 256 of ``stop - start``, at least one byte."""
    for i in range(start.shape[0]):
        left = stop[i] - start[i]
        p = stop[i]
        while True:
            if p >= end[i]:
                return TRUNCATED, i
            if data[p] != left & 0xFF:
                return BAD_FLAG, i
            p += 1
            left >>= 8
            if left == 0:
                break
        after[i] = p
    return OK, 0


@jit
def _compare(data, a, a_end, other, b, b_end):  # type: ignore[no-untyped-def]
    """Return less than, equal to or more than 0 as the first byte range sorts before, with or after the second."""
    for k in range(min(a_end - a, b_end - b)):
        if data[a + k] != other[b + k]:
            return np.int64(data[a + k]) - np.int64(other[b + k])
    return (a_end - a) - (b_end - b)


@jit
def descent(data, start, end):  # type: ignore[no-untyped-def]
    """Return the index of the first byte range that sorts before the one ahead of it, 0 where there is none."""
    for i in range(1, start.shape[0]):
        if _compare(data, start[i - 1], end[i - 1], data, start[i], end[i]) > 0:
            return i
    return 0


@jit
def count_below(data, start, end, bound):  # type: ignore[no-untyped-def]
    """Return how many of the ascending byte ranges sort before ``bound``."""
    low, high = 0, start.shape[0]
    while low < high:
        middle = (low + high) // 2
        if _compare(data, start[middle], end[middle], bound, 0, bound.shape[0]) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def match_range(data, start, end, wanted, out):  # type: ignore[no-untyped-def]
    """Set ``out`` uint8[n] where the bytes equal ``wanted``."""
    for i in range(start.shape[0]):
        if end[i] - start[i] != wanted.shape[0]:
            continue
        same = True
        for k in range(wanted.shape[0]):
            if data[start[i] + k] != wanted[k]:
                same = False
                break
        if same:
            out[i] = 1
    return OK, 0
