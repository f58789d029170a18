"""Blocks of RocksDB's table files: find their entries.

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
from statetool.kernels.words import copy_bytes

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
def measure_blocks(data, starts, ends, counts):  # type: ignore[no-untyped-def]
    """Count the entries of blocks into ``counts`` int64[blocks], and the bytes of their whole keys.

    Returns
    -------
    code, index of the bad block, bytes
    """
    size = np.int64(0)
    for b in range(starts.shape[0]):
        p = starts[b]
        stop = _entries_end(data, p, ends[b])
        if stop < 0:
            return BAD_RESTARTS, b, size
        n = np.int64(0)
        before = np.int64(0)
        while p < stop:
            shared, p = read_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, b, size
            fresh, p = read_varint(data, p, stop)
            if p < 0:
                return TRUNCATED, b, size
            value, p = read_varint(data, p, stop)
            if p < 0 or fresh < 0 or value < 0 or fresh > stop - p or value > stop - p - fresh:
                return TRUNCATED, b, size
            if shared < 0 or shared > before:
                return BAD_SHARED, b, size
            before = shared + fresh
            p += fresh + value
            size += shared + fresh
            n += 1
        counts[b] = n
    return OK, 0, size


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
