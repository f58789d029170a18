"""Columns of leaf values: numbers, strings, bytes, dates and big numbers, from byte positions.

The base of :mod:`statetool.columns.decode`. ``pos`` and ``end`` are int64[n]: the first byte of each value and the first byte after its
frame. The positions returned with a column are int64[n], the first byte after each value.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.from_plain import decimal_error, plain_to_arrow, scale_decimal
from statetool.columns.types import BIG_DECIMAL, BIG_INTEGER, SCALED_DECIMAL, arrow_type, keeps_nanos
from statetool.errors import DecodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.kernels import decode_fixed, decode_numbers, decode_temporal, decode_text
from statetool.kernels import program as ir
from statetool.kernels.arrays import Bytes, Positions
from statetool.kernels.codes import BAD_CHOICE, BAD_CONSTANT, LONE_SURROGATE, NANOS, check, refuse
from statetool.kernels.sizes import FIXED_SIZES, TEMPORAL_KINDS, TEMPORAL_SIZES
from statetool.serializers.basic import read_big_decimal, read_big_integer
from statetool.types import BitmapType, LogicalType, TimestampType
from statetool.types.options import ReadOptions

Column = tuple[pa.Array, Positions]

_POWERS: Final = np.array([10**k for k in range(20)], dtype=np.uint64)
_DTYPES: Final = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
_DECIMAL_DIGITS: Final = 10**38


def bitmap(valid: npt.NDArray[Any]) -> pa.Buffer | None:
    """Return the Arrow validity bitmap, ``None`` if all are valid."""
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid.astype(np.bool_), bitorder="little"))


def offsets_of(sizes: Positions, pos: Positions) -> npt.NDArray[np.int32]:
    """Return Arrow offsets int32[n + 1] for values of ``sizes`` int64[n]. ``pos`` is used for errors."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > 0x7FFFFFFF:
        raise DecodeError("more than 2 GiB in one column of a batch", hint="read with smaller batches").at(
            offset=int(pos[0])
        )
    return offsets.astype(np.int32)


def spread_values(array: pa.Array, valid: npt.NDArray[Any]) -> pa.Array:
    """Put the values of ``array`` at the positions set in ``valid``, and nulls elsewhere."""
    if len(array) == len(valid):
        return array
    places = np.cumsum(valid.astype(np.int64)) - 1
    return array.take(as_arrow(places, mask=~valid.astype(np.bool_)))


class Leaves:
    """Decoding of values without parts in one batch."""

    def __init__(self, data: Bytes, options: ReadOptions) -> None:
        self.data = data
        self.options = options

    def load(self, size: int, pos: Positions, end: Positions) -> tuple[Positions, Positions]:
        """Load signed integers of 1, 2, 4 or 8 bytes."""
        out, after = np.empty_like(pos), np.empty_like(pos)
        check(decode_fixed.load_fixed(self.data, pos, end, size, out, after), pos)
        return out, after

    def flags(self, pos: Positions, end: Positions) -> tuple[npt.NDArray[np.uint8], Positions]:
        """Load bytes that are 0 or 1."""
        out, after = np.empty(len(pos), dtype=np.uint8), np.empty_like(pos)
        check(decode_fixed.load_flags(self.data, pos, end, out, after), pos)
        return out, after

    def constant(self, size: int, byte: int, code: int, pos: Positions, end: Positions) -> Positions:
        """Check that bytes are constant and return the positions after them."""
        after = np.empty_like(pos)
        check(decode_fixed.check_bytes(self.data, pos, end, size, byte, code, after), pos)
        return after

    def nothing(self, size: int, byte: int, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        """Decode values that are always null, of a type that has values in other versions."""
        return pa.nulls(len(pos), arrow_type(logical, self.options)), self.constant(size, byte, BAD_CONSTANT, pos, end)

    def fixed(self, kind: ir.FixedKind, pos: Positions, end: Positions) -> Column:
        if kind == "bool":
            flags, after = self.flags(pos, end)
            return as_arrow(flags.view(np.bool_)), after
        raw, after = self.load(FIXED_SIZES[kind], pos, end)
        if kind == "f32":
            return as_arrow(raw.astype(np.int32).view(np.float32)), after
        if kind == "f64":
            return as_arrow(raw.view(np.float64)), after
        if kind == "char":
            return self.chars(raw & 0xFFFF, pos), after
        return as_arrow(raw.astype(_DTYPES[kind], copy=False)), after

    def chars(self, units: Positions, pos: Positions) -> pa.Array:
        refuse((units >= 0xD800) & (units <= 0xDFFF), LONE_SURROGATE, pos)
        different, which = np.unique(units, return_inverse=True)
        return pa.array([chr(u) for u in different.tolist()], type=pa.string()).take(as_arrow(which.reshape(-1)))

    def text(self, nullable: bool, pos: Positions, end: Positions) -> Column:
        n = len(pos)
        sizes, starts, units, after = (np.empty(n, dtype=np.int64) for _ in range(4))
        valid = np.empty(n, dtype=np.uint8)
        check(decode_text.text_sizes(self.data, pos, end, int(nullable), sizes, starts, units, valid, after), pos)
        offsets = offsets_of(sizes, pos)
        out = np.empty(offsets[-1], dtype=np.uint8)
        decode_text.text_fill(self.data, starts, units, after, offsets, out)
        return pa.Array.from_buffers(pa.string(), n, [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out)]), after

    def ranges(self, starts: Positions, ends: Positions, valid: npt.NDArray[Any] | None = None) -> pa.Array:
        """Return the bytes from each start to each end. Values that are not valid are null and take no bytes."""
        offsets = offsets_of(ends - starts, starts)
        out = np.empty(offsets[-1], dtype=np.uint8)
        decode_fixed.bytes_fill(self.data, starts, offsets, out)
        nulls = None if valid is None else bitmap(valid)
        return pa.Array.from_buffers(pa.binary(), len(starts), [nulls, pa.py_buffer(offsets), pa.py_buffer(out)])

    def counted(self, text: bool, pos: Positions, end: Positions) -> Column:
        sizes, after = np.empty_like(pos), np.empty_like(pos)
        check(decode_fixed.counted_sizes(self.data, pos, end, sizes, after), pos)
        array = self.ranges(pos + 4, after)
        return self.utf8(array, pos + 4, after) if text else array, after

    def utf8(self, array: pa.Array, starts: Positions, ends: Positions) -> pa.Array:
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
                    self.data[start:stop].tobytes().decode("utf-8")
                except UnicodeDecodeError as e:
                    raise DecodeError(f"not UTF-8: {e.reason}").at(offset=start + e.start) from e
            raise

    def choice(self, names: tuple[str, ...], pos: Positions, end: Positions) -> Column:
        raw, after = self.load(4, pos, end)
        refuse((raw < 0) | (raw >= len(names)), BAD_CHOICE, pos)
        return pa.array(names, type=pa.string()).take(as_arrow(raw)), after

    def temporal(self, kind: ir.TemporalKind, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        n = len(pos)
        number = TEMPORAL_KINDS.index(kind)
        size = TEMPORAL_SIZES[kind]
        out, after = np.empty_like(pos), np.empty_like(pos)
        below, valid = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
        check(decode_temporal.load_temporal(self.data, pos, end, number, size, out, below, valid, after), pos)
        nulls = bitmap(valid)
        if kind == "date":
            days = pa.py_buffer(out.astype(np.int32))
            return pa.Array.from_buffers(pa.date32(), n, [nulls, days]), after
        shown = arrow_type(logical, self.options)
        if isinstance(logical, TimestampType) and logical.unit == "ns":
            if keeps_nanos(logical, self.options):
                times = pa.Array.from_buffers(shown.field(0).type, n, [nulls, pa.py_buffer(out)])
                nanos = pa.Array.from_buffers(pa.int32(), n, [nulls, pa.py_buffer(below)])
                return pa.StructArray.from_buffers(shown, n, [nulls], children=[times, nanos]), after
            if self.options.nanos != "truncate":
                refuse(below != 0, NANOS, pos)
        return pa.Array.from_buffers(shown, n, [nulls, pa.py_buffer(out)]), after

    def bitmaps(self, raw: pa.Array, pos: Positions) -> pa.Array:
        """Return the ints of bitmaps. ``pos`` has their positions, for errors."""
        return plain_to_arrow(raw.to_pylist(), BitmapType(), self.options, offsets=pos.tolist())

    # ---- big numbers --------------------------------------------------------------------------

    def big_integer(self, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        if self.options.decimals == "string":
            return self.per_record(read_big_integer, logical, pos, end)
        out, valid, wide, after = self._big_numbers(pos, end)
        words = np.stack([out, out >> 63], axis=1)
        self._fill_wide(words, wide, pos, end, _whole_words)
        return pa.Array.from_buffers(BIG_INTEGER, len(pos), [bitmap(valid), pa.py_buffer(words)]), after

    def big_decimal(self, logical: LogicalType, pos: Positions, end: Positions) -> Column:
        if self.options.decimals == "string":
            return self.per_record(read_big_decimal, logical, pos, end)
        n = len(pos)
        out, valid, wide, after = self._big_numbers(pos, end)
        scales, low, high = (np.zeros(n, dtype=np.int64) for _ in range(3))
        present = np.flatnonzero(valid)
        scales[present], after[present] = self.load(4, after[present], end[present])
        decode_numbers.scale_decimals(out, scales, 18, _POWERS, low, high, valid, wide)
        words = np.stack([low, high], axis=1)
        self._fill_wide(words, wide, pos, end, _scale_words)
        nulls = bitmap(valid)
        decimals = pa.Array.from_buffers(BIG_DECIMAL, n, [nulls, pa.py_buffer(words)])
        if self.options.decimals == "plain":
            return decimals, after
        own = pa.Array.from_buffers(pa.int32(), n, [nulls, pa.py_buffer(scales.astype(np.int32))])
        return pa.StructArray.from_buffers(SCALED_DECIMAL, n, [nulls], children=[decimals, own]), after

    def _big_numbers(self, pos: Positions, end: Positions) -> tuple[Positions, Any, Any, Positions]:
        n = len(pos)
        out, after = np.zeros(n, dtype=np.int64), np.empty_like(pos)
        valid, wide = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
        check(decode_numbers.big_integers(self.data, pos, end, out, valid, wide, after), pos)
        return out, valid, wide, after

    def _fill_wide(
        self, words: Positions, wide: Bytes, pos: Positions, end: Positions, read: Callable[[Cursor], bytes]
    ) -> None:
        """Decode the values too wide for kernels one by one into ``words`` int64[n, 2]."""
        for i in np.flatnonzero(wide).tolist():
            c = Cursor(self.data.data, int(pos[i]), int(end[i]))
            try:
                words[i] = np.frombuffer(read(c), dtype=np.int64)
            except StatetoolError as error:
                raise error.at(offset=int(pos[i])) from error.__cause__

    # ---- per record ---------------------------------------------------------------------------

    def per_record(
        self, decode: Callable[[Cursor], Any], logical: LogicalType, pos: Positions, end: Positions
    ) -> Column:
        """Decode with plain Python, value by value."""
        values = []
        after = np.empty_like(pos)
        view = self.data.data
        for i, (start, stop) in enumerate(zip(pos.tolist(), end.tolist(), strict=True)):
            c = Cursor(view, start, stop)
            values.append(decode(c))
            after[i] = c.pos
        return plain_to_arrow(values, logical, self.options, offsets=pos.tolist()), after


def _whole_words(c: Cursor) -> bytes:
    value = read_big_integer(c)
    assert value is not None
    if abs(value) >= _DECIMAL_DIGITS:
        raise decimal_error("BigInteger", "38 digits")
    return value.to_bytes(16, "little", signed=True)


def _scale_words(c: Cursor) -> bytes:
    value = read_big_decimal(c)
    assert value is not None
    scaled: Decimal = scale_decimal(value)
    return int(scaled.scaleb(18)).to_bytes(16, "little", signed=True)
