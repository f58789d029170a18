"""Incremental checkpoints of one operator over one RocksDB database, made with rocksdict, with files shared like Flink does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import rocksdict

from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import ByteStreamHandle, FileHandle, IncrementalHandle
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import StateMetaInfo
from tests.support.build import LONG, simple
from tests.support.canonical import composite_key, encoded, group_of, keyed, serializer
from tests.support.native import block_options

BYTES: Final = simple("BytePrimitiveArray", "org.apache.flink.api.common.typeutils.base.array.")
MAX_PARALLELISM: Final = 128


class Job:
    """Keyed states of values of the operator ``op``, with numeric keys; ``truth`` is their content."""

    def __init__(self, root: Path, states: Sequence[str] = ("a",)) -> None:
        self.root = root
        self.states: list[StateMetaInfo] = [keyed(name, "value", BYTES) for name in states]
        self.truth: dict[str, dict[int, bytes]] = {name: {} for name in states}
        self.number = 0
        self.key, self.value = serializer(LONG), serializer(BYTES)
        options = rocksdict.Options(raw_mode=True)
        options.set_block_based_table_factory(block_options())
        options.create_missing_column_families(True)
        options.set_disable_auto_compactions(True)
        self.db = rocksdict.Rdict(str(root.parent / "db"), options, column_families=dict.fromkeys(states, options))
        self.families = {name: self.db.get_column_family(name) for name in states}

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.families.clear()
        self.db.close()

    def _place(self, key: int) -> bytes:
        group = group_of(self.key, key, MAX_PARALLELISM)
        return group.to_bytes(1, "big") + composite_key(encoded(self.key, key))

    def put(self, state: str, key: int, value: bytes) -> None:
        self.truth[state][key] = value
        self.families[state].put(self._place(key), encoded(self.value, value))

    def delete(self, state: str, key: int) -> None:
        self.truth[state].pop(key, None)
        self.families[state].delete(self._place(key))

    def flush(self) -> None:
        for family in self.families.values():
            family.flush()

    def compact(self, first: int = 0, stop: int = MAX_PARALLELISM) -> None:
        """Compact all files with keys of some key groups."""
        for family in self.families.values():
            family.compact_range(bytes([first]), bytes([stop]))

    def checkpoint(self) -> int:
        """Take a checkpoint and return its number."""
        self.flush()
        self.number += 1
        folder, shared = self.root / f"chk-{self.number}", self.root / "shared"
        folder.mkdir(parents=True)
        shared.mkdir(exist_ok=True)
        handles: dict[bool, list[tuple[str, Any]]] = {True: [], False: []}
        for path in sorted(Path(self.db.path()).iterdir()):
            is_table = path.suffix == ".sst"
            if not is_table and not path.name.startswith(("MANIFEST", "CURRENT")):
                continue
            target = (shared if is_table else folder) / path.name
            if not is_table:
                target.write_bytes(path.read_bytes())
            elif not target.exists():
                os.link(path, target)
            handle = FileHandle(path=str(target), size_bytes=target.stat().st_size)
            handles[is_table].append((path.name, handle))
        self._write(folder, handles)
        return self.number

    def _write(self, folder: Path, handles: dict[bool, list[tuple[str, Any]]]) -> None:
        header = KeyedHeader(version=6, compressed=False, key=self.key, states=tuple(self.states), size_bytes=0)
        handle = IncrementalHandle(
            tag=11,
            checkpoint_id=self.number,
            backend_id="00000000-0000-0000-0000-000000000001",
            start=0,
            count=MAX_PARALLELISM,
            meta=ByteStreamHandle(name="meta", data=write_keyed_header(header)),
            shared=tuple(handles[True]),
            private=tuple(handles[False]),
            checkpointed_size=0,
            handle_id="00000000-0000-0000-0000-000000000002",
        )
        operator = OperatorState(
            operator_id=operator_id_for_uid("op"),
            parallelism=1,
            max_parallelism=MAX_PARALLELISM,
            subtasks=(SubtaskState(index=0, managed_keyed=handle),),
        )
        metadata = SnapshotMetadata(version=3, checkpoint_id=self.number, operators=(operator,))
        (folder / "_metadata").write_bytes(write_metadata(metadata))
