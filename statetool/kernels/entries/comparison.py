"""Kernels that pair the entries of two sources by hashes of their keys and values."""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import OK
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import word_at


@inlined
def _hash(data, start, end, seed):
    """Hash a byte range, eight bytes at a time. Ranges of equal length that differ in only one such word never collide."""
    h = seed ^ (np.uint64(end - start) * np.uint64(0x9E3779B97F4A7C15))
    p = start
    while p + 8 <= end:
        h = (h ^ word_at(data, np.uint64(p))) * np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(32)
        p += 8
    word = np.uint64(0)
    while p < end:
        word = word << np.uint64(8) | np.uint64(data[p])
        p += 1
    h = (h ^ word) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@jit
def hash_spans(data, start, end, number, seeds, out):
    """Hash byte ranges ``start .. end`` of ``data``, each with the seed selected by its ``number``, into ``out`` uint64[n]."""
    for i in range(start.shape[0]):
        out[i] = _hash(data, start[i], end[i], seeds[number[i]])
    return OK, 0


@jit
def pair_hashes(left, right, table, pairs, taken):
    """Pair equal hashes, each at most once, in order.

    Parameters
    ----------
    left, right
        uint64[n], uint64[m].
    table
        int32[2**k], all -1, larger than m: scratch space.
    pairs
        int64[n], out: the index in ``right``, -1 if there is none.
    taken
        uint8[m], all 0, out: 1 if an index was paired.

    Both sides mostly have the same order, so the partner mostly follows the previous partner. Otherwise it is looked up in ``table``.
    """
    mask = np.uint64(table.shape[0] - 1)
    for j in range(right.shape[0]):
        slot = right[j] & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = j
    following = 0
    for i in range(left.shape[0]):
        pairs[i] = -1
        if following < right.shape[0] and right[following] == left[i] and taken[following] == 0:
            pairs[i] = following
        else:
            slot = left[i] & mask
            while table[slot] >= 0:
                j = table[slot]
                if right[j] == left[i] and taken[j] == 0:
                    pairs[i] = j
                    break
                slot = (slot + np.uint64(1)) & mask
        if pairs[i] >= 0:
            taken[pairs[i]] = 1
            following = pairs[i] + 1
    return OK, 0
