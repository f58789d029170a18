"""Files that only the state of sinks names, in real Flink: clean-up leaves them, copies take them along, and restores lose no number.

``WriteAheadJob`` (``tests/support/flink/write_ahead``) writes all numbers with a sink on Flink's ``GenericWriteAheadSink``, which keeps the
records of each checkpoint in a file in ``taskowned``, and with two file sinks, whose parts are below the directory of the checkpoints.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.snapshots.trees import age, lose_file

pytestmark = pytest.mark.full
#: A long run has 100: ``STATETOOL_CLEANUP_ROUNDS=100 pytest --full --timeout=0 tests/flink/test_files_of_sinks.py``.
ROUNDS: Final = int(os.environ.get("STATETOOL_CLEANUP_ROUNDS", "3"))
PATIENCE_S: Final = 600
SOURCE: Final = Path(__file__).parent.parent / "support" / "flink" / "write_ahead"
UIDS: Final = ("ahead", "open", "rolled")


@pytest.fixture(scope="module")
def ahead(flink: FlinkMachine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    """Run Flink with the job."""
    machine = FlinkMachine(flink.version, tmp_path_factory.mktemp(f"ahead-{flink.version}"), (SOURCE,))
    yield machine
    machine.close()


class Job:
    """Runs of the job on one directory of checkpoints and one of output."""

    def __init__(self, flink: FlinkMachine, root: Path, out: Path) -> None:
        self.flink = flink
        self.root = root
        self.out = out
        self.job = ""

    def call(self, **request: Any) -> dict[str, Any]:
        return self.flink.call("class", **{"class": "WriteAheadJob"}, **request)

    def start(self, snapshot: str | None = None, *, hold: bool, claim: bool = False, more: dict[str, str] | None = None) -> None:
        """Start the job. If its write-ahead sink is on hold, files of all checkpoints stay pending."""
        root = self.root.as_uri()
        config = {
            "execution.checkpointing.interval": "365 d",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.num-retained": "2",
            # Forces all state into files instead of _metadata.
            "execution.checkpointing.data-inline-threshold": "1 b",
            "execution.checkpointing.dir": root,
            "state.checkpoints.dir": root,
            **(more or {}),
        }
        if claim:
            config |= {"execution.savepoint-restore-mode": "CLAIM", "execution.state-recovery.claim-mode": "CLAIM"}
        self.call(action="hold", held=hold)
        self.job = self.call(action="start", folder=str(self.out), config=config, snapshot=snapshot)["job"]

    def checkpoint(self) -> str:
        """Take a checkpoint after some numbers."""
        time.sleep(0.2)
        path: str = self.call(action="checkpoint", job=self.job)["path"]
        return path

    def savepoint(self, folder: Path) -> str:
        path: str = self.call(action="savepoint", job=self.job, folder=str(folder))["path"]
        return path

    def stop(self) -> None:
        self.call(action="stop", job=self.job)

    def take(self, checkpoints: int = 2, snapshot: str | None = None, **options: Any) -> str:
        """Run the job on hold for some checkpoints, and return the last one."""
        self.start(snapshot, hold=True, **options)
        try:
            return [self.checkpoint() for _ in range(checkpoints)][-1]
        finally:
            self.stop()

    def restore(self, snapshot: str, **options: Any) -> None:
        """Restore a snapshot, and check that the sinks have written each number, without gap and none twice."""
        self.start(snapshot, hold=False, **options)
        try:
            self.checkpoint()
            wait_until(lambda: complete(self.sent()) and complete(rolled(self.out)))
            self.checkpoint()
        finally:
            self.stop()
        assert complete(self.sent())

    def sent(self) -> list[int]:
        """Return the numbers that the write-ahead sink has sent."""
        return numbers_in(self.out / "ahead")


def complete(numbers: list[int]) -> bool:
    """Return True if there are numbers, without gap at the start, and each once."""
    return bool(numbers) and numbers[0] == 0 and len(set(numbers)) == len(numbers) and gaps(numbers) == []


def gaps(numbers: list[int]) -> list[int]:
    """Return the numbers that are missing before the newest hundred; the subtasks do not send at the same time."""
    present = set(numbers)
    return [n for n in range(numbers[-1] - 100) if n not in present]


def rolled(out: Path) -> list[int]:
    return numbers_in(out / "rolled")


def numbers_in(folder: Path) -> list[int]:
    """Return the numbers in the files that are not hidden."""
    files = [f for f in folder.iterdir() if f.is_file() and not f.name.startswith((".", "_"))]
    return sorted(int(line) for f in files for line in f.read_text().split())


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)


def test_clean_up_leaves_what_only_state_names(ahead: FlinkMachine, tmp_path: Path) -> None:
    job = Job(ahead, tmp_path / "checkpoints", tmp_path / "checkpoints" / "table")
    path = job.take()
    lost = lose_file(Path(path).parent / "shared")
    age(job.root)
    moved = [row.path for row in statetool.delete_orphans(str(job.root), min_age="1d").moved]
    assert moved == [str(lost.relative_to(job.root))]
    assert statetool.verify(path).ok
    job.restore(path)
