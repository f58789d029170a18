"""Find where values end, and where the elements of lists and maps start.

A program (:mod:`statetool.kernels.program`) becomes a flat int64 array: an opcode, its arguments, and for parts the index
of their own opcode. ``skip_one`` walks it recursively.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.kernels import program as ir
from statetool.kernels.codes import BAD_COUNT, BAD_SEPARATOR, OK, TRUNCATED
from statetool.kernels.jit import jit
from statetool.kernels.loads import TEMPORAL_KINDS, TEMPORAL_SIZES, read_varint

_FIXED, _TEXT, _BIG_INT, _BIG_DEC, _COUNTED, _STRUCT, _FLAGGED, _REPEATED, _PAIRS, _MASKED, _POJO, _EITHER = range(12)
FIXED_SIZES: Final = {"bool": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "char": 2}
_MAX_EMPTY_ELEMENTS: Final = 1 << 20

Program = npt.NDArray[np.int64]


def fixed_size(op: ir.Op) -> int | None:
    """Return the bytes that every value takes, ``None`` where they differ."""
    match op:
        case ir.Fixed(kind):
            return FIXED_SIZES[kind]
        case ir.Constant(size):
            return size
        case ir.Temporal(kind):
            return TEMPORAL_SIZES[TEMPORAL_KINDS.index(kind)]
        case ir.Choice():
            return 4
        case ir.Flipped():
            return 8
        case ir.Struct(_, parts):
            sizes = [fixed_size(p) for p in parts]
            return None if None in sizes else sum(s for s in sizes if s is not None)
        case ir.Ttl(value):
            inner = fixed_size(value)
            return None if inner is None else 8 + inner
        case ir.Flagged(value, _, padding):
            inner = fixed_size(value)
            return 1 + padding if inner == padding else None
    return None


def compile_skip(op: ir.Op) -> Program | None:
    """Return the flat program, ``None`` where a part's end cannot be found by kernels."""
    words: list[int] = []
    try:
        _emit(op, words)
    except _NotSkippableError:
        return None
    return np.array(words, dtype=np.int64)


class _NotSkippableError(Exception):
    pass


def _emit(op: ir.Op, words: list[int]) -> int:
    """Append one operation after its parts' slots and return its index."""
    at = len(words)
    size = fixed_size(op)
    if size is not None:
        words += [_FIXED, size]
        return at
    match op:
        case ir.Text(nullable):
            words += [_TEXT, int(nullable)]
        case ir.BigInt():
            words += [_BIG_INT]
        case ir.BigDec():
            words += [_BIG_DEC]
        case ir.Counted():
            words += [_COUNTED]
        case ir.Struct(_, parts):
            _emit_parts(_STRUCT, [len(parts)], parts, words)
        case ir.Ttl(value):
            _emit_parts(_STRUCT, [2], (ir.Fixed("i64"), value), words)
        case ir.Flagged(value, null_flag, padding):
            _emit_parts(_FLAGGED, [null_flag, padding], (value,), words)
        case ir.Repeated(element):
            _emit_parts(_REPEATED, [], (element,), words)
        case ir.Pairs(key, value):
            _emit_parts(_PAIRS, [], (key, value), words)
        case ir.Masked(_, parts, row_kind):
            _emit_parts(_MASKED, [2 * row_kind, len(parts)], parts, words)
        case ir.Pojo(_, parts):
            _emit_parts(_POJO, [len(parts)], parts, words)
        case ir.EitherOf(left, right):
            _emit_parts(_EITHER, [], (left, right), words)
        case _:
            raise _NotSkippableError
    return at


def _emit_parts(opcode: int, arguments: list[int], parts: tuple[ir.Op, ...], words: list[int]) -> None:
    words += [opcode, *arguments]
    slots = len(words)
    words += [0] * len(parts)
    for i, part in enumerate(parts):
        words[slots + i] = _emit(part, words)


@jit
def _count(data, p, end):  # type: ignore[no-untyped-def]
    """Read an i32 count; -1 where it is cut off or negative."""
    if p + 4 > end or data[p] >= 0x80:
        return np.int64(-1)
    return np.int64(data[p]) << 24 | np.int64(data[p + 1]) << 16 | np.int64(data[p + 2]) << 8 | np.int64(data[p + 3])


@jit
def skip_one(data, prog, pc, p, end):  # type: ignore[no-untyped-def]
    """Return the position behind the value at ``p``, -1 where it does not fit before ``end``."""
    op = prog[pc]
    if op == _FIXED:
        p += prog[pc + 1]
        return p if p <= end else np.int64(-1)
    if op == _TEXT:
        n, p = read_varint(data, p, end)
        n -= prog[pc + 1]
        if p < 0:
            return np.int64(-1)
        for _ in range(n):
            while p < end and data[p] >= 0x80:
                p += 1
            p += 1
            if p > end:
                return np.int64(-1)
        return p
    if op == _BIG_INT or op == _BIG_DEC:
        n = _count(data, p, end)
        if n < 0:
            return np.int64(-1)
        p += 4
        if n >= 4:
            if n == 4:
                return np.int64(-1)
            p += n - 4
        if op == _BIG_DEC and n > 0:
            p += 4
        return p if p <= end else np.int64(-1)
    if op == _COUNTED:
        n = _count(data, p, end)
        if n < 0 or n > end - p - 4:
            return np.int64(-1)
        return p + 4 + n
    if op == _STRUCT:
        for k in range(prog[pc + 1]):
            p = skip_one(data, prog, prog[pc + 2 + k], p, end)
            if p < 0:
                return p
        return p
    if op == _FLAGGED:
        if p >= end or data[p] > 1:
            return np.int64(-1)
        if data[p] == prog[pc + 1]:
            p += 1 + prog[pc + 2]
            return p if p <= end else np.int64(-1)
        return skip_one(data, prog, prog[pc + 3], p + 1, end)
    if op == _REPEATED or op == _PAIRS:
        n = _count(data, p, end)
        if n < 0:
            return np.int64(-1)
        p += 4
        for _ in range(n):
            before = p
            p = skip_one(data, prog, prog[pc + 1], p, end)
            if p >= 0 and op == _PAIRS:
                p = skip_one(data, prog, prog[pc + 2], p, end)
            if p < 0:
                return p
            if p == before:
                return p if n <= _MAX_EMPTY_ELEMENTS else np.int64(-1)
        return p
    if op == _MASKED:
        kind = prog[pc + 1]
        n = prog[pc + 2]
        mask = p
        p += (n + kind + 7) // 8
        if p > end:
            return np.int64(-1)
        for k in range(n):
            bit = k + kind
            if (data[mask + (bit >> 3)] >> (7 - (bit & 7))) & 1 == 0:
                p = skip_one(data, prog, prog[pc + 3 + k], p, end)
                if p < 0:
                    return p
        return p
    if op == _POJO:
        if p >= end:
            return np.int64(-1)
        flags = data[p]
        p += 1
        if flags == 1:
            return p
        if flags != 2:
            return np.int64(-1)
        for k in range(prog[pc + 1]):
            if p >= end or data[p] > 1:
                return np.int64(-1)
            p += 1
            if data[p - 1] == 0:
                p = skip_one(data, prog, prog[pc + 2 + k], p, end)
                if p < 0:
                    return p
        return p
    if p >= end or data[p] > 1:
        return np.int64(-1)
    return skip_one(data, prog, prog[pc + 1 if data[p] == 1 else pc + 2], p + 1, end)


@jit
def skip_many(data, prog, pos, end, after):  # type: ignore[no-untyped-def]
    """Find the ends of many values."""
    for i in range(pos.shape[0]):
        p = skip_one(data, prog, np.int64(0), pos[i], end[i])
        if p < 0:
            return TRUNCATED, i
        after[i] = p
    return OK, 0


@jit
def read_counts(data, pos, end, at_least, counts, after):  # type: ignore[no-untyped-def]
    """Read i32 counts of things that take ``at_least`` bytes each."""
    for i in range(pos.shape[0]):
        n = _count(data, pos[i], end[i])
        if n < 0 or n * at_least > end[i] - pos[i] - 4 or n > end[i] - pos[i] + _MAX_EMPTY_ELEMENTS:
            return BAD_COUNT, i
        counts[i] = n
        after[i] = pos[i] + 4
    return OK, 0


@jit
def element_positions(data, prog, other, pos, end, counts, out, out_other, after):  # type: ignore[no-untyped-def]
    """Find the start of each element of each value, in order.

    ``prog`` skips an element (or a key), ``other`` the value behind it (empty where there is none).
    """
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        for _ in range(counts[i]):
            out[o] = p
            p = skip_one(data, prog, np.int64(0), p, end[i])
            if p >= 0 and other.shape[0] > 0:
                out_other[o] = p
                p = skip_one(data, other, np.int64(0), p, end[i])
            if p < 0:
                return TRUNCATED, i
            o += 1
        after[i] = p
    return OK, 0


@jit
def joined_counts(data, prog, pos, end, counts):  # type: ignore[no-untyped-def]
    """Count the elements of lists whose elements are joined by a comma (canonical and RocksDB list state)."""
    for i in range(pos.shape[0]):
        p = pos[i]
        n = 0
        while True:
            q = skip_one(data, prog, np.int64(0), p, end[i])
            if q < 0:
                return TRUNCATED, i
            n += 1
            p = q
            if p == end[i]:
                break
            if data[p] != 0x2C:
                return BAD_SEPARATOR, i
            p += 1
        counts[i] = n
    return OK, 0


@jit
def joined_positions(data, prog, pos, end, counts, out, out_end):  # type: ignore[no-untyped-def]
    """Find start and end of each element of comma-joined lists that ``joined_counts`` has accepted."""
    o = 0
    for i in range(pos.shape[0]):
        p = pos[i]
        for _ in range(counts[i]):
            out[o] = p
            p = skip_one(data, prog, np.int64(0), p, end[i])
            out_end[o] = p
            p += 1
            o += 1
    return OK, 0


__all__ = [
    "Program",
    "compile_skip",
    "element_positions",
    "fixed_size",
    "joined_counts",
    "joined_positions",
    "read_counts",
    "skip_many",
    "skip_one",
]
