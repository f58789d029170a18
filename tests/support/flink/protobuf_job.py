"""Savepoints of a job whose serializers write Protobuf messages after their length (``protobufs/harness``).

``python -m tests.support.flink.protobuf_job`` packs a savepoint per release with the values that the job saw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.tree_job import RELEASES, pack_savepoints
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "protobufs.tar.xz"
_JOB: Final = HERE / "support" / "flink" / "protobufs"


def protobuf_machine(release: str, work: Path) -> FlinkMachine:
    """Start a release of Flink with the job."""
    return FlinkMachine(release, work, (_JOB,), jars=maven_jars("protobufs"))


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "ProtobufJob"}, **request)


if __name__ == "__main__":
    pack_savepoints(PACKED, RELEASES, protobuf_machine, run_job)
