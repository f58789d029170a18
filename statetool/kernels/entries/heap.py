"""Entries of key groups in the layout of the heap backend, with their keys reassembled as canonical composite keys.

A key group is an i4 number, then sections of u2 state id, i4 number of entries, entries. An entry of a value, list or map is namespace, key
and value back to back. A list is an i4 count and its elements. A map is an i4 count, then per entry the key, a u1 null flag and the value.
A timer is its element alone. Entries have no length prefix: their parts are found by skip programs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import BAD_COUNT, OK, TRUNCATED, UNKNOWN_OPERATION
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import copy_bytes
from statetool.kernels.entries.layout import SEPARATOR
from statetool.kernels.entries.walk import BAD_LENGTH, BAD_PREFIX, BAD_STATE, FULL, put_row
from statetool.kernels.values.decode_fixed import read_i4, read_u2
from statetool.kernels.values.skip import skip_one
from statetool.kernels.values.skip_program import Program

#: An entry that is damaged, or whose end only its serializers can find.
SLOW: Final = 200
MORE_ROWS: Final = 201
MORE_BYTES: Final = 202

VALUE, LIST, MAP, TIMERS, UNKNOWN = range(5)
#: Columns of ``StatePrograms.states``.
KIND, AMBIGUOUS, NAMESPACE, FIRST, SECOND = range(5)
#: Slots of the cursor: key group, position (-1: its start), state (-1: between sections), entries left, bytes used in ``buf``.
GROUP, POSITION, STATE, LEFT, USED = range(5)

MAX_MARKER: Final = 8
_MAX_EMPTY_ELEMENTS: Final = 1 << 20


class StatePrograms(NamedTuple):
    """Skip programs for the parts of a stream's entries.

    ``words`` holds the skip programs one after another; ``key`` is the start of the key's program, -1 if kernels cannot skip keys.
    ``states`` int64[states, 5]: kind; 1 if keys are ambiguous (the lengths of key and namespace follow them); and the starts of the
    programs for the namespace, for the value (or a list's element, a map's key, a timer), and for a map's value.
    """

    words: Program
    key: int
    states: Int64s


@inlined
def _put_marker(buf, o, size):
    """Write the length that follows an ambiguous key or namespace: little-endian base 256, at least one byte."""
    while True:
        buf[o] = size & 0xFF
        o += 1
        size >>= 8
        if size == 0:
            return o


@inlined
def put_part(data, start, stop, ambiguous, buf, o):
    """Write a key or namespace in its composite-key form, and return the position after it."""
    o = copy_bytes(data, start, stop - start, buf, o)
    return _put_marker(buf, o, stop - start) if ambiguous else o


@inlined
def _fail(negative, limit, end):
    """Return the code for an unread entry: it needs more room, more data, or the serializers."""
    code = -negative
    if code == MORE_ROWS or code == MORE_BYTES or code == UNKNOWN_OPERATION:
        return code
    return np.int64(FULL if limit < end and (code == TRUNCATED or code == BAD_COUNT) else SLOW)


@inlined
def _count(data, p, stop):
    """Read the count of a list or map; return the negated error code if it is not valid."""
    if p + 4 > stop:
        return np.int64(-TRUNCATED)
    n = read_i4(data, np.uint64(p))
    return n if n >= 0 else np.int64(-SLOW)


@inlined
def _put_entry(data, p, q, r, state, group, ambiguous, value, value_end, cursor, o, buf, rows, n):
    """Write the entry of a value or list: namespace ``p .. q``, key ``q .. r``, its value in ``buf``, ``o`` bytes of which are used."""
    key = o if ambiguous else p
    key_end = put_part(data, p, q, ambiguous, buf, put_part(data, q, r, ambiguous, buf, key))
    cursor[USED] = key_end if ambiguous else o
    return put_row(rows, n, state, group, key, key_end, value, value_end)


# Kernels that read one entry return the position after it, or the negated error code, and the number of rows. The namespace of the entry is
# p .. q, its key q .. r, and it ends before ``stop``.


@inlined
def _read_value(data, programs, state, group, p, q, r, stop, cursor, buf, rows, n):
    """Read a value, which is not moved."""
    o = cursor[USED]
    s = skip_one(data, programs.words, programs.states[state, FIRST], r, stop)
    if s < 0:
        return s, n
    if o + r - p + 2 * MAX_MARKER > buf.shape[0]:
        return np.int64(-MORE_BYTES), n
    ambiguous = programs.states[state, AMBIGUOUS] != 0
    return s, _put_entry(data, p, q, r, state, group, ambiguous, r, s, cursor, o, buf, rows, n)


@inlined
def _read_list(data, programs, state, group, p, q, r, stop, cursor, buf, rows, n):
    """Read a list. A single element is not moved; several are joined by commas after the used bytes of ``buf``."""
    count = _count(data, r, stop)
    if count < 0:
        return count, n
    o = cursor[USED]
    room = buf.shape[0] - (r - p) - 2 * MAX_MARKER
    if o > room:
        return np.int64(-MORE_BYTES), n
    s = r + 4
    first = s if count == 1 else o
    for i in range(count):
        u = skip_one(data, programs.words, programs.states[state, FIRST], s, stop)
        if u < 0:
            return u, n
        if u == s and count > _MAX_EMPTY_ELEMENTS:
            return np.int64(-SLOW), n
        if count > 1:
            if o + u - s + 1 > room:
                return np.int64(-MORE_BYTES), n
            if i > 0:
                buf[o] = SEPARATOR
                o += 1
            o = copy_bytes(data, s, u - s, buf, o)
        s = u
    if count > 0:
        ambiguous = programs.states[state, AMBIGUOUS] != 0
        last = s if count == 1 else o
        n = _put_entry(data, p, q, r, state, group, ambiguous, first, last, cursor, o, buf, rows, n)
    return s, n


@inlined
def _read_map(data, programs, state, group, p, q, r, stop, cursor, buf, rows, n):
    """Read a map, which becomes one row per map key."""
    count = _count(data, r, stop)
    if count < 0:
        return count, n
    o = cursor[USED]
    ambiguous = programs.states[state, AMBIGUOUS] != 0
    s = r + 4
    for _ in range(count):
        u = skip_one(data, programs.words, programs.states[state, FIRST], s, stop)
        if u < 0 or u >= stop:
            return u if u < 0 else np.int64(-TRUNCATED), n
        if data[u] > 1:
            return np.int64(-SLOW), n
        v = u + 1
        if data[u] == 0:
            v = skip_one(data, programs.words, programs.states[state, SECOND], v, stop)
            if v < 0:
                return v, n
        if n == rows.state.shape[0]:
            return np.int64(-MORE_ROWS), n
        if o + r - p + 2 * MAX_MARKER + u - s > buf.shape[0]:
            return np.int64(-MORE_BYTES), n
        key = o
        o = put_part(data, p, q, ambiguous, buf, put_part(data, q, r, ambiguous, buf, o))
        o = copy_bytes(data, s, u - s, buf, o)
        n = put_row(rows, n, state, group, key, o, u, v)
        s = v
    cursor[USED] = o
    return s, n


@inlined
def _read_entry(data, programs, state, group, stop, cursor, buf, rows, n):
    """Read the entry at the cursor, whatever the kind of its state."""
    p = cursor[POSITION]
    kind = programs.states[state, KIND]
    if kind == TIMERS:
        s = skip_one(data, programs.words, programs.states[state, FIRST], p, stop)
        return s, n if s < 0 else put_row(rows, n, state, group, p, s, s, s)
    q = skip_one(data, programs.words, programs.states[state, NAMESPACE], p, stop)
    r = q if q < 0 else skip_one(data, programs.words, programs.key, q, stop)
    if r < 0:
        return r, n
    if kind == VALUE:
        return _read_value(data, programs, state, group, p, q, r, stop, cursor, buf, rows, n)
    if kind == LIST:
        return _read_list(data, programs, state, group, p, q, r, stop, cursor, buf, rows, n)
    if kind == MAP:
        return _read_map(data, programs, state, group, p, q, r, stop, cursor, buf, rows, n)
    return np.int64(-UNKNOWN_OPERATION), n


@inlined
def _read_section(data, limit, groups, programs, cursor, buf, rows, n):
    """Read the remaining entries of a state; return code and number of rows."""
    state, group, end = cursor[STATE], groups.numbers[cursor[GROUP]], groups.ends[cursor[GROUP]]
    if programs.states[state, KIND] == UNKNOWN and cursor[LEFT] > 0:
        return np.int64(SLOW), n
    stop = min(end, limit)
    while cursor[LEFT] > 0:
        if n == rows.state.shape[0]:
            return np.int64(MORE_ROWS), n
        s, after = _read_entry(data, programs, state, group, stop, cursor, buf, rows, n)
        if s < 0:
            return _fail(s, limit, end), n
        n = after
        cursor[POSITION] = s
        cursor[LEFT] -= 1
    cursor[STATE] = -1
    return np.int64(OK), n


@inlined
def _open_group(data, limit, groups, seen, cursor):
    """Skip the number of a key group."""
    k = cursor[GROUP]
    p = groups.starts[k]
    if p + 4 > groups.ends[k]:
        return np.int64(BAD_LENGTH)
    if p + 4 > limit:
        return np.int64(FULL)
    if read_i4(data, np.uint64(p)) != groups.numbers[k]:
        return np.int64(BAD_PREFIX)
    cursor[POSITION] = p + 4
    cursor[STATE] = -1
    seen[:] = 0
    return np.int64(OK)


@inlined
def _open_section(data, limit, groups, seen, cursor):
    """Skip the header of the next section, or advance from the end of a key group to the next one."""
    p, end = cursor[POSITION], groups.ends[cursor[GROUP]]
    if p == end:
        cursor[GROUP] += 1
        cursor[POSITION] = -1
        return np.int64(OK)
    if p + 6 > end:
        return np.int64(BAD_LENGTH)
    if p + 6 > limit:
        return np.int64(FULL)
    state = read_u2(data, np.uint64(p))
    count = read_i4(data, np.uint64(p + 2))
    if state >= seen.shape[0] or seen[state] != 0:
        return np.int64(BAD_STATE)
    if count < 0 or count > end - p - 6:
        return np.int64(BAD_LENGTH)
    seen[state] = 1
    cursor[STATE] = state
    cursor[LEFT] = count
    cursor[POSITION] = p + 6
    return np.int64(OK)


@jit
def walk_heap(data, limit, groups, programs, seen, cursor, buf, rows):
    """Collect the entries of the key groups in ``data``.

    Parameters
    ----------
    data
        uint8[:]; the first ``limit`` bytes are valid.
    groups, programs
        :class:`~statetool.kernels.entries.walk.KeyGroups`, :class:`StatePrograms`.
    seen
        uint8[states], in and out: the states seen so far in the current key group.
    cursor
        int64[5], in and out. It points to an entry, or between sections, whatever the code.
    buf
        uint8[:], in and out: it starts with a copy of ``data``. Keys and lists in a changed layout are written after that.
    rows
        :class:`~statetool.kernels.entries.walk.Rows` in ``buf``, out.

    Returns
    -------
    code, count
        ``OK`` when all key groups are done, ``FULL`` if ``data`` ends inside an unfinished key group, ``SLOW`` at an entry for the
        serializers, ``MORE_ROWS`` and ``MORE_BYTES`` if the outputs are full; otherwise the error at the cursor.
    """
    n = np.int64(0)
    while cursor[GROUP] < groups.starts.shape[0]:
        if cursor[POSITION] < 0:
            code = _open_group(data, limit, groups, seen, cursor)
        elif cursor[STATE] < 0:
            code = _open_section(data, limit, groups, seen, cursor)
        else:
            code, n = _read_section(data, limit, groups, programs, cursor, buf, rows, n)
        if code != OK:
            return code, n
    return np.int64(OK), n
