"""Decoding of many values at once by a program: vectors of byte positions in, Arrow columns out.

``decode_column`` walks the program tree once per batch. Each operation is a few kernel calls over all values. The offset of an error is the
position of the failing value in ``data``, which callers convert to a location in a file.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow, as_numpy, is_valid
from statetool.columns.choices import NO_PROGRAM, null_where, struct_of
from statetool.columns.from_plain import null_key_error
from statetool.columns.graphs import Graphs
from statetool.columns.leaves import Column, spread_values
from statetool.columns.types import arrow_type, member_arrays
from statetool.errors import StatetoolError
from statetool.kernels import elements
from statetool.kernels import program as ir
from statetool.kernels.arrays import Bytes, Mask, Positions
from statetool.kernels.codes import (
    BAD_PADDING,
    NOT_SKIPPABLE,
    NULL_VALUE,
    RANGE,
    SUBCLASS,
    TRUNCATED,
    UNUSED_BITS,
    check,
    coded_error,
    refuse,
)
from statetool.kernels.sizes import fixed_size, least_size
from statetool.kernels.skip_program import compile_skip
from statetool.serializers.row import ROW_KINDS
from statetool.types import BitmapType, DateType, ListType, LogicalType, MapType, Scalar, StructType, TtlType
from statetool.types.options import ReadOptions

_MAX_MILLIS: Final = (1 << 63) // 1000


def as_data(buffer: Any) -> Bytes:
    """Return a buffer as a read-only array of the type that kernels are compiled for."""
    data = np.frombuffer(buffer, dtype=np.uint8)
    data.flags.writeable = False
    return data


def decode_column(
    op: ir.Op, logical: LogicalType, data: Bytes, pos: Positions, end: Positions, options: ReadOptions
) -> Column:
    """Decode one value at each position.

    Parameters
    ----------
    op, logical
        Program and logical type of the serializer.
    data
        uint8[:], read-only.
    pos, end
        int64[n]: first byte of each value, and first byte after its frame.

    Returns
    -------
    array, after
        A column of ``arrow_type(logical, options)``, and the first byte after each value.

    Raises
    ------
    DecodeError
        ``where.offset`` is the position in ``data``, ``where.type_path`` the path inside the type.
    """
    return _Decoder(data, options).run(op, logical, pos, end)


class _Decoder(Graphs):
    """Decoding of one batch."""

    def run(self, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        if isinstance(op, ir.Leaf):
            return self.leaf(op, logical, pos, end)
        match op:
            case ir.Struct():
                return self.struct(op, struct_of(logical), pos, end)
            case ir.Flagged(value, null_flag, padding):
                return self.flagged(value, null_flag, padding, logical, pos, end)
            case ir.NonNullFlag(value, flag):
                return self.run(value, logical, self.constant(1, flag, NULL_VALUE, pos, end), end)
            case ir.Repeated(element):
                return self.repeated(element, logical, pos, end)
            case ir.Pairs(key, value):
                return self.pairs(key, value, logical, pos, end)
            case ir.Pojo(names, parts):
                return self.pojo(names, parts, struct_of(logical), pos, end)
            case ir.Masked():
                return self.masked(op, struct_of(logical), pos, end)
            case ir.EitherOf(left, right):
                return self.either(left, right, struct_of(logical), pos, end)
            case ir.Blocks(key, value):
                return self.blocks(key, value, logical, pos, end)
            case ir.MaskedList(element):
                return self.masked_list(element, logical, pos, end)
            case ir.StreamElement():
                return self.stream_element(op, struct_of(logical), pos, end)
            case ir.Union():
                return self.union(op, logical, pos, end)
            case ir.Ttl(value):
                return self.ttl(value, logical, pos, end)
        assert_never(op)

    def leaf(self, op: ir.Leaf, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        """Decode values without parts, or with parts after a size in bytes."""
        match op:
            case ir.Fixed(kind):
                return self.fixed_as(kind, logical, pos, end)
            case ir.Text(nullable):
                return self.text(nullable, pos, end)
            case ir.Constant(size, byte):
                return self.nothing(size, byte, logical, pos, end)
            case ir.EnumIndex(names):
                return self.choice(names, pos, end)
            case ir.SignFlippedLong():
                raw, after = self.load(8, pos, end)
                return as_arrow(raw ^ np.int64(-(1 << 63))), after
            case ir.Temporal(kind):
                return self.temporal(kind, logical, pos, end)
            case ir.BigInt():
                return self.big_integer(logical, pos, end)
            case ir.BigDec():
                return self.big_decimal(logical, pos, end)
            case ir.Counted(text):
                array, after = self.counted(text, pos, end)
                return self.bitmaps(array, pos) if isinstance(logical, BitmapType) else array, after
            case ir.BinaryData():
                return self.binary_data(op, logical, pos, end)
            case ir.SqlDecimal(precision):
                return self.sql_decimal(precision, logical, pos, end)
            case ir.SqlTimestamp(precision):
                return self.sql_timestamp(precision, logical, pos, end)
            case ir.Clock(unit):
                return self.clock(unit, pos, end)
            case ir.Epoch(unit):
                raw, after = self.load(8, pos, end)
                return self.epoch(raw, unit, logical, pos), after
            case ir.FixedBytes(size):
                refuse(pos + size > end, TRUNCATED, pos)
                return self.ranges(pos, pos + size), pos + size
            case ir.BytesDecimal(size):
                return self.bytes_decimal(size, logical, pos, end)
            case ir.Framed(value):
                first, after = self.framed(pos, end)
                return self.filling(value, logical, first, after), after
            case ir.Rest():
                return self.ranges(pos, end), end
            case ir.Graph():
                return self.graph(op, logical, pos, end)
            case ir.PerRecord(decode):
                return self.per_record(decode, logical, pos, end)
        assert_never(op)

    def fixed_as(self, kind: ir.FixedKind, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        """Decode numbers, which the logical types of external serializers may interpret as dates or intervals."""
        array, after = self.fixed(kind, pos, end)
        if isinstance(logical, DateType):
            return array.cast(pa.date32()), after
        if logical == Scalar("day_interval"):
            return self.intervals(as_numpy(array), np.ones(len(pos), dtype=np.uint8), pos), after
        return array, after

    # ---- composites ---------------------------------------------------------------------------

    def struct(self, op: ir.Struct, logical: StructType, pos: Positions, end: Positions) -> Column:
        places = op.places or tuple(range(len(op.parts)))
        parts: dict[int, pa.Array] = {}
        after = pos
        for name, part, place in zip(op.names, op.parts, places, strict=True):
            parts[place], after = self.part(name, part, logical.fields[place].type, after, end, None)
        return self.assemble(logical, [parts[i] for i in range(len(parts))], len(pos)), after

    def flagged(
        self, value: ir.Op, null_flag: int, padding: int, logical: LogicalType, pos: Positions, end: Positions
    ) -> Column:
        flags, after = self.flags(pos, end)
        valid = flags != null_flag
        array, after = self.part("value", value, logical, after, end, valid)
        if padding:
            null = np.flatnonzero(~valid)
            after[null] = self.constant(padding, 0, BAD_PADDING, after[null], end[null])
        return array, after

    def masked(self, op: ir.Masked, logical: StructType, pos: Positions, end: Positions) -> Column:
        first = 2 * op.row_kind
        size = (len(op.parts) + first + 7) // 8
        bits = np.zeros((len(pos), size * 8), dtype=np.uint8)
        after = pos
        for k in range(size):
            raw, after = self.load(1, after, end)
            bits[:, 8 * k : 8 * k + 8] = np.unpackbits(raw.astype(np.uint8)).reshape(-1, 8)
        refuse(np.any(bits[:, len(op.parts) + first :], axis=1), UNUSED_BITS, pos)
        parts = []
        for i, (name, part) in enumerate(zip(op.names, op.parts, strict=True)):
            array, after = self.part(name, part, logical.fields[i].type, after, end, bits[:, first + i] == 0)
            parts.append(array)
        if op.row_kind:
            kinds = pa.array(ROW_KINDS)  # created late, because Arrow imports pandas for it
            parts.append(kinds.take(as_arrow(bits[:, 0].astype(np.int64) + 2 * bits[:, 1])))
        return self.assemble(logical, parts, len(pos)), after

    def pojo(
        self, names: tuple[str, ...], ops: tuple[ir.Op, ...], logical: StructType, pos: Positions, end: Positions
    ) -> Column:
        flags, after = self.load(1, pos, end)
        refuse((flags != 1) & (flags != 2), SUBCLASS, pos)
        valid = flags == 2
        present = np.flatnonzero(valid)
        moved, frame = after[present], end[present]
        parts = []
        for name, op, field in zip(names, ops, logical.fields, strict=True):
            try:
                null, moved = self.flags(moved, frame)
            except StatetoolError as error:
                raise error.inside(name) from None
            array, moved = self.part(name, op, field.type, moved, frame, null == 0)
            parts.append(array)
        after = after.copy()
        after[present] = moved
        return spread_values(self.assemble(logical, parts, len(present)), valid), after

    def either(self, left: ir.Op, right: ir.Op, logical: StructType, pos: Positions, end: Positions) -> Column:
        flags, after = self.flags(pos, end)
        is_left = flags == 1
        lefts, after_left = self.part("left", left, logical.fields[0].type, after, end, is_left)
        rights, after_right = self.part("right", right, logical.fields[1].type, after, end, ~is_left)
        after = np.where(is_left, after_left, after_right)
        return self.assemble(logical, [lefts, rights], len(pos)), after

    def repeated(self, element: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        assert isinstance(logical, ListType)
        counts, starts, _, ends, after = self.positions(element, None, pos, end)
        array, _ = self.part("element", element, logical.element, starts, ends, None)
        fresh = self.unexpired(element, starts)
        if fresh is not None:
            array, counts = array.filter(as_arrow(fresh)), _counts(fresh, counts)
        return self.list_of(array, counts, logical, pos), after

    def pairs(self, key: ir.Op, value: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        assert isinstance(logical, MapType)
        counts, starts, value_starts, ends, after = self.positions(key, value, pos, end)
        keys, _ = self.part("key", key, logical.key, starts, ends, None)
        values, _ = self.part("value", value, logical.value, value_starts, ends, None)
        fresh = self.unexpired(value, value_starts)
        if fresh is not None:
            keys, values, counts = keys.filter(as_arrow(fresh)), values.filter(as_arrow(fresh)), _counts(fresh, counts)
        if keys.null_count:
            first = int(np.argmin(is_valid(keys)))
            raise null_key_error().at(offset=int(starts[first]))
        return self.map_of(keys, values, counts, logical, pos), after

    def positions(
        self, first: ir.Op, second: ir.Op | None, pos: Positions, end: Positions
    ) -> tuple[Positions, Positions, Positions, Positions, Positions]:
        """Return counts, starts, starts of values, ends of frames, and the positions after all, of elements (or keys and values)."""
        sizes = [fixed_size(first), 0 if second is None else fixed_size(second)]
        first_program = compile_skip(first)
        second_program = NO_PROGRAM if second is None else compile_skip(second)
        if first_program is None or second_program is None:
            raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
        counts, body = np.empty_like(pos), np.empty_like(pos)
        at_least = least_size(first) + (0 if second is None else least_size(second))
        check(elements.read_counts(self.data, pos, end, at_least, counts, body), pos)
        total = self.bounded(int(counts.sum()), pos)
        starts, seconds, ends = (np.empty(total, dtype=np.int64) for _ in range(3))
        after = np.empty_like(pos)
        if None not in sizes:
            elements.strided_positions(body, end, counts, sizes[0], at_least, starts, seconds, ends, after)
        else:
            check(
                elements.element_positions(
                    self.data, first_program, second_program, body, end, counts, starts, seconds, ends, after
                ),
                pos,
            )
        return counts, starts, seconds, ends, after

    # ---- time to live -------------------------------------------------------------------------

    def ttl(self, value: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        assert isinstance(logical, TtlType)
        access, body = self.load(8, pos, end)
        array, after = self.part("value", value, logical.value, body, end, None)
        if self.options.ttl == "raw":
            refuse((access >= _MAX_MILLIS) | (access <= -_MAX_MILLIS), RANGE, pos)
            kind = arrow_type(logical, self.options)
            times = pa.Array.from_buffers(kind.field(0).type, len(pos), [None, pa.py_buffer(access * 1000)])
            parts = [times, *member_arrays(array, logical.value, self.options)]
            return pa.StructArray.from_buffers(kind, len(pos), [None], children=parts), after
        if self.options.ttl == "hide_expired":
            array = null_where(array, self.expired(access))
        return array, after

    def expired(self, access: Positions) -> Mask:
        """Return which values have expired by their last access."""
        assert self.options.ttl_ms is not None
        assert self.options.now_ms is not None
        return access <= self.options.now_ms - self.options.ttl_ms

    def unexpired(self, op: ir.Op, starts: Positions) -> Mask | None:
        """Return which elements (already decoded) stay when expired ones are hidden, ``None`` for all."""
        if self.options.ttl != "hide_expired":
            return None
        flag = None
        if isinstance(op, ir.Flagged):
            flag, op = op.null_flag, op.value
        if not isinstance(op, ir.Ttl):
            return None
        timed = np.ones(len(starts), dtype=np.bool_) if flag is None else self.data[starts] != flag
        at = starts[timed] + (0 if flag is None else 1)
        access, _ = self.load(8, at, at + 8)
        fresh = np.ones(len(starts), dtype=np.bool_)
        fresh[timed] = ~self.expired(access)
        return fresh


def _counts(kept: Mask, counts: Positions) -> Positions:
    running = np.concatenate([[0], np.cumsum(kept)])
    ends = np.cumsum(counts)
    kept_counts: Positions = running[ends] - running[ends - counts]
    return kept_counts
