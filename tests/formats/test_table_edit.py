"""Table files without some entries: RocksDB itself opens, reads and compacts the changed databases."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rocksdict

from statetool.errors import UnsupportedError
from statetool.formats.rocksdb import table_edit
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.manifest import Manifest, TableFile
from statetool.formats.rocksdb.table_edit import changed_blocks, write_changed
from statetool.formats.rocksdb.table_runs import Run
from statetool.formats.rocksdb.tables import Prefixes, Tables
from statetool.formats.stream import Stream
from statetool.kernels.core.arrays import Mask
from tests.support.snapshots.native import block_options, database

#: More than one block of the log.
_MANY_FILES = 300


def some_entries(count: int) -> list[tuple[str, int, bytes, bytes]]:
    """Entries of two states, whose values contain their keys."""
    keys = [b"key-%05d" % (i * 7919 % count) for i in range(count)]
    return [("ab"[i % 2], i % 11, key, b"secret of %s " % key + bytes(i % 40)) for i, key in enumerate(keys)]


def without(files: DatabaseFiles, folder: Path, keys: Collection[bytes]) -> DatabaseFiles:
    """Write a copy of a database without keys (with their key groups)."""
    folder.mkdir()
    tables = Tables(files)
    prefixes = Prefixes.of(keys)
    changed: dict[int, TableFile | None] = {}

    def stays(run: Run) -> Mask:
        found = zip(run.key.tolist(), run.key_end.tolist(), strict=True)
        return np.array([bytes(run.keys[a:b]) not in keys for a, b in found], dtype=np.bool_)

    for file in (file for family in tables.families.values() for file in family):
        table, out = tables.open_file(file), bytearray()
        blocks = list(changed_blocks(table, prefixes.wanted(table), stays))
        if blocks:
            edges = write_changed(table, blocks, out.extend)
            changed[file.number] = None if edges is None else file.changed(len(out), *edges)
            if edges is not None:
                (folder / file.name).write_bytes(out)
        else:
            shutil.copy(dict(files.files)[file.name].file, folder / file.name)
    (folder / tables.manifest_name).write_bytes(tables.manifest.write(changed))
    (folder / "CURRENT").write_text(f"{tables.manifest_name}\n")
    streams = [(p.name, Stream(file=str(p), start=0, size_bytes=p.stat().st_size)) for p in sorted(folder.iterdir())]
    return DatabaseFiles(name=str(folder / "_metadata"), files=tuple(streams))


def content(folder: Path, *, compacted: bool = False) -> dict[tuple[str, bytes], bytes]:
    """Let RocksDB read a copy of a database with all checks, after it has compacted everything if asked to."""
    folder = Path(shutil.copytree(folder, folder.with_name(f"{folder.name}-{compacted}")))
    options = rocksdict.Options(raw_mode=True)
    options.set_paranoid_checks(True)
    options.set_disable_auto_compactions(True)
    families = dict.fromkeys(rocksdict.Rdict.list_cf(str(folder)), options)
    db = rocksdict.Rdict(str(folder), options, column_families=families)
    found: dict[tuple[str, bytes], bytes] = {}
    for name in families:
        family = db.get_column_family(name)
        if compacted:
            force = rocksdict.CompactOptions()
            force.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
            family.compact_range(None, None, force)
        read = rocksdict.ReadOptions()
        read.set_verify_checksums(True)
        for key, value in family.items(read_opt=read):
            assert isinstance(key, bytes)
            found[name, key] = value
            assert family[key] == value  # by the filter, too
        del family
    db.close()
    return found


def with_options(**calls: Any) -> rocksdict.BlockBasedOptions:
    blocks = block_options(calls.pop("format_version", 5))
    blocks.set_block_size(600)
    for name, value in calls.items():
        getattr(blocks, name)(*(value if isinstance(value, tuple) else (value,)))
    return blocks


_TWO_LEVELS = {
    "set_index_type": rocksdict.BlockBasedIndexType.two_level_index_search(),
    "set_metadata_block_size": 200,
    "set_partition_filters": True,
    "set_bloom_filter": (10.0, False),
}


@pytest.mark.parametrize(
    ("calls", "compression"),
    [
        ({"set_bloom_filter": (10.0, False)}, "snappy"),
        ({"format_version": 4, "set_index_block_restart_interval": 8}, "lz4"),
        ({"format_version": 2, "set_checksum_type": rocksdict.ChecksumType.crc32c()}, "none"),
        ({"format_version": 0, "set_checksum_type": rocksdict.ChecksumType.crc32c()}, "snappy"),
        (_TWO_LEVELS, "zstd"),
        ({"set_data_block_index_type": rocksdict.DataBlockIndexType.binary_and_hash()}, "bz2"),
    ],
    ids=["bloom", "delta-index", "old", "oldest", "two-levels", "hash"],
)
def test_rocksdb_reads_and_compacts_what_is_left(tmp_path: Path, calls: dict[str, Any], compression: str) -> None:
    entries = some_entries(1500)
    again = [(s, g, k, v[::-1]) for s, g, k, v in entries[::3]]
    files = database(
        tmp_path / "old",
        [*entries, *again],
        deleted=entries[::5],
        blocks=with_options(**calls),
        compression=getattr(rocksdict.DBCompressionType, compression)(),
    )
    # The first and the last key of files, keys next to each other, and keys that the job had deleted.
    chosen = sorted({bytes([g]) + k for _, g, k, _ in entries})
    gone = {*chosen[:2], *chosen[200:230], *chosen[700::97], *chosen[-2:], bytes([0]) + entries[0][2]}
    expected = {place: value for place, value in content(tmp_path / "old").items() if place[1] not in gone}
    without(files, tmp_path / "new", gone)
    stored = b"".join(p.read_bytes() for p in (tmp_path / "new").iterdir())
    if compression == "none":
        assert all(key[1:] not in stored for key in gone)
    assert content(tmp_path / "new") == expected
    assert content(tmp_path / "new", compacted=True) == expected


def test_files_without_entries_are_left_out(tmp_path: Path) -> None:
    entries = some_entries(1200)
    files = database(tmp_path / "old", entries)
    gone = {bytes([g]) + k for s, g, k, _ in entries if s == "a"}
    left = without(files, tmp_path / "new", gone)
    assert 0 < len([n for n, _ in left.files if n.endswith(".sst")]) < len(files.files) - 2
    expected = {("b", bytes([g]) + k): v for s, g, k, v in entries if s == "b"}
    assert content(tmp_path / "new") == expected


def test_a_manifest_keeps_its_files_and_loses_its_history(tmp_path: Path) -> None:
    files = dict(database(tmp_path / "old", some_entries(1200)).files)
    (name,) = (n for n in files if n.startswith("MANIFEST"))
    old = Manifest.read((tmp_path / "old" / name).read_bytes())
    family = next(f for f in old.families.values() if f.files)
    ((_, template), *_) = sorted(family.files.items())
    for number in range(1000, 1000 + _MANY_FILES):
        first = b"%04d" % number + bytes(200) + template.first[-8:]
        file = TableFile(
            number=number, level=6, size_bytes=number, first=first, last=first, sequences=(1, 2), properties=((6, b"\1"),)
        )  # fmt: skip
        family.files[6, number] = file
    data = old.write({1000: None})
    assert len(data) > 2 * (32 << 10)
    del family.files[6, 1000]
    new = Manifest.read(data)
    assert (new.files(), new.numbers, new.database_id) == (old.files(), old.numbers, old.database_id)
    assert Manifest.read(new.write({})).files() == new.files()
    old.unknown.add(9000)
    with pytest.raises(Exception, match="9000"):
        old.write({})


def test_a_meta_block_of_unknown_meaning_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = some_entries(50)
    files = database(tmp_path / "old", entries, blocks=with_options(set_bloom_filter=(10.0, False)))
    monkeypatch.setattr(table_edit, "_FULL_FILTER", b"another.")
    with pytest.raises(UnsupportedError, match=r"fullfilter.*unknown.*convert"):
        without(files, tmp_path / "new", {bytes([g]) + k for _, g, k, _ in entries[:3]})
