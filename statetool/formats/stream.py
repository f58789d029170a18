"""Where the bytes of one stream are, after paths were resolved: a range of a file, or bytes that lay in the metadata."""

from __future__ import annotations

from dataclasses import dataclass

from statetool.errors import FormatError
from statetool.io.files import BYTES_READ, InputFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream of state; picklable, so that tasks can open it.

    ``file`` names it in messages (the metadata file for inline bytes); ``start`` is the offset of its first byte there.
    """

    file: str
    start: int
    size_bytes: int
    inline: bytes | None = None

    def open(self) -> OpenStream:
        """Open it for reading at any offset."""
        return OpenStream(self)


class OpenStream:
    """An open stream; offsets count from its first byte."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._file = None if stream.inline is not None else InputFile(stream.file)

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
            They are not there.
        """
        s = self.stream
        if offset < 0 or length < 0 or offset + length > s.size_bytes:
            raise FormatError(f"expected {length} bytes in a stream of {s.size_bytes} bytes").at(
                file=s.file, offset=s.start + offset
            )
        if s.inline is not None:
            BYTES_READ.total += length
            return memoryview(s.inline)[offset : offset + length]
        assert self._file is not None
        return self._file.read_at(s.start + offset, length)
