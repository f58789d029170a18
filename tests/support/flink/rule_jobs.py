"""Savepoints for rules of a restore that no other corpus has (``rule_jobs/harness``, ``async_sinks/harness``, ``dynamic/harness``).

``python -m tests.support.flink.rule_jobs`` runs the jobs in real Flink and packs their savepoints: a job with an own sink and collected results,
restored twice (``first``, ``second``, ``third``); its sink in Flink 2.0.0 while it runs (``running``) and when it was drained (``drained``); a sink
with buffered requests (``buffered``); the dynamic source of Kafka (``dynamic``); asynchronous state of ForSt
(``asynchronous``), also of a POJO that gets a field (``grown-old``, ``grown-new``).
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from kafka.admin import KafkaAdminClient, NewTopic

from tests.support.corpora.archives import HERE
from tests.support.flink import forms
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.zoo_cases import sources_of
from tests.support.servers.kafka_server import kafka_server
from tools.flink_jars import DEFAULT_VERSIONS
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "rules.tar.xz"
#: The release whose writers keep the end of their input.
_ENDS: Final = "2.0.0"
_JOBS: Final = HERE / "support" / "flink"
_NEWEST: Final = DEFAULT_VERSIONS[0]


@contextmanager
def _machine(release: str, work: Path, *folders: Path, **more: Any) -> Iterator[FlinkMachine]:
    machine = FlinkMachine(release, work, folders, **more)
    try:
        yield machine
    finally:
        machine.close()


def _savepoints(work: Path) -> Iterator[tuple[str, Path]]:
    """Run the jobs, and yield the name and the folder of each savepoint."""

    def run(machine: FlinkMachine, name: str, job: str, **request: Any) -> tuple[str, Path]:
        answer = machine.call("class", **{"class": job}, savepoint=str(work / name), **request)
        return name, Path(answer["savepoint"])

    with _machine(_NEWEST, work, _JOBS / "rule_jobs") as machine:
        path: dict[str, str] = {}
        for name in ("first", "second", "third"):
            saved = run(machine, name, "RulesJob", collect=True, **path)
            path = {"snapshot": str(saved[1])}
            yield saved
    with _machine(_ENDS, work, _JOBS / "rule_jobs") as machine:
        yield run(machine, "running", "RulesJob")
        yield run(machine, "drained", "RulesJob", drain=True)
    with _machine(DEFAULT_VERSIONS[1], work, _JOBS / "async_sinks") as machine:
        yield run(machine, "buffered", "AsyncJob", uid="out")
    jars = maven_jars(f"kafka-{_NEWEST}")
    with kafka_server(work / "kafka") as broker, _machine(_NEWEST, work, _JOBS / "dynamic", jars=jars) as machine:
        with closing(KafkaAdminClient(bootstrap_servers=broker)) as admin:
            admin.create_topics([NewTopic("orders", 4, 1)])
        yield run(machine, "dynamic", "DynamicJob", servers=broker, topic="orders")
    with _machine(_NEWEST, work, *sources_of(_NEWEST)) as machine:
        yield "asynchronous", forms.make_base(machine, work / "asynchronous", "async")[0]
    yield "grown-old", forms.write_grown(_NEWEST, work, "old")
    yield "grown-new", forms.write_grown(_NEWEST, work, "new")


def main() -> None:
    """Write the archive from scratch."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(PACKED, "w:xz") as tar:
        for name, savepoint in _savepoints(Path(work)):
            tar.add(savepoint, f"rules/{name}")


if __name__ == "__main__":
    main()
