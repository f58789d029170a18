"""Kernels over the change sets of the changelog state backend.

A change set is: i4 number of groups; groups of i4 number of changes, i4 key group (-1: descriptions of states), changes of i4 length
and bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import OK, TRUNCATED, UNKNOWN_OPERATION
from statetool.kernels.decode_fixed import read_i4, read_u2
from statetool.kernels.delta_codes import (
    APPEND,
    CLEAR,
    OP_ADD_ELEMENT,
    OP_ADD_OR_UPDATE,
    OP_CLEAR,
    OP_REMOVE_ELEMENT,
    OP_SET,
    OP_SET_INTERNAL,
    PUT,
    REMOVE,
)
from statetool.kernels.heap import (
    AMBIGUOUS,
    FIRST,
    KIND,
    LIST,
    MAP,
    MAX_MARKER,
    MORE_BYTES,
    NAMESPACE,
    SLOW,
    TIMERS,
    UNKNOWN,
    VALUE,
    put_part,
)
from statetool.kernels.jit import inlined, jit
from statetool.kernels.skip import skip_one
from statetool.kernels.walk import BAD_LENGTH, FULL, put_row
from statetool.kernels.words import copy_bytes

#: Slots of the cursor of :func:`walk_changes`: the next change, and the bytes used of ``buf``.
CHANGE, USED = range(2)

CHANGE_MESSAGES: Final = {
    TRUNCATED: "the file ends inside a change set",
    BAD_LENGTH: "a length or count in a change set that does not fit",
}


@jit
def index_changes(data, limit, file_end, cursor, group, pos, stop):  # type: ignore[no-untyped-def]
    """Find the changes of one change set.

    Parameters
    ----------
    data
        uint8[:], of which ``limit`` bytes are there.
    file_end
        Bytes up to the end of the file, counted as positions in ``data``.
    cursor
        int64[4], in and out: position, groups left (-1: before their count), changes left of the group, its key group.
    group, pos, stop
        int64[n] out: the key group of each change, and where its bytes are.

    Returns
    -------
    code, count
        ``OK`` at the end of the set; ``FULL`` when the outputs are full or ``data`` ends before the set does.
    """
    n = 0
    while True:
        p = cursor[0]
        if cursor[1] > 0 or cursor[2] > 0 or cursor[1] < 0:
            head_size = 8 if cursor[1] > 0 and cursor[2] == 0 else 4
            if p + head_size > file_end:
                return TRUNCATED, n
            if p + head_size > limit:
                return FULL, n
        if cursor[1] < 0:
            count = read_i4(data, np.uint64(p))
            if count < 0:
                return BAD_LENGTH, n
            cursor[1] = count
            cursor[0] = p + 4
        elif cursor[2] > 0:
            if n == group.shape[0]:
                return FULL, n
            size = read_i4(data, np.uint64(p))
            if size < 1 or p + 4 + size > file_end:
                return BAD_LENGTH, n
            if p + 4 + size > limit:
                return FULL, n
            group[n] = cursor[3]
            pos[n] = p + 4
            stop[n] = p + 4 + size
            n += 1
            cursor[2] -= 1
            cursor[0] = p + 4 + size
        elif cursor[1] > 0:
            count = read_i4(data, np.uint64(p))
            if count < 0:
                return BAD_LENGTH, n
            cursor[1] -= 1
            cursor[2] = count
            cursor[3] = read_i4(data, np.uint64(p + 4))
            cursor[0] = p + 8
        else:
            return OK, n


# What rewrites one change writes its key and returns: the operation of the delta, or the negative of a code; the end of the key in ``buf``;
# where in ``data`` the value starts, which ends at ``stop``.


@inlined
def _timer(data, programs, state, operation, a, stop, cursor, buf):  # type: ignore[no-untyped-def]
    """Rewrite a change of timers, whose data is ``a .. stop``: i4 1, timer where one is added, else the timer."""
    if operation == OP_ADD_ELEMENT:
        if a + 4 > stop or read_i4(data, np.uint64(a)) != 1:
            return np.int64(-SLOW), a, a
        a += 4
    elif operation != OP_REMOVE_ELEMENT:
        return np.int64(-SLOW), a, a
    s = skip_one(data, programs.words, programs.states[state, FIRST], a, stop)
    if s != stop:
        return np.int64(-UNKNOWN_OPERATION if s == -UNKNOWN_OPERATION else -SLOW), a, a
    o = copy_bytes(data, a, stop - a, buf, cursor[USED])
    return np.int64(PUT if operation == OP_ADD_ELEMENT else REMOVE), o, stop


@inlined
def _delta_of(kind, operation):  # type: ignore[no-untyped-def]
    """Return the operation of the delta of a change of a value, list or map; the negative of a code where the change has no such operation."""
    if kind == MAP:
        if operation == OP_CLEAR:
            return np.int64(CLEAR)
        if operation == OP_REMOVE_ELEMENT:
            return np.int64(REMOVE)
        return np.int64(PUT if operation == OP_ADD_ELEMENT or operation == OP_ADD_OR_UPDATE else -SLOW)
    if kind != LIST and kind != VALUE:
        return np.int64(-UNKNOWN_OPERATION)
    if operation == OP_CLEAR:
        return np.int64(REMOVE)
    if kind == LIST:
        return np.int64(APPEND if operation == OP_ADD_ELEMENT else -SLOW)
    return np.int64(PUT if operation == OP_SET or operation == OP_SET_INTERNAL else -SLOW)


@inlined
def _entry(data, programs, state, operation, a, stop, cursor, buf):  # type: ignore[no-untyped-def]
    """Rewrite a change of a value, list or map, whose data is ``a .. stop``: key, namespace, for a map its user key, value."""
    kind = programs.states[state, KIND]
    delta = _delta_of(kind, operation)
    r = skip_one(data, programs.words, programs.key, a, stop)
    t = r if r < 0 else skip_one(data, programs.words, programs.states[state, NAMESPACE], r, stop)
    value = t
    if kind == MAP and delta == PUT and t >= 0:
        value = skip_one(data, programs.words, programs.states[state, FIRST], t, stop)
    elif kind == MAP and delta == REMOVE and t >= 0:
        value = stop
    if value == -UNKNOWN_OPERATION:
        return value, a, a
    if delta < 0 or value < 0 or (operation == OP_CLEAR and t != stop):
        return delta if delta < 0 else np.int64(-SLOW), a, a
    ambiguous = programs.states[state, AMBIGUOUS] != 0
    o = put_part(data, a, r, ambiguous, buf, cursor[USED])
    o = put_part(data, r, t, ambiguous, buf, o)
    return delta, copy_bytes(data, t, value - t, buf, o), value


@inlined
def _put_delta(data, start, stop, delta, of_map, buf, o):  # type: ignore[no-untyped-def]
    """Write a delta (operation, for a map's value a 0 as it is not null, the value ``start .. stop``) and return the position behind it."""
    buf[o] = delta
    o += 1
    if of_map and delta == PUT:
        buf[o] = 0
        o += 1
    return copy_bytes(data, start, stop - start, buf, o)


@inlined
def _state_of(data, p, stop, ids):  # type: ignore[no-untyped-def]
    """Return the number of the state of a change, -1 where it has none: u1 operation, u2 state id."""
    if stop - p < 3:
        return np.int64(-1)
    state_id = read_u2(data, np.uint64(p + 1))
    return ids[state_id] if state_id < ids.shape[0] else np.int64(-1)


@jit
def walk_changes(data, changes, ids, wanted, programs, cursor, buf, rows):  # type: ignore[no-untyped-def]
    """Rewrite changes as deltas.

    Parameters
    ----------
    data
        uint8[:].
    changes
        :class:`~statetool.kernels.walk.KeyGroups`: the bytes of each change, and its key group.
    ids
        int64[:]: number of a state by its id in the log, -1 for unknown ones.
    wanted
        uint8[states]: 0 for states whose changes are passed over.
    programs
        :class:`~statetool.kernels.heap.StatePrograms`.
    cursor
        int64[2], in and out: the next change, and the bytes used of ``buf``.
    buf
        uint8[:] out: keys and values of the deltas.
    rows
        :class:`~statetool.kernels.walk.Rows` in ``buf``, out: the deltas.

    Returns
    -------
    code, count
        ``OK`` when all changes are done, ``FULL`` and ``MORE_BYTES`` when the outputs are full, ``SLOW`` at a change that only the
        serializers can read, or that is damaged.
    """
    n = np.int64(0)
    while cursor[CHANGE] < changes.starts.shape[0]:
        i = cursor[CHANGE]
        p, stop = changes.starts[i], changes.ends[i]
        state = _state_of(data, p, stop, ids)
        if state >= 0 and wanted[state] == 0:
            cursor[CHANGE] = i + 1
            continue
        kind = programs.states[state, KIND] if state >= 0 else np.int64(UNKNOWN)
        if kind == UNKNOWN:
            return np.int64(SLOW), n
        if n == rows.state.shape[0]:
            return np.int64(FULL), n
        start = cursor[USED]
        if start + stop - p + 2 * MAX_MARKER + 2 > buf.shape[0]:
            return np.int64(MORE_BYTES), n
        if kind == TIMERS:
            delta, o, value = _timer(data, programs, state, data[p], p + 3, stop, cursor, buf)
        else:
            delta, o, value = _entry(data, programs, state, data[p], p + 3, stop, cursor, buf)
        if delta < 0:
            return -delta, n
        cursor[CHANGE] = i + 1
        cursor[USED] = _put_delta(data, value, stop, delta, kind == MAP, buf, o)
        n = put_row(rows, n, state, changes.numbers[i], start, o, o, cursor[USED])
    return np.int64(OK), n
