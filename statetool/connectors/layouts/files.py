"""Files (``org.apache.flink.connector.file.src``).

Split, version 1 (``FileSourceSplitSerializer``): utf id, path, i8 offset, i8 length, i8 modification time, i8 file size, i4 count and utf
hosts, boolean has position [i8 offset, i8 records to skip]. Offset -1 (``CheckpointedPosition.NO_OFFSET``): the position is a number of
records only. Path: boolean not null [nullable scheme, nullable user info, nullable host, i4 port, nullable path, nullable query, nullable
fragment], each nullable string a boolean not null and ``StringValue``'s form.

Enumerator, version 1 (``PendingSplitsCheckpointSerializer``), **little-endian**: i4 0xDEADBEEF, i4 version of splits, i4 number of splits,
i4 number of paths; unassigned splits (i4 length, bytes); paths already seen (i4 length, UTF-8) if the folder is monitored.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from statetool.connectors.connector import SplitConnector
from statetool.connectors.model import Enumerator, KnownSplit, Split, SplitPosition
from statetool.connectors.wire import decode_text, known_version, read_all
from statetool.errors import OptionError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.typeutils.basic import read_string, write_string

_MAGIC: Final = 0xDEADBEEF
_HEAD: Final = struct.Struct("<Iiii")
_LENGTH: Final = struct.Struct("<i")
_NO_OFFSET: Final = -1
PATHS: Final = "already_processed_paths"
_POSITION: Final = re.compile(r"(\d+)?(?:\+(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePath:
    """A path as the parts of a URI."""

    scheme: str | None
    user_info: str | None
    host: str | None
    port: int
    path: str | None
    query: str | None
    fragment: str | None

    def __str__(self) -> str:
        """The path as Flink writes it."""
        authority = self.host or ""
        if authority:
            authority = f"{self.user_info}@{authority}" if self.user_info else authority
            authority = f"//{authority}:{self.port}" if self.port >= 0 else f"//{authority}"
        text = f"{self.scheme}:" if self.scheme else ""
        return f"{text}{authority}{self.path or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """Position of a reader: a byte offset (-1: none), and the number of records read after it."""

    offset: int
    records_to_skip: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSplit:
    """A range of a file."""

    split_id: str
    path: FilePath | None
    offset: int
    length: int
    file_modification_time: int
    file_size: int
    hosts: tuple[str, ...]
    reader_position: FilePosition | None


class FileSource(SplitConnector):
    """Flink's ``FileSource``."""

    name: ClassVar[str] = "file-source"
    split_versions: ClassVar[frozenset[int]] = frozenset({1})
    enumerator_versions: ClassVar[frozenset[int]] = frozenset({1})
    markers: ClassVar[tuple[str, ...]] = ("earliest",)

    def place(self, split: FileSplit) -> SplitPosition:
        at = split.reader_position
        is_whole_file = split.offset == 0 and split.length == split.file_size
        return SplitPosition(
            source=str(split.path),
            start=str(split.offset),
            position=None if at is None else _text(at),
            stop=None if is_whole_file else str(split.offset + split.length),
            marker="earliest" if at is None else None,
        )

    def at(self, split: FileSplit, position: str) -> FileSplit:
        if position == "earliest":
            return replace(split, reader_position=None)
        parsed = _POSITION.fullmatch(position)
        if parsed is None or not position:
            raise OptionError(
                f"{position!r} is not a valid position in a file",
                hint="pass a byte offset, OFFSET+RECORDS, +RECORDS, or earliest",
            )
        offset = _NO_OFFSET if parsed[1] is None else int(parsed[1])
        if offset > split.offset + split.length:
            raise OptionError(f"offset {offset} is past the end of split {split.split_id!r}")
        return replace(split, reader_position=FilePosition(offset=offset, records_to_skip=int(parsed[2] or 0)))

    def added(self, split_id: str, position: str, others: Sequence[Split]) -> FileSplit:
        raise OptionError(
            "splits of files cannot be added",
            hint="remove the split of the file: a source that monitors a folder lists it again",
        )

    def read_split(self, version: int, c: Cursor) -> FileSplit:
        return FileSplit(
            split_id=c.utf(),
            path=_read_path(c),
            offset=c.i8(),
            length=c.i8(),
            file_modification_time=c.i8(),
            file_size=c.i8(),
            hosts=tuple(c.utf() for _ in range(c.count("hosts", at_least=2))),
            reader_position=FilePosition(offset=c.i8(), records_to_skip=c.i8()) if c.bool() else None,
        )

    def write_split(self, version: int, split: FileSplit) -> bytes:
        out = Output()
        out.utf(split.split_id)
        _write_path(out, split.path)
        for number in (split.offset, split.length, split.file_modification_time, split.file_size):
            out.i8(number)
        out.i4(len(split.hosts))
        for host in split.hosts:
            out.utf(host)
        out.bool(split.reader_position is not None)
        if split.reader_position is not None:
            out.i8(split.reader_position.offset)
            out.i8(split.reader_position.records_to_skip)
        return bytes(out)

    def read_enumerator(self, version: int, c: Cursor) -> Enumerator:
        magic, split_version, split_count, path_count = _HEAD.unpack(c.take(_HEAD.size, "enumerator"))
        if magic != _MAGIC:
            raise c.fail("expected the magic number of pending splits (EF BE AD DE)", pos=c.pos - _HEAD.size)
        known_version(split_version, self.split_versions, "a split in the enumerator")
        if split_count < 0 or path_count < 0 or split_count + path_count > c.left // _LENGTH.size:
            raise c.fail(f"{split_count} splits and {path_count} paths do not fit the {c.left} bytes left")
        waiting = (
            read_all(_read_little(c), lambda inner: self.read_split(1, inner), "a split") for _ in range(split_count)
        )
        splits = tuple(KnownSplit(split=s, status="unassigned") for s in waiting)
        return Enumerator(splits=splits, facts={PATHS: [decode_text(c, _read_little(c)) for _ in range(path_count)]})

    def write_enumerator(self, version: int, enumerator: Enumerator) -> bytes:
        paths = enumerator.facts[PATHS]
        out = bytearray(_HEAD.pack(_MAGIC, 1, len(enumerator.splits), len(paths)))
        items = [self.write_split(1, s.split) for s in enumerator.splits] + [p.encode() for p in paths]
        for item in items:
            out += _LENGTH.pack(len(item)) + item
        return bytes(out)


def _text(at: FilePosition) -> str:
    offset = "" if at.offset == _NO_OFFSET else str(at.offset)
    return f"{offset}+{at.records_to_skip}" if at.records_to_skip or not offset else offset


def _read_little(c: Cursor) -> bytes:
    (length,) = _LENGTH.unpack(c.take(_LENGTH.size))
    return c.take(length)


def _read_nullable(c: Cursor) -> str | None:
    return read_string(c) if c.bool() else None


def _write_nullable(out: Output, text: str | None) -> None:
    out.bool(text is not None)
    if text is not None:
        write_string(out, text)


def _read_path(c: Cursor) -> FilePath | None:
    if not c.bool():
        return None
    return FilePath(
        scheme=_read_nullable(c),
        user_info=_read_nullable(c),
        host=_read_nullable(c),
        port=c.i4(),
        path=_read_nullable(c),
        query=_read_nullable(c),
        fragment=_read_nullable(c),
    )


def _write_path(out: Output, path: FilePath | None) -> None:
    out.bool(path is not None)
    if path is None:
        return
    for text in (path.scheme, path.user_info, path.host):
        _write_nullable(out, text)
    out.i4(path.port)
    for text in (path.path, path.query, path.fragment):
        _write_nullable(out, text)
