"""Take an unaligned checkpoint of a real job while record attributes are in flight, and store it.

``python -m tests.support.flink.in_flight_cases 1.20.5 2.3.0`` writes ``tests/corpus/in-flight.tar.xz``, one folder per release; all state is
inline. The in-flight elements are :data:`SCRIPT` after its first record (``BacklogSource.java``). Releases before 1.19 have no such
attributes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import statetool
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.zoo_cases import pack

ARCHIVE: Final = HERE / "corpus" / "in-flight.tar.xz"
SOURCES: Final = (Path(__file__).parent / "connected",)
#: A record that is held; backlog begins, a record, backlog ends, a record; the source is idle, and active with a record.
SCRIPT: Final = "h+b-ciad"
#: In-flight elements of the script: the value of a record, or the element and its content.
ELEMENTS: Final = (
    ("record_attributes", True), "b", ("record_attributes", False), "c", ("watermark_status", True), ("watermark_status", False), "d",
)  # fmt: skip
#: Times in milliseconds that the job waits for the barrier, one after another.
_BARRIER_MS: Final = (1_000, 10_000, 60_000)
_CONFIG: Final = {
    "execution.checkpointing.interval": "365 d",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.unaligned": "true",
    "execution.checkpointing.unaligned.enabled": "true",
    "execution.checkpointing.aligned-checkpoint-timeout": "0 ms",
    "execution.buffer-timeout": "5 ms",
    "execution.buffer-timeout.interval": "5 ms",
}


def checkpoint(flink: FlinkMachine) -> Path:
    """Run the job, and return the folder of its checkpoint.

    The barrier overtakes the elements, which nothing shows from outside. On a busy machine it may take longer than the job waits: then nothing
    is in flight, and the job runs again.
    """
    for barrier_ms in _BARRIER_MS:
        answer = flink.call("class", **{"class": "BacklogJob"}, script=SCRIPT, config=_CONFIG, barrierMs=barrier_ms)
        if found(folder := Path(answer["path"])):
            break
    return folder


def found(folder: Path) -> tuple[Any, ...]:
    """Return the in-flight data of a checkpoint, in the form of :data:`ELEMENTS`; nothing if the barrier overtook nothing."""
    savepoint = statetool.load(str(folder), uids=["source", "hold"])
    sides = {op.name: op.in_flight().column("side").to_pylist() for op in savepoint.operators.values()}
    if sides == {"source": [], "hold": []}:
        return ()
    # The operator that held the first record had not read any more of its input.
    assert sides == {"source": ["output"], "hold": []}, sides
    rows = savepoint["source"].in_flight(side="output", like="String").to_pylist()
    said = {"record_attributes": "backlog", "watermark_status": "idle"}
    return tuple((r["element"], r["marker"][said[r["element"]]]) if r["element"] in said else r["value"] for r in rows)


def main(versions: list[str]) -> None:
    """Write the archive from scratch."""
    with tempfile.TemporaryDirectory() as work:
        for version in versions:
            flink = FlinkMachine(version, Path(work), SOURCES)
            target = Path(work) / "cases" / f"v{version.replace('.', '_')}"
            target.mkdir(parents=True)
            shutil.copy(checkpoint(flink) / "_metadata", target)
            assert found(target) == ELEMENTS, found(target)
            flink.close()
        pack(Path(work) / "cases", ARCHIVE)


if __name__ == "__main__":
    main(sys.argv[1:])
