"""RocksDB's MANIFEST: the column families, and the table files of each.

A log of records in blocks of 32 KiB: u32 masked CRC-32C of type and data, u16 size, u8 type (1 full, 2 first, 3 middle, 4 last
fragment), data; all little-endian. A record is a version edit: varint tags with their fields. Follows ``VersionEdit``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from statetool.errors import FormatError
from statetool.io.cursor import Cursor
from statetool.kernels.checksums import masked_crc32c

_BLOCK: Final = 32768
_HEADER: Final = 7
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_BYTEWISE: Final = b"leveldb.BytewiseComparator"

_COMPARATOR, _COMPACT_CURSOR, _DELETED_FILE = 1, 5, 6
_NUMBERS: Final = {2, 3, 4, 9, 10, 203, 300}
_NEW_FILES: Final = {7, 100, 102, 103}
_COLUMN_FAMILY, _ADD_FAMILY, _DROP_FAMILY = 200, 201, 202
_MAY_BE_IGNORED: Final = 1 << 13
_NEW_FILE_END, _OLDEST_BLOB_FILE, _PATH_ID = 1, 4, 65
_NEW_FILE_MUST_BE_KNOWN: Final = 1 << 6


class UnsupportedManifestError(Exception):
    """A file that only RocksDB itself can read; never leaves this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One table file: its number, size, first and last user key, and its largest sequence number if the manifest stores it."""

    number: int
    level: int
    size_bytes: int
    smallest: bytes
    largest: bytes
    largest_sequence: int | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.number:06d}.sst"


@dataclass(slots=True)
class _Family:
    name: str
    files: dict[tuple[int, int], TableFile] = field(default_factory=dict)


def read_manifest(data: bytes) -> dict[str, tuple[TableFile, ...]]:
    """Return the table files of each column family.

    Raises
    ------
    FormatError
        Damaged.
    UnsupportedManifestError
        A feature that Flink's RocksDB does not write.
    """
    families = {0: _Family("default")}
    for record in _records(data):
        _apply(record, families)
    return {f.name: tuple(f.files[k] for k in sorted(f.files)) for f in families.values()}


def _records(data: bytes) -> Iterator[Cursor]:
    fragments: list[bytes] = []
    at = 0
    while at < len(data):
        if _BLOCK - at % _BLOCK < _HEADER:
            at += _BLOCK - at % _BLOCK
            continue
        header = data[at : at + _HEADER]
        size, kind = int.from_bytes(header[4:6], "little"), header[6] if len(header) == _HEADER else 0
        body = data[at + _HEADER : at + _HEADER + size]
        if len(header) < _HEADER or len(body) < size or at % _BLOCK + _HEADER + size > _BLOCK:
            raise FormatError("a record of the manifest is cut off").at(offset=at)
        if kind > _LAST or kind == 0:
            raise UnsupportedManifestError(f"a record of type {kind}")
        if masked_crc32c(bytes([kind]) + body) != int.from_bytes(header[:4], "little"):
            raise FormatError("a record of the manifest has a wrong checksum").at(offset=at)
        if (kind in (_WHOLE, _FIRST)) == bool(fragments):
            raise FormatError("pieces of a record of the manifest do not follow each other").at(offset=at)
        fragments.append(body)
        at += _HEADER + size
        if kind in (_WHOLE, _LAST):
            yield Cursor(b"".join(fragments), base=at - size)
            fragments = []
    if fragments:
        raise FormatError("the last record of the manifest is cut off").at(offset=at)


def _apply(c: Cursor, families: dict[int, _Family]) -> None:
    """Apply one version edit."""
    number = 0
    added: list[TableFile] = []
    deleted: list[tuple[int, int]] = []
    new_name: str | None = None
    dropped = False
    while c.left:
        tag = c.varint()
        if tag == _COMPARATOR:
            if _bytes(c) != _BYTEWISE:
                raise UnsupportedManifestError("another comparator")
        elif tag in _NUMBERS:
            _number(c)
        elif tag == _COMPACT_CURSOR:
            _number(c)
            _bytes(c)
        elif tag == _DELETED_FILE:
            deleted.append((_number(c), _number(c)))
        elif tag in _NEW_FILES:
            added.append(_new_file(c, tag))
        elif tag == _COLUMN_FAMILY:
            number = _number(c)
        elif tag == _ADD_FAMILY:
            new_name = _bytes(c).decode("utf-8", "surrogateescape")
        elif tag == _DROP_FAMILY:
            dropped = True
        elif tag & _MAY_BE_IGNORED:
            _bytes(c)
        else:
            raise UnsupportedManifestError(f"a version edit with tag {tag}")
    if new_name is not None:
        families[number] = _Family(new_name)
    if number not in families:
        raise FormatError(f"the manifest names column family {number} before it adds it").at(offset=c.base)
    if dropped:
        del families[number]
        return
    for key in deleted:
        families[number].files.pop(key, None)
    for file in added:
        families[number].files[file.level, file.number] = file


def _new_file(c: Cursor, tag: int) -> TableFile:
    level, number = _number(c), _number(c)
    if tag == 102 and _number(c) != 0:
        raise UnsupportedManifestError("a file in another path")
    size = _number(c)
    smallest, largest = _user_key(c), _user_key(c)
    sequence = None
    if tag != 7:
        _number(c)
        sequence = _number(c)
    while tag == 103 and (custom := _number(c)) != _NEW_FILE_END:
        value = _bytes(c)
        if custom == _OLDEST_BLOB_FILE or (custom == _PATH_ID and value != b"\0"):
            raise UnsupportedManifestError("blob files or a file in another path")
        if custom & _NEW_FILE_MUST_BE_KNOWN and custom != _PATH_ID:
            raise UnsupportedManifestError(f"a file with property {custom}")
    return TableFile(
        number=number, level=level, size_bytes=size, smallest=smallest, largest=largest, largest_sequence=sequence
    )


def _number(c: Cursor) -> int:
    """Read a varint of at most 64 bits."""
    value = shift = 0
    while True:
        b = c.u1()
        value |= (b & 0x7F) << shift
        if b < 0x80:
            return value
        shift += 7
        if shift > 63:
            raise c.fail("a number of more than 64 bits")


def _bytes(c: Cursor) -> bytes:
    return c.take(_number(c), "bytes")


def _user_key(c: Cursor) -> bytes:
    internal = _bytes(c)
    if len(internal) < 8:
        raise c.fail(f"a key of {len(internal)} bytes in the manifest")
    return internal[:-8]
