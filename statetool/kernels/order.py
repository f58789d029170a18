"""Kernels that put entries in the order of RocksDB: key group by key group, state by state, keys by their unsigned bytes."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.jit import inlined, jit

#: Counting the digits of fewer keys takes longer than comparing them.
_FEW: Final = 128


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
def _merge_sort(data, head, key, key_end, order, other, first, stop):  # type: ignore[no-untyped-def]
    """Sort ``order[first:stop]`` by keys, stable, quick where runs are sorted already; ``other`` is scratch."""
    width = 1
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
                    if b >= high or (a < middle and compare_keys(data, head, key, key_end, order[a], order[b]) <= 0):
                        other[i] = order[a]
                        a += 1
                    else:
                        other[i] = order[b]
                        b += 1
            low = high
        for i in range(first, stop):
            order[i] = other[i]
        width *= 2


@inlined
def _radix_sort(head, order, other, counts, first, stop):  # type: ignore[no-untyped-def]
    """Sort ``order[first:stop]`` by ``head``, stable: byte by byte from the last one on, without bytes that are the same in all.

    ``counts`` int64[257] and ``other`` are scratch.
    """
    unlike = np.uint64(0)
    for i in range(first, stop):
        unlike |= head[order[i]] ^ head[order[first]]
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if (unlike >> shift) & np.uint64(0xFF) == 0:
            continue
        for k in range(257):
            counts[k] = 0
        for i in range(first, stop):
            counts[np.int64((head[order[i]] >> shift) & np.uint64(0xFF)) + 1] += 1
        for k in range(1, 257):
            counts[k] += counts[k - 1]
        for i in range(first, stop):
            digit_here = np.int64((head[order[i]] >> shift) & np.uint64(0xFF))
            other[first + counts[digit_here]] = order[i]
            counts[digit_here] += 1
        for i in range(first, stop):
            order[i] = other[i]


@jit
def sort_segments(data, major, head, key, key_end, order, other, counts):  # type: ignore[no-untyped-def]
    """Sort entries of one ``major`` (int64[n]) by their keys; stable.

    Parameters
    ----------
    head
        uint64[n], the keys' first bytes (:func:`key_heads`).
    order
        int64[n], in and out: sorted by ``major`` already.
    other, counts
        int64[n] and int64[257], scratch.

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
        equal = np.int64(-1)
        while stop < n and major[order[stop]] == major[order[first]]:
            if ordered:
                comparison = compare_keys(data, head, key, key_end, order[stop - 1], order[stop])
                ordered = comparison <= 0
                if comparison == 0:
                    equal = np.int64(stop)
            stop += 1
        if ordered:
            twin = max(twin, equal)
            first = stop
            continue
        if stop - first < _FEW:
            _merge_sort(data, head, key, key_end, order, other, first, stop)
        else:
            _radix_sort(head, order, other, counts, first, stop)
            low = first
            while low < stop:
                high = low + 1
                while high < stop and head[order[high]] == head[order[low]]:
                    high += 1
                if high - low > 1:
                    _merge_sort(data, head, key, key_end, order, other, low, high)
                low = high
        for i in range(first + 1, stop):
            if twin < 0 and compare_keys(data, head, key, key_end, order[i - 1], order[i]) == 0:
                twin = np.int64(i)
        first = stop
    return twin
