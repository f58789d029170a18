"""Files: ``FileSink``, and ``StreamingFileSink`` before it.

Bucket (``FileWriterBucketStateSerializer`` 3): i4 0x1E764B79, bucket id (versioned; version 1: **little-endian** i4 length, UTF-8), utf
path of the bucket, i8 creation time of the part in progress (``Long.MAX_VALUE``: none), boolean has a part in progress [versioned].
Versions 1 and 2 (``StreamingFileSink``'s ``BucketState``): then i4 version of pending files, i4 count of checkpoints, each i8 id, i4 count,
files (i4 length, bytes); in 1 files of both kinds are bare recoverables.

Part in progress 2: i4 0xB3A4073D, boolean has path [utf], recoverable (versioned); 1: without the path. Pending file 2: i4 0x2C853C89,
boolean has path [utf], i8 size, recoverable (versioned); 1: without both. Recoverable of a local file, 1: **little-endian** i4 0x1E744B57,
i8 offset, i4 and i4 lengths, UTF-8 target, UTF-8 temporary file. Of Hadoop's file systems, 1: the same after
**little-endian** i4 0xD7436C5E, with URIs. Of S3 (``S3RecoverableSerializer``), 1, all **little-endian**: i4 0x98761432, key of the object and id of
the upload (i4 length, UTF-8), i4 count of parts, each i4 number, i4 length and ETag, i8 bytes in parts, key of the object with the bytes after
them (i4 length, 0: none, UTF-8), i8 their number. That object, ``_NAME_tmp_UUID`` beside the target, is only named here. Recoverables of other
file systems (Google's, Azure's, OSS) stay bytes.

Committable 2 (``FileSinkCommittableSerializer``): i4 0x1E765C80, utf bucket id, boolean has pending file [versioned], boolean has part to
clean up [versioned], boolean has compacted file to remove [utf]; 1: without bucket id and the last one.

Requests of a compactor (``CompactorOperator.RemainingRequestsSerializer`` 1, versioned): i4 0xA946BE83, i4 count, each i8 checkpoint id, i4 version
and i4 count of requests, each i4 length and bytes. They name parts too, and are only counted.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from statetool.connectors.connector import SinkConnector, StateSink
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.model import NamedFile, PendingCommit, SinkState
from statetool.connectors.wire import (
    decode_text,
    known_version,
    read_inner,
    read_version,
    read_versioned,
    whole_versioned,
    write_versioned,
)
from statetool.io.cursor import Cursor
from statetool.io.output import Output

T = TypeVar("T")
BUCKET: Final = 0x1E764B79
_IN_PROGRESS: Final = 0xB3A4073D
_PENDING: Final = 0x2C853C89
COMMITTABLE: Final = 0x1E765C80
#: State of the operator that compacts files.
REQUESTS_STATE: Final = "remaining_requests_raw_state"
_REQUESTS: Final = 0xA946BE83
_LOCAL: Final = struct.Struct("<Iqii")
_LOCAL_MAGIC: Final = 0x1E744B57
_HADOOP_MAGIC: Final = 0xD7436C5E
_S3_MAGIC: Final = struct.pack("<I", 0x98761432)
_LITTLE: Final = struct.Struct("<i")
_LITTLE_LONG: Final = struct.Struct("<q")
_BUCKET_STATES: Final = "bucket-states"
_PART_COUNTER: Final = "max-part-counter"
#: Creation time of a part in progress that a bucket does not have (``Long.MAX_VALUE``).
_NO_PART: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A multipart upload to S3.

    Attributes
    ----------
    key, upload_id, parts
        Key of the object, and what S3 has of it: number and ETag of each part.
    rest_key, rest_bytes
        Key and size of the object with the bytes after the last part. A restored writer reads it.
    """

    key: str
    upload_id: str
    parts: tuple[tuple[int, str], ...]
    rest_key: str | None
    rest_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that is being written, or is complete but not yet visible.

    Attributes
    ----------
    target_file, temp_file, offset
        Final name, current name, and number of bytes written; ``None`` on other file systems than local ones and Hadoop's.
    path, size
        Stored by newer versions only.
    recoverable
        Version and bytes of the recoverable of another file system.
    """

    target_file: str | None = None
    temp_file: str | None = None
    offset: int | None = None
    path: str | None = None
    size: int | None = None
    recoverable: tuple[int, bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile(File):
    """A file that is uploaded to S3."""

    upload: Upload


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A folder that a writer writes to. ``pending`` has files by checkpoint in versions 1 and 2."""

    bucket_id: str
    bucket_path: str
    in_progress_creation_time: int
    in_progress: File | None
    pending: tuple[tuple[int, tuple[File, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCommittable:
    """A file that the committer makes visible or removes."""

    bucket_id: str | None
    pending_file: File | None
    in_progress_to_cleanup: File | None
    compacted_to_cleanup: str | None


class FileSink(SinkConnector):
    """Flink's ``FileSink``."""

    name: ClassVar[str] = "file-sink"
    writer_versions: ClassVar[frozenset[int]] = frozenset({1, 2, 3})
    committable_versions: ClassVar[frozenset[int]] = frozenset({1, 2})

    def read_writer(self, version: int, c: Cursor) -> Bucket:
        return read_bucket(version, c)

    def read_committable(self, version: int, c: Cursor) -> FileCommittable:
        expect_magic(c, COMMITTABLE, "a committable of files")
        bucket_id = None if version == 1 else c.utf()
        pending = read_pending_file(c) if c.bool() else None
        cleanup = _versioned_file(c, _read_in_progress) if c.bool() else None
        compacted = c.utf() if version == 2 and c.bool() else None
        return FileCommittable(
            bucket_id=bucket_id, pending_file=pending, in_progress_to_cleanup=cleanup, compacted_to_cleanup=compacted
        )

    def pending(self, committable: FileCommittable) -> PendingCommit:
        file = committable.pending_file
        if file is not None:
            return replace(pending_file(file), fields=committable)
        cleanup = committable.in_progress_to_cleanup
        name = committable.compacted_to_cleanup or (cleanup and (cleanup.temp_file or cleanup.path)) or "(nothing)"
        return PendingCommit(
            name=f"remove {name}", status="", subtask=-1, expires=False, is_removal=True, fields=committable
        )

    def buffered(self, writer: Bucket) -> tuple[PendingCommit, ...]:
        return tuple(open_part(writer))

    def without_buffered(self, version: int, data: bytes, dropped: frozenset[int]) -> bytes:
        return _bucket_without(version, data, lambda part: part.status == "in_progress")

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        return part_files(state)


class StreamingFileSink(StateSink):
    """The file sink before Sink V2, ``StreamingFileSink``."""

    name: ClassVar[str] = "streaming-file-sink"
    file_states: ClassVar[tuple[str, ...]] = (_BUCKET_STATES,)

    def recognises(self, operator: OperatorBytes) -> bool:
        return _BUCKET_STATES in operator.states and _PART_COUNTER in operator.states

    def read(self, operator: OperatorBytes) -> SinkState:
        pending: list[PendingCommit] = []
        writers: list[tuple[int, Any]] = []
        versions: set[int] = set()
        unread: list[tuple[int, int, bytes]] = []
        for subtask, element in operator.values(_BUCKET_STATES):
            version, data = whole_versioned(element, "the state of a bucket")
            if version not in (1, 2):
                unread.append((subtask, version, data))
                continue
            versions.add(version)
            bucket = read_version(data, version, read_bucket, "the state of a bucket")
            writers.append((subtask, bucket))
            pending += (replace(part, subtask=subtask, version=version) for part in open_part(bucket))
            pending += (
                replace(pending_file(f), status="pre_committed", subtask=subtask, checkpoint_id=i, version=version)
                for i, files in bucket.pending
                for f in files
            )
        writers += ((subtask, {"max_part_counter": n}) for subtask, n in operator.values(_PART_COUNTER))
        return SinkState(
            role="sink",
            pending=tuple(pending),
            writers=tuple(writers),
            versions=frozenset(versions),
            unread=tuple(unread),
        )

    def without(self, operator: OperatorBytes, names: frozenset[str]) -> Mapping[str, Mapping[int, tuple[bytes, ...]]]:
        elements: dict[int, tuple[bytes, ...]] = {}
        pairs = zip(operator.elements(_BUCKET_STATES), operator.values(_BUCKET_STATES), strict=True)
        for element, (subtask, value) in pairs:
            version, data = whole_versioned(value, "the state of a bucket")
            written = element.data
            if version in (1, 2):
                remaining = _bucket_without(version, data, lambda part: part.name in names)
                if remaining != data:
                    out = Output()
                    out.bytes4(write_versioned(version, remaining))
                    written = bytes(out)
            elements[subtask] = (*elements.get(subtask, ()), written)
        return {_BUCKET_STATES: elements}

    def files(self, state: SinkState) -> Iterator[NamedFile]:
        return part_files(state)


def open_part(bucket: Bucket) -> Iterator[PendingCommit]:
    """Yield the part in progress of a bucket, which a restored writer continues."""
    if bucket.in_progress is not None:
        yield replace(pending_file(bucket.in_progress), status="in_progress")


def _bucket_without(version: int, data: bytes, is_dropped: Callable[[PendingCommit], bool]) -> bytes:
    """Return the state of a bucket without some of its parts. Everything else keeps its bytes."""
    c = Cursor(data)
    expect_magic(c, BUCKET, "the state of a bucket")
    read_bucket_id(c)
    c.utf()
    out = Output()
    out += data[: c.pos]
    start = c.pos
    c.i8()
    part = _read_open_file(version, c)
    if part is not None and is_dropped(replace(pending_file(part), status="in_progress")):
        out.i8(_NO_PART)
        out.bool(False)
    else:
        out += data[start : c.pos]
    if version != 3:
        out += data[c.pos : c.pos + 4]
        file_version, count = c.i4(), c.count("checkpoints", at_least=12)
        out.i4(count)
        for _ in range(count):
            out.i8(c.i8())
            kept = []
            for _ in range(c.count("pending files", at_least=4)):
                start = c.pos
                if not is_dropped(pending_file(_read_pending_of_version(version, file_version, c))):
                    kept.append(data[start : c.pos])
            out.i4(len(kept))
            out += b"".join(kept)
    c.expect_end("the state of a bucket")
    return bytes(out)


def part_files(state: SinkState) -> Iterator[NamedFile]:
    """Yield the parts in progress that a restored writer continues, and the complete ones that it commits."""
    for subtask, writer in state.writers:
        if isinstance(writer, Bucket) and writer.in_progress is not None:
            (part,) = open_part(writer)
            yield hidden_part(writer.in_progress, replace(part, subtask=subtask), writer.bucket_path)
    for pending in state.pending:
        if pending.status == "in_progress":
            continue
        fields = pending.fields
        file = fields.pending_file if isinstance(fields, FileCommittable) else fields
        if isinstance(file, File):
            yield replace(hidden_part(file, pending), committed_path=file.target_file or file.path, fails_restore=False)


def hidden_part(file: File, pending: PendingCommit, folder: str = "") -> NamedFile:
    """Return a part that is not visible yet: a hidden file, or an upload to an object store."""
    if isinstance(file, UploadedFile) and file.upload.rest_key is not None and folder:
        bucket = urlsplit(folder)
        path = f"{bucket.scheme}://{bucket.netloc}/{file.upload.rest_key}"
        return NamedFile(path=path, size_bytes=file.upload.rest_bytes, subtask=pending.subtask, name=pending.name)
    path = file.temp_file or file.path or folder
    return NamedFile(
        path=path,
        size_bytes=file.offset,
        is_upload=file.temp_file is None,
        subtask=pending.subtask,
        name=pending.name,
    )


def count_requests(data: bytes) -> int:
    """Return the number of requests in an element of the state of a compactor."""
    version, raw = whole_versioned(data, "requests of a compactor")
    known_version(version, (1,), "requests of a compactor")
    c = Cursor(raw)
    expect_magic(c, _REQUESTS, "requests of a compactor")
    found = 0
    for _ in range(c.count("checkpoints", at_least=16)):
        c.skip(8 + 4)
        for _ in range(c.count("requests of a compactor", at_least=4)):
            c.skip(c.i4())
            found += 1
    c.expect_end("requests of a compactor")
    return found


def read_bucket(version: int, c: Cursor) -> Bucket:
    """Read the state of a bucket."""
    expect_magic(c, BUCKET, "the state of a bucket")
    bucket_id = read_bucket_id(c)
    path, created = c.utf(), c.i8()
    in_progress = _read_open_file(version, c)
    pending = () if version == 3 else _read_pending_files(version, c)
    return Bucket(
        bucket_id=bucket_id,
        bucket_path=path,
        in_progress_creation_time=created,
        in_progress=in_progress,
        pending=pending,
    )


def _read_open_file(version: int, c: Cursor) -> File | None:
    if not c.bool():
        return None
    return _read_recoverable(c) if version == 1 else _versioned_file(c, _read_in_progress)


def read_bucket_id(c: Cursor) -> str:
    """Read the id of a bucket."""
    id_version, raw = read_versioned(c, "the id of a bucket")
    known_version(id_version, (1,), "the id of a bucket")
    (length,) = _LITTLE.unpack(raw.take(_LITTLE.size))
    bucket_id = _text(raw, length)
    raw.expect_end("the id of a bucket")
    return bucket_id


def read_pending_file(c: Cursor) -> File:
    """Read a complete file that is not yet visible."""
    return _versioned_file(c, _read_pending)


def _read_pending_files(version: int, c: Cursor) -> tuple[tuple[int, tuple[File, ...]], ...]:
    file_version = c.i4()
    pending = []
    for _ in range(c.count("checkpoints", at_least=12)):
        checkpoint_id = c.i8()
        files = []
        for _ in range(c.count("pending files", at_least=4)):
            files.append(_read_pending_of_version(version, file_version, c))
        pending.append((checkpoint_id, tuple(files)))
    return tuple(pending)


def _read_pending_of_version(version: int, file_version: int, c: Cursor) -> File:
    read = _recoverable if version == 1 else _read_pending
    return read_inner(c, lambda inner: read(file_version, inner), "a pending file")


def _versioned_file(c: Cursor, read: Callable[[int, Cursor], T]) -> T:
    version, inner = read_versioned(c, "a file")
    value = read(version, inner)
    inner.expect_end("a file")
    return value


def _read_in_progress(version: int, c: Cursor) -> File:
    known_version(version, (1, 2), "a part in progress")
    if version == 1:
        return _read_bare_file(c, _IN_PROGRESS)
    expect_magic(c, _IN_PROGRESS, "a part in progress")
    path = c.utf() if c.bool() else None
    return replace(_read_recoverable(c), path=path)


def _read_pending(version: int, c: Cursor) -> File:
    known_version(version, (1, 2), "a pending file")
    if version == 1:
        return _read_bare_file(c, _PENDING)
    expect_magic(c, _PENDING, "a pending file")
    path = c.utf() if c.bool() else None
    return replace(_read_recoverable(c, size_before=True), path=path)


def _read_bare_file(c: Cursor, magic: int) -> File:
    expect_magic(c, magic, "a file")
    return _read_recoverable(c)


def _read_recoverable(c: Cursor, *, size_before: bool = False) -> File:
    size = c.i8() if size_before else None
    version, inner = read_versioned(c, "where a file can go on")
    return replace(_recoverable(version, inner), size=size)


def _recoverable(version: int, c: Cursor) -> File:
    data = c.data[c.pos : c.end]
    if version == 1 and data[:4] == _S3_MAGIC:
        return _read_upload(c)
    if version != 1 or len(data) < _LOCAL.size or _LOCAL.unpack_from(data)[0] not in (_LOCAL_MAGIC, _HADOOP_MAGIC):
        return File(recoverable=(version, c.take(c.left)))
    _, offset, target, temporary = _LOCAL.unpack(c.take(_LOCAL.size))
    file = File(target_file=_text(c, target), temp_file=_text(c, temporary), offset=offset)
    c.expect_end("where a file can go on")
    return file


def _read_upload(c: Cursor) -> File:
    c.take(len(_S3_MAGIC))
    key, upload_id = _little_text(c), _little_text(c)
    parts = tuple((_little(c, _LITTLE), _little_text(c)) for _ in range(_little(c, _LITTLE)))
    in_parts = _little(c, _LITTLE_LONG)
    rest_key, rest = _little_text(c) or None, _little(c, _LITTLE_LONG)
    c.expect_end("where an upload can go on")
    upload = Upload(key=key, upload_id=upload_id, parts=parts, rest_key=rest_key, rest_bytes=max(0, rest))
    return UploadedFile(offset=in_parts + upload.rest_bytes, upload=upload)


def _little(c: Cursor, number: struct.Struct) -> int:
    value: int = number.unpack(c.take(number.size))[0]
    return value


def _little_text(c: Cursor) -> str:
    return _text(c, _little(c, _LITTLE))


def pending_file(file: File) -> PendingCommit:
    """Describe a file that a commit makes visible."""
    name = (
        file.path
        or file.target_file
        or (file.upload.key if isinstance(file, UploadedFile) else None)
        or (file.recoverable and file.recoverable[1].hex())
        or "(unnamed)"
    )
    return PendingCommit(
        name=name,
        status="",
        subtask=-1,
        file=file.target_file or file.path,
        temporary_file=file.temp_file,
        size_bytes=file.offset if file.size is None else file.size,
        expires=False,
        fields=file,
    )


def expect_magic(c: Cursor, magic: int, what: str) -> None:
    """Read a magic number; raise an error for another one."""
    if int.from_bytes(c.take(4, what), "big") != magic:
        raise c.fail(f"expected the magic number of {what} ({magic:08X})", pos=c.pos - 4)


def _text(c: Cursor, length: int) -> str:
    return decode_text(c, c.take(length, "text"))
