"""Canonical entries of one state in one key group, rewritten in the layout of the heap backend (:mod:`statetool.kernels.entries.heap`)."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import copy_bytes, equal
from statetool.kernels.entries.heap import AMBIGUOUS, FIRST, KIND, LIST, MAP, NAMESPACE, TIMERS
from statetool.kernels.entries.layout import SEPARATOR
from statetool.kernels.values.skip import skip_one

#: An entry that only serializers can divide, or that is damaged.
SLOW: Final = 1
#: Slots of the result: number of entries, bytes in ``out``, end of the first head and size of the first map, position in ``out`` of the size
#: of the last map, that size, and the range of its head. A head is a composite key without the key of the map.
SLOTS: Final = 8
ENTRIES, USED, FIRST_END, FIRST_SIZE, LAST_AT, LAST_SIZE, LAST_START, LAST_END = range(SLOTS)


@inlined
def _after_marker(start, stop):
    """Return the position after the length that follows an ambiguous key or namespace."""
    p, size = stop, stop - start
    while True:
        p += 1
        size >>= 8
        if size == 0:
            return p


@inlined
def _parts_of_key(data, programs, state, p, stop):
    """Return where the key ends, the namespace starts and ends, and the head ends; all -1 if the bytes cannot be divided so."""
    lost = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(-1)
    ambiguous = programs.states[state, AMBIGUOUS] != 0
    q = skip_one(data, programs.words, programs.key, p, stop)
    if q < 0 or q > stop:
        return lost
    r = _after_marker(p, q) if ambiguous else q
    s = skip_one(data, programs.words, programs.states[state, NAMESPACE], r, stop)
    if s < 0 or s > stop:
        return lost
    t = _after_marker(r, s) if ambiguous else s
    if t > stop or (programs.states[state, KIND] != MAP and t != stop):
        return lost
    return q, r, s, t


@inlined
def _put_i4(out, o, value):
    out[o] = value >> 24 & 0xFF
    out[o + 1] = value >> 16 & 0xFF
    out[o + 2] = value >> 8 & 0xFF
    out[o + 3] = value & 0xFF
    return o + 4


@inlined
def _put_list(data, programs, state, p, stop, out, o):
    """Write the number of a list's elements, and the elements without separators; return -1 if they are not those of a list."""
    at, n = o, np.int64(0)
    o += 4
    while True:
        q = skip_one(data, programs.words, programs.states[state, FIRST], p, stop)
        if q < 0 or q > stop:
            return np.int64(-1)
        o = copy_bytes(data, p, q - p, out, o)
        n += 1
        if q == stop:
            _put_i4(out, at, n)
            return o
        if data[q] != SEPARATOR:
            return np.int64(-1)
        p = q + 1


@inlined
def _put_value(data, programs, state, p, stop, out, o):
    """Write a value. Of the null in a map, whose serialized form may follow (``HeapKeyValueStateIterator``), only the flag."""
    if programs.states[state, KIND] == LIST:
        return _put_list(data, programs, state, p, stop, out, o)
    if programs.states[state, KIND] == MAP and p < stop and data[p] != 0:
        return copy_bytes(data, p, 1, out, o)
    return copy_bytes(data, p, stop - p, out, o)


@jit
def write_heap(data, programs, state, order, key, key_end, value, value_end, out, result):
    """Write entries of a state that follow each other in the order of their keys; return 0, or ``SLOW`` if an entry cannot be divided.

    Parameters
    ----------
    data
        uint8[:]
    programs
        :class:`~statetool.kernels.entries.heap.StatePrograms`.
    order
        int64[n]: the entries to write.
    key, key_end, value, value_end
        int64[]: ranges of the entries; a key has no key group.
    out
        uint8[:] out, with room for all bytes and 8 more per entry.
    result
        int64[SLOTS] out.
    """
    kind = programs.states[state, KIND]
    o, entries, size, at = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    head, head_end = np.int64(0), np.int64(-1)
    for i in range(order.shape[0]):
        e = order[i]
        p, stop = key[e], key_end[e]
        if kind == TIMERS:
            o = copy_bytes(data, p, stop - p, out, o)
            entries += 1
            continue
        q, r, s, t = _parts_of_key(data, programs, state, p, stop)
        if q < 0:
            return SLOW
        if kind == MAP and head_end >= 0 and equal(data, head, head_end, p, t):
            size += 1
        else:
            if kind == MAP and head_end >= 0:
                _put_i4(out, at, size)
            o = copy_bytes(data, r, s - r, out, o)
            o = copy_bytes(data, p, q - p, out, o)
            entries += 1
            if kind == MAP:
                if head_end < 0:
                    result[FIRST_END] = t
                elif entries == 2:
                    result[FIRST_SIZE] = size
                at, size = o, np.int64(1)
                o += 4
            head, head_end = p, t
        if kind == MAP:
            o = copy_bytes(data, t, stop - t, out, o)
        o = _put_value(data, programs, state, value[e], value_end[e], out, o)
        if o < 0:
            return SLOW
    if kind == MAP and head_end >= 0:
        _put_i4(out, at, size)
        if entries == 1:
            result[FIRST_SIZE] = size
    result[ENTRIES], result[USED] = entries, o
    result[LAST_AT], result[LAST_SIZE], result[LAST_START], result[LAST_END] = at, size, head, head_end
    return 0
