"""Kernels that find the ends of values by skip programs (:mod:`statetool.kernels.values.skip_program`).

Arguments of all kernels: ``data`` uint8[:] read-only; ``prog`` int64[:], a skip program, and ``pc``, the index of an opcode in it; ``p``,
the start of a value in ``data``, and ``end``, the first byte after its frame. They return the position after the value, or a negated code
of :mod:`statetool.kernels.core.codes`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.kernels.core.codes import (
    BAD_BIG_NUMBER,
    BAD_BRANCH,
    BAD_COUNT,
    BAD_FLAG,
    BAD_TAG,
    NULL_VALUE,
    OK,
    SUBCLASS,
    TRUNCATED,
    UNKNOWN_OPERATION,
)
from statetool.kernels.core.jit import inlined, jit
from statetool.kernels.values.decode_fixed import read_i4
from statetool.kernels.values.decode_text import is_ascii, read_varint
from statetool.kernels.values.sizes import MAX_EMPTY_ELEMENTS
from statetool.kernels.values.skip_program import (
    BIG_DEC,
    BIG_INT,
    BLOCKS,
    COUNTED,
    EITHER,
    FIXED,
    FIXED_BLOCKS,
    FIXED_UNION,
    FLAGGED,
    FLAT_STRUCT,
    LAST_CHOICE,
    LAST_LEAF,
    LAST_SIMPLE,
    MASKED,
    MASKED_LIST,
    POJO,
    REPEATED,
    STREAM,
    STRUCT,
    TEXT,
    UNION,
)

#: Bytes after the tag of a stream element, without its value.
_MARKER_SIZES: Final = np.array([8, 0, 8, 28, 4, 1, 12], dtype=np.int64)

_CUT: Final = -TRUNCATED
_FLAG: Final = -BAD_FLAG
_COUNT: Final = -BAD_COUNT
_UNKNOWN: Final = -UNKNOWN_OPERATION


@inlined
def read_count(data, p, end):
    """Read an i32 count; return the negated error code if it is truncated or negative."""
    if p + 4 > end:
        return np.int64(_CUT)
    n = read_i4(data, np.uint64(p))
    return n if n >= 0 else np.int64(_COUNT)


@jit
def too_many(n, at_least, left):
    """Return True if ``n`` elements of ``at_least`` bytes do not fit into ``left`` bytes; zero-byte elements are limited by number."""
    return n * at_least > left or (at_least == 0 and n > MAX_EMPTY_ELEMENTS)


@inlined
def read_block(data, p, end):
    """Read the number of items of one of Avro's blocks.

    Returns
    -------
    n, after
        ``after`` is the negated error code if the number is truncated.
    """
    if p < end and data[np.uint64(p)] < 0x80:
        return np.int64(data[np.uint64(p)]), np.int64(p + 1)
    n, p = read_varint(data, p, end)
    return n, p if p >= 0 else np.int64(_CUT)


@jit
def _skip_text(data, extra, p, end):
    """Skip a string; ``extra`` is 1 if a length of 0 means null."""
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
def _skip_big(data, decimal, p, end):
    """Skip a BigInteger, or a BigDecimal if ``decimal``."""
    n = read_count(data, p, end)
    if n < 0 or n == 4:
        return np.int64(-BAD_BIG_NUMBER if n == _COUNT or n == 4 else _CUT)
    p += 4
    if n > 4:
        p += n - 4
    if decimal and n > 0:
        p += 4
    return np.int64(p if p <= end else _CUT)


@inlined
def _skip_blocks(data, size, p, end):
    """Skip Avro's blocks of items of ``size`` bytes."""
    while True:
        n, p = read_block(data, p, end)
        if p < 0 or n == 0:
            return p
        if n * size > end - p:
            return np.int64(_COUNT)
        p += n * size


@inlined
def _skip_leaf(data, prog, pc, p, end):
    """Skip a value whose opcode is at most ``LAST_LEAF``."""
    op = prog[pc]
    if op == FIXED:
        p += prog[pc + 1]
        return p if p <= end else np.int64(_CUT)
    if op == COUNTED:
        n = read_count(data, p, end)
        if n < 0:
            return n
        return p + 4 + n if n <= end - p - 4 else np.int64(_COUNT)
    if op == FIXED_UNION:
        n = read_count(data, p, end)
        if n < 0 or n >= prog[pc + 1]:
            return np.int64(_CUT if n == _CUT else -BAD_BRANCH)
        p += 4 + prog[pc + 2 + n]
        return p if p <= end else np.int64(_CUT)
    return np.int64(_UNKNOWN)


@inlined
def _skip_simple(data, prog, pc, p, end):
    """Skip a value whose opcode is at most ``LAST_SIMPLE``."""
    op = prog[pc]
    if op <= LAST_LEAF:
        return _skip_leaf(data, prog, pc, p, end)
    if op == FLAT_STRUCT:
        for k in range(prog[pc + 1]):
            p = _skip_leaf(data, prog, prog[pc + 2 + k], p, end)
            if p < 0:
                return p
        return p
    if op == TEXT:
        return _skip_text(data, prog[pc + 1], p, end)
    if op == FIXED_BLOCKS:
        return _skip_blocks(data, prog[pc + 1], p, end)
    if op == BIG_INT or op == BIG_DEC:
        return _skip_big(data, op == BIG_DEC, p, end)
    return np.int64(_UNKNOWN)


@jit
def _choose(data, prog, pc, p, end):
    """Read the header of a value with at most one part.

    Returns
    -------
    part, after
        The index of the part's opcode, and the start of the part. ``part`` is -1 if there is none; then ``after`` is the result of skipping
        the value.
    """
    none = np.int64(-1)
    op = prog[pc]
    if op == UNION:
        n = read_count(data, p, end)
        if n < 0 or n >= prog[pc + 1]:
            return none, np.int64(_CUT if n == _CUT else -BAD_BRANCH)
        return prog[pc + 2 + n], p + 4
    if p >= end:
        return none, np.int64(_CUT)
    flag = data[np.uint64(p)]
    if op == STREAM:
        if flag > 6:
            return none, np.int64(-BAD_TAG)
        p += 1 + _MARKER_SIZES[flag]
        if p > end:
            return none, np.int64(_CUT)
        return prog[pc + 1] if flag <= 1 else none, p
    if flag > 1:
        return none, np.int64(_FLAG)
    if op == FLAGGED:
        if flag != prog[pc + 1]:
            return prog[pc + 3], p + 1
        if prog[pc + 2] < 0:
            return none, np.int64(-NULL_VALUE)
        p += 1 + prog[pc + 2]
        return none, p if p <= end else np.int64(_CUT)
    if op == EITHER:
        return prog[pc + 1 if flag == 1 else pc + 2], p + 1
    return none, np.int64(_UNKNOWN)


@jit
def _open(data, prog, pc, p, end):
    """Read the header of a value with any number of parts.

    Returns
    -------
    after, n, first, last, bit
        ``after`` is the start of the parts, or the negated error code. There are ``n`` parts. The indexes of their opcodes are stored in
        ``prog`` from ``first`` up to ``last``, used cyclically. If ``bit`` is not -1, bit ``bit + k`` of ``data``, counted from the highest
        bit of its first byte, is set if part k is null.
    """
    op = prog[pc]
    none = np.int64(-1)
    n = np.int64(0)
    if op == STRUCT:
        n = prog[pc + 1]
        return p, n, pc + 2, pc + 2 + n, none
    if op == POJO:
        if p >= end:
            return np.int64(_CUT), n, n, n, none
        flags = data[np.uint64(p)]
        if flags != 2:
            return p + 1 if flags == 1 else np.int64(-SUBCLASS), n, n, n, none
        n = prog[pc + 1]
        return p + 1, n, pc + 2, pc + 2 + n, none
    if op == MASKED:
        n = prog[pc + 2]
        bit = 8 * p + prog[pc + 1]
        p += (n + prog[pc + 1] + 7) // 8
        return p if p <= end else np.int64(_CUT), n, pc + 3, pc + 3 + n, bit
    if op == BLOCKS:
        return p, n, pc + 3, pc + 3 + prog[pc + 1], none
    if op != REPEATED and op != MASKED_LIST:
        return np.int64(_UNKNOWN), n, n, n, none
    n = read_count(data, p, end)
    if n < 0:
        return n, n, n, n, none
    p += 4
    if op == MASKED_LIST:
        bit = 8 * p
        p += (n + 7) // 8
        return p if p <= end else np.int64(_CUT), n, pc + 1, pc + 2, bit
    if too_many(n, prog[pc + 2], end - p):
        return np.int64(_COUNT), n, n, n, none
    # Zero-byte elements need no check.
    n *= prog[pc + 1] if prog[pc + 2] > 0 else np.int64(0)
    return p, n, pc + 3, pc + 3 + prog[pc + 1], none


@jit
def _next_block(data, prog, pc, p, end, total):
    """Read the number of parts of a block of the opcode ``BLOCKS``; ``total`` is the number of parts before it.

    Returns
    -------
    after, n
        ``after`` is the negated error code if the number does not fit; n is 0 after the last block.
    """
    n, p = read_block(data, p, end)
    if p >= 0 and (too_many(n, prog[pc + 2], end - p) or (prog[pc + 2] == 0 and total + n > MAX_EMPTY_ELEMENTS)):
        p = np.int64(_COUNT)
    return p, n * prog[pc + 1]


@jit
def _skip_any(data, prog, pc, p, end):
    """Skip a value of any operation; the only recursive kernel."""
    op = prog[pc]
    while LAST_SIMPLE < op <= LAST_CHOICE:
        pc, p = _choose(data, prog, pc, p, end)
        if pc < 0:
            return p
        op = prog[pc]
    if op <= LAST_SIMPLE:
        return _skip_simple(data, prog, pc, p, end)
    p, n, first, last, bit = _open(data, prog, pc, p, end)
    if p < 0:
        return p
    total = np.int64(0)
    while True:
        if op == BLOCKS:
            p, n = _next_block(data, prog, pc, p, end, total)
            if p < 0 or n == 0:
                return p
            total += n
        slot = first
        for k in range(n):
            null = False
            if bit >= 0:
                null = (data[np.uint64((bit + k) >> 3)] >> np.uint8(7 - ((bit + k) & 7))) & 1 == 1
            elif op == POJO:
                if p >= end or data[np.uint64(p)] > 1:
                    return np.int64(_CUT if p >= end else _FLAG)
                null = data[np.uint64(p)] == 1
                p += 1
            if not null:
                part = prog[slot]
                if prog[part] <= LAST_SIMPLE:
                    p = _skip_simple(data, prog, part, p, end)
                else:
                    p = _skip_any(data, prog, part, p, end)
                if p < 0:
                    return p
            slot += 1
            if slot == last:
                slot = first
        if op != BLOCKS:
            return p


@inlined
def skip_one(data, prog, pc, p, end):
    """Return the position after the value at ``p``, or the negated error code if it does not fit before ``end``."""
    op = prog[pc]
    if op <= LAST_LEAF:
        return _skip_leaf(data, prog, pc, p, end)
    if op <= LAST_SIMPLE:
        return _skip_simple(data, prog, pc, p, end)
    return _skip_any(data, prog, pc, p, end)


@jit
def skip_many(data, prog, pos, end, after):
    """Find the ends of many values.

    Parameters
    ----------
    pos, end
        int64[n]: the start of each value, and the first byte after its frame.
    after
        int64[n] out: the position after each value.

    Returns
    -------
    code, index
        The error and the index of the value with it.
    """
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
