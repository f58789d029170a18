"""Parser of ``_metadata``. Follows ``Checkpoints`` and ``MetadataV2Serializer`` to ``MetadataV6Serializer``."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from statetool.errors import FormatError, UnsupportedError
from statetool.formats.metadata.handles import (
    AnyChannelHandle,
    ByteStreamHandle,
    ChangelogHandle,
    ChangesHandle,
    ChannelHandle,
    EmptySegmentHandle,
    FileHandle,
    FileReference,
    IncrementalHandle,
    InMemoryChangesHandle,
    KeyedHandle,
    KeyGroupsHandle,
    MergedChannelHandle,
    OperatorHandle,
    OperatorStreamHandle,
    RelativeFileHandle,
    SegmentHandle,
    SegmentOperatorHandle,
    StatePartitions,
    StreamHandle,
)
from statetool.formats.metadata.model import (
    MAGIC,
    MASTER_STATE_MAGIC,
    VERSIONS,
    MasterState,
    OperatorState,
    SnapshotMetadata,
    SubtaskState,
)
from statetool.io.cursor import Cursor
from statetool.io.garbage import collector_paused

if TYPE_CHECKING:
    from statetool.formats.metadata.columns import ReferenceColumns, SubtaskScanner

T = TypeVar("T")
_MAX_DEPTH = 8
_TEXT: Final = struct.Struct(">H")
#: Of a file handle: its tag, its size, and the length of its path.
_FILE: Final = struct.Struct(">BqH")
_FILE_TAG: Final = 2
#: Bytes of metadata from which on a kernel takes less time than the parser of objects: if it only has to be loaded, and if it has to be
#: compiled.
_ENOUGH_TO_LOAD: Final = 16 << 20
_ENOUGH_TO_COMPILE: Final = 128 << 20


def parse_metadata(data: bytes, *, file: str | None = None) -> SnapshotMetadata:
    """Parse a ``_metadata`` file of version 2 to 7.

    Parameters
    ----------
    data
        The complete file.
    file
        Its name, for messages.

    Raises
    ------
    FormatError
        Not a metadata file, or damaged; with the offset.
    UnsupportedError
        A version that statetool does not know.
    """
    return _parse(data, file, keep_handles=True, in_columns=False).metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReferences:
    """The references of a snapshot to files.

    Attributes
    ----------
    metadata
        The metadata without the subtasks of operators.
    parts
        The streams in files, in wire order: columns of many, or one stream and whether it is a changelog (see :func:`file_streams`).
    """

    metadata: SnapshotMetadata
    parts: list[ReferenceColumns | FileReference]


def parse_references(data: bytes, *, file: str | None = None, in_columns: bool = False) -> FileReferences:
    """Parse a ``_metadata`` file but keep only its references to files; errors as for :func:`parse_metadata`.

    Parameters
    ----------
    data, file
        As for :func:`parse_metadata`.
    in_columns
        Read subtasks with a kernel where possible (see :func:`columns_pay_off`).
    """
    return _parse(data, file, keep_handles=False, in_columns=in_columns)


def columns_pay_off(size_bytes: int) -> bool:
    """Return True if metadata files of this size together are read faster in columns."""
    if size_bytes < _ENOUGH_TO_LOAD:
        return False
    from statetool.kernels.core import jit  # small files need no NumPy
    from statetool.kernels.metadata.references import scan_subtasks

    budget = jit.allowance(scan_subtasks.name)
    if budget == jit.BEFORE_COMPILING:
        return size_bytes >= _ENOUGH_TO_COMPILE
    return budget != jit.EVERYTHING


@collector_paused()
def _parse(data: bytes, file: str | None, *, keep_handles: bool, in_columns: bool) -> FileReferences:
    def read(*, changelog_of_1_14: bool) -> FileReferences:
        reader = _Reader(data, changelog_of_1_14, keep_handles=keep_handles, in_columns=in_columns)
        return reader.references()

    try:
        try:
            return read(changelog_of_1_14=False)
        except FormatError as error:
            # Flink 1.14 and 1.15 used a different layout for tags 8 to 10, under the same tags and the same version 3.
            if data[4:8] != b"\x00\x00\x00\x03":
                raise
            try:
                return read(changelog_of_1_14=True)
            except FormatError:
                raise error from None
    except (FormatError, UnsupportedError) as error:
        raise error.at(file=file) from None


class _Reader:
    """One pass over the file."""

    def __init__(self, data: bytes, changelog_of_1_14: bool, *, keep_handles: bool, in_columns: bool) -> None:
        self.c = Cursor(data)
        self.data = data
        self.version = 0
        #: The last inline state. The headers of subtasks are equal, and become one object.
        self.last_inline = b""
        self.changelog_of_1_14 = changelog_of_1_14
        self.keep_handles = keep_handles
        self.parts: list[ReferenceColumns | FileReference] = []
        #: Whether the streams that are read are those of a changelog.
        self.in_log = False
        self.scanner: SubtaskScanner | None = None
        if in_columns:
            from statetool.formats.metadata.columns import SubtaskScanner  # a small file needs no NumPy

            self.scanner = SubtaskScanner(data, changelog_of_1_14=changelog_of_1_14)

    def references(self) -> FileReferences:
        return FileReferences(metadata=self.metadata(), parts=self.parts)

    def metadata(self) -> SnapshotMetadata:
        c = self.c
        if c.left < 8 or c.i4() != MAGIC:
            raise c.fail(
                "this is not a Flink _metadata file: it does not start with 49 60 67 2D",
                hint="point to a savepoint or checkpoint (chk-N) directory, or to its _metadata file",
                pos=0,
            )
        self.version = c.i4()
        if self.version not in VERSIONS:
            raise UnsupportedError(
                f"metadata version {self.version} is not one of 2 to 7",
                hint="convert version 1 with Flink 1.3 or later; versions above 7 need a newer statetool",
            ).at(offset=4)
        checkpoint_id = c.i8()
        if checkpoint_id < 0:
            raise c.fail(f"negative checkpoint id {checkpoint_id}", pos=c.pos - 8)
        masters = self.several("master states", 8, self.master_state)
        operators = self.several("operator states", 20, self.operator_state)
        properties = b""
        if self.version >= 4:
            start = c.pos
            properties = c.take(c.left)
            if not properties.startswith(b"\xac\xed\x00\x05") or len(properties) < 5:
                raise c.fail("expected the Java stream of CheckpointProperties", pos=start)
        c.expect_end("the last operator")
        return SnapshotMetadata(
            version=self.version,
            checkpoint_id=checkpoint_id,
            master_states=masters,
            operators=operators,
            properties=properties,
        )

    def several(self, what: str, at_least: int, read: Callable[[], T]) -> tuple[T, ...]:
        return tuple(read() for _ in range(self.c.count(what, at_least=at_least)))

    def master_state(self) -> MasterState:
        c = self.c
        if c.i4() != MASTER_STATE_MAGIC:
            raise c.fail("a master state does not start with C9 6B 16 96", pos=c.pos - 4)
        inner = c.slice(c.i4(), "master state")
        state = MasterState(version=inner.i4(), name=inner.utf(), payload=inner.bytes4("master state"))
        inner.expect_end("a master state")
        return state

    def operator_state(self) -> OperatorState:
        c = self.c
        name = uid = ""
        if self.version >= 5:
            name, uid = c.utf(), c.utf()
        operator_id = c.take(16, "operator id").hex()
        try:
            return self.operator_body(name, uid, operator_id)
        except FormatError as error:
            raise error.at(operator=uid or operator_id) from None

    def operator_body(self, name: str, uid: str, operator_id: str) -> OperatorState:
        c = self.c
        start = c.pos
        parallelism, max_parallelism = c.i4(), c.i4()
        if not parallelism > 0 or not parallelism <= max_parallelism <= 32768:
            raise c.fail(f"parallelism {parallelism} with max parallelism {max_parallelism}", pos=start)
        coordinator: StreamHandle = None
        if self.version == 2:
            if (chain := c.i4()) != 1:
                raise c.fail(f"chain length {chain}, expected 1", pos=c.pos - 4)
        else:
            coordinator = self.coordinator()
        start = c.pos
        n = c.i4()
        fully_finished = n == -1 and self.version >= 3
        if fully_finished:
            if coordinator is not None:
                raise c.fail("a fully finished operator with coordinator state", pos=start)
            n = 0
        if n < 0 or n > c.left // 4 or n > parallelism:
            raise c.fail(f"{n} subtask states for parallelism {parallelism}", pos=start)
        subtasks: list[SubtaskState] = []
        indexes: set[int] = set()
        done = 0
        while done < n:
            if self.scanner is not None:
                scanned = self.scanner.scan(c.pos, n - done, self.version, parallelism)
                indexes.update(scanned.indexes)
                self.parts += scanned.parts
                c.pos = scanned.end
                done += len(scanned.indexes)
                if done == n:
                    break
            subtask = self.subtask_state(parallelism)
            done += 1
            indexes.add(subtask.index)
            if self.keep_handles:
                subtasks.append(subtask)
        if len(indexes) != n:
            raise c.fail("a subtask has two states", pos=start)
        return OperatorState(
            name=name,
            uid=uid,
            operator_id=operator_id,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            coordinator=coordinator,
            fully_finished=fully_finished,
            subtasks=tuple(subtasks),
        )

    def coordinator(self) -> StreamHandle:
        start = self.c.pos
        handle = self.stream()
        if not isinstance(handle, ByteStreamHandle | None):
            raise self.c.fail("coordinator state must be inline (tag 0 or 1)", pos=start)
        return handle

    def subtask_state(self, parallelism: int) -> SubtaskState:
        c = self.c
        index = c.i4()
        if index < 0 and self.version >= 3:
            index, finished = -index - 1, True
        else:
            finished = False
        if not 0 <= index < parallelism:
            raise c.fail(f"subtask {index} of an operator with parallelism {parallelism}", pos=c.pos - 4)
        if finished:
            return SubtaskState(index=index, finished=True, ref_checkpoint_id=self.ref_checkpoint_id())
        duration = -1
        if self.version == 2:
            duration = c.i8()
            if (legacy := c.i4()) != 0:
                raise c.fail(f"{legacy} legacy states of Flink 1.1", pos=c.pos - 4)
        managed_operator = self.operator_handle() if self.present() else None
        raw_operator = self.operator_handle() if self.present() else None
        managed_keyed, raw_keyed = self.keyed(), self.keyed()
        inputs: tuple[AnyChannelHandle, ...] = ()
        outputs: tuple[AnyChannelHandle, ...] = ()
        if self.version >= 3:
            inputs = self.several("input channel handles", 5, lambda: self.channel((1, 3)))
            outputs = self.several("result subpartition handles", 5, lambda: self.channel((2, 4)))
        return SubtaskState(
            index=index,
            managed_operator=managed_operator,
            raw_operator=raw_operator,
            managed_keyed=managed_keyed,
            raw_keyed=raw_keyed,
            input_channels=inputs,
            output_channels=outputs,
            duration_ms=duration,
            ref_checkpoint_id=self.ref_checkpoint_id(),
        )

    def ref_checkpoint_id(self) -> int | None:
        return self.c.i8() if self.version >= 7 and self.c.bool() else None

    def present(self) -> bool:
        flag = self.c.i4()
        if flag not in (0, 1):
            raise self.c.fail(f"expected 0 or 1 before an operator state handle, found {flag}", pos=self.c.pos - 4)
        return flag == 1

    def size(self, what: str = "state size") -> int:
        n = self.c.i8()
        if n < 0:
            raise self.c.fail(f"negative {what} {n}", pos=self.c.pos - 8)
        return n

    def stream(self, depth: int = 0) -> StreamHandle:
        handle = self.any_stream(depth)
        if not self.keep_handles and isinstance(handle, FileHandle | RelativeFileHandle | SegmentHandle):
            self.parts.append((handle, self.in_log))
        return handle

    def any_stream(self, depth: int) -> StreamHandle:
        c = self.c
        tag = c.u1()
        match tag:
            case 0:
                return None
            case 1:
                name = c.utf()
                data = c.bytes4("inline state")
                if data == self.last_inline:
                    data = self.last_inline
                self.last_inline = data
                return ByteStreamHandle(name=name, data=data, position=c.pos - len(data))
            case 2:
                return FileHandle(size_bytes=self.size(), path=c.utf())
            case 3 if depth < _MAX_DEPTH:
                return self.key_groups(3, depth + 1)
            case 6:
                return RelativeFileHandle(path=c.utf(), size_bytes=self.size())
            case 15:
                start, size = self.size("segment start"), self.size()
                scope = c.i4()
                if scope not in (0, 1):
                    raise c.fail(f"file merging scope {scope}", pos=c.pos - 4)
                return SegmentHandle(start=start, size_bytes=size, scope=scope, path=c.utf(), logical_id=c.utf())
            case 16:
                return EmptySegmentHandle()
        raise c.fail(f"unknown stream handle tag {tag}", pos=c.pos - 1)

    def key_group_range(self) -> tuple[int, int]:
        c = self.c
        start, n = c.i4(), c.i4()
        if start < 0 or n < 0 or start + n > 32768:
            raise c.fail(f"key groups {start} to {start + n - 1} are outside of 0 to 32767", pos=c.pos - 8)
        return start, n

    def key_groups(self, tag: int, depth: int) -> KeyGroupsHandle:
        c = self.c
        start, n = self.key_group_range()
        if n * 8 > c.left:
            raise c.fail(f"{n} key-group offsets do not fit the {c.left} bytes left", pos=c.pos - 4)
        offsets = c.i8s(n)
        stream = self.stream(depth)
        handle_id = c.utf() if tag == 12 else None
        return KeyGroupsHandle(
            tag=tag,  # type: ignore[arg-type]
            start=start,
            offsets=offsets,
            stream=stream,
            handle_id=handle_id,
        )

    def keyed(self, depth: int = 0) -> KeyedHandle:
        c = self.c
        tag = c.u1()
        if depth < _MAX_DEPTH:
            match tag:
                case 0:
                    return None
                case 3 | 7 | 12:
                    return self.key_groups(tag, depth)
                case 5 | 11:
                    return self.incremental(tag)
                case 8 | 14:
                    return self.changelog(tag, depth)
                case 9:
                    return self.in_memory_changes()
                case 10 | 13:
                    return self.changes(tag)
        raise c.fail(f"unknown keyed state handle tag {tag}", pos=c.pos - 1)

    def incremental(self, tag: int) -> IncrementalHandle:
        c = self.c
        checkpoint_id, backend_id = c.i8(), c.utf()
        start, n = self.key_group_range()
        return IncrementalHandle(
            tag=tag,  # type: ignore[arg-type]
            checkpoint_id=checkpoint_id,
            backend_id=backend_id,
            start=start,
            count=n,
            checkpointed_size=c.i8() if tag == 11 else None,
            meta=self.stream(),
            shared=self.named_streams("shared files"),
            private=self.named_streams("private files"),
            handle_id=c.utf() if tag == 11 else None,
        )

    def named_streams(self, what: str) -> tuple[tuple[str, StreamHandle], ...]:
        """Read a count and that many names with streams. There can be millions of them, so files are read in one loop."""
        c, data, parts, keep_handles = self.c, self.data, self.parts, self.keep_handles
        streams: list[tuple[str, StreamHandle]] = []
        for _ in range(c.count(what, at_least=3)):
            name = c.pos + _TEXT.size
            try:
                tag = name + _TEXT.unpack_from(data, c.pos)[0]
                kind, size, length = _FILE.unpack_from(data, tag)
                path = tag + _FILE.size
                if kind == _FILE_TAG and size >= 0 and path + length <= c.end:
                    handle = FileHandle(size_bytes=size, path=data[path : path + length].decode("ascii"))
                    if keep_handles:
                        streams.append((data[name:tag].decode("ascii"), handle))
                    else:
                        parts.append((handle, False))
                    c.pos = path + length
                    continue
            except (struct.error, UnicodeDecodeError):
                pass
            streams.append(self.named_stream())
        return tuple(streams)

    def named_stream(self) -> tuple[str, StreamHandle]:
        return self.c.utf(), self.stream()

    def changelog(self, tag: int, depth: int) -> ChangelogHandle:
        c = self.c
        start, n = self.key_group_range()
        short = tag == 8 and self.changelog_of_1_14
        size = None if short else c.i8()
        materialized = self.several("materialized handles", 1, lambda: self.keyed(depth + 1))
        changes = self.several("change log handles", 1, lambda: self.keyed(depth + 1))
        return ChangelogHandle(
            tag=tag,  # type: ignore[arg-type]
            start=start,
            count=n,
            checkpointed_size=size,
            materialized=materialized,
            changes=changes,
            materialization_id=None if short else c.i8(),
            checkpoint_id=c.i8() if tag == 14 else None,
            handle_id=None if short else c.utf(),
        )

    def in_memory_changes(self) -> InMemoryChangesHandle:
        c = self.c
        start, n = self.key_group_range()
        return InMemoryChangesHandle(
            start=start,
            count=n,
            first_sequence=c.i8(),
            last_sequence=c.i8(),
            changes=tuple(c.numbered("change", keep=self.keep_handles)),
            handle_id=None if self.changelog_of_1_14 else c.utf(),
        )

    def changes(self, tag: int) -> ChangesHandle:
        c = self.c
        start, n = self.key_group_range()
        short = tag == 10 and self.changelog_of_1_14
        self.in_log = True
        streams = self.several("change files", 9, lambda: (c.i8(), self.stream()))
        self.in_log = False
        return ChangesHandle(
            tag=tag,  # type: ignore[arg-type]
            start=start,
            count=n,
            streams=streams,
            state_size=c.i8(),
            checkpointed_size=None if short else c.i8(),
            handle_id=None if short else c.utf(),
            storage_id=c.utf() if tag == 13 else None,
        )

    def operator_handle(self) -> OperatorHandle:
        c = self.c
        tag = c.u1()
        if tag not in (4, 17):
            raise c.fail(f"unknown operator state handle tag {tag}", pos=c.pos - 1)
        states = self.several("operator states", 7, self.partitions)
        if tag == 4:
            return OperatorStreamHandle(states=states, stream=self.stream())
        return SegmentOperatorHandle(
            states=states, taskowned_dir=c.utf(), shared_dir=c.utf(), is_empty=c.bool(), stream=self.stream()
        )

    def partitions(self) -> StatePartitions:
        c = self.c
        name, mode = c.utf(), c.i1()
        if mode not in (0, 1, 2):
            raise c.fail(f"distribution mode {mode} of operator state {name!r}", pos=c.pos - 1)
        offsets = self.several("offsets", 8, c.i8)
        return StatePartitions(name=name, mode=mode, offsets=offsets)

    def channel(self, types: tuple[int, int]) -> AnyChannelHandle:
        c = self.c
        type_byte = c.u1() if self.version >= 6 else None
        if type_byte is not None and type_byte not in types:
            raise c.fail(f"channel state type {type_byte}, expected one of {types}", pos=c.pos - 1)
        if type_byte == types[1]:
            return MergedChannelHandle(
                type_byte=types[1],
                subtask=c.i4(),
                size_bytes=c.i8(),
                stream=self.stream(),
                channels=c.bytes4("merged channel offsets"),
            )
        return ChannelHandle(
            type_byte=type_byte,
            subtask=c.i4(),
            gate=c.i4(),
            channel=c.i4(),
            offsets=self.several("offsets", 8, c.i8),
            size_bytes=c.i8(),
            stream=self.stream(),
        )
