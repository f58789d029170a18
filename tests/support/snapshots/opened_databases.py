"""The databases of a snapshot, their files, and their content as RocksDB reads it."""

from __future__ import annotations

from pathlib import Path

import statetool
from statetool.entries.form import StoredState
from statetool.formats.backends.column_families import family_name
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.stream import Stream
from tests.support.snapshots.native import read_by_rocksdb


def databases_of(snapshot: str) -> list[tuple[DatabaseFiles, StoredState]]:
    operators = statetool.load(snapshot)._inventory.operators.values()
    return [(s.owned_database().files, s) for o in operators for s in o.keyed.managed]  # type: ignore[union-attr]


def check_by_rocksdb(snapshot: str, work: Path) -> int:
    """Let RocksDB open and read each database of a snapshot. Return the number of its entries."""
    entries = 0
    for number, (files, stored) in enumerate(databases_of(snapshot)):
        folder = work / str(number)
        folder.mkdir(parents=True)
        for name, stream in files.files:
            with stream.open() as f:
                (folder / name).write_bytes(f.read_at(0, stream.size_bytes))
        families = [family_name(meta.name) for meta in stored.header().states]
        entries += sum(map(len, read_by_rocksdb(folder, families).values()))
    return entries


def content(stream: Stream) -> bytes:
    with stream.open() as f:
        return bytes(f.read_at(0, stream.size_bytes))
