"""RocksDB's block-based table files (``.sst``), format versions 0 to 5, read by kernels.

A file consists of blocks, each with a trailer (u8 compression, u32 checksum), and a footer of 53 bytes: u8 checksum type, varint offset and
size of the metaindex block and of the index block, padding, u32 format version, u64 magic number, little-endian. (Version 0,
has 48 bytes with another magic number, and lacks checksum type and version.) The metaindex names the properties and other meta blocks. The
index has for each data block a key that does not sort before its last one.

Features that only RocksDB itself should read (range deletions, compression dictionaries, ingested files, newer formats) raise
:class:`~statetool.formats.rocksdb.manifest.UnsupportedManifestError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from statetool.errors import FormatError
from statetool.formats.rocksdb.manifest import UnsupportedManifestError
from statetool.formats.rocksdb.stored_blocks import Reader, StoredBlocks, joined_ranges, uncompress
from statetool.formats.stream import OpenStream, Part, ReadAhead, Stream, tail_range
from statetool.io.cursor import Cursor
from statetool.kernels.core.arrays import Bytes, Int64s, Mask, frozen
from statetool.kernels.core.codes import OK
from statetool.kernels.rocksdb.blocks import BAD_SHARED, BLOCK_MESSAGES, TRAILER_BYTES, decode_index, read_varint
from statetool.kernels.rocksdb.checksums import CRC32C, XXH3
from statetool.kernels.rocksdb.sorted_keys import first_not_before, mark_blocks

#: Size of the footer.
FOOTER_BYTES: Final = 53
#: Names of the meta block with properties, and of the property that is the type of the index.
PROPERTIES: Final = b"rocksdb.properties"
INDEX_TYPE: Final = b"rocksdb.block.based.table.index.type"
#: Bytes of the tag after each key: sequence number and kind of the entry.
TAG_BYTES: Final = 8
#: Bytes up to which a local file is read at once when it is opened. To open it again takes longer.
_WHOLE_BYTES: Final = 16 << 10
#: The last bytes of a file; those of format version 0.
MAGIC: Final = (0x88E241B785F4CFF7).to_bytes(8, "little")
OLD_MAGIC: Final = (0xDB4775248B80FB57).to_bytes(8, "little")
# Other compressions stored the size of a block differently.
_OLD_COMPRESSIONS: Final = {b"NoCompression", b"Snappy"}
_BINARY_SEARCH, _HASH_SEARCH, _TWO_LEVEL = 0, 1, 2
_UNUSUAL_BLOCKS: Final = {b"rocksdb.range_del", b"rocksdb.compression_dict"}
_UNUSUAL_PROPERTIES: Final = {b"rocksdb.external_sst_file.version", b"rocksdb.external_sst_file.global_seqno"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Data blocks of a file: for each a key that does not sort before its last one, and its location (without trailer)."""

    keys: Bytes
    key: Int64s
    key_end: Int64s
    offset: Int64s
    size: Int64s

    def first_not_before(self, wanted: bytes, *, behind: bool = False) -> int:
        """Return the first block that may contain ``wanted`` or later keys (with ``behind``: only later ones)."""
        raw = np.frombuffer(wanted, dtype=np.uint8)
        return int(first_not_before(self.keys, self.key, self.key_end, raw, int(behind)))

    def take(self, index: Int64s) -> Blocks:
        """Return the blocks at ascending indexes."""
        return Blocks(
            keys=self.keys, key=self.key[index], key_end=self.key_end[index], offset=self.offset[index],
            size=self.size[index],
        )  # fmt: skip

    def marked(self, keys: Bytes, key: Int64s, key_end: Int64s) -> Mask:
        """Return a mask of the blocks that may contain keys starting with one of several prefixes."""
        marked = np.zeros(len(self.size), dtype=np.uint8)
        mark_blocks(self.keys, self.key, self.key_end, keys, key, key_end, marked)
        return marked.astype(np.bool_)

    def last_key(self, index: int) -> bytes:
        """Return the index key of a block, which does not sort before its last key."""
        return bytes(self.keys[self.key[index] : self.key_end[index]])


def tail_of(stream: Stream) -> Part:
    """Return the last bytes of a remote file, which usually contain the index; those of a small file are not needed separately."""
    if stream.is_far and not stream.is_small:
        return stream, *tail_range(stream.size_bytes)
    return stream, stream.size_bytes, 0


class _Tail:
    """Reader of an open file. The last bytes of a remote file, where each read is a request, are read once."""

    def __init__(self, f: OpenStream) -> None:
        self._f = f
        _, self._start, length = tail_of(f.stream)
        self.bytes = f.read_kept(self._start, length)

    def read_at(self, offset: int, length: int) -> memoryview:
        """Read exactly ``length`` bytes from ``offset`` on."""
        at = offset - self._start
        if at >= 0 and at + length <= len(self.bytes):
            return self.bytes[at : at + length]
        return self._f.read_at(offset, length)


class SortedTable:
    """One table file. Footer, properties and index are read at construction.

    Raises
    ------
    FormatError
        Damaged; with file and offset.
    UnsupportedManifestError
    """

    def __init__(self, stream: Stream) -> None:
        if not stream.is_far and stream.size_bytes <= _WHOLE_BYTES:
            with stream.open() as opened:
                stream = replace(stream, inline=bytes(opened.read_at(0, stream.size_bytes)))
        self.stream = stream
        with stream.open() as opened:
            f = _Tail(opened)
            self._tail = f.bytes
            try:
                self.checksum, self._metaindex, index = self._footer(f)
                properties = numeric_properties(self._meta(f)[1])
                self._tagged = not properties.get(b"rocksdb.index.key.is.user.key", 0)
                self._delta = bool(properties.get(b"rocksdb.index.value.is.delta.encoded", 0))
                self.blocks = self._read_index(f, index, properties)
            except FormatError as error:
                raise error.at(file=stream.file) from None
        raw = properties.get(b"rocksdb.raw.key.size", 0) + properties.get(b"rocksdb.raw.value.size", 0)
        self._ahead: ReadAhead | None = None
        #: The stream with what is read ahead.
        self._opened: OpenStream | None = None
        #: Bytes of keys and values per byte of data blocks.
        self.expansion = max(1.0, raw / max(1, properties.get(b"rocksdb.data.size", 0)))

    def _footer(self, f: Reader) -> tuple[int, tuple[int, int], tuple[int, int]]:
        size = self.stream.size_bytes
        if size < FOOTER_BYTES:
            raise FormatError(f"a table file of {size} bytes").at(offset=self.stream.start)
        raw = bytes(f.read_at(size - FOOTER_BYTES, FOOTER_BYTES))
        if raw[-8:] == OLD_MAGIC:
            raw = bytes([CRC32C]) + raw[5:45] + bytes(4) + MAGIC
        version = int.from_bytes(raw[41:45], "little")
        if raw[45:] != MAGIC or version > 5:
            raise UnsupportedManifestError(f"a table file of another kind or version: {raw[41:].hex()}")
        if raw[0] not in (CRC32C, XXH3):
            raise UnsupportedManifestError(f"checksums of kind {raw[0]}")
        c = Cursor(raw, 1, 41, base=self.stream.start + size - FOOTER_BYTES)
        metaindex = _number(c), _number(c)
        self.version = version
        return raw[0], metaindex, (_number(c), _number(c))

    def _block(self, f: Reader, offset: int, size: int) -> Bytes:
        offsets, sizes = np.array([offset]), np.array([size])
        self._check_places(offsets, sizes, named_at=self.stream.size_bytes - FOOTER_BYTES)
        plain, starts, ends = uncompress([StoredBlocks.read(f, self.stream, offsets, sizes, self.checksum)])
        return frozen(plain[starts[0] : ends[0]])

    def _meta(self, f: Reader) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """Return the locations of the meta blocks, and the properties, as stored."""
        blocks = dict(_entries(self._block(f, *self._metaindex)))
        if unusual := blocks.keys() & _UNUSUAL_BLOCKS:
            raise UnsupportedManifestError(f"blocks {unusual}")
        handle = blocks.get(PROPERTIES)
        if handle is None:
            raise UnsupportedManifestError("a table file without properties")
        properties = dict(_entries(self._block(f, *block_place(handle))))
        for name, value in properties.items():
            if name in _UNUSUAL_PROPERTIES:
                raise UnsupportedManifestError(f"an ingested file: {name.decode()}")
            if name == b"rocksdb.compression" and self.version < 2 and value not in _OLD_COMPRESSIONS:
                raise UnsupportedManifestError(f"compression {value.decode()} of an old version")
        return blocks, properties

    def meta(self) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
        """Read the locations of the meta blocks, and the properties, as stored."""
        with self.stream.open() as f:
            try:
                return self._meta(f)
            except FormatError as error:
                raise error.at(file=self.stream.file) from None

    @property
    def index_form(self) -> tuple[int, int]:
        """Return the bytes of the tag of each key in the index, and 1 if values of the index are delta-encoded."""
        return TAG_BYTES if self._tagged else 0, int(self._delta)

    def _read_index(self, f: Reader, index: tuple[int, int], properties: dict[bytes, int]) -> Blocks:
        if properties.get(b"rocksdb.num.range-deletions", 0):
            raise UnsupportedManifestError("range deletions")
        kind = properties.get(INDEX_TYPE, _BINARY_SEARCH)
        if kind not in (_BINARY_SEARCH, _HASH_SEARCH, _TWO_LEVEL):
            raise UnsupportedManifestError(f"an index of type {kind}")
        blocks = self._index_block(f, *index)
        if kind == _TWO_LEVEL:
            places = zip(blocks.offset.tolist(), blocks.size.tolist(), strict=True)
            partitions = [self._index_block(f, offset, size) for offset, size in places]
            blocks = _join(partitions) if partitions else blocks
        self._check_places(blocks.offset, blocks.size, named_at=index[0])
        return blocks

    def _check_places(self, offsets: Int64s, sizes: Int64s, *, named_at: int) -> None:
        """Raise an error for blocks after the end of the file; sums of damaged numbers may exceed 64 bits."""
        last = self.stream.size_bytes - TRAILER_BYTES
        if ((offsets < 0) | (sizes < 0) | (offsets > last) | (sizes > last - np.minimum(offsets, last))).any():
            raise FormatError("a block beyond the end of the file").at(offset=self.stream.start + named_at)

    def _index_block(self, f: Reader, offset: int, size: int) -> Blocks:
        plain = self._block(f, offset, size)
        capacity = len(plain) // 3 + 1
        key, key_end, where, length = (np.empty(capacity, dtype=np.int64) for _ in range(4))
        room = 2 * len(plain) + 64
        while True:
            keys = np.empty(room, dtype=np.uint8)
            code, n = decode_index(
                plain, 0, len(plain), int(self._tagged), int(self._delta), keys, key, key_end, where, length
            )  # fmt: skip
            if code != BAD_SHARED or room > len(plain) * len(plain):
                break
            room *= 4
        if code != OK:
            raise FormatError(f"index block: {BLOCK_MESSAGES[int(code)]}").at(offset=self.stream.start + offset)
        return Blocks(
            keys=frozen(keys[: int(key_end[n - 1]) + 8 if n else 0].copy()), key=key[:n].copy(), key_end=key_end[:n].copy(),
            offset=where[:n].copy(), size=length[:n].copy(),
        )  # fmt: skip

    def reading_ahead(self, low: bytes, high: bytes, most_bytes: int) -> SortedTable:
        """Return the table for one ascending read of keys from ``low`` to ``high``, which requests up to ``most_bytes`` ahead if it is remote."""
        if not self.stream.is_far or self.stream.is_small or not len(self.blocks.size):
            return self
        wanted = slice(self.blocks.first_not_before(low), self.blocks.first_not_before(high) + 1)
        ranges = joined_ranges(self.blocks.offset[wanted], self.blocks.size[wanted] + TRAILER_BYTES)
        table = copy(self)
        table._ahead = ReadAhead(self.stream, ranges, most_bytes, tail=self._tail)
        table._opened = self.stream.open(table._ahead)
        return table

    @property
    def reads_ahead(self) -> bool:
        """Whether it reads ahead: it is large, and in an object store."""
        return self._ahead is not None

    def begin(self) -> None:
        """Request bytes of one that reads ahead before they are needed."""
        if self._ahead is not None:
            self._ahead.begin()

    def request(self, numbers: Int64s) -> None:
        """Request the data blocks that are read next, in one range; only for one that reads ahead."""
        if self._ahead is not None:
            first, last = int(numbers[0]), int(numbers[-1])
            at = int(self.blocks.offset[first])
            end = int(self.blocks.offset[last] + self.blocks.size[last]) + TRAILER_BYTES
            if len(joined_ranges(self.blocks.offset[numbers], self.blocks.size[numbers] + TRAILER_BYTES)) == 1:
                self._ahead.request(self.stream.start + at, end - at)

    def close(self) -> None:
        """Give up all requests of one that reads ahead."""
        if self._ahead is not None:
            self._ahead.close()

    def restricted(self, wanted: Mask) -> SortedTable:
        """Return the table with some of its blocks."""
        table = copy(self)
        table.blocks = self.blocks.take(np.flatnonzero(wanted))
        return table

    def stored(self, numbers: Int64s) -> StoredBlocks:
        """Read data blocks by their ascending indexes.

        Raises
        ------
        FormatError
            Damaged; with file and offset of the block.
        """
        with nullcontext(self._opened) if self._opened is not None else self.stream.open() as f:
            return StoredBlocks.read(
                f, self.stream, self.blocks.offset[numbers], self.blocks.size[numbers], self.checksum
            )


def numeric_properties(properties: Mapping[bytes, bytes]) -> dict[bytes, int]:
    """Return the properties that are numbers."""
    numbers = {}
    for name, value in properties.items():
        if name == INDEX_TYPE:
            numbers[name] = int.from_bytes(value, "little")
        elif 0 < len(value) <= 10 and value[-1] < 0x80 and all(b >= 0x80 for b in value[:-1]):
            numbers[name] = _number(Cursor(value))
    return numbers


def block_place(handle: bytes) -> tuple[int, int]:
    """Return the offset and size of a block, as stored in the metaindex."""
    c = Cursor(handle)
    return _number(c), _number(c)


def _entries(block: Bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of a small block without tags."""
    raw = bytes(block)
    if len(raw) < 4:
        raise FormatError("a meta block without its end")
    end = len(raw) - 4 - 4 * int.from_bytes(raw[-4:], "little")
    if end < 0:
        raise FormatError("the restart points of a meta block do not fit")
    c = Cursor(raw, 0, end)
    name = b""
    while c.left:
        shared, fresh, size = _number(c), _number(c), _number(c)
        if shared > len(name):
            raise c.fail("a name in a meta block shares more than there is")
        name = name[:shared] + c.take(fresh, "a name")
        yield name, c.take(size, "a value")


def _join(partitions: list[Blocks]) -> Blocks:
    shift = np.cumsum([0, *(len(p.keys) for p in partitions)])[:-1].tolist()
    return Blocks(
        keys=frozen(np.concatenate([p.keys for p in partitions])),
        key=np.concatenate([p.key + s for p, s in zip(partitions, shift, strict=True)]),
        key_end=np.concatenate([p.key_end + s for p, s in zip(partitions, shift, strict=True)]),
        offset=np.concatenate([p.offset for p in partitions]),
        size=np.concatenate([p.size for p in partitions]),
    )


def _number(c: Cursor) -> int:
    value, behind = read_varint(np.frombuffer(c.data, dtype=np.uint8), c.pos, c.end)
    if behind < 0 or value < 0:
        raise c.fail("a number that does not end")
    c.pos = int(behind)
    return int(value)
