"""New databases of RocksDB: RocksDB itself opens, reads, changes and compacts them, and their entries are those written."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from statetool.formats.rocksdb.database import open_database
from statetool.formats.rocksdb.database_writer import DatabaseWriter
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_settings import TableSettings
from statetool.formats.rocksdb.tables import Tables
from statetool.formats.stream import Stream
from statetool.kernels.core.arrays import frozen
from tests.support.snapshots.native import Entries, read_by_rocksdb


class Output(io.FileIO):
    """A file with its size."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self.size_bytes = 0

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        self.size_bytes += len(data)
        return super().write(data)


def slice_of(entries: Sequence[tuple[bytes, bytes]], before: bytes = b"") -> Slice:
    """Entries after some other bytes."""
    sizes = np.array([(len(k), len(v)) for k, v in entries], dtype=np.int64).reshape(-1, 2)
    ends = len(before) + np.cumsum(sizes.reshape(-1)).reshape(-1, 2)
    data = before + b"".join(k + v for k, v in entries)
    return Slice(
        data=frozen(np.frombuffer(data, dtype=np.uint8)),
        key=ends[:, 0] - sizes[:, 0],
        key_end=ends[:, 0],
        value_end=ends[:, 1],
    )


def written(
    folder: Path, families: dict[str, Entries], settings: TableSettings, *, portion: int, table_bytes: int
) -> DatabaseFiles:
    folder.mkdir()
    with DatabaseWriter(
        lambda name: Output(folder / name), list(families), settings, table_bytes=table_bytes
    ) as database:
        for start in range(0, max(map(len, families.values())), portion):
            for i, entries in enumerate(families.values()):
                database.add(i, slice_of(entries[start : start + portion], before=b"x" * (start % 3)))
            database.end_tables(table_bytes // 2)
    streams = [(p.name, Stream(file=str(p), start=0, size_bytes=p.stat().st_size)) for p in sorted(folder.iterdir())]
    return DatabaseFiles(name=str(folder / "_metadata"), files=tuple(streams))


def random_entries(seed: int, count: int, most_key: int, most_value: int) -> Entries:
    """Entries of which many share the first bytes of their keys, or all of them."""
    draw = random.Random(seed)
    keys = {bytes(draw.choice(b"\x00\x01ab\xff") for _ in range(draw.randrange(most_key + 1))) for _ in range(count)}
    return [(key, draw.randbytes(draw.randrange(most_value + 1)) * draw.choice([1, 3])) for key in sorted(keys)]


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
