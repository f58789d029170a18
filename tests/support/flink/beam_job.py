"""Savepoints of a streaming pipeline of Apache Beam (``beam/harness``), run by Beam's own Flink runner.

``python -m tests.support.flink.beam_job`` packs a canonical savepoint of the heap backend and a native one of RocksDB, with the values that
the pipeline saw.
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

PACKED: Final = HERE / "corpus" / "beam.tar.xz"
#: The state backend of Beam's option, and the format of its savepoint.
BACKENDS: Final = {"filesystem": "CANONICAL", "rocksdb": "NATIVE"}
KEYS: Final = [f"key-{n}" for n in range(10)]
#: Beam's runner takes the full name of a step as the uid of its operator.
KEEPER: Final = "keeper/ParMultiDo(Keeper)"
GROUP: Final = "group"
SOURCE: Final = "numbers/Read(UnboundedCountingSource)"
_JOB: Final = HERE / "support" / "flink" / "beam"
_FLINK: Final = "1.16.3"


def beam_machine(work: Path) -> FlinkMachine:
    """Start the release of Flink for which Beam's runner was compiled, with its jars."""
    return FlinkMachine(_FLINK, work, (_JOB,), jars=maven_jars("beam"))


def run_job(machine: FlinkMachine, backend: str, **request: Any) -> dict[str, Any]:
    """Run the pipeline and return its answer: until a savepoint is taken, or until all timers have fired."""
    folder = str(machine.work / "checkpoints")
    return machine.call("class", **{"class": "BeamJob"}, backend=backend, folder=folder, **request)


def main() -> None:
    """Take the savepoints and pack them."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(PACKED, "w:xz") as tar:
        machine = beam_machine(Path(work))
        try:
            for backend, kind in BACKENDS.items():
                answer = run_job(machine, backend, format=kind, savepoint=str(Path(work) / backend))
                savepoint = Path(answer["savepoint"])
                (savepoint / "values.json").write_text(json.dumps(answer["first"], ensure_ascii=False), "utf-8")
                tar.add(savepoint, backend)
        finally:
            machine.close()
    print(f"{PACKED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
