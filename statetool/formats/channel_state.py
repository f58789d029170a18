"""In-flight data of unaligned checkpoints: the buffers that were in the channels between tasks.

A stream is i4 0, then buffers of i4 length and bytes. Offsets point at the lengths. The buffers of a channel, one after another, are the
network's record stream: i4 length and a stream element (``StreamElementSerializer``), cut at arbitrary positions. Follows
``ChannelStateSerializerImpl``, ``SpillingAdaptiveSpanningRecordDeserializer`` and the channel-state handles.

The data of an input channel starts at a record boundary: if a record was partly read, Flink stores its beginning with the data. The end of
the last record may be stored in the output of the upstream task, so the data of an output channel may start with the end of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from statetool.errors import FormatError
from statetool.formats.metadata.handles import AnyChannelHandle, ChannelHandle, StreamHandle
from statetool.formats.metadata.model import SubtaskState
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.types.operators import OperatorRecord

Side = Literal["input", "output"]
_VERSION_BYTES: Final = 4
_LENGTH_BYTES: Final = 4
_BATCH_BYTES: Final = 8 << 20
#: Bytes of a stream element after its tag, ``None`` for records.
_ELEMENT_BYTES: Final = {0: None, 1: None, 2: 8, 3: 28, 4: 4, 5: 1, 6: 12}
#: The tag of ``RecordAttributes``. A boolean follows: true if the records after it are backlog.
_ATTRIBUTES: Final = 5
_TIMESTAMP_BYTES: Final = 8
_PROBED_ELEMENTS: Final = 64
_MOST_CUT_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One channel of a subtask: gate and channel for an input, result partition and subpartition for an output."""

    side: Side
    subtask: int
    gate: int
    channel: int
    offsets: tuple[int, ...]
    stream: Stream

    def __str__(self) -> str:
        return f"{self.side} {self.gate}/{self.channel} of subtask {self.subtask}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightRow(OperatorRecord):
    """In-flight data of one channel: buffers, their bytes, complete stream elements, and the bytes of partial elements around them.

    Attributes
    ----------
    elements, cut_bytes
        Number of complete stream elements, and the bytes of partial ones before and after them. An output may start inside a record. Its
        first whole record is found by the lengths of all records. Bytes of a value can look like a length, so the numbers of an output are
        estimates, also those of attributes. A table of the records knows their type, and decodes the first one to find it.
    attributes, backlog_attributes
        Number of ``RecordAttributes`` elements, and of those that mark the records after them as backlog.
    backlog
        The mark of the last one; ``None`` if there is none.
    """

    side: str
    subtask: int
    gate: int
    channel: int
    buffers: int
    size_bytes: int
    elements: int
    attributes: int
    backlog_attributes: int
    backlog: bool | None
    cut_bytes: int
    path: str


def in_flight_row(channel: Channel, operator: str) -> InFlightRow:
    """Count the buffers, bytes and stream elements of a channel.

    Raises
    ------
    FormatError
        As :func:`read_buffers` and :func:`read_records`.
    """
    sizes: list[int] = []

    def count_records(buffers: Iterable[memoryview]) -> Iterator[memoryview]:
        for buffer in buffers:
            sizes.append(len(buffer))
            yield buffer

    elements = cut = 0
    flags: list[int] = []
    try:
        with channel.stream.open() as f:
            buffers = count_records(read_buffers(f, channel))
            for records in read_records(buffers, side=channel.side, batch_bytes=_BATCH_BYTES):
                elements += len(records.places)
                flags += [records.data[start + 1] for start, _ in records.places if records.data[start] == _ATTRIBUTES]
                cut += len(records.head) + len(records.tail)
    except FormatError as error:
        raise error.at(file=channel.stream.file, operator=operator, region=str(channel)) from None
    return InFlightRow(
        operator=operator,
        side=channel.side,
        subtask=channel.subtask,
        gate=channel.gate,
        channel=channel.channel,
        buffers=len(sizes),
        size_bytes=sum(sizes),
        elements=elements,
        attributes=len(flags),
        backlog_attributes=sum(map(bool, flags)),
        backlog=bool(flags[-1]) if flags else None,
        cut_bytes=cut,
        path=channel.stream.file,
    )


def channels_of(subtask: SubtaskState, resolve: Callable[[StreamHandle], Stream | None]) -> Iterator[Channel]:
    """Yield the channels of a subtask.

    Raises
    ------
    FormatError
        The inner list of a merged handle is damaged.
    """
    sides: tuple[tuple[Side, tuple[AnyChannelHandle, ...]], ...] = (
        ("input", subtask.input_channels),
        ("output", subtask.output_channels),
    )
    for side, handles in sides:
        for handle in handles:
            stream = resolve(handle.stream)
            if stream is None:
                continue
            for gate, channel, offsets in _channel_offsets(handle):
                yield Channel(
                    side=side, subtask=subtask.index, gate=gate, channel=channel, offsets=offsets, stream=stream
                )


def _channel_offsets(handle: AnyChannelHandle) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    if isinstance(handle, ChannelHandle):
        yield handle.gate, handle.channel, handle.offsets
        return
    c = Cursor(handle.channels)
    for _ in range(c.count("channels", at_least=20)):
        gate, channel = c.i4(), c.i4()
        c.i8()  # bytes of the channel, with or without their frames, depending on the release
        yield gate, channel, tuple(c.i8() for _ in range(c.count("offsets", at_least=8)))
    c.expect_end("the channels of a handle")


def read_buffers(f: OpenStream, channel: Channel) -> Iterator[memoryview]:
    """Yield the bytes of each buffer of a channel.

    Raises
    ------
    FormatError
        An offset or a length does not fit the stream.
    """
    size = f.stream.size_bytes
    if size and (size < _VERSION_BYTES or any(f.read_at(0, _VERSION_BYTES))):
        raise FormatError("the data of channels does not start with version 0").at(
            file=f.stream.file, offset=f.stream.start
        )
    for offset in channel.offsets:
        if not 0 <= offset <= size - _LENGTH_BYTES:
            raise FormatError(f"a buffer at {offset} of {size} bytes").at(file=f.stream.file)
        length = int.from_bytes(f.read_at(offset, _LENGTH_BYTES), "big", signed=True)
        if not 0 <= length <= size - offset - _LENGTH_BYTES:
            raise FormatError(f"a buffer of {length} bytes, {size - offset - _LENGTH_BYTES} are left").at(
                file=f.stream.file, offset=f.stream.start + offset
            )
        yield f.read_at(offset + _LENGTH_BYTES, length)


@dataclass(slots=True)
class Records:
    """Complete stream elements in ``data``, with their ranges; ``head`` and ``tail`` are partial records around them."""

    data: bytes
    places: list[tuple[int, int]]
    head: bytes = b""
    tail: bytes = b""


def read_records(
    buffers: Iterable[memoryview], *, side: Side, fits: Callable[[bytes], bool] = lambda _: True, batch_bytes: int
) -> Iterator[Records]:
    """Assemble the records of a channel, about ``batch_bytes`` at a time.

    Parameters
    ----------
    fits
        Returns True if a stream element can be decoded; used to find the first record of an output.

    Raises
    ------
    FormatError
        The bytes are not valid records.
    """
    incomplete = b""
    at_start = True
    head = b""
    collected: list[memoryview] = []
    size = 0
    for buffer in buffers:
        collected.append(buffer)
        size += len(buffer)
        if size < batch_bytes:
            continue
        data = b"".join((incomplete, *collected))
        collected, size = [], 0
        if at_start:
            cut = _first_record(data, side, fits)
            head, data, at_start = data[:cut], data[cut:], False
        places, at = _read_framed(data)
        incomplete = data[at:]
        if places:
            yield Records(data, places, head)
            head = b""
    data = b"".join((incomplete, *collected))
    if at_start:
        cut = _first_record(data, side, fits)
        head, data = data[:cut], data[cut:]
    places, at = _read_framed(data)
    if places or head or at < len(data):
        yield Records(data, places, head, data[at:])


def _read_framed(data: bytes) -> tuple[list[tuple[int, int]], int]:
    """Return the ranges of complete records, and the start of the first incomplete one.

    Raises
    ------
    FormatError
        The bytes are not a valid stream element.
    """
    places = []
    at, size = 0, len(data)
    while size - at >= _LENGTH_BYTES:
        length = int.from_bytes(data[at : at + _LENGTH_BYTES], "big", signed=True)
        start, stop = at + _LENGTH_BYTES, at + _LENGTH_BYTES + length
        if not _plausible(length, data[start] if start < size else None):
            raise FormatError(f"{data[at : at + 12].hex()} is not the start of a stream element in flight")
        if stop > size:
            break
        places.append((start, stop))
        at = stop
    return places, at


def _plausible(length: int, tag: int | None) -> bool:
    if length < 1:
        return False
    if tag is None:
        return True
    if tag not in _ELEMENT_BYTES:
        return False
    known = _ELEMENT_BYTES[tag]
    return length > (_TIMESTAMP_BYTES if tag == 0 else 0) if known is None else length == 1 + known


def _first_record(data: bytes, side: Side, fits: Callable[[bytes], bool]) -> int:
    """Return the start of the first record: 0, or for an output possibly the position after the end of a cut record.

    A record may be cut inside its length. What is left of it then looks like the length of another record, up to one with more bytes than
    the channel has. So a start that is proved counts more than an earlier one that is only possible.
    """
    if side == "input":
        return 0
    possible: list[int] = []
    for cut in range(min(len(data), _MOST_CUT_BYTES)):
        found = _probe(data, cut, fits)
        if found is not None and found.is_proved:
            return _after_false_element(data, cut, found.stops, fits)
        if found is not None and (found.stops or cut == 0):
            possible.append(cut)
    # Otherwise, it is the end of one record, longer than all the data here.
    return possible[0] if possible else len(data)


def _after_false_element(data: bytes, start: int, stops: Sequence[int], fits: Callable[[bytes], bool]) -> int:
    """Return the start, or a later one if the first element only looks like one; ``stops`` are the ends of the elements.

    The last bytes of a cut record may look like a length, and the length may happen to end where a later record ends. Such an element is
    longer than those after it, and what it holds can be read as records of their lengths. If none follow, it must hold two at least, and
    is only doubted if other bytes come before it.
    """
    sizes = [stop - at for at, stop in pairwise(stops)]
    if stops[0] - start <= max(sizes, default=0) or not (sizes or start):
        return start
    element = data[: stops[0]]
    for later in range(start + 1, min(len(element), _MOST_CUT_BYTES)):
        found = _probe(element, later, fits, most=len(element))
        if found is None or not found.is_proved:
            continue
        inner = [stop - at for at, stop in pairwise((later, *found.stops))]
        if min(sizes) <= min(inner) and max(inner) <= max(sizes) if sizes else len(inner) > 1:
            return _after_false_element(data, later, [*found.stops, *stops[1:]], fits)
    return start


@dataclass(frozen=True, slots=True)
class _Probe:
    """The ends of complete elements from a position on. They are proved if there are many, or if the last one ends with the data."""

    stops: list[int]
    is_proved: bool


def _probe(data: bytes, at: int, fits: Callable[[bytes], bool], most: int = _PROBED_ELEMENTS) -> _Probe | None:
    """Return the stream elements that start at ``at``, one after another, up to ``most``; ``None`` if other bytes follow."""
    stops: list[int] = []
    while at < len(data) and len(stops) < most:
        length = int.from_bytes(data[at : at + _LENGTH_BYTES], "big", signed=True)
        start, stop = at + _LENGTH_BYTES, at + _LENGTH_BYTES + length
        if len(data) - at < _LENGTH_BYTES:
            return _Probe(stops, is_proved=False)
        if not _plausible(length, data[start] if start < len(data) else None):
            return None
        if stop > len(data):
            return _Probe(stops, is_proved=False)
        if not fits(data[start:stop]):
            return None
        stops.append(stop)
        at = stop
    return _Probe(stops, is_proved=True)


__all__ = [
    "Channel",
    "InFlightRow",
    "Records",
    "Side",
    "channels_of",
    "in_flight_row",
    "read_buffers",
    "read_records",
]
