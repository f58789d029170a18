"""Kernels that sort entries in the order of RocksDB: by key group, by state, by the unsigned bytes of keys."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import word_at

#: Below this number of keys, counting digits takes longer than comparing keys.
_FEW: Final = 128
#: Maximum bits of a digit that keys are sorted by. The digit is wider for many keys, so that they are moved fewer times.
_FEW_BITS: Final = 8
_MOST_BITS: Final = 11
_MANY: Final = 1 << 12
#: Maximum number of values of a digit.
DIGITS: Final = 1 << _MOST_BITS


@jit
def count_order(major, places, order):
    """Sort by counting, stable: ``major`` int64[n] are small numbers, ``order`` int64[n] is out.

    ``places`` int64[m + 1], all zero, is scratch; m exceeds every number.
    """
    for i in range(major.shape[0]):
        places[major[i] + 1] += 1
    for k in range(1, places.shape[0]):
        places[k] += places[k - 1]
    for i in range(major.shape[0]):
        order[places[major[i]]] = i
        places[major[i]] += 1


@inlined
def _head(data, at, end):
    """Return the eight bytes from ``at`` on as one big-endian number, zero-padded after ``end``."""
    if at + 8 <= end:
        return word_at(data, np.uint64(at))
    head = np.uint64(0)
    for k in range(8):
        head = head << np.uint64(8)
        if at + k < end:
            head |= np.uint64(data[at + k])
    return head


@jit
def key_heads(data, start, end, out):
    """Load the first 16 bytes of each range as two big-endian numbers of ``out`` uint64[2, n]; shorter ranges are zero-padded."""
    for i in range(start.shape[0]):
        out[0, i] = _head(data, start[i], end[i])
        out[1, i] = _head(data, start[i] + 8, end[i])


@jit
def find_parts(state, head, bound_state, bound_head, out):
    """Find the part of each entry by its state and the first bytes of its key.

    Parameters
    ----------
    state, head
        int64[n] and uint64[2, n] of :func:`key_heads`.
    bound_state, bound_head
        int64[m] and uint64[2, m], ascending: the least entry of each part but the first.
    out
        int64[n], out: the part, 0 to m.
    """
    for i in range(state.shape[0]):
        low = 0
        high = bound_state.shape[0]
        while low < high:
            middle = (low + high) // 2
            if bound_state[middle] != state[i]:
                above = bound_state[middle] > state[i]
            elif bound_head[0, middle] != head[0, i]:
                above = bound_head[0, middle] > head[0, i]
            else:
                above = bound_head[1, middle] > head[1, i]
            if above:
                high = middle
            else:
                low = middle + 1
        out[i] = low


@jit
def find_lowest(data, group, state, key, key_end, base, out):
    """Find the lowest entry of each key group, by its state and the first bytes of its key.

    Parameters
    ----------
    group, state, key, key_end
        int64[n]: key group, state id and range of the key of each entry.
    base
        The smallest key group.
    out
        uint64[3, m], in and out: the state, and the first 16 bytes of the key as :func:`key_heads` loads them, of the lowest entry of each
        key group counted from ``base``. At first they exceed all others.
    """
    for i in range(group.shape[0]):
        g = group[i] - base
        own = np.uint64(state[i])
        if own > out[0, g]:
            continue
        first = _head(data, key[i], key_end[i])
        if own == out[0, g] and first > out[1, g]:
            continue
        second = _head(data, key[i] + 8, key_end[i])
        if own < out[0, g] or first < out[1, g] or second < out[2, g]:
            out[0, g] = own
            out[1, g] = first
            out[2, g] = second


@jit
def compare_keys(data, head, key, key_end, a, b):
    """Compare two entries by their keys' bytes: negative, 0 or positive."""
    for part in range(2):
        if head[part, a] != head[part, b]:
            return -1 if head[part, a] < head[part, b] else 1
    n = key_end[a] - key[a]
    m = key_end[b] - key[b]
    for k in range(16, min(n, m)):
        x = data[key[a] + k]
        y = data[key[b] + k]
        if x != y:
            return -1 if x < y else 1
    return 0 if n == m else (-1 if n < m else 1)


@inlined
def _compare_ranges(data, a, a_end, b, b_end):
    """Compare two byte ranges: negative, 0 or positive."""
    while a < a_end and b < b_end:
        x = _head(data, a, a_end)
        y = _head(data, b, b_end)
        if x != y:
            return -1 if x < y else 1
        a += 8
        b += 8
    # Zeros after the end of a range are equal to its padding, so that only the sizes tell.
    return (a_end - a) - (b_end - b)


@jit
def merge_edits(data, state, key, key_end, stored, removed, out):
    """Apply sorted edits to sorted entries of one key group.

    Parameters
    ----------
    state, key, key_end
        int64[n]: state id and range of the key of each entry, first those of the stored entries, then those of the edits.
    stored
        Number of stored entries.
    removed
        bool[n]: whether an edit removes the entry with its key. Other edits replace or add an entry.
    out
        int64[n], out: the remaining stored entries and the edits, in order.

    Returns
    -------
    count, found
        Numbers of entries in ``out``, and of stored entries that were removed or replaced.
    """
    i = 0
    j = stored
    count = 0
    found = 0
    while i < stored or j < state.shape[0]:
        order = -1 if j == state.shape[0] else 1
        if i < stored and j < state.shape[0]:
            order = state[i] - state[j]
            if order == 0:
                order = _compare_ranges(data, key[i], key_end[i], key[j], key_end[j])
        if order < 0:
            out[count] = i
            count += 1
            i += 1
            continue
        if order == 0:
            found += 1
            i += 1
        if not removed[j]:
            out[count] = j
            count += 1
        j += 1
    return count, found


@jit
def _merge_sort(data, head, key, key_end, order, other, first, stop):
    """Sort ``order[first:stop]`` by keys, stable, fast for already sorted runs; ``other`` is scratch."""
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
def _digit_bits(unlike, most):
    """Return the width in bits, up to ``most``, of the digits of numbers that differ in the bits ``unlike``.

    All digits are equally wide. A digit of few values takes longest, because each increment of a count waits for the previous one.
    """
    low = 0
    while low < 64 and (unlike >> np.uint64(low)) & np.uint64(1) == 0:
        low += 1
    high = 64
    while high > low and (unlike >> np.uint64(high - 1)) & np.uint64(1) == 0:
        high -= 1
    digits = max(1, -(-(high - low) // most))
    return -(-(high - low) // digits)


@inlined
def _radix_sort(head, order, other, heads, counts, first, stop):
    """Sort ``order[first:stop]`` by ``head[0]``, stable: some bits at a time from the lowest on, skipping bits that are equal in all.

    ``other`` int64[n], ``heads`` uint64[2, n] and ``counts`` int64[DIGITS + 1] are scratch: heads move with their entries, so that they are
    read sequentially. Returns which of the two ``heads`` are sorted in the end.
    """
    unlike = np.uint64(0)
    for i in range(first, stop):
        heads[0, i] = head[0, order[i]]
        unlike |= heads[0, i] ^ heads[0, first]
    digits = np.int64(1) << _digit_bits(unlike, _MOST_BITS if stop - first >= _MANY else _FEW_BITS)
    mask = np.uint64(digits - 1)
    now = 0
    source, target = order, other
    while unlike:
        shift = np.uint64(0)
        while (unlike >> shift) & np.uint64(1) == 0:
            shift += np.uint64(1)
        unlike &= ~(mask << shift)
        for k in range(digits + 1):
            counts[k] = 0
        for i in range(first, stop):
            counts[np.int64((heads[now, i] >> shift) & mask) + 1] += 1
        for k in range(1, digits + 1):
            counts[k] += counts[k - 1]
        for i in range(first, stop):
            own = heads[now, i]
            digit = np.int64((own >> shift) & mask)
            place = first + counts[digit]
            counts[digit] += 1
            target[place] = source[i]
            heads[1 - now, place] = own
        now = 1 - now
        source, target = target, source
    if now:
        for i in range(first, stop):
            order[i] = other[i]
    return now


@inlined
def _twin(data, head, key, key_end, order, first, stop):
    """Return the first index in ``order`` whose entry has the same key as the previous one, -1 if there is none."""
    for i in range(first + 1, stop):
        if compare_keys(data, head, key, key_end, order[i - 1], order[i]) == 0:
            return np.int64(i)
    return np.int64(-1)


@jit
def sort_segments(data, major, head, key, key_end, order, other, heads, counts):
    """Sort the entries of each ``major`` (int64[n]) by their keys; stable.

    Parameters
    ----------
    head
        uint64[2, n], the keys' first bytes (:func:`key_heads`), so that ties are seldom looked up in ``data``.
    order
        int64[n], in and out: already sorted by ``major``.
    other, heads, counts
        int64[n], uint64[2, n] and int64[DIGITS + 1], scratch.

    Returns
    -------
    int64
        An index in ``order`` whose entry has the same ``major`` and key as the previous one, -1 if there is none.
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
            twin = max(twin, _twin(data, head, key, key_end, order, first, stop))
        else:
            now = _radix_sort(head, order, other, heads, counts, first, stop)
            low = first
            while low < stop:
                high = low + 1
                while high < stop and heads[now, high] == heads[now, low]:
                    high += 1
                if high - low == 2:  # such as two entries of a map
                    comparison = compare_keys(data, head, key, key_end, order[low], order[low + 1])
                    if comparison > 0:
                        order[low], order[low + 1] = order[low + 1], order[low]
                    elif comparison == 0:
                        twin = max(twin, np.int64(low + 1))
                elif high - low > 2:
                    _merge_sort(data, head, key, key_end, order, other, low, high)
                    twin = max(twin, _twin(data, head, key, key_end, order, low, high))
                low = high
        first = stop
    return twin
