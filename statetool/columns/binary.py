"""Binary rows, arrays and maps of the table runtime as Arrow columns: the kernels of :mod:`statetool.kernels.slots`, slot by slot.

A field of rows, or the elements of arrays, are decoded for all values at once: the positions and null flags of their slots are known
in advance. Must agree with :mod:`statetool.serializers.binary_format`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow, is_valid
from statetool.columns.from_plain import null_key_error
from statetool.columns.leaves import Column, Leaves, bitmap, offsets_of, spread_values
from statetool.columns.types import arrow_type, keeps_nanos, member_arrays, member_fields
from statetool.errors import StatetoolError
from statetool.kernels import decode_fixed, slots
from statetool.kernels import program as ir
from statetool.kernels.arrays import Bytes, Positions
from statetool.kernels.codes import (
    BAD_DECIMAL,
    BAD_NANOS,
    BAD_PAIRS,
    BAD_SIZE,
    NANOS,
    NESTED_KIND,
    NOT_NULL,
    NULL_INSIDE,
    RANGE,
    TRUNCATED,
    check,
    refuse,
)
from statetool.kernels.sizes import CLOCK_SIZES
from statetool.serializers.row import ROW_KINDS
from statetool.types import (
    BitmapType,
    DateType,
    DecimalType,
    ListType,
    LogicalType,
    MapType,
    Scalar,
    StructType,
    TimestampType,
    VariantType,
)

_NUMBERS: Final = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.int32, "f64": np.int64}
_MOST_MILLIS: Final = ((1 << 63) - 1) // 1000
_MOST_MICROS: Final = ((1 << 63) - 1) % 1000  # beyond _MOST_MILLIS
_NO_OWNER: Final = np.empty(0, dtype=np.int64)
_U64: Final = (1 << 64) - 1
_CLOCK_NANOS: Final[dict[ir.ClockUnit, int]] = {"millis": 1_000_000, "micros": 1_000}


@dataclass(frozen=True, slots=True)
class SlotRange:
    """Slots of one type: the position of each, the row or array around it (``base``, ``limit``), and whether it holds a value.

    ``left`` counts the bytes left for the variable parts of each row or array. ``owner`` is the array of each element, empty
    for rows, which have one slot each.
    """

    base: Positions
    limit: Positions
    slot: Positions
    valid: Bytes
    left: Positions
    owner: Positions

    def __len__(self) -> int:
        return len(self.slot)


class BinaryData(Leaves):
    """Decoding of binary rows, arrays and maps."""

    @abstractmethod
    def run(self, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        """Decode values of any program."""

    def binary_data(self, op: ir.BinaryData, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        """Decode rows, arrays or maps after their size."""
        base, limit = self.framed(pos, end)
        if op.slot.kind == "row":
            return self.binary_row(op.slot, logical, base, limit, row_kind=op.row_kind), limit
        return self.region(op.slot, logical, base, limit), limit

    def framed(self, pos: Positions, end: Positions) -> tuple[Positions, Positions]:
        """Return the starts and ends of bytes after i32 sizes."""
        sizes, after = np.empty_like(pos), np.empty_like(pos)
        check(decode_fixed.counted_sizes(self.data, pos, end, sizes, after), pos)
        return pos + 4, after

    def filling(self, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> pa.Array:
        """Decode values that must fill their frames."""
        array, after = self.run(op, logical, pos, end)
        refuse(after != end, BAD_SIZE, pos)
        return array

    def region(self, op: ir.Slot, logical: LogicalType, base: Positions, limit: Positions) -> pa.Array:
        """Decode rows, arrays or maps that fill the bytes from ``base`` to ``limit``."""
        match op.kind:
            case "row":
                return self.binary_row(op, logical, base, limit, row_kind=False)
            case "array":
                assert isinstance(logical, ListType)
                array, counts = self.elements("element", op.parts[0], logical.element, base, limit)
                return self.list_of(array, counts, logical, base)
            case "map":
                return self.binary_map(op, logical, base, limit)
        raise ValueError(f"{op.kind!r} is no row, array or map")

    def binary_row(
        self, op: ir.Slot, logical: LogicalType, base: Positions, limit: Positions, *, row_kind: bool
    ) -> pa.Array:
        assert isinstance(logical, StructType)
        n, fields = len(base), len(op.parts)
        null_size = (fields + 71) // 64 * 8
        kinds = np.empty(n, dtype=np.uint8)
        check(slots.row_heads(self.data, base, limit, null_size + 8 * fields, kinds), base)
        if not row_kind:
            refuse(kinds != 0, NESTED_KIND, base)
        valid = np.empty((fields, n), dtype=np.uint8)
        slots.row_nulls(self.data, base, valid)
        left = limit - base
        parts = []
        for i, (part, field) in enumerate(zip(op.parts, logical.fields, strict=False)):
            at = SlotRange(base, limit, base + (null_size + 8 * i), valid[i], left, _NO_OWNER)
            parts.append(self.named_slot(field.name, part, field.type, at))
        if row_kind:
            names = pa.array(ROW_KINDS)  # created late, because Arrow imports pandas for it
            parts.append(names.take(as_arrow(kinds)))
        return self.assemble(logical, parts, n)

    def assemble(
        self, logical: StructType, parts: list[pa.Array], n: int, valid: npt.NDArray[np.bool_] | None = None
    ) -> pa.Array:
        """Return structs of ``parts``, with the companions of timestamps; null if not ``valid``."""
        arrays: list[pa.Array] = []
        fields: list[pa.Field] = []
        for field, array in zip(logical.fields, parts, strict=True):
            arrays += member_arrays(array, field.type, self.options)
            fields += member_fields(field.name, field.type, self.options)
        kind = arrow_type(logical, self.options) if isinstance(logical, VariantType) else pa.struct(fields)
        nulls = None if valid is None else bitmap(valid)
        return pa.StructArray.from_buffers(kind, n, [nulls], children=arrays)

    def elements(
        self, step: str, op: ir.Slot, logical: LogicalType, base: Positions, limit: Positions
    ) -> tuple[pa.Array, Positions]:
        """Decode the elements of all arrays. Also return the number of elements of each."""
        size = ir.slot_size(op.kind)
        counts = np.empty_like(base)
        check(slots.array_counts(self.data, base, limit, size, counts), base)
        total = int(counts.sum())
        slot, bases, limits, owner = (np.empty(total, dtype=np.int64) for _ in range(4))
        valid = np.empty(total, dtype=np.uint8)
        slots.array_elements(self.data, base, limit, counts, size, slot, valid, bases, limits, owner)
        at = SlotRange(bases, limits, slot, valid, limit - base, owner)
        return self.named_slot(step, op, logical, at), counts

    def list_of(self, elements: pa.Array, counts: Positions, logical: LogicalType, pos: Positions) -> pa.Array:
        """Return lists of ``counts`` elements each."""
        offsets = as_arrow(offsets_of(counts, pos))
        return pa.ListArray.from_arrays(offsets, elements, type=arrow_type(logical, self.options))

    def binary_map(self, op: ir.Slot, logical: LogicalType, base: Positions, limit: Positions) -> pa.Array:
        assert isinstance(logical, MapType)
        middle = np.empty_like(base)
        check(slots.map_parts(self.data, base, limit, middle), base)
        keys, counts = self.elements("key", op.parts[0], logical.key, base + 4, middle)
        values, value_counts = self.elements("value", op.parts[1], logical.value, middle, limit)
        refuse(counts != value_counts, BAD_PAIRS, base)
        if keys.null_count:
            raise null_key_error().at(offset=int(base[0]))
        return self.map_of(keys, values, counts, logical, base)

    def map_of(
        self, keys: pa.Array, values: pa.Array, counts: Positions, logical: LogicalType, pos: Positions
    ) -> pa.Array:
        """Return maps of ``counts`` entries each."""
        kind = arrow_type(logical, self.options)
        entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
        offsets = pa.py_buffer(offsets_of(counts, pos))
        return pa.Array.from_buffers(kind, len(counts), [None, offsets], children=[entries])

    # ---- slots --------------------------------------------------------------------------------

    def named_slot(self, step: str, op: ir.Slot, logical: LogicalType, at: SlotRange) -> pa.Array:
        try:
            return self.slot(op, logical, at)
        except StatetoolError as error:
            raise error.inside(step) from None

    def slot(self, op: ir.Slot, logical: LogicalType, at: SlotRange) -> pa.Array:
        """Decode the values in slots of one type."""
        match op.kind:
            case "bool":
                flags = np.empty(len(at), dtype=np.uint8)
                check(slots.load_bools(self.data, at.slot, at.valid, flags), at.slot)
                return as_arrow(flags.view(np.bool_), mask=_mask(at.valid))
            case "i8" | "i16" | "i32" | "i64" | "f32" | "f64":
                return self.slot_numbers(op.kind, logical, at)
            case "time":
                return _from_buffer(pa.int64(), self.little("i32", at).astype(np.int64) * 1_000_000, at.valid)
            case "decimal":
                return self.slot_decimals(op.precision, logical, at)
            case "timestamp":
                if op.precision <= ir.COMPACT_FRACTION:
                    return self.instants(self.little("i64", at), None, at.valid, logical, at.slot)
                millis, nanos = np.empty_like(at.slot), np.empty_like(at.slot)
                check(slots.find_instants(self.data, at.base, at.limit, at.slot, at.valid, millis, nanos), at.slot)
                return self.instants(millis, nanos, at.valid, logical, at.slot)
            case "text" | "bytes":
                starts, sizes = self.parts(at, inline=True)
                array = self.ranges(starts, starts + sizes, at.valid)
                return self.utf8(array, starts, starts + sizes) if op.kind == "text" else array
            case "null":
                refuse(at.valid != 0, NOT_NULL, at.slot)
                return pa.nulls(len(at))
            case "raw" | "variant" | "row" | "array" | "map":
                return spread_values(self.outside(op, logical, at), at.valid)
        assert_never(op.kind)

    def outside(self, op: ir.Slot, logical: LogicalType, at: SlotRange) -> pa.Array:
        """Decode the values, without nulls, of slots that only hold a reference."""
        starts, sizes = self.parts(at, inline=False)
        present = np.flatnonzero(at.valid)
        first, last = starts[present], (starts + sizes)[present]
        if op.kind == "raw":
            return self.raw_values(op, logical, first, last)
        if op.kind != "variant":
            return self.region(op, logical, first, last)
        assert isinstance(logical, StructType)
        middle = np.empty_like(starts)
        check(slots.variant_parts(self.data, starts, sizes, at.valid, middle), at.slot)
        content, metadata = self.ranges(middle[present], last), self.ranges(first + 4, middle[present])
        return self.assemble(logical, [content, metadata], len(present))

    def raw_values(self, op: ir.Slot, logical: LogicalType, first: Positions, last: Positions) -> pa.Array:
        if op.inner is not None:
            array = self.filling(op.inner, logical, first, last)
            refuse(~is_valid(array), NULL_INSIDE, first)
            return array
        array = self.ranges(first, last)
        return self.bitmaps(array, first) if isinstance(logical, BitmapType) else array

    def parts(self, at: SlotRange, *, inline: bool) -> tuple[Positions, Positions]:
        """Return the starts and sizes of the bytes that slots refer to; no bytes for null."""
        starts, sizes = np.empty_like(at.slot), np.empty_like(at.slot)
        check(
            slots.find_parts(self.data, at.base, at.limit, at.slot, at.valid, at.owner, at.left, inline, starts, sizes),
            at.slot,
        )
        return starts, sizes

    def little(self, kind: str, at: SlotRange) -> npt.NDArray[Any]:
        """Load little-endian integers; 0 for null."""
        out = np.empty(len(at), dtype=_NUMBERS[kind])
        slots.load_little(self.data, at.slot, at.valid, out.itemsize, out)
        return out

    def slot_numbers(self, kind: str, logical: LogicalType, at: SlotRange) -> pa.Array:
        raw = self.little(kind, at)
        if logical == Scalar("day_interval"):
            return self.intervals(raw, at.valid, at.slot)
        shown = pa.date32() if isinstance(logical, DateType) else arrow_type(logical, self.options)
        return _from_buffer(shown, raw, at.valid)

    def intervals(self, millis: Positions, valid: Bytes, pos: Positions) -> pa.Array:
        """Return intervals of milliseconds, in microseconds."""
        refuse((millis > _MOST_MILLIS) | (millis < -_MOST_MILLIS), RANGE, pos)
        return _from_buffer(pa.duration("us"), millis * 1000, valid)

    def slot_decimals(self, precision: int, logical: LogicalType, at: SlotRange) -> pa.Array:
        if precision <= ir.COMPACT_DIGITS:
            return self.compact_decimals(self.little("i64", at), at.valid, logical, at.slot)
        starts, sizes = self.parts(at, inline=False)
        return self.wide_decimals(starts, sizes, at.valid, logical, at.slot)

    # ---- outside of rows ----------------------------------------------------------------------

    def sql_decimal(self, precision: int, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        valid = np.ones(len(pos), dtype=np.uint8)
        if precision <= ir.COMPACT_DIGITS:
            raw, after = self.load(8, pos, end)
            return self.compact_decimals(raw, valid, logical, pos), after
        starts, after = self.framed(pos, end)
        return self.wide_decimals(starts, after - starts, valid, logical, pos), after

    def sql_timestamp(self, precision: int, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        millis, after = self.load(8, pos, end)
        valid = np.ones(len(pos), dtype=np.uint8)
        if precision <= ir.COMPACT_FRACTION:
            return self.instants(millis, None, valid, logical, pos), after
        nanos, after = self.load(4, after, end)
        refuse((nanos < 0) | (nanos > 999_999), BAD_NANOS, pos)
        return self.instants(millis, nanos, valid, logical, pos), after

    def bytes_decimal(self, size: int | None, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        if size is None:
            starts, after = self.framed(pos, end)
        else:
            starts, after = pos, pos + size
            refuse(after > end, TRUNCATED, pos)
        valid = np.ones(len(pos), dtype=np.uint8)
        return self.wide_decimals(starts, after - starts, valid, logical, pos), after

    def clock(self, unit: ir.ClockUnit, pos: Positions, end: Positions) -> Column:
        """Return times of day, in nanoseconds."""
        raw, after = self.load(CLOCK_SIZES[unit], pos, end)
        nanos = _CLOCK_NANOS[unit]
        most = ((1 << 63) - 1) // nanos
        refuse((raw > most) | (raw < -most), RANGE, pos)
        return as_arrow(raw * nanos), after

    def epoch(self, raw: Positions, unit: ir.EpochUnit, logical: LogicalType, pos: Positions) -> pa.Array:
        """Return timestamps from numbers in one unit."""
        valid = np.ones(len(pos), dtype=np.uint8)
        match unit:
            case "ms":
                return self.instants(raw, None, valid, logical, pos)
            case "us":
                return _from_buffer(arrow_type(logical, self.options), raw, valid)
            case "ns":
                return self.instants(raw // 1_000_000, raw % 1_000_000, valid, logical, pos)
        assert_never(unit)

    # ---- shared by slots and values outside of rows ---------------------------------------------

    def compact_decimals(self, unscaled: Positions, valid: Bytes, logical: LogicalType, pos: Positions) -> pa.Array:
        assert isinstance(logical, DecimalType)
        limit = 10**logical.precision
        refuse((unscaled >= limit) | (unscaled <= -limit), BAD_DECIMAL, pos)
        return _from_buffer(arrow_type(logical, self.options), np.stack([unscaled, unscaled >> 63], axis=1), valid)

    def wide_decimals(
        self, starts: Positions, sizes: Positions, valid: Bytes, logical: LogicalType, pos: Positions
    ) -> pa.Array:
        assert isinstance(logical, DecimalType)
        words = np.empty((len(starts), 2), dtype=np.int64)
        limit = 10**logical.precision
        check(slots.read_decimals(self.data, starts, sizes, valid, limit >> 64, np.uint64(limit & _U64), words), pos)
        return _from_buffer(arrow_type(logical, self.options), words, valid)

    def instants(
        self, millis: Positions, nanos: Positions | None, valid: Bytes, logical: LogicalType, pos: Positions
    ) -> pa.Array:
        """Return timestamps from milliseconds and the nanoseconds within them."""
        assert isinstance(logical, TimestampType)
        n = len(pos)
        shown = arrow_type(logical, self.options)
        micros = np.zeros_like(millis) if nanos is None else nanos // 1000
        late = (millis > _MOST_MILLIS) | ((millis == _MOST_MILLIS) & (micros > _MOST_MICROS))
        early = (millis < -_MOST_MILLIS - 1) | ((millis == -_MOST_MILLIS - 1) & (micros < 999 - _MOST_MICROS))
        refuse(late | early, RANGE, pos)
        total = millis * 1000 + micros
        if nanos is None or self.options.nanos == "truncate":
            return _from_buffer(shown, total, valid)
        below = (nanos % 1000).astype(np.int32)
        if not keeps_nanos(logical, self.options):
            refuse(below != 0, NANOS, pos)
            return _from_buffer(shown, total, valid)
        parts = [_from_buffer(shown.field(0).type, total, valid), _from_buffer(pa.int32(), below, valid)]
        return pa.StructArray.from_buffers(shown, n, [bitmap(valid)], children=parts)


def _from_buffer(kind: pa.DataType, values: npt.NDArray[Any], valid: Bytes) -> pa.Array:
    return pa.Array.from_buffers(kind, len(valid), [bitmap(valid), pa.py_buffer(values)])


def _mask(valid: Bytes) -> npt.NDArray[np.bool_] | None:
    return None if valid.all() else valid == 0
