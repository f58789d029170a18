"""Kernels that measure entries: counts and sizes by state and key group, distinct keys, and the largest items."""

from __future__ import annotations

from typing import Final

from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import compare

#: Columns of the counts of a state and key group.
ENTRIES, KEYS, KEY_BYTES, VALUE_BYTES = range(4)
#: First bytes of keys that are compared to choose between items of equal size.
_COMPARED: Final = 64


@inlined
def _digits(size):
    """Return the number of binary digits of a size."""
    digits = 0
    while size > 0:
        size >>= 1
        digits += 1
    return digits


@jit
def measure_rows(state, rows, index, counts, sizes, largest):
    """Count entries and their bytes by state and key group, and their sizes by state.

    Parameters
    ----------
    state, rows, index
        int64[n], :class:`~statetool.kernels.entries.walk.Rows` and int64[n]: state ids, entries, and the index of the key group of each.
    counts
        int64[states, groups, 4], in and out: columns as named in this module; keys are not counted.
    sizes
        int64[states, 3, 64], in and out: numbers of keys and of values by the binary digits of their sizes.
    largest
        int64[states], in and out: the largest size of a value.
    """
    for i in range(state.shape[0]):
        s = state[i]
        g = index[i]
        key = rows.key_end[i] - rows.key[i]
        value = rows.value_end[i] - rows.value[i]
        counts[s, g, ENTRIES] += 1
        counts[s, g, KEY_BYTES] += key
        counts[s, g, VALUE_BYTES] += value
        sizes[s, 0, _digits(key)] += 1
        sizes[s, 1, _digits(value)] += 1
        if value > largest[s]:
            largest[s] = value


@jit
def count_keys(state, ids, index, seen, counts):
    """Count the distinct keys of each state by key group.

    Parameters
    ----------
    state, ids, index
        int64[n]: state, id of the key, and index of the key group of each entry. Entries of one state follow one another.
    seen
        int64[ids], all -1, scratch.
    counts
        int64[states, groups, 4], in and out.
    """
    for i in range(state.shape[0]):
        if seen[ids[i]] != state[i]:
            seen[ids[i]] = state[i]
            counts[state[i], index[i], KEYS] += 1


@inlined
def _is_larger(data, size, group, start, end, rank, a, b):
    """Return True if item ``a`` counts as larger than ``b``."""
    if size[a] != size[b]:
        return size[a] > size[b]
    if group[a] != group[b]:
        return group[a] < group[b]
    stop = min(end[a], start[a] + _COMPARED)
    order = compare(data, start[a], stop, data, start[b], min(end[b], start[b] + _COMPARED))
    return rank[a] > rank[b] if order == 0 else order < 0


@jit
def select_largest(data, size, group, start, end, rank, out):
    """Select the largest items. Of equal sizes, the one with the first key group and key counts as larger, then the one with the higher rank.

    Parameters
    ----------
    size, group, start, end, rank
        int64[n]: size and key group of each item, the range of its key in ``data``, and its rank.
    out
        int64[m], out: indexes of the largest items, in descending order.

    Returns
    -------
    int64
        Number of items in ``out``.
    """
    count = 0
    if out.shape[0] == 0:
        return count
    for i in range(size.shape[0]):
        if count == out.shape[0]:
            if not _is_larger(data, size, group, start, end, rank, i, out[count - 1]):
                continue
        else:
            count += 1
        at = count - 1
        while at > 0 and _is_larger(data, size, group, start, end, rank, i, out[at - 1]):
            out[at] = out[at - 1]
            at -= 1
        out[at] = i
    return count
