"""In-flight data of unaligned checkpoints as rows: stream elements of a subtask's channels. Runs in a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from statetool.columns.arrays import as_arrow
from statetool.columns.decode import as_data, decode_column
from statetool.columns.types import struct_columns
from statetool.columns.values import check_filled
from statetool.errors import StatetoolError
from statetool.formats.channel_state import Channel, Records, read_buffers, read_records
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.serializers.streaming import StreamElementSerializer
from statetool.serializers.table import snapshot_reader
from statetool.tables.kinds.keyed import Columns
from statetool.tables.splits import Split, TableRows
from statetool.types import LogicalType, Scalar, StructType
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions

_BATCH_BYTES: Final = 8 << 20
_PLACE: Final = ("subtask", "gate", "channel")
PART: Final = "part"


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightSplit(Split):
    """Channels of one subtask with buffers in one stream. ``record`` is the serializer snapshot of the records."""

    stream: Stream
    channels: tuple[Channel, ...]
    record: bytes
    subtask: int
    types: TypeContext

    @property
    def file(self) -> str:
        return self.stream.file

    @property
    def size_bytes(self) -> int:
        return self.stream.size_bytes

    def rows(self, *, reads_on: bool) -> Iterator[TableRows]:
        return in_flight_rows(self)


def element_serializer(record: Serializer) -> StreamElementSerializer:
    """Return the serializer of stream elements with records of the given serializer."""
    return StreamElementSerializer("", 1, 1, None, (record,))


def in_flight_columns(record: Serializer) -> list[tuple[str, LogicalType]]:
    """Return the columns of the table: location, ``value``, ``timestamp``, ``element``, ``marker``, ``part``.

    ``part`` holds the bytes of an element whose other part is in another channel's data.
    """
    logical = element_serializer(record).logical
    assert isinstance(logical, StructType)
    return [
        *((name, Scalar("int32")) for name in _PLACE),
        *((f.name, f.type) for f in logical.fields),
        (PART, Scalar("binary")),
    ]


def in_flight_rows(split: InFlightSplit) -> Iterator[tuple[int, Columns]]:
    """Read the rows of one split, a few megabytes at a time.

    Raises
    ------
    FormatError
        The bytes are not stream elements, or not of this type. The error has the file and channel.
    """
    element = element_serializer(snapshot_reader(split.types).snapshot(Cursor(split.record)))
    with split.stream.open() as f:
        for channel in split.channels:
            try:
                buffers = read_buffers(f, channel)
                fits = _fits(element)
                for records in read_records(buffers, side=channel.side, fits=fits, batch_bytes=_BATCH_BYTES):
                    yield _columns(element, records, channel, split.spec.options)
            except StatetoolError as error:
                error.where = replace(error.where, offset=None)
                raise error.at(file=split.stream.file, region=str(channel)) from None


def _fits(element: Serializer) -> Callable[[bytes], bool]:
    def fits(raw: bytes) -> bool:
        c = Cursor(raw)
        try:
            element.decode(c)
        except StatetoolError:
            return False
        return c.left == 0

    return fits


def _columns(element: Serializer, records: Records, channel: Channel, options: ReadOptions) -> tuple[int, Columns]:
    places = np.array(records.places, dtype=np.int64).reshape(-1, 2)
    pos, end = np.ascontiguousarray(places[:, 0]), np.ascontiguousarray(places[:, 1])
    column, after = decode_column(element.program(), element.logical, as_data(records.data), pos, end, options)
    check_filled(after, end)
    heads, tails = [records.head] if records.head else [], [records.tail] if records.tail else []
    n = len(heads) + len(pos) + len(tails)

    def pad(array: pa.Array) -> pa.Array:
        return pa.concat_arrays([pa.nulls(len(heads), array.type), array, pa.nulls(len(tails), array.type)])

    columns: Columns = [
        (name, Scalar("int32"), as_arrow(np.full(n, getattr(channel, name), dtype=np.int32))) for name in _PLACE
    ]
    assert isinstance(element.logical, StructType)
    columns += [(n, kind, pad(a)) for n, kind, a in struct_columns(column, element.logical, options)]
    parts = [*heads, *(None for _ in range(len(pos))), *tails]
    columns.append((PART, Scalar("binary"), pa.array(parts, type=pa.binary())))
    return n, columns
