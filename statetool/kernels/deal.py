"""Kernels that deal entries out again: order entries, pack them as canonical key groups.

The order within a key group is that of RocksDB: state by state, keys by their unsigned bytes.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.jit import jit


@jit
def count_order(major, places, order):  # type: ignore[no-untyped-def]
    """Sort by counting, stable: ``major`` int64[n] are small numbers, ``order`` int64[n] is out.

    ``places`` int64[m + 1], all zero, is scratch; m is above every number.
    """
    for i in range(major.shape[0]):
        places[major[i] + 1] += 1
    for k in range(1, places.shape[0]):
        places[k] += places[k - 1]
    for i in range(major.shape[0]):
        order[places[major[i]]] = i
        places[major[i]] += 1


@jit
def key_heads(data, start, end, out):  # type: ignore[no-untyped-def]
    """Load the first eight bytes of each range as a big-endian ``out`` uint64[n], zeros behind shorter ones."""
    for i in range(start.shape[0]):
        head = np.uint64(0)
        for k in range(8):
            head = head << np.uint64(8)
            if start[i] + k < end[i]:
                head |= np.uint64(data[start[i] + k])
        out[i] = head


@jit
def compare_keys(data, head, key, key_end, a, b):  # type: ignore[no-untyped-def]
    """Compare two entries by their keys' bytes: negative, 0 or positive."""
    if head[a] != head[b]:
        return -1 if head[a] < head[b] else 1
    n = key_end[a] - key[a]
    m = key_end[b] - key[b]
    for k in range(8, min(n, m)):
        x = data[key[a] + k]
        y = data[key[b] + k]
        if x != y:
            return -1 if x < y else 1
    return 0 if n == m else (-1 if n < m else 1)


@jit
def sort_segments(data, major, head, key, key_end, order, other):  # type: ignore[no-untyped-def]
    """Sort entries of one ``major`` (int64[n]) by their keys; stable, quick where much is sorted already.

    Parameters
    ----------
    head
        uint64[n], the keys' first bytes (:func:`key_heads`).
    order
        int64[n], in and out: sorted by ``major`` already.
    other
        int64[n], scratch.

    Returns
    -------
    int64
        An index in ``order`` whose entry has the ``major`` and key of the one before it, -1 where there is none.
    """
    n = order.shape[0]
    first = 0
    twin = np.int64(-1)
    while first < n:
        stop = first + 1
        ordered = True
        while stop < n and major[order[stop]] == major[order[first]]:
            if ordered and compare_keys(data, head, key, key_end, order[stop - 1], order[stop]) > 0:
                ordered = False
            stop += 1
        width = 1 if not ordered else stop - first
        while width < stop - first:
            low = first
            while low < stop:
                middle = min(low + width, stop)
                high = min(low + 2 * width, stop)
                if middle >= high or compare_keys(data, head, key, key_end, order[middle - 1], order[middle]) <= 0:
                    for i in range(low, high):
                        other[i] = order[i]
                else:
                    a = low
                    b = middle
                    for i in range(low, high):
                        if b >= high or (
                            a < middle and compare_keys(data, head, key, key_end, order[a], order[b]) <= 0
                        ):
                            other[i] = order[a]
                            a += 1
                        else:
                            other[i] = order[b]
                            b += 1
                low = high
            for i in range(first, stop):
                order[i] = other[i]
            width *= 2
        for i in range(first + 1, stop):
            if twin < 0 and compare_keys(data, head, key, key_end, order[i - 1], order[i]) == 0:
                twin = np.int64(i)
        first = stop
    return twin


@jit
def _put(data, start, size, out, o):  # type: ignore[no-untyped-def]
    """Copy bytes and return the position behind them."""
    a = np.uint64(start)
    b = np.uint64(o)
    for k in range(np.uint64(size)):
        out[b + k] = data[a + k]
    return o + size


@jit
def _put_size(size, out, o):  # type: ignore[no-untyped-def]
    out[o] = size >> 24
    out[o + 1] = (size >> 16) & 0xFF
    out[o + 2] = (size >> 8) & 0xFF
    out[o + 3] = size & 0xFF
    return o + 4


@jit
def pack_groups(data, order, group, state, key, key_end, value, value_end, prefix, out, numbers, starts):  # type: ignore[no-untyped-def]
    """Write entries as canonical key groups, one after another.

    Parameters
    ----------
    order
        int64[n], sorted by key group and state.
    group, state
        Key group and state id that the entries get.
    key
        Where the key starts behind the key-group prefix that it had.
    prefix
        Bytes of the new prefix.
    out
        uint8[:], large enough: of each entry 8 bytes, the prefix, key and value; 2 bytes for each state and 2 for the end of each
        key group.
    numbers, starts
        int64[n] out: the key groups and where each starts in ``out``.

    Returns
    -------
    size, count
        Bytes written, and key groups.
    """
    o = np.int64(0)
    count = 0
    n = order.shape[0]
    for x in range(n):
        i = order[x]
        opens = x == 0 or group[order[x - 1]] != group[i]
        if opens:
            numbers[count] = group[i]
            starts[count] = o
            count += 1
        if opens or state[order[x - 1]] != state[i]:
            out[o] = state[i] >> 8
            out[o + 1] = state[i] & 0xFF
            o += 2
        closes = x == n - 1 or group[order[x + 1]] != group[i]
        last = closes or state[order[x + 1]] != state[i]
        o = _put_size(key_end[i] - key[i] + prefix, out, o)
        first = group[i] >> (8 * (prefix - 1))
        out[o] = first | 0x80 if last else first
        if prefix == 2:
            out[o + 1] = group[i] & 0xFF
        o = _put(data, key[i], key_end[i] - key[i], out, o + prefix)
        o = _put_size(value_end[i] - value[i], out, o)
        o = _put(data, value[i], value_end[i] - value[i], out, o)
        if closes:
            out[o] = 0xFF
            out[o + 1] = 0xFF
            o += 2
    return o, count
