"""Keyed streams with an offset for each key group: canonical savepoints, full RocksDB snapshots, and the layout of the heap backend.

Handle tag 7 is canonical. Tags 3 and 12 have both layouts: full RocksDB snapshots are canonical, those of the heap backend are not. So the
first key groups are read as canonical, which fails immediately on any other layout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from statetool.entries.form import (
    ALL_ENTRIES,
    EntryRequest,
    KeyedContext,
    KeyedHandleRef,
    KeyGroupBytes,
    KeyGroupLocation,
    KeyGroupReader,
    Layout,
    OperatorReadContext,
    StateFormat,
    StoredState,
    error_context,
)
from statetool.entries.headers import header_bytes, header_of_task, header_stream
from statetool.errors import FormatError, StatetoolError
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.ranges import KeyGroupRange, adjacent, batches_of, even_batches_of, offset_ranges
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.stream import OpenStream, ReadAhead, Stream, begin, first_requests
from statetool.io.cursor import Cursor
from statetool.io.requests import AHEAD_BYTES, is_busy

if TYPE_CHECKING:
    from statetool.formats.keyed.entries import EntryBatch

CANONICAL_TAG: Final = 7
_SAMPLE_BYTES: Final = 1 << 20
#: In the layout of the heap backend a key group starts with its number, which is never compressed.
NUMBER_BYTES: Final = 4


class StreamFormat:
    """Stored form of keyed streams."""

    def matches(self, place: KeyedHandleRef, read_context: OperatorReadContext) -> bool:
        return isinstance(place.handle, KeyGroupsHandle) and not place.raw

    def open(self, places: Sequence[KeyedHandleRef], read_context: OperatorReadContext) -> Iterable[StoredState]:
        return [StoredStream(place, read_context) for place in places]


class StoredStream(StoredState):
    """The stream of one subtask."""

    #: Whether key groups have the layout of the heap backend, if it has been found out.
    known_heap: bool | None = None

    @property
    def handle(self) -> KeyGroupsHandle:
        """The handle."""
        assert isinstance(self.place.handle, KeyGroupsHandle)
        return self.place.handle

    @property
    def canonical(self) -> bool:  # type: ignore[override]
        return self.handle.tag == CANONICAL_TAG

    def layout(self) -> Layout:
        if self.canonical:
            return "canonical"
        ranges = self.ranges()
        return "empty" if not ranges else "heap" if self._is_heap(ranges) else "full"

    @cached_property
    def stream(self) -> Stream:
        """Location of its bytes.

        Raises
        ------
        FormatError
            It has none.
        """
        stream = self.read_context.resolve(self.handle.stream)
        if stream is None:
            raise FormatError("keyed state without a stream").at(
                operator=self.read_context.operator, file=self.read_context.metadata_file
            )
        return stream

    @property
    def header_size(self) -> int:
        """Bytes before the first key group."""
        return min((o for o in self.handle.offsets if o > 0), default=self.stream.size_bytes)

    def ranges(self) -> list[KeyGroupRange]:
        """Return the ranges of non-empty key groups, in the order of the stream.

        Raises
        ------
        FormatError
            An offset is outside the stream.
        """
        return offset_ranges(self.handle.start, self.handle.offsets, self.stream, nothing=0)

    def key_groups(self) -> Iterator[KeyGroupLocation]:
        sizes = {r.number: r.size_bytes for r in self.ranges()}
        for number, offset in enumerate(self.handle.offsets, self.handle.start):
            yield KeyGroupLocation(key_group=number, offset=offset, size_bytes=sizes.get(number, 0))

    @property
    def _raw(self) -> bytes:
        if self.raw_header is None:
            self.raw_header = header_bytes(self.stream, self.header_size)
        return self.raw_header

    def head(self) -> tuple[Stream, int]:
        return self.stream, self.header_size

    def identity(self) -> bytes:
        return self._raw

    def description(self) -> tuple[bytes, int]:
        return self._raw, self.stream.start

    def header(self) -> KeyedHeader:
        try:
            return read_keyed_header(
                Cursor(self._raw, base=self.stream.start), self.read_context.types, end=self.header_size
            )
        except StatetoolError as error:
            raise error.at(file=self.stream.file, operator=self.read_context.operator) from None

    def key_group_bytes(self, context: KeyedContext) -> KeyGroupBytes | None:
        ranges = tuple(self.ranges())
        if ranges and not self.canonical and self._is_heap(ranges):
            return None
        if header_of_task(self._raw, self.stream.start, context).stored_ids is not None:
            return None  # entries of one state are in two places of a key group
        reader = self._source(context, ranges, self._header_stream, heap=False)
        return KeyGroupBytes(
            handle=self.handle, stream=self.stream, header_size=self.header_size, ranges=ranges, reader=reader
        )

    def sources(
        self, context: KeyedContext, *, groups: Collection[int] | None, target_bytes: int
    ) -> Iterator[KeyGroupReader]:
        ranges = [r for r in self.ranges() if groups is None or r.number in groups]
        if not ranges:
            return
        heap = not self.canonical and self._is_heap(ranges)
        for run in even_batches_of(ranges, limit=target_bytes):
            yield self._source(context, tuple(run), self._header_stream, heap=heap)

    def source_without_header(self, context: KeyedContext, *, most_bytes: int) -> KeyGroupReader | None:
        ranges = tuple(self.ranges())
        if self.raw_header is not None or not ranges or sum(r.size_bytes for r in ranges) > most_bytes:
            return None
        return self._source(context, ranges, self.stream, heap=False if self.canonical else None)

    @property
    def _header_stream(self) -> Stream:
        return header_stream(self.stream, self._raw)

    def _source(
        self, context: KeyedContext, ranges: tuple[KeyGroupRange, ...], header_of: Stream, *, heap: bool | None
    ) -> StreamSource:
        return StreamSource(
            context=context,
            subtask=self.place.subtask,
            stream=self.stream,
            header_of=header_of,
            header_size=self.header_size,
            ranges=ranges,
            heap=heap,
        )

    def _is_heap(self, ranges: Sequence[KeyGroupRange]) -> bool:
        """Return True for the layout of the heap backend, False for the canonical one; errors as for :func:`_is_heap_layout`.

        The first key groups that are needed are read, once.
        """
        if self.known_heap is not None:
            return self.known_heap
        header = self.header()
        with self.stream.open() as f:
            try:
                self.known_heap = _is_heap_layout(f, header, ranges, self.read_context.context.prefix)
                return self.known_heap
            except FormatError as error:
                raise error.at(operator=self.read_context.operator, file=self.stream.file) from error.__cause__


def _is_heap_layout(f: OpenStream, header: KeyedHeader, ranges: Sequence[KeyGroupRange], prefix: int) -> bool:
    """Return True for key groups in the layout of the heap backend, False for the canonical one.

    Raises
    ------
    FormatError
        Neither of the two.
    """
    from statetool.formats.backends.canonical import StreamLayout, read_entries

    states = len(header.as_stored().states)
    layout = StreamLayout(prefix=prefix, states=states, compressed=header.compressed)
    sample = next(batches_of(ranges, limit=_SAMPLE_BYTES))
    try:
        read_entries(f, sample, layout)
        return False
    except FormatError as error:
        # A few wrong offsets do not change the layout: reading the key groups reports them.
        if not _are_mostly_numbered(f, sample) and not _are_mostly_numbered(f, ranges):
            raise FormatError(
                "keyed state in neither the canonical nor the heap layout",
                hint="check that it is the file of this snapshot, and not damaged",
            ) from error
    return True


def _are_mostly_numbered(f: OpenStream, ranges: Sequence[KeyGroupRange]) -> bool:
    """Return True if most key groups start with their number."""
    numbered = sum(
        r.size_bytes >= NUMBER_BYTES and int.from_bytes(f.read_at(r.offset, NUMBER_BYTES), "big") == r.number
        for r in ranges
    )
    return 2 * numbered > len(ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource:
    """Some key groups of one stream. The header is at the start of ``header_of``.

    ``heap``: in the layout of the heap backend; ``None`` if reading has to find out.
    """

    context: KeyedContext
    subtask: int
    stream: Stream
    header_of: Stream
    header_size: int
    ranges: tuple[KeyGroupRange, ...]
    heap: bool | None

    @property
    def file(self) -> str:
        return self.stream.file

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("entries.heap.walk_heap" if self.heap else "entries.walk.walk",)

    @property
    def is_canonical(self) -> bool:
        return not self.heap

    @property
    def reads_by_key(self) -> bool:
        return False

    def group_sizes(self) -> Mapping[int, int]:
        return {r.number: r.size_bytes for r in self.ranges}

    def within(self, key_groups: Collection[int]) -> StreamSource | None:
        ranges = tuple(r for r in self.ranges if r.number in key_groups)
        return replace(self, ranges=ranges) if ranges else None

    def header(self) -> KeyedHeader:
        with error_context(self):
            return header_of_task(header_bytes(self.header_of, self.header_size), self.stream.start, self.context)

    def begin(self, request: EntryRequest) -> bool:
        first = () if self.stream.is_small else first_requests(self._runs())
        begin([(self.header_of, 0, self.header_size), *((self.stream, at, length) for at, length in first)])
        return not (self.stream.is_small and is_busy())  # if too many requests were in flight, it was not made

    def batches(self, request: EntryRequest = ALL_ENTRIES) -> Iterator[EntryBatch]:
        from statetool.entries.stream_reader import StreamReader

        with error_context(self), self._open(request) as f:
            own = self.header_of is self.stream
            raw = bytes(f.read_kept(0, self.header_size)) if own else header_bytes(self.header_of, self.header_size)
            header = header_of_task(raw, self.stream.start, self.context)
            heap = self._has_heap_layout(f, header)
            reader = StreamReader(f, header, heap=heap, prefix=self.context.prefix, request=request)
            yield from reader.batches(self.ranges)

    def _has_heap_layout(self, f: OpenStream, header: KeyedHeader) -> bool:
        if self.heap is not None:
            return self.heap
        return _is_heap_layout(f, header, self.ranges, self.context.prefix)

    def _open(self, request: EntryRequest) -> OpenStream:
        """Open the stream to read its key groups in their order."""
        if not self.stream.is_far or self.stream.is_small:
            return self.stream.open()
        return self.stream.open(ReadAhead(self.stream, self._runs(), AHEAD_BYTES, reads_on=request.reads_on))

    def _runs(self) -> Iterator[tuple[int, int]]:
        """Yield offset and length of ranges of adjacent key groups."""
        return ((run[0].offset, sum(g.size_bytes for g in run)) for run in adjacent(self.ranges))

    def checksum_errors(self) -> Iterator[StatetoolError]:
        """Yield checksum errors of compressed key groups. Flink writes a checksum per 64 KiB and verifies none."""
        from statetool.formats.compression import check_sums

        header = self.header()
        if not header.compressed:
            return
        with self.stream.open() as f:
            head = NUMBER_BYTES if self._has_heap_layout(f, header) else 0
            for r in self.ranges:
                try:
                    check_sums(f, r.offset + head, r.size_bytes - head)
                except StatetoolError as error:
                    yield error.at(operator=self.context.operator, file=self.file, key_group=r.number)


_: StateFormat = StreamFormat()
