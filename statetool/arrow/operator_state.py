"""Rows of operator state: list and union (``value``), broadcast (``key``, ``value``)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from statetool.arrow.decode import as_data, decode_column
from statetool.arrow.keyed import Columns
from statetool.arrow.values import decode_framed, kept_elements, unreadable
from statetool.errors import DecodeError, FormatError, StatetoolError
from statetool.formats.compression import read_chunks
from statetool.formats.keyed.entries import Region, locate
from statetool.formats.operator_state import OperatorHeader, read_operator_header
from statetool.formats.state_meta import StateMeta
from statetool.io.cursor import Cursor
from statetool.kernels.program import Pairs
from statetool.plan.splits import OperatorSplit
from statetool.serializers.base import Serializer
from statetool.serializers.opaque import OpaqueSerializer
from statetool.types import LogicalType, MapType


def element_serializer(meta: StateMeta) -> Serializer:
    """Return the serializer of a list element (of a broadcast value), bytes where its end cannot be found."""
    if unreadable(meta.value, tail=meta.kind != "broadcast"):
        return OpaqueSerializer(b"", meta.value.type_name)
    return meta.value


def operator_columns(meta: StateMeta) -> list[tuple[str, LogicalType]]:
    """Return the columns of an operator state's table."""
    columns = [("value", element_serializer(meta).logical)]
    if meta.kind == "broadcast":
        columns.insert(0, ("key", meta.serializers["KEY_SERIALIZER"].logical))
    return columns


def operator_rows(split: OperatorSplit) -> tuple[int, Columns]:
    """Read the rows of one split, in a task."""
    (name,) = split.spec.states
    try:
        with split.stream.open() as f:
            head = f.read_at(0, split.header_bytes)
            header = read_operator_header(Cursor(head, base=split.stream.start))
            meta = next((s for s in header.states if s.name == name), None)
            if meta is None:
                raise FormatError(f"the header does not know operator state {name!r}")
            body = f.read_at(split.header_bytes, split.stream.size_bytes - split.header_bytes)
            raw, starts, bounds = _positions(split, header, body)
    except StatetoolError as error:
        raise error.at(file=split.stream.file, operator=split.spec.operator, state=name) from None
    region = Region(0, split.stream.start + split.header_bytes, -1, header.compressed)
    try:
        return _decode(split, meta, as_data(raw), starts, bounds)
    except StatetoolError as error:
        raise locate(error, (region,), split.stream.file).at(operator=split.spec.operator, state=name) from None


def _positions(
    split: OperatorSplit, header: OperatorHeader, body: memoryview
) -> tuple[memoryview | bytes, list[int], list[int]]:
    """Return the uncompressed body, and where elements of this state and of all states start in it."""
    base = split.header_bytes
    if not header.compressed:
        return body, [o - base for o in split.offsets], [o - base for o in split.bounds]
    # The stream of a compressed body starts right after the header; offsets point at the chunk of each element.
    at = header.size_bytes
    start_of, parts, size = {}, [], 0
    with split.stream.open() as f:
        region = f.read_at(at, split.stream.size_bytes - at)
        for chunk in read_chunks(region, base=split.stream.start + at):
            start_of[at + chunk.start] = size
            parts.append(chunk.data)
            size += len(chunk.data)
    try:
        return b"".join(parts), [start_of[o] for o in split.offsets], [start_of[o] for o in split.bounds]
    except KeyError as e:
        raise FormatError(f"offset {e.args[0]} is not the start of a compressed chunk") from None


def _decode(
    split: OperatorSplit, meta: StateMeta, data: np.ndarray, starts: list[int], bounds: list[int]
) -> tuple[int, Columns]:
    options = split.spec.options
    end_of = dict(zip(bounds, [*bounds[1:], len(data)], strict=True))
    pos = np.array(starts, dtype=np.int64)
    end = np.array([end_of[s] for s in starts], dtype=np.int64)
    element = element_serializer(meta)
    if meta.kind != "broadcast":
        values = decode_framed(element, data, pos, end, options)
        kept = kept_elements(element, data, pos, options)
        if kept is not None:
            values = values.filter(pa.array(kept))
        return len(values), [("value", element.logical, values)]
    if len(pos) != 1:
        raise DecodeError(f"broadcast state with {len(pos)} offsets, expected 1").at(offset=int(pos[0]))
    key = meta.serializers["KEY_SERIALIZER"]
    column, after = decode_column(
        Pairs(key.program(), element.program()), MapType(key.logical, element.logical), data, pos, end, options
    )
    if after[0] != end[0]:
        raise DecodeError(f"{int(end[0] - after[0])} bytes trail behind the entries").at(offset=int(after[0]))
    return len(column.keys), [("key", key.logical, column.keys), ("value", element.logical, column.items)]
