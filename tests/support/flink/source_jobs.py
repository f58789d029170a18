"""Savepoints of jobs in the middle of a source (``sources/harness``): JDBC, Iceberg, monitored files, and Kinesis before FLIP-27.

``python -m tests.support.flink.source_jobs`` takes a savepoint of each in Flink and packs it, with what the job had read then.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "sources.tar.xz"
#: Number of records of each source. The last shard of Kinesis has none.
SOURCES: Final = {"jdbc": 800, "iceberg": 800, "files": 800, "kinesis": 600}
_JOB: Final = HERE / "support" / "flink" / "sources"
_FLINK: Final = "1.20.5"


def source_machine(work: Path) -> FlinkMachine:
    """Start Flink with the connectors."""
    return FlinkMachine(_FLINK, work, (_JOB,), jars=[*maven_jars("read-sources"), *maven_jars("hadoop")])


def run_job(machine: FlinkMachine, source: str, work: Path, **request: Any) -> dict[str, Any]:
    """Run ``SourcesJob`` with the data of a source below a folder, and return its answer."""
    return machine.call("class", **{"class": "SourcesJob"}, source=source, folder=str(work / source), **request)


def take_savepoint(machine: FlinkMachine, source: str, work: Path) -> dict[str, Any]:
    """Run a job, take a savepoint in the middle, and return its answer."""
    return run_job(machine, source, work, wanted=SOURCES[source] // 8, savepoint=str(work / f"{source}-savepoints"))


def read_numbers(answer: dict[str, Any]) -> list[int]:
    """Return the numbers that a job had read when the savepoint was taken."""
    return sorted(int(n) for found in answer["snapshots"] for n in found.get("records", ()))


def shard_positions(answer: dict[str, Any]) -> dict[str, str]:
    """Return the positions of shards of Kinesis when the savepoint was taken."""
    return {shard: at for found in answer["snapshots"] for shard, at in found.get("shards", {}).items()}


def main() -> None:
    """Take the savepoints and pack them."""
    with tempfile.TemporaryDirectory(prefix="sources-") as folder, tarfile.open(PACKED, "w:xz") as tar:
        work = Path(folder)
        machine = source_machine(work)
        try:
            for source in SOURCES:
                answer = take_savepoint(machine, source, work)
                answer["modified_ms"] = [p.stat().st_mtime_ns // 1_000_000 for p in (work / source).glob("*.txt")]
                savepoint = Path(answer["savepoint"])
                (savepoint / "answer.json").write_text(json.dumps(answer))
                tar.add(savepoint, source)
        finally:
            machine.close()
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
