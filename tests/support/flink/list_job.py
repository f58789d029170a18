"""A savepoint with compressed operator state of Flink 1.18.1, whose offsets are wrong (FLINK-34063; ``lists/harness``).

``python -m tests.support.flink.list_job`` packs it with the values that the job wrote.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine

PACKED: Final = HERE / "corpus" / "compressed-lists.tar.xz"
_RELEASE: Final = "1.18.1"
_CONFIG: Final = {"execution.checkpointing.snapshot-compression": "true"}


def list_machine(release: str, work: Path) -> FlinkMachine:
    """Start a release of Flink with the job."""
    return FlinkMachine(release, work, (HERE / "support" / "flink" / "lists",))


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job, and return the values of its states and the savepoint."""
    return machine.call("class", **{"class": "ListsJob"}, **request)


def main() -> None:
    """Write the archive from scratch."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(PACKED, "w:xz") as tar:
        machine = list_machine(_RELEASE, Path(work))
        try:
            answer = run_job(machine, config=_CONFIG, savepoint=str(Path(work) / "savepoint"))
        finally:
            machine.close()
        savepoint = Path(answer["savepoint"])
        (savepoint / "values.json").write_text(json.dumps(answer["values"]), "utf-8")
        tar.add(savepoint, _RELEASE)


if __name__ == "__main__":
    main()
