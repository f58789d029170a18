"""Kernels over the change sets of the changelog state backend.

A change set is: i4 number of groups; groups of i4 number of changes, i4 key group (-1: descriptions of states), changes of i4 length
and bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import OK, TRUNCATED
from statetool.kernels.decode_fixed import read_i4
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
    copy_bytes,
    put_marker,
)
from statetool.kernels.jit import jit
from statetool.kernels.skip import skip_one
from statetool.kernels.walk import BAD_LENGTH, FULL

CHANGE_MESSAGES: Final = {
    TRUNCATED: "the file ends inside a change set",
    BAD_LENGTH: "a length or count in a change set that does not fit",
}


@jit
def index_changes(data, limit, whole, cursor, group, pos, stop):  # type: ignore[no-untyped-def]
    """Find the changes of one change set.

    Parameters
    ----------
    data
        uint8[:], of which ``limit`` bytes are there.
    whole
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
            need = 8 if cursor[1] > 0 and cursor[2] == 0 else 4
            if p + need > whole:
                return TRUNCATED, n
            if p + need > limit:
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
            if size < 1 or p + 4 + size > whole:
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


@jit
def walk_changes(  # type: ignore[no-untyped-def]
    data, pos, end, groups, ids, wanted, prog, key_pc, states, cursor, buf,
    state, group, key, key_end, value, value_end,
):  # fmt: skip
    """Rewrite changes as deltas.

    Parameters
    ----------
    data
        uint8[:].
    pos, end, groups
        int64[n]: the bytes of each change and its key group.
    ids
        int64[:]: number of a state by its id in the log, -1 for unknown ones.
    wanted
        uint8[m]: 0 for states whose changes are passed over.
    prog, key_pc, states
        As for :func:`statetool.kernels.heap.walk_heap`.
    cursor
        int64[2], in and out: the next change, and the bytes used of ``buf``.
    buf
        uint8[:] out: keys and values of the deltas.
    state, group, key, key_end, value, value_end
        int64[k] out: number of the state, key group, and where key and value of each delta are in ``buf``.

    Returns
    -------
    code, count
        ``OK`` when all changes are done, ``FULL`` and ``MORE_BYTES`` when the outputs are full, ``SLOW`` at a change that only the
        serializers can read, or that is damaged.
    """
    n = 0
    while cursor[0] < pos.shape[0]:
        i = cursor[0]
        p, stop = pos[i], end[i]
        if stop - p < 3:
            return SLOW, n
        operation = data[p]
        state_id = np.int64(data[p + 1]) << 8 | np.int64(data[p + 2])
        if state_id >= ids.shape[0] or ids[state_id] < 0:
            return SLOW, n
        number = ids[state_id]
        if wanted[number] == 0:
            cursor[0] = i + 1
            continue
        kind = states[number, KIND]
        if kind == UNKNOWN:
            return SLOW, n
        if n == state.shape[0]:
            return FULL, n
        o = cursor[1]
        if o + stop - p + 2 * MAX_MARKER + 2 > buf.shape[0]:
            return MORE_BYTES, n
        begin = o
        a = p + 3
        rest = stop
        if kind == TIMERS:
            if operation == OP_ADD_ELEMENT:
                if a + 4 > stop or read_i4(data, np.uint64(a)) != 1:
                    return SLOW, n
                a += 4
            elif operation != OP_REMOVE_ELEMENT:
                return SLOW, n
            if skip_one(data, prog, states[number, FIRST], a, stop) != stop:
                return SLOW, n
            o = copy_bytes(data, a, stop, buf, o)
            says = PUT if operation == OP_ADD_ELEMENT else REMOVE
        else:
            r = skip_one(data, prog, key_pc, a, stop)
            t = r if r < 0 else skip_one(data, prog, states[number, NAMESPACE], r, stop)
            if t < 0:
                return SLOW, n
            rest = t
            if operation == OP_CLEAR:
                if t != stop:
                    return SLOW, n
                says = CLEAR if kind == MAP else REMOVE
            elif kind == MAP:
                if operation == OP_ADD_ELEMENT or operation == OP_ADD_OR_UPDATE:
                    rest = skip_one(data, prog, states[number, FIRST], t, stop)
                    if rest < 0:
                        return SLOW, n
                    says = PUT
                elif operation == OP_REMOVE_ELEMENT:
                    rest = stop
                    says = REMOVE
                else:
                    return SLOW, n
            elif kind == LIST:
                if operation != OP_ADD_ELEMENT:
                    return SLOW, n
                says = APPEND
            else:
                if operation != OP_SET and operation != OP_SET_INTERNAL:
                    return SLOW, n
                says = PUT
            o = copy_bytes(data, a, r, buf, o)
            if states[number, AMBIGUOUS] != 0:
                o = put_marker(buf, o, r - a)
            o = copy_bytes(data, r, t, buf, o)
            if states[number, AMBIGUOUS] != 0:
                o = put_marker(buf, o, t - r)
            o = copy_bytes(data, t, rest, buf, o) if kind == MAP else o
        state[n], group[n], key[n], key_end[n], value[n] = number, groups[i], begin, o, o
        buf[o] = says
        o += 1
        if kind == MAP and says == PUT:
            buf[o] = 0
            o += 1
        o = copy_bytes(data, rest, stop, buf, o)
        value_end[n] = o
        n += 1
        cursor[0] = i + 1
        cursor[1] = o
    return OK, n
