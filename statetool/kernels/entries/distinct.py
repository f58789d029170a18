"""Kernels that hash byte ranges and number the distinct ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.codes import OK
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import compare, equal, word_at

#: Numbers in the head of a range: its last bytes, its size, and its key group.
HEAD: Final = 3


@jit
def hash_ranges(data, start, end, group, out):
    """Hash byte ranges together with their key group (FNV-1a, mixed) into ``out`` int64[n]."""
    for i in range(start.shape[0]):
        h = np.uint64(14695981039346656037) ^ np.uint64(group[i])
        for p in range(start[i], end[i]):
            h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
        h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(h ^ (h >> np.uint64(32)))
    return OK, 0


@inlined
def _tail(data, start, end):
    """Return the last eight bytes of a byte range, or all of a shorter one, as one number."""
    word = np.uint64(0)
    if end - start < 8:
        for p in range(start, end):
            word = word << np.uint64(8) | np.uint64(data[np.uint64(p)])
    else:
        word = word_at(data, np.uint64(end - 8))
    return word


@inlined
def _same(data, start, end, group, heads, first, i, tail, number):
    """Return True if range ``i``, which ends with ``tail``, equals the numbered range ``number``."""
    at = np.uint64(number) * np.uint64(HEAD)
    size = end[i] - start[i]
    same = heads[at] == tail and heads[at + np.uint64(1)] == np.uint64(size)
    same = same and heads[at + np.uint64(2)] == np.uint64(group[i])
    if same and size > 8:
        o = np.uint64(first[np.uint64(number)])
        same = equal(data, start[i], end[i], start[o], end[o])
    return same


@inlined
def _before(data, start, end, group, i, o):
    """Return True if range ``i`` sorts before range ``o``, by key group and bytes."""
    before = group[i] < group[o]
    if group[i] == group[o]:
        before = compare(data, start[i], end[i], data, start[o], end[o]) < 0
    return before


@jit
def _slot_of(data, start, end, group, heads, table, i, tail, first):
    """Return the slot of the hash table that holds range ``i``, or the free slot for it."""
    mask = np.uint64(table.shape[0] - 1)
    h = tail ^ np.uint64(group[i]) << np.uint64(40)
    for p in range(start[i], end[i] - 8):
        h = (h ^ np.uint64(data[p])) * np.uint64(1099511628211)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    slot = (h ^ (h >> np.uint64(32))) & mask
    while table[slot] >= 0 and not _same(data, start, end, group, heads, first, i, tail, table[slot]):
        slot = (slot + np.uint64(1)) & mask
    return slot


@jit
def number_ranges(data, start, end, group, heads, table, ids, first):
    """Assign one id per distinct (key group, bytes), numbered in order of first appearance.

    ``table`` int64[2**m], larger than n, and ``heads`` uint64[HEAD * n] are scratch space. ``ids`` int64[n] and ``first`` int64[n] (index of the
    first occurrence of each id) are out. Returns the number of ids.

    Sorted states share one key order, so the key of an entry is mostly that of the previous entry, or the next one. As long as each new key
    sorts after all others, the ids ascend, and each state is merged with them. The hash table is built at the first key that does not. Keys
    differ most in their last bytes, so ``heads`` has the last bytes, size and key group of each id, and few bytes of ``data`` are compared
    twice.
    """
    count = 0
    last = -1
    merging = True
    steps = 2 * start.shape[0]
    for i in range(start.shape[0]):
        tail = _tail(data, start[i], end[i])
        if last >= 0 and _same(data, start, end, group, heads, first, i, tail, last):
            ids[i] = last
            continue
        last += 1
        if last < count and _same(data, start, end, group, heads, first, i, tail, last):
            ids[i] = last
            continue
        if merging:
            if last > 0 and _before(data, start, end, group, i, first[last - 1]):
                last = 0  # a new state begins
            while last < count and steps > 0 and _before(data, start, end, group, first[last], i):
                last += 1
                steps -= 1
            if last < count and not _same(data, start, end, group, heads, first, i, tail, last):
                merging = False
                table[:] = -1
                for k in range(count):
                    tail_of_k = heads[np.uint64(HEAD * k)]
                    table[_slot_of(data, start, end, group, heads, table, first[k], tail_of_k, first)] = k
        if not merging:
            slot = _slot_of(data, start, end, group, heads, table, i, tail, first)
            last = table[slot]
            if last < 0:
                table[slot] = last = count
        if last == count:
            at = np.uint64(HEAD * count)
            heads[at] = tail
            heads[at + np.uint64(1)] = np.uint64(end[i] - start[i])
            heads[at + np.uint64(2)] = np.uint64(group[i])
            first[count] = i
            count += 1
        ids[i] = last
    return count
