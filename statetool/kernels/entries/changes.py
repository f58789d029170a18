"""Kernels over the change sets of the changelog state backend.

A change set is an i4 number of groups, then the groups. A group is an i4 number of changes, an i4 key group (-1: state metadata), and its
changes, each an i4 length and bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.codes import OK, TRUNCATED, UNKNOWN_OPERATION
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import copy_bytes
from statetool.kernels.entries.delta_codes import (
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
from statetool.kernels.entries.heap import (
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
from statetool.kernels.entries.walk import BAD_LENGTH, FULL, put_row
from statetool.kernels.values.decode_fixed import read_i4, read_u2
from statetool.kernels.values.skip import skip_one

#: Slots of the cursor of :func:`walk_changes`: next change, and bytes used in ``buf``.
CHANGE, USED = range(2)

CHANGE_MESSAGES: Final = {
    TRUNCATED: "the file ends inside a change set",
    BAD_LENGTH: "a length or count in a change set that does not fit",
}


@jit
def index_changes(data, limit, file_end, cursor, group, pos, stop):
    """Find the changes of one change set.

    Parameters
    ----------
    data
        uint8[:]; the first ``limit`` bytes are valid.
    file_end
        End of the file, as a position in ``data``.
    cursor
        int64[4], in and out: position, groups left (-1: before their count), changes left in the group, key group of the group.
    group, pos, stop
        int64[n] out: key group of each change, and the range of its bytes.

    Returns
    -------
    code, count
        ``OK`` at the end of the set; ``FULL`` if the outputs are full or ``data`` ends before the set does.
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


# The functions that rewrite one change write its key and return three numbers: the operation of the delta, or the negated error code; the
# end of the key in ``buf``; and the start of the value in ``data``. The value ends at ``stop``.


@inlined
def _timer(data, programs, state, operation, a, stop, cursor, buf):
    """Rewrite a change of timers with data ``a .. stop``: i4 1 and the timer for an addition, otherwise only the timer."""
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
def _delta_of(kind, operation):
    """Return the operation of the delta for a change of a value, list or map; the negated error code if there is none."""
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
def _entry(data, programs, state, operation, a, stop, cursor, buf):
    """Rewrite a change of a value, list or map with data ``a .. stop``: key, namespace, user key (maps only), value."""
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
def _put_delta(data, start, stop, delta, of_map, buf, o):
    """Write a delta (operation, a 0 for a non-null map value, the value ``start .. stop``) and return the position after it."""
    buf[o] = delta
    o += 1
    if of_map and delta == PUT:
        buf[o] = 0
        o += 1
    return copy_bytes(data, start, stop - start, buf, o)


@inlined
def _state_of(data, p, stop, ids):
    """Return the index of the state that a change belongs to, -1 if it has none: u1 operation, u2 state id."""
    if stop - p < 3:
        return np.int64(-1)
    state_id = read_u2(data, np.uint64(p + 1))
    return ids[state_id] if state_id < ids.shape[0] else np.int64(-1)


@jit
def walk_changes(data, changes, ids, wanted, programs, cursor, buf, rows):
    """Rewrite changes as deltas.

    Parameters
    ----------
    data
        uint8[:].
    changes
        :class:`~statetool.kernels.entries.walk.KeyGroups`: the bytes of each change, and its key group.
    ids
        int64[:]: index of each state by its id in the log, -1 for unknown ids.
    wanted
        uint8[states]: 0 for states whose changes are skipped.
    programs
        :class:`~statetool.kernels.entries.heap.StatePrograms`.
    cursor
        int64[2], in and out: next change, and bytes used in ``buf``.
    buf
        uint8[:] out: keys and values of the deltas.
    rows
        :class:`~statetool.kernels.entries.walk.Rows` in ``buf``, out: the deltas.

    Returns
    -------
    code, count
        ``OK`` when all changes are done, ``FULL`` and ``MORE_BYTES`` when the outputs are full, ``SLOW`` at a change that only the
        serializers can read or that is damaged.
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
