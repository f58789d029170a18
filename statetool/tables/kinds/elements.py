"""Rows of operator state: list and union (``value``), broadcast (``key``, ``value``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.batches import row_runs
from statetool.columns.decode import as_data
from statetool.columns.types import arrow_type
from statetool.columns.values import broadcast_entries, decode_framed, salvage, unexpired_elements, unreadable
from statetool.errors import DecodeError, FormatError, StatetoolError
from statetool.formats.compression import read_chunks
from statetool.formats.keyed.entries import Region, locate
from statetool.formats.keyed.naming import named_state
from statetool.formats.operator_state import read_header_before
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.serializers.core.base import Serializer, blame
from statetool.serializers.core.opaque import OpaqueSerializer
from statetool.serializers.value_ends import undescribed_error
from statetool.tables.kinds.keyed import UNDECODED, UNDECODED_TYPE, Columns, Undecoded, raw_column
from statetool.tables.kinds.kind import ElementKind
from statetool.tables.splits import Split, TableRows
from statetool.types import LogicalType, Scalar
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions

_WINDOW_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementSplit(Split):
    """Some elements of one operator state of one subtask. ``starts`` and ``ends`` are their bounds in the stream.

    The first ``header_bytes`` of the stream hold its header. ``descriptions`` are headers (bytes and offset) that describe subclasses
    that some subtasks do not know.
    """

    kind: ElementKind
    stream: Stream
    header_bytes: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    subtask: int
    types: TypeContext
    descriptions: tuple[tuple[bytes, int], ...]

    @property
    def file(self) -> str:
        return self.stream.file

    @property
    def size_bytes(self) -> int:
        return sum(self.ends) - sum(self.starts)

    def rows(self, *, reads_on: bool) -> Iterator[TableRows]:
        for n, columns in element_rows(self):
            shown = self.kind.rows(columns, self.spec.options)
            if self.spec.subtask_column:
                shown = [*shown, ("subtask", Scalar("int32"), as_arrow(np.full(n, self.subtask, dtype=np.int32)))]
            yield n, shown


def element_serializer(meta: StateMetaInfo) -> Serializer:
    """Return the serializer of a list element or broadcast value. It reads bytes if the end of an element cannot be determined."""
    if unreadable(meta.value, tail=meta.kind != "broadcast"):
        return OpaqueSerializer(b"", meta.value.type_name)
    return meta.value


def element_columns(meta: StateMetaInfo) -> list[tuple[str, LogicalType]]:
    """Return the columns of an operator state's table."""
    columns = [("value", element_serializer(meta).logical)]
    if meta.kind == "broadcast":
        columns.insert(0, ("key", meta.serializers["KEY_SERIALIZER"].logical))
    return columns


def element_rows(split: ElementSplit) -> Iterator[tuple[int, Columns]]:
    """Read the rows of one split in a task, a few megabytes of elements at a time."""
    (name,) = split.spec.states
    try:
        with split.stream.open() as f:
            stored = _StoredElements(f, split)
            table = _ElementTable(stored.state(name), split.spec.options)
            for window in stored.windows():
                yield table.rows(window)
    except StatetoolError as error:
        raise error.at(file=split.stream.file, operator=split.spec.operator, state=name) from None


def raw_elements(split: ElementSplit) -> Iterator[bytes]:
    """Read the bytes of the elements of one split, a few megabytes at a time."""
    with split.stream.open() as f:
        for window in _StoredElements(f, split).windows():
            for first, stop in zip(window.pos.tolist(), window.end.tolist(), strict=True):
                yield bytes(window.raw[first:stop])


@dataclass(frozen=True, slots=True)
class _Window:
    """The bytes of a run of elements, the bounds of each element in them, and their place in a file."""

    raw: memoryview | bytes
    pos: Int64s
    end: Int64s
    place: Region
    file: str


class _StoredElements:
    """The elements of a split in its open stream, behind the stream's header."""

    def __init__(self, f: OpenStream, split: ElementSplit) -> None:
        self._file = f
        self._split = split
        first = f.read_at(0, split.header_bytes)
        self._header = read_header_before(first, split.types, base=split.stream.start, others=split.descriptions)

    def state(self, name: str) -> StateMetaInfo:
        meta = next((s for s in self._header.states if s.name == name), None)
        if meta is None:
            raise FormatError(f"the header does not know operator state {name!r}")
        return meta

    def windows(self) -> Iterator[_Window]:
        """Read contiguous runs of elements of about ``_WINDOW_BYTES``. A larger element forms a separate run."""
        starts, ends = (np.array(bounds, dtype=np.int64) for bounds in (self._split.starts, self._split.ends))
        edges = [0, *(np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist(), len(starts)]
        for first, last in pairwise(edges):
            for run in row_runs(ends[first:last] - starts[first:last], max_bytes=_WINDOW_BYTES):
                yield self._window(starts[first:last][run], ends[first:last][run])

    def _window(self, starts: Int64s, ends: Int64s) -> _Window:
        base = int(starts[0])
        region = self._file.read_at(base, int(ends[-1]) - base)
        place, file = Region(0, self._split.stream.start + base, None, self._header.compressed), self._split.stream.file
        if not self._header.compressed:
            return _Window(region, starts - base, ends - base, place, file)
        raw, start_of = _uncompress(region, base=place.offset)
        try:
            pos = np.array([start_of[p - base] for p in starts.tolist()], dtype=np.int64)
        except KeyError as e:
            raise FormatError(f"offset {base + e.args[0]} is not the start of a compressed chunk") from None
        return _Window(raw, pos, np.append(pos[1:], len(raw)), place, file)


def _uncompress(region: memoryview, *, base: int) -> tuple[bytes, dict[int, int]]:
    """Return the uncompressed bytes of all chunks, and the start of each chunk in these bytes by its offset in the region."""
    start_of, chunks, size = {}, [], 0
    for chunk in read_chunks(region, base=base):
        start_of[chunk.start] = size
        chunks.append(chunk.data)
        size += len(chunk.data)
    return b"".join(chunks), start_of


class _ElementTable:
    """Rows of one operator state, with the user's names for fields."""

    def __init__(self, meta: StateMetaInfo, options: ReadOptions) -> None:
        for path, names in options.columns:
            meta = named_state(meta, path, names)
        self._meta = meta
        self._options = options
        self._value = element_serializer(meta)

    def rows(self, window: _Window) -> tuple[int, Columns]:
        """Return the number of rows and the columns of a run of elements."""
        decode = self._broadcast if self._meta.kind == "broadcast" else self._elements
        try:
            return decode(as_data(window.raw), window.pos, window.end)
        except StatetoolError as error:
            blame(error, *self._meta.serializers.values())
            raise locate(error, (window.place,), window.file) from None

    def _elements(self, data: Bytes, pos: Int64s, end: Int64s) -> tuple[int, Columns]:
        element, options = self._value, self._options

        def decode(run: slice) -> pa.Array:
            return decode_framed(element, data, pos[run], end[run], options)

        if options.on_error != "keep_raw":
            columns: Columns = [("value", element.logical, decode(slice(0, len(pos))))]
        else:
            values, bad = salvage(decode, len(pos), arrow_type(element.logical, options))
            undecoded: Undecoded = {i: {self._meta.name: bytes(data[pos[i] : end[i]])} for i in bad}
            columns = [("value", element.logical, values), (UNDECODED, UNDECODED_TYPE, raw_column(undecoded, len(pos)))]
        kept = unexpired_elements(element, data, pos, end, options)
        if kept is not None:
            columns = [(name, logical, array.filter(as_arrow(kept))) for name, logical, array in columns]
        return len(columns[0][2]), columns

    def _broadcast(self, data: Bytes, pos: Int64s, end: Int64s) -> tuple[int, Columns]:
        """Decode an i4 count n, then n keys and values. If that fails, ``keep_raw`` returns one row with the bytes of all entries."""
        if len(pos) != 1:
            raise DecodeError(f"broadcast state with {len(pos)} offsets, expected 1").at(offset=int(pos[0]))
        key, value, options = self._meta.serializers["KEY_SERIALIZER"], self._value, self._options
        undecoded: Undecoded = {}
        try:
            _, keys, values = broadcast_entries(key, value, data, pos, end, options)
        except StatetoolError as error:
            if options.on_error != "keep_raw":
                raise undescribed_error(error, partial(_skip_entries, key, value), data, pos, end) from None
            keys, values = (pa.nulls(1, arrow_type(t, options)) for t in (key.logical, value.logical))
            undecoded[0] = {self._meta.name: bytes(data[pos[0] : end[0]])}
        columns: Columns = [("key", key.logical, keys), ("value", value.logical, values)]
        if options.on_error == "keep_raw":
            columns.append((UNDECODED, UNDECODED_TYPE, raw_column(undecoded, len(keys))))
        return len(keys), columns


def _skip_entries(key: Serializer, value: Serializer, c: Cursor) -> None:
    for _ in range(c.count("entries")):
        key.skip(c)
        value.skip(c)
