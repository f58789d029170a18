"""A job whose sinks keep files in state (``write_ahead/harness``): a sink on ``GenericWriteAheadSink`` and two file sinks.

``python -m tests.support.flink.write_ahead_job 2.3.0 1.20.5`` writes ``tests/corpus/write-ahead.tar.xz``: a checkpoint per release, with the
files in ``taskowned`` of its write-ahead sink, which had sent nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.zoo_cases import pack
from tests.support.patience import PATIENCE_S, eventually

ARCHIVE: Final = HERE / "corpus" / "write-ahead.tar.xz"
SOURCE: Final = Path(__file__).parent / "write_ahead"
UIDS: Final = ("ahead", "open", "rolled", "Sink Committer: open", "Sink Committer: rolled")
#: Seconds in which a job on a busy machine sends its numbers.


class Job:
    """Runs of the job on one directory of checkpoints and one of output."""

    def __init__(self, flink: FlinkMachine, root: Path, out: Path) -> None:
        self.flink = flink
        self.root = root
        self.out = out
        self.job = ""

    def call(self, **request: Any) -> dict[str, Any]:
        return self.flink.call("class", **{"class": "WriteAheadJob"}, **request)

    def start(
        self, snapshot: str | None = None, *, hold: bool, claim: bool = False, more: dict[str, str] | None = None
    ) -> None:
        """Start the job. If its write-ahead sink is on hold, files of all checkpoints stay pending."""
        root = self.root.as_uri()
        config = {
            "execution.checkpointing.interval": "365 d",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.num-retained": "2",
            # The later and the earlier name: forces all state into files instead of _metadata.
            "execution.checkpointing.data-inline-threshold": "1 b",
            "state.storage.fs.memory-threshold": "1 b",
            "execution.checkpointing.dir": root,
            "state.checkpoints.dir": root,
            "execution.checkpointing.storage": "filesystem",
            "state.checkpoint-storage": "filesystem",
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

    def restore(self, snapshot: str, *, within: float = PATIENCE_S, **options: Any) -> None:
        """Restore a snapshot, and check that the sinks have written each number, without gap and none twice."""
        self.start(snapshot, hold=False, **options)
        try:
            self.checkpoint()
            eventually(lambda: complete(self.sent()) and complete(rolled(self.out)), within=within)
            self.checkpoint()
        finally:
            self.stop()

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


def main(versions: list[str]) -> None:
    """Write the archive from scratch."""
    with tempfile.TemporaryDirectory() as work:
        for version in versions:
            flink = FlinkMachine(version, Path(work), (SOURCE,))
            try:
                job = Job(flink, Path(work) / "checkpoints" / version, Path(work) / "table")
                path = Path(job.take())
            finally:
                flink.close()
            target = Path(work) / "cases" / f"v{version.replace('.', '_')}"
            for name in (path.name, "taskowned"):
                shutil.copytree(path.parent / name, target / name)
            shutil.rmtree(job.out)
        pack(Path(work) / "cases", ARCHIVE)
    print(f"{ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
