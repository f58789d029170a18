"""RocksDB databases as entry batches: made with rocksdict, and Flink's from the corpus."""

from __future__ import annotations

import random
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import pytest
import rocksdict

import statetool
from statetool.entries.database import DatabaseSource
from statetool.errors import FormatError, SnapshotNotFoundError, StatetoolError
from statetool.formats.backends import native
from statetool.formats.backends.native import read_native
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.rocksdb.database import begin_database
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.library import RocksDatabase
from statetool.formats.rocksdb.manifest import Manifest, UnsupportedManifestError
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.stored_blocks import StoredBlocks
from statetool.formats.rocksdb.tables import Tables, TableSlices
from statetool.formats.stream import Stream
from statetool.io.files import BYTES_READ
from statetool.io.requests import AHEAD_BYTES
from statetool.kernels.core.arrays import frozen
from statetool.kernels.rocksdb.checksums import CRC32C
from statetool.tables.splits import KeyedSplit
from tests.support.snapshots.build import INT, STRING
from tests.support.snapshots.canonical import composite_key, encoded, keyed, serializer
from tests.support.snapshots.native import Entry, block_options, database
from tests.support.snapshots.stored import databases

KEY = serializer(STRING)


def header(*states: str) -> KeyedHeader:
    return KeyedHeader(
        version=6, compressed=False, key=KEY, states=tuple(keyed(s, "value", INT) for s in states), size_bytes=0
    )


def some_entries(n: int, states: str = "ab") -> list[Entry]:
    dice = random.Random(1)
    entries = []
    for i in range(n):
        key = f"k{i}" * dice.randrange(1, 4)
        for state in states:
            if dice.random() < 0.8:
                entries.append((state, i % 10, composite_key(encoded(KEY, key)), dice.randbytes(dice.randrange(1, 60))))
    return entries


def read(files: DatabaseFiles, groups: Iterable[int], *, states: str = "ab", **arguments: Any) -> list[list[Entry]]:
    batches = []
    options = {"prefix": 1, "whole_keys": True, **arguments}
    for b in read_native(files, header("a", "b"), list(states), groups, **options):
        columns = zip(*(c.tolist() for c in (b.state, b.group, b.key, b.key_end, b.value, b.value_end)), strict=True)
        batches.append([("ab"[s], g, bytes(b.data[k:ke]), bytes(b.data[v:ve])) for s, g, k, ke, v, ve in columns])
    return batches


@pytest.mark.parametrize("format_version", [5, 6])
def test_entries_of_the_range_and_nothing_that_was_deleted(tmp_path: Path, format_version: int) -> None:
    entries = some_entries(700)
    files = database(tmp_path, entries, deleted=entries[::7], blocks=block_options(format_version))
    gone = set(entries[::7])
    for groups in (range(10), range(3, 6), [0, 9], [200]):
        wanted = sorted(e for e in entries if e[1] in groups and e not in gone)
        assert sorted(e for batch in read(files, groups) for e in batch) == wanted
    only_b = [e for batch in read(files, range(10), states="b") for e in batch]
    assert {e[0] for e in only_b} == {"b"}
    assert len(only_b) == sum(e[0] == "b" for e in entries if e not in gone)


@pytest.mark.parametrize("format_version", [5, 6])
@pytest.mark.parametrize("batch_bytes", [1, 1 << 18, 1 << 30])
def test_all_entries_of_a_key_are_in_one_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int, format_version: int
) -> None:
    monkeypatch.setattr("statetool.formats.backends.native._LEAST_SLICE", 100)
    entries = some_entries(600)
    blocks = block_options(format_version)
    blocks.set_block_size(300)
    files = database(tmp_path, entries, blocks=blocks)
    batches = read(files, range(10), batch_bytes=batch_bytes)
    assert sorted(e for batch in batches for e in batch) == sorted(entries)
    keys = [{(group, key) for _, group, key, _ in batch} for batch in batches]
    assert len(set().union(*keys)) == sum(map(len, keys))
    assert len(batches) > 5 if batch_bytes == 1 else len(batches) == 1


def test_batches_of_a_large_and_a_small_state_have_the_bytes_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "_LEAST_SLICE", 100)
    keys = [composite_key(encoded(KEY, f"key {i}")) for i in range(600)]
    entries = [(state, 0, key, bytes(size)) for key in keys for state, size in (("a", 20), ("b", 500))]
    blocks = block_options(5)
    blocks.set_block_size(300)
    batches = read(database(tmp_path, entries, blocks=blocks), [0], batch_bytes=30_000)
    sizes = [sum(len(key) + len(value) for _, _, key, value in batch) for batch in batches]
    assert sum(map(len, batches)) == len(entries)
    assert max(sizes) < 40_000
    assert len(sizes) < 1.3 * sum(sizes) / 30_000


@pytest.mark.parametrize("whole_keys", [False, True])
def test_nothing_keeps_the_slices_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_keys: bool) -> None:
    positions: list[weakref.ref[Any]] = []
    batch_of_slices = native.batch_of_slices

    def combine(slices: Sequence[tuple[int, Slice]], prefix: int, name: str) -> EntryBatch:
        positions.extend(weakref.ref(part.key) for _, part in slices)
        return batch_of_slices(slices, prefix, name)

    monkeypatch.setattr(native, "batch_of_slices", combine)
    monkeypatch.setattr(native, "_LEAST_SLICE", 100)
    blocks = block_options(5)
    blocks.set_block_size(300)
    files = database(tmp_path, some_entries(200), blocks=blocks)
    batches = read_native(files, header("a", "b"), "ab", range(10), prefix=1, whole_keys=whole_keys, batch_bytes=1)
    kept = [sum(key() is not None for key in positions) for _ in batches]
    assert len(kept) > 5
    assert not any(kept)


def test_a_database_that_is_being_opened_is_not_read_for_its_next_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = database(tmp_path, some_entries(5))
    manifest, reads = Manifest.read, []

    def read_beside(data: bytes) -> Manifest:
        reads.append(len(data))
        if len(reads) == 1:  # while another thread is here
            with ThreadPoolExecutor(1) as pool:
                pool.submit(begin_database, files, (), ()).result()
        return manifest(data)

    monkeypatch.setattr(Manifest, "read", staticmethod(read_beside))
    assert read(files, range(10))
    assert len(reads) == 1


def test_states_and_column_families_must_agree(tmp_path: Path) -> None:
    files = database(tmp_path, some_entries(5), states="ab")
    with pytest.raises(FormatError, match=r"lacks 'c'"):
        list(read_native(files, header("a", "b", "c"), ["a"], [0], prefix=1, whole_keys=False))
    with pytest.raises(FormatError, match=r"column families 'b' that"):
        list(read_native(files, header("a"), ["a"], [0], prefix=1, whole_keys=False))


@pytest.mark.parametrize("name", ["../CURRENT", "/etc/x", "..", "CURRENT"])
def test_names_of_files_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    files = database(tmp_path, some_entries(5))
    more = DatabaseFiles(name=files.name, files=(*files.files, (name, files.files[0][1])))
    with pytest.raises(FormatError, match="is not the name of one file"):
        read(more, [0])


@pytest.mark.parametrize("format_version", [5, 6])
def test_missing_and_truncated_files_are_named(tmp_path: Path, format_version: int) -> None:
    files = database(tmp_path, some_entries(2000), blocks=block_options(format_version))
    for name, stream in files.files:
        path = Path(stream.file)
        good = path.read_bytes()
        path.write_bytes(good[:-1])
        with pytest.raises(FormatError, match=name):
            read(files, range(10))
        path.unlink()
        with pytest.raises(SnapshotNotFoundError, match=name):
            read(files, range(10))
        path.write_bytes(good)
    without = DatabaseFiles(name="here", files=tuple(f for f in files.files if not f[0].endswith(".sst")))
    with pytest.raises(FormatError, match=r"\.sst"):
        read(without, range(10))


@pytest.mark.parametrize("format_version", [5, 6])
def test_changed_bytes_are_an_error_or_change_nothing(tmp_path: Path, format_version: int) -> None:
    """Every block has a checksum: reading gives correct data, or an error that names the file."""
    entries = some_entries(2000)
    files = database(tmp_path, entries, blocks=block_options(format_version))
    dice = random.Random(2)
    errors = 0
    for _ in range(40):
        name, stream = dice.choice(files.files)
        path = Path(stream.file)
        good = path.read_bytes()
        bad = bytearray(good)
        bad[dice.randrange(len(bad))] ^= dice.randrange(1, 256)
        path.unlink()
        path.write_bytes(bad)
        try:
            assert sorted(e for batch in read(files, range(10)) for e in batch) == sorted(entries)
        except StatetoolError as error:
            errors += 1
            assert name in str(error) or error.where.file == files.name
        path.unlink()
        path.write_bytes(good)
    assert errors > 20


def test_no_folder_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    entries = some_entries(50)
    inline = database(tmp_path / "db", entries, blocks=block_options(6))
    inline = DatabaseFiles(
        name="x",
        files=tuple(
            (n, Stream(file="x", start=0, size_bytes=s.size_bytes, inline=Path(s.file).read_bytes()))
            for n, s in inline.files
        ),
    )
    assert sorted(e for batch in read(inline, range(10)) for e in batch) == sorted(entries)
    assert list(temporary.iterdir()) == []


# ---- statetool's reader compared with RocksDB ---------------------------------------------------


def pairs(slices: Iterable[Slice]) -> list[tuple[bytes, bytes]]:
    entries = []
    for s in slices:
        data = s.data.tobytes()
        columns = zip(s.key.tolist(), s.key_end.tolist(), s.value_end.tolist(), strict=True)
        entries += [(data[a:b], data[b:c]) for a, b, c in columns]
    return entries


def compare(files: DatabaseFiles, *, limit: int) -> int:
    """Read everything both ways; return the number of entries."""
    rocks, own = RocksDatabase(files), Tables(files)
    assert set(own.families) == set(rocks.column_families)
    n = 0
    for family in own.families:
        for low, high in ((b"\0", b"\xff"), (b"\3", b"\7")):
            wanted = pairs(rocks.slices(family, low, high, 1 << 20))
            assert pairs(TableSlices(own.open_range(family, low, high), low, high, limit, AHEAD_BYTES)) == wanted
            n += len(wanted)
    return n


def with_options(**calls: Any) -> rocksdict.BlockBasedOptions:
    blocks = block_options()
    blocks.set_block_size(500)
    for name, value in calls.items():
        getattr(blocks, name)(value)
    return blocks


@pytest.mark.parametrize(
    "blocks",
    [
        with_options(set_format_version=2),
        with_options(set_format_version=4, set_index_block_restart_interval=8),
        with_options(set_checksum_type=rocksdict.ChecksumType.crc32c()),
        with_options(
            set_index_type=rocksdict.BlockBasedIndexType.two_level_index_search(), set_metadata_block_size=200
        ),
        with_options(set_data_block_index_type=rocksdict.DataBlockIndexType.binary_and_hash()),
        with_options(set_block_restart_interval=1),
    ],
)
def test_tables_of_all_options(tmp_path: Path, blocks: rocksdict.BlockBasedOptions) -> None:
    entries = some_entries(1500)
    again = [(s, g, k, v[::-1]) for s, g, k, v in entries[::3]]
    files = database(tmp_path, [*entries, *again], deleted=entries[::5], blocks=blocks)
    left = {(s, g, k) for s, g, k, _ in entries} - {(s, g, k) for s, g, k, _ in entries[::5]}
    expected = len(left) + sum(3 <= g < 7 for _, g, _ in left)
    assert {compare(files, limit=limit) for limit in (1, 3000, 1 << 30)} == {expected}


@pytest.mark.parametrize("name", ["none", "snappy", "lz4", "lz4hc", "zstd", "zlib", "bz2"])
def test_tables_of_all_compressions(tmp_path: Path, name: str) -> None:
    entries = [(s, g, k, v * 5) for s, g, k, v in some_entries(500)]
    files = database(tmp_path, entries, compression=getattr(rocksdict.DBCompressionType, name)())
    # Few blocks at a time, and many.
    assert compare(files, limit=5000) == compare(files, limit=1 << 30)


@pytest.mark.parametrize("kind", ["crc32c", "xxh3"])
def test_checksums_of_blocks_of_all_sizes(tmp_path: Path, kind: str) -> None:
    """One block per entry, of 30 to 1,500 bytes: computed checksums equal RocksDB's."""
    blocks = with_options(set_checksum_type=getattr(rocksdict.ChecksumType, kind)())
    blocks.set_block_size(1)
    entries = [("a", 1, b"%04d" % i, bytes([i & 0xFF]) * i) for i in (*range(300), *range(300, 1500, 37))]
    files = database(tmp_path, entries, blocks=blocks, compression=rocksdict.DBCompressionType.none())
    assert compare(files, limit=1 << 20) == len(entries)


def test_errors_about_blocks_name_file_and_offset() -> None:
    stream = Stream(file="1.sst", start=0, size_bytes=100, inline=bytes(range(1, 101)))
    for offsets, words, offset in (([0, 10], "overlap", 10), ([0, 30], "wrong checksum", 0)):
        with stream.open() as f, pytest.raises(FormatError, match=words) as caught:
            StoredBlocks.read(f, stream, np.array(offsets), np.array([20, 5]), CRC32C)
        assert (caught.value.where.file, caught.value.where.offset) == ("1.sst", offset)


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("kind", [1, 4])
def test_a_damaged_block_is_named(count: int, kind: int) -> None:
    """A few blocks are uncompressed one by one, many Snappy blocks by a kernel."""
    plain = b"all the same " * 9
    compress = cramjam.snappy.compress_raw if kind == 1 else partial(cramjam.lz4.compress_block, store_size=False)
    block = bytes(compress(plain))
    raw = bytearray(block * count)
    raw[2 * len(block) : 3 * len(block)] = b"\xff" * len(block)
    ends = np.arange(1, count + 1) * len(block)
    stops = np.arange(1, count + 1) * len(plain)
    blocks = StoredBlocks(
        stream=Stream(file="1.sst", start=1000, size_bytes=len(raw)), offsets=ends - len(block), raw=frozen(np.frombuffer(raw, np.uint8)),
        starts=ends - len(block), ends=ends, kinds=np.full(count, kind, dtype=np.uint8), bodies=ends - len(block),
        sizes=np.full(count, len(plain)),
    )  # fmt: skip
    with pytest.raises(FormatError, match="a compressed block of a table file is damaged") as caught:
        blocks.write(np.empty(int(stops[-1]), dtype=np.uint8), stops - len(plain), stops)
    assert (caught.value.where.file, caught.value.where.offset) == ("1.sst", 1000 + 2 * len(block))


def test_what_our_own_reader_does_not_take(tmp_path: Path) -> None:
    entries = some_entries(300)
    files = database(tmp_path / "1", entries, deleted_range=(b"\2", b"\5"))
    with pytest.raises(UnsupportedManifestError, match="range_del"):
        Tables(files).open_range("a", b"\0", b"\xff")
    wanted = [e for e in entries if e[0] == "b" or not 2 <= e[1] < 5]
    assert sorted(e for batch in read(files, range(10)) for e in batch) == sorted(wanted)
    blocks = with_options(set_checksum_type=rocksdict.ChecksumType.xxhash64())
    files = database(tmp_path / "2", entries, blocks=blocks)
    with pytest.raises(UnsupportedManifestError, match="checksums"):
        Tables(files).open_range("a", b"\0", b"\xff")
    assert sorted(e for batch in read(files, range(10)) for e in batch) == sorted(entries)


@pytest.mark.parametrize("name", ["v1_13_6-rocksdb-incremental", "v1_20_5-rocksdb-incremental", "v2_3_0-forst"])
def test_flinks_own_databases(corpus: Path, name: str) -> None:
    """Lists are merge operands across several files; windows have only a few entries."""
    n = 0
    for metadata in sorted((corpus / name / "snapshot").rglob("_metadata")):
        for operator in statetool.load(str(metadata))._inventory.operators.values():
            for part in databases(operator)[:1]:
                n += compare(part.files, limit=200)
    assert n > 400


# ---- Flink's databases --------------------------------------------------------------------------


def native_splits(op: statetool.Operator, **arguments: Any) -> list[DatabaseSource]:
    splits = [s for s in op.scan("keyed_state", **arguments).splits if isinstance(s, KeyedSplit)]
    return [s.source for s in splits if isinstance(s.source, DatabaseSource)]


def test_splits_are_runs_of_key_groups(corpus: Path) -> None:
    folder = corpus / "v2_3_0-rocksdb-native" / "snapshot"
    op = statetool.load(str(folder))["orders"]
    whole = op.to_arrow(on_error="keep_raw").to_pylist()
    splits = native_splits(op, split_bytes=2000)
    assert len(splits) > 20
    assert sorted(g for s in splits for g in s.key_groups) == list(range(op.max_parallelism))
    again = op.to_arrow(split_bytes=2000, on_error="keep_raw").to_pylist()
    assert sorted(map(repr, again)) == sorted(map(repr, whole))


def test_a_key_reads_its_key_group_only(corpus: Path) -> None:
    op = statetool.load(str(corpus / "v2_3_0-rocksdb-native" / "snapshot"))["scalars-by-long"]
    key = op.to_arrow(
        states=["string"] if "string" in op.states else None, decimals="string", nanos="companion"
    ).to_pylist()[0]["key"]
    splits = native_splits(op, keys=[key], decimals="string", nanos="companion")
    assert [len(s.key_groups) for s in splits] == [1]
    rows = op.to_arrow(keys=[key], decimals="string", nanos="companion").to_pylist()
    assert [r["key"] for r in rows] == [key]


def test_a_key_reads_few_bytes(tmp_path: Path) -> None:
    entries = some_entries(3000)
    blocks = block_options()
    blocks.set_block_size(500)
    files = database(tmp_path, entries, blocks=blocks)
    read(files, [0])  # opens it
    start = BYTES_READ.total
    read(files, range(10))
    whole = BYTES_READ.total - start
    read(files, [4])
    assert BYTES_READ.total - start - whole < whole / 5


@pytest.mark.parametrize("format_version", [5, 6])
def test_keys_are_looked_up(tmp_path: Path, format_version: int) -> None:
    entries = some_entries(300)
    files = database(tmp_path, entries, blocks=block_options(format_version))
    for number in (0, 17, 299):
        keys = [encoded(KEY, f"k{number}" * n) for n in (1, 2, 3)] + [b"\xff\xff"]
        looked_up = [e for batch in read(files, range(10), keys=keys) for e in batch]
        assert looked_up == [e for e in entries if e[2][:-1] in keys]
        assert looked_up
    # Many keys: their key groups are read completely.
    assert sorted(e for batch in read(files, range(10), keys=keys * 30) for e in batch) == sorted(entries)


@pytest.mark.parametrize("prefix", [1, 2])
def test_ranges_of_keys_end_behind_all_that_start_with_them(prefix: int) -> None:
    for group in (0, 1, 127) if prefix == 1 else (0, 255, 256, 32767):
        for key in (b"", b"a", b"\xff", b"\xff\xff", b"a\xff"):
            ((low, high),) = native.key_ranges([group], [key], prefix)
            head = group.to_bytes(prefix, "big")
            assert low == head + key
            for more in (b"", b"\0", b"\xff" * 5):
                assert low <= head + key + more < high
            if key.startswith(b"a"):
                assert head + b"b" >= high
            assert (group + 1).to_bytes(prefix, "big") >= high


def test_other_file_systems(corpus: Path) -> None:
    """Table files are read in place; files for RocksDB are copied first."""
    import fsspec

    folder = corpus / "v2_3_0-rocksdb-native" / "snapshot"
    fs = fsspec.filesystem("memory")
    fs.put(str(folder), "/native", recursive=True)
    near, far = (statetool.load(p)["by-tuple"] for p in (str(folder), "memory://native"))
    assert far.to_arrow().to_pylist() == near.to_arrow().to_pylist()
    part = databases(far._operator)[0]
    assert all(s.file.startswith("memory://") for n, s in part.files.files if n.endswith(".sst"))
    assert compare(part.files, limit=1000) > 0


def test_a_moved_checkpoint_reads(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "v2_3_0-rocksdb-incremental" / "snapshot"
    shutil.copytree(source, tmp_path / "elsewhere")
    chk = next(p.parent.name for p in sorted(source.rglob("_metadata")))
    moved = statetool.load(str(tmp_path / "elsewhere" / chk))
    files = [r.path for r in moved.metadata_rows("files")]
    assert files
    assert all(p.startswith(str(tmp_path)) for p in files)
    name = next(o for o in moved if moved[o].tables and "keyed_state" in moved[o].tables)
    assert moved[name].to_arrow(on_error="keep_raw", decimals="string", nanos="companion").num_rows > 0


def test_key_groups_of_a_database_have_no_places(corpus: Path) -> None:
    sp = statetool.load(str(corpus / "v2_3_0-rocksdb-native" / "snapshot"))
    rows = [r for r in sp.metadata_rows("key_groups") if r.operator == "orders"]
    assert sorted(r.key_group for r in rows) == list(range(128))
    assert {r.size_bytes for r in rows} == {None}
    assert sp.to_arrow("key_groups").num_rows == len(sp.metadata_rows("key_groups"))
