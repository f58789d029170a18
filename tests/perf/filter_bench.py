"""Reads of a restored database without filters and partitioned indexes: ``python -m tests.perf.filter_bench [--keys N] [--times N]``.

RocksDB looks up random keys in a state of a native savepoint, as statetool writes it, and after it has written all of it again with the options
``state.backend.rocksdb.use-bloom-filter`` and ``memory.partitioned-index-filters`` of Flink, which are off by default. Prints microseconds of CPU per
look-up of keys that exist and that do not, with index and filter blocks in a cache that holds all, and in one that holds an eighth of the data, for
a fiftieth of the look-ups.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path

import rocksdict

import statetool
from statetool.formats.backends.column_families import family_name
from tests.perf.write_bench import accounts

_FILTER_BITS = 10
_OPTIONS = ("as written", "with filter", "with filter and partitioned index")


def database(folder: Path, keys: int) -> tuple[Path, list[str]]:
    """Write a native savepoint with one database; return its folder and the names of its column families."""
    state = statetool.bootstrap_keyed_state(accounts(keys), key="id")
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=1)
    writer.write(str(folder / "savepoint"), flink_version="2.3", format="native", backend="rocksdb")
    (stored,) = statetool.load(str(folder / "savepoint"), uids=["op"])["op"].inventory.keyed.managed
    owned = stored.owned_database()
    assert owned is not None
    path = folder / "database"
    path.mkdir()
    for name, stream in owned.files.files:
        with stream.open() as f:
            (path / name).write_bytes(f.read_at(0, stream.size_bytes))
    return path, ["default", *(family_name(meta.name) for meta in stored.header().states)]


def options_of(kind: str, cache_bytes: int) -> rocksdict.Options:
    """Return options as Flink sets them, by default with managed memory."""
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_cache(rocksdict.Cache(cache_bytes))
    blocks.set_cache_index_and_filter_blocks(True)
    if kind != _OPTIONS[0]:
        blocks.set_bloom_filter(_FILTER_BITS, False)
    if kind == _OPTIONS[2]:
        blocks.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
        blocks.set_partition_filters(True)
        blocks.set_pin_top_level_index_and_filter(True)
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_disable_auto_compactions(True)
    return options


def compact(folder: Path, families: list[str], kind: str) -> None:
    """Let RocksDB write all files again."""
    options = options_of(kind, 8 << 20)
    db = rocksdict.Rdict(str(folder), options, column_families=dict.fromkeys(families, options))
    force = rocksdict.CompactOptions()
    force.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
    for name in families:
        db.get_column_family(name).compact_range(None, None, force)
    db.close()


def microseconds(folder: Path, families: list[str], kind: str, cache_bytes: int, times: int) -> tuple[float, float]:
    """Return the CPU time of a look-up of a key that exists, and of one that does not."""
    options = options_of(kind, cache_bytes)
    db = rocksdict.Rdict(str(folder), options, column_families=dict.fromkeys(families, options))
    family = db.get_column_family(families[1])
    draw = random.Random(1)
    existing = draw.sample([bytes(key) for key in family.keys()], times)  # type: ignore[arg-type]  # noqa: SIM118 - no dict
    # A key that would be beside an existing one.
    wanted = (existing, [key[:-1] + bytes([key[-1] ^ 0x80]) + b"\0" for key in existing])
    taken = []
    for keys, exists in zip(wanted, (True, False), strict=True):
        for _ in range(2):  # the first time warms the cache
            start = time.process_time()
            found = sum(family.get(key) is not None for key in keys)
            seconds = time.process_time() - start
        assert found == (times if exists else 0)
        taken.append(seconds / times * 1e6)
    del family
    db.close()
    return taken[0], taken[1]


def main() -> None:
    """Print a line per kind of files and size of the cache."""
    parser = argparse.ArgumentParser(prog="tests.perf.filter_bench")
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=200_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="statetool-bench-") as folder:
        path, families = database(Path(folder), given.keys)
        size = sum(f.stat().st_size for f in path.iterdir())
        print(f"{given.keys} keys, {size >> 20} MiB", flush=True)
        for kind in _OPTIONS:
            copy = Path(folder) / kind.replace(" ", "-")
            shutil.copytree(path, copy)
            if kind != _OPTIONS[0]:
                compact(copy, families, kind)
            for cache, times in ((2 * size, given.times), (size // 8, given.times // 50)):
                exists, absent = microseconds(copy, families, kind, cache, times)
                print(f"{kind:34} cache {cache >> 20:4} MiB: exists {exists:5.1f}, absent {absent:5.1f} us", flush=True)


if __name__ == "__main__":
    main()
