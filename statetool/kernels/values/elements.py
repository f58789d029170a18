"""Start positions of the elements of lists and maps, found for many lists at once.

Arguments of all kernels:

- ``data`` uint8[:], read-only.
- ``prog`` int64[:], the skip program (:mod:`statetool.kernels.values.skip_program`) of an element.
- ``pos``, ``end`` int64[n], the start of each list, and the first byte after its frame.
- ``counts`` int64[n], the number of elements of each list.
- ``after`` int64[n] out, the position after each list, or after the part of it that the kernel reads.
- ``out`` int64[m] out, the start of each of the m elements of all lists, in order.
- ``out_end`` int64[m] out, the first byte after the frame that each element is in.

Kernels return ``(code, index)``: the error and the index of the list with it.
"""

from __future__ import annotations

import numpy as np

from statetool.kernels.core.codes import BAD_COUNT, BAD_SEPARATOR, OK, TRUNCATED, UNUSED_BITS
from statetool.kernels.core.jit import jit
from statetool.kernels.entries.layout import SEPARATOR
from statetool.kernels.values.decode_text import read_varint
from statetool.kernels.values.sizes import MAX_EMPTY_ELEMENTS
from statetool.kernels.values.skip import read_block, read_count, skip_one, too_many
from statetool.kernels.values.skip_program import FIXED


@jit
def read_counts(data, pos, end, at_least, counts, after):
    """Read i32 counts of elements that take ``at_least`` bytes each; ``after`` is the position after the counts."""
    for i in range(pos.shape[0]):
        n = read_count(data, pos[i], end[i])
        if n < 0:
            return -n, i
        if too_many(n, at_least, end[i] - pos[i] - 4):
            return np.int64(BAD_COUNT), i
        counts[i] = n
        after[i] = pos[i] + 4
    return np.int64(OK), 0


@jit
def strided_positions(pos, end, counts, first, stride, out, out_other, out_end, after):
    """Do what :func:`element_positions` does for elements of ``stride`` bytes; the key of a map takes the first ``first`` of them."""
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        for _ in range(counts[i]):
            out[o] = p
            out_other[o] = p + first
            out_end[o] = end[i]
            p += stride
            o += 1
        after[i] = p
    return np.int64(OK), 0


@jit
def element_positions(data, prog, other, pos, end, counts, out, out_other, out_end, after):
    """Find the elements of lists, starting at the first element.

    Parameters
    ----------
    other
        int64[:]: for maps, ``prog`` skips the key and this program skips the value after it; empty for lists.
    out_other
        int64[m] out: start of each value of a map.
    """
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        for _ in range(counts[i]):
            out[o] = p
            out_end[o] = end[i]
            p = skip_one(data, prog, np.int64(0), p, end[i])
            if p >= 0 and other.shape[0] > 0:
                out_other[o] = p
                p = skip_one(data, other, np.int64(0), p, end[i])
            if p < 0:
                return -p, i
            o += 1
        after[i] = p
    return np.int64(OK), 0


@jit
def mask_counts(data, pos, end, counts, after):
    """Read i32 counts that are followed by bit masks, one bit per element; ``after`` is the position after the masks."""
    for i in range(pos.shape[0]):
        n = read_count(data, pos[i], end[i])
        if n < 0:
            return -n, i
        counts[i] = n
        after[i] = pos[i] + 4 + (n + 7) // 8
        if after[i] > end[i]:
            return np.int64(BAD_COUNT), i
        if n & 7 and data[after[i] - 1] & (0xFF >> (n & 7)):
            return np.int64(UNUSED_BITS), i
    return np.int64(OK), 0


@jit
def masked_positions(data, prog, masks, pos, end, counts, out, out_end, valid, after):
    """Find elements that follow a bit mask of nulls.

    Parameters
    ----------
    masks
        int64[n]: start of each list's mask.
    valid
        uint8[m] out: 0 for null elements, which take no bytes.
    """
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        for k in range(counts[i]):
            out[o] = p
            out_end[o] = end[i]
            valid[o] = 1 - ((data[masks[i] + (k >> 3)] >> np.uint8(7 - (k & 7))) & np.uint8(1))
            if valid[o]:
                p = skip_one(data, prog, np.int64(0), p, end[i])
                if p < 0:
                    return -p, i
            o += 1
        after[i] = p
    return np.int64(OK), 0


@jit
def first_blocks(data, pos, end, at_least, total):
    """Add up the items of the first block of each list in ``total`` int64[1].

    Items take ``at_least`` bytes. Flink writes no second block.
    """
    for i in range(pos.shape[0]):
        n, p = read_varint(data, pos[i], end[i])
        if p < 0:
            return np.int64(TRUNCATED), i
        if too_many(n, at_least, end[i] - p):
            return np.int64(BAD_COUNT), i
        total[0] += n
    return np.int64(OK), 0


@jit
def block_elements(data, prog, other, pos, end, at_least, counts, out, out_other, out_end, total, after):
    """Find the items of Avro's blocks.

    Parameters
    ----------
    other, out_other
        As in :func:`element_positions`.
    at_least
        Minimum bytes of an item.
    counts
        int64[n] out.
    total
        int64[1] out: number of items. Items beyond the room of ``out`` are counted but not stored.
    """
    o = 0
    room = out.shape[0]
    stride = prog[1] if prog[0] == FIXED and other.shape[0] == 0 else np.int64(-1)
    for i in range(pos.shape[0]):
        p = pos[i]
        first = o
        while True:
            n, p = read_block(data, p, end[i])
            if p < 0:
                return -p, i
            if n == 0:
                break
            if too_many(n, at_least, end[i] - p) or (at_least == 0 and o - first + n > MAX_EMPTY_ELEMENTS):
                return np.int64(BAD_COUNT), i
            if stride >= 0 and n <= room - o:
                for k in range(n):
                    out[o + k] = p + k * stride
                    out_end[o + k] = end[i]
                p += n * stride
                o += n
                continue
            for _ in range(n):
                if o < room:
                    out[o] = p
                    out_end[o] = end[i]
                p = skip_one(data, prog, np.int64(0), p, end[i])
                if p >= 0 and other.shape[0] > 0:
                    if o < room:
                        out_other[o] = p
                    p = skip_one(data, other, np.int64(0), p, end[i])
                if p < 0:
                    return -p, i
                o += 1
        counts[i] = o - first
        after[i] = p
    total[0] = o
    return np.int64(OK), 0


@jit
def joined_counts(data, prog, pos, end, counts):
    """Count the elements of comma-joined lists, up to ``end`` (canonical and RocksDB list state)."""
    for i in range(pos.shape[0]):
        p = pos[i]
        n = 0
        if prog[0] == FIXED:
            # All but the last element and its end, which the loop below handles.
            step = prog[1] + 1
            while p + step < end[i] and data[p + step - 1] == SEPARATOR:
                p += step
                n += 1
        while True:
            q = skip_one(data, prog, np.int64(0), p, end[i])
            if q < 0:
                return -q, i
            n += 1
            p = q
            if p == end[i]:
                break
            if data[p] != SEPARATOR:
                return np.int64(BAD_SEPARATOR), i
            p += 1
        counts[i] = n
    return np.int64(OK), 0


@jit
def joined_positions(data, prog, pos, end, counts, out, out_end):
    """Find the range of each element of comma-joined lists that :func:`joined_counts` has accepted."""
    o = 0
    size = prog[1] if prog[0] == FIXED else np.int64(-1)
    for i in range(pos.shape[0]):
        p = pos[i]
        for _ in range(counts[i]):
            out[o] = p
            p = p + size if size >= 0 else skip_one(data, prog, np.int64(0), p, end[i])
            out_end[o] = p
            p += 1
            o += 1
    return np.int64(OK), 0
