"""Columns of keyed state values: one value per entry, comma-joined lists, maps with one entry each.

If the end of a part cannot be found, values cannot be decoded. They are returned as the exact bytes of their frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from statetool.columns.arrays import spread_values
from statetool.columns.decode import decode_column
from statetool.errors import DecodeError, StatetoolError, UndescribedClassError
from statetool.formats.state_meta import KEY_VALUE_V2, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.core.codes import BAD_SEPARATOR, OK, TRUNCATED, coded_error
from statetool.kernels.entries.layout import SEPARATOR
from statetool.kernels.graphs.rewrite import split_values
from statetool.kernels.values import elements
from statetool.kernels.values import program as ir
from statetool.kernels.values.decode_fixed import first_unfilled, load_flags
from statetool.kernels.values.skip_program import compile_skip
from statetool.serializers.core.base import Serializer
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.pyflink.serializer import PythonSerializer, python_part
from statetool.serializers.runtime import unwrap
from statetool.serializers.value_ends import find_ends, undescribed_error
from statetool.types import ListType, LogicalType, MapType, PresentType, TtlType
from statetool.types.options import ReadOptions

_ACCESS_BYTES: Final = 8


class StateLayout:
    """The layout of a keyed state's values.

    ``element`` is the serializer of a list's elements or a map's values, or of the whole value for other kinds.
    ``user_key`` is that of a map's keys. ``framed_bytes``: the value is shown as its exact bytes.

    A value state of a Python job is stored as a list of one byte array, whose bytes are those of the array: its ``kind`` is ``value``.
    Its list states are lists of byte arrays, described by ``packed``. Each holds values one after another, and ``item`` decodes one.
    """

    def __init__(self, meta: StateMetaInfo) -> None:
        self.name = meta.name
        self.kind = meta.kind
        self.serializers = tuple(meta.serializers.values())
        self.user_key: Serializer | None = None
        value = unwrap(meta.value)
        if meta.backend_type == KEY_VALUE_V2:
            self.element = value
            self.user_key = meta.serializers.get("USER_KEY_SERIALIZER")
        elif self.kind == "list":
            self.element = self._nested(meta, value, 1)[0]
        elif self.kind == "map":
            self.user_key, self.element = self._nested(meta, value, 2)
        else:
            self.element = value
        self.framed_bytes = unreadable(self.element, tail=self.kind != "list")
        if self.framed_bytes:
            self.element = OpaqueSerializer(b"", self.element.type_name)
        self.item: Serializer = self.element
        self.packed: PythonSerializer | None = None
        self.declared = python_part(self.element)
        if self.kind == "list" and self.declared is not None:
            if not self.declared.many:
                self.kind = "value"
            elif self.declared is self.element:
                self.packed, self.item, self.element = self.declared, self.declared.item, self.declared.single()
        if self.user_key is not None and unreadable(self.user_key, tail=True):
            self.user_key = OpaqueSerializer(b"", self.user_key.type_name)

    @staticmethod
    def _nested(meta: StateMetaInfo, value: Serializer, n: int) -> tuple[Any, ...]:
        parts = tuple(unwrap(s) for _, s in value.children())
        if len(parts) != n:
            if isinstance(value, OpaqueSerializer) or value.needs_frame:
                return (value,) * n
            raise DecodeError(f"a {meta.kind} state whose serializer is {value.type_name}").at(state=meta.name)
        return parts

    @property
    def logical(self) -> LogicalType:
        """Type of the state's column in the keyed-state table."""
        if self.kind == "list" and not self.framed_bytes:
            return ListType(self.item.logical)
        if self.kind == "map" and self.user_key is not None:
            return MapType(self.user_key.logical, self.element.logical)
        return self.element.logical

    @property
    def holds_null(self) -> bool:
        """Whether a key can have the state with a null value, which differs from an absent state.

        Only Scala's ``None`` is such a null. Flink treats Java's null as absent: setting a value state to null removes it, and a null with
        a time to live, or a null accumulator, is read as an absent state.
        """
        element = self.element
        if isinstance(element.logical, TtlType):
            element = dict(element.children())["value"]
        return self.kind not in ("list", "map") and element.none_is_value

    def column_type(self, options: ReadOptions) -> LogicalType:
        """Return the type of the state's column in tables with one row per key."""
        shows_access = options.ttl == "raw" and isinstance(self.logical, TtlType)
        return PresentType(self.logical) if self.holds_null and not shows_access else self.logical


def unreadable(serializer: Serializer, *, tail: bool) -> bool:
    """Return True if the end of some part cannot be found, and the part is not the last of its frame."""
    if serializer.needs_frame and not serializer.children():
        return not tail
    op = serializer.program()
    return _program_unreadable(op, tail) or any(
        unreadable(s, tail=tail and i == len(serializer.children()) - 1)
        for i, (_, s) in enumerate(serializer.children())
    )


def _program_unreadable(op: ir.Op, tail: bool) -> bool:
    if isinstance(op, ir.Rest):
        return not tail
    if isinstance(op, ir.Repeated | ir.Pairs):
        # The ends of elements are found by kernels only.
        return any(compile_skip(child) is None for child in ir.children(op))
    parts = ir.children(op)
    return any(_program_unreadable(part, tail and i == len(parts) - 1) for i, part in enumerate(parts))


def decode_framed(serializer: Serializer, data: Bytes, pos: Int64s, end: Int64s, options: ReadOptions) -> pa.Array:
    """Decode values that must fill their frames exactly."""
    try:
        array, after = decode_column(serializer.program(), serializer.logical, data, pos, end, options)
    except (DecodeError, UndescribedClassError) as error:
        raise undescribed_error(error, serializer.decode, data, pos, end) from None
    check_filled(after, end)
    return array


def check_filled(after: Int64s, end: Int64s) -> None:
    """Raise an error unless every value fills its frame."""
    i = int(first_unfilled(after, end))
    if i >= 0:
        raise DecodeError(
            f"{int(end[i] - after[i])} bytes follow a value",
            hint="the bytes do not belong to the serializer that the header names",
        ).at(offset=int(after[i]))


def split_joined(element: Serializer, data: Bytes, pos: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the element counts of comma-joined lists, and the starts and ends of all elements."""
    program = element.program()
    if isinstance(program, ir.Graph) and (parts := split_values(data, program, pos, end)) is not None:
        return parts
    prog = compile_skip(program)
    if prog is None:
        return _split_joined_slowly(element.skip, data, pos, end)
    counts = np.empty_like(pos)
    code, index = elements.joined_counts(data, prog, pos, end, counts)
    if code != OK:
        try:
            _split_joined_slowly(element.skip, data, pos[index : index + 1], end[index : index + 1])
        except UndescribedClassError as error:
            raise error from None
        except StatetoolError:
            pass
        raise coded_error(int(code)).at(offset=int(pos[index]))
    total = int(counts.sum())
    starts, ends = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    elements.joined_positions(data, prog, pos, end, counts, starts, ends)
    return counts, starts, ends


def split_list(shape: StateLayout, data: Bytes, pos: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the items of lists, which ``shape.item`` decodes, in the form of :func:`split_joined`."""
    if shape.packed is None:
        return split_joined(shape.element, data, pos, end)
    arrays, first, last = split_joined(shape.packed.array, data, pos, end)
    starts, ends, owner = _split_packed(shape.item, data, first + 4, last)
    counts = np.zeros(len(pos), dtype=np.int64)
    np.add.at(counts, np.repeat(np.arange(len(pos)), arrays)[owner], 1)
    return counts, starts, ends


def _split_packed(item: Serializer, data: Bytes, pos: Int64s, end: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return the starts and ends of values that follow one another up to ``end``, and the index of the run of each."""
    at, unsplit = pos.copy(), np.arange(len(pos))
    starts: list[Int64s] = []
    ends: list[Int64s] = []
    owners: list[Int64s] = []
    while True:
        unsplit = unsplit[at[unsplit] < end[unsplit]]
        if not len(unsplit):
            break
        after = find_ends(item.program(), item.decode, data, at[unsplit], end[unsplit])
        stuck = np.flatnonzero(after == at[unsplit])
        if len(stuck):
            raise DecodeError(f"a {item.type_name} that takes no bytes").at(offset=int(at[unsplit[stuck[0]]]))
        starts.append(at[unsplit])
        ends.append(after)
        owners.append(unsplit)
        at[unsplit] = after
    if not owners:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    return np.concatenate(starts)[order], np.concatenate(ends)[order], owner[order]


def _split_joined_slowly(
    skip_value: Callable[[Cursor], None], data: Bytes, pos: Int64s, end: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    counts, starts, ends = [], [], []
    view = data.data
    for first, stop in zip(pos.tolist(), end.tolist(), strict=True):
        c = Cursor(view, first, stop)
        n = 0
        while True:
            starts.append(c.pos)
            skip_value(c)
            ends.append(c.pos)
            n += 1
            if c.left == 0:
                break
            if c.u1() != SEPARATOR:
                raise coded_error(BAD_SEPARATOR).at(offset=c.pos - 1)
        counts.append(n)
    return tuple(np.array(x, dtype=np.int64) for x in (counts, starts, ends))  # type: ignore[return-value]


def salvage(decode: Callable[[slice], pa.Array], n: int, kind: pa.DataType) -> tuple[pa.Array, list[int]]:
    """Decode ``n`` values. Values that cannot be decoded are null, and their indexes are returned too.

    ``decode`` is called with ever smaller slices around values for which it raises :class:`StatetoolError`.
    """
    arrays, bad = [], []
    pending = [(0, n)]
    while pending:
        start, stop = pending.pop()
        try:
            arrays.append(decode(slice(start, stop)))
        except StatetoolError:
            if stop - start == 1:
                arrays.append(pa.nulls(1, kind))
                bad.append(start)
            else:
                middle = (start + stop) // 2
                pending += [(middle, stop), (start, middle)]
    return pa.concat_arrays(arrays), bad


def map_values(element: Serializer, data: Bytes, pos: Int64s, end: Int64s, options: ReadOptions) -> pa.Array:
    """Decode the values of map entries: a bool (is null), then the value."""
    flags, start = np.empty(len(pos), dtype=np.uint8), np.empty_like(pos)
    code, index = load_flags(data, pos, end, flags, start)
    if code == TRUNCATED:
        raise DecodeError("a map entry without its null flag").at(offset=int(pos[index]))
    if code != OK:
        raise DecodeError(f"the null flag of a map entry is {data[pos[index]]}").at(offset=int(pos[index]))
    if not flags.any():
        return decode_framed(element, data, start, end, options)
    if element.none_is_value:
        raise DecodeError(
            f"a null in the place of a {element.type_name}, whose None is an object",
            hint="pass on_error='keep_raw' to see its bytes",
        ).at(offset=int(pos[int(flags.argmax())]))
    present = np.flatnonzero(flags == 0)
    array = decode_framed(element, data, start[present], end[present], options)
    return spread_values(array, flags == 0)


def broadcast_entries(
    key: Serializer, value: Serializer, data: Bytes, pos: Int64s, end: Int64s, options: ReadOptions
) -> tuple[Int64s, pa.Array, pa.Array]:
    """Decode broadcast states, each an i4 count, keys and values: return their counts, all keys and all values."""
    programs = key.program(), value.program()
    if all(compile_skip(program) is not None for program in programs):
        maps, after = decode_column(ir.Pairs(*programs), MapType(key.logical, value.logical), data, pos, end, options)
        check_filled(after, end)
        offsets = np.asarray(maps.offsets, dtype=np.int64)
        return np.diff(offsets), maps.keys, maps.items
    # Kernels do not find the ends of these values.
    counts: list[int] = []
    bounds: list[tuple[int, int, int]] = []
    for first, stop in zip(pos.tolist(), end.tolist(), strict=True):
        c = Cursor(data.data, first, stop)
        counts.append(c.count("entries"))
        for _ in range(counts[-1]):
            start = c.pos
            key.skip(c)
            middle = c.pos
            value.skip(c)
            bounds.append((start, middle, c.pos))
        c.expect_end("broadcast state")
    starts, middles, stops = np.array(bounds, dtype=np.int64).reshape(-1, 3).T
    keys = decode_framed(key, data, starts, middles, options)
    return np.array(counts, dtype=np.int64), keys, decode_framed(value, data, middles, stops, options)


def unexpired_map_values(
    element: Serializer, data: Bytes, pos: Int64s, end: Int64s, options: ReadOptions
) -> npt.NDArray[np.bool_] | None:
    """Return which map values have not expired, ``None`` if all are shown."""
    if not _hides(element, options):
        return None
    kept = np.ones(len(pos), dtype=np.bool_)
    timed = np.flatnonzero(end - pos > _ACCESS_BYTES)
    timed = timed[data[pos[timed]] == 0]
    kept[timed] = _fresh(data, pos[timed] + 1, options)
    return kept


def unexpired_elements(
    element: Serializer, data: Bytes, pos: Int64s, end: Int64s, options: ReadOptions
) -> npt.NDArray[np.bool_] | None:
    """Return which list elements (or whole values) have not expired, ``None`` if all are shown."""
    if not _hides(element, options):
        return None
    kept = np.ones(len(pos), dtype=np.bool_)
    timed = np.flatnonzero(end - pos >= _ACCESS_BYTES)
    kept[timed] = _fresh(data, pos[timed], options)
    return kept


def _hides(element: Serializer, options: ReadOptions) -> bool:
    return options.ttl == "hide_expired" and isinstance(element.program(), ir.Ttl)


def _fresh(data: Bytes, pos: Int64s, options: ReadOptions) -> npt.NDArray[np.bool_]:
    assert options.ttl_ms is not None
    assert options.now_ms is not None
    return np.asarray(big_endian(data, pos) > options.now_ms - options.ttl_ms)


def big_endian(data: Bytes, pos: Int64s) -> Int64s:
    """Read the eight bytes at each position as a signed number."""
    raw = data[pos[:, None] + np.arange(8)]
    return np.ascontiguousarray(raw).view(">i8").reshape(-1).astype(np.int64)
