"""Blocks of RocksDB's table files: find entries, merge sorted runs of them, apply newer entries to older ones.

A block is entries, then u32 (little-endian) restart points, then their number; bit 31 of it says that a hash index of u8 buckets, with its
u16 size, lies in front of it. An entry is varint bytes shared with the key before, varint further bytes of the key, varint bytes of the
value, key bytes, value. (In index blocks with delta-encoded values the size of the value is left out.) Keys end with a tag of 8 bytes:
sequence number * 256 + kind of the entry, u64 little-endian.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import OK, TRUNCATED
from statetool.kernels.jit import inlined, jit

DELETION: Final = 0
VALUE: Final = 1
MERGE: Final = 2
SINGLE_DELETION: Final = 7
BAD_RESTARTS: Final = 200
BAD_SHARED: Final = 201
BAD_KIND: Final = 202
SHORT_KEY: Final = 203
BAD_DELTA: Final = 204
TRAILER_BYTES: Final = 5

BLOCK_MESSAGES: Final = {
    TRUNCATED: "an entry goes beyond the end of its block",
    BAD_RESTARTS: "the restart points do not fit their block",
    BAD_SHARED: "a key shares more bytes with the one before than that has",
    BAD_KIND: "an entry that is no value, merge operand or deletion",
    SHORT_KEY: "a key is too short",
    BAD_DELTA: "the size of a block does not fit",
}


@jit
def read_varint(data, p, end):  # type: ignore[no-untyped-def]
    """Read a varint of at most 64 bits: value and position behind it, which is -1 where it is cut off."""
    v = np.uint64(0)
    shift = np.uint64(0)
    while p < end and shift < np.uint64(64):
        b = np.uint64(data[np.uint64(p)])
        p += 1
        v |= (b & np.uint64(0x7F)) << shift
        if b < np.uint64(0x80):
            return np.int64(v), p
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@jit
def plain_sizes(data, starts, ends, kinds, most, sizes, bodies):  # type: ignore[no-untyped-def]
    """Find how long blocks are uncompressed, and where their compressed bytes start.

    Parameters
    ----------
    kinds
        uint8[n]: compression of each block. Behind the size that it claims are its bytes; Snappy (1) reads the size itself.
    most
        int64[256]: how many bytes each kind can make of one at most; 0 for none that is known.
    sizes, bodies
        int64[n] out.

    Returns
    -------
    Index of the first block that claims more than it can be, -1 where there is none.
    """
    for i in range(starts.shape[0]):
        kind = kinds[i]
        bodies[i] = starts[i]
        sizes[i] = ends[i] - starts[i]
        if kind != 0:
            claimed, behind = read_varint(data, starts[i], ends[i])
            if behind < 0 or claimed < 0 or claimed > sizes[i] * most[kind] + 64:
                return i
            sizes[i] = claimed
            if kind != 1:
                bodies[i] = behind
    return -1


@jit
def _u4_at(data, p):  # type: ignore[no-untyped-def]
    """Return a little-endian unsigned 32-bit number."""
    return np.int64(data[p]) | np.int64(data[p + 1]) << 8 | np.int64(data[p + 2]) << 16 | np.int64(data[p + 3]) << 24


@jit
def _entries_end(data, start, end):  # type: ignore[no-untyped-def]
    """Return where the entries of a block end, -1 where its restart points do not fit."""
    if end - start < 4:
        return np.int64(-1)
    restarts = _u4_at(data, end - 4)
    stop = end - 4
    if restarts >= 0x80000000:
        restarts -= 0x80000000
        if stop - 2 < start:
            return np.int64(-1)
        stop -= 2 + (np.int64(data[stop - 2]) | np.int64(data[stop - 1]) << 8)
    stop -= 4 * restarts
    return stop if stop >= start else np.int64(-1)


@jit
def measure_blocks(data, starts, ends):  # type: ignore[no-untyped-def]
    """Count the entries of blocks and the bytes of their whole keys.

    Returns
    -------
    code, index of the bad block, entries, bytes
    """
    n = np.int64(0)
    size = np.int64(0)
    for b in range(starts.shape[0]):
        p = starts[b]
        stop = _entries_end(data, p, ends[b])
        if stop < 0:
            return BAD_RESTARTS, b, n, size
        before = np.int64(0)
        while p < stop:
            shared, p = read_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, b, n, size
            fresh, p = read_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, b, n, size
            value, p = read_varint(data, p, stop)
            if p < 0 or fresh < 0 or value < 0 or fresh > stop - p or value > stop - p - fresh:
                return TRUNCATED, b, n, size
            if shared < 0 or shared > before:
                return BAD_SHARED, b, n, size
            before = shared + fresh
            p += fresh + value
            size += shared + fresh
            n += 1
    return OK, 0, n, size


@jit
def decode_blocks(data, starts, ends, keys, key, key_end, tag, value, value_end):  # type: ignore[no-untyped-def]
    """Collect the entries of blocks that :func:`measure_blocks` has accepted.

    Parameters
    ----------
    keys
        uint8[bytes] out: whole keys, one after another.
    key, key_end, tag, value, value_end
        out, [n]: where the key of each entry is in ``keys`` without its tag, the tag (uint64), and where its value is in ``data``.

    Returns
    -------
    code, index of the bad block
    """
    n = np.int64(0)
    o = np.int64(0)
    for b in range(starts.shape[0]):
        p = starts[b]
        stop = _entries_end(data, p, ends[b])
        before = np.int64(-1)
        before_size = np.int64(0)
        while p < stop:
            shared, p = read_varint(data, p, stop)
            fresh, p = read_varint(data, p, stop)
            size, p = read_varint(data, p, stop)
            if shared + fresh < 8:
                return SHORT_KEY, b
            for k in range(shared):
                keys[np.uint64(o + k)] = keys[np.uint64(before + k)]
            for k in range(fresh):
                keys[np.uint64(o + shared + k)] = data[np.uint64(p + k)]
            p += fresh
            before = o
            before_size = shared + fresh
            key[n] = o
            o += before_size
            key_end[n] = o - 8
            t = np.uint64(0)
            for k in range(8):
                t |= np.uint64(keys[np.uint64(o - 8 + k)]) << np.uint64(8 * k)
            tag[n] = t
            value[n] = p
            p += size
            value_end[n] = p
            n += 1
    return OK, 0


@inlined
def _index_key(data, p, stop, delta):  # type: ignore[no-untyped-def]
    """Read what stands in front of a key of an index block.

    Returns
    -------
    shared, fresh, p
        Bytes that the key shares with the one before, and that follow at ``p``, which is -1 where they are cut off.
    """
    cut = np.int64(-1)
    fresh = np.int64(0)
    shared, p = read_varint(data, p, stop)
    if p >= 0:
        fresh, p = read_varint(data, p, stop)
    if p >= 0 and delta == 0:
        _, p = read_varint(data, p, stop)
    return shared, fresh, cut if p < 0 or fresh < 0 or fresh > stop - p else p


@inlined
def _index_place(data, p, stop, differs, n, offset, size):  # type: ignore[no-untyped-def]
    """Read where the block of entry ``n`` is; the position behind is -1 where that is cut off.

    ``differs``: it lies right behind the block before, and only the difference of their sizes is stored.
    """
    if differs:
        z, p = read_varint(data, p, stop)
        offset[n] = offset[n - 1] + size[n - 1] + TRAILER_BYTES
        size[n] = size[n - 1] + ((z >> 1) ^ -(z & 1))
        return p
    offset[n], p = read_varint(data, p, stop)
    if p >= 0:
        size[n], p = read_varint(data, p, stop)
    return p


@jit
def decode_index(data, start, end, tagged, delta, keys, key, key_end, offset, size):  # type: ignore[no-untyped-def]
    """Collect the entries of an index block: the last key (or one behind it) of each block, and where the block is.

    Parameters
    ----------
    tagged
        1 where keys end with a tag.
    delta
        1 where values are delta-encoded: for a block right behind the one before only the difference of sizes is stored.
    keys
        uint8[:] out: whole keys; where it is full, the code is ``BAD_SHARED`` (more room is needed).
    key, key_end, offset, size
        int64[:] out, as many as there may be entries.

    Returns
    -------
    code, entries
    """
    n, o, before, before_size = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    stop = _entries_end(data, start, end)
    if stop < 0:
        return BAD_RESTARTS, n
    p = start
    tail = 8 if tagged == 1 else 0
    while p < stop:
        shared, fresh, p = _index_key(data, p, stop, delta)
        if p < 0:
            return TRUNCATED, n
        if shared < 0 or shared > before_size or o + shared + fresh > keys.shape[0]:
            return BAD_SHARED, n
        if shared + fresh < tail:
            return SHORT_KEY, n
        for k in range(shared):
            keys[o + k] = keys[before + k]
        for k in range(fresh):
            keys[o + shared + k] = data[p + k]
        before, before_size = o, shared + fresh
        key[n] = o
        o += before_size
        key_end[n] = o - tail
        p = _index_place(data, p + fresh, stop, delta == 1 and shared > 0, n, offset, size)
        if p < 0:
            return TRUNCATED, n
        if size[n] < 0 or offset[n] < 0:
            return BAD_DELTA, n
        n += 1
    return OK, n


@jit
def compare(a_data, a, a_end, b_data, b, b_end):  # type: ignore[no-untyped-def]
    """Compare byte ranges: negative, 0 or positive."""
    n = min(a_end - a, b_end - b)
    for k in range(n):
        x = np.int64(a_data[np.uint64(a + k)])
        y = np.int64(b_data[np.uint64(b + k)])
        if x != y:
            return x - y
    return (a_end - a) - (b_end - b)


@jit
def first_not_before(keys, key, key_end, wanted, behind):  # type: ignore[no-untyped-def]
    """Return how many ascending keys are before ``wanted`` uint8[:]; with ``behind`` 1, also those equal to it."""
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
    """Mark the blocks that may have keys that start with one of some prefixes.

    Parameters
    ----------
    block_keys, block, block_end
        For each block a key that is its last one or sorts behind it, ascending.
    keys, key, key_end
        The prefixes, in any order.
    marked
        uint8[blocks], out: 1 where a block is needed.
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
            # The next block may have more of the same only if this one ends with a key of the same prefix.
            end = min(block_end[low], block[low] + size)
            if compare(block_keys, block[low], end, keys, key[i], key_end[i]) != 0:
                break
            low += 1
    return OK, 0


@jit
def merge_runs(keys, key, key_end, tag, left, right, out):  # type: ignore[no-untyped-def]
    """Merge two ascending runs of entries (int64 indexes) into ``out``: by key, of one key the newest first."""
    i, j, o = 0, 0, 0
    while i < left.shape[0] and j < right.shape[0]:
        a, b = left[i], right[j]
        c = compare(keys, key[a], key_end[a], keys, key[b], key_end[b])
        if c < 0 or (c == 0 and tag[a] >= tag[b]):
            out[o] = a
            i += 1
        else:
            out[o] = b
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
def _copy(source, start, end, out, o):  # type: ignore[no-untyped-def]
    """Copy bytes and return the position behind them."""
    for k in range(end - start):
        out[np.uint64(o + k)] = source[np.uint64(start + k)]
    return o + end - start


@jit
def resolve(keys, key, key_end, tag, data, value, value_end, order, out, out_key, out_key_end, out_value_end):  # type: ignore[no-untyped-def]
    """Write the entries that remain once newer ones have replaced older ones: key, value, key, value.

    ``order`` int64[n]: by key, of one key the newest first. The newest entries of a key count: a value, or nothing behind a deletion, or
    merge operands down to such a base, which are joined by commas from the oldest to the newest.

    Returns
    -------
    code, entries (of a bad one: its place in ``order``), bytes
    """
    n = np.int64(0)
    o = np.int64(0)
    i = 0
    total = order.shape[0]
    while i < total:
        e = order[i]
        j = i + 1
        while j < total and compare(keys, key[e], key_end[e], keys, key[order[j]], key_end[order[j]]) == 0:
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
            out_key[n] = o
            o = _copy(keys, key[e], key_end[e], out, o)
            out_key_end[n] = o
            if has_value:
                o = _copy(data, value[order[base]], value_end[order[base]], out, o)
            for k in range(base - 1, i - 1, -1):
                if has_value:
                    out[o] = 0x2C
                    o += 1
                has_value = True
                o = _copy(data, value[order[k]], value_end[order[k]], out, o)
            out_value_end[n] = o
            n += 1
        i = j
    return OK, n, o
