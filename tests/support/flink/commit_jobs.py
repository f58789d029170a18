"""Jobs whose sink has a global committer: what they have committed, and savepoints that are rewritten so that they still commit it once.

``GlobalJob`` (``global_committers/harness``) writes with a sink whose state has the layout of Delta's for Flink 1.x. ``DeltaSinkJob``
(``delta_sinks``) writes with Delta's sink, which is compiled from its sources, as the jar was not available.

``python -m tests.support.flink.commit_jobs FOLDER`` takes these sources from the clone ``FOLDER/delta`` (delta-io/delta). It runs
``DeltaSinkJob``, restores a rewritten savepoint of it, checks that each number is in the table once, and packs the savepoint with the log.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

import statetool
from tests.support.connectors.built import extract_sources
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "delta-sink.tar.xz"
#: The last release for which Delta's sink is compiled. Its global committers commit one checkpoint late, so there is something in their state.
FLINK: Final = "1.16.3"
_JOBS: Final = HERE / "support" / "flink"
_TAG: Final = "v3.3.2"
_SOURCES: Final = "connectors/flink/src/main/java"
#: Folders of Delta's sources, and the classes that the sink needs of them.
_CLASSES: Final = {
    "io/delta/flink/sink": (
        "DeltaSink RowDataDeltaSinkBuilder DeltaBucketAssigner DeltaPartitionComputer DeltaSinkBuilder DeltaSinkInternal DeltaSinkOptions"
        " SchemaConverter DeltaCommittable DeltaCommittableSerializer DeltaGlobalCommittable DeltaGlobalCommittableSerializer DeltaCommitter"
        " DeltaGlobalCommitter DeltaWriter DeltaWriterBucket DeltaWriterBucketState DeltaWriterBucketStateSerializer"
    ),
    "io/delta/flink/internal": (
        "ConnectorUtils DeltaFlinkHadoopConf Lazy BaseOptionTypeConverter BooleanOptionTypeConverter DefaultOptionTypeConverter"
        " DeltaConfigOption DeltaConnectorConfiguration DeltaOptionValidationException NonNegativeNumberTypeConverter OptionType"
        " OptionTypeConverter OptionValidator"
    ),
    "org/apache/flink": "DeltaBulkBucketWriter DeltaBulkPartWriter DeltaInProgressPart DeltaPendingFile",
}


def sink_uids(uid: str) -> list[str]:
    """Return the uids of a sink's writer, committer and global committer."""
    return [uid, f"Sink Committer: {uid}", f"Sink {uid} Global Committer"]


def global_machine(work: Path) -> FlinkMachine:
    """Start Flink with ``GlobalJob``."""
    return FlinkMachine(FLINK, work, (_JOBS / "global_committers",))


def delta_machine(clones: Path, work: Path) -> FlinkMachine:
    """Start Flink with ``DeltaSinkJob`` and Delta's sources."""
    sources = []
    for package, classes in _CLASSES.items():
        folder = work / "sources" / package
        folder.mkdir(parents=True)
        extract_sources(clones / "delta", _TAG, classes, folder, f"{_SOURCES}/{package}")
        sources.append(folder)
    jobs = (_JOBS / "global_committers", _JOBS / "delta_sinks")
    return FlinkMachine(FLINK, work, (*jobs, *sources), jars=[*maven_jars("delta-sink"), *maven_jars("hadoop")])


def run_job(machine: FlinkMachine, job: str, table: Path, uid: str, **request: Any) -> dict[str, Any]:
    """Run a job until it has committed, and return its answer."""
    return machine.call("class", **{"class": job}, table=str(table), uid=uid, **request)


def rewrite(savepoint: str, before: str, after: str, work: Path) -> statetool.Savepoint:
    """Give the operators another max parallelism and those of the sink other uids."""
    taken = statetool.load(savepoint).with_uids(sink_uids(before))
    # Flink runs a global committer with max parallelism 1, and restores it with no other.
    parallel = [uid for uid, operator in taken.operators.items() if operator.max_parallelism > 1]
    assert sink_uids(before)[1] in parallel
    assert sink_uids(before)[2] not in parallel
    statetool.rescale(taken, str(work / "rescaled"), dict.fromkeys(parallel, 64))
    changes = dict(zip(sink_uids(before), sink_uids(after), strict=True))
    statetool.change_uids(str(work / "rescaled"), str(work / "uids"), changes, uids=sink_uids(before))
    return statetool.load(str(work / "uids")).with_uids(sink_uids(after))


def pending_files(savepoint: statetool.Savepoint, uid: str) -> dict[str, int]:
    """Return the uncommitted files of an operator with their sizes."""
    return {t["name"]: t["size_bytes"] for t in savepoint[uid].transactions().to_pylist()}


def delta_adds(log: Path) -> Iterator[tuple[int, str, int]]:
    """Yield version, path and size of the files that the log of a Delta table adds."""
    for file in sorted(log.glob("*.json")):
        for line in file.read_text("utf-8").splitlines():
            if add := json.loads(line).get("add"):
                yield int(file.stem), add["path"], add["size"]


def _numbers(table: Path) -> list[int]:
    """Return the numbers in a Delta table."""
    paths = [path for _, path, _ in delta_adds(table / "_delta_log")]
    assert len(paths) == len(set(paths)), "a file was committed twice"
    return _numbers_of(table, paths)


def _numbers_of(table: Path, paths: Iterable[str]) -> list[int]:
    return sorted(n for path in paths for n in pq.read_table(table / path)["n"].to_pylist())


def _check_restores(machine: FlinkMachine, savepoint: statetool.Savepoint, table: Path, work: Path) -> None:
    """Restore a savepoint, also without two of its files, in a table that lacks all of them; raise an error if one is lost or doubled."""
    log, uids = table / "_delta_log", sink_uids("b")
    of_committer, of_global = (pending_files(savepoint, uid) for uid in uids[1:])
    assert of_committer
    assert of_global
    pending = of_committer | of_global
    first = min(version for version, path, _ in delta_adds(log) if path in of_global)
    for file in log.iterdir():
        if int(file.name.lstrip(".").split(".")[0]) >= first:
            file.unlink()
    shutil.copytree(table, work / "kept")
    lost = {min(of_committer), min(of_global)}
    path = savepoint.path
    for dropped in (set[str](), lost):
        for uid, files in zip(uids[1:], (of_committer, of_global), strict=True):
            if names := dropped & files.keys():
                target = str(work / f"without-{uid}")
                statetool.drop_transactions(path, target, uid, names, uids=uids)
                path = target
        shutil.rmtree(table)
        shutil.copytree(work / "kept", table)
        run_job(machine, "DeltaSinkJob", table, "b", snapshot=path)
        adds = {path: size for _, path, size in delta_adds(log)}
        assert {path: adds[path] for path in pending if path in adds} == {
            path: size for path, size in pending.items() if path not in dropped
        }
        numbers = sorted([*_numbers(table), *_numbers_of(table, dropped)])
        assert numbers == [*range(len(numbers))]
        print(f"{len(numbers)} numbers, {len(of_global)} and {len(of_committer)} files, {len(dropped)} dropped")
    # Delta adds files again that the table has. Its readers take each path once.
    run_job(machine, "DeltaSinkJob", table, "b", snapshot=savepoint.path)
    added = [path for _, path, _ in delta_adds(log)]
    assert {added.count(path) for path in pending if path not in lost} == {2}


def main() -> None:
    """Run the job with Delta's sink, check restores of its rewritten savepoint, and pack the savepoint."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        table = work / "table"
        machine = delta_machine(Path(sys.argv[1]), work)
        try:
            first = run_job(machine, "DeltaSinkJob", table, "a", savepoint=str(work / "taken"), more=3)
            shutil.copytree(table / "_delta_log", work / "log", ignore=shutil.ignore_patterns("*.crc", ".*"))
            _check_restores(machine, rewrite(first["savepoint"], "a", "b", work), table, work)
        finally:
            machine.close()
        with tarfile.open(PACKED, "w:xz") as tar:
            tar.add(first["savepoint"], "snapshot")
            tar.add(work / "log", "log")
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
