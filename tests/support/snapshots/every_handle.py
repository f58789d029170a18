"""Metadata with every kind of handle."""

from __future__ import annotations

from dataclasses import replace

from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    ChangelogHandle,
    ChangesHandle,
    ChannelHandle,
    EmptySegmentHandle,
    FileHandle,
    IncrementalHandle,
    InMemoryChangesHandle,
    KeyedHandle,
    KeyGroupsHandle,
    MergedChannelHandle,
    OperatorStreamHandle,
    RelativeFileHandle,
    SegmentHandle,
    SegmentOperatorHandle,
    StatePartitions,
)
from statetool.formats.metadata.model import MasterState

NULL_PROPERTIES = bytes.fromhex("aced000570")


def everything(version: int) -> SnapshotMetadata:
    """Return metadata with every kind of handle."""
    inline = ByteStreamHandle(name="x", data=b"abc")
    file, relative = FileHandle(size_bytes=5, path="s3://b/f"), RelativeFileHandle(path="f", size_bytes=7)
    groups = KeyGroupsHandle(tag=7, start=0, offsets=(0, 9), stream=relative)
    operator = OperatorStreamHandle(states=(StatePartitions(name="s", mode=1, offsets=(1, 2)),), stream=file)
    segment = SegmentHandle(start=1, size_bytes=2, scope=1, path="/p", logical_id="id")
    merged_operator = SegmentOperatorHandle(
        states=(), taskowned_dir="/t", shared_dir="/s", is_empty=True, stream=EmptySegmentHandle()
    )
    keyed: list[KeyedHandle] = [
        groups,
        replace(groups, tag=3, stream=segment),
        replace(groups, tag=12, handle_id="h"),
        IncrementalHandle(
            tag=5, checkpoint_id=1, backend_id="u", start=0, count=2, meta=inline, shared=(("a", file),), private=()
        ),
        IncrementalHandle(
            tag=11, checkpoint_id=1, backend_id="u", start=0, count=2, meta=inline, shared=(), private=(("b", file),),
            checkpointed_size=9, handle_id="h",
        ),
        ChangelogHandle(
            tag=14, start=0, count=2, checkpointed_size=3, materialized=(groups,), materialization_id=4,
            checkpoint_id=5, handle_id="h",
            changes=(
                ChangesHandle(
                    tag=13, start=0, count=2, streams=((4, file),), state_size=1, checkpointed_size=1, handle_id="h",
                    storage_id="filesystem",
                ),
            ),
        ),
        ChangelogHandle(
            tag=8, start=0, count=2, checkpointed_size=3, materialized=(), materialization_id=4, handle_id="h",
            changes=(ChangesHandle(tag=10, start=0, count=2, streams=(), state_size=1, checkpointed_size=1, handle_id="h"),),
        ),
        InMemoryChangesHandle(
            start=0, count=2, first_sequence=1, last_sequence=2, changes=((-1, b"m"), (1, b"c")), handle_id="h"
        ),
    ]  # fmt: skip
    typed = {"type_byte": 1} if version >= 6 else {}
    channels = (ChannelHandle(subtask=0, gate=1, channel=2, offsets=(4,), size_bytes=8, stream=inline, **typed),)
    merged = (MergedChannelHandle(type_byte=4, subtask=0, size_bytes=9, stream=file, channels=b"\0\0\0\0"),)
    name, uid = ("Map", "u") if version >= 5 else ("", "")
    operators = [
        OperatorState(
            operator_id=f"{i:032x}", parallelism=3, max_parallelism=128,
            coordinator=inline if version >= 3 else None,
            subtasks=(
                SubtaskState(
                    index=0, managed_operator=operator if i % 2 else merged_operator, raw_operator=None,
                    managed_keyed=handle, raw_keyed=None if i else groups,
                    input_channels=channels if version >= 3 else (),
                    output_channels=merged if version >= 6 else (),
                    ref_checkpoint_id=6 if version >= 7 and i else None,
                ),
                *((SubtaskState(index=2, finished=True),) if version >= 3 else ()),
            ),
            name=name,
            uid=uid,
        )
        for i, handle in enumerate(keyed)
    ]  # fmt: skip
    if version >= 3:
        operators.append(
            OperatorState(operator_id="f" * 32, parallelism=1, max_parallelism=1, subtasks=(), fully_finished=True)
        )
    return SnapshotMetadata(
        version=version,
        checkpoint_id=7,
        master_states=(MasterState(version=1, name="hook", payload=b"xyz"),),
        operators=tuple(operators),
        properties=NULL_PROPERTIES if version >= 4 else b"",
    )
