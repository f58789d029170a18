"""Skip programs: programs (:mod:`statetool.kernels.values.program`) in numeric form, for the kernels of :mod:`statetool.kernels.values.skip`.

A skip program is int64[:]. Each operation is an opcode, its arguments, and for each of its parts the index of the part's opcode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_never

from statetool.kernels.values import program as ir
from statetool.kernels.values.sizes import fixed_size, least_size

# The arguments of each opcode are in brackets. The order matters: kernels compare opcodes to distinguish kinds of operations.
(
    # Leaves.
    FIXED,  # [bytes]
    COUNTED,  # []: i32 byte count, bytes
    FIXED_UNION,  # [branches, bytes of each branch]: i32 index of the branch, value of that many bytes
    # Other operations that need no part. Together with the leaves, these are the simple ones.
    FLAT_STRUCT,  # [parts, part ...]: parts that are leaves
    FIXED_BLOCKS,  # [bytes of an item]: Avro's blocks
    TEXT,  # [1 if 0 code units mean null]
    BIG_INT,  # []
    BIG_DEC,  # []
    # At most one part, which ends the value.
    FLAGGED,  # [flag that means null, bytes after that flag or -1 if null is not allowed, part]
    EITHER,  # [part of flag 1, part of flag 0]
    UNION,  # [branches, part ...]: i32 index of the branch
    STREAM,  # [part]: u8 tag; tags 0 and 1 are values
    # Any number of parts.
    STRUCT,  # [parts, part ...]
    REPEATED,  # [parts of an element, minimum bytes of an element, part ...]: i32 number of elements
    BLOCKS,  # [parts of an item, minimum bytes of an item, part ...]: Avro's blocks
    MASKED,  # [bits before those of the parts, parts, part ...]: a bit mask, 1 for null parts
    MASKED_LIST,  # [part]: i32 number of elements, a bit mask, 1 for null elements
    POJO,  # [parts, part ...]: u8 flags, then before each part a byte that is 1 for null
) = range(18)

LAST_LEAF: Final = FIXED_UNION
LAST_SIMPLE: Final = BIG_DEC
LAST_CHOICE: Final = STREAM

Program = npt.NDArray[np.int64]


def compile_skip(op: ir.Op) -> Program | None:
    """Return the skip program, ``None`` if kernels cannot find the end of a part."""
    words: list[int] = []
    try:
        _emit(op, words)
    except _NotSkippableError:
        return None
    return np.array(words, dtype=np.int64)


def compile_skips(ops: Sequence[ir.Op]) -> tuple[Program, list[int]]:
    """Return several programs in one array, and the start of each; -1 if kernels cannot find the end of a part."""
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
    """Append an operation and all of its parts to ``words``, and return its index."""
    at = len(words)
    size = fixed_size(op)
    if size is not None:
        words += [FIXED, size]
    elif isinstance(op, ir.Leaf):
        _emit_leaf(op, words)
    else:
        _emit_composite(op, words)
    return at


def _emit_leaf(op: ir.Leaf, words: list[int]) -> None:
    assert not isinstance(op, ir.Sized)  # they have a fixed size
    match op:
        case ir.Text(nullable):
            words += [TEXT, int(nullable)]
        case ir.BigInt():
            words += [BIG_INT]
        case ir.BigDec():
            words += [BIG_DEC]
        case ir.Counted() | ir.BinaryData() | ir.Framed() | ir.SqlDecimal() | ir.BytesDecimal():
            words += [COUNTED]
        case ir.Rest() | ir.PerRecord() | ir.Graph():
            raise _NotSkippableError
        case _:
            assert_never(op)


def _emit_composite(op: ir.Composite, words: list[int]) -> None:
    at = len(words)
    match op:
        case ir.Struct(parts=parts):
            parts = _joined(parts)
            at_parts = _emit_parts(STRUCT, [len(parts)], parts, words)
            if all(words[words[k]] <= LAST_LEAF for k in at_parts):
                words[at] = FLAT_STRUCT
        case ir.Ttl(value):
            _emit_parts(STRUCT, [2], (ir.Fixed("i64"), value), words)
        case ir.NonNullFlag(value, flag):
            _emit_parts(FLAGGED, [1 - flag, -1], (value,), words)
        case ir.Flagged(value, null_flag, padding):
            _emit_parts(FLAGGED, [null_flag, padding], (value,), words)
        case ir.Repeated() | ir.Pairs():
            _emit_repeated(REPEATED, ir.children(op), words)
        case ir.Masked(_, parts, row_kind):
            _emit_parts(MASKED, [2 * row_kind, len(parts)], parts, words)
        case ir.Pojo(_, parts):
            _emit_parts(POJO, [len(parts)], parts, words)
        case ir.EitherOf(left, right):
            _emit_parts(EITHER, [], (left, right), words)
        case ir.Blocks(key, value):
            step = fixed_size(value)
            if key is None and step:
                words += [FIXED_BLOCKS, step]
            else:
                _emit_repeated(BLOCKS, ir.children(op), words)
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
            assert_never(op)


def _joined(parts: tuple[ir.Op, ...]) -> tuple[ir.Op, ...]:
    """Return the parts with adjacent fixed-size parts joined, and structs replaced by their parts."""
    joined: list[ir.Op] = []
    for part in _flat(parts):
        size = fixed_size(part)
        if size is not None and joined and isinstance(joined[-1], ir.FixedBytes):
            joined[-1] = ir.FixedBytes(joined[-1].size + size)
        else:
            joined.append(part if size is None else ir.FixedBytes(size))
    return tuple(joined)


def _flat(parts: tuple[ir.Op, ...]) -> Iterator[ir.Op]:
    for part in parts:
        if isinstance(part, ir.Struct):
            yield from _flat(part.parts)
        else:
            yield part


def _emit_repeated(opcode: int, parts: tuple[ir.Op, ...], words: list[int]) -> None:
    _emit_parts(opcode, [len(parts), sum(map(least_size, parts))], parts, words)


def _emit_parts(opcode: int, arguments: list[int], parts: tuple[ir.Op, ...], words: list[int]) -> range:
    """Append an operation and its parts, and return the range that holds the indexes of the parts."""
    words += [opcode, *arguments]
    slots = len(words)
    words += [0] * len(parts)
    for i, part in enumerate(parts):
        words[slots + i] = _emit(part, words)
    return range(slots, slots + len(parts))
