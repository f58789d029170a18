"""Kernels that hash byte ranges and number the distinct ones."""

from __future__ import annotations

import numpy as np

from statetool.kernels.codes import OK
from statetool.kernels.jit import jit


@jit
def hash_ranges(data, start, end, group, out):  # type: ignore[no-untyped-def]
    """Hash byte ranges together with their key group (FNV-1a, mixed) into ``out`` int64[n]."""
    for i in range(start.shape[0]):
        h = np.uint64(14695981039346656037) ^ np.uint64(group[i])
        for p in range(start[i], end[i]):
            h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
        h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(h ^ (h >> np.uint64(32)))
    return OK, 0


@jit
def _tail(data, start, end):  # type: ignore[no-untyped-def]
    """Return the last eight bytes of a byte range, or all where it has fewer, as one number."""
    word = np.uint64(0)
    if end - start < 8:
        for p in range(start, end):
            word = word << np.uint64(8) | np.uint64(data[p])
        return word
    first = np.uint64(end - 8)
    for k in range(8):
        word = word << np.uint64(8) | np.uint64(data[first + np.uint64(k)])
    return word


@jit
def _same_but_tail(data, start, end, group, i, o):  # type: ignore[no-untyped-def]
    """Tell whether two byte ranges with equal tails are equal, and of one key group."""
    a, b = np.uint64(start[i]), np.uint64(start[o])
    size = np.uint64(end[i]) - a
    if group[o] != group[i] or np.uint64(end[o]) - b != size:
        return False
    if size > 8:
        for k in range(size - np.uint64(8)):
            if data[a + np.uint64(k)] != data[b + np.uint64(k)]:
                return False
    return True


@jit
def number_ranges(data, start, end, group, tails, table, ids, first):  # type: ignore[no-untyped-def]
    """Give equal (key group, bytes) the same id, numbered as they are first seen.

    ``table`` int64[2**m], all -1, larger than n; ``tails`` uint64[n] is room to work in. ``ids`` int64[n] and ``first`` int64[n]
    (index of the first of each id) are out. Returns the number of ids.

    Sorted states have their keys in one order, so an entry's key is mostly that of the entry before it, or the next one. Keys differ most
    in their last bytes; those of the ids lie side by side in ``tails``, so that few bytes of ``data`` are looked at twice.
    """
    mask = np.uint64(table.shape[0] - 1)
    count = 0
    last = -1
    for i in range(start.shape[0]):
        tail = _tail(data, start[i], end[i])
        if last >= 0 and tails[last] == tail and _same_but_tail(data, start, end, group, i, first[last]):
            ids[i] = last
            continue
        last += 1
        if last < count and tails[last] == tail and _same_but_tail(data, start, end, group, i, first[last]):
            ids[i] = last
            continue
        h = tail ^ np.uint64(group[i]) << np.uint64(40)
        for p in range(start[i], end[i] - 8):
            h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
        h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        slot = (h ^ (h >> np.uint64(32))) & mask
        while True:
            j = table[slot]
            if j < 0:
                table[slot] = count
                tails[count] = tail
                first[count] = i
                last = count
                count += 1
                break
            if tails[j] == tail and _same_but_tail(data, start, end, group, i, first[j]):
                last = j
                break
            slot = (slot + np.uint64(1)) & mask
        ids[i] = last
    return count
