"""Savepoints of a job that keeps offsets as the sink of Fluss 0.9 does (``flusses/harness``).

``python -m tests.support.flink.fluss_job`` packs a savepoint per release with the values that the job saw.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.tree_job import RELEASES, pack_savepoints
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "fluss.tar.xz"
_JOB: Final = HERE / "support" / "flink" / "flusses"


def fluss_machine(release: str, work: Path) -> FlinkMachine:
    """Start a release of Flink with the job."""
    return FlinkMachine(release, work, (_JOB,), jars=maven_jars("fluss-0.9.1"))


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "FlussJob"}, **request)


if __name__ == "__main__":
    pack_savepoints(PACKED, RELEASES, fluss_machine, run_job)
