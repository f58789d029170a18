"""Savepoints of a delta join (``deltas/harness``) whose look-ups have not returned, so that all of its rows wait.

``python -m tests.support.flink.delta_job`` packs a savepoint per release with the plan of the job and the rows that its sources sent.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine

PACKED: Final = HERE / "corpus" / "delta-join.tar.xz"
#: Delta joins exist since 2.1. The backend of each release, and the format of its savepoint.
RELEASES: Final = {"2.1.3": ("rocksdb", "CANONICAL"), "2.2.1": ("hashmap", "NATIVE"), "2.3.0": ("rocksdb", "NATIVE")}
#: Number of rows of both tables.
ROWS: Final = 9
_JOB: Final = HERE / "support" / "flink" / "deltas"


def delta_machine(release: str, work: Path) -> FlinkMachine:
    """Start a release of Flink with the job."""
    return FlinkMachine(release, work, (_JOB,))


def run_job(machine: FlinkMachine, wanted: int, **request: Any) -> dict[str, Any]:
    """Run the job until it has sent (or, if look-ups return, joined) a number of rows, and return its answer."""
    return machine.call("class", **{"class": "DeltaJoinJob"}, wanted=wanted, **request)


def main() -> None:
    """Take the savepoints and pack them."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(PACKED, "w:xz") as tar:
        for release, (backend, kind) in RELEASES.items():
            machine = delta_machine(release, Path(work))
            try:
                folder = Path(work) / release
                answer = run_job(machine, ROWS, backend=backend, format=kind, savepoint=str(folder), parallelism=2)
            finally:
                machine.close()
            savepoint = Path(answer["savepoint"])
            (savepoint / "plan.json").write_text(answer["plan"], "utf-8")
            (savepoint / "sent.json").write_text(json.dumps(answer["sent"], ensure_ascii=False), "utf-8")
            tar.add(savepoint, release)
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
