"""New databases of RocksDB: RocksDB itself opens, reads, changes and compacts them, and their entries are those written."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from statetool.formats.rocksdb.database import open_database
from statetool.formats.rocksdb.database_writer import DatabaseWriter
from statetool.formats.rocksdb.table_settings import TableSettings
from statetool.formats.rocksdb.tables import Tables
from tests.support.snapshots.native import read_by_rocksdb
from tests.support.snapshots.new_database import Output, random_entries, slice_of, written


# The library of rocksdict has no Zlib: real Flink opens such files (tests/flink/test_native_settings.py).
@pytest.mark.parametrize(
    ("compression", "format_version"),
    [("Snappy", 5), ("NoCompression", 2), ("LZ4", 3), ("LZ4HC", 5), ("ZSTD", 4), ("BZip2", 2)],
)
@pytest.mark.parametrize(
    ("count", "most_key", "most_value", "block_bytes"),
    [
        (1, 0, 0, 4096),
        (1, 5, 9, 4096),
        (3000, 6, 40, 200),
        (3000, 60, 90, 4096),
        (40, 300, 20_000, 4096),
        (500, 9, 0, 64),
    ],
)
def test_rocksdb_reads_what_was_written(
    tmp_path: Path, compression: str, format_version: int, count: int, most_key: int, most_value: int, block_bytes: int
) -> None:
    families = {
        "a": random_entries(count, count, most_key, most_value),
        "ü b": random_entries(7, 300, 8, 30),
        "empty": [],
    }
    settings = TableSettings(
        compression=compression, block_bytes=block_bytes, merge_operator="stringappend", format_version=format_version
    )
    files = written(tmp_path / "db", families, settings, portion=97, table_bytes=40_000)
    tables = Tables(files)
    assert {name: sum(f.size_bytes for f in own) > 0 for name, own in tables.families.items() if name != "default"} == {
        name: bool(entries) for name, entries in families.items()
    }
    for own in tables.families.values():
        assert all(a.largest < b.smallest for a, b in pairwise(own))
    database = open_database(files)
    for name, entries in families.items():
        found = [
            (part.key_at(i), bytes(part.data[part.key_end[i] : part.value_end[i]]))
            for part in database.slices(name, b"", b"\xff" * 400, 1 << 16)
            for i in range(len(part))
        ]
        assert found == entries
    assert read_by_rocksdb(tmp_path / "db", list(families)) == families
    changed = {name: [(k, v[::-1]) for k, v in entries] for name, entries in families.items()}
    assert read_by_rocksdb(tmp_path / "db", list(families), change=True) == changed


def test_a_file_ends_at_its_size(tmp_path: Path) -> None:
    entries = [(b"%08d" % i, random.Random(i).randbytes(500)) for i in range(20_000)]
    files = written(tmp_path / "db", {"a": entries}, TableSettings(), portion=1000, table_bytes=1 << 20)
    sizes = [f.size_bytes for f in Tables(files).families["a"]]
    assert len(sizes) > 8
    assert max(sizes) < 2 << 20
    assert read_by_rocksdb(tmp_path / "db", ["a"]) == {"a": entries}


def test_a_failed_write_gives_up_its_files(tmp_path: Path) -> None:
    ended: list[type[BaseException] | None] = []

    class Ended(Output):
        def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
            ended.append(kind)
            super().close()

    def write(create: Callable[[str], Output]) -> None:
        with DatabaseWriter(create, ["a", "b"], TableSettings()) as database:
            database.add(0, slice_of([(b"a", b"")]))
            database.add(1, slice_of([(b"a", b"")]))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write(lambda name: Ended(tmp_path / name))
    assert ended == [RuntimeError, RuntimeError]


def test_entries_out_of_order_are_refused(tmp_path: Path) -> None:
    entries = [(b"b", b"1"), (b"a", b"2")]
    with pytest.raises(ValueError, match="column family a are not in ascending order"):
        written(tmp_path / "db", {"a": entries}, TableSettings(), portion=1, table_bytes=1 << 20)
