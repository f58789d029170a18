"""Many keys: ``python -m tests.perf.large_bench [--keys 20000000 --keys 100000000] [--folder DIR] [--write]``.

Savepoints that statetool writes from Parquet files are read, measured, checked, compared, rescaled and edited, in this process and
on Spark, each in a separate process. All files are read from disk, because those of 100 million keys do not fit into memory. The table
shows whether CPU time grows in proportion to the keys and whether memory does not.
100 million keys need about 60 GB of disk. ``--write`` puts the table into ``docs/operations/performance.md``; ``--only WORK`` runs a part.

Memory is anonymous memory (``RssAnon``): pages of mapped files, which the system can drop at any time, do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset as pads
import pyarrow.parquet as pq

import statetool
from tests.perf.all import PAGE, descendants
from tests.perf.works import session
from tests.perf.write_bench import accounts

MARKS: Final = (
    "<!-- many keys: written by python -m tests.perf.large_bench --write -->",
    "<!-- end of the table of many keys -->",
)
#: Rows of a Parquet file.
CHUNK: Final = 1_000_000
#: Keys of a subtask, as in a job whose subtasks have a few hundred megabytes of state.
KEYS_OF_A_SUBTASK: Final = 2_500_000
TYPES: Final = {"count": "BIGINT", "name": "STRING", "score": "DOUBLE"}


@contextmanager
def watched(folder: Path) -> Iterator[dict[str, float]]:
    """Measure the block: seconds, CPU seconds, the most MB of this process, of a worker and of a JVM, and the most GB in ``folder``."""
    seen = {"driver": 0.0, "worker": 0.0, "jvm": 0.0, "disk": 0.0}
    done = threading.Event()

    def look() -> None:
        ended = False
        while not ended:
            ended = done.wait(0.5)  # after the end too, so that short works are seen once
            deleted: dict[int, int] = {}
            for pid, (name, _, _) in descendants().items():
                deleted |= deleted_files(pid)
                kind = "driver" if pid == os.getpid() else "jvm" if name == "java" else "worker"
                seen[kind] = max(seen[kind], anonymous_mb(pid))
            seen["disk"] = max(seen["disk"], gigabytes(folder) + sum(deleted.values()) / 1e9)

    def cpu() -> float:
        return sum(seconds for _, seconds, _ in descendants().values())

    before, start = cpu(), time.perf_counter()
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
        seen |= {"seconds": time.perf_counter() - start, "cpu": cpu() - before}
    finally:
        done.set()
        watcher.join()


def anonymous_mb(pid: int) -> float:
    """Return the anonymous resident memory of a process, 0 after its end."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1000


def deleted_files(pid: int) -> dict[int, int]:
    """Return the bytes of the files that a process has open and that have no name any more, by inode: spilled entries are in such files."""
    found = {}
    for file in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            status = file.stat()
        except OSError:  # closed meanwhile
            continue
        if stat.S_ISREG(status.st_mode) and not status.st_nlink:
            found[status.st_ino] = status.st_blocks * 512
    return found


def gigabytes(folder: Path) -> float:
    """Return the bytes that the files below a folder occupy."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(parent) / name).stat().st_blocks * 512
            except OSError:  # deleted meanwhile
                continue
    return total / 1e9


def forget_files(folder: Path) -> None:
    """Let the system forget the contents of files, so that the next process reads them from disk."""
    for file in (Path(parent) / name for parent, _, files in os.walk(folder) for name in files):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make(folder: Path, keys: int) -> None:
    """Write the rows as Parquet files."""
    parquet = folder / "parquet"
    if parquet.exists():
        return
    unfinished = folder / "unfinished"
    unfinished.mkdir(parents=True)
    part = accounts(CHUNK)
    for i in range(keys // CHUNK):
        rows = part.set_column(0, "id", pa.compute.add(part["id"], i * CHUNK))
        pq.write_table(rows, unfinished / f"{i:05}.parquet", row_group_size=CHUNK // 4)
    unfinished.rename(parquet)


def written(data: Any, keys: int, target: Path, spark: Any = None, *, subtasks: int | None = None, **form: Any) -> None:
    """Bootstrap the accounts, in the canonical form if no other is given."""
    states = {name: statetool.value(kind) for name, kind in TYPES.items()}
    states["balances"] = statetool.map_of("STRING", "DOUBLE")
    state = statetool.bootstrap_keyed_state(data, key="id", states=states)
    subtasks = subtasks or max(4, keys // KEYS_OF_A_SUBTASK)
    writer = statetool.SavepointWriter.new(spark=spark).with_operator("accounts", state, parallelism=subtasks)
    writer.write(str(target), **form)


def bootstrap(folder: Path, keys: int, _: Path) -> None:
    """Bootstrap from a dataset of Parquet files."""
    written(pads.dataset(str(folder / "parquet")), keys, folder / "savepoint")


def bootstrap_on_spark(folder: Path, keys: int, target: Path) -> None:
    """Bootstrap from a DataFrame."""
    written(session().read.parquet(str(folder / "parquet")), keys, target)


def bootstrap_in_tasks(folder: Path, keys: int, target: Path) -> None:
    """Bootstrap from a dataset whose files are read by tasks."""
    written(pads.dataset(str(folder / "parquet")), keys, target, session())


def bootstrap_canonical(folder: Path, keys: int, _: Path) -> None:
    """Write what a job of two subtasks restores from canonical state."""
    written(
        pads.dataset(str(folder / "parquet")), keys, folder / "canonical", session(), subtasks=2, flink_version="2.3"
    )


def bootstrap_native(folder: Path, keys: int, _: Path) -> None:
    """Write what a job of two subtasks restores from databases of RocksDB."""
    form = {"format": "native", "backend": "rocksdb", "flink_version": "2.3"}
    written(pads.dataset(str(folder / "parquet")), keys, folder / "native", session(), subtasks=2, **form)


def read(folder: Path, keys: int, _: Path) -> None:
    """Read all rows as Arrow batches."""
    assert sum(b.num_rows for b in statetool.load(str(folder / "savepoint"))["accounts"].batches()) == keys


def read_on_spark(folder: Path, _: int, __: Path) -> None:
    """Read all rows into the noop sink."""
    frame = statetool.load(str(folder / "savepoint"), spark=session())["accounts"].keyed_state()
    frame.write.format("noop").mode("overwrite").save()


def look_up(folder: Path, keys: int, _: Path) -> None:
    """Read one key."""
    assert statetool.load(str(folder / "savepoint"))["accounts"].to_arrow(keys=[keys - 1]).num_rows == 1


def stats(folder: Path, _: int, __: Path) -> None:
    """Measure states and find the largest keys."""
    found = statetool.load(str(folder / "savepoint")).stats()
    assert all(len(list(found.rows(rows))) for rows in ("states", "largest"))


def verify(folder: Path, _: int, __: Path) -> None:
    """Decode and check every value."""
    assert statetool.verify(str(folder / "savepoint"), deep=True).ok


def rescale(folder: Path, _: int, target: Path) -> None:
    """Rescale."""
    statetool.rescale(str(folder / "savepoint"), str(target), {"accounts": 300})


def rescale_on_spark(folder: Path, _: int, target: Path) -> None:
    """Rescale on Spark."""
    statetool.rescale(str(folder / "savepoint"), str(target), {"accounts": 300}, spark=session())


def changed(table: pa.Table) -> pa.Table:
    """Change the value of one key in 128."""
    some = pa.compute.equal(pa.compute.bit_wise_and(table["key"], 127), 0)
    counts = pa.compute.add(table["count"], some.cast(pa.int64()))
    return table.select(["key", "key_group"]).append_column("count", counts)


def edit(folder: Path, _: int, __: Path) -> None:
    """Change one column of the keys."""
    operator = statetool.load(str(folder / "savepoint"))["accounts"]
    operator.transform(changed, states=["count"], in_batches=True).write(str(folder / "edited"))


def diff(folder: Path, keys: int, _: Path) -> None:
    """Compare the savepoint with the edited one."""
    before, after = (statetool.load(str(folder / name)) for name in ("savepoint", "edited"))
    (row,) = [s for s in before.diff(after).summary() if s.changed]
    assert row.changed == -(-keys // 128), row


def edit_on_spark(folder: Path, _: int, target: Path) -> None:
    """Change one column of all keys on Spark."""
    savepoint = statetool.load(str(folder / "savepoint"), spark=session())
    operator = savepoint["accounts"]
    rows = operator.keyed_state(states=["count"]).selectExpr("key", "count + 1 AS count")
    state = statetool.bootstrap_keyed_state(rows, key="key", like=operator)
    statetool.SavepointWriter.from_existing(savepoint).with_operator("accounts", state).write(str(target))


#: In their order: later works need what earlier ones leave in the folder.
WORKS: Final[Mapping[str, Callable[[Path, int, Path], None]]] = {
    "bootstrap from Parquet": bootstrap,
    "bootstrap from the same files, Spark": bootstrap_in_tasks,
    "bootstrap from a DataFrame of them, Spark": bootstrap_on_spark,
    "read": read,
    "read, Spark": read_on_spark,
    "one key": look_up,
    "`stats`": stats,
    "`verify --deep`": verify,
    "`rescale`": rescale,
    "`rescale`, Spark": rescale_on_spark,
    "`transform` of one column": edit,
    "`diff` of 1 % changed": diff,
    "edit of one column, Spark": edit_on_spark,
}

#: Those of :mod:`tests.perf.restore_bench`, which restores the results.
RESTORED_WORKS: Final[Mapping[str, Callable[[Path, int, Path], None]]] = {
    "canonical, Spark": bootstrap_canonical,
    "native, Spark": bootstrap_native,
}


def run(work: str, folder: Path, keys: int) -> dict[str, float]:
    """Run a work in a separate process, whose temporary files are in ``folder``."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    forget_files(folder)
    places = {"TMPDIR": str(temporary), "SPARK_LOCAL_DIRS": str(temporary)}
    words = [sys.executable, "-m", "tests.perf.large_bench", "--keys", str(keys), "--folder", str(folder)]
    done = subprocess.run(
        [*words, "--stage", work], capture_output=True, text=True, check=False, env={**os.environ, **places}
    )
    shutil.rmtree(temporary)
    if done.returncode:
        sys.exit(f"{work}: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(figures: Mapping[int, Mapping[str, Mapping[str, float]]]) -> str:
    """Return the figures as a Markdown table: CPU seconds by number of keys, then memory and disk for the largest number."""
    numbers = sorted(figures)
    most = {work: figures[n][work] for work in WORKS for n in numbers if work in figures[n]}
    heads = [f"CPU s, {n // 1_000_000} M keys" for n in numbers]
    lines = [f"| work | {' | '.join(heads)} | this process | a worker | disk |", "|---" * (4 + len(heads)) + "|"]
    for work, f in most.items():
        cpu = [f"{figures[n][work]['cpu']:,.1f}" if work in figures[n] else "" for n in numbers]
        worker = f"{f['worker']:,.0f} MB" if f["worker"] else ""
        disk = f"{f['disk']:.1f} GB" if f["disk"] >= 0.1 else ""
        lines.append(f"| {work} | {' | '.join(cpu)} | {f['driver']:,.0f} MB | {worker} | {disk} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="tests.perf.large_bench")
    parser.add_argument("--keys", type=int, action="append")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "statetool-perf" / "large")
    parser.add_argument("--only", action="append", help="works whose names begin so")
    parser.add_argument("--spark-up-to", type=int, default=sys.maxsize, help="most keys for works on Spark")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    numbers = given.keys or [20_000_000, 100_000_000]
    if given.stage:
        target = given.folder / "target"
        before = gigabytes(given.folder)
        if given.stage.endswith("Spark"):
            session()  # its start, some seconds, is the same for any number of keys
        with watched(given.folder) as seen:
            {**WORKS, **RESTORED_WORKS}[given.stage](given.folder, numbers[0], target)
        shutil.rmtree(target, ignore_errors=True)
        print(json.dumps(seen | {"disk": seen["disk"] - before}))
        return
    figures: dict[int, dict[str, dict[str, float]]] = {}
    for keys in numbers:
        folder = given.folder.resolve() / str(keys)
        make(folder, keys)
        figures[keys] = {}
        for work in WORKS:
            if work.endswith("Spark") and keys > given.spark_up_to:
                continue
            if not given.only or work.startswith(tuple(given.only)):
                figures[keys][work] = found = run(work, folder, keys)
                print(f"{keys:,} keys, {work}: {json.dumps(found)}", file=sys.stderr, flush=True)
        shutil.rmtree(folder)
    text = table(figures)
    print(text)
    if given.write:
        page = PAGE.read_text()
        begin, rest = page.split(MARKS[0])
        PAGE.write_text(f"{begin}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


if __name__ == "__main__":
    main()
