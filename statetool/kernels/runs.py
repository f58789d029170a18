"""Sorted runs of entries from RocksDB table files: finding and merging keys, and applying newer entries to older ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.blocks import BAD_KIND
from statetool.kernels.codes import OK
from statetool.kernels.jit import inlined, jit
from statetool.kernels.words import compare, copy_bytes, equal

DELETION: Final = 0
VALUE: Final = 1
MERGE: Final = 2
SINGLE_DELETION: Final = 7


@jit
def first_not_before(keys, key, key_end, wanted, behind):  # type: ignore[no-untyped-def]
    """Return the number of ascending keys before ``wanted`` uint8[:]; with ``behind`` 1, keys equal to it also count."""
    low = np.int64(0)
    high = np.int64(key.shape[0])
    while low < high:
        middle = (low + high) // 2
        c = compare(keys, key[middle], key_end[middle], wanted, np.int64(0), np.int64(wanted.shape[0]))
        if c < 0 or (c == 0 and behind == 1):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def mark_blocks(block_keys, block, block_end, keys, key, key_end, marked):  # type: ignore[no-untyped-def]
    """Mark the blocks that may contain keys starting with one of several prefixes.

    Parameters
    ----------
    block_keys, block, block_end
        For each block, its last key or a key that sorts after it, ascending.
    keys, key, key_end
        The prefixes, in any order.
    marked
        uint8[blocks], out: 1 if a block is needed.
    """
    n = block.shape[0]
    for i in range(key.shape[0]):
        low = np.int64(0)
        high = np.int64(n)
        while low < high:
            middle = (low + high) // 2
            if compare(block_keys, block[middle], block_end[middle], keys, key[i], key_end[i]) < 0:
                low = middle + 1
            else:
                high = middle
        size = key_end[i] - key[i]
        while low < n:
            marked[low] = 1
            # The next block can contain more keys of the prefix only if this one ends with a key of the same prefix.
            end = min(block_end[low], block[low] + size)
            if compare(block_keys, block[low], end, keys, key[i], key_end[i]) != 0:
                break
            low += 1
    return OK, 0


@jit
def merge_runs(keys, key, key_end, tag, left, right, out):  # type: ignore[no-untyped-def]
    """Merge two ascending runs of entries (int64 indexes) into ``out``: by key, newest first within a key."""
    i, j, o = 0, 0, 0
    while i < left.shape[0] and j < right.shape[0]:
        a, b = np.uint64(left[np.uint64(i)]), np.uint64(right[np.uint64(j)])
        c = compare(keys, key[a], key_end[a], keys, key[b], key_end[b])
        if c < 0 or (c == 0 and tag[a] >= tag[b]):
            out[np.uint64(o)] = np.int64(a)
            i += 1
        else:
            out[np.uint64(o)] = np.int64(b)
            j += 1
        o += 1
    while i < left.shape[0]:
        out[o] = left[i]
        i += 1
        o += 1
    while j < right.shape[0]:
        out[o] = right[j]
        j += 1
        o += 1


@jit
def is_settled(keys, key, key_end, tag):  # type: ignore[no-untyped-def]
    """Return True if :func:`newest` would return all entries as they are: each is a value, or a merge operand, and the only one of its key."""
    for i in range(key.shape[0]):
        kind = tag[i] & np.uint64(0xFF)
        if kind != np.uint64(VALUE) and kind != np.uint64(MERGE):
            return False
        if i > 0 and equal(keys, key[i - 1], key_end[i - 1], key[i], key_end[i]):
            return False
    return True


@inlined
def _same_key(keys, key, key_end, a, b):  # type: ignore[no-untyped-def]
    """Return True if two entries (uint64) have the same key."""
    return equal(keys, key[a], key_end[a], key[b], key_end[b])


@jit
def newest(  # type: ignore[no-untyped-def]
    keys, key, key_end, tag, data, value, value_end, order, joined, out_key, out_key_end, out_value, out_value_end
):
    """Select the entries that remain after newer ones have replaced older ones.

    The newest entries of a key decide: a value; nothing if it was deleted; or merge operands down to such a base, joined by commas from the
    oldest to the newest.

    Parameters
    ----------
    order
        int64[n]: by key, newest first within a key.
    joined
        uint8[:] out: joined operands, in the order of their keys; if there are operands, room for all values and one comma per value.
    out_key, out_key_end, out_value, out_value_end
        int64[n] out: ranges in ``keys`` and ``data``; positions in ``joined`` are counted on from the end of ``data``.

    Returns
    -------
    code, entries (for a bad entry: its index in ``order``), bytes of ``joined``
    """
    n = np.int64(0)
    o = np.int64(0)
    i = 0
    total = order.shape[0]
    behind = data.shape[0]
    while i < total:
        e = np.uint64(order[np.uint64(i)])
        j = i + 1
        while j < total and _same_key(keys, key, key_end, e, np.uint64(order[np.uint64(j)])):
            j += 1
        base = i
        while base < j and tag[order[base]] & np.uint64(0xFF) == np.uint64(MERGE):
            base += 1
        has_value = False
        if base < j:
            kind = tag[order[base]] & np.uint64(0xFF)
            if kind == np.uint64(VALUE):
                has_value = True
            elif kind != np.uint64(DELETION) and kind != np.uint64(SINGLE_DELETION):
                return BAD_KIND, np.int64(base), o
        if has_value or base > i:
            out_key[n], out_key_end[n] = key[e], key_end[e]
            if base == i or (base == i + 1 and not has_value):
                out_value[n], out_value_end[n] = value[e], value_end[e]
            else:
                out_value[n] = behind + o
                for k in range(base if has_value else base - 1, i - 1, -1):
                    p, size = value[order[k]], value_end[order[k]] - value[order[k]]
                    copy_bytes(data, p, size, joined, o)
                    joined[o + size] = 0x2C
                    o += size + 1
                o -= 1
                out_value_end[n] = behind + o
            n += 1
        i = j
    return OK, n, o


@jit
def spans_size(key, key_end, value, value_end):  # type: ignore[no-untyped-def]
    """Return the total number of bytes of keys and values."""
    size = np.int64(0)
    for i in range(key.shape[0]):
        size += key_end[i] - key[i] + value_end[i] - value[i]
    return size


@jit
def gather(  # type: ignore[no-untyped-def]
    keys, key, key_end, data, value, value_end, prefix, out, start, out_group, out_key, out_key_end, out_value_end
):
    """Write entries back to back into ``out`` from ``start`` on: composite key, value, composite key, value.

    ``out_key`` is the position after the key group, whose ``prefix`` bytes go to ``out_group``.
    """
    o = np.int64(start)
    for i in range(key.shape[0]):
        p, size = key[i], key_end[i] - key[i]
        group = np.int64(0)
        for k in range(min(prefix, size)):
            group = group << 8 | np.int64(keys[np.uint64(p + k)])
        out_group[i] = group
        out_key[i] = o + prefix
        copy_bytes(keys, p, size, out, o)
        o += size
        out_key_end[i] = o
        size = value_end[i] - value[i]
        copy_bytes(data, value[i], size, out, o)
        o += size
        out_value_end[i] = o
