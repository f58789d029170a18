"""Incremental checkpoints with many files, which are empty: nothing that plans a read opens a file of state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from statetool.formats.key_groups import range_for
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import ByteStreamHandle, FileHandle, IncrementalHandle
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.snapshots.build import LONG
from tests.support.snapshots.canonical import keyed, serializer, timers

FILES_OF_SUBTASK: Final = 10
FILE_BYTES: Final = 50 << 20
MAX_PARALLELISM: Final = 32768
#: Tables of an operator besides its states: ``keyed_state`` and ``timers``.
OTHER_TABLES: Final = 2


def large_checkpoint(
    root: Path, files: int, *, checkpoint_id: int = 1, states: int = 22, operators: Sequence[str] = ("op",)
) -> Path:
    """Write ``<root>/chk-<id>/_metadata`` that references ``files`` table files in ``<root>/shared``, and return its directory.

    Parameters
    ----------
    files
        Number of files of all operators, at least :data:`FILES_OF_SUBTASK` for each.
    states
        Number of keyed states of each operator, which also has a timer service.
    """
    folder = root / f"chk-{checkpoint_id}"
    folder.mkdir(parents=True)
    key = serializer(LONG)
    metas = (*(keyed(f"s{i}", "value", LONG) for i in range(states)), timers("_timer_state/event_t", LONG))
    header = write_keyed_header(KeyedHeader(version=6, compressed=False, key=key, states=metas, size_bytes=0))
    parallelism = files // FILES_OF_SUBTASK // len(operators)
    shared = root / "shared"
    shared.mkdir(exist_ok=True)
    for name in (
        f"{uid}-{subtask}-{n}" for uid in operators for subtask in range(parallelism) for n in range(FILES_OF_SUBTASK)
    ):
        with (shared / name).open("wb") as f:
            f.truncate(FILE_BYTES)
    metadata = SnapshotMetadata(
        version=3,
        checkpoint_id=checkpoint_id,
        operators=tuple(_operator(root, uid, parallelism, header) for uid in operators),
    )
    (folder / "_metadata").write_bytes(write_metadata(metadata))
    return folder


def _operator(root: Path, uid: str, parallelism: int, header: bytes) -> OperatorState:
    def handle(subtask: int) -> IncrementalHandle:
        groups = range_for(subtask, parallelism, MAX_PARALLELISM)
        named = [
            (f"{n:06}.sst", FileHandle(path=str(root / "shared" / f"{uid}-{subtask}-{n}"), size_bytes=FILE_BYTES))
            for n in range(FILES_OF_SUBTASK)
        ]
        return IncrementalHandle(
            tag=11,
            checkpoint_id=1,
            backend_id=f"00000000-0000-0000-0000-{subtask:012}",
            start=groups.start,
            count=len(groups),
            meta=ByteStreamHandle(name="meta", data=header),
            shared=tuple(named[:-2]),
            private=tuple(named[-2:]),
            checkpointed_size=0,
            handle_id=f"00000000-0000-0000-0001-{subtask:012}",
        )

    return OperatorState(
        operator_id=operator_id_for_uid(uid),
        parallelism=parallelism,
        max_parallelism=MAX_PARALLELISM,
        subtasks=tuple(SubtaskState(index=i, managed_keyed=handle(i)) for i in range(parallelism)),
    )
