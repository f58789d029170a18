"""Resolved location of one stream's bytes: a range of a file, or bytes inlined in the metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from statetool.errors import FormatError, SnapshotNotFoundError
from statetool.io import small_files
from statetool.io.deletion import check_deletion, noticing_deletion
from statetool.io.files import BYTES_READ, InputFile, is_local, read_range, read_ranges, size_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream of state; picklable, so that tasks can open it.

    ``file`` names it in messages (the metadata file for inline bytes); ``start`` is the offset of its first byte there.
    ``metadata_file`` is that of the snapshot, empty if there is none. If that file is gone, the snapshot was deleted.
    ``file_bytes`` is the size of the file if it is known.
    """

    file: str
    start: int
    size_bytes: int
    inline: bytes | None = None
    metadata_file: str = field(default="", compare=False)
    file_bytes: int | None = field(default=None, compare=False)

    @property
    def is_far(self) -> bool:
        """Whether each read is a request to a server."""
        return self.inline is None and not is_local(self.file)

    @property
    def is_small(self) -> bool:
        """Whether one request fetches its file from the start to the stream's end."""
        return self.start + self.size_bytes <= small_files.WHOLE_BYTES

    def open(self) -> OpenStream:
        """Open the stream for reading at any offset."""
        return OpenStream(self)

    def file_size(self) -> int:
        """Return the size of its file.

        Raises
        ------
        SnapshotNotFoundError
            The file does not exist.
        """
        with noticing_deletion(self.metadata_file):
            return small_files.whole_size(self.file) if self.is_far else size_of(self.file)


def prefetch(streams: Iterable[Stream]) -> None:
    """Fetch the small files of remote streams concurrently, before they are read one by one."""
    far = [s.file for s in streams if s.is_far and s.is_small and s.size_bytes]
    if len(far) > 1:
        small_files.prefetch(far)


def read_parts(parts: Sequence[tuple[Stream, int, int]]) -> list[memoryview]:
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

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        with noticing_deletion(stream.metadata_file):
            self._file = None if stream.inline is not None or stream.is_far else InputFile(stream.file)

    def __enter__(self) -> OpenStream:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

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
            if self._file is not None:
                return self._file.read_at(s.start + offset, length)
            BYTES_READ.total += length
            return self._far(s.start + offset, length)
        except (FormatError, SnapshotNotFoundError) as error:
            check_deletion(s.metadata_file, error)
            raise

    def _far(self, at: int, length: int) -> memoryview:
        s = self.stream
        if not length:
            return memoryview(b"")
        if s.is_small:
            return _checked(s, memoryview(small_files.read_start(s.file))[at : at + length], at, length)
        return _checked(s, read_range(s.file, at, length), at, length)


class ReadAhead:
    """Reader of a remote stream in ascending order: after the first read it fetches ranges of up to ``most_bytes``, up to ``end``.

    The first read fetches only what it returns, since a reader may stop after a sample.
    """

    def __init__(self, stream: Stream, end: int, most_bytes: int) -> None:
        self.stream = stream
        self._end = end
        self._most = most_bytes
        #: Offset of the fetched bytes, ``None`` before the first read.
        self._start: int | None = None
        self._fetched = memoryview(b"")

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read exactly ``length`` bytes from ``offset`` on; errors as for :meth:`OpenStream.read_at`."""
        at = None if self._start is None else offset - self._start
        if at is not None and at >= 0 and at + length <= len(self._fetched):
            return self._fetched[at : at + length]
        kept = self._fetched[at:] if at is not None and 0 <= at <= len(self._fetched) else memoryview(b"")
        first = offset + len(kept)
        wanted = length - len(kept)
        if self._start is not None:
            wanted = max(wanted, min(self._most, self._end - first))
        with self.stream.open() as f:
            fetched = f.read_at(first, wanted)
        self._start = offset
        self._fetched = memoryview(b"".join([kept, fetched])) if len(kept) else fetched
        return self._fetched[:length]
