"""Columns of composite values with a fixed number of parts: rows, tuples, POJOs, nullable values, unions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow, spread_values
from statetool.columns.batch import Batch, Column, struct_of
from statetool.columns.families.assembly import assemble
from statetool.columns.families.leaves import check_constant, load_flags, load_ints
from statetool.errors import StatetoolError
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import BAD_BRANCH, BAD_PADDING, SUBCLASS, UNUSED_BITS, refuse
from statetool.kernels.values import program as ir
from statetool.serializers.typeutils.row import ROW_KINDS
from statetool.types import LogicalType, StructType


def decode_struct(b: Batch, op: ir.Struct, logical: StructType, pos: Int64s, end: Int64s) -> Column:
    places = op.places or tuple(range(len(op.parts)))
    parts: dict[int, pa.Array] = {}
    after = pos
    for name, part, place in zip(op.names, op.parts, places, strict=True):
        parts[place], after = b.part(name, part, logical.fields[place].type, after, end, None)
    return assemble(b, logical, [parts[i] for i in range(len(parts))], len(pos)), after


def decode_flagged(
    b: Batch, value: ir.Op, null_flag: int, padding: int, logical: LogicalType, pos: Int64s, end: Int64s
) -> Column:
    flags, after = load_flags(b, pos, end)
    valid = flags != null_flag
    array, after = b.part("value", value, logical, after, end, valid)
    if padding:
        null = np.flatnonzero(~valid)
        after[null] = check_constant(b, padding, 0, BAD_PADDING, after[null], end[null])
    return array, after


def decode_masked(b: Batch, op: ir.Masked, logical: StructType, pos: Int64s, end: Int64s) -> Column:
    first = 2 * op.row_kind
    size = (len(op.parts) + first + 7) // 8
    bits = np.zeros((len(pos), size * 8), dtype=np.uint8)
    after = pos
    for k in range(size):
        raw, after = load_ints(b, 1, after, end)
        bits[:, 8 * k : 8 * k + 8] = np.unpackbits(raw.astype(np.uint8)).reshape(-1, 8)
    refuse(np.any(bits[:, len(op.parts) + first :], axis=1), UNUSED_BITS, pos)
    parts = []
    for i, (name, part) in enumerate(zip(op.names, op.parts, strict=True)):
        array, after = b.part(name, part, logical.fields[i].type, after, end, bits[:, first + i] == 0)
        parts.append(array)
    if op.row_kind:
        kinds = pa.array(ROW_KINDS)  # created late, because Arrow imports pandas for it
        parts.append(kinds.take(as_arrow(bits[:, 0].astype(np.int64) + 2 * bits[:, 1])))
    return assemble(b, logical, parts, len(pos)), after


def decode_pojo(
    b: Batch, names: tuple[str, ...], ops: tuple[ir.Op, ...], logical: StructType, pos: Int64s, end: Int64s
) -> Column:
    flags, after = load_ints(b, 1, pos, end)
    refuse((flags != 1) & (flags != 2), SUBCLASS, pos)
    valid = flags == 2
    present = np.flatnonzero(valid)
    moved, frame = after[present], end[present]
    parts = []
    for name, op, field in zip(names, ops, logical.fields, strict=True):
        try:
            null, moved = load_flags(b, moved, frame)
        except StatetoolError as error:
            raise error.inside(name) from None
        array, moved = b.part(name, op, field.type, moved, frame, null == 0)
        parts.append(array)
    after = after.copy()
    after[present] = moved
    return spread_values(assemble(b, logical, parts, len(present)), valid), after


def decode_either(b: Batch, left: ir.Op, right: ir.Op, logical: StructType, pos: Int64s, end: Int64s) -> Column:
    flags, after = load_flags(b, pos, end)
    is_left = flags == 1
    lefts, after_left = b.part("left", left, logical.fields[0].type, after, end, is_left)
    rights, after_right = b.part("right", right, logical.fields[1].type, after, end, ~is_left)
    after = np.where(is_left, after_left, after_right)
    return assemble(b, logical, [lefts, rights], len(pos)), after


def decode_union(b: Batch, op: ir.Union, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    index, body = load_ints(b, 4, pos, end)
    refuse((index < 0) | (index >= len(op.branches)), BAD_BRANCH, pos)
    members = [i for i in range(len(op.branches)) if i != op.null]
    if not members:
        return pa.nulls(len(pos)), body
    if len(members) == 1:
        return b.part("value", op.branches[members[0]], logical, body, end, index == members[0])
    parts, after = [], body
    for field, i in zip(struct_of(logical).fields, members, strict=True):
        array, moved = b.part(field.name, op.branches[i], field.type, body, end, index == i)
        after = np.where(index == i, moved, after)
        parts.append(array)
    valid = None if op.null is None else index != op.null
    return assemble(b, struct_of(logical), parts, len(pos), valid), after
