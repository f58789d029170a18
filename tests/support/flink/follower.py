"""A stream of changes in a separate process that can be killed; each batch becomes one file, whatever is repeated."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import statetool
from tests.support.patience import PATIENCE_S, eventually

#: With no time between polls, an idle stream would list its directory all the time, beside the job that it follows.
POLLING: Final = "200 milliseconds"


class Follower:
    """Follower of a job; all followers with the same ``work`` folder are one query, which is restarted."""

    def __init__(self, root: Path, work: Path) -> None:
        self.batches = work / "batches"
        self.batches.mkdir(exist_ok=True)
        self._stop, self._log = work / "stop", work / "follower.txt"
        self._commits = work / "offsets" / "commits"
        self._numbers: dict[Path, set[int]] = {}
        self._stop.unlink(missing_ok=True)
        command = [sys.executable, "-m", __name__, str(root), str(work)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log)

    def changes(self) -> list[tuple[int, list[dict[str, Any]]]]:
        """Return the changes of each checkpoint, in the order of arrival."""
        rows = [r for file in self._files() for r in pickle.loads(file.read_bytes())]
        return [
            (number, [{n: v for n, v in r.items() if n != "checkpoint_id"} for r in some])
            for number, some in groupby(rows, key=lambda r: r["checkpoint_id"])
        ]

    def _files(self) -> list[Path]:
        return sorted(self.batches.glob("*.pickle"))

    def _has(self, number: int) -> bool:
        """Return True if a checkpoint was read in a batch that Spark has committed.

        Each file is loaded once: a batch that is repeated has the same checkpoints. After a kill, Spark repeats a batch that it has not
        committed, and needs the checkpoint before it again.
        """
        for file in self._files():
            if file not in self._numbers and (self._commits / str(int(file.stem))).exists():
                self._numbers[file] = {row["checkpoint_id"] for row in pickle.loads(file.read_bytes())}
        return any(number in numbers for numbers in self._numbers.values())

    def wait_for(self, number: int) -> None:
        """Wait until a checkpoint was read."""

        def is_read() -> bool:
            if self._has(number):
                return True
            assert self._process.poll() is None, self._log.read_text()[-6000:]
            return False

        eventually(is_read, describe=lambda: self._log.read_text()[-6000:])

    def stop(self) -> None:
        """End the query gracefully."""
        self._stop.touch()
        assert self._process.wait(PATIENCE_S) == 0, self._log.read_text()[-6000:]

    def kill(self) -> None:
        """Kill the whole process at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def run(root: str, work: Path) -> None:
    """Follow until the file ``stop`` exists."""
    from statetool.spark.session import local_session

    spark = local_session(cores="2")
    statetool.register(spark)

    def keep(frame: Any, batch: int) -> None:
        rows = [row.asDict(recursive=True) for row in frame.drop("checkpoint_time", "compared_with").collect()]
        file = work / "batches" / f"{batch:06d}.pickle"
        staged = file.with_suffix(".staged")
        staged.write_bytes(pickle.dumps(sorted(rows, key=lambda r: r["checkpoint_id"])))
        staged.rename(file)

    frame = spark.readStream.format("flink-state").options(operatorUid="counts", mode="changes").load(root)
    stream = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(work / "offsets"))
    query = stream.trigger(processingTime=POLLING).start()
    while query.isActive and not (work / "stop").exists():
        time.sleep(0.05)
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    query.stop()
    spark.stop()


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))


def complete(job: Path) -> list[tuple[int, str]]:
    """Return ids and paths of all existing checkpoints."""
    found = [p.parent for p in job.glob("chk-*/_metadata")]
    return sorted((int(p.name.removeprefix("chk-")), str(p)) for p in found)
