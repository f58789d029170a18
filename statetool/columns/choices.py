"""Decoding of values with alternative forms or without a plain count: Avro unions and blocks, stream elements, lists with a null mask.

Each form is decoded for all its values at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.binary import BinaryData
from statetool.columns.leaves import Column, spread_values
from statetool.errors import DecodeError, StatetoolError
from statetool.kernels import elements
from statetool.kernels import program as ir
from statetool.kernels.arrays import Mask, Positions
from statetool.kernels.codes import BAD_BRANCH, BAD_FLAG, BAD_TAG, NOT_SKIPPABLE, TRUNCATED, check, coded_error, refuse
from statetool.kernels.sizes import least_size
from statetool.kernels.skip_program import compile_skip
from statetool.types import ListType, LogicalType, MapType, StructType

NO_PROGRAM: Final = np.empty(0, dtype=np.int64)
_MAX_EMPTY_ELEMENTS: Final = 1 << 24


class Choices(BinaryData):
    """Decoding of unions, blocks, stream elements and masked lists of one batch."""

    def part(
        self, step: str, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions, valid: Mask | None
    ) -> Column:
        """Decode a part of the values for which ``valid`` is set. The others are null and take no bytes."""
        try:
            if valid is None or valid.all():
                return self.run(op, logical, pos, end)
            present = np.flatnonzero(valid)
            array, moved = self.run(op, logical, pos[present], end[present])
        except StatetoolError as error:
            raise error.inside(step) from None
        after = pos.copy()
        after[present] = moved
        return spread_values(array, valid), after

    def masked_list(self, element: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        assert isinstance(logical, ListType)
        prog = compile_skip(element)
        if prog is None:
            raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
        counts, body, after = (np.empty_like(pos) for _ in range(3))
        check(elements.mask_counts(self.data, pos, end, counts, body), pos)
        total = self.bounded(int(counts.sum()), pos)
        starts, ends = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
        valid = np.empty(total, dtype=np.uint8)
        check(elements.masked_positions(self.data, prog, pos + 4, body, end, counts, starts, ends, valid, after), pos)
        array, _ = self.part("element", element, logical.element, starts, ends, valid == 1)
        return self.list_of(array, counts, logical, pos), after

    # ---- stream elements ----------------------------------------------------------------------

    def stream_element(self, op: ir.StreamElement, logical: StructType, pos: Positions, end: Positions) -> Column:
        raw, body = self.load(1, pos, end)
        tag = raw & 0xFF
        refuse(tag >= len(op.names), BAD_TAG, pos)

        def numbers(size: int, mask: Mask, at: Positions) -> tuple[Positions, Positions]:
            """Load numbers if ``mask`` is set. The others are 0 and take no bytes."""
            present = np.flatnonzero(mask)
            out, after = np.zeros_like(at), at.copy()
            out[present], after[present] = self.load(size, at[present], end[present])
            return out, after

        latency, status, attributes, internal = (tag == k for k in (3, 4, 5, 6))
        at = body
        subpartition, at = numbers(4, internal, at)
        timed = (tag == 0) | (tag == 2) | latency | internal
        timestamp, at = numbers(8, timed, at)
        ids, at = at, at + 16 * latency
        refuse(at > end, TRUNCATED, pos)
        subtask, at = numbers(4, latency, at)
        idle, at = numbers(4, status, at)
        refuse(status & (idle != 0) & (idle != -1), BAD_TAG, pos)
        backlog, at = numbers(1, attributes, at)
        refuse(attributes & (backlog != 0) & (backlog != 1), BAD_FLAG, pos)
        value, after = self.part("value", op.value, logical.fields[0].type, at, end, tag <= 1)
        names = pa.array(op.names, type=pa.string()).take(as_arrow(tag))
        hexes = [
            self.data[i : i + 16].tobytes().hex() if has_id else None
            for i, has_id in zip(ids.tolist(), latency.tolist(), strict=True)
        ]
        marker = [
            pa.array(hexes, type=pa.string()),
            as_arrow((subtask + subpartition).astype(np.int32), mask=~(latency | internal)),
            as_arrow(idle != 0, mask=~status),
            as_arrow(backlog != 0, mask=~attributes),
        ]
        marker_type = logical.fields[3].type
        markers = null_where(self.assemble(struct_of(marker_type), marker, len(pos)), tag <= 2)
        parts = [null_where(value, tag > 1), as_arrow(timestamp, mask=~timed), names, markers]
        return self.assemble(logical, parts, len(pos)), after

    # ---- Avro -----------------------------------------------------------------------------------

    def blocks(self, key: ir.Op | None, value: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        first = value if key is None else key
        prog = compile_skip(first)
        value_prog = NO_PROGRAM if key is None else compile_skip(value)
        if prog is None or value_prog is None:
            raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
        counts, after = np.empty_like(pos), np.empty_like(pos)
        at_least = least_size(first) + (0 if key is None else least_size(value))
        total = np.zeros(1, dtype=np.int64)
        check(elements.first_blocks(self.data, pos, end, at_least, total), pos)
        capacity = -1
        while capacity < total[0]:
            # Repeated only if a value has more than one block.
            capacity = self.bounded(int(total[0]), pos)
            starts, seconds, ends = (np.empty(capacity, dtype=np.int64) for _ in range(3))
            check(
                elements.block_elements(
                    self.data, prog, value_prog, pos, end, at_least, counts, starts, seconds, ends, total, after
                ),
                pos,
            )
        if key is None:
            assert isinstance(logical, ListType)
            array, _ = self.part("element", value, logical.element, starts, ends, None)
            return self.list_of(array, counts, logical, pos), after
        assert isinstance(logical, MapType)
        keys, _ = self.part("key", key, logical.key, starts, ends, None)
        values, _ = self.part("value", value, logical.value, seconds, ends, None)
        return self.map_of(keys, values, counts, logical, pos), after

    def union(self, op: ir.Union, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        index, body = self.load(4, pos, end)
        refuse((index < 0) | (index >= len(op.branches)), BAD_BRANCH, pos)
        members = [i for i in range(len(op.branches)) if i != op.null]
        if not members:
            return pa.nulls(len(pos)), body
        if len(members) == 1:
            return self.part("value", op.branches[members[0]], logical, body, end, index == members[0])
        parts, after = [], body
        for field, i in zip(struct_of(logical).fields, members, strict=True):
            array, moved = self.part(field.name, op.branches[i], field.type, body, end, index == i)
            after = np.where(index == i, moved, after)
            parts.append(array)
        valid = None if op.null is None else index != op.null
        return self.assemble(struct_of(logical), parts, len(pos), valid), after

    def bounded(self, total: int, pos: Positions) -> int:
        """Return a number of elements if it fits a batch."""
        if total > len(self.data) + _MAX_EMPTY_ELEMENTS:
            raise DecodeError(
                f"{total} elements of lists in one batch, most of which take no bytes", hint="read with smaller batches"
            ).at(offset=int(pos[0]))
        return total


def struct_of(logical: LogicalType) -> StructType:
    """Return a logical type, which must be a struct type."""
    assert isinstance(logical, StructType)
    return logical


def null_where(array: pa.Array, mask: Mask) -> pa.Array:
    """Return an array with nulls at the positions set in ``mask``."""
    if not mask.any():
        return array
    return array.take(as_arrow(np.arange(len(array)), mask=mask))
