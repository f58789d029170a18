"""Run a program over many values at once: vectors of byte positions in, Arrow columns out.

``decode_column`` walks the program tree once for a batch; each operation is a few kernel calls over all values.
Errors carry the position of the failing value in ``data`` as their offset, which callers turn into a place in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.arrow.from_plain import coded_error, null_key_error, plain_to_arrow
from statetool.arrow.types import BIG_DECIMAL, BIG_INTEGER, arrow_type, column_arrays, column_fields
from statetool.errors import DecodeError, StatetoolError
from statetool.io.cursor import Cursor
from statetool.kernels import loads, skip
from statetool.kernels import program as ir
from statetool.kernels.codes import BAD_CHOICE, LONE_SURROGATE, NANOS, NOT_SKIPPABLE, OK, SUBCLASS
from statetool.serializers.basic import read_big_decimal, read_big_integer
from statetool.types import (
    ListType,
    LogicalType,
    MapType,
    StructType,
    TimestampType,
    TtlType,
)
from statetool.types.options import ReadOptions

Bytes = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_NO_PROGRAM: Final = np.empty(0, dtype=np.int64)
_POWERS: Final = np.array([10**k for k in range(20)], dtype=np.uint64)
_DTYPES: Final = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
_KINDS: Final = pa.array(["+I", "-U", "+U", "-D"])


def as_data(buffer: Any) -> Bytes:
    """Return a buffer as the read-only array that kernels are compiled for."""
    data = np.frombuffer(buffer, dtype=np.uint8)
    data.flags.writeable = False
    return data


def decode_column(
    op: ir.Op, logical: LogicalType, data: Bytes, pos: Positions, end: Positions, options: ReadOptions
) -> tuple[pa.Array, Positions]:
    """Decode one value at each position.

    Parameters
    ----------
    op, logical
        Program and logical type of the serializer.
    data
        uint8[:], read-only.
    pos, end
        int64[n]: first byte of each value, and first byte beyond its frame.

    Returns
    -------
    array, after
        A column of ``arrow_type(logical, options)``, and the first byte behind each value.

    Raises
    ------
    DecodeError
        ``where.offset`` is the position in ``data``, ``where.type_path`` the path inside the type.
    """
    return _Decoder(data, options).run(op, logical, pos, end)


def find_ends(op: ir.Op, decode: Callable[[Cursor], Any], data: Bytes, pos: Positions, end: Positions) -> Positions:
    """Return the position behind each value, by kernels or, where they cannot, with ``decode``."""
    prog = skip.compile_skip(op)
    after = np.empty_like(pos)
    if prog is not None:
        _check(skip.skip_many(data, prog, pos, end, after), pos)
        return after
    for i in range(len(pos)):
        c = Cursor(data.data, int(pos[i]), int(end[i]))
        decode(c)
        after[i] = c.pos
    return after


def _check(result: tuple[int, int], pos: Positions) -> None:
    code, index = result
    if code != OK:
        raise coded_error(int(code)).at(offset=int(pos[index]))


def _bitmap(valid: npt.NDArray[Any]) -> pa.Buffer | None:
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid.astype(np.bool_), bitorder="little"))


def _offsets(sizes: Positions, pos: Positions) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > 0x7FFFFFFF:
        raise DecodeError("more than 2 GiB in one column of a batch", hint="read with smaller batches").at(
            offset=int(pos[0])
        )
    return offsets.astype(np.int32)


def spread(array: pa.Array, valid: npt.NDArray[Any]) -> pa.Array:
    """Put the values of ``array`` where ``valid`` is set, nulls elsewhere."""
    if len(array) == len(valid):
        return array
    places = np.cumsum(valid.astype(np.int64)) - 1
    return array.take(pa.array(places, mask=~valid.astype(np.bool_)))


class _Decoder:
    """Decoding of one batch."""

    def __init__(self, data: Bytes, options: ReadOptions) -> None:
        self.data = data
        self.options = options

    def run(self, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        match op:
            case ir.Fixed(kind):
                return self.fixed(kind, pos, end)
            case ir.Text(nullable):
                return self.text(nullable, pos, end)
            case ir.Constant(size):
                after = self.load(size, pos, end)[1] if 0 < size <= 8 else pos
                return pa.nulls(len(pos)), after
            case ir.Struct(names, parts):
                return self.struct(names, parts, _struct(logical), pos, end)
            case ir.Flagged(value, null_flag, padding):
                return self.flagged(value, null_flag, padding, logical, pos, end)
            case ir.Repeated(element):
                return self.repeated(op, element, logical, pos, end)
            case ir.Pairs(key, value):
                return self.pairs(op, key, value, logical, pos, end)
            case ir.Pojo(names, parts):
                return self.pojo(names, parts, _struct(logical), pos, end)
            case ir.Masked():
                return self.masked(op, _struct(logical), pos, end)
            case ir.EitherOf(left, right):
                return self.either(left, right, _struct(logical), pos, end)
            case ir.Choice(names):
                return self.choice(names, pos, end)
            case ir.Flipped():
                raw, after = self.load(8, pos, end)
                return pa.array(raw ^ np.int64(-(1 << 63))), after
            case ir.Temporal(kind):
                return self.temporal(kind, logical, pos, end)
            case ir.BigInt():
                return self.big_integer(op, logical, pos, end)
            case ir.BigDec():
                return self.big_decimal(op, logical, pos, end)
            case ir.Counted(text):
                return self.counted(text, pos, end)
            case ir.Ttl(value):
                return self.ttl(value, logical, pos, end)
            case ir.Rest():
                return self.ranges(pos, end), end
            case ir.PerRecord(decode):
                return self.per_record(decode, logical, pos, end)
        raise NotImplementedError(type(op).__name__)

    # ---- primitives ---------------------------------------------------------------------------

    def load(self, size: int, pos: Positions, end: Positions) -> tuple[Positions, Positions]:
        out, after = np.empty_like(pos), np.empty_like(pos)
        _check(loads.load_fixed(self.data, pos, end, size, out, after), pos)
        return out, after

    def fixed(self, kind: str, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        if kind == "bool":
            flags, after = self.flags(pos, end)
            return pa.array(flags.astype(np.bool_)), after
        raw, after = self.load(skip.FIXED_SIZES[kind], pos, end)
        if kind == "f32":
            return pa.array(raw.astype(np.int32).view(np.float32)), after
        if kind == "f64":
            return pa.array(raw.view(np.float64)), after
        if kind == "char":
            return self.chars(raw, pos), after
        return pa.array(raw.astype(_DTYPES[kind])), after

    def chars(self, raw: Positions, pos: Positions) -> pa.Array:
        units = raw & 0xFFFF
        lone = np.flatnonzero((units >= 0xD800) & (units <= 0xDFFF))
        if len(lone):
            raise coded_error(LONE_SURROGATE).at(offset=int(pos[lone[0]]))
        return pa.array([chr(u) for u in units.tolist()], type=pa.string())

    def flags(self, pos: Positions, end: Positions) -> tuple[npt.NDArray[np.uint8], Positions]:
        out, after = np.empty(len(pos), dtype=np.uint8), np.empty_like(pos)
        _check(loads.load_flags(self.data, pos, end, out, after), pos)
        return out, after

    def text(self, nullable: bool, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        n = len(pos)
        sizes, starts, units, after = (np.empty(n, dtype=np.int64) for _ in range(4))
        valid = np.empty(n, dtype=np.uint8)
        _check(
            loads.text_sizes(self.data, pos, end, int(nullable), sizes, starts, units, valid, after),
            pos,
        )
        offsets = _offsets(sizes, pos)
        out = np.empty(offsets[-1], dtype=np.uint8)
        loads.text_fill(self.data, starts, units, end, offsets, out)
        buffers = [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out)]
        return pa.Array.from_buffers(pa.string(), n, buffers), after

    def ranges(self, starts: Positions, ends: Positions) -> pa.Array:
        """Return the bytes from each start to each end."""
        offsets = _offsets(ends - starts, starts)
        out = np.empty(offsets[-1], dtype=np.uint8)
        loads.copy_bytes(self.data, starts, offsets, out)
        return pa.Array.from_buffers(pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(out)])

    def counted(self, text: bool, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        sizes, after = np.empty_like(pos), np.empty_like(pos)
        _check(loads.counted_sizes(self.data, pos, end, sizes, after), pos)
        array = self.ranges(pos + 4, after)
        if text:
            try:
                array = array.cast(pa.string())
            except pa.ArrowInvalid as e:
                raise DecodeError(f"not UTF-8: {e}").at(offset=int(pos[0])) from e
        return array, after

    def choice(self, names: tuple[str, ...], pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        raw, after = self.load(4, pos, end)
        bad = np.flatnonzero((raw < 0) | (raw >= len(names)))
        if len(bad):
            raise coded_error(BAD_CHOICE).at(offset=int(pos[bad[0]]))
        return pa.array(names, type=pa.string()).take(pa.array(raw)), after

    def temporal(self, kind: str, logical: LogicalType, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        n = len(pos)
        number = loads.TEMPORAL_KINDS.index(kind)
        out, after = np.empty_like(pos), np.empty_like(pos)
        below, valid = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
        size = loads.TEMPORAL_SIZES[number]
        _check(loads.load_temporal(self.data, pos, end, number, size, out, below, valid, after), pos)
        bitmap = _bitmap(valid)
        if kind == "date":
            days = pa.py_buffer(out.astype(np.int32))
            return pa.Array.from_buffers(pa.date32(), n, [bitmap, days]), after
        micros = arrow_type(logical, self.options)
        if not isinstance(logical, TimestampType) or logical.unit != "ns":
            return pa.Array.from_buffers(micros, n, [bitmap, pa.py_buffer(out)]), after
        if self.options.nanos == "companion":
            times = pa.Array.from_buffers(micros.field(0).type, n, [bitmap, pa.py_buffer(out)])
            nanos = pa.Array.from_buffers(pa.int32(), n, [bitmap, pa.py_buffer(below)])
            return pa.StructArray.from_buffers(micros, n, [bitmap], children=[times, nanos]), after
        if self.options.nanos == "error" and below.any():
            raise coded_error(NANOS).at(offset=int(pos[np.flatnonzero(below)[0]]))
        return pa.Array.from_buffers(micros, n, [bitmap, pa.py_buffer(out)]), after

    # ---- big numbers --------------------------------------------------------------------------

    def big_numbers(self, pos: Positions, end: Positions) -> tuple[Positions, Any, Any, Positions]:
        n = len(pos)
        out, after = np.zeros(n, dtype=np.int64), np.empty_like(pos)
        valid, wide = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.uint8)
        _check(loads.big_integers(self.data, pos, end, out, valid, wide, after), pos)
        return out, valid, wide, after

    def big_integer(
        self, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        out, valid, wide, after = self.big_numbers(pos, end)
        if self.options.decimals == "string" or wide.any():
            return self.per_record(read_big_integer, logical, pos, end)
        words = np.stack([out, out >> 63], axis=1)
        return pa.Array.from_buffers(BIG_INTEGER, len(pos), [_bitmap(valid), pa.py_buffer(words)]), after

    def big_decimal(
        self, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        out, valid, wide, after = self.big_numbers(pos, end)
        scales = np.zeros(len(pos), dtype=np.int64)
        some = np.flatnonzero(valid)
        scales[some], after[some] = self.load(4, after[some], end[some])
        words = np.zeros((len(pos), 2), dtype=np.int64)
        low, high = np.zeros(len(pos), dtype=np.int64), np.zeros(len(pos), dtype=np.int64)
        loads.scale_decimals(out, scales, 18, _POWERS, low, high, valid, wide)
        if self.options.decimals == "string" or wide.any():
            return self.per_record(read_big_decimal, logical, pos, end)
        words[:, 0], words[:, 1] = low, high
        return pa.Array.from_buffers(BIG_DECIMAL, len(pos), [_bitmap(valid), pa.py_buffer(words)]), after

    # ---- composites ---------------------------------------------------------------------------

    def part(
        self, step: str, op: ir.Op, logical: LogicalType, pos: Positions, end: Positions, valid: Mask | None
    ) -> tuple[pa.Array, Positions]:
        """Decode a part of those values for which ``valid`` is set; the others are null and take no bytes."""
        try:
            if valid is None or valid.all():
                return self.run(op, logical, pos, end)
            some = np.flatnonzero(valid)
            array, moved = self.run(op, logical, pos[some], end[some])
        except StatetoolError as error:
            raise error.inside(step) from None
        after = pos.copy()
        after[some] = moved
        return spread(array, valid), after

    def assemble(self, logical: StructType, parts: list[pa.Array], valid: npt.NDArray[Any] | None, n: int) -> pa.Array:
        arrays: list[pa.Array] = []
        fields: list[pa.Field] = []
        for field, array in zip(logical.fields, parts, strict=True):
            arrays += column_arrays(array, field.type, self.options)
            fields += column_fields(field.name, field.type, self.options)
        kind = pa.struct(fields)
        bitmap = None if valid is None else _bitmap(valid)
        return pa.StructArray.from_buffers(kind, n, [bitmap], children=arrays)

    def struct(
        self, names: tuple[str, ...], ops: tuple[ir.Op, ...], logical: StructType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        parts = []
        after = pos
        for name, op, field in zip(names, ops, logical.fields, strict=True):
            array, after = self.part(name, op, field.type, after, end, None)
            parts.append(array)
        return self.assemble(logical, parts, None, len(pos)), after

    def flagged(
        self, value: ir.Op, null_flag: int, padding: int, logical: LogicalType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        flags, after = self.flags(pos, end)
        valid = flags != null_flag
        array, after = self.part("value", value, logical, after, end, valid)
        if padding:
            after = np.where(valid, after, after + padding)
            over = np.flatnonzero(after > end)
            if len(over):
                raise DecodeError("the padding of a null goes beyond the end of its frame").at(offset=int(pos[over[0]]))
        if len(array) and not valid.any() and array.null_count != len(array):
            array = pa.nulls(len(valid), array.type)
        return array, after

    def masked(self, op: ir.Masked, logical: StructType, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        first = 2 * op.row_kind
        size = (len(op.parts) + first + 7) // 8
        bits = np.zeros((len(pos), size * 8), dtype=np.uint8)
        after = pos
        for k in range(size):
            raw, after = self.load(1, after, end)
            bits[:, 8 * k : 8 * k + 8] = np.unpackbits(raw.astype(np.uint8)).reshape(-1, 8)
        if bits[:, len(op.parts) + first :].any():
            raise DecodeError("unused bits of a bit mask are set").at(offset=int(pos[0]))
        parts = []
        for i, (name, part) in enumerate(zip(op.names, op.parts, strict=True)):
            array, after = self.part(name, part, logical.fields[i].type, after, end, bits[:, first + i] == 0)
            parts.append(array)
        if op.row_kind:
            parts.append(_KINDS.take(pa.array(bits[:, 0].astype(np.int64) + 2 * bits[:, 1])))
        return self.assemble(logical, parts, None, len(pos)), after

    def pojo(
        self, names: tuple[str, ...], ops: tuple[ir.Op, ...], logical: StructType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        flags, after = self.load(1, pos, end)
        bad = np.flatnonzero((flags != 1) & (flags != 2))
        if len(bad):
            raise coded_error(SUBCLASS).at(offset=int(pos[bad[0]]))
        valid = flags == 2
        some = np.flatnonzero(valid)
        moved, frame = after[some], end[some]
        parts = []
        for name, op, field in zip(names, ops, logical.fields, strict=True):
            null, moved = self.flags(moved, frame)
            array, moved = self.part(name, op, field.type, moved, frame, null == 0)
            parts.append(array)
        after = after.copy()
        after[some] = moved
        return spread(self.assemble(logical, parts, None, len(some)), valid), after

    def either(
        self, left: ir.Op, right: ir.Op, logical: StructType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        flags, after = self.flags(pos, end)
        is_left = flags == 1
        lefts, after_left = self.part("left", left, logical.fields[0].type, after, end, is_left)
        rights, after_right = self.part("right", right, logical.fields[1].type, after, end, ~is_left)
        lefts, rights = _null_where(lefts, ~is_left), _null_where(rights, is_left)
        after = np.where(is_left, after_left, after_right)
        return self.assemble(logical, [lefts, rights], None, len(pos)), after

    def repeated(
        self, op: ir.Op, element: ir.Op, logical: LogicalType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        assert isinstance(logical, ListType)
        counts, starts, _, ends, after = self.positions(op, element, None, pos, end)
        array, _ = self.part("element", element, logical.element, starts, ends, None)
        kept = self.kept(element, starts)
        if kept is not None:
            array, counts = array.filter(pa.array(kept)), _count_kept(kept, counts)
        return self.list_of(array, counts, logical, pos), after

    def list_of(self, elements: pa.Array, counts: Positions, logical: LogicalType, pos: Positions) -> pa.Array:
        """Return lists of ``counts`` elements each."""
        offsets = pa.array(_offsets(counts, pos))
        return pa.ListArray.from_arrays(offsets, elements, type=arrow_type(logical, self.options))

    def pairs(
        self, op: ir.Op, key: ir.Op, value: ir.Op, logical: LogicalType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        assert isinstance(logical, MapType)
        counts, starts, value_starts, ends, after = self.positions(op, key, value, pos, end)
        keys, _ = self.part("key", key, logical.key, starts, ends, None)
        values, _ = self.part("value", value, logical.value, value_starts, ends, None)
        kept = self.kept(value, value_starts)
        if kept is not None:
            keys, values, counts = keys.filter(pa.array(kept)), values.filter(pa.array(kept)), _count_kept(kept, counts)
        return self.map_of(keys, values, counts, logical, pos), after

    def map_of(
        self, keys: pa.Array, values: pa.Array, counts: Positions, logical: LogicalType, pos: Positions
    ) -> pa.Array:
        """Return maps of ``counts`` entries each; null keys have no place in a map."""
        if keys.null_count:
            raise null_key_error().at(offset=int(pos[0]) if len(pos) else 0)
        kind = arrow_type(logical, self.options)
        entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
        offsets = pa.py_buffer(_offsets(counts, pos))
        return pa.Array.from_buffers(kind, len(counts), [None, offsets], children=[entries])

    def positions(
        self, op: ir.Op, first: ir.Op, second: ir.Op | None, pos: Positions, end: Positions
    ) -> tuple[Positions, Positions, Positions, Positions, Positions]:
        """Find where elements (or keys and values) start: counts, starts, second starts, frame ends, behind all."""
        sizes = [skip.fixed_size(first), 0 if second is None else skip.fixed_size(second)]
        prog = skip.compile_skip(first)
        other = _NO_PROGRAM if second is None else skip.compile_skip(second)
        if prog is None or other is None:
            raise coded_error(NOT_SKIPPABLE).at(offset=int(pos[0]) if len(pos) else 0)
        counts, body = np.empty_like(pos), np.empty_like(pos)
        at_least = sum(s if s is not None else 1 for s in sizes)
        _check(skip.read_counts(self.data, pos, end, at_least, counts, body), pos)
        total = int(counts.sum())
        if None not in sizes:
            stride = at_least
            within = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
            starts = np.repeat(body, counts) + within * stride
            return counts, starts, starts + (sizes[0] or 0), np.repeat(end, counts), body + counts * stride
        starts, seconds, after = (np.empty(m, dtype=np.int64) for m in (total, total, len(pos)))
        _check(skip.element_positions(self.data, prog, other, body, end, counts, starts, seconds, after), pos)
        return counts, starts, seconds, np.repeat(end, counts), after

    # ---- time to live -------------------------------------------------------------------------

    def ttl(self, value: ir.Op, logical: LogicalType, pos: Positions, end: Positions) -> tuple[pa.Array, Positions]:
        assert isinstance(logical, TtlType)
        access, body = self.load(8, pos, end)
        array, after = self.part("value", value, logical.value, body, end, None)
        if self.options.ttl == "raw":
            kind = arrow_type(logical, self.options)
            times = pa.Array.from_buffers(kind.field(0).type, len(pos), [None, pa.py_buffer(access * 1000)])
            parts = [times, *column_arrays(array, logical.value, self.options)]
            return pa.StructArray.from_buffers(kind, len(pos), [None], children=parts), after
        if self.options.ttl == "hide_expired":
            array = _null_where(array, self.expired(access))
        return array, after

    def expired(self, access: Positions) -> Mask:
        """Tell which last accesses are too long ago."""
        assert self.options.ttl_ms is not None
        assert self.options.now_ms is not None
        return access <= self.options.now_ms - self.options.ttl_ms

    def kept(self, op: ir.Op, starts: Positions) -> Mask | None:
        """Tell which elements (already decoded) stay when expired ones are hidden; ``None`` for all."""
        if self.options.ttl != "hide_expired":
            return None
        flag = None
        if isinstance(op, ir.Flagged):
            flag, op = op.null_flag, op.value
        if not isinstance(op, ir.Ttl):
            return None
        there = np.ones(len(starts), dtype=np.bool_) if flag is None else self.data[starts] != flag
        at = starts[there] + (0 if flag is None else 1)
        access, _ = self.load(8, at, at + 8)
        kept = np.ones(len(starts), dtype=np.bool_)
        kept[there] = ~self.expired(access)
        return kept

    # ---- per record ---------------------------------------------------------------------------

    def per_record(
        self, decode: Callable[[Cursor], Any], logical: LogicalType, pos: Positions, end: Positions
    ) -> tuple[pa.Array, Positions]:
        values = []
        after = np.empty_like(pos)
        view = self.data.data
        for i in range(len(pos)):
            c = Cursor(view, int(pos[i]), int(end[i]))
            values.append(decode(c))
            after[i] = c.pos
        try:
            return plain_to_arrow(values, logical, self.options), after
        except StatetoolError as error:
            raise error.at(offset=int(pos[0]) if len(pos) else 0) from None


def _struct(logical: LogicalType) -> StructType:
    assert isinstance(logical, StructType)
    return logical


def _null_where(array: pa.Array, mask: Mask) -> pa.Array:
    if not mask.any():
        return array
    return array.take(pa.array(np.arange(len(array)), mask=mask))


def _count_kept(kept: Mask, counts: Positions) -> Positions:
    running = np.concatenate([[0], np.cumsum(kept)])
    ends = np.cumsum(counts)
    kept_counts: Positions = running[ends] - running[ends - counts]
    return kept_counts


__all__ = ["Bytes", "Positions", "as_data", "decode_column", "find_ends", "spread"]
