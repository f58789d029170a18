"""Databases like those in RocksDB snapshots, made with rocksdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import rocksdict

import statetool
from statetool.formats.key_groups import prefix_size, range_for
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.metadata import OperatorState, SnapshotMetadata, SubtaskState
from statetool.formats.metadata.handles import ByteStreamHandle, IncrementalHandle, RelativeFileHandle
from statetool.formats.metadata.writer import write_metadata
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.stream import Stream
from tests.support.snapshots.canonical import Subtask, serializer

Entry: TypeAlias = tuple[str, int, bytes, bytes]
#: Keys and values of a column family.
Entries: TypeAlias = list[tuple[bytes, bytes]]


def block_options(format_version: int = 5) -> rocksdict.BlockBasedOptions:
    """Return options of table files; only RocksDB itself reads version 6."""
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_format_version(format_version)
    return blocks


def database(
    folder: Path,
    entries: Iterable[Entry],
    *,
    deleted: Iterable[Entry] = (),
    states: Iterable[str] = "ab",
    prefix: int = 1,
    blocks: rocksdict.BlockBasedOptions | None = None,
    compression: rocksdict.DBCompressionType | None = None,
    deleted_range: tuple[bytes, bytes] | None = None,
) -> DatabaseFiles:
    """Write a database of value states; several flushes leave several files in each column family."""
    states = list(states)
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks or block_options())
    if compression is not None:
        options.set_compression_type(compression)
    options.create_missing_column_families(True)
    options.set_disable_auto_compactions(True)
    db = rocksdict.Rdict(str(folder), options, column_families=dict.fromkeys(states, options))
    families = {s: db.get_column_family(s) for s in states}
    for i, (state, group, key, value) in enumerate(entries):
        families[state].put(group.to_bytes(prefix, "big") + key, value)
        if i % 500 == 499:
            for f in families.values():
                f.flush()
    for state, group, key, _ in deleted:
        families[state].delete(group.to_bytes(prefix, "big") + key)
    if deleted_range is not None:
        next(iter(families.values())).delete_range(*deleted_range)
    for f in families.values():
        f.flush()
    families.clear()
    db.close()
    paths = [p for p in sorted(folder.iterdir()) if p.suffix == ".sst" or p.name.startswith(("MANIFEST", "CURRENT"))]
    files = [(p.name, Stream(file=str(p), start=0, size_bytes=p.stat().st_size)) for p in paths]
    return DatabaseFiles(name=str(folder / "_metadata"), files=tuple(files))


def native_savepoint(
    folder: Path, subtasks: Sequence[Subtask], *, max_parallelism: int = 128, outside: Sequence[Entry] = ()
) -> statetool.Operator:
    """Write a native savepoint with the operator ``op`` and open it; every database also gets the entries ``outside``."""
    written = []
    for i, subtask in enumerate(subtasks):
        groups = range_for(i, len(subtasks), max_parallelism)
        header = KeyedHeader(
            version=6, compressed=False, key=serializer(subtask.key), states=tuple(subtask.states), size_bytes=0
        )
        files = database(
            folder / f"db-{i}",
            [*subtask.entries, *(e for e in outside if e[1] not in groups)],
            states=[m.name for m in subtask.states],
            prefix=prefix_size(max_parallelism),
        )
        handle = IncrementalHandle(
            tag=11,
            checkpoint_id=1,
            backend_id="00000000-0000-0000-0000-000000000001",
            start=groups.start,
            count=len(groups),
            meta=ByteStreamHandle(name="meta", data=write_keyed_header(header)),
            shared=(),
            private=tuple(
                (name, RelativeFileHandle(path=f"db-{i}/{name}", size_bytes=s.size_bytes)) for name, s in files.files
            ),
            checkpointed_size=0,
            handle_id="00000000-0000-0000-0000-000000000002",
        )
        written.append(SubtaskState(index=i, managed_keyed=handle))
    operator = OperatorState(
        operator_id=operator_id_for_uid("op"),
        parallelism=len(subtasks),
        max_parallelism=max_parallelism,
        subtasks=tuple(written),
    )
    metadata = SnapshotMetadata(version=3, checkpoint_id=0, operators=(operator,))
    (folder / "_metadata").write_bytes(write_metadata(metadata))
    return statetool.load(str(folder), uids=["op"])["op"]


def read_by_rocksdb(folder: Path, families: Sequence[str], *, change: bool = False) -> dict[str, Entries]:
    """Let RocksDB read a database with all checks, also after a new value and a compaction of everything."""
    options = rocksdict.Options(raw_mode=True)
    options.set_paranoid_checks(True)
    options.set_disable_auto_compactions(True)
    assert sorted(rocksdict.Rdict.list_cf(str(folder))) == sorted(["default", *families])
    db = rocksdict.Rdict(str(folder), options, column_families=dict.fromkeys(["default", *families], options))
    found: dict[str, Entries] = {}
    for name in families:
        family = db.get_column_family(name)
        read = rocksdict.ReadOptions()
        read.set_verify_checksums(True)
        if change:
            for key, value in list(family.items()):
                family[key] = value[::-1]
            family.flush()
            force = rocksdict.CompactOptions()
            force.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
            family.compact_range(None, None, force)
        found[name] = [(bytes(k), bytes(v)) for k, v in family.items(read_opt=read)]  # type: ignore[arg-type]
        for key, value in found[name][:: max(1, len(found[name]) // 100)]:
            assert family[key] == value
        del family
    db.close()
    return found
