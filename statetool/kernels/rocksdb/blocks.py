"""Entries of blocks in RocksDB table files, read and written.

A block consists of entries, u32 (little-endian) restart points, and the number of restart points. If bit 31 of that number is set, a hash
index (u8 buckets and their u16 count) is stored before it. An entry is varint shared key bytes, varint further key bytes, varint value
bytes, key bytes, value. (Index blocks with delta-encoded values omit the value's size.) Keys end with a tag of 8 bytes: sequence
number * 256 + kind of the entry, u64 little-endian.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.codes import OK, TRUNCATED
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.core.words import copy_bytes

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
def read_varint(data, p, end):
    """Read a varint of at most 64 bits. Return its value and the position after it, -1 if it is truncated."""
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
def read_numbers(data, starts, ends, out):
    """Read varints one after another, for each row of ``out`` int64[n, numbers] from ``starts[i]`` on.

    Returns
    -------
    Index of the first row that goes beyond ``ends[i]`` or has a number above 63 bits, -1 if there is none.
    """
    for i in range(out.shape[0]):
        p = starts[i]
        for j in range(out.shape[1]):
            out[i, j], p = read_varint(data, p, ends[i])
            if p < 0 or out[i, j] < 0:
                return i
    return -1


@jit
def find_values(keys, key, key_end, counts, value, value_end, names, edges, starts, ends):
    """Find the values of some names among the entries of blocks, given by :func:`decode_blocks`.

    Parameters
    ----------
    keys, key, key_end, value, value_end
        The entries of all blocks.
    counts
        int64[blocks]: entries of each block.
    names, edges
        uint8[bytes], int64[names + 1]: the names one after another, and the edges between them.
    starts, ends
        int64[blocks, names] out: range of each value, unchanged if a block does not have the name.

    Returns
    -------
    Number of values found.
    """
    found = np.int64(0)
    n = np.int64(0)
    for b in range(counts.shape[0]):
        for _ in range(counts[b]):
            size = key_end[n] - key[n]
            for j in range(edges.shape[0] - 1):
                if edges[j + 1] - edges[j] != size:
                    continue
                k = np.int64(0)
                while k < size and keys[key[n] + k] == names[edges[j] + k]:
                    k += 1
                if k == size:
                    starts[b, j] = value[n]
                    ends[b, j] = value_end[n]
                    found += 1
            n += 1
    return found


@jit
def plain_sizes(data, starts, ends, kinds, most, sizes, bodies):
    """Find the uncompressed size of each block and where its compressed bytes start.

    Parameters
    ----------
    kinds
        uint8[n]: compression of each block. The compressed bytes follow the stored uncompressed size. Snappy (1) reads the size itself.
    most
        int64[256]: maximum number of bytes that each kind can make of one byte; 0 if unknown.
    sizes, bodies
        int64[n] out.

    Returns
    -------
    Index of the first block whose stored size is impossible, -1 if there is none.
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
def _u4_at(data, p):
    """Return a little-endian unsigned 32-bit number."""
    return np.int64(data[p]) | np.int64(data[p + 1]) << 8 | np.int64(data[p + 2]) << 16 | np.int64(data[p + 3]) << 24


@jit
def entries_end(data, start, end):
    """Return the end of a block's entries, -1 if its restart points do not fit."""
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


@inlined
def short_varint(data, p, end):
    """Do what :func:`read_varint` does, faster for numbers of one byte."""
    if p < end and data[np.uint64(p)] < 0x80:
        return np.int64(data[np.uint64(p)]), np.int64(p + 1)
    return read_varint(data, p, end)


@jit
def measure_blocks(data, starts, ends, counts):
    """Count the entries of blocks into ``counts`` int64[blocks], and measure their full keys and values.

    Returns
    -------
    code, index of the bad block, bytes of keys, of the longest key, and of values
    """
    size, longest, value_size = np.int64(0), np.int64(0), np.int64(0)
    for b in range(starts.shape[0]):
        p = starts[b]
        stop = entries_end(data, p, ends[b])
        if stop < 0:
            return BAD_RESTARTS, b, size, longest, value_size
        n = np.int64(0)
        before = np.int64(0)
        while p < stop:
            shared, p = short_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, b, size, longest, value_size
            fresh, p = short_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, b, size, longest, value_size
            value, p = short_varint(data, p, stop)
            if p < 0 or fresh < 0 or value < 0 or fresh > stop - p or value > stop - p - fresh:
                return TRUNCATED, b, size, longest, value_size
            if shared < 0 or shared > before:
                return BAD_SHARED, b, size, longest, value_size
            before = shared + fresh
            p += fresh + value
            size += before
            longest = max(longest, before)
            value_size += value
            n += 1
        counts[b] = n
    return OK, 0, size, longest, value_size


@jit
def decode_blocks(data, starts, ends, keys, key, key_end, tag, value, value_end):
    """Collect the entries of blocks that :func:`measure_blocks` has accepted.

    Parameters
    ----------
    keys
        uint8[bytes] out: full keys, one after another.
    key, key_end, tag, value, value_end
        out, [n]: range of each entry's key in ``keys`` without its tag, the tag (uint64), and range of its value in ``data``.

    Returns
    -------
    code, index of the bad block
    """
    n = np.int64(0)
    o = np.int64(0)
    for b in range(starts.shape[0]):
        p = starts[b]
        stop = entries_end(data, p, ends[b])
        before = np.int64(-1)
        before_size = np.int64(0)
        while p < stop:
            shared, p = short_varint(data, p, stop)
            fresh, p = short_varint(data, p, stop)
            size, p = short_varint(data, p, stop)
            if shared + fresh < 8:
                return SHORT_KEY, b
            copy_bytes(keys, before, shared, keys, o)
            copy_bytes(data, p, fresh, keys, o + shared)
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
def _index_key(data, p, stop, delta):
    """Read the header of a key in an index block.

    Returns
    -------
    shared, fresh, p
        Number of bytes shared with the previous key, number of new bytes, and the position of these; ``p`` is -1 if truncated.
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
def _index_place(data, p, stop, differs, n, offset, size):
    """Read the location of the block of entry ``n``, and return the position after it, -1 if truncated.

    ``differs``: the block directly follows the previous one, and only the difference of their sizes is stored.
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
def decode_index(data, start, end, tagged, delta, keys, key, key_end, offset, size):
    """Collect the entries of an index block: the last key of each block (or a separator after it), and the block's location.

    Parameters
    ----------
    tagged
        1 if keys end with a tag.
    delta
        1 if values are delta-encoded: for a block that directly follows the previous one, only the difference of sizes is stored.
    keys
        uint8[:] out: full keys. If it is full, the code is ``BAD_SHARED`` (retry with more room).
    key, key_end, offset, size
        int64[:] out, one item per possible entry.

    Returns
    -------
    code, entries
    """
    n, o, before, before_size = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    stop = entries_end(data, start, end)
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


@inlined
def put_varint(value, out, o):
    """Write a varint at ``o``, and return the position after it."""
    while value >= 0x80:
        out[o] = value & 0x7F | 0x80
        value >>= 7
        o += 1
    out[o] = value
    return o + 1


@inlined
def put_u4(value, out, o):
    """Write a little-endian unsigned 32-bit number at ``o``, and return the position after it."""
    for k in range(4):
        out[o + k] = value >> 8 * k & 0xFF
    return o + 4


@inlined
def _varint_size(value):
    """Return the number of bytes of a varint."""
    n = np.int64(1)
    while value >= 0x80:
        value >>= 7
        n += 1
    return n


@jit
def encode_block(keys, key, key_end, data, value, value_end, interval, restarts, out):
    """Write a data block.

    Parameters
    ----------
    keys, key, key_end, data, value, value_end
        Entries in order, as from :func:`decode_blocks`: each key is followed by its tag.
    interval
        Number of entries from one restart point to the next.
    restarts
        int64[entries], scratch.
    out
        uint8[:] out, with room for all keys with their tags and values, 34 more bytes per entry, and 8 more.

    Returns
    -------
    int
        Size of the block.
    """
    n = key.shape[0]
    o = np.int64(0)
    count = np.int64(0)
    for i in range(n):
        size = key_end[i] + 8 - key[i]
        shared = np.int64(0)
        if i % interval == 0:
            restarts[count] = o
            count += 1
        else:
            most = min(size, key_end[i - 1] + 8 - key[i - 1])
            while shared < most and keys[key[i] + shared] == keys[key[i - 1] + shared]:
                shared += 1
        o = put_varint(shared, out, o)
        o = put_varint(size - shared, out, o)
        o = put_varint(value_end[i] - value[i], out, o)
        copy_bytes(keys, key[i] + shared, size - shared, out, o)
        o += size - shared
        copy_bytes(data, value[i], value_end[i] - value[i], out, o)
        o += value_end[i] - value[i]
    for i in range(count):
        o = put_u4(restarts[i], out, o)
    return put_u4(count, out, o)


@jit
def encode_index(keys, key, key_end, tail, delta, offset, size, restarts, out):
    """Write an index block in which each entry is a restart point, so that no key or location depends on another.

    Parameters
    ----------
    keys, key, key_end
        For each block, a key that does not sort before its last one; ``tail`` bytes of its tag follow it.
    delta
        1 if the size of a value is not stored, as in indexes with delta-encoded values.
    offset, size
        Locations of the blocks.
    restarts
        int64[blocks], scratch.
    out
        uint8[:] out, with room for all keys with their tags, 44 more bytes per block, and 8 more.

    Returns
    -------
    int
        Size of the block.
    """
    n = key.shape[0]
    o = np.int64(0)
    for i in range(n):
        restarts[i] = o
        length = key_end[i] + tail - key[i]
        o = put_varint(np.int64(0), out, o)
        o = put_varint(length, out, o)
        if delta == 0:
            o = put_varint(_varint_size(offset[i]) + _varint_size(size[i]), out, o)
        copy_bytes(keys, key[i], length, out, o)
        o = put_varint(size[i], out, put_varint(offset[i], out, o + length))
    for i in range(n):
        o = put_u4(restarts[i], out, o)
    return put_u4(np.int64(n), out, o)
