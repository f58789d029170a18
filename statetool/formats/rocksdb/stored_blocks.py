"""Stored blocks of RocksDB table files: read, verified by checksum, uncompressed."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import cramjam
import numpy as np

from statetool.errors import FormatError, UnsupportedError
from statetool.formats.stream import Stream
from statetool.kernels.core.arrays import Bytes, Int64s, frozen
from statetool.kernels.rocksdb.blocks import TRAILER_BYTES, plain_sizes
from statetool.kernels.rocksdb.checksums import first_bad_block
from statetool.kernels.rocksdb.snappy import plain_blocks

#: Maximum gap between blocks of a remote file that are read with one request.
_FAR_GAP: Final = 256 << 10
_NONE, _SNAPPY, _ZLIB, _BZIP2, _LZ4, _LZ4HC, _ZSTD = 0, 1, 2, 3, 4, 5, 7
# Maximum number of bytes that a compression makes from one byte; a stored size above that is damage.
_MAX_EXPANSION: Final = np.zeros(256, dtype=np.int64)
_MAX_EXPANSION[[_SNAPPY, _ZLIB, _BZIP2, _LZ4, _LZ4HC, _ZSTD]] = [22, 1040, 50_000, 256, 256, 100_000]
_DAMAGED: Final = "a compressed block of a table file is damaged"
#: Number of blocks from which a kernel uncompresses them together.
_MANY: Final = 16


class Reader(Protocol):
    """An open stream, or bytes of it that were already read."""

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read exactly ``length`` bytes from ``offset`` on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlocks:
    """Stored blocks of one file.

    Block ``i`` is located at ``offsets[i]`` of the stream, and in ``raw`` from ``starts[i]`` to ``ends[i]``, where its trailer begins. Its
    compressed bytes start at ``bodies[i]``, and it has ``sizes[i]`` bytes uncompressed.
    """

    stream: Stream
    offsets: Int64s
    raw: Bytes
    starts: Int64s
    ends: Int64s
    kinds: Bytes
    bodies: Int64s
    sizes: Int64s

    @classmethod
    def read(cls, f: Reader, stream: Stream, offsets: Int64s, sizes: Int64s, checksum: int) -> StoredBlocks:
        """Read blocks at ascending offsets, whose trailers have checksums of the given kind.

        Raises
        ------
        FormatError
            Damaged; with file and offset of the block.
        UnsupportedError
            A compression that RocksDB does not write.
        """
        gap = _FAR_GAP if stream.is_far else 0
        raw, starts = _read_ranges(f, stream, offsets, sizes + TRAILER_BYTES, gap=gap)
        ends = starts + sizes
        kinds = raw[ends]
        bodies, plain = np.empty_like(starts), np.empty_like(starts)
        blocks = cls(
            stream=stream, offsets=offsets, raw=raw, starts=starts, ends=ends, kinds=kinds, bodies=bodies, sizes=plain
        )
        bad = first_bad_block(raw, starts, ends, checksum)
        if bad >= 0:
            raise blocks.failure(bad, "a block of a table file has a wrong checksum", hint="the file is damaged")
        for kind in np.unique(kinds).tolist():
            if kind != _NONE and not _MAX_EXPANSION[kind]:
                raise UnsupportedError(f"blocks with RocksDB's compression {kind}").at(file=stream.file)
        bad = plain_sizes(raw, starts, ends, kinds, _MAX_EXPANSION, plain, bodies)
        if bad >= 0:
            raise blocks.failure(bad, f"{_DAMAGED}: {ends[bad] - starts[bad]} bytes claim to be too many")
        return blocks

    def failure(self, index: int, words: str, hint: str = "") -> FormatError:
        """Return the error for a block."""
        return FormatError(words, hint=hint).at(
            file=self.stream.file, offset=self.stream.start + int(self.offsets[index])
        )

    def write(self, out: Bytes, starts: Int64s, stops: Int64s) -> None:
        """Write the uncompressed bytes of each block into ``out``, from ``starts`` to ``stops``.

        Raises
        ------
        FormatError
            Damaged; with file and offset of the block.
        """
        few = len(self.kinds) < _MANY
        if not few:
            bad = plain_blocks(self.raw, self.bodies, self.ends, self.kinds, out, starts, stops)
            if bad >= 0:
                raise self.failure(
                    bad, f"{_DAMAGED}: its bytes are no Snappy format of {stops[bad] - starts[bad]} bytes"
                )
        view, target = self.raw.data, out.data
        for i in np.flatnonzero(few | (self.kinds > _SNAPPY)).tolist():
            block = target[starts[i] : stops[i]]
            try:
                size = _uncompress(int(self.kinds[i]), view[self.bodies[i] : self.ends[i]], block)
            except (cramjam.DecompressionError, zlib.error, OSError, ValueError) as error:
                raise self.failure(i, f"{_DAMAGED}: {error}") from error
            if size != len(block):
                raise self.failure(i, f"{_DAMAGED}: {size} bytes instead of {len(block)}")


def uncompress(files: Sequence[StoredBlocks]) -> tuple[Bytes, Int64s, Int64s]:
    """Return one buffer with the blocks of all files, and the start and end of each block in it.

    Raises
    ------
    FormatError
        Damaged; with file and offset of the block.
    """
    if len(files) == 1 and not files[0].kinds.any():
        return files[0].raw, files[0].starts, files[0].ends
    sizes = np.concatenate([f.sizes for f in files])
    stops = np.cumsum(sizes)
    starts = stops - sizes
    plain = np.empty(int(stops[-1]) if len(stops) else 0, dtype=np.uint8)
    first = 0
    for f in files:
        own = slice(first, first := first + len(f.sizes))
        f.write(plain, starts[own], stops[own])
    return frozen(plain), starts, stops


def _uncompress(kind: int, body: memoryview, target: memoryview) -> int:
    """Uncompress one block and return its size. A block with another size than ``target`` is not written, or raises its library's error."""
    if kind == _SNAPPY:
        return int(cramjam.snappy.decompress_raw_into(body, target))
    if kind in (_LZ4, _LZ4HC):
        return int(cramjam.lz4.decompress_block_into(body, target, output_len=len(target)))
    if kind == _ZSTD:
        return int(cramjam.zstd.decompress_into(body, target))
    block: bytes | memoryview = body
    if kind == _ZLIB:
        block = zlib.decompressobj(-14).decompress(body, len(target) + 1)
    elif kind == _BZIP2:
        block = bz2.BZ2Decompressor().decompress(body, len(target) + 1)
    if len(block) == len(target):
        target[:] = block
    return len(block)


def joined_ranges(offsets: Int64s, sizes: Int64s) -> list[tuple[int, int]]:
    """Return offset and length of the ranges of a remote file that contain ascending ranges, without long gaps."""
    edges = np.concatenate(
        [[0], np.flatnonzero(offsets[1:] - offsets[:-1] - sizes[:-1] > _FAR_GAP) + 1, [len(offsets)]]
    )
    first, last = edges[:-1], edges[1:] - 1
    lengths = offsets[last] + sizes[last] - offsets[first]
    return list(zip(offsets[first].tolist(), lengths.tolist(), strict=True)) if len(offsets) else []


def _read_ranges(f: Reader, stream: Stream, offsets: Int64s, sizes: Int64s, *, gap: int) -> tuple[Bytes, Int64s]:
    """Read ascending ranges, joining those at most ``gap`` bytes apart into one read; return the bytes and the start of each range."""
    if not len(offsets):
        return frozen(np.empty(0, dtype=np.uint8)), offsets
    between = offsets[1:] - offsets[:-1] - sizes[:-1]
    if (between < 0).any():
        at = stream.start + int(offsets[int(np.flatnonzero(between < 0)[0]) + 1])
        raise FormatError("the index names blocks that overlap").at(file=stream.file, offset=at)
    cuts = np.flatnonzero(between > gap) + 1
    first, last = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(offsets)]]) - 1
    lengths = offsets[last] + sizes[last] - offsets[first]
    reads = [
        np.frombuffer(f.read_at(at, n), dtype=np.uint8)
        for at, n in zip(offsets[first].tolist(), lengths.tolist(), strict=True)
    ]
    shift = np.cumsum(lengths) - lengths - offsets[first]
    joined = reads[0] if len(reads) == 1 else frozen(np.concatenate(reads))
    return joined, offsets + np.repeat(shift, last - first + 1)
