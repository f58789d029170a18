"""Kryo's values rewritten as values of fixed layouts, which the other kernels decode.

A value is walked by a flat program of its declared type (:mod:`statetool.kernels.graph_program`) and written again: numbers
big-endian and in their full width, strings as counted UTF-8, a flag byte (1: there) in front of all that may be null. What a program
does not foresee (another class, an object met before as one of another type, damage) is no error here: such a value is marked, and
decoded by the readable reference.
Wire forms: :mod:`statetool.serializers.kryo.wire`; what is written: :class:`statetool.kernels.program.GraphPart`.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.graph_leaves import write_leaf
from statetool.kernels.graph_program import (
    ARRAY,
    BODY,
    FULL,
    LIMIT,
    LIST,
    MAP,
    MAX_NAMES,
    MAX_OBJECTS,
    MOST_TIMES,
    NULLABLE,
    OBJECTS,
    OBJECTS_MET,
    PRESENT,
    RECORD,
    STEP,
    UNSERVED,
    VALUE,
    Words,
)
from statetool.kernels.graph_text import put4, read_number
from statetool.kernels.jit import jit


@jit
def _class(data, classes, names, first, n, p, end, st):  # type: ignore[no-untyped-def]
    """Read a class: ``(row of classes, position after)``; row -1 for null, position -1 for a class that is none of them."""
    other = np.int64(-1)
    k, p = read_number(data, p, end)
    if p < 0 or k == 0:
        return other, p
    if k >= 2:
        for row in range(first, first + n):
            if classes[row, 0] == k - 2:
                return np.int64(row), p
        return other, other
    number, p = read_number(data, p, end)
    if p < 0 or number > st[1] or number >= MAX_NAMES:
        return other, other
    for row in range(first, first + n):
        if number < st[1]:
            if st[2 + number] == classes[row, 3]:
                return np.int64(row), p
            continue
        at, size = classes[row, 1], classes[row, 2]
        if size > end - p:
            continue
        same = True
        for i in range(size):
            if names[at + i] != data[p + i]:
                same = False
                break
        if same:
            st[2 + number] = classes[row, 3]
            st[1] += 1
            return np.int64(row), p + size
    return other, other


@jit
def _again(data, prog, pc, p, end, out, st):  # type: ignore[no-untyped-def]
    """Write an object that was met before, which must be one of the same part, once more."""
    k, p = read_number(data, p, end)
    number = k - 2
    if (
        p < 0
        or prog[pc + 1] != 1
        or number >= st[OBJECTS_MET]
        or number >= MAX_OBJECTS
        or st[OBJECTS + 3 * number] != pc
    ):
        return np.int64(UNSERVED)
    start = st[OBJECTS + 3 * number + 1]
    n = st[OBJECTS + 3 * number + 2] - start
    o = st[0]
    if o + n > st[LIMIT]:
        return np.int64(UNSERVED)
    if o + 1 + n > out.shape[0]:
        return np.int64(FULL)
    out[o] = 1
    for i in range(n):
        out[o + 1 + i] = out[start + i]
    st[0] = o + 1 + n
    return np.int64(p)


@jit
def _value(data, prog, classes, names, little, pc, mode, row, p, end, out, st):  # type: ignore[no-untyped-def]
    """Write the value at ``p`` for the part at ``pc``; return the position behind it or the negative of what is wrong.

    ``mode``: only a body, an object that may be null, one that is there (of the class ``row``), a class and its object.
    ``st`` int64: place in ``out``; how many names of classes there were so far, their numbers; how many objects, and of each its part
    (-1 while it is not whole), its place in ``out`` and the one behind it; how far in ``out`` objects met before may reach.
    """
    if st[0] + STEP > out.shape[0]:
        return np.int64(FULL)
    kind = prog[pc]
    if mode != BODY:
        if mode == VALUE:
            row, p = _class(data, classes, names, prog[pc + 2], prog[pc + 3], p, end, st)
            if p < 0:
                return np.int64(UNSERVED)
            if row < 0:
                out[st[0]] = 0
                st[0] += 1
                return p
        number = np.int64(-1)
        if prog[pc + 1] == 1 or mode == NULLABLE:
            # 0: null; 1: a new object, or a value without references that is there; above: an object met before.
            if p >= end or (data[p] == 0 and mode != NULLABLE):
                return np.int64(UNSERVED)
            mark = data[p]
            if mark > 1:
                return _again(data, prog, pc, p, end, out, st)
            p += 1
            if mark == 0:
                out[st[0]] = 0
                st[0] += 1
                return np.int64(p)
            if prog[pc + 1] == 1:
                number = st[OBJECTS_MET]
                st[OBJECTS_MET] += 1
        out[st[0]] = 1
        st[0] += 1
        if number < 0 or number >= MAX_OBJECTS:
            return _value(data, prog, classes, names, little, pc, np.int64(BODY), row, p, end, out, st)
        at = OBJECTS + 3 * number
        st[at] = -1
        st[at + 1] = st[0]
        p = _value(data, prog, classes, names, little, pc, np.int64(BODY), row, p, end, out, st)
        st[at] = pc
        st[at + 2] = st[0]
        return p
    if kind < RECORD:
        return write_leaf(data, kind, prog[pc + 4], little, p, end, out, st)
    if kind == RECORD:
        for k in range(prog[pc + 4]):
            at = pc + 5 + 2 * k
            p = _value(data, prog, classes, names, little, prog[at + 1], prog[at], np.int64(0), p, end, out, st)
            if p < 0:
                return p
        return p
    inner = prog[pc + 5]
    first = np.int64(-1)
    element = prog[pc + 6]
    headed = kind != ARRAY and classes[row, 4] == 1
    if headed and not little:
        if p >= end or data[p] != 0:
            return np.int64(UNSERVED)
        p += 1
    flag = False
    if kind == LIST and little:
        if p >= end:
            return np.int64(UNSERVED)
        b = np.int64(data[p])
        p += 1
        n = b & 0x3F
        flag = bool(b >= 0x80)
        if b & 0x40:
            rest, p = read_number(data, p, end)
            if p < 0:
                return np.int64(UNSERVED)
            n |= rest << 6
    else:
        n, p = read_number(data, p, end)
        if p < 0:
            return np.int64(UNSERVED)
    if little or kind == ARRAY:
        n -= 1
    if headed and little:
        if p >= end or data[p] != 0:
            return np.int64(UNSERVED)
        p += 1
    if n < 0 or n > end - p:
        return np.int64(UNSERVED)
    if kind == LIST and little and n > 0:
        if inner == NULLABLE:
            inner = NULLABLE if flag else PRESENT
        elif flag:
            # One class for all, and whether some are null.
            first, p = _class(data, classes, names, prog[element + 2], prog[element + 3], p, end, st)
            if first < 0 or p < 0 or p >= end or data[p] > 1:
                return np.int64(UNSERVED)
            inner = NULLABLE if data[p] == 1 else PRESENT
            p += 1
    if st[0] + STEP > out.shape[0]:
        return np.int64(FULL)
    st[0] = put4(out, st[0], n)
    for _ in range(n):
        row = first if first >= 0 else prog[element + 2]
        p = _value(data, prog, classes, names, little, element, inner, row, p, end, out, st)
        if p >= 0 and kind == MAP:
            other = prog[pc + 8]
            p = _value(data, prog, classes, names, little, other, prog[pc + 7], prog[other + 2], p, end, out, st)
        if p < 0:
            return p
    return p


@jit
def rewrite(data, prog, classes, names, little, pos, end, first, out, st, starts, after, served):  # type: ignore[no-untyped-def]
    """Write the values from number ``first`` on until ``out`` uint8[:] is full; return the number of the next one.

    ``st`` as :func:`state` makes it: its first word is how much of ``out`` is written. ``starts``, ``after`` int64[n] out: where each
    value stands in ``out``, and the position behind it in ``data``; ``served`` uint8[n] out: 0 for those that are left to the reference.
    """
    for i in range(first, pos.shape[0]):
        before = st[0]
        st[1] = 0
        st[OBJECTS_MET] = 0
        # An object that is met again and again takes a byte each time here, but its whole size in ``out``.
        st[LIMIT] = before + MOST_TIMES * (end[i] - pos[i])
        starts[i] = before
        p = _value(
            data, prog, classes, names, little, np.int64(0), np.int64(VALUE), np.int64(0), pos[i], end[i], out, st
        )
        if p == FULL:
            st[0] = before
            return i
        served[i] = 1 if p >= 0 else 0
        after[i] = p
        if p < 0:
            st[0] = before
    return pos.shape[0]


def state() -> Words:
    """Return what :func:`rewrite` needs as ``st``."""
    return np.zeros(LIMIT + 1, dtype=np.int64)


@jit
def split(data, prog, classes, names, little, pos, end, scratch, st, counts, starts, ends):  # type: ignore[no-untyped-def]
    """Find the values of comma-joined lists; ``starts`` and ``ends`` int64[all] out, or empty to count them in ``counts`` int64[n].

    Returns
    -------
    code
        0, or what is wrong: -1 for a value that is left to the reference, -2 where one does not fit ``scratch`` uint8[:].
    """
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        n = 0
        while True:
            before = p
            st[0] = 0
            st[1] = 0
            st[OBJECTS_MET] = 0
            st[LIMIT] = MOST_TIMES * (end[i] - p)
            p = _value(
                data, prog, classes, names, little, np.int64(0), np.int64(VALUE), np.int64(0), p, end[i], scratch, st
            )
            if p < 0:
                return p
            if starts.shape[0] > 0:
                starts[o] = before
                ends[o] = p
            o += 1
            n += 1
            if p == end[i]:
                break
            if data[p] != 0x2C:
                return np.int64(UNSERVED)
            p += 1
        counts[i] = n
    return np.int64(0)
