"""Binary rows, arrays and maps of the table runtime as Arrow columns: the kernels of :mod:`statetool.kernels.values.slots`, slot by slot.

A field of rows, or the elements of arrays, are decoded for all values at once: the positions and null flags of their slots are known
in advance. Must agree with :mod:`statetool.serializers.sql.binary_format`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import assert_never

from statetool.columns.arrays import as_arrow, from_buffer, is_valid, spread_values
from statetool.columns.batch import Batch, Column
from statetool.columns.families.assembly import assemble, build_lists, build_maps
from statetool.columns.families.leaves import as_utf8, copy_ranges, decode_bitmaps, load_frames
from statetool.columns.families.sql import build_compact_decimals, build_instants, build_intervals, build_wide_decimals
from statetool.columns.from_plain import null_key_error
from statetool.columns.types import arrow_type
from statetool.errors import StatetoolError
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import BAD_PAIRS, BAD_SIZE, NESTED_KIND, NOT_NULL, NULL_INSIDE, check, refuse
from statetool.kernels.values import program as ir
from statetool.kernels.values import slots
from statetool.serializers.typeutils.row import ROW_KINDS
from statetool.types import BitmapType, DateType, ListType, LogicalType, MapType, Scalar, StructType

_NUMBERS: Final = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.int32, "f64": np.int64}
#: Values that fill bytes, instead of a slot.
RegionKind = Literal["row", "array", "map"]
_NO_OWNER: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SlotRange:
    """Slots of one type: the position of each, the row or array around it (``base``, ``limit``), and whether it holds a value.

    ``left`` counts the bytes left for the variable parts of each row or array. ``owner`` is the array of each element, empty
    for rows, which have one slot each.
    """

    base: Int64s
    limit: Int64s
    slot: Int64s
    valid: Bytes
    left: Int64s
    owner: Int64s

    def __len__(self) -> int:
        return len(self.slot)


def decode_binary_data(b: Batch, op: ir.BinaryData, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    """Decode rows, arrays or maps after their size."""
    base, limit = load_frames(b, pos, end)
    match op.slot.kind:
        case "row":
            return _decode_row(b, op.slot, logical, base, limit, row_kind=op.row_kind), limit
        case "array" | "map" as kind:
            return _decode_region(b, op.slot, kind, logical, base, limit), limit
    raise ValueError(f"{op.slot.kind!r} is not a row, an array or a map")


def decode_filling(b: Batch, op: ir.Op, logical: LogicalType, pos: Int64s, end: Int64s) -> pa.Array:
    """Decode values that must fill their frames."""
    array, after = b.run(op, logical, pos, end)
    refuse(after != end, BAD_SIZE, pos)
    return array


def _decode_region(
    b: Batch, op: ir.Slot, kind: RegionKind, logical: LogicalType, base: Int64s, limit: Int64s
) -> pa.Array:
    """Decode rows, arrays or maps that fill the bytes from ``base`` to ``limit``."""
    match kind:
        case "row":
            return _decode_row(b, op, logical, base, limit, row_kind=False)
        case "array":
            assert isinstance(logical, ListType)
            array, counts = _decode_elements(b, "element", op.parts[0], logical.element, base, limit)
            return build_lists(b, array, counts, logical, base)
        case "map":
            return _decode_map(b, op, logical, base, limit)
    assert_never(kind)


def _decode_row(
    b: Batch, op: ir.Slot, logical: LogicalType, base: Int64s, limit: Int64s, *, row_kind: bool
) -> pa.Array:
    assert isinstance(logical, StructType)
    n, fields = len(base), len(op.parts)
    null_size = (fields + 71) // 64 * 8
    kinds = np.empty(n, dtype=np.uint8)
    check(slots.row_heads(b.data, base, limit, null_size + 8 * fields, kinds), base)
    if not row_kind:
        refuse(kinds != 0, NESTED_KIND, base)
    valid = np.empty((fields, n), dtype=np.uint8)
    slots.row_nulls(b.data, base, valid)
    left = limit - base
    parts = []
    for i, (part, field) in enumerate(zip(op.parts, logical.fields, strict=False)):
        at = SlotRange(base, limit, base + (null_size + 8 * i), valid[i], left, _NO_OWNER)
        parts.append(_decode_named_slot(b, field.name, part, field.type, at))
    if row_kind:
        names = pa.array(ROW_KINDS)  # created late, because Arrow imports pandas for it
        parts.append(names.take(as_arrow(kinds)))
    return assemble(b, logical, parts, n)


def _decode_elements(
    b: Batch, step: str, op: ir.Slot, logical: LogicalType, base: Int64s, limit: Int64s
) -> tuple[pa.Array, Int64s]:
    """Decode the elements of all arrays. Also return the number of elements of each."""
    size = ir.slot_size(op.kind)
    counts = np.empty_like(base)
    check(slots.array_counts(b.data, base, limit, size, counts), base)
    total = int(counts.sum())
    slot, bases, limits, owner = (np.empty(total, dtype=np.int64) for _ in range(4))
    valid = np.empty(total, dtype=np.uint8)
    slots.array_elements(b.data, base, limit, counts, size, slot, valid, bases, limits, owner)
    at = SlotRange(bases, limits, slot, valid, limit - base, owner)
    return _decode_named_slot(b, step, op, logical, at), counts


def _decode_map(b: Batch, op: ir.Slot, logical: LogicalType, base: Int64s, limit: Int64s) -> pa.Array:
    assert isinstance(logical, MapType)
    middle = np.empty_like(base)
    check(slots.map_parts(b.data, base, limit, middle), base)
    keys, counts = _decode_elements(b, "key", op.parts[0], logical.key, base + 4, middle)
    values, value_counts = _decode_elements(b, "value", op.parts[1], logical.value, middle, limit)
    refuse(counts != value_counts, BAD_PAIRS, base)
    if keys.null_count:
        raise null_key_error().at(offset=int(base[0]))
    return build_maps(b, keys, values, counts, logical, base)


def _decode_named_slot(b: Batch, step: str, op: ir.Slot, logical: LogicalType, at: SlotRange) -> pa.Array:
    try:
        return _decode_slot(b, op, logical, at)
    except StatetoolError as error:
        raise error.inside(step) from None


def _decode_slot(b: Batch, op: ir.Slot, logical: LogicalType, at: SlotRange) -> pa.Array:
    """Decode the values in slots of one type."""
    match op.kind:
        case "bool":
            flags = np.empty(len(at), dtype=np.uint8)
            check(slots.load_bools(b.data, at.slot, at.valid, flags), at.slot)
            return as_arrow(flags.view(np.bool_), mask=_mask(at.valid))
        case "i8" | "i16" | "i32" | "i64" | "f32" | "f64":
            return _decode_numbers(b, op.kind, logical, at)
        case "time":
            return from_buffer(pa.int64(), _load_little(b, "i32", at).astype(np.int64) * 1_000_000, at.valid)
        case "decimal":
            return _decode_decimals(b, op.precision, logical, at)
        case "timestamp":
            if op.precision <= ir.COMPACT_FRACTION:
                return build_instants(b, _load_little(b, "i64", at), None, at.valid, logical, at.slot)
            millis, nanos = np.empty_like(at.slot), np.empty_like(at.slot)
            check(slots.find_instants(b.data, at.base, at.limit, at.slot, at.valid, millis, nanos), at.slot)
            return build_instants(b, millis, nanos, at.valid, logical, at.slot)
        case "text" | "bytes":
            starts, sizes = _find_parts(b, at, inline=True)
            array = copy_ranges(b, starts, starts + sizes, at.valid)
            return as_utf8(b, array, starts, starts + sizes) if op.kind == "text" else array
        case "null":
            refuse(at.valid != 0, NOT_NULL, at.slot)
            return pa.nulls(len(at))
        case "raw":
            first, last = _find_present_parts(b, at)
            return spread_values(_decode_raw(b, op, logical, first, last), at.valid)
        case "variant":
            return spread_values(_decode_variants(b, logical, at), at.valid)
        case "row" | "array" | "map" as kind:
            first, last = _find_present_parts(b, at)
            return spread_values(_decode_region(b, op, kind, logical, first, last), at.valid)
    assert_never(op.kind)


def _decode_variants(b: Batch, logical: LogicalType, at: SlotRange) -> pa.Array:
    assert isinstance(logical, StructType)
    starts, sizes = _find_parts(b, at, inline=False)
    present = np.flatnonzero(at.valid)
    first, last = starts[present], (starts + sizes)[present]
    middle = np.empty_like(starts)
    check(slots.variant_parts(b.data, starts, sizes, at.valid, middle), at.slot)
    content, metadata = copy_ranges(b, middle[present], last), copy_ranges(b, first + 4, middle[present])
    return assemble(b, logical, [content, metadata], len(present))


def _decode_raw(b: Batch, op: ir.Slot, logical: LogicalType, first: Int64s, last: Int64s) -> pa.Array:
    if op.inner is not None:
        array = decode_filling(b, op.inner, logical, first, last)
        refuse(~is_valid(array), NULL_INSIDE, first)
        return array
    array = copy_ranges(b, first, last)
    return decode_bitmaps(b, array, first) if isinstance(logical, BitmapType) else array


def _find_parts(b: Batch, at: SlotRange, *, inline: bool) -> tuple[Int64s, Int64s]:
    """Return the starts and sizes of the bytes that slots refer to; no bytes for null."""
    starts, sizes = np.empty_like(at.slot), np.empty_like(at.slot)
    check(
        slots.find_parts(b.data, at.base, at.limit, at.slot, at.valid, at.owner, at.left, inline, starts, sizes),
        at.slot,
    )
    return starts, sizes


def _find_present_parts(b: Batch, at: SlotRange) -> tuple[Int64s, Int64s]:
    """Return the starts and ends of the bytes that slots refer to, without nulls."""
    starts, sizes = _find_parts(b, at, inline=False)
    present = np.flatnonzero(at.valid)
    return starts[present], (starts + sizes)[present]


def _load_little(b: Batch, kind: str, at: SlotRange) -> npt.NDArray[Any]:
    """Load little-endian integers; 0 for null."""
    out = np.empty(len(at), dtype=_NUMBERS[kind])
    slots.load_little(b.data, at.slot, at.valid, out.itemsize, out)
    return out


def _decode_numbers(b: Batch, kind: str, logical: LogicalType, at: SlotRange) -> pa.Array:
    raw = _load_little(b, kind, at)
    if logical == Scalar("day_interval"):
        return build_intervals(b, raw, at.valid, at.slot)
    shown = pa.date32() if isinstance(logical, DateType) else arrow_type(logical, b.options)
    return from_buffer(shown, raw, at.valid)


def _decode_decimals(b: Batch, precision: int, logical: LogicalType, at: SlotRange) -> pa.Array:
    if precision <= ir.COMPACT_DIGITS:
        return build_compact_decimals(b, _load_little(b, "i64", at), at.valid, logical, at.slot)
    starts, sizes = _find_parts(b, at, inline=False)
    return build_wide_decimals(b, starts, sizes, at.valid, logical, at.slot)


def _mask(valid: Bytes) -> npt.NDArray[np.bool_] | None:
    return None if valid.all() else valid == 0
