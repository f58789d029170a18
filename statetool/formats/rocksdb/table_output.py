"""Parts of RocksDB table files as they are written: blocks with checksums, meta blocks, compression."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import cramjam

from statetool.formats.rocksdb.manifest import varint
from statetool.formats.stream import OpenStream
from statetool.kernels.rocksdb.checksums import checksum_of_block

Write: TypeAlias = Callable[[bytes | memoryview], object]
_COPY_BYTES: Final = 8 << 20


def _deflate(plain: bytes) -> bytes:
    """Return the bytes without a header, for a window of 16 KiB."""
    compressor = zlib.compressobj(wbits=-14)
    return compressor.compress(plain) + compressor.flush()


#: Compressions by the property ``rocksdb.compression``: the byte of a block, and whether the uncompressed size precedes its bytes.
_COMPRESSIONS: Final[dict[bytes, tuple[int, bool, Callable[[bytes], object]]]] = {
    b"Snappy": (1, False, cramjam.snappy.compress_raw),
    b"LZ4": (4, True, lambda plain: cramjam.lz4.compress_block(plain, store_size=False)),
    b"LZ4HC": (5, True, lambda plain: cramjam.lz4.compress_block(plain, store_size=False, mode="high_compression")),
    b"ZSTD": (7, True, cramjam.zstd.compress),
    b"Zlib": (2, True, _deflate),
    b"BZip2": (3, True, bz2.compress),
}


class TableOutput:
    """Output of a file, with its size so far."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.size_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        self._write(data)
        self.size_bytes += len(data)

    def copy(self, f: OpenStream, start: int, stop: int) -> None:
        """Append bytes of another file."""
        for at in range(start, stop, _COPY_BYTES):
            self.write(f.read_at(at, min(_COPY_BYTES, stop - at)))

    def block(self, body: bytes, kind: int, checksum: int) -> tuple[int, int]:
        """Append a block with its trailer, and return its offset and size."""
        place = self.size_bytes, len(body)
        ended = body + bytes([kind])
        self.write(ended + checksum_of_block(ended, checksum).to_bytes(4, "little"))
        return place


def compress_block(plain: bytes, compression: bytes) -> tuple[bytes, int]:
    """Return the stored bytes of a block and its compression byte: compressed if that helps."""
    if (found := _COMPRESSIONS.get(compression)) is not None:
        kind, is_sized, compress = found
        compressed = (varint(len(plain)) if is_sized else b"") + bytes(compress(plain))  # type: ignore[call-overload]
        if len(compressed) < len(plain) - len(plain) // 8:
            return compressed, kind
    return plain, 0


def meta_block(entries: dict[bytes, bytes]) -> bytes:
    """Return a block of names and values, in which each entry is a restart point."""
    out, restarts = bytearray(), b""
    for name, value in sorted(entries.items()):
        restarts += len(out).to_bytes(4, "little")
        out += varint(0) + varint(len(name)) + varint(len(value)) + name + value
    return bytes(out) + restarts + len(entries).to_bytes(4, "little")


def footer_places(metaindex: tuple[int, int], index: tuple[int, int]) -> bytes:
    """Return the part of a footer with the locations of the metaindex and of the index."""
    return b"".join(map(varint, (*metaindex, *index))).ljust(40, b"\0")
