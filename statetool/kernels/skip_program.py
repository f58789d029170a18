"""Skip programs: what :mod:`statetool.kernels.skip` walks.

A program (:mod:`statetool.kernels.program`) becomes a flat int64 array: an opcode, its arguments, and for parts the index
of their own opcode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.kernels import program as ir
from statetool.kernels.sizes import fixed_size, least_size

(
    FIXED,
    TEXT,
    BIG_INT,
    BIG_DEC,
    COUNTED,
    STRUCT,
    FLAGGED,
    REPEATED,
    PAIRS,
    MASKED,
    POJO,
    EITHER,
    BLOCKS,
    UNION,
    STREAM,
    MASKED_LIST,
    FIXED_UNION,
    FIXED_BLOCKS,
    FLAT_STRUCT,
) = range(19)

#: What is skipped without a loop.
LEAVES: Final = (FIXED, COUNTED, FIXED_UNION)

Program = npt.NDArray[np.int64]


def compile_skip(op: ir.Op) -> Program | None:
    """Return the flat program, ``None`` where a part's end cannot be found by kernels."""
    words: list[int] = []
    try:
        _emit(op, words)
    except _NotSkippableError:
        return None
    return np.array(words, dtype=np.int64)


def compile_skips(ops: Sequence[ir.Op]) -> tuple[Program, list[int]]:
    """Return several programs in one array, and where each starts; -1 where a part's end cannot be found by kernels."""
    words: list[int] = []
    starts = []
    for op in ops:
        before = len(words)
        try:
            starts.append(_emit(op, words))
        except _NotSkippableError:
            del words[before:]
            starts.append(-1)
    return np.array(words, dtype=np.int64), starts


class _NotSkippableError(Exception):
    pass


def _emit(op: ir.Op, words: list[int]) -> int:
    """Append one operation after its parts' slots and return its index."""
    at = len(words)
    size = fixed_size(op)
    if size is not None:
        words += [FIXED, size]
        return at
    match op:
        case ir.Text(nullable):
            words += [TEXT, int(nullable)]
        case ir.BigInt():
            words += [BIG_INT]
        case ir.BigDec():
            words += [BIG_DEC]
        case ir.Counted() | ir.BinaryData() | ir.Framed() | ir.SqlDecimal() | ir.BytesDecimal():
            words += [COUNTED]
        case ir.Struct(parts=parts):
            parts = _joined(parts)
            at_parts = _emit_parts(STRUCT, [len(parts)], parts, words)
            if all(words[words[k]] in LEAVES for k in at_parts):
                words[at] = FLAT_STRUCT
        case ir.Ttl(value):
            _emit_parts(STRUCT, [2], (ir.Fixed("i64"), value), words)
        case ir.Present(value, flag):
            _emit_parts(FLAGGED, [1 - flag, -1], (value,), words)
        case ir.Flagged(value, null_flag, padding):
            _emit_parts(FLAGGED, [null_flag, padding], (value,), words)
        case ir.Repeated(element):
            _emit_parts(REPEATED, [], (element,), words)
        case ir.Pairs(key, value):
            _emit_parts(PAIRS, [], (key, value), words)
        case ir.Masked(_, parts, row_kind):
            _emit_parts(MASKED, [2 * row_kind, len(parts)], parts, words)
        case ir.Pojo(_, parts):
            _emit_parts(POJO, [len(parts)], parts, words)
        case ir.EitherOf(left, right):
            _emit_parts(EITHER, [], (left, right), words)
        case ir.Blocks():
            parts = ir.children(op)
            step = fixed_size(parts[0])
            if len(parts) == 1 and step:
                words += [FIXED_BLOCKS, step]
            else:
                _emit_parts(BLOCKS, [len(parts), sum(map(least_size, parts))], parts, words)
        case ir.StreamElement(value):
            _emit_parts(STREAM, [], (value,), words)
        case ir.MaskedList(element):
            _emit_parts(MASKED_LIST, [], (element,), words)
        case ir.Union(branches):
            sizes = [s for s in map(fixed_size, branches) if s is not None]
            if len(sizes) == len(branches):
                words += [FIXED_UNION, len(branches), *sizes]
            else:
                _emit_parts(UNION, [len(branches)], branches, words)
        case _:
            raise _NotSkippableError
    return at


def _joined(parts: tuple[ir.Op, ...]) -> tuple[ir.Op, ...]:
    """Return the parts with neighbours of fixed size as one, structs inside of structs as their parts."""
    found: list[ir.Op] = []
    for part in _flat(parts):
        size = fixed_size(part)
        if size is not None and found and isinstance(found[-1], ir.FixedBytes):
            found[-1] = ir.FixedBytes(found[-1].size + size)
        else:
            found.append(part if size is None else ir.FixedBytes(size))
    return tuple(found)


def _flat(parts: tuple[ir.Op, ...]) -> Iterator[ir.Op]:
    for part in parts:
        if isinstance(part, ir.Struct):
            yield from _flat(part.parts)
        else:
            yield part


def _emit_parts(opcode: int, arguments: list[int], parts: tuple[ir.Op, ...], words: list[int]) -> range:
    """Append an operation and its parts and return where the indexes of the parts are."""
    words += [opcode, *arguments]
    slots = len(words)
    words += [0] * len(parts)
    for i, part in enumerate(parts):
        words[slots + i] = _emit(part, words)
    return range(slots, slots + len(parts))
