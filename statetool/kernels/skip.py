"""Find where values end, and where the elements of lists and maps start.

``skip_one`` walks a flat program (:mod:`statetool.kernels.skip_program`) recursively; what occurs most often is done without calls.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.codes import (
    BAD_BIG_NUMBER,
    BAD_BRANCH,
    BAD_COUNT,
    BAD_FLAG,
    BAD_SEPARATOR,
    BAD_TAG,
    NULL_VALUE,
    OK,
    SUBCLASS,
    TRUNCATED,
    UNUSED_BITS,
)
from statetool.kernels.decode_fixed import read_i4
from statetool.kernels.decode_text import is_ascii, read_varint
from statetool.kernels.jit import jit
from statetool.kernels.sizes import FIXED_SIZES, MAX_EMPTY_ELEMENTS, fixed_size, least_size
from statetool.kernels.skip_program import (
    BIG_DEC,
    BIG_INT,
    BLOCKS,
    COUNTED,
    FIXED,
    FIXED_BLOCKS,
    FIXED_UNION,
    FLAGGED,
    FLAT_STRUCT,
    MASKED,
    MASKED_LIST,
    PAIRS,
    POJO,
    REPEATED,
    STREAM,
    STRUCT,
    TEXT,
    UNION,
    Program,
    compile_skip,
    compile_skips,
)

_MARKER_SIZES: Final = np.array([8, 0, 8, 28, 4, 1, 12], dtype=np.int64)

_CUT: Final = -TRUNCATED
_FLAG: Final = -BAD_FLAG
_COUNT: Final = -BAD_COUNT
_NO_LEAF: Final = -(1 << 32)


@jit
def _count(data, p, end):  # type: ignore[no-untyped-def]
    """Read an i32 count; the negative of a code where it is cut off or negative."""
    if p + 4 > end:
        return np.int64(_CUT)
    n = read_i4(data, np.uint64(p))
    return n if n >= 0 else np.int64(_COUNT)


@jit
def _skip_text(data, extra, p, end):  # type: ignore[no-untyped-def]
    if p < end and data[np.uint64(p)] < 0x80:
        n = np.int64(data[np.uint64(p)])
        p += 1
    else:
        n, p = read_varint(data, p, end)
        if p < 0:
            return np.int64(_CUT)
    n -= extra
    if n <= 0:
        return np.int64(p)
    if n > end - p:
        return np.int64(_CUT)
    if is_ascii(data, p, n):
        return np.int64(p + n)
    for _ in range(n):
        while p < end and data[np.uint64(p)] >= 0x80:
            p += 1
        p += 1
        if p > end:
            return np.int64(_CUT)
    return np.int64(p)


@jit
def _skip_big(data, decimal, p, end):  # type: ignore[no-untyped-def]
    n = _count(data, p, end)
    if n < 0 or n == 4:
        return np.int64(-BAD_BIG_NUMBER if n == _COUNT or n == 4 else _CUT)
    p += 4
    if n > 4:
        p += n - 4
    if decimal and n > 0:
        p += 4
    return np.int64(p if p <= end else _CUT)


@jit
def _block(data, p, end):  # type: ignore[no-untyped-def]
    """Read the number of items of a block; the position behind it is the negative of a code where it is cut off."""
    if p < end and data[np.uint64(p)] < 0x80:
        return np.int64(data[np.uint64(p)]), np.int64(p + 1)
    n, p = read_varint(data, p, end)
    return n, p if p >= 0 else np.int64(_CUT)


@jit
def _skip_leaf(data, prog, pc, p, end):  # type: ignore[no-untyped-def]
    """Do what :func:`skip_one` does for what occurs most often, without a call; ``_NO_LEAF`` for all else."""
    op = prog[pc]
    if op == FIXED:
        p += prog[pc + 1]
        return p if p <= end else np.int64(_CUT)
    if op == COUNTED:
        n = _count(data, p, end)
        if n < 0:
            return n
        return p + 4 + n if n <= end - p - 4 else np.int64(_COUNT)
    if op == FIXED_UNION:
        n = _count(data, p, end)
        if n < 0 or n >= prog[pc + 1]:
            return np.int64(_CUT if n == _CUT else -BAD_BRANCH)
        p += 4 + prog[pc + 2 + n]
        return p if p <= end else np.int64(_CUT)
    return np.int64(_NO_LEAF)


@jit
def _skip_blocks(data, size, p, end):  # type: ignore[no-untyped-def]
    """Skip blocks of items of ``size`` bytes."""
    while True:
        n, p = _block(data, p, end)
        if p < 0 or n == 0:
            return p
        if n * size > end - p:
            return np.int64(_COUNT)
        p += n * size


@jit
def skip_one(data, prog, pc, p, end):  # type: ignore[no-untyped-def]
    """Return the position behind the value at ``p``, the negative of a code where it does not fit before ``end``."""
    op = prog[pc]
    leaf = _skip_leaf(data, prog, pc, p, end)
    if leaf != _NO_LEAF:
        return leaf
    if op == FLAT_STRUCT:
        for k in range(prog[pc + 1]):
            p = _skip_leaf(data, prog, prog[pc + 2 + k], p, end)
            if p < 0:
                return p
        return p
    if op == FIXED_BLOCKS:
        return _skip_blocks(data, prog[pc + 1], p, end)
    if op == TEXT:
        return _skip_text(data, prog[pc + 1], p, end)
    if op == BIG_INT or op == BIG_DEC:
        return _skip_big(data, op == BIG_DEC, p, end)
    if op == STRUCT:
        for k in range(prog[pc + 1]):
            part = prog[pc + 2 + k]
            leaf = _skip_leaf(data, prog, part, p, end)
            p = leaf if leaf != _NO_LEAF else skip_one(data, prog, part, p, end)
            if p < 0:
                return p
        return p
    if op == FLAGGED:
        if p >= end or data[p] > 1:
            return np.int64(_CUT if p >= end else _FLAG)
        if data[p] == prog[pc + 1]:
            if prog[pc + 2] < 0:
                return np.int64(-NULL_VALUE)
            p += 1 + prog[pc + 2]
            return p if p <= end else np.int64(_CUT)
        return skip_one(data, prog, prog[pc + 3], p + 1, end)
    if op == REPEATED or op == PAIRS:
        n = _count(data, p, end)
        if n < 0:
            return n
        p += 4
        for _ in range(n):
            before = p
            p = skip_one(data, prog, prog[pc + 1], p, end)
            if p >= 0 and op == PAIRS:
                p = skip_one(data, prog, prog[pc + 2], p, end)
            if p < 0:
                return p
            if p == before:
                # Elements of no bytes: the others have none either.
                return p if n <= MAX_EMPTY_ELEMENTS else np.int64(_COUNT)
        return p
    if op == MASKED:
        kind = prog[pc + 1]
        n = prog[pc + 2]
        mask = p
        p += (n + kind + 7) // 8
        if p > end:
            return np.int64(_CUT)
        for k in range(n):
            bit = k + kind
            if (data[mask + (bit >> 3)] >> (7 - (bit & 7))) & 1 == 0:
                p = skip_one(data, prog, prog[pc + 3 + k], p, end)
                if p < 0:
                    return p
        return p
    if op == POJO:
        if p >= end:
            return np.int64(_CUT)
        flags = data[p]
        p += 1
        if flags == 1:
            return p
        if flags != 2:
            return np.int64(-SUBCLASS)
        for k in range(prog[pc + 1]):
            if p >= end or data[p] > 1:
                return np.int64(_CUT if p >= end else _FLAG)
            p += 1
            if data[p - 1] == 0:
                p = skip_one(data, prog, prog[pc + 2 + k], p, end)
                if p < 0:
                    return p
        return p
    if op == UNION:
        n = _count(data, p, end)
        if n < 0 or n >= prog[pc + 1]:
            return np.int64(_CUT if n == _CUT else -BAD_BRANCH)
        return skip_one(data, prog, prog[pc + 2 + n], p + 4, end)
    if op == STREAM:
        if p >= end or data[p] > 6:
            return np.int64(_CUT if p >= end else -BAD_TAG)
        tag = data[p]
        p += 1 + _MARKER_SIZES[tag]
        if p > end:
            return np.int64(_CUT)
        return skip_one(data, prog, prog[pc + 1], p, end) if tag <= 1 else p
    if op == MASKED_LIST:
        n = _count(data, p, end)
        if n < 0:
            return n
        mask = p + 4
        p = mask + (n + 7) // 8
        if p > end:
            return np.int64(_CUT)
        for k in range(n):
            if (data[mask + (k >> 3)] >> (7 - (k & 7))) & 1 == 0:
                p = skip_one(data, prog, prog[pc + 1], p, end)
                if p < 0:
                    return p
        return p
    if op == BLOCKS:
        at_least = prog[pc + 2]
        total = np.int64(0)
        while True:
            n, p = _block(data, p, end)
            if p < 0 or n == 0:
                return p
            total += n
            if n * at_least > end - p or (at_least == 0 and total > MAX_EMPTY_ELEMENTS):
                return np.int64(_COUNT)
            first = prog[pc + 3]
            for _ in range(n):
                leaf = _skip_leaf(data, prog, first, p, end)
                p = leaf if leaf != _NO_LEAF else skip_one(data, prog, first, p, end)
                if p >= 0 and prog[pc + 1] == 2:
                    leaf = _skip_leaf(data, prog, prog[pc + 4], p, end)
                    p = leaf if leaf != _NO_LEAF else skip_one(data, prog, prog[pc + 4], p, end)
                if p < 0:
                    return p
    if p >= end or data[p] > 1:
        return np.int64(_CUT if p >= end else _FLAG)
    return skip_one(data, prog, prog[pc + 1 if data[p] == 1 else pc + 2], p + 1, end)


@jit
def skip_many(data, prog, pos, end, after):  # type: ignore[no-untyped-def]
    """Find the ends of many values."""
    if prog[0] == FIXED:
        size = prog[1]
        for i in range(pos.shape[0]):
            if size > end[i] - pos[i]:
                return np.int64(TRUNCATED), i
            after[i] = pos[i] + size
        return np.int64(OK), 0
    for i in range(pos.shape[0]):
        p = skip_one(data, prog, np.int64(0), pos[i], end[i])
        if p < 0:
            return -p, i
        after[i] = p
    return np.int64(OK), 0


@jit
def read_counts(data, pos, end, at_least, counts, after):  # type: ignore[no-untyped-def]
    """Read i32 counts of things that take ``at_least`` bytes each; those of no bytes are limited by number."""
    for i in range(pos.shape[0]):
        n = _count(data, pos[i], end[i])
        if n < 0:
            return -n, i
        if n * at_least > end[i] - pos[i] - 4 or (at_least == 0 and n > MAX_EMPTY_ELEMENTS):
            return np.int64(BAD_COUNT), i
        counts[i] = n
        after[i] = pos[i] + 4
    return np.int64(OK), 0


@jit
def strided_positions(pos, end, counts, first, stride, out, out_other, out_end, after):  # type: ignore[no-untyped-def]
    """Do what :func:`element_positions` does for elements of ``stride`` bytes, ``first`` of which are the key's."""
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
def element_positions(data, prog, other, pos, end, counts, out, out_other, out_end, after):  # type: ignore[no-untyped-def]
    """Find the start of each element of each value, in order, and the end of the frame that it is in.

    ``prog`` skips an element (or a key), ``other`` the value behind it (empty where there is none).
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
def mask_counts(data, pos, end, counts, after):  # type: ignore[no-untyped-def]
    """Read i32 counts that bit masks follow, one bit each; ``after`` is behind the masks."""
    for i in range(pos.shape[0]):
        n = _count(data, pos[i], end[i])
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
def masked_positions(data, prog, masks, pos, end, counts, out, out_end, valid, after):  # type: ignore[no-untyped-def]
    """Find the elements behind bit masks (at ``masks``) of nulls; nulls take no bytes and are not ``valid`` uint8[elements]."""
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
def first_blocks(data, pos, end, at_least, total):  # type: ignore[no-untyped-def]
    """Add up the items of the first block of each value in ``total`` int64[1]; Flink writes no second one."""
    for i in range(pos.shape[0]):
        n, p = read_varint(data, pos[i], end[i])
        if p < 0:
            return np.int64(TRUNCATED), i
        if n * at_least > end[i] - p or (at_least == 0 and n > MAX_EMPTY_ELEMENTS):
            return np.int64(BAD_COUNT), i
        total[0] += n
    return np.int64(OK), 0


@jit
def block_elements(data, prog, other, pos, end, at_least, counts, out, out_other, out_end, total, after):  # type: ignore[no-untyped-def]
    """Find the items of Avro's blocks, which take ``at_least`` bytes each; ``prog`` and ``other`` as in :func:`element_positions`.

    ``total`` int64[1] is how many there are; those that ``out`` has no room for are only counted.
    """
    o = 0
    room = out.shape[0]
    op = prog[0]
    stride = prog[1] if op == FIXED and other.shape[0] == 0 else np.int64(-1)
    for i in range(pos.shape[0]):
        p = pos[i]
        first = o
        while True:
            n, p = _block(data, p, end[i])
            if p < 0:
                return -p, i
            if n == 0:
                break
            if n * at_least > end[i] - p or (at_least == 0 and o - first + n > MAX_EMPTY_ELEMENTS):
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
                if op == FLAT_STRUCT:
                    for k in range(prog[1]):
                        p = _skip_leaf(data, prog, prog[2 + k], p, end[i])
                        if p < 0:
                            return -p, i
                elif op == FIXED_BLOCKS:
                    p = _skip_blocks(data, prog[1], p, end[i])
                else:
                    leaf = _skip_leaf(data, prog, np.int64(0), p, end[i])
                    p = leaf if leaf != _NO_LEAF else skip_one(data, prog, np.int64(0), p, end[i])
                if p >= 0 and other.shape[0] > 0:
                    if o < room:
                        out_other[o] = p
                    leaf = _skip_leaf(data, other, np.int64(0), p, end[i])
                    p = leaf if leaf != _NO_LEAF else skip_one(data, other, np.int64(0), p, end[i])
                if p < 0:
                    return -p, i
                o += 1
        counts[i] = o - first
        after[i] = p
    total[0] = o
    return np.int64(OK), 0


@jit
def joined_counts(data, prog, pos, end, counts):  # type: ignore[no-untyped-def]
    """Count the elements of lists whose elements are joined by a comma (canonical and RocksDB list state)."""
    for i in range(pos.shape[0]):
        p = pos[i]
        n = 0
        if prog[0] == FIXED:
            # All but the last element and its end, which the loop below looks at.
            step = prog[1] + 1
            while p + step < end[i] and data[p + step - 1] == 0x2C:
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
            if data[p] != 0x2C:
                return np.int64(BAD_SEPARATOR), i
            p += 1
        counts[i] = n
    return np.int64(OK), 0


@jit
def joined_positions(data, prog, pos, end, counts, out, out_end):  # type: ignore[no-untyped-def]
    """Find start and end of each element of comma-joined lists that ``joined_counts`` has accepted."""
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
    return OK, 0


__all__ = [
    "FIXED_SIZES",
    "Program",
    "block_elements",
    "compile_skip",
    "compile_skips",
    "element_positions",
    "first_blocks",
    "fixed_size",
    "joined_counts",
    "joined_positions",
    "least_size",
    "mask_counts",
    "masked_positions",
    "read_counts",
    "skip_many",
    "skip_one",
    "strided_positions",
]
