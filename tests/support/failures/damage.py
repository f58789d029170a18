"""Damage to copies of snapshots: to the metadata, or to the bytes of a stream."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from statetool.formats.backends.canonical import StreamLayout, read_entries
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState, parse_metadata, write_metadata
from statetool.formats.metadata.handles import ByteStreamHandle, KeyGroupsHandle, RelativeFileHandle, StreamHandle
from statetool.snapshot.inventory import Inventory
from tests.support.snapshots.stored import streams
from tests.support.snapshots.trees import replace_file


@dataclass(slots=True)
class Patient:
    """A copy of a snapshot that a test may damage."""

    folder: Path

    @classmethod
    def of(cls, source: Path, target: Path) -> Patient:
        return cls(Path(shutil.copytree(source, target)))

    @property
    def metadata(self) -> SnapshotMetadata:
        return parse_metadata((self.folder / "_metadata").read_bytes())

    def write(self, metadata: SnapshotMetadata) -> None:
        replace_file(self.folder / "_metadata", write_metadata(metadata))

    def operator(self, uid: str) -> OperatorState:
        return next(o for o in self.metadata.operators if o.uid == uid)

    def change_operator(self, uid: str, change: Callable[[OperatorState], OperatorState]) -> None:
        m = self.metadata
        self.write(replace(m, operators=tuple(change(o) if o.uid == uid else o for o in m.operators)))

    def change_subtask(self, uid: str, index: int, change: Callable[[SubtaskState], SubtaskState]) -> None:
        def changed(o: OperatorState) -> OperatorState:
            return replace(o, subtasks=tuple(change(s) if s.index == index else s for s in o.subtasks))

        self.change_operator(uid, changed)

    def keyed(self, uid: str, index: int) -> KeyGroupsHandle:
        handle = next(s for s in self.operator(uid).subtasks if s.index == index).managed_keyed
        assert isinstance(handle, KeyGroupsHandle)
        return handle

    def change_offsets(self, uid: str, index: int, change: Callable[[list[int]], list[int]]) -> None:
        handle = self.keyed(uid, index)
        new = replace(handle, offsets=tuple(change(list(handle.offsets))))
        self.change_subtask(uid, index, lambda s: replace(s, managed_keyed=new))

    def change_bytes(self, uid: str, index: int, at: int, data: bytes) -> None:
        """Overwrite bytes in the keyed stream of a subtask."""
        handle = self.keyed(uid, index)
        stream = handle.stream
        if isinstance(stream, RelativeFileHandle):
            file = self.folder / stream.path
            replace_file(file, patched(file.read_bytes(), at, data))
            return
        assert isinstance(stream, ByteStreamHandle)
        new: StreamHandle = replace(stream, data=patched(stream.data, at, data))
        self.change_subtask(uid, index, lambda s: replace(s, managed_keyed=replace(handle, stream=new)))

    def entries(self, uid: str, index: int, state: str) -> tuple[EntryBatch, int]:
        """Return the entries of a state in the first key group with some, and the start of their bytes in the stream."""
        operator = Inventory(str(self.folder)).operators[uid]
        stored = next(p for p in streams(operator) if p.place.subtask == index)
        header = stored.header()
        layout = StreamLayout(
            prefix=prefix_size(operator.state.max_parallelism), states=len(header.states), compressed=False
        )
        number = [m.name for m in header.states].index(state)
        with stored.stream.open() as f:
            for group in sorted(stored.ranges(), key=lambda r: r.number):
                batch = read_entries(f, [group], layout).of_state(number)
                if len(batch):
                    return batch, group.offset
        raise AssertionError(f"{state} of {uid} is empty")


def patched(whole: bytes, at: int, data: bytes) -> bytes:
    assert at + len(data) <= len(whole)
    return whole[:at] + data + whole[at + len(data) :]
