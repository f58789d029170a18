"""Snappy framing as Flink writes it (``SnappyStreamCompressionDecorator``).

A stream starts with the chunk FF 06 00 00 "sNaPpY". Chunks are u8 type, u3 length (little-endian), u4 checksum, data:
type 0 compressed, 1 uncompressed. A stream has no end marker: the handle bounds its region. Flink does not verify the
checksums when reading; statetool verifies them only in ``verify``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import cramjam

from statetool.errors import FormatError
from statetool.formats.stream import OpenStream

#: First bytes of a framed stream.
STREAM_START: Final = b"\xff\x06\x00\x00sNaPpY"
#: Uncompressed bytes of a full chunk.
BLOCK_BYTES: Final = 1 << 16
_READ_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk with data: its start in the region, and its uncompressed bytes."""

    start: int
    data: bytes


def read_chunks(region: memoryview, *, base: int, checked: bool = False) -> Iterator[Chunk]:
    """Yield the uncompressed chunks of a region.

    Parameters
    ----------
    base
        Offset of the region in the file, for messages.
    checked
        Also verify checksums.

    Raises
    ------
    FormatError
        Not framed Snappy, or damaged; with the offset of the chunk.
    """
    at = 0
    size = len(region)
    while at < size:
        if size - at < 4:
            raise FormatError("a compressed chunk is cut off").at(offset=base + at)
        kind = region[at]
        length = int.from_bytes(region[at + 1 : at + 4], "little")
        if at + 4 + length > size:
            raise FormatError(f"a compressed chunk of {length} bytes, only {size - at - 4} are left").at(
                offset=base + at
            )
        body = region[at + 4 : at + 4 + length]
        if kind == 0xFF:
            if bytes(region[at : at + 4 + length]) != STREAM_START:
                raise FormatError("not a snappy stream identifier").at(offset=base + at)
        elif kind in (0, 1):
            if length < 4:
                raise FormatError("a compressed chunk without its checksum").at(offset=base + at)
            chunk = Chunk(at, _uncompress(body[4:], compressed=kind == 0, offset=base + at))
            if checked:
                _check_sum(bytes(region[at : at + 4 + length]), offset=base + at)
            yield chunk
        elif 2 <= kind <= 0x7F:
            raise FormatError(f"snappy chunk type {kind:#04x} may not be skipped").at(offset=base + at)
        at += 4 + length
    if at == 0:
        raise FormatError("an empty compressed region").at(offset=base)


def stream_chunks(
    read: Callable[[int, int], memoryview], size: int, *, base: int, block: int = _READ_BYTES, checked: bool = False
) -> Iterator[Chunk]:
    """Yield the uncompressed chunks of a region of any size, reading about ``block`` bytes at a time.

    Parameters
    ----------
    read
        Called with the offset in the region and a length.
    size, base
        Bytes of the region, and its offset in the file.
    checked
        Also verify checksums.

    Raises
    ------
    FormatError
        As :func:`read_chunks`.
    """
    at, length = 0, block
    while at < size:
        raw = read(at, min(length, size - at))
        whole_bytes = len(raw) if len(raw) == size - at else _whole_chunks(raw)
        if whole_bytes == 0:
            length *= 2  # one chunk is larger than the block (its length has three bytes)
            continue
        for chunk in read_chunks(raw[:whole_bytes], base=base + at, checked=checked):
            yield Chunk(at + chunk.start, chunk.data)
        at, length = at + whole_bytes, block
    if size == 0:
        raise FormatError("an empty compressed region").at(offset=base)


def packed_size(plain: memoryview) -> int:
    """Return the compressed size of bytes, compressed in the same blocks as Flink."""
    blocks = (plain[at : at + BLOCK_BYTES] for at in range(0, len(plain), BLOCK_BYTES))
    return sum(min(len(block), len(cramjam.snappy.compress_raw(block))) for block in blocks)


def check_sums(f: OpenStream, offset: int, size: int) -> None:
    """Uncompress a region of a stream and verify its checksums.

    Raises
    ------
    FormatError
        Damaged, or a wrong checksum.
    """
    if size == 0:
        return
    chunks = stream_chunks(lambda at, n: f.read_at(offset + at, n), size, base=f.stream.start + offset, checked=True)
    for _ in chunks:
        pass


def _whole_chunks(raw: memoryview) -> int:
    """Return the size of the complete chunks in ``raw``."""
    at = 0
    while at + 4 <= len(raw):
        after = at + 4 + int.from_bytes(raw[at + 1 : at + 4], "little")
        if after > len(raw):
            break
        at = after
    return at


def _uncompress(body: memoryview, *, compressed: bool, offset: int) -> bytes:
    if not compressed:
        return bytes(body)
    # The stored size is checked before cramjam allocates it.
    if _claimed_size(body) > BLOCK_BYTES:
        raise FormatError(f"a compressed chunk claims more than {BLOCK_BYTES} bytes").at(offset=offset)
    try:
        return bytes(cramjam.snappy.decompress_raw(bytes(body)))
    except cramjam.DecompressionError as e:
        raise FormatError(f"a compressed chunk is damaged: {e}").at(offset=offset) from e


def _check_sum(chunk: bytes, *, offset: int) -> None:
    """Verify the checksum of a chunk that can be uncompressed."""
    try:
        cramjam.snappy.decompress(STREAM_START + chunk)
    except cramjam.DecompressionError as e:
        raise FormatError("the checksum of a compressed chunk does not fit its bytes").at(offset=offset) from e


def _claimed_size(body: memoryview) -> int:
    size = shift = 0
    for b in body[:5]:
        size |= (b & 0x7F) << shift
        if b < 0x80:
            return size
        shift += 7
    return BLOCK_BYTES + 1


class FrameWriter:
    """Writer of one framed stream, with Flink's block size; chunks carry their checksums.

    Parameters
    ----------
    write
        Takes the framed bytes.
    """

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._pending = bytearray()
        write(STREAM_START)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append uncompressed bytes."""
        self._pending += data
        whole = len(self._pending) // BLOCK_BYTES * BLOCK_BYTES
        if whole:
            self._frame(whole)

    def flush(self) -> None:
        """End the current chunk: later data starts a new one, and the stream may end here."""
        if self._pending:
            self._frame(len(self._pending))

    def _frame(self, size: int) -> None:
        with memoryview(self._pending) as view, view[:size] as block:
            framed = bytes(cramjam.snappy.compress(block))
        self._write(framed[len(STREAM_START) :])
        del self._pending[:size]
