"""Resolved location of one stream's bytes: a range of a file, or bytes inlined in the metadata."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

from statetool.errors import FormatError, SnapshotNotFoundError
from statetool.io import requests
from statetool.io.deletion import check_deletion, noticing_deletion
from statetool.io.files import BYTES_READ, Stamp, is_local, read_range, read_ranges, size_of
from statetool.io.open_files import close_file, open_file
from statetool.io.requests import REQUESTS, Opening, Range, RequestedRange, is_busy, new_opening

#: Bytes of one request. Requests of 4 to 8 MiB cost least.
_REQUEST_BYTES: Final = 4 << 20
#: Requests of a large stream that are made while an earlier one is read.
_FIRST_REQUESTS: Final = 4
#: Last bytes of a large remote table file, which usually contain its index.
_TAIL_BYTES: Final = 128 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream of state; picklable, so that tasks can open it.

    ``file`` names it in messages (the metadata file for inline bytes); ``start`` is the offset of its first byte there.
    ``metadata_file`` is that of the snapshot, empty if there is none. If that file is gone, the snapshot was deleted.
    ``file_bytes`` is the size of the file if it is known. ``opening`` is that of the snapshot, for responses of servers.
    """

    file: str
    start: int
    size_bytes: int
    inline: bytes | None = None
    metadata_file: str = field(default="", compare=False)
    file_bytes: int | None = field(default=None, compare=False)
    opening: Opening = field(default_factory=new_opening, compare=False)

    @property
    def is_far(self) -> bool:
        """Whether each read is a request to a server."""
        return self.inline is None and not is_local(self.file)

    @property
    def is_small(self) -> bool:
        """Whether one request fetches its file from the start to the stream's end."""
        return self.start + self.size_bytes <= requests.WHOLE_BYTES

    def open(self, ahead: ReadAhead | None = None) -> OpenStream:
        """Open the stream for reading at any offset.

        Parameters
        ----------
        ahead
            Reads the bytes of a remote stream.
        """
        return OpenStream(self, ahead)

    def kept_range(self, offset: int, length: int) -> Range:
        """Return the range of a remote file to request for a range of the stream: the whole file if it is small."""
        if self.is_small:
            return requests.whole_file(self.file, self.opening)
        return Range(self.file, self.start + offset, length, self.opening)

    def file_size(self) -> int:
        """Return the size of its file.

        Raises
        ------
        SnapshotNotFoundError
            The file does not exist.
        """
        with noticing_deletion(self.metadata_file):
            return requests.whole_size(self.file, self.opening) if self.is_far else size_of(self.file)


#: A stream, and offset and length of a range in it.
Part: TypeAlias = tuple[Stream, int, int]


def prefetch(parts: Iterable[Part]) -> None:
    """Fetch parts of remote streams concurrently, before :meth:`OpenStream.read_kept` reads them one by one. Small files are fetched whole."""
    expected = {
        stream.kept_range(offset, length): stream.size_bytes if stream.is_small else length
        for stream, offset, length in _far(parts)
    }
    if len(expected) > 1:
        requests.prefetch(expected)


def begin(parts: Iterable[Part]) -> bool:
    """Request what :func:`prefetch` fetches without waiting for it, and return True if all of it has arrived."""
    ranges = [stream.kept_range(offset, length) for stream, offset, length in _far(parts)]
    return requests.begin(ranges)


def tail_range(size_bytes: int) -> tuple[int, int]:
    """Return offset and length of the last bytes of a table file of this size, which are requested when it is opened."""
    start = max(0, size_bytes - _TAIL_BYTES)
    return start, size_bytes - start


def whole(streams: Iterable[Stream]) -> Iterator[Part]:
    """Yield the parts that are the whole of small streams."""
    return ((stream, 0, stream.size_bytes) for stream in streams if stream.is_small)


def _far(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of remote streams that have bytes."""
    return ((s, at, n) for s, at, n in parts if s.is_far and n and 0 <= at <= s.size_bytes - n)


def read_parts(parts: Sequence[Part]) -> list[memoryview]:
    """Read a range of each of many streams, given by offset and length. Requests for remote files are in flight together.

    Raises
    ------
    FormatError
        A stream is shorter.
    SnapshotNotFoundError
        A file does not exist.
    CheckpointDeletedError
        The snapshot was deleted.
    """
    read: dict[int, memoryview] = {}
    far: dict[str, list[int]] = defaultdict(list)
    for number, (stream, offset, length) in enumerate(parts):
        if stream.is_far and length and 0 <= offset <= stream.size_bytes - length:
            far[stream.metadata_file].append(number)
            continue
        with stream.open() as f:
            read[number] = f.read_at(offset, length)
    for metadata_file, numbers in far.items():
        with noticing_deletion(metadata_file):
            ranges = [(s.file, s.start + offset, length) for s, offset, length in (parts[n] for n in numbers)]
            for number, data in zip(numbers, read_ranges(ranges), strict=True):
                stream, offset, length = parts[number]
                read[number] = _checked(stream, data, stream.start + offset, length)
    return [read[number] for number in range(len(parts))]


def _checked(stream: Stream, data: bytes | memoryview, at: int, length: int) -> memoryview:
    """Return bytes of a remote file, or raise an error if there are fewer than requested."""
    if len(data) != length:
        raise FormatError(
            f"expected {length} bytes, found {len(data)}",
            hint="check that the file was copied completely: it is shorter than the metadata says",
        ).at(file=stream.file, offset=at)
    return memoryview(data)


class OpenStream:
    """An open stream; offsets count from its first byte. A remote file is not requested before the first read."""

    def __init__(self, stream: Stream, ahead: ReadAhead | None = None) -> None:
        self.stream = stream
        self._ahead = ahead
        with noticing_deletion(stream.metadata_file):
            self._opened = None if stream.inline is not None or stream.is_far else open_file(stream.file)

    def __enter__(self) -> OpenStream:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._opened is not None:
            close_file(self._opened)
        if self._ahead is not None:
            self._ahead.close()

    @property
    def stamp(self) -> Stamp | None:
        """Numbers that are others for another content of its local file, ``None`` for other streams."""
        return None if self._opened is None else self._opened.file.stamp

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read exactly ``length`` bytes from ``offset`` on.

        Raises
        ------
        FormatError
            The stream is shorter.
        SnapshotNotFoundError
            The file does not exist.
        CheckpointDeletedError
            The snapshot was deleted.
        """
        s = self.stream
        if offset < 0 or length < 0 or offset + length > s.size_bytes:
            raise FormatError(f"expected {length} bytes in a stream of {s.size_bytes} bytes").at(
                file=s.file, offset=s.start + offset
            )
        if s.inline is not None:
            BYTES_READ.total += length
            return memoryview(s.inline)[offset : offset + length]
        try:
            if self._opened is not None:
                return self._opened.file.read_at(s.start + offset, length)
            BYTES_READ.total += length
            return self._far(s.start + offset, length)
        except (FormatError, SnapshotNotFoundError) as error:
            check_deletion(s.metadata_file, error)
            raise

    def read_into(self, offset: int, target: memoryview) -> None:
        """Read the bytes from ``offset`` on that fill ``target``; errors as for :meth:`read_at`."""
        s = self.stream
        if self._opened is None or offset < 0 or offset + len(target) > s.size_bytes:
            target[:] = self.read_at(offset, len(target))
            return
        try:
            self._opened.file.read_into(s.start + offset, target)
        except (FormatError, SnapshotNotFoundError) as error:
            check_deletion(s.metadata_file, error)
            raise

    def read_kept(self, offset: int, length: int) -> memoryview:
        """Read like :meth:`read_at`. Bytes of a remote stream are kept for the duration of a query, as headers and indexes should be."""
        s = self.stream
        if not s.is_far or s.is_small or length <= 0 or not 0 <= offset <= s.size_bytes - length:
            return self.read_at(offset, length)
        BYTES_READ.total += length
        with noticing_deletion(s.metadata_file):
            return _checked(s, requests.read_kept(s.kept_range(offset, length)), s.start + offset, length)

    def _far(self, at: int, length: int) -> memoryview:
        s = self.stream
        if not length:
            return memoryview(b"")
        if s.is_small:
            return _checked(s, memoryview(requests.read_start(s.file, s.opening))[at : at + length], at, length)
        if self._ahead is not None:
            return _checked(s, self._ahead.read(at, length), at, length)
        return _checked(s, read_range(s.file, at, length), at, length)


def first_requests(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield offset and length of the first requests of a :class:`ReadAhead` for ranges of a stream, if it reads on."""
    return islice(_requests(ranges, _REQUEST_BYTES), _FIRST_REQUESTS)


def _requests(ranges: Iterable[tuple[int, int]], most_bytes: int) -> Iterator[tuple[int, int]]:
    for offset, length in ranges:
        for at in range(offset, offset + length, most_bytes):
            yield at, min(most_bytes, offset + length - at)


@dataclass(slots=True)
class _Chunk:
    """A requested range of a file; ``reserved`` bytes of the budget are returned when it is dropped."""

    start: int
    end: int
    response: RequestedRange
    reserved: int

    def drop(self) -> None:
        REQUESTS.release(self.reserved)
        self.response.cancel()


class ReadAhead:
    """Requests for ranges of a remote stream that are read in ascending order. Several are in flight before they are needed.

    The first read requests only what it returns, since a reader may stop after a sample. Bytes outside the ranges can be read, too.

    Parameters
    ----------
    ranges
        Offset and length of ascending ranges of the stream.
    most_bytes
        Maximum number of bytes to request before they are needed. The budget of the process limits them, too.
    reads_on
        Whether the reader is known to read all ranges.
    tail
        The last bytes of the stream if they are known: they are not requested.
    """

    def __init__(
        self,
        stream: Stream,
        ranges: Iterable[tuple[int, int]],
        most_bytes: int,
        *,
        reads_on: bool = False,
        tail: memoryview | None = None,
    ) -> None:
        self._file, self._opening = stream.file, stream.opening
        self._most = most_bytes
        self._tail = memoryview(b"") if tail is None else tail
        #: Where the tail starts in the file.
        self._end = stream.start + stream.size_bytes - len(self._tail)
        request_bytes = max(1, min(_REQUEST_BYTES, most_bytes))
        unknown = ((at, min(length, self._end - stream.start - at)) for at, length in ranges)
        self._planned = deque((stream.start + at, length) for at, length in _requests(unknown, request_bytes))
        self._chunks: deque[_Chunk] = deque()
        self._waiting_bytes = 0
        self._reads_on = reads_on
        if reads_on:
            self.begin()

    def begin(self) -> None:
        """Request ranges before they are needed, as many as the limits allow."""
        self._reads_on = True
        while self._planned:
            at, length = self._planned[0]
            if self._waiting_bytes + length > self._most or is_busy() or not REQUESTS.reserve(length):
                return
            self._planned.popleft()
            self._request(at, length, reserved=length)

    def request(self, at: int, length: int) -> None:
        """Request the bytes of the next read, unless they have been requested."""
        if not self._reads_on and not self._chunks:
            self._skip_to(at)
            unknown = min(length, self._end - at)
            if unknown > 0:
                self._request(at, unknown)
            self._skip_to(at + length)
        while self._planned and self._planned[0][0] < at + length:
            planned, size = self._planned.popleft()
            if planned + size > at:
                self._request(planned, size)

    def read(self, at: int, length: int) -> memoryview:
        """Read bytes from offset ``at`` of the file on, fewer if the file ends earlier."""
        while self._chunks and self._chunks[0].end <= at:
            self._drop_first()
        is_first = not self._reads_on
        self.request(at, length)
        self._reads_on = True
        if not is_first:
            self.begin()
        parts = self._parts(at, at + length)
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def _parts(self, at: int, end: int) -> list[memoryview]:
        """Return consecutive bytes; those that were not planned are requested."""
        parts = []
        for chunk in self._chunks:
            if chunk.end <= at or chunk.start >= end:
                continue
            if chunk.start > at:
                parts.append(memoryview(read_range(self._file, at, chunk.start - at)))
            first = max(at, chunk.start)
            parts.append(memoryview(chunk.response.result())[first - chunk.start : end - chunk.start])
            at = min(end, chunk.end)
        if at < min(end, self._end):
            parts.append(memoryview(read_range(self._file, at, min(end, self._end) - at)))
            at = min(end, self._end)
        if at < end:
            parts.append(self._tail[at - self._end : end - self._end])
        return parts

    def close(self) -> None:
        """Give up all requests."""
        self._planned.clear()
        while self._chunks:
            self._drop_first()

    def _request(self, at: int, length: int, *, reserved: int = 0) -> None:
        self._waiting_bytes += length
        self._chunks.append(
            _Chunk(at, at + length, requests.take(Range(self._file, at, length, self._opening)), reserved)
        )

    def _drop_first(self) -> None:
        chunk = self._chunks.popleft()
        self._waiting_bytes -= chunk.end - chunk.start
        chunk.drop()

    def _skip_to(self, at: int) -> None:
        """Leave out planned bytes before an offset of the file."""
        while self._planned and self._planned[0][0] < at:
            planned, size = self._planned.popleft()
            if planned + size > at:
                self._planned.appendleft((at, planned + size - at))
