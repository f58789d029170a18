"""Small hand-made snapshots of the changelog state backend, and a replay of the same changes on plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import statetool
from statetool.formats.changelog.change_sets import METADATA, METADATA_GROUP
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    ChangelogHandle,
    ChangesHandle,
    FileHandle,
    InMemoryChangesHandle,
    KeyedHandle,
    KeyGroupsHandle,
)
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo, write_meta_v6
from statetool.io.output import Output
from tests.support.snapshots.canonical import snappy

Change = tuple[int, bytes]


def description(state_id: int, meta: StateMetaInfo) -> Change:
    """Return the change that declares a state."""
    out = Output()
    out.i1(METADATA)
    out.i4(7)
    write_meta_v6(out, meta)
    if meta.backend_type != PRIORITY_QUEUE:
        out.bool(False)
        out.bool(False)
    out.i2(state_id)
    out.i1(meta.backend_type)
    return METADATA_GROUP, bytes(out)


def change(key_group: int, operation: int, state_id: int, payload: bytes) -> Change:
    """Return a change of data."""
    return key_group, bytes([operation]) + state_id.to_bytes(2, "big") + payload


def change_set(changes: Iterable[Change]) -> bytes:
    """Return a change set: changes by key group, state metadata first."""
    groups: dict[int, list[bytes]] = {}
    for key_group, raw in changes:
        groups.setdefault(key_group, []).append(raw)
    out = Output()
    out.i4(len(groups))
    for key_group in sorted(groups):
        out.i4(len(groups[key_group]))
        out.i4(key_group)
        for raw in groups[key_group]:
            out.bytes4(raw)
    return bytes(out)


@dataclass
class Log:
    """Change sets of one subtask, and their destination: files (one for two sets), or the metadata; ``old`` in the form of Flink 1.15."""

    sets: list[list[Change]] = field(default_factory=list)
    compressed: bool = False
    in_metadata: bool = False
    old: bool = False


def snapshot(
    folder: Path,
    log: Log,
    below: Sequence[tuple[bytes, Sequence[int]]] = (),
    *,
    max_parallelism: int = 8,
) -> statetool.Operator:
    """Write a checkpoint with the operator ``op`` of one subtask; ``below`` are canonical streams with their offsets."""
    materialized = tuple(
        KeyGroupsHandle(tag=7, start=0, offsets=tuple(offsets), stream=ByteStreamHandle(name="below", data=raw))
        for raw, offsets in below
    )
    handle = ChangelogHandle(
        tag=8 if log.old else 14,
        start=0,
        count=max_parallelism,
        materialized=materialized,
        changes=tuple(_changes(folder, log, max_parallelism)),
        checkpointed_size=0,
        materialization_id=1,
        checkpoint_id=None if log.old else 1,
        handle_id="handle",
    )
    operator = OperatorState(
        operator_id=operator_id_for_uid("op"),
        parallelism=1,
        max_parallelism=max_parallelism,
        subtasks=(SubtaskState(index=0, managed_keyed=handle),),
    )
    (folder / "_metadata").write_bytes(
        write_metadata(SnapshotMetadata(version=3, checkpoint_id=1, operators=(operator,)))
    )
    return statetool.load(str(folder), uids=["op"])["op"]


def _changes(folder: Path, log: Log, count: int) -> Iterable[KeyedHandle]:
    if log.in_metadata:
        for i, changes in enumerate(log.sets):
            yield InMemoryChangesHandle(
                start=0, count=count, first_sequence=i, last_sequence=i + 1, changes=tuple(changes), handle_id="memory"
            )
        return
    for i in range(0, len(log.sets), 2):
        body, offsets = b"", []
        for changes in log.sets[i : i + 2]:
            offsets.append(len(body))
            body += change_set(changes)
        file = folder / f"changes-{i}"
        file.write_bytes(b"\x01" + snappy(body, block=50) if log.compressed else b"\x00" + body)
        handle = FileHandle(size_bytes=len(body), path=str(file))
        yield ChangesHandle(
            tag=10 if log.old else 13,
            start=0,
            count=count,
            streams=tuple((offset, handle) for offset in offsets),
            state_size=len(body),
            checkpointed_size=len(body),
            handle_id=f"changes-{i}",
            storage_id=None if log.old else "filesystem",
        )


@dataclass
class Model:
    """State in the form of a job."""

    values: dict[str, int] = field(default_factory=dict)
    lists: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    maps: dict[str, dict[str, int]] = field(default_factory=dict)
    timers: set[tuple[int, str]] = field(default_factory=set)

    def rows(self) -> dict[str, Any]:
        """Return the expected rows of the tables."""
        return {
            "values": dict(self.values),
            "lists": {k: v for k, v in self.lists.items() if v},
            "maps": {k: v for k, v in self.maps.items() if v},
            "timers": set(self.timers),
        }
