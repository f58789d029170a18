"""Settings of a database that a job wrote, from its options or its table files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rocksdict

import statetool
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.options import newest_options, read_options
from statetool.formats.rocksdb.table_settings import TableSettings, settings_of
from statetool.formats.stream import Stream
from tests.support.snapshots.native import block_options, database
from tests.support.snapshots.new_database import random_entries, written

_KINDS = {"none": "NoCompression", "lz4": "LZ4", "lz4hc": "LZ4HC", "zstd": "ZSTD", "bz2": "BZip2", "zlib": "Zlib"}


def with_options(files: DatabaseFiles, folder: Path) -> DatabaseFiles:
    streams = [(p.name, Stream(file=str(p), start=0, size_bytes=p.stat().st_size)) for p in folder.glob("OPTIONS-*")]
    assert streams
    return replace(files, files=(*files.files, *streams))


def made(folder: Path, compression: str, format_version: int, block_bytes: int) -> DatabaseFiles:
    blocks = block_options(format_version)
    blocks.set_block_size(block_bytes)
    blocks.set_block_restart_interval(7)
    kind: Any = getattr(rocksdict.DBCompressionType, compression)()
    return database(folder, [("a", 1, b"%d" % i, b"v" * 90) for i in range(600)], blocks=blocks, compression=kind)


@pytest.mark.parametrize("compression", _KINDS)
@pytest.mark.parametrize(("format_version", "wanted"), [(2, 2), (4, 4), (5, 5), (6, 5)])
def test_options_say_the_settings(tmp_path: Path, compression: str, format_version: int, wanted: int) -> None:
    files = made(tmp_path / "db", compression, format_version, 20_000)
    file = newest_options(with_options(files, tmp_path / "db").files)
    assert file is not None
    assert read_options(file)["Version"]["options_file_version"] == "1.1"
    assert settings_of(with_options(files, tmp_path / "db"), "m") == TableSettings(
        merge_operator="m",
        compression=_KINDS[compression],
        block_bytes=20_000,
        restart_interval=7,
        format_version=wanted,
    )


@pytest.mark.parametrize("compression", [kind for kind in _KINDS if kind != "zlib"])
def test_without_options_the_table_files_say_what_they_can(tmp_path: Path, compression: str) -> None:
    found = settings_of(made(tmp_path / "db", compression, 4, 20_000), "m")
    assert found == TableSettings(merge_operator="m", compression=_KINDS[compression], format_version=4)


def test_settings_stay_when_they_are_written_twice(tmp_path: Path) -> None:
    """Databases that statetool writes have no options."""
    settings = TableSettings(compression="ZSTD", block_bytes=20_000, format_version=3)
    entries = {"a": random_entries(1, 300, 20, 30)}
    files = written(tmp_path / "db", entries, settings, portion=97, table_bytes=1 << 20)
    assert settings_of(files, "nullptr") == settings


def test_only_rocksdb_reads_the_files_of_newer_versions(tmp_path: Path) -> None:
    assert settings_of(made(tmp_path / "db", "zstd", 6, 20_000), "m") == TableSettings(merge_operator="m")


@pytest.mark.parametrize(
    ("family", "compression"),
    [
        ("compression_per_level=kNoCompression:kLZ4Compression:kZSTD\n  compression=kSnappyCompression", "ZSTD"),
        ("compression_per_level=" + ":".join(["kNoCompression"] * 6 + ["kZSTD", "kLZ4Compression"]), "ZSTD"),
        (
            "compression_per_level=" + ":".join(["kNoCompression"] * 6 + ["kZSTD", "kLZ4Compression"])
            + "\n  level_compaction_dynamic_level_bytes=true",
            "LZ4",
        ),
        ("compression_per_level=kNoCompression:{kLZ4Compression}", "LZ4"),
        ("compression_per_level=kNoCompression:{kLZ4Compression:{kZSTD}}", "ZSTD"),
        ("compression_per_level=\n  compression=kLZ4Compression", "LZ4"),
        ("bottommost_compression=kZSTD\n  compression_per_level=kNoCompression", "ZSTD"),
        ("bottommost_compression=kDisableCompressionOption\n  compression=kNoCompression", "NoCompression"),
        ("compression=kXpressCompression", "Snappy"),
        ("write_buffer_size=1", "Snappy"),
    ],
)  # fmt: skip
def test_the_compression_is_that_of_the_bottom_level(family: str, compression: str) -> None:
    text = f"""# This is a RocksDB option file.
[DBOptions]
  create_if_missing=true
[CFOptions "default"]
  compression=kBZip2Compression
[TableOptions/BlockBasedTable "default"]
  block_size=1
[CFOptions "count"]
  {family}
[TableOptions/BlockBasedTable "count"]
  block_size=8192
""".encode()
    old = text.replace(b"8192", b"1")
    files = [
        (name, Stream(file=name, start=0, size_bytes=len(data), inline=data))
        for name, data in (("OPTIONS-000017", text), ("OPTIONS-000005", old))
    ]
    found = settings_of(DatabaseFiles(name="db", files=tuple(files)), "m")
    assert found == TableSettings(merge_operator="m", compression=compression, block_bytes=8192)


@pytest.mark.parametrize(("given", "wanted"), [(8 << 20, 8 << 20), (4096, 1 << 20), (1 << 40, 256 << 20)])
def test_files_have_the_target_size_of_the_options(tmp_path: Path, given: int, wanted: int) -> None:
    files = made(tmp_path / "db", "none", 5, 4096)
    for path in (tmp_path / "db").glob("OPTIONS-*"):
        text = path.read_text()
        assert "target_file_size_base=67108864" in text
        path.write_text(text.replace("target_file_size_base=67108864", f"target_file_size_base={given}"))
    assert settings_of(with_options(files, tmp_path / "db"), "m").table_bytes == wanted


@pytest.mark.parametrize(
    ("case", "index", "parts"),
    [
        ("v1_20_5-rocksdb-native", "kBinarySearch", "false"),
        ("v2_3_0-rocksdb-native", "kBinarySearch", "false"),
        ("v2_3_0-forst-native", "kTwoLevelIndexSearch", "true"),
    ],
)
def test_jobs_of_flink_write_no_filters_by_default(corpus: Path, case: str, index: str, parts: str) -> None:
    """New table files have none either, and an index with one level: see "New databases of RocksDB" in the docs."""
    found = set()
    for operator in statetool.load(str(corpus / case / "snapshot"))._inventory.operators.values():
        for stored in operator.keyed.managed:
            owned = stored.owned_database()
            file = None if owned is None else newest_options(owned.files.files)
            if file is not None:
                tables = [values for name, values in read_options(file).items() if "BlockBasedTable" in name]
                found |= {(t["filter_policy"], t["index_type"], t["partition_filters"]) for t in tables[1:]}
    assert found == {("nullptr", index, parts)}
