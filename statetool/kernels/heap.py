"""Kernel over key groups in the layout of the heap backend: entries, with their keys put together as canonical ones.

A key group is: i4 its number; sections of u2 state id, i4 number of entries, entries. An entry is namespace, key and state back to back; a
timer is its element. Nothing frames an entry: its parts are found by skip programs.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import BAD_COUNT, OK, TRUNCATED
from statetool.kernels.decode_fixed import read_i4
from statetool.kernels.jit import jit
from statetool.kernels.skip import skip_one
from statetool.kernels.walk import BAD_LENGTH, BAD_PREFIX, BAD_STATE, FULL

#: An entry that only its serializers can find the end of, or that is damaged.
SLOW: Final = 200
MORE_ROWS: Final = 201
MORE_BYTES: Final = 202

VALUE, LIST, MAP, TIMERS, UNKNOWN = range(5)
#: Columns of ``states``: kind, whether keys are ambiguous, programs of namespace, value or element or map key, map value.
KIND, AMBIGUOUS, NAMESPACE, FIRST, SECOND = range(5)
#: Slots of the cursor: key group, position (-1: its start), state (-1: between sections), entries left, bytes used of ``buf``.
GROUP, POSITION, STATE, LEFT, USED = range(5)

_CUT: Final = -TRUNCATED
_COUNT: Final = -BAD_COUNT
_COMMA: Final = 0x2C
MAX_MARKER: Final = 8
_MAX_EMPTY_ELEMENTS: Final = 1 << 20


@jit
def copy_bytes(data, start, stop, buf, o):  # type: ignore[no-untyped-def]
    """Copy ``data[start:stop]`` to ``buf[o:]`` and return where it ends there."""
    a, q = np.uint64(start), np.uint64(o)
    for i in range(np.uint64(stop - start)):
        buf[q + i] = data[a + i]
    return o + stop - start


@jit
def put_marker(buf, o, size):  # type: ignore[no-untyped-def]
    while True:
        buf[o] = size & 0xFF
        o += 1
        size >>= 8
        if size == 0:
            return o


@jit
def _composite(data, p, q, r, ambiguous, buf, o):  # type: ignore[no-untyped-def]
    """Write key ``q .. r`` and namespace ``p .. q`` as they stand in a composite key."""
    o = copy_bytes(data, q, r, buf, o)
    if ambiguous:
        o = put_marker(buf, o, r - q)
    o = copy_bytes(data, p, q, buf, o)
    if ambiguous:
        o = put_marker(buf, o, q - p)
    return o


@jit
def _failed(p, limit, end):  # type: ignore[no-untyped-def]
    """Return the code for a part whose end was not found: more data may help, or only the serializer."""
    return FULL if limit < end and (p == _CUT or p == _COUNT) else SLOW


@jit
def walk_heap(  # type: ignore[no-untyped-def]
    data, limit, starts, ends, numbers, prog, key_pc, states, seen, cursor, buf,
    state, group, key, key_end, value, value_end,
):  # fmt: skip
    """Collect entries of key groups that lie in ``data``.

    Parameters
    ----------
    data
        uint8[:], of which ``limit`` bytes are there.
    starts, ends, numbers
        int64[k]: bytes of each key group (``ends`` may lie beyond ``limit``), and its number.
    prog
        Skip programs one after another; ``key_pc`` and columns of ``states`` (int64[m, 5]) are where each starts.
    seen
        uint8[m], in and out: the states that the key group at hand has had.
    cursor
        int64[5], in and out. It stands at an entry, or between sections, whatever the code.
    buf
        uint8[:] out, whose first bytes are a copy of ``data``; keys and lists that do not lie there as they should are written behind.
    state, group, key, key_end, value, value_end
        int64[n] out: state id, key group, and where key and value are in ``buf``.

    Returns
    -------
    code, count
        ``OK`` when all key groups are done, ``FULL`` when ``data`` ends inside of one that goes on, ``SLOW`` at an entry for the
        serializers, ``MORE_ROWS`` and ``MORE_BYTES`` when the outputs are full; else what is wrong at the cursor.
    """
    n = 0
    while cursor[GROUP] < starts.shape[0]:
        k = cursor[GROUP]
        end = ends[k]
        p = cursor[POSITION]
        if p < 0:
            p = starts[k]
            if p + 4 > end:
                return BAD_LENGTH, n
            if p + 4 > limit:
                return FULL, n
            if read_i4(data, np.uint64(p)) != numbers[k]:
                return BAD_PREFIX, n
            cursor[POSITION] = p + 4
            cursor[STATE] = -1
            seen[:] = 0
            continue
        if cursor[STATE] < 0:
            if p == end:
                cursor[GROUP] = k + 1
                cursor[POSITION] = -1
                continue
            if p + 6 > end:
                return BAD_LENGTH, n
            if p + 6 > limit:
                return FULL, n
            number = np.int64(data[p]) << 8 | np.int64(data[p + 1])
            count = read_i4(data, np.uint64(p + 2))
            if number >= states.shape[0] or seen[number] != 0:
                return BAD_STATE, n
            if count < 0 or count > end - p - 6:
                return BAD_LENGTH, n
            seen[number] = 1
            cursor[STATE] = number
            cursor[LEFT] = count
            cursor[POSITION] = p + 6
            continue
        if cursor[LEFT] == 0:
            cursor[STATE] = -1
            continue
        number = cursor[STATE]
        kind = states[number, KIND]
        if kind == UNKNOWN:
            return SLOW, n
        stop = min(end, limit)
        while cursor[LEFT] > 0:
            p = cursor[POSITION]
            if n == state.shape[0]:
                return MORE_ROWS, n
            if kind == TIMERS:
                s = skip_one(data, prog, states[number, FIRST], p, stop)
                if s < 0:
                    return _failed(s, limit, end), n
                state[n], group[n] = number, numbers[k]
                key[n], key_end[n], value[n], value_end[n] = p, s, s, s
                n += 1
                cursor[POSITION] = s
                cursor[LEFT] -= 1
                continue
            q = skip_one(data, prog, states[number, NAMESPACE], p, stop)
            r = q if q < 0 else skip_one(data, prog, key_pc, q, stop)
            if r < 0:
                return _failed(r, limit, end), n
            ambiguous = states[number, AMBIGUOUS] != 0
            o = cursor[USED]
            head = r - p + 2 * MAX_MARKER
            if kind == MAP:
                if r + 4 > stop:
                    return _failed(np.int64(_CUT), limit, end), n
                count = read_i4(data, np.uint64(r))
                if count < 0:
                    return SLOW, n
                s = r + 4
                m = n
                for _ in range(count):
                    u = skip_one(data, prog, states[number, FIRST], s, stop)
                    if u < 0 or u >= stop:
                        return _failed(u if u < 0 else np.int64(_CUT), limit, end), n
                    if data[u] > 1:
                        return SLOW, n
                    v = u + 1
                    if data[u] == 0:
                        v = skip_one(data, prog, states[number, SECOND], v, stop)
                        if v < 0:
                            return _failed(v, limit, end), n
                    if m == state.shape[0]:
                        return MORE_ROWS, n
                    if o + head + u - s > buf.shape[0]:
                        return MORE_BYTES, n
                    state[m], group[m] = number, numbers[k]
                    key[m] = o
                    o = _composite(data, p, q, r, ambiguous, buf, o)
                    o = copy_bytes(data, s, u, buf, o)
                    key_end[m], value[m], value_end[m] = o, u, v
                    m += 1
                    s = v
                n = m
            else:
                count = np.int64(1)
                a = r
                if kind == LIST:
                    if r + 4 > stop:
                        return _failed(np.int64(_CUT), limit, end), n
                    count = read_i4(data, np.uint64(r))
                    if count < 0:
                        return SLOW, n
                    a = r + 4
                if o + head > buf.shape[0]:
                    return MORE_BYTES, n
                s = a
                b = o
                if count > 1:
                    for i in range(count):
                        u = skip_one(data, prog, states[number, FIRST], s, stop)
                        if u < 0 or (u == s and count > _MAX_EMPTY_ELEMENTS):
                            return _failed(u, limit, end), n
                        if o + head + u - s + 1 > buf.shape[0]:
                            return MORE_BYTES, n
                        if i > 0:
                            buf[o] = _COMMA
                            o += 1
                        o = copy_bytes(data, s, u, buf, o)
                        s = u
                    value[n], value_end[n] = b, o
                elif count == 1:
                    s = skip_one(data, prog, states[number, FIRST], a, stop)
                    if s < 0:
                        return _failed(s, limit, end), n
                    value[n], value_end[n] = a, s
                if count > 0:
                    state[n], group[n] = number, numbers[k]
                    if ambiguous:
                        key[n] = o
                        o = _composite(data, p, q, r, ambiguous, buf, o)
                        key_end[n] = o
                    else:
                        key[n], key_end[n] = p, r
                        _composite(data, p, q, r, ambiguous, buf, p)
                    n += 1
            cursor[USED] = o
            cursor[POSITION] = s
            cursor[LEFT] -= 1
    return OK, n
