"""Columns of values without parts: numbers, strings, bytes, dates.

``pos`` and ``end`` are int64[n]: the first byte of each value and the first byte after its frame. The positions returned with a column are
int64[n], the first byte after each value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_arrow, bitmap, offsets_of
from statetool.columns.batch import Batch, Column
from statetool.columns.from_plain import plain_to_arrow
from statetool.columns.types import arrow_type, keeps_nanos
from statetool.errors import DecodeError
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.core.codes import BAD_CHOICE, BAD_CONSTANT, LONE_SURROGATE, NANOS, check, refuse
from statetool.kernels.values import decode_fixed as fixed_kernels
from statetool.kernels.values import decode_temporal as temporal_kernels
from statetool.kernels.values import decode_text as text_kernels
from statetool.kernels.values import program as ir
from statetool.kernels.values.sizes import FIXED_SIZES, TEMPORAL_KINDS, TEMPORAL_SIZES
from statetool.types import BitmapType, LogicalType, TimestampType

_DTYPES: Final = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def load_ints(b: Batch, size: int, pos: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Load signed integers of 1, 2, 4 or 8 bytes."""
    out, after = np.empty_like(pos), np.empty_like(pos)
    check(fixed_kernels.load_fixed(b.data, pos, end, size, out, after), pos)
    return out, after


def load_flags(b: Batch, pos: Int64s, end: Int64s) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Load bytes that are 0 or 1."""
    out, after = np.empty(len(pos), dtype=np.uint8), np.empty_like(pos)
    check(fixed_kernels.load_flags(b.data, pos, end, out, after), pos)
    return out, after


def check_constant(b: Batch, size: int, byte: int, code: int, pos: Int64s, end: Int64s) -> Int64s:
    """Check that bytes are constant and return the positions after them."""
    after = np.empty_like(pos)
    check(fixed_kernels.check_bytes(b.data, pos, end, size, byte, code, after), pos)
    return after


def load_frames(b: Batch, pos: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Return the starts and ends of bytes after i32 sizes."""
    sizes, after = np.empty_like(pos), np.empty_like(pos)
    check(fixed_kernels.counted_sizes(b.data, pos, end, sizes, after), pos)
    return pos + 4, after


def decode_nulls(b: Batch, size: int, byte: int, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    """Decode values that are always null, of a type that has values in other versions."""
    return pa.nulls(len(pos), arrow_type(logical, b.options)), check_constant(b, size, byte, BAD_CONSTANT, pos, end)


def decode_fixed(b: Batch, kind: ir.FixedKind, pos: Int64s, end: Int64s) -> Column:
    if kind == "bool":
        flags, after = load_flags(b, pos, end)
        return as_arrow(flags.view(np.bool_)), after
    raw, after = load_ints(b, FIXED_SIZES[kind], pos, end)
    if kind == "f32":
        return as_arrow(raw.astype(np.int32).view(np.float32)), after
    if kind == "f64":
        return as_arrow(raw.view(np.float64)), after
    if kind == "char":
        return _decode_chars(b, raw & 0xFFFF, pos), after
    return as_arrow(raw.astype(_DTYPES[kind], copy=False)), after


def _decode_chars(b: Batch, units: Int64s, pos: Int64s) -> pa.Array:
    refuse((units >= 0xD800) & (units <= 0xDFFF), LONE_SURROGATE, pos)
    different, which = np.unique(units, return_inverse=True)
    return pa.array([chr(u) for u in different.tolist()], type=pa.string()).take(as_arrow(which.reshape(-1)))


def decode_text(b: Batch, nullable: bool, pos: Int64s, end: Int64s) -> Column:
    n = len(pos)
    sizes, starts, units, after = (np.empty(n, dtype=np.int64) for _ in range(4))
    valid = np.empty(n, dtype=np.uint8)
    check(text_kernels.text_sizes(b.data, pos, end, int(nullable), sizes, starts, units, valid, after), pos)
    offsets = offsets_of(sizes, pos)
    out = np.empty(offsets[-1], dtype=np.uint8)
    text_kernels.text_fill(b.data, starts, units, after, offsets, out)
    return pa.Array.from_buffers(pa.string(), n, [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out)]), after


def copy_ranges(b: Batch, starts: Int64s, ends: Int64s, valid: npt.NDArray[Any] | None = None) -> pa.Array:
    """Return the bytes from each start to each end. Values that are not valid are null and take no bytes."""
    offsets = offsets_of(ends - starts, starts)
    out = np.empty(offsets[-1], dtype=np.uint8)
    fixed_kernels.bytes_fill(b.data, starts, offsets, out)
    nulls = None if valid is None else bitmap(valid)
    return pa.Array.from_buffers(pa.binary(), len(starts), [nulls, pa.py_buffer(offsets), pa.py_buffer(out)])


def decode_counted(b: Batch, text: bool, pos: Int64s, end: Int64s) -> Column:
    sizes, after = np.empty_like(pos), np.empty_like(pos)
    check(fixed_kernels.counted_sizes(b.data, pos, end, sizes, after), pos)
    array = copy_ranges(b, pos + 4, after)
    return as_utf8(b, array, pos + 4, after) if text else array, after


def as_utf8(b: Batch, array: pa.Array, starts: Int64s, ends: Int64s) -> pa.Array:
    """Convert bytes to strings. ``starts`` and ``ends`` are their positions, for errors.

    Raises
    ------
    DecodeError
        The bytes are not UTF-8.
    """
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        for start, stop in zip(starts.tolist(), ends.tolist(), strict=True):
            try:
                b.data[start:stop].tobytes().decode("utf-8")
            except UnicodeDecodeError as e:
                raise DecodeError(f"not UTF-8: {e.reason}").at(offset=start + e.start) from e
        raise


def decode_choice(b: Batch, names: tuple[str, ...], pos: Int64s, end: Int64s) -> Column:
    raw, after = load_ints(b, 4, pos, end)
    refuse((raw < 0) | (raw >= len(names)), BAD_CHOICE, pos)
    return pa.array(names, type=pa.string()).take(as_arrow(raw)), after


def decode_temporal(b: Batch, kind: ir.TemporalKind, logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    n = len(pos)
    number = TEMPORAL_KINDS.index(kind)
    size = TEMPORAL_SIZES[kind]
    out, after = np.empty_like(pos), np.empty_like(pos)
    below, valid = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
    check(temporal_kernels.load_temporal(b.data, pos, end, number, size, out, below, valid, after), pos)
    nulls = bitmap(valid)
    if kind == "date":
        days = pa.py_buffer(out.astype(np.int32))
        return pa.Array.from_buffers(pa.date32(), n, [nulls, days]), after
    shown = arrow_type(logical, b.options)
    if isinstance(logical, TimestampType) and logical.unit == "ns":
        if keeps_nanos(logical, b.options):
            times = pa.Array.from_buffers(shown.field(0).type, n, [nulls, pa.py_buffer(out)])
            nanos = pa.Array.from_buffers(pa.int32(), n, [nulls, pa.py_buffer(below)])
            return pa.StructArray.from_buffers(shown, n, [nulls], children=[times, nanos]), after
        if b.options.nanos != "truncate":
            refuse(below != 0, NANOS, pos)
    return pa.Array.from_buffers(shown, n, [nulls, pa.py_buffer(out)]), after


def decode_bitmaps(b: Batch, raw: pa.Array, pos: Int64s) -> pa.Array:
    """Return the ints of bitmaps. ``pos`` has their positions, for errors."""
    return plain_to_arrow(raw.to_pylist(), BitmapType(), b.options, offsets=pos.tolist())


def decode_each(b: Batch, decode: Callable[[Cursor], Any], logical: LogicalType, pos: Int64s, end: Int64s) -> Column:
    """Decode with plain Python, value by value."""
    values = []
    after = np.empty_like(pos)
    view = b.data.data
    for i, (start, stop) in enumerate(zip(pos.tolist(), end.tolist(), strict=True)):
        c = Cursor(view, start, stop)
        values.append(decode(c))
        after[i] = c.pos
    return plain_to_arrow(values, logical, b.options, offsets=pos.tolist()), after
