"""Kernels that deal entries out again: find new key groups, sort entries, pack them as canonical key groups.

The order within a key group is that of RocksDB: state by state, keys by their unsigned bytes.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.jit import jit


@jit
def spread_hashes(hashes, max_parallelism, out):  # type: ignore[no-untyped-def]
    """Turn Java hash codes (int64[n]) into key groups, as ``MathUtils.murmurHash`` does."""
    for i in range(hashes.shape[0]):
        c = np.uint64(hashes[i]) & np.uint64(0xFFFFFFFF)
        c = (c * np.uint64(0xCC9E2D51)) & np.uint64(0xFFFFFFFF)
        c = ((c << np.uint64(15)) | (c >> np.uint64(17))) & np.uint64(0xFFFFFFFF)
        c = (c * np.uint64(0x1B873593)) & np.uint64(0xFFFFFFFF)
        c = ((c << np.uint64(13)) | (c >> np.uint64(19))) & np.uint64(0xFFFFFFFF)
        c = (c * np.uint64(5) + np.uint64(0xE6546B64)) & np.uint64(0xFFFFFFFF)
        c ^= np.uint64(4)
        c ^= c >> np.uint64(16)
        c = (c * np.uint64(0x85EBCA6B)) & np.uint64(0xFFFFFFFF)
        c ^= c >> np.uint64(13)
        c = (c * np.uint64(0xC2B2AE35)) & np.uint64(0xFFFFFFFF)
        c ^= c >> np.uint64(16)
        v = np.int64(c)
        if v >= 0x80000000:
            v = np.int64(0) if v == 0x80000000 else 0x100000000 - v
        out[i] = v % max_parallelism


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
def compare_entries(data, major, head, key, key_end, a, b):  # type: ignore[no-untyped-def]
    """Compare two entries by ``major`` and key bytes: negative, 0 or positive."""
    if major[a] != major[b]:
        return -1 if major[a] < major[b] else 1
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
def sort_entries(data, major, head, key, key_end, order, other):  # type: ignore[no-untyped-def]
    """Sort ``order`` int64[n] (in and out) by ``major`` int64 and key bytes; stable, quick where much is sorted already.

    ``head`` uint64 are the keys' first bytes (:func:`key_heads`), ``other`` int64[n] is scratch.
    """
    n = order.shape[0]
    width = 1
    while width < n:
        low = 0
        while low < n:
            middle = min(low + width, n)
            high = min(low + 2 * width, n)
            if middle >= high or (
                compare_entries(data, major, head, key, key_end, order[middle - 1], order[middle]) <= 0
            ):
                for i in range(low, high):
                    other[i] = order[i]
            else:
                a = low
                b = middle
                for i in range(low, high):
                    if b >= high or (
                        a < middle and compare_entries(data, major, head, key, key_end, order[a], order[b]) <= 0
                    ):
                        other[i] = order[a]
                        a += 1
                    else:
                        other[i] = order[b]
                        b += 1
            low = high
        for i in range(n):
            order[i] = other[i]
        width *= 2


@jit
def find_twins(data, major, head, key, key_end, order):  # type: ignore[no-untyped-def]
    """Return where in a sorted ``order`` an entry has the same state and key as the one before, -1 for nowhere."""
    for i in range(1, order.shape[0]):
        if compare_entries(data, major, head, key, key_end, order[i - 1], order[i]) == 0:
            return i
    return -1


@jit
def pack_groups(data, order, group, state, key, key_end, value, value_end, prefix, out, numbers, starts):  # type: ignore[no-untyped-def]
    """Write sorted entries as canonical key groups, one after another.

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
        size = key_end[i] - key[i] + prefix
        out[o] = size >> 24
        out[o + 1] = (size >> 16) & 0xFF
        out[o + 2] = (size >> 8) & 0xFF
        out[o + 3] = size & 0xFF
        o += 4
        first = group[i] >> (8 * (prefix - 1))
        out[o] = first | 0x80 if last else first
        if prefix == 2:
            out[o + 1] = group[i] & 0xFF
        o += prefix
        for p in range(key[i], key_end[i]):
            out[o] = data[p]
            o += 1
        size = value_end[i] - value[i]
        out[o] = size >> 24
        out[o + 1] = (size >> 16) & 0xFF
        out[o + 2] = (size >> 8) & 0xFF
        out[o + 3] = size & 0xFF
        o += 4
        for p in range(value[i], value_end[i]):
            out[o] = data[p]
            o += 1
        if closes:
            out[o] = 0xFF
            out[o + 1] = 0xFF
            o += 2
    return o, count
