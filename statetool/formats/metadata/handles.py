"""State handles: locations of the bytes of a piece of state.

Field names and tags follow ``MetadataV2V3SerializerBase`` and ``ChannelStateHandleSerializer``. A handle's ``tag`` is its first byte on the
wire. The tag spaces overlap, so the position in the file selects the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

# ---- streams (1.5.1) ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteStreamHandle:
    """Tag 1: inline data in the metadata. ``position`` is the start of ``data`` in the metadata file."""

    name: str
    data: bytes
    position: int = -1

    @property
    def size_bytes(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHandle:
    """Tag 2: a file given by an absolute path."""

    size_bytes: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeFileHandle:
    """Tag 6: a file relative to the directory of the metadata."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHandle:
    """Tag 15: a segment of a file shared by several states (file merging)."""

    start: int
    size_bytes: int
    scope: int
    path: str
    logical_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptySegmentHandle:
    """Tag 16: a segment without bytes."""

    @property
    def size_bytes(self) -> int:
        return 0


# ---- keyed (1.5.2) ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupsHandle:
    """Tags 3, 7 and 12: one stream with an offset for each key group from ``start`` on.

    ``handle_id`` only in tag 12. Tag 7 is canonical; tags 3 and 12 do not say which layout the stream has.
    """

    tag: Literal[3, 7, 12]
    start: int
    offsets: tuple[int, ...]
    stream: StreamHandle
    handle_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalHandle:
    """Tags 5 and 11: the files of a RocksDB (or ForSt) instance. ``checkpointed_size`` and ``handle_id`` only in 11."""

    tag: Literal[5, 11]
    checkpoint_id: int
    backend_id: str
    start: int
    count: int
    meta: StreamHandle
    shared: tuple[tuple[str, StreamHandle], ...]
    private: tuple[tuple[str, StreamHandle], ...]
    checkpointed_size: int | None = None
    handle_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogHandle:
    """Tags 8 and 14: materialized state and the changelog on top of it.

    In tag 8 as written by Flink 1.14, the last four fields are absent; ``checkpoint_id`` only in tag 14.
    """

    tag: Literal[8, 14]
    start: int
    count: int
    materialized: tuple[KeyedHandle, ...]
    changes: tuple[KeyedHandle, ...]
    checkpointed_size: int | None = None
    materialization_id: int | None = None
    checkpoint_id: int | None = None
    handle_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryChangesHandle:
    """Tag 9: changes inside the metadata, by key group (-1: state metadata)."""

    start: int
    count: int
    first_sequence: int
    last_sequence: int
    changes: tuple[tuple[int, bytes], ...]
    handle_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesHandle:
    """Tags 10 and 13: change sets in files; each offset selects one change set."""

    tag: Literal[10, 13]
    start: int
    count: int
    streams: tuple[tuple[int, StreamHandle], ...]
    state_size: int
    checkpointed_size: int | None = None
    handle_id: str | None = None
    storage_id: str | None = None


# ---- operator state (1.5.3) ---------------------------------------------------------------------

MODES = ("SPLIT_DISTRIBUTE", "UNION", "BROADCAST")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePartitions:
    """Offsets of the elements of one operator state; ``mode`` indexes :data:`MODES`."""

    name: str
    mode: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorStreamHandle:
    """Tag 4: operator states in one stream."""

    states: tuple[StatePartitions, ...]
    stream: StreamHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentOperatorHandle:
    """Tag 17: like tag 4, in a merged file."""

    states: tuple[StatePartitions, ...]
    taskowned_dir: str
    shared_dir: str
    is_empty: bool
    stream: StreamHandle


# ---- channel state (1.5.4) ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelHandle:
    """In-flight data of one channel; ``type_byte`` only in version 6 (1 input, 2 output).

    ``(gate, channel)`` is gate and channel index for an input, result partition and subpartition for an output.
    """

    subtask: int
    gate: int
    channel: int
    offsets: tuple[int, ...]
    size_bytes: int
    stream: StreamHandle
    type_byte: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedChannelHandle:
    """Type byte 3 (input) or 4 (output): several channels in one stream; ``channels`` is an inner blob of Flink."""

    type_byte: int
    subtask: int
    size_bytes: int
    stream: StreamHandle
    channels: bytes


StreamHandle: TypeAlias = (
    "ByteStreamHandle | FileHandle | RelativeFileHandle | SegmentHandle | EmptySegmentHandle | KeyGroupsHandle | None"
)
KeyedHandle: TypeAlias = (
    "KeyGroupsHandle | IncrementalHandle | ChangelogHandle | InMemoryChangesHandle | ChangesHandle | None"
)
OperatorHandle: TypeAlias = "OperatorStreamHandle | SegmentOperatorHandle | None"
AnyChannelHandle: TypeAlias = "ChannelHandle | MergedChannelHandle"
Handle: TypeAlias = "StreamHandle | KeyedHandle | OperatorHandle | AnyChannelHandle"


def streams_of(handle: Handle) -> Iterator[ByteStreamHandle | FileHandle | RelativeFileHandle | SegmentHandle]:
    """Yield every stream inside a handle, in wire order."""
    match handle:
        case ByteStreamHandle() | FileHandle() | RelativeFileHandle() | SegmentHandle():
            yield handle
        case KeyGroupsHandle(stream=s) | OperatorStreamHandle(stream=s) | SegmentOperatorHandle(stream=s):
            yield from streams_of(s)
        case ChannelHandle(stream=s) | MergedChannelHandle(stream=s):
            yield from streams_of(s)
        case IncrementalHandle(meta=meta, shared=shared, private=private):
            yield from streams_of(meta)
            for _, s in (*shared, *private):
                if isinstance(s, FileHandle):  # there can be millions, without a generator for each
                    yield s
                else:
                    yield from streams_of(s)
        case ChangelogHandle(materialized=materialized, changes=changes):
            for h in (*materialized, *changes):
                yield from streams_of(h)
        case ChangesHandle(streams=streams):
            for _, s in streams:
                yield from streams_of(s)
        case _:
            return


def replace_stream(handle: StreamHandle, change: Callable[[StreamHandle], StreamHandle]) -> StreamHandle:
    """Return a stream handle with the innermost one changed; ``None`` and empty segments stay unchanged."""
    if isinstance(handle, KeyGroupsHandle):
        return replace(handle, stream=replace_stream(handle.stream, change))
    return handle if handle is None or isinstance(handle, EmptySegmentHandle) else change(handle)


def replace_keyed(handle: KeyedHandle, change: Callable[[StreamHandle], StreamHandle]) -> KeyedHandle:
    """Return a keyed handle with every stream in it changed."""
    match handle:
        case KeyGroupsHandle():
            return replace(handle, stream=replace_stream(handle.stream, change))
        case IncrementalHandle():
            return replace(
                handle,
                meta=replace_stream(handle.meta, change),
                shared=tuple((name, replace_stream(s, change)) for name, s in handle.shared),
                private=tuple((name, replace_stream(s, change)) for name, s in handle.private),
            )
        case ChangelogHandle():
            return replace(
                handle,
                materialized=tuple(replace_keyed(h, change) for h in handle.materialized),
                changes=tuple(replace_keyed(h, change) for h in handle.changes),
            )
        case ChangesHandle():
            return replace(handle, streams=tuple((at, replace_stream(s, change)) for at, s in handle.streams))
    return handle


def replace_operator(handle: OperatorHandle, change: Callable[[StreamHandle], StreamHandle]) -> OperatorHandle:
    """Return an operator state handle with its stream changed.

    A handle of a merged file becomes a plain one if its stream is not a segment any more, and ``None`` if it was empty.
    """
    if handle is None:
        return None
    stream = replace_stream(handle.stream, change)
    if isinstance(handle, OperatorStreamHandle):
        return replace(handle, stream=stream)
    if stream is None or isinstance(stream, EmptySegmentHandle):
        return None
    if isinstance(stream, SegmentHandle):
        return replace(handle, stream=stream)
    return OperatorStreamHandle(states=handle.states, stream=stream)


def replace_channel(handle: AnyChannelHandle, change: Callable[[StreamHandle], StreamHandle]) -> AnyChannelHandle:
    """Return a channel handle with its stream changed."""
    return replace(handle, stream=replace_stream(handle.stream, change))


#: A stream in a file, and whether it is a changelog.
FileReference: TypeAlias = "tuple[FileHandle | RelativeFileHandle | SegmentHandle, bool]"


def file_streams(handle: Handle) -> Iterator[FileReference]:
    """Yield the streams of a handle that are stored in files, and whether each is a changelog.

    The size in a changelog's handle counts uncompressed bytes without the leading flag, not those of the file.
    """
    if isinstance(handle, ChangelogHandle):
        for inner in (*handle.materialized, *handle.changes):
            yield from file_streams(inner)
        return
    is_log = isinstance(handle, ChangesHandle)
    for stream in streams_of(handle):
        if not isinstance(stream, ByteStreamHandle):
            yield stream, is_log
