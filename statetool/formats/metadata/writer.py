"""Writer of ``_metadata``: the mirror of :mod:`statetool.formats.metadata.reader`."""

from __future__ import annotations

from statetool.errors import EncodeError
from statetool.formats.metadata.handles import (
    AnyChannelHandle,
    ByteStreamHandle,
    ChangelogHandle,
    ChangesHandle,
    EmptySegmentHandle,
    FileHandle,
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
from statetool.io.output import Output


def write_metadata(metadata: SnapshotMetadata) -> bytes:
    """Return the bytes of a ``_metadata`` file, identical to those that :func:`parse_metadata` read.

    Raises
    ------
    EncodeError
        The metadata has fields that its version cannot store.
    """
    m = metadata
    if m.version not in VERSIONS:
        raise EncodeError(f"metadata version {m.version} cannot be written", hint="choose 2 to 7")
    if bool(m.properties) != (m.version >= 4):
        raise EncodeError(
            f"metadata version {m.version} {'needs' if m.version >= 4 else 'has no'} checkpoint properties"
        )
    out = Output()
    out.i4(MAGIC)
    out.i4(m.version)
    out.i8(m.checkpoint_id)
    out.i4(len(m.master_states))
    for master in m.master_states:
        _master_state(out, master)
    out.i4(len(m.operators))
    for operator in m.operators:
        _operator_state(out, operator, m.version)
    out += m.properties
    return bytes(out)


def _master_state(out: Output, state: MasterState) -> None:
    inner = Output()
    inner.i4(state.version)
    inner.utf(state.name)
    inner.bytes4(state.payload)
    out.i4(MASTER_STATE_MAGIC)
    out.bytes4(inner)


def _operator_state(out: Output, op: OperatorState, version: int) -> None:
    if version >= 5:
        out.utf(op.name)
        out.utf(op.uid)
    out += bytes.fromhex(op.operator_id)
    out.i4(op.parallelism)
    out.i4(op.max_parallelism)
    if version == 2:
        if op.coordinator is not None or op.fully_finished or any(s.finished for s in op.subtasks):
            raise EncodeError(
                "metadata version 2 has no coordinator state and no finished operators", hint="choose 3 or above"
            ).at(operator=op.uid or op.operator_id)
        out.i4(1)
    else:
        _stream(out, op.coordinator)
    if op.fully_finished:
        out.i4(-1)
        return
    out.i4(len(op.subtasks))
    for subtask in op.subtasks:
        _subtask_state(out, subtask, version)


def _subtask_state(out: Output, s: SubtaskState, version: int) -> None:
    _subtask_body(out, s, version)
    # Older versions lack this field, which only tells Flink's cleaner which checkpoint to keep.
    if version >= 7:
        out.bool(s.ref_checkpoint_id is not None)
        if s.ref_checkpoint_id is not None:
            out.i8(s.ref_checkpoint_id)


def _subtask_body(out: Output, s: SubtaskState, version: int) -> None:
    if s.finished:
        out.i4(-s.index - 1)
        return
    out.i4(s.index)
    if version == 2:
        out.i8(s.duration_ms)
        out.i4(0)
    for handle in (s.managed_operator, s.raw_operator):
        out.i4(0 if handle is None else 1)
        _operator_handle(out, handle)
    _write_keyed(out, s.managed_keyed)
    _write_keyed(out, s.raw_keyed)
    if version >= 3:
        for channels in (s.input_channels, s.output_channels):
            out.i4(len(channels))
            for channel in channels:
                _channel(out, channel)
    elif s.input_channels or s.output_channels:
        raise EncodeError("metadata version 2 has no channel state", hint="choose 3 or above")


def _stream(out: Output, handle: StreamHandle) -> None:
    match handle:
        case None:
            out.u1(0)
        case ByteStreamHandle():
            out.u1(1)
            out.utf(handle.name)
            out.bytes4(handle.data)
        case FileHandle():
            out.u1(2)
            out.i8(handle.size_bytes)
            out.utf(handle.path)
        case KeyGroupsHandle():
            _key_groups(out, handle)
        case RelativeFileHandle():
            out.u1(6)
            out.utf(handle.path)
            out.i8(handle.size_bytes)
        case SegmentHandle():
            out.u1(15)
            out.i8(handle.start)
            out.i8(handle.size_bytes)
            out.i4(handle.scope)
            out.utf(handle.path)
            out.utf(handle.logical_id)
        case EmptySegmentHandle():
            out.u1(16)


def _key_groups(out: Output, handle: KeyGroupsHandle) -> None:
    out.u1(handle.tag)
    out.i4(handle.start)
    out.i4(len(handle.offsets))
    for offset in handle.offsets:
        out.i8(offset)
    _stream(out, handle.stream)
    if handle.tag == 12:
        out.utf(handle.handle_id or "")


def _write_keyed(out: Output, handle: KeyedHandle) -> None:
    match handle:
        case None:
            out.u1(0)
        case KeyGroupsHandle():
            _key_groups(out, handle)
        case IncrementalHandle():
            _incremental(out, handle)
        case ChangelogHandle():
            _changelog(out, handle)
        case InMemoryChangesHandle():
            out.u1(9)
            out.i4(handle.start)
            out.i4(handle.count)
            out.i8(handle.first_sequence)
            out.i8(handle.last_sequence)
            out.i4(len(handle.changes))
            for key_group, change in handle.changes:
                out.i4(key_group)
                out.bytes4(change)
            _optional(out, handle.handle_id)
        case ChangesHandle():
            out.u1(handle.tag)
            out.i4(handle.start)
            out.i4(handle.count)
            out.i4(len(handle.streams))
            for offset, stream in handle.streams:
                out.i8(offset)
                _stream(out, stream)
            out.i8(handle.state_size)
            _optional(out, handle.checkpointed_size)
            _optional(out, handle.handle_id)
            _optional(out, handle.storage_id)


def _incremental(out: Output, handle: IncrementalHandle) -> None:
    out.u1(handle.tag)
    out.i8(handle.checkpoint_id)
    out.utf(handle.backend_id)
    out.i4(handle.start)
    out.i4(handle.count)
    _optional(out, handle.checkpointed_size)
    _stream(out, handle.meta)
    for files in (handle.shared, handle.private):
        out.i4(len(files))
        for name, stream in files:
            out.utf(name)
            _stream(out, stream)
    _optional(out, handle.handle_id)


def _changelog(out: Output, handle: ChangelogHandle) -> None:
    out.u1(handle.tag)
    out.i4(handle.start)
    out.i4(handle.count)
    _optional(out, handle.checkpointed_size)
    for handles in (handle.materialized, handle.changes):
        out.i4(len(handles))
        for h in handles:
            _write_keyed(out, h)
    _optional(out, handle.materialization_id)
    _optional(out, handle.checkpoint_id)
    _optional(out, handle.handle_id)


def _optional(out: Output, value: int | str | None) -> None:
    """Append a field that some layouts of a tag lack (``None``)."""
    if isinstance(value, str):
        out.utf(value)
    elif value is not None:
        out.i8(value)


def _operator_handle(out: Output, handle: OperatorHandle) -> None:
    if handle is None:
        return
    out.u1(4 if isinstance(handle, OperatorStreamHandle) else 17)
    out.i4(len(handle.states))
    for state in handle.states:
        out.utf(state.name)
        out.i1(state.mode)
        out.i4(len(state.offsets))
        for offset in state.offsets:
            out.i8(offset)
    if isinstance(handle, SegmentOperatorHandle):
        out.utf(handle.taskowned_dir)
        out.utf(handle.shared_dir)
        out.bool(handle.is_empty)
    _stream(out, handle.stream)


def _channel(out: Output, handle: AnyChannelHandle) -> None:
    if handle.type_byte is not None:
        out.u1(handle.type_byte)
    out.i4(handle.subtask)
    if isinstance(handle, MergedChannelHandle):
        out.i8(handle.size_bytes)
        _stream(out, handle.stream)
        out.bytes4(handle.channels)
        return
    out.i4(handle.gate)
    out.i4(handle.channel)
    out.i4(len(handle.offsets))
    for offset in handle.offsets:
        out.i8(offset)
    out.i8(handle.size_bytes)
    _stream(out, handle.stream)
