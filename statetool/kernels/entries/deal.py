"""Kernels that pack entries as canonical key groups, either in the given order or in an order found by
:mod:`statetool.kernels.entries.order`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import inlined, jit, read_soon
from statetool.kernels.core.words import AHEAD, copy_bytes, equal
from statetool.kernels.entries.walk import NO_STATE

#: Shape of the scratch space for entries whose ranges are looked up together: few enough that the ranges and their bytes stay in the L1
#: cache.
LOOKED_UP: Final = (6, 256)


@jit
def mark_equal(data, group, state, key, key_end, out):
    """Mark the entries in ``out`` bool[n] that have the same key group, state and key as the previous entry."""
    for i in range(1, group.shape[0]):
        same = group[i] == group[i - 1] and state[i] == state[i - 1]
        out[i] = same and equal(data, key[i], key_end[i], key[i - 1], key_end[i - 1])


@inlined
def _put_size(size, out, o):
    """Write an i32 and return the position after it."""
    out[o] = size >> 24
    out[o + 1] = (size >> 16) & 0xFF
    out[o + 2] = (size >> 8) & 0xFF
    out[o + 3] = size & 0xFF
    return o + 4


@inlined
def _put_mark(mark, out, o):
    """Write the two bytes of a state id or of :data:`~statetool.kernels.entries.walk.NO_STATE` and return the position after them."""
    out[o] = mark >> 8
    out[o + 1] = mark & 0xFF
    return o + 2


@inlined
def _put_entry(data, i, group, key, key_end, value, value_end, prefix, out, o):
    """Write entry ``i`` as if another entry of its state followed, and return the position after it."""
    size = key_end[i] - key[i]
    o = _put_size(size + prefix, out, o)
    if prefix == 2:
        out[o] = group >> 8
        out[o + 1] = group & 0xFF
    else:
        out[o] = group
    o = copy_bytes(data, key[i], size, out, o + prefix)
    size = value_end[i] - value[i]
    o = _put_size(size, out, o)
    return copy_bytes(data, value[i], size, out, o)


@jit
def deal_groups(data, group, state, key, key_end, value, value_end, prefix, base, next_, last, out, numbers, starts):
    """Write entries as canonical key groups, one after another, keeping the order of the entries of one state.

    Parameters
    ----------
    group, state, key, prefix, out, numbers, starts
        As in :func:`pack_groups`, in any order.
    base
        The smallest key group.
    next_, last
        int64[m, s], all zero, scratch. m exceeds every key group counted from ``base``, and s every state.

    Returns
    -------
    size, count
        Bytes written, and number of key groups.
    """
    n = group.shape[0]
    for i in range(n):
        next_[group[i] - base, state[i]] += key_end[i] - key[i] + value_end[i] - value[i] + 8 + prefix
    o = np.int64(0)
    count = 0
    for g in range(next_.shape[0]):
        before = o
        for s in range(next_.shape[1]):
            size = next_[g, s]
            if size:
                next_[g, s] = _put_mark(s, out, o)
                o = next_[g, s] + size
        if o > before:
            numbers[count] = g + base
            starts[count] = before
            count += 1
            o = _put_mark(NO_STATE, out, o)
    for i in range(n):
        g = group[i] - base
        s = state[i]
        at = next_[g, s]
        last[g, s] = at
        next_[g, s] = _put_entry(data, i, group[i], key, key_end, value, value_end, prefix, out, at)
    for g in range(last.shape[0]):
        for s in range(last.shape[1]):
            if last[g, s]:
                out[last[g, s] + 4] |= 0x80
    return o, count


@inlined
def _look_up(data, order, first, some, group, state, key, key_end, value, value_end, places):
    """Look up the ranges of ``some`` entries of ``order``, and prefetch their bytes."""
    for k in range(some):
        i = order[first + k]
        places[0, k] = group[i]
        places[1, k] = state[i]
        places[2, k] = key[i]
        places[3, k] = key_end[i]
        places[4, k] = value[i]
        places[5, k] = value_end[i]
        read_soon(data, key[i])


@jit
def pack_groups(data, order, group, state, key, key_end, value, value_end, prefix, places, out, numbers, starts):
    """Write entries as canonical key groups, one after another.

    Ranges are looked up and prefetched for several entries at a time. If a key group is larger than the processor's cache, looking up each
    entry in turn makes copying three times as slow.

    Parameters
    ----------
    order
        int64[k]: the entries to write, sorted by key group and state.
    group, state
        int64[n]: the key group and state id that the entries get.
    key, key_end, value, value_end
        int64[n]: range of each entry's key and value; the key starts after its previous key-group prefix.
    prefix
        Bytes of the new prefix.
    places
        int64[6, m], scratch (:data:`LOOKED_UP`).
    out
        uint8[:], large enough for 8 bytes, the prefix, key and value per entry, 2 bytes per state, and 2 bytes for the end of each key
        group.
    numbers, starts
        int64[k] out: the key groups, and the start of each in ``out``.

    Returns
    -------
    size, count
        Bytes written, and number of key groups.
    """
    o = np.int64(0)
    count = 0
    last = np.int64(-1)
    mark = np.int64(-1)
    groups, states, keys = places[0], places[1], places[2]
    key_ends, values, value_ends = places[3], places[4], places[5]
    for first in range(0, order.shape[0], places.shape[1]):
        some = min(places.shape[1], order.shape[0] - first)
        _look_up(data, order, first, some, group, state, key, key_end, value, value_end, places)
        for k in range(some):
            opens = count == 0 or numbers[count - 1] != groups[k]
            begins = opens or mark != states[k]
            if begins and count:
                out[last + 4] |= 0x80
            if opens and count:
                o = _put_mark(NO_STATE, out, o)
            if opens:
                numbers[count] = groups[k]
                starts[count] = o
                count += 1
            if begins:
                mark = states[k]
                o = _put_mark(mark, out, o)
            last = o
            o = _put_entry(data, k, groups[k], keys, key_ends, values, value_ends, prefix, out, o)
    if last >= 0:
        out[last + 4] |= 0x80
        o = _put_mark(NO_STATE, out, o)
    return o, count


@jit
def reorder_groups(data, start, size, edges, group, state, out, numbers, starts):
    """Write the entries of canonical key groups as canonical key groups in another order.

    Each entry is copied as a unit, with its sizes and its prefix.

    Parameters
    ----------
    data
        The key groups.
    start, size
        int64[n]: start and size of each entry, in the new order, sorted by key group and state.
    edges
        int64[m + 1]: start of each state of a key group in this order, and the end.
    group, state
        int64[m]: key group and state id of each of these.
    out, numbers, starts
        As in :func:`pack_groups`, with the same return values. At most as many bytes are written as ``data`` has.
    """
    o = np.int64(0)
    count = 0
    end = start.shape[0] - 1
    for e in range(group.shape[0]):
        if count == 0 or numbers[count - 1] != group[e]:
            if count:
                o = _put_mark(NO_STATE, out, o)
            numbers[count] = group[e]
            starts[count] = o
            count += 1
        o = _put_mark(state[e], out, o)
        last = o
        for x in range(edges[e], edges[e + 1]):
            read_soon(data, start[min(x + AHEAD, end)])
            last = o
            o = copy_bytes(data, start[x], size[x], out, o)
            out[np.uint64(last + 4)] &= 0x7F
        out[last + 4] |= 0x80
    if count:
        o = _put_mark(NO_STATE, out, o)
    return o, count
