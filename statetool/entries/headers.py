"""Cache of headers of keyed streams, which are parsed once per process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from statetool.entries.form import KeyedContext
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.subclasses import learn_header
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.types.declared import TypeContext

#: Bytes up to which tasks get a header that has been read, so that they do not open its file again. Each task of Spark carries them.
_CARRIED_BYTES: Final = 16 << 10


def header_bytes(stream: Stream, size: int) -> bytes:
    """Return the first bytes of a stream."""
    if stream.inline is not None and len(stream.inline) == stream.size_bytes <= size:
        return stream.inline  # many subtasks share it
    with stream.open() as f:
        return bytes(f.read_kept(0, min(size, stream.size_bytes)))


def header_stream(stream: Stream, raw: bytes) -> Stream:
    """Return a stream that starts with a header, for tasks: the header itself if it is small, else the stream.

    Parameters
    ----------
    raw
        The header, which has been read.
    """
    return replace(stream, size_bytes=len(raw), inline=raw) if len(raw) <= _CARRIED_BYTES else stream


def header_of_task(raw: bytes, base: int, context: KeyedContext) -> KeyedHeader:
    """Parse a header with all subclasses in the headers of the operator's subtasks. The result is shared and must not be changed.

    Parameters
    ----------
    base
        Offset of its first byte in the file, for messages.

    Raises
    ------
    FormatError, UnknownSerializerError
    """
    return _parse(raw, base, context.types, context.descriptions)


@lru_cache(maxsize=64)
def _parse(raw: bytes, base: int, types: TypeContext, descriptions: tuple[tuple[bytes, int], ...]) -> KeyedHeader:
    header = read_keyed_header(Cursor(raw, base=base), types, end=len(raw))
    learn_all(header, descriptions, types)
    return header


def learn_all(header: KeyedHeader, descriptions: Iterable[tuple[bytes, int]], types: TypeContext) -> None:
    """Add the subclasses in other headers (bytes and offset) to a header."""
    for raw, base in descriptions:
        learn_header(header, read_keyed_header(Cursor(raw, base=base), types, end=len(raw)))
