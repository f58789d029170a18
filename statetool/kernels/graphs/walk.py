"""Rewriting of Kryo's values in fixed layouts, which the other kernels decode.

A value is walked by a flat program of its declared type (:mod:`statetool.kernels.graphs.flat_program`) and rewritten: numbers big-endian and
full-width, strings as length-prefixed UTF-8, and a flag byte (1: present) before everything that may be null. If the program does not cover
a value (another class, a reference to an object of another type, damage), that is not an error here: the value is marked, and decoded by
the readable reference decoder.
Wire forms: :mod:`statetool.serializers.kryo.wire`. Output: :class:`statetool.kernels.values.program.GraphPart`.

Arguments of all kernels: ``data`` uint8[:] read-only; ``layout``, a :class:`~statetool.kernels.graphs.flat_program.Layout`; ``p``, ``end``, a
position in ``data`` and the first byte after the value's frame; ``out`` uint8[:], the output; ``st`` int64[STATE_WORDS], with the slots of
:mod:`~statetool.kernels.graphs.flat_program`. In place of a position they return ``UNSERVED``, ``FULL`` or ``UNKNOWN``, which are negative.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.entries.layout import SEPARATOR
from statetool.kernels.graphs.flat_program import (
    ARRAY,
    BODY,
    FULL,
    LIMIT,
    LIST,
    MAP,
    MAX_NAMES,
    MAX_OBJECTS,
    MOST_TIMES,
    NAMES,
    NAMES_MET,
    NULLABLE,
    OBJECTS,
    OBJECTS_MET,
    PRESENT,
    RECORD,
    STEP,
    UNKNOWN,
    UNSERVED,
    VALUE,
    WRITTEN,
)
from statetool.kernels.graphs.leaves import write_leaf
from statetool.kernels.graphs.text import put4, read_number

#: In place of an object's number: it has none; the value ends here.
_NO_NUMBER: Final = -1
_DONE: Final = -2


@jit
def _name_matches(data, layout, row, p, end):
    """Return True if the class name of ``row`` is stored at ``p``."""
    at, size = layout.classes[row, 1], layout.classes[row, 2]
    same = size <= end - p
    for i in range(size):
        same = same and layout.names[at + i] == data[p + i]
    return same


@jit
def _read_class(data, layout, pc, p, end, st):
    """Read a class of the part at ``pc``.

    Returns
    -------
    row, after
        Row of ``layout.classes``, -1 for null; ``after`` is -1 if it is none of the part's classes.
    """
    none = np.int64(-1)
    k, p = read_number(data, p, end)
    if p < 0 or k == 0:
        return none, p
    first = layout.words[pc + 2]
    last = first + layout.words[pc + 3]
    if k >= 2:
        for row in range(first, last):
            if layout.classes[row, 0] == k - 2:
                return np.int64(row), p
        return none, none
    number, p = read_number(data, p, end)
    if p < 0 or number > st[NAMES_MET] or number >= MAX_NAMES:
        return none, none
    for row in range(first, last):
        if number < st[NAMES_MET]:
            if st[NAMES + number] == layout.classes[row, 3]:
                return np.int64(row), p
        elif _name_matches(data, layout, row, p, end):
            st[NAMES + number] = layout.classes[row, 3]
            st[NAMES_MET] += 1
            return np.int64(row), p + layout.classes[row, 2]
    return none, none


@jit
def _write_again(data, layout, pc, p, end, out, st):
    """Write an object that was met before once more. It must belong to the part at ``pc``."""
    k, p = read_number(data, p, end)
    number = k - 2
    if p < 0 or layout.words[pc + 1] != 1 or number >= st[OBJECTS_MET] or number >= MAX_OBJECTS:
        return np.int64(UNSERVED)
    if st[OBJECTS + 3 * number] != pc:
        return np.int64(UNSERVED)
    start = st[OBJECTS + 3 * number + 1]
    n = st[OBJECTS + 3 * number + 2] - start
    o = st[WRITTEN]
    if o + n > st[LIMIT]:
        return np.int64(UNSERVED)
    if o + 1 + n > out.shape[0]:
        return np.int64(FULL)
    out[o] = 1
    for i in range(n):
        out[o + 1 + i] = out[start + i]
    st[WRITTEN] = o + 1 + n
    return np.int64(p)


@inlined
def _open_object(data, layout, pc, mode, row, p, end, out, st):
    """Read the header of an object, and write whether a body follows.

    Returns
    -------
    row, number, after
        Row of the object's class; its number among the value's objects, ``_NO_NUMBER`` or ``_DONE``; the start of the body, or with
        ``_DONE`` the result for the value.
    """
    none, done = np.int64(_NO_NUMBER), np.int64(_DONE)
    if mode == VALUE:
        row, p = _read_class(data, layout, pc, p, end, st)
        if p < 0:
            return row, done, np.int64(UNSERVED)
        if row < 0:
            out[st[WRITTEN]] = 0
            st[WRITTEN] += 1
            return row, done, p
    numbered = layout.words[pc + 1] == 1
    if numbered or mode == NULLABLE:
        # 0: null; 1: a new object, or a non-null value without references; above: reference to an object met before.
        if p >= end or (data[p] == 0 and mode != NULLABLE):
            return row, done, np.int64(UNSERVED)
        mark = data[p]
        if mark > 1:
            return row, done, _write_again(data, layout, pc, p, end, out, st)
        p += 1
        if mark == 0:
            out[st[WRITTEN]] = 0
            st[WRITTEN] += 1
            return row, done, p
    out[st[WRITTEN]] = 1
    st[WRITTEN] += 1
    if not numbered:
        return row, none, p
    st[OBJECTS_MET] += 1
    return row, st[OBJECTS_MET] - 1, p


@jit
def _read_size(data, kind, little, headed, p, end):
    """Read the number of elements, and a flag for lists of Kryo 5; ``headed`` if a comparator, always null, is stored next to it.

    Returns
    -------
    n, flag, after
        ``after`` is negative if the number does not fit.
    """
    bad = np.int64(UNSERVED)
    n, flag = np.int64(0), False
    if headed and not little:
        if p >= end or data[p] != 0:
            return n, flag, bad
        p += 1
    if kind == LIST and little:
        if p >= end:
            return n, flag, bad
        b = np.int64(data[p])
        p += 1
        n = b & 0x3F
        flag = bool(b >= 0x80)
        if b & 0x40:
            high_bits, p = read_number(data, p, end)
            n |= high_bits << 6
    else:
        n, p = read_number(data, p, end)
    if p < 0:
        return n, flag, bad
    if little or kind == ARRAY:
        n -= 1
    if headed and little:
        if p >= end or data[p] != 0:
            return n, flag, bad
        p += 1
    return n, flag, np.int64(p if 0 <= n <= end - p else UNSERVED)


@inlined
def _open_list(data, layout, pc, row, p, end, out, st):
    """Read the header of a list, map or array, and write the number of elements.

    Returns
    -------
    n, mode, row, after
        Number and mode of the elements, or of a map's keys; the row of their class; the position of the first element.
    """
    kind = layout.words[pc]
    mode, element = layout.words[pc + 5], layout.words[pc + 6]
    first = layout.words[element + 2]
    headed = kind != ARRAY and layout.classes[row, 4] == 1
    n, flag, p = _read_size(data, kind, layout.little, headed, p, end)
    if p < 0:
        return n, mode, first, p
    if kind == LIST and layout.little and n > 0:
        if mode == NULLABLE:
            mode = np.int64(NULLABLE if flag else PRESENT)
        elif flag:
            # One class for all elements, and whether there are nulls.
            first, p = _read_class(data, layout, element, p, end, st)
            if first < 0 or p < 0 or p >= end or data[p] > 1:
                return n, mode, first, np.int64(UNSERVED)
            mode = np.int64(NULLABLE if data[p] == 1 else PRESENT)
            p += 1
    if st[WRITTEN] + STEP > out.shape[0]:
        return n, mode, first, np.int64(FULL)
    st[WRITTEN] = put4(out, st[WRITTEN], n)
    return n, mode, first, p


@jit
def _write_value(data, layout, pc, mode, row, p, end, out, st):
    """Write the value at ``p`` of the part at ``pc``; return the position after it.

    ``mode``: only a body, a nullable object, a non-null object (of the class ``row``), or a class and its object.
    """
    if st[WRITTEN] + STEP > out.shape[0]:
        return np.int64(FULL)
    words = layout.words
    number = np.int64(_NO_NUMBER)
    if mode != BODY:
        row, number, p = _open_object(data, layout, pc, mode, row, p, end, out, st)
        if number == _DONE:
            return p
    object_slot = OBJECTS + 3 * number if 0 <= number < MAX_OBJECTS else np.int64(-1)
    if object_slot >= 0:
        st[object_slot] = -1
        st[object_slot + 1] = st[WRITTEN]
    kind = words[pc]
    if kind < RECORD:
        p = write_leaf(data, kind, words[pc + 4], layout.little, p, end, out, st)
    elif kind == RECORD:
        for k in range(words[pc + 4]):
            at = pc + 5 + 2 * k
            p = _write_value(data, layout, words[at + 1], words[at], np.int64(0), p, end, out, st)
            if p < 0:
                return p
    elif kind == LIST or kind == MAP or kind == ARRAY:
        n, inner, first, p = _open_list(data, layout, pc, row, p, end, out, st)
        for _ in range(n):
            if p >= 0:
                p = _write_value(data, layout, words[pc + 6], inner, first, p, end, out, st)
            if p >= 0 and kind == MAP:
                p = _write_value(data, layout, words[pc + 8], words[pc + 7], words[words[pc + 8] + 2], p, end, out, st)
            if p < 0:
                return p
    else:
        return np.int64(UNKNOWN)
    if object_slot >= 0:
        st[object_slot] = pc
        st[object_slot + 2] = st[WRITTEN]
    return p


@jit
def _write_root(data, layout, p, end, out, st):
    """Write a value with its class. Names and objects of other values are unknown in it."""
    st[NAMES_MET] = 0
    st[OBJECTS_MET] = 0
    # A reference takes one byte in ``data``, but the full size of its object in ``out``.
    st[LIMIT] = st[WRITTEN] + MOST_TIMES * (end - p)
    return _write_value(data, layout, np.int64(0), np.int64(VALUE), np.int64(0), p, end, out, st)


@jit
def rewrite(data, layout, pos, end, first, out, st, starts, after, served):
    """Write values until ``out`` is full.

    Parameters
    ----------
    pos, end
        int64[n]: start of each value, and the first byte after its frame.
    first
        Index of the first value to write.
    starts, after
        int64[n] out: start of each value in ``out``, and the position after it in ``data``.
    served
        uint8[n] out: 0 for values that are left to the reference decoder.

    Returns
    -------
    Index of the next value. ``st[WRITTEN]`` is ``UNKNOWN`` if the program is unknown.
    """
    for i in range(first, pos.shape[0]):
        before = st[WRITTEN]
        starts[i] = before
        p = _write_root(data, layout, pos[i], end[i], out, st)
        if p < 0:
            st[WRITTEN] = before
        if p == FULL:
            return i
        if p == UNKNOWN:
            st[WRITTEN] = UNKNOWN
            return i
        served[i] = 1 if p >= 0 else 0
        after[i] = p
    return pos.shape[0]


@jit
def split(data, layout, pos, end, scratch, st, counts, starts, ends):
    """Find the values of comma-joined lists.

    Parameters
    ----------
    pos, end
        int64[n]: start of each list, and the first byte after it.
    scratch
        uint8[:], room for one value.
    counts
        int64[n] out: number of values of each list.
    starts, ends
        int64[m] out: range of each value of all lists; empty to only count.

    Returns
    -------
    code
        0; ``UNSERVED`` if a value is left to the reference decoder, ``FULL`` if one does not fit ``scratch``, or ``UNKNOWN``.
    """
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        n = 0
        while True:
            before = p
            st[WRITTEN] = 0
            p = _write_root(data, layout, p, end[i], scratch, st)
            if p < 0:
                return p
            if starts.shape[0] > 0:
                starts[o] = before
                ends[o] = p
            o += 1
            n += 1
            if p == end[i]:
                break
            if data[p] != SEPARATOR:
                return np.int64(UNSERVED)
            p += 1
        counts[i] = n
    return np.int64(0)
