"""Small hand-made canonical savepoints, for cases that the corpus's savepoints do not cover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import cramjam

import statetool
from statetool.formats.key_groups import key_group_for, prefix_size, range_for
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import (
    KeyGroupsHandle,
    OperatorStreamHandle,
    RelativeFileHandle,
    StatePartitions,
)
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.operator_state import OperatorHeader, write_operator_header
from statetool.formats.state_meta import BROADCAST, KEY_VALUE, OPERATOR, PRIORITY_QUEUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from statetool.serializers.table import snapshot_reader
from tests.support.snapshots.build import Snapshot, composite, simple

VOID: Final = simple("VoidNamespace", "org.apache.flink.runtime.state.")
Entry: TypeAlias = tuple[bytes, bytes]


def serializer(snapshot: Snapshot) -> Serializer:
    """Return the serializer of a snapshot."""
    return snapshot if isinstance(snapshot, Serializer) else snapshot_reader().snapshot(Cursor(snapshot))


def encoded(s: Serializer, value: Any) -> bytes:
    """Return the bytes of a value."""
    out = Output()
    s.encode(out, value)
    return bytes(out)


def keyed(name: str, kind: str, value: Snapshot, namespace: Snapshot = VOID) -> StateMetaInfo:
    """Describe a keyed state; ``value`` is the serializer of a complete list or map."""
    return StateMetaInfo(
        name=name,
        backend_type=KEY_VALUE,
        options={"KEYED_STATE_TYPE": kind.upper()},
        serializers={"NAMESPACE_SERIALIZER": serializer(namespace), "VALUE_SERIALIZER": serializer(value)},
    )


def timers(name: str, key: Snapshot, namespace: Snapshot = VOID) -> StateMetaInfo:
    """Describe timers."""
    snapshot = composite("org.apache.flink.streaming.api.operators.TimerSerializerSnapshot", 2, b"", key, namespace)
    return StateMetaInfo(
        name=name, backend_type=PRIORITY_QUEUE, options={}, serializers={"VALUE_SERIALIZER": serializer(snapshot)}
    )


def length_marker(size: int) -> bytes:
    """Return a length in little-endian base 256."""
    raw = bytearray([size & 0xFF])
    while size := size >> 8:
        raw.append(size & 0xFF)
    return bytes(raw)


def composite_key(key: bytes, namespace: bytes = b"\0", user_key: bytes = b"", *, ambiguous: bool = False) -> bytes:
    """Return a composite key without its key-group prefix."""
    if not ambiguous:
        return key + namespace + user_key
    return key + length_marker(len(key)) + namespace + length_marker(len(namespace)) + user_key


def key_group_bytes(number: int, prefix: int, states: Iterable[tuple[int, Sequence[Entry]]]) -> bytes:
    """Return a canonical key group of ``(state id, entries)``; states without entries are omitted."""
    out = bytearray()
    for state, entries in states:
        for i, (key, value) in enumerate(entries):
            if i == 0:
                out += state.to_bytes(2, "big")
            head = bytearray(number.to_bytes(prefix, "big"))
            if i == len(entries) - 1:
                head[0] |= 0x80
            out += (len(head) + len(key)).to_bytes(4, "big") + head + key + len(value).to_bytes(4, "big") + value
    return bytes(out + b"\xff\xff") if out else b""


def snappy(raw: bytes, *, block: int = 1 << 16) -> bytes:
    """Frame bytes like Flink does."""
    return b"\xff\x06\0\0sNaPpY" + b"".join(chunk(raw[i : i + block]) for i in range(0, len(raw), block))


def chunk(raw: bytes) -> bytes:
    """Return one compressed chunk (with a checksum that is not verified)."""
    body = bytes(4) + bytes(cramjam.snappy.compress_raw(raw))
    return b"\0" + len(body).to_bytes(3, "little") + body


@dataclass(kw_only=True)
class Subtask:
    """Keyed state of one subtask: ``entries`` of ``(state name, key group, composite key, value)``."""

    key: Snapshot
    states: Sequence[StateMetaInfo]
    entries: Sequence[tuple[str, int, bytes, bytes]] = ()


@dataclass(kw_only=True)
class ListState:
    """One operator state: the bytes of its elements by subtask (for broadcast state: one element with all entries).

    ``values`` are the serializers by subtask if they differ.
    """

    value: Snapshot
    elements: Sequence[Sequence[bytes]]
    mode: int = 0
    key: Snapshot | None = None
    values: Sequence[Snapshot] = ()

    def meta(self, name: str, subtask: int) -> StateMetaInfo:
        serializers = {"VALUE_SERIALIZER": serializer(self.values[subtask] if self.values else self.value)}
        if self.key is not None:
            serializers["KEY_SERIALIZER"] = serializer(self.key)
        return StateMetaInfo(
            name=name,
            backend_type=BROADCAST if self.mode == 2 else OPERATOR,
            options={"OPERATOR_STATE_DISTRIBUTION_MODE": ("SPLIT_DISTRIBUTE", "UNION", "BROADCAST")[self.mode]},
            serializers=serializers,
        )


def group_of(s: Serializer, value: Any, max_parallelism: int) -> int:
    """Return the key group of a plain key."""
    return key_group_for(s.hash_code(value), max_parallelism)


def savepoint(
    folder: Path,
    subtasks: Sequence[Subtask] = (),
    *,
    max_parallelism: int = 128,
    compressed: bool = False,
    operator_states: Mapping[str, ListState] | None = None,
    damage: Callable[[int, bytes], bytes] | None = None,
    version: int = 3,
) -> statetool.Operator:
    """Write a savepoint with the operator ``op`` and open it; ``damage`` may change the bytes of each keyed stream."""
    parallelism = max(len(subtasks), max((len(s.elements) for s in (operator_states or {}).values()), default=0), 1)
    written = []
    for i in range(parallelism):
        handle = None
        if i < len(subtasks):
            handle = _keyed_stream(folder, i, subtasks[i], parallelism, max_parallelism, compressed, damage)
        written.append(
            SubtaskState(
                index=i,
                managed_keyed=handle,
                managed_operator=_operator_stream(folder, i, operator_states or {}, compressed),
            )
        )
    operator = OperatorState(
        operator_id=operator_id_for_uid("op"),
        parallelism=parallelism,
        max_parallelism=max_parallelism,
        subtasks=tuple(written),
    )
    properties = savepoint_properties() if version >= 4 else b""
    metadata = SnapshotMetadata(version=version, checkpoint_id=0, operators=(operator,), properties=properties)
    (folder / "_metadata").write_bytes(write_metadata(metadata))
    return statetool.load(str(folder), uids=["op"])["op"]


def savepoint_of(folder: Path, operators: Mapping[str, Subtask]) -> None:
    """Write a savepoint of operators by uid, each with one subtask."""
    states = []
    for number, (uid, subtask) in enumerate(operators.items()):
        handle = _keyed_stream(folder, 0, subtask, 1, 128, False, None, name=f"keyed-of-{number}")
        states.append(
            OperatorState(
                operator_id=operator_id_for_uid(uid),
                parallelism=1,
                max_parallelism=128,
                subtasks=(SubtaskState(index=0, managed_keyed=handle, managed_operator=None),),
            )
        )
    metadata = SnapshotMetadata(version=3, checkpoint_id=0, operators=tuple(states))
    (folder / "_metadata").write_bytes(write_metadata(metadata))


def _keyed_stream(
    folder: Path,
    index: int,
    subtask: Subtask,
    parallelism: int,
    max_parallelism: int,
    compressed: bool,
    damage: Callable[[int, bytes], bytes] | None,
    *,
    name: str = "",
) -> KeyGroupsHandle:
    name = name or f"keyed-{index}"
    groups = range_for(index, parallelism, max_parallelism)
    header = KeyedHeader(
        version=6, compressed=compressed, key=serializer(subtask.key), states=tuple(subtask.states), size_bytes=0
    )
    stream = bytearray(write_keyed_header(header))
    names = [m.name for m in subtask.states]
    by_group: dict[int, dict[int, list[Entry]]] = {}
    for state, number, key, value in subtask.entries:
        assert number in groups
        by_group.setdefault(number, {}).setdefault(names.index(state), []).append((key, value))
    offsets = []
    for number in groups:
        raw = key_group_bytes(number, prefix_size(max_parallelism), sorted(by_group.get(number, {}).items()))
        offsets.append(len(stream) if raw else 0)
        stream += snappy(raw) if raw and compressed else raw
    data = bytes(stream) if damage is None else damage(index, bytes(stream))
    (folder / name).write_bytes(data)
    return KeyGroupsHandle(
        tag=7,
        start=groups.start,
        offsets=tuple(offsets),
        stream=RelativeFileHandle(path=name, size_bytes=len(data)),
    )


def _operator_stream(
    folder: Path, index: int, states: Mapping[str, ListState], compressed: bool
) -> OperatorStreamHandle | None:
    if not states:
        return None
    metas = tuple(s.meta(name, index) for name, s in states.items())
    header = OperatorHeader(version=6, compressed=compressed, states=metas, size_bytes=0)
    stream = bytearray(write_operator_header(header, version=6))
    if compressed:
        stream += b"\xff\x06\0\0sNaPpY"
    partitions = []
    for name, state in states.items():
        offsets = []
        for element in state.elements[index]:
            offsets.append(len(stream))
            if compressed:
                stream += b"".join(chunk(element[i : i + (1 << 16)]) for i in range(0, len(element), 1 << 16))
            else:
                stream += element
        partitions.append(StatePartitions(name=name, mode=state.mode, offsets=tuple(offsets)))
    (folder / f"operator-{index}").write_bytes(stream)
    return OperatorStreamHandle(
        states=tuple(partitions),
        stream=RelativeFileHandle(path=f"operator-{index}", size_bytes=len(stream)),
    )
