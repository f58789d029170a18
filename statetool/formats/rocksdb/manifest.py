"""RocksDB's MANIFEST: the column families, and the table files of each; read, and written after table files have changed.

A log of records in blocks of 32 KiB: u32 masked CRC-32C of type and data, u16 size, u8 type (1 full, 2 first, 3 middle, 4 last
fragment), data; all little-endian. A record is a version edit: varint tags with their fields. Follows ``VersionEdit``.

A written manifest has no history: each column family is added once, with its current files, as after RocksDB has opened a database
(``VersionSet::WriteCurrentStateToManifest``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from statetool.errors import FormatError
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.stream import Stream
from statetool.io.cursor import Cursor
from statetool.kernels.rocksdb.checksums import masked_crc32c

_BLOCK: Final = 32768
_HEADER: Final = 7
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
#: Name of the comparator.
BYTEWISE: Final = b"leveldb.BytewiseComparator"

_COMPARATOR, _COMPACT_CURSOR, _DELETED_FILE = 1, 5, 6
_LOG_NUMBER, _ATOMIC_GROUP = 2, 300
_NEXT_FILE, _LAST_SEQUENCE, _PREVIOUS_LOG = 3, 4, 9
_HIGHEST_FAMILY: Final = 203
_NUMBERS: Final = {_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE, _PREVIOUS_LOG, 10, _HIGHEST_FAMILY, _ATOMIC_GROUP}
_NEW_FILES: Final = {7, 100, 102, 103}
_COLUMN_FAMILY, _ADD_FAMILY, _DROP_FAMILY = 200, 201, 202
_MAY_BE_IGNORED: Final = 1 << 13
_DATABASE_ID, _PERSISTS_TIMESTAMPS = _MAY_BE_IGNORED + 1, _MAY_BE_IGNORED + 9
#: Additions and deletions of write-ahead logs, which checkpoints of a database do not have.
_LOGS: Final = {_MAY_BE_IGNORED + n for n in (4, 5, 7, 8)}
_NEW_FILE_END, _OLDEST_BLOB_FILE, _PATH_ID = 1, 4, 65
#: Properties of a file that are not those of its changed copy: its checksum, unique id, and the size of the part after the data blocks.
_OF_UNCHANGED: Final = {7, 8, 12, 15}
_NEW_FILE_MUST_BE_KNOWN: Final = 1 << 6


class UnsupportedManifestError(Exception):
    """A file that only RocksDB itself can read; never leaves this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One table file.

    Attributes
    ----------
    first, last
        First and last key, with their tags.
    sequences
        Smallest and largest sequence number if the manifest stores them.
    properties
        Other properties by number, as stored.
    """

    number: int
    level: int
    size_bytes: int
    first: bytes
    last: bytes
    sequences: tuple[int, int] | None = None
    properties: tuple[tuple[int, bytes], ...] = ()

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.number:06d}.sst"

    @property
    def smallest(self) -> bytes:
        """The first user key."""
        return self.first[:-8]

    @property
    def largest(self) -> bytes:
        """The last user key."""
        return self.last[:-8]

    @property
    def largest_sequence(self) -> int | None:
        """The largest sequence number if the manifest stores it."""
        return None if self.sequences is None else self.sequences[1]

    def changed(self, size_bytes: int, first: bytes, last: bytes) -> TableFile:
        """Return the description of a changed copy with this size, first and last key."""
        properties = tuple(p for p in self.properties if p[0] not in _OF_UNCHANGED)
        return replace(self, size_bytes=size_bytes, first=first, last=last, properties=properties)


@dataclass(slots=True)
class _Family:
    name: str
    log_number: int = 0
    #: Further fields as stored, by tag.
    others: dict[int, bytes] = field(default_factory=dict)
    files: dict[tuple[int, int], TableFile] = field(default_factory=dict)


@dataclass(slots=True)
class Manifest:
    """The content of a manifest: column families by number, and numbers and further fields of the database by tag."""

    families: dict[int, _Family] = field(default_factory=lambda: {0: _Family("default")})
    numbers: dict[int, int] = field(default_factory=dict)
    database_id: bytes | None = None
    #: Tags that may be ignored by a reader, but whose meaning after a change is unknown.
    unknown: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, data: bytes) -> Manifest:
        """Apply all version edits.

        Raises
        ------
        FormatError
            Damaged.
        UnsupportedManifestError
            A feature that this package does not support.
        """
        manifest = cls()
        for record in _records(data):
            manifest._apply(record)
        return manifest

    @classmethod
    def of_new(cls, next_number: int) -> Manifest:
        """Return the manifest of a new database without column families for states, whose entries have sequence number 0."""
        return cls(numbers={_NEXT_FILE: next_number, _LAST_SEQUENCE: 0, _PREVIOUS_LOG: 0})

    def select(self, families: Mapping[str, str], without: Collection[int]) -> Manifest:
        """Return a manifest with some of the column families, and without some of their files, to which others are added.

        Parameters
        ----------
        families
            New names of the column families by their old names.
        without
            Numbers of the files that are left out.

        Raises
        ------
        UnsupportedManifestError
            The manifest has fields of unknown meaning.
        """
        if self.unknown:
            raise UnsupportedManifestError(f"version edits with tags {sorted(self.unknown)}")
        selected = {0: replace(self.families[0], files={})}
        for number, family in self.families.items():
            if number and family.name in families:
                files = {key: file for key, file in family.files.items() if file.number not in without}
                selected[number] = replace(family, name=families[family.name], files=files)
        used = [file.number for family in self.families.values() for file in family.files.values()]
        next_number = max(self.numbers.get(_NEXT_FILE, 0), *(number + 1 for number in used), 1)
        highest = max(self.numbers.get(_HIGHEST_FAMILY, 0), *self.families)
        numbers = {**self.numbers, _NEXT_FILE: next_number, _HIGHEST_FAMILY: highest}
        return replace(self, families=selected, numbers=numbers)

    def take_number(self) -> int:
        """Return the number of a new file."""
        number = self.numbers[_NEXT_FILE]
        self.numbers[_NEXT_FILE] = number + 1
        return number

    def family_number(self, name: str) -> int:
        """Return the number of a column family, which is added if there is none of this name."""
        for number, family in self.families.items():
            if number and family.name == name:
                return number
        number = max(self.numbers.get(_HIGHEST_FAMILY, 0), *self.families) + 1
        if _HIGHEST_FAMILY in self.numbers:
            self.numbers[_HIGHEST_FAMILY] = number
        self.families[number] = _Family(name, log_number=self.families[0].log_number)
        return number

    def add_file(self, family: int, file: TableFile) -> None:
        """Add a table file to a column family, given by its number."""
        self.families[family].files[file.level, file.number] = file

    def files(self) -> dict[str, tuple[TableFile, ...]]:
        """Return the table files of each column family."""
        return {f.name: tuple(f.files[k] for k in sorted(f.files)) for f in self.families.values()}

    def write(self, changed: Mapping[int, TableFile | None]) -> bytes:
        """Return a manifest without history.

        Parameters
        ----------
        changed
            New descriptions of changed files by number, ``None`` to leave a file out.

        Raises
        ------
        UnsupportedManifestError
            The manifest has fields of unknown meaning.
        """
        if self.unknown:
            raise UnsupportedManifestError(f"version edits with tags {sorted(self.unknown)}")
        edits = [] if self.database_id is None else [varint(_DATABASE_ID) + _sized(self.database_id)]
        for number, family in sorted(self.families.items()):
            log = varint(_LOG_NUMBER) + varint(family.log_number)
            of_family = varint(_COLUMN_FAMILY) + varint(number) if number else b""
            name = family.name.encode("utf-8", "surrogateescape")
            added = varint(_ADD_FAMILY) + _sized(name) if number else b""
            others = b"".join(varint(tag) + _sized(value) for tag, value in family.others.items())
            edits.append(varint(_COMPARATOR) + _sized(BYTEWISE) + log + others + of_family + added)
            files = (changed.get(file.number, file) for _, file in sorted(family.files.items()))
            edits.append(log + b"".join(_file_edit(file) for file in files if file is not None) + of_family)
        numbers = b"".join(varint(tag) + varint(value) for tag, value in self.numbers.items())
        edits.append(varint(_LOG_NUMBER) + varint(self.families[0].log_number) + numbers)
        return _write_records(edits)

    def _apply(self, c: Cursor) -> None:
        """Apply one version edit."""
        number = 0
        log_number: int | None = None
        added: list[TableFile] = []
        deleted: list[tuple[int, int]] = []
        others: dict[int, bytes] = {}
        new_name: str | None = None
        dropped = False
        while c.left:
            tag = c.varint()
            if tag == _COMPARATOR:
                if _bytes(c) != BYTEWISE:
                    raise UnsupportedManifestError("another comparator")
            elif tag == _LOG_NUMBER:
                log_number = _number(c)
            elif tag == _ATOMIC_GROUP:
                _number(c)
            elif tag in _NUMBERS:
                self.numbers[tag] = _number(c)
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
            elif tag == _DATABASE_ID:
                self.database_id = _bytes(c)
            elif tag == _PERSISTS_TIMESTAMPS:
                others[tag] = _bytes(c)
            elif tag & _MAY_BE_IGNORED:
                self.unknown |= {tag} - _LOGS
                _bytes(c)
            else:
                raise UnsupportedManifestError(f"a version edit with tag {tag}")
        if new_name is not None:
            self.families[number] = _Family(new_name)
        if number not in self.families:
            raise FormatError(f"the manifest names column family {number} before it adds it").at(offset=c.base)
        if dropped:
            del self.families[number]
            return
        family = self.families[number]
        family.others |= others
        if log_number is not None:
            family.log_number = log_number
        for key in deleted:
            family.files.pop(key, None)
        for file in added:
            family.files[file.level, file.number] = file


def table_streams(files: DatabaseFiles) -> dict[str, Stream]:
    """Return the locations of a database's files by name.

    Raises
    ------
    UnsupportedManifestError
        There are files with entries that no table file has.
    """
    if any(n.endswith((".log", ".blob")) and s.size_bytes for n, s in files.files):
        raise UnsupportedManifestError("log or blob files")
    return dict(files.files)


def open_manifest(database: str, streams: Mapping[str, Stream], manifest: str, data: bytes) -> Manifest:
    """Read the bytes of a manifest, and check that all of its table files are in ``streams``.

    Raises
    ------
    FormatError
        The manifest is damaged, or a file is missing or has another size.
    UnsupportedManifestError
        A feature that this package does not support.
    """
    try:
        content = Manifest.read(data)
    except FormatError as error:
        raise error.at(file=streams[manifest].file) from None
    for family in content.files().values():
        for file in family:
            stream = streams.get(file.name)
            if stream is None:
                raise FormatError(f"{manifest} names {file.name}, which the handle does not have").at(file=database)
            if stream.size_bytes != file.size_bytes:
                raise FormatError(f"{file.name} has {stream.size_bytes} bytes, {manifest} says {file.size_bytes}").at(
                    file=stream.file
                )
    return content


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


def _write_records(records: list[bytes]) -> bytes:
    """Return a log of records."""
    out = bytearray()
    for record in records:
        at, kind = 0, _FIRST
        while at < len(record):
            room = _BLOCK - len(out) % _BLOCK
            if room < _HEADER:
                out += bytes(room)
                room = _BLOCK
            body = record[at : at + room - _HEADER]
            at += len(body)
            if at == len(record):
                kind = _WHOLE if kind == _FIRST else _LAST
            checksum = masked_crc32c(bytes([kind]) + body)
            out += checksum.to_bytes(4, "little") + len(body).to_bytes(2, "little") + bytes([kind]) + body
            kind = _MIDDLE
    return bytes(out)


def _file_edit(file: TableFile) -> bytes:
    """Return the field of a version edit that adds a file (``kNewFile4``)."""
    numbers = (103, file.level, file.number, file.size_bytes)
    if file.sequences is None:
        raise UnsupportedManifestError("a file without sequence numbers")
    smallest, largest = file.sequences
    properties = b"".join(varint(number) + _sized(value) for number, value in file.properties)
    edit = b"".join(map(varint, numbers)) + _sized(file.first) + _sized(file.last)
    return edit + varint(smallest) + varint(largest) + properties + varint(_NEW_FILE_END)


def _new_file(c: Cursor, tag: int) -> TableFile:
    level, number = _number(c), _number(c)
    if tag == 102 and _number(c) != 0:
        raise UnsupportedManifestError("a file in another path")
    size = _number(c)
    first, last = _internal_key(c), _internal_key(c)
    sequences = None if tag == 7 else (_number(c), _number(c))
    properties: list[tuple[int, bytes]] = []
    while tag == 103 and (custom := _number(c)) != _NEW_FILE_END:
        value = _bytes(c)
        if custom == _OLDEST_BLOB_FILE or (custom == _PATH_ID and value != b"\0"):
            raise UnsupportedManifestError("blob files or a file in another path")
        if custom & _NEW_FILE_MUST_BE_KNOWN and custom != _PATH_ID:
            raise UnsupportedManifestError(f"a file with property {custom}")
        properties.append((custom, value))
    return TableFile(
        number=number, level=level, size_bytes=size, first=first, last=last, sequences=sequences,
        properties=tuple(properties),
    )  # fmt: skip


def _number(c: Cursor) -> int:
    """Read a varint of at most 64 bits."""
    pos = c.pos
    if pos < c.end and c.data[pos] < 0x80:  # most numbers have one byte
        c.pos = pos + 1
        return c.data[pos]
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


def _internal_key(c: Cursor) -> bytes:
    internal = _bytes(c)
    if len(internal) < 8:
        raise c.fail(f"a key of {len(internal)} bytes in the manifest")
    return internal


def varint(value: int) -> bytes:
    """Return an unsigned little-endian base-128 number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sized(value: bytes) -> bytes:
    return varint(len(value)) + value
