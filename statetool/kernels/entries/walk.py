"""Kernels over the entries of canonical key groups: find them, split their keys, compare them.

A canonical key group is a u2 state id, then entries of i4 key length, key, i4 value length, value. The last entry of a state has bit 0x80
of its first key byte set and is followed by the u2 id of the next state, FFFF if none follows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import BAD_FLAG, OK, TRUNCATED
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import compare
from statetool.kernels.values.decode_fixed import read_i4, read_u2

FULL: Final = 100
BAD_PREFIX: Final = 101
BAD_STATE: Final = 102
BAD_LENGTH: Final = 103
TRAILING: Final = 104
#: Stored in place of a state id after the last entry of a key group.
NO_STATE: Final = 0xFFFF

WALK_MESSAGES: Final = {
    TRUNCATED: "the key group ends inside an entry",
    BAD_PREFIX: "a key does not start with the number of its key group",
    BAD_STATE: "a state id that the header does not have",
    BAD_LENGTH: "an entry whose length does not fit its key group",
    TRAILING: "bytes trail after the end of the key group",
}


#: Slots of the cursor of :func:`walk`: key group, position of the next entry (-1: the key group's start), state id.
GROUP, POSITION, STATE = range(3)


class KeyGroups(NamedTuple):
    """Key groups: int64[k] each, first byte, first byte after (possibly after the end of the available bytes), number."""

    starts: Int64s
    ends: Int64s
    numbers: Int64s


class Rows(NamedTuple):
    """Entries: int64[n] each, state id, key group, and the ranges of key and value."""

    state: Int64s
    group: Int64s
    key: Int64s
    key_end: Int64s
    value: Int64s
    value_end: Int64s


@inlined
def put_row(rows, n, state, group, key, key_end, value, value_end):
    """Write row ``n`` of ``rows`` and return the index of the next."""
    rows.state[n] = state
    rows.group[n] = group
    rows.key[n] = key
    rows.key_end[n] = key_end
    rows.value[n] = value
    rows.value_end[n] = value_end
    return n + 1


@inlined
def open_group(data, limit, groups, states, cursor):
    """Skip the first state id of a key group; return code and position."""
    p, end = groups.starts[cursor[GROUP]], groups.ends[cursor[GROUP]]
    if p + 2 > limit:
        return np.int64(FULL if end > limit else TRUNCATED), p
    cursor[STATE] = read_u2(data, np.uint64(p))
    if cursor[STATE] >= states:
        return np.int64(BAD_STATE), p
    cursor[POSITION] = p + 2
    return np.int64(OK), p


@inlined
def measure_entry(data, p, limit, end, wanted, prefix):
    """Find the end of the entry at ``p`` of a key group with number ``wanted`` that ends at ``end``.

    Returns
    -------
    code, position, key_end, last
        Position after the entry, or of the error; the end of its key; whether the entry is the last one of its state.
    """
    none = np.int64(-1)
    if p + 4 > end:
        return np.int64(TRUNCATED), p, none, False
    if p + 4 > limit:
        return np.int64(FULL), p, none, False
    key_size = read_i4(data, np.uint64(p))
    if key_size < prefix or p + 8 + key_size > end:
        return np.int64(BAD_LENGTH), p, none, False
    if p + 8 + key_size > limit:
        return np.int64(FULL), p, none, False
    q = p + 4 + key_size
    value_size = read_i4(data, np.uint64(q))
    if value_size < 0 or q + 4 + value_size > end:
        return np.int64(BAD_LENGTH), q, none, False
    stop = q + 4 + value_size
    first = data[p + 4]
    last = first >= 0x80
    if stop + (2 if last else 0) > limit:
        return np.int64(FULL if end > limit else TRUNCATED), p, none, last
    number = np.int64(first & 0x7F)
    if prefix == 2:
        number = number << 8 | np.int64(data[p + 5])
    if number != wanted:
        return np.int64(BAD_PREFIX), p + 4, none, last
    return np.int64(OK), stop, q, last


@inlined
def close_state(data, groups, states, cursor):
    """Skip the bytes after the last entry of a state; return code and position."""
    p, end = cursor[POSITION], groups.ends[cursor[GROUP]]
    if p + 2 > end:
        return np.int64(TRUNCATED), p
    following = read_u2(data, np.uint64(p))
    if following == NO_STATE:
        if p + 2 != end:
            return np.int64(TRAILING), p + 2
        cursor[GROUP] += 1
        cursor[POSITION] = -1
    elif following >= states:
        return np.int64(BAD_STATE), p
    else:
        cursor[STATE] = following
        cursor[POSITION] = p + 2
    return np.int64(OK), p


@jit
def walk(data, limit, groups, prefix, states, cursor, rows):
    """Collect the entries of the key groups in ``data``.

    Parameters
    ----------
    data
        uint8[:]; the first ``limit`` bytes are valid.
    groups
        :class:`KeyGroups`.
    prefix
        Bytes of the key-group prefix, 1 or 2.
    states
        Number of states in the header.
    cursor
        int64[3], in and out.
    rows
        :class:`Rows`, out; key ranges start after the prefix.

    Returns
    -------
    code, count, position
        ``OK`` when all key groups are done, ``FULL`` if the outputs are full or ``data`` ends inside an entry of an unfinished key group;
        otherwise the error at ``position``.
    """
    n = 0
    while cursor[GROUP] < groups.starts.shape[0]:
        if cursor[POSITION] < 0:
            code, p = open_group(data, limit, groups, states, cursor)
            if code != OK:
                return code, n, p
        end, number, state = groups.ends[cursor[GROUP]], groups.numbers[cursor[GROUP]], cursor[STATE]
        p, last = cursor[POSITION], False
        while not last:
            if n == rows.state.shape[0]:
                return np.int64(FULL), n, p
            start = p + 4 + prefix
            code, p, key_end, last = measure_entry(data, p, limit, end, number, prefix)
            if code != OK:
                return code, n, p
            n = put_row(rows, n, state, number, start, key_end, key_end + 4, p)
            cursor[POSITION] = p
        code, p = close_state(data, groups, states, cursor)
        if code != OK:
            return code, n, p
    return np.int64(OK), n, np.int64(0)


@inlined
def _known_entry(data, p, stop, wanted, prefix):
    """Return the end of the key of an entry whose end is known, -1 if it does not end there."""
    key_end = np.int64(-1)
    key_size = read_i4(data, np.uint64(p))
    if prefix <= key_size <= stop - p - 8:
        number = np.int64(data[np.uint64(p + 4)] & 0x7F)
        if prefix == 2:
            number = number << 8 | np.int64(data[np.uint64(p + 5)])
        q = p + 4 + key_size
        if number == wanted and read_i4(data, np.uint64(q)) == stop - q - 4:
            key_end = q
    return key_end


@jit
def rows_at(data, starts, shift, stride, skipped, end, wanted, prefix, state, rows):
    """Read entries of one state whose places are known.

    Parameters
    ----------
    data
        uint8[:].
    starts
        int64[m]: every ``stride``-th entry, which begins at ``starts[i] + shift`` of ``data``.
    skipped
        Number of entries to leave out at the beginning, less than ``stride``.
    end
        The end of the last entry that may be read; four more bytes are in ``data``.
    wanted
        The number of the key group.
    prefix, state
        As in :func:`walk`; the id of the state.
    rows
        :class:`Rows`, out. All are filled.

    Returns
    -------
    1 if the entries are at these places, otherwise 0
    """
    n = -skipped
    for i in range(starts.shape[0]):
        p, known = starts[i] + shift, end
        if i + 1 < starts.shape[0]:
            known = starts[i + 1] + shift
        for k in range(stride):
            if p == known or n == rows.state.shape[0]:
                break
            stop = known
            if k + 1 < stride:  # the ends of the last of these entries only are known
                code, stop, _, _ = measure_entry(data, p, known + 2, known + 2, wanted, prefix)
                if code != OK or stop > known:
                    return 0
            q = _known_entry(data, p, stop, wanted, prefix)
            if q < 0:
                return 0
            if n >= 0:
                put_row(rows, np.uint64(n), state, wanted, p + 4 + prefix, q, q + 4, stop)
            n += 1
            p = stop
    return 1 if n == rows.state.shape[0] else 0


@inlined
def _copy_run(source, first, n, out, o):
    """Copy ``n`` numbers from ``first`` on to ``o``; compiled, several at a time."""
    for k in range(np.uint64(n)):
        out[np.uint64(o) + np.uint64(k)] = source[np.uint64(first) + np.uint64(k)]


@jit
def deal_rows(state, rows, starts, places, dealt):
    """Sort the entries of a batch by state, unless they are; those of one state keep their order.

    Parameters
    ----------
    state, rows
        int64[n] and :class:`Rows`: the ids of the states, and the entries.
    starts
        int64[m + 1], all zero, out: the start of each state, and n. m exceeds every id.
    places
        int64[m + 1], scratch.
    dealt
        :class:`Rows`, out, unless the states already ascend.

    Returns
    -------
    1 if the states ascend, otherwise 0
    """
    ascending = 1
    n = state.shape[0]
    i = 0
    while i < n:
        first, s = i, state[i]
        while i < n and state[i] == s:
            i += 1
        starts[s + 1] += i - first
        if first > 0 and s < state[first - 1]:
            ascending = 0
    for k in range(1, starts.shape[0]):
        starts[k] += starts[k - 1]
    if ascending:
        return ascending
    for k in range(starts.shape[0]):
        places[k] = starts[k]
    i = 0
    while i < n:
        first, s = i, state[i]
        o = places[s]
        while i < n and state[i] == s:
            dealt.state[np.uint64(o + i - first)] = s
            i += 1
        _copy_run(rows.group, first, i - first, dealt.group, o)
        _copy_run(rows.key, first, i - first, dealt.key, o)
        _copy_run(rows.key_end, first, i - first, dealt.key_end, o)
        _copy_run(rows.value, first, i - first, dealt.value, o)
        _copy_run(rows.value_end, first, i - first, dealt.value_end, o)
        places[s] = o + i - first
    return ascending


@jit
def skip_length_markers(data, start, stop, end, after):
    """Skip the length after ambiguous keys: little-endian base 256 of ``stop - start``, at least one byte."""
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
def descent(data, start, end):
    """Return the index of the first byte range that sorts before its predecessor, 0 if there is none."""
    for i in range(1, start.shape[0]):
        if compare(data, start[i - 1], end[i - 1], data, start[i], end[i]) > 0:
            return i
    return 0


@jit
def count_below(data, start, end, bound):
    """Return the number of ascending byte ranges that sort before ``bound``."""
    low, high = 0, start.shape[0]
    while low < high:
        middle = (low + high) // 2
        if compare(data, start[middle], end[middle], bound, np.int64(0), np.int64(bound.shape[0])) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def match_range(data, start, end, wanted, out):
    """Set ``out`` uint8[n] to 1 for ranges whose bytes equal ``wanted``."""
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
