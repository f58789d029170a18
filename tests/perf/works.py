"""Works that ``tests.perf.all`` measures: each prepares itself and returns the function to run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import statetool
from tests.perf.write_bench import accounts

#: Runs, given a target that does not exist.
Run: TypeAlias = Callable[[Path], object]
#: Snapshots written by Flink, by their names here: the backend of the job, and the folder.
SNAPSHOTS: Final = {
    "canonical": ("rocksdb", "accounts-rocksdb-canonical/sp"),
    "RocksDB native": ("rocksdb", "accounts-rocksdb-native/sp"),
    "heap native": ("hashmap", "accounts-hashmap-native/sp"),
}
_MANY_FILES: Final = 508
#: More keys than this do not fit into the memory given to Flink's heap backend.
_HEAP_KEYS: Final = 5_000_000


def snapshots(keys: int) -> dict[str, tuple[str, str]]:
    """Return the available snapshots for a number of keys."""
    return {name: found for name, found in SNAPSHOTS.items() if found[0] != "hashmap" or keys <= _HEAP_KEYS}


def kernels(folder: Path, snapshot: str) -> Run:
    """Read all splits into Arrow on two threads."""
    from tests.perf.read_bench import kernels as read_all

    return lambda _: read_all(statetool.load(path_of(folder, snapshot))["accounts"])()


def spark_noop(folder: Path, snapshot: str, *, cores: int = 2) -> Run:
    """Read through Spark into the noop sink."""
    from tests.perf.read_bench import spark_noop as read_all

    run = read_all(path_of(folder, snapshot), "accounts", cores=cores)
    return lambda _: run()


def bootstrap(keys: int, spark: Any = None) -> Run:
    """Write accounts as a savepoint, from an Arrow table or a Parquet file."""
    data: Any = accounts(keys)
    if spark is not None:
        import pyarrow.parquet as pq

        file = Path(tempfile.mkdtemp(prefix="statetool-bench-")) / "accounts.parquet"
        pq.write_table(data, file, row_group_size=max(1, keys // 8))
        data = spark.read.parquet(str(file))
    states = {
        "count": statetool.value("BIGINT"), "name": statetool.value("STRING"), "score": statetool.value("DOUBLE"),
        "balances": statetool.map_of("STRING", "DOUBLE"),
    }  # fmt: skip
    writer = statetool.SavepointWriter.new().with_operator(
        "accounts", statetool.bootstrap_keyed_state(data, key="id", states=states), parallelism=4
    )
    return lambda target: writer.write(str(target))


def command(folder: Path) -> Run:
    """Rescale in a terminal."""
    words = [sys.executable, "-m", "statetool", "rescale", path_of(folder, "canonical")]
    return lambda target: subprocess.run(
        [*words, str(target), "--uid", "accounts=300"], check=True, capture_output=True
    )  # fmt: skip


def verify(folder: Path, snapshot: str) -> Run:
    """Check every value."""
    path = path_of(folder, snapshot)
    return lambda _: statetool.verify(path, deep=True)


def lookup(folder: Path, snapshot: str) -> Run:
    """Read one key."""
    operator = statetool.load(path_of(folder, snapshot))["accounts"]
    return lambda _: operator.to_arrow(keys=[12345])


def bare_scan(folder: Path) -> Run:
    """Let RocksDB itself iterate over all entries of all column families with ``rocksdict``, without decoding."""
    import rocksdict

    from statetool.entries.database import StoredDatabase
    from statetool.formats.rocksdb.library import fetch

    keyed = statetool.load(path_of(folder, "RocksDB native"))["accounts"].inventory.keyed
    databases = [s.files for s in keyed.managed if isinstance(s, StoredDatabase)]

    def run(target: Path) -> int:
        found = 0
        for i, files in enumerate(databases):
            here = Path(f"{target}-{i}")
            here.mkdir(parents=True)
            fetch(files, here)
            families = dict.fromkeys(rocksdict.Rdict.list_cf(str(here)), rocksdict.Options(raw_mode=True))
            read_only = rocksdict.AccessType.read_only(False)
            db = rocksdict.Rdict(
                str(here), rocksdict.Options(raw_mode=True), column_families=families, access_type=read_only
            )
            found += sum(1 for name in families for _ in db.get_column_family(name).items())
            db.close()
        return found

    return run


def diff(folder: Path, keys: int) -> Run:
    """Compare with a savepoint in which one value in a hundred differs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def change(table: pa.Table) -> pa.Table:
        some = pc.equal(pc.bit_wise_and(table["key"], 127), 0)
        counts = pc.add(table["count"], some.cast(table["count"].type))
        return table.select(["key", "key_group"]).append_column("count", counts)

    before = statetool.load(path_of(folder, "canonical"))
    changed = Path(tempfile.mkdtemp(prefix="statetool-bench-")) / "changed"
    after = before["accounts"].transform(change, states=["count"]).write(str(changed))

    def run(_: Path) -> object:
        (row,) = [s for s in before.diff(after).summary() if s.changed]
        assert 0 < row.changed <= keys // 100
        return row

    return run


def stats(folder: Path, snapshot: str) -> Run:
    """Measure the sizes of states, key groups and subtasks, and the largest keys."""
    path = path_of(folder, snapshot)

    def run(_: Path) -> object:
        found = statetool.load(path).stats()
        return [len(list(rows)) for rows in map(found.rows, ("states", "largest"))]

    return run


def many_files(spark: Any = None) -> Run:
    """Copy a savepoint of many small files through a composition that changes nothing."""
    folder = Path(tempfile.mkdtemp(prefix="statetool-bench-")) / "many"
    state = statetool.bootstrap_keyed_state(accounts(20_000), key="id")
    writer = statetool.SavepointWriter.new().with_operator(
        "accounts", state, parallelism=_MANY_FILES, max_parallelism=1024
    )
    writer.write(str(folder), inline_bytes=0)
    again = statetool.SavepointWriter.from_existing(statetool.load(str(folder), spark))
    return lambda target: again.write(str(target), inline_bytes=0)


def session() -> Any:
    """Start Spark."""
    from statetool.spark.session import local_session

    spark = local_session(cores="2", name="bench")
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(1).count()
    return spark


def works(folder: Path, keys: int) -> dict[str, Callable[[], Run]]:
    """Return the works to measure."""

    def edit() -> Run:
        savepoint = statetool.load(path_of(folder, "canonical"), spark=session())
        operator = savepoint["accounts"]
        rows = operator.keyed_state(states=["count"]).selectExpr("key", "count + 1 AS count")
        state = statetool.bootstrap_keyed_state(rows, key="key", like=operator)
        writer = statetool.SavepointWriter.from_existing(savepoint).with_operator("accounts", state)
        return lambda target: writer.write(str(target))

    canonical = path_of(folder, "canonical")
    return {
        **{f"kernels into Arrow, {s}": lambda s=s: kernels(folder, s) for s in snapshots(keys)},  # type: ignore[misc]
        **{f"Spark noop, {s}": lambda s=s: spark_noop(folder, s) for s in ("canonical", "RocksDB native")},  # type: ignore[misc]
        "Spark noop on one core, canonical": lambda: spark_noop(folder, "canonical", cores=1),
        **{f"one key, {s}": lambda s=s: lookup(folder, s) for s in ("canonical", "RocksDB native")},  # type: ignore[misc]
        "bare rocksdict scan, RocksDB native": lambda: bare_scan(folder),
        "bootstrap, in this process": lambda: bootstrap(keys),
        "bootstrap, Spark": lambda: bootstrap(keys, session()),
        "rescale, in this process": lambda: lambda target: statetool.rescale(canonical, str(target), {"accounts": 300}),
        "rescale, the command": lambda: command(folder),
        "edit of one column, Spark": edit,
        f"copy of {_MANY_FILES} files, in this process": many_files,
        f"copy of {_MANY_FILES} files, Spark": lambda: many_files(session()),
        "diff of 1 % changed": lambda: diff(folder, keys),
        **{f"stats, {s}": lambda s=s: stats(folder, s) for s in ("canonical", "RocksDB native")},  # type: ignore[misc]
        "verify --deep, RocksDB native": lambda: verify(folder, "RocksDB native"),
    }


def path_of(folder: Path, snapshot: str) -> str:
    """Return the path of a snapshot written by Flink."""
    return str(folder / SNAPSHOTS[snapshot][1])
