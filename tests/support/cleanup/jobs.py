"""Jobs that keep files in state, by kind, in a Flink that runs for all rounds (``tests/support/flink/cleanups``).

Each job has keyed state in an incremental RocksDB, which it compares with its input value by value, and the sinks of its kind.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.write_ahead_job import SOURCE as WRITE_AHEAD
from tests.support.flink.write_ahead_job import numbers_in
from tools.maven import maven_jars

_FOLDER: Final = HERE / "support" / "flink" / "cleanups"
#: Comparisons with which each key of the state was read.
_COMPARED: Final = 500
#: Paimon commits what a restored job has pending, and ends it once, so that its writers start again.
_COMMITTED_FIRST: Final = re.compile("after committing the restored checkpoints")
CONFIG: Final = {
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.num-retained": "3",
    "state.backend.incremental": "true",
    "state.checkpoints.num-retained": "3",
    # The later and the earlier names: force all state into files instead of _metadata.
    "execution.checkpointing.data-inline-threshold": "1 b",
    "state.storage.fs.memory-threshold": "1 b",
    "execution.checkpointing.storage": "filesystem",
    "state.checkpoint-storage": "filesystem",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of job.

    Attributes
    ----------
    sinks
        Class with its sinks, ``None`` for none.
    sources
        Folders of its programs.
    jar_sets
        Sets of jars, by release of Flink. The kind does not run on other releases.
    written
        Returns the numbers that its sinks have written, by output.
    open_output
        An output whose parts may contain numbers that later runs write again.
    """

    sinks: str | None
    sources: tuple[Path, ...]
    jar_sets: dict[str, tuple[str, ...]]
    written: Callable[[FlinkMachine, Path], dict[str, list[int]]]
    open_output: str = ""

    def machine(self, version: str, work: Path) -> FlinkMachine:
        """Start Flink with the jobs of the kind."""
        jars = [jar for jar_set in self.jar_sets[version] for jar in maven_jars(jar_set)]
        return FlinkMachine(version, work, (WRITE_AHEAD, _FOLDER / "job", *self.sources), jars=jars)


def _parts(_: FlinkMachine, out: Path) -> dict[str, list[int]]:
    opened = sorted(int(n) for f in (out / "open").iterdir() for n in f.read_text().split())
    return {"open": opened, "rolled": numbers_in(out / "rolled")}


def _iceberg(flink: FlinkMachine, out: Path) -> dict[str, list[int]]:
    return flink.call("class", **{"class": "IcebergSinks"}, folder=str(out))


def _paimon(flink: FlinkMachine, out: Path) -> dict[str, list[int]]:
    return flink.call("class", **{"class": "PaimonRows"}, table=str(out / "shop.db" / "numbers"))


_ANY_RELEASE: Final[dict[str, tuple[str, ...]]] = {"1.20.5": (), "2.1.3": (), "2.3.0": ()}
KINDS: Final = {
    "rocksdb": Kind(sinks=None, sources=(), jar_sets=_ANY_RELEASE, written=lambda *_: {}),
    "write-ahead": Kind(
        sinks="AheadSinks",
        sources=(),
        jar_sets=_ANY_RELEASE,
        written=lambda _, out: {"ahead": numbers_in(out / "ahead")},
    ),
    "file-sink": Kind(sinks="PartSinks", sources=(), jar_sets=_ANY_RELEASE, written=_parts, open_output="open"),
    "iceberg": Kind(
        sinks="IcebergSinks",
        sources=(_FOLDER / "iceberg",),
        jar_sets={
            "1.20.5": ("iceberg-flink-1.10.0", "hadoop-3.4.1"),
            "2.1.3": ("iceberg-flink-1.11.0", "hadoop-3.4.1"),
            "2.3.0": ("iceberg-flink-1.11.0", "hadoop-3.4.1"),
        },
        written=_iceberg,
    ),
    # Maven has no Paimon for Flink 2.
    "paimon": Kind(
        sinks="PaimonSinks",
        sources=(_FOLDER / "paimon", HERE / "support" / "flink" / "paimons"),
        jar_sets={"1.20.5": ("paimon-1.3.1", "hadoop")},
        written=_paimon,
    ),
}


class Job:
    """Runs of a job of a kind: one at a time."""

    def __init__(self, flink: FlinkMachine, kind: Kind, out: Path) -> None:
        self.flink = flink
        self.kind = kind
        self.out = out
        self.job = ""

    def call(self, action: str, **request: Any) -> dict[str, Any]:
        return self.flink.call("class", **{"class": "CleanupJob"}, action=action, **request)

    def start(self, root: Path, snapshot: str | None, *, hold: bool, more: dict[str, str] | None = None) -> None:
        """Start a job. On hold, files of all checkpoints of a write-ahead sink stay pending."""
        for name in ("ahead", "open", "rolled"):
            (self.out / name).mkdir(parents=True, exist_ok=True)
        config = {
            **CONFIG,
            "execution.checkpointing.dir": root.as_uri(),
            "state.checkpoints.dir": root.as_uri(),
            **(more or {}),
        }
        self.flink.call("class", **{"class": "WriteAheadJob"}, action="hold", held=hold)
        request = {"sinks": self.kind.sinks, "folder": str(self.out), "backend": "rocksdb", "config": config}
        try:
            self.job = self.call("start", **request, snapshot=snapshot)["job"]
        except FlinkRefusedError as error:
            if not _COMMITTED_FIRST.search(str(error)):
                raise
            self.job = self.call("start", **request, snapshot=snapshot)["job"]

    def checkpoint(self) -> str:
        """Take a checkpoint after all keys have changed."""
        self.compare()
        path: str = self.call("checkpoint", job=self.job)["path"]
        return path

    def savepoint(self, folder: Path, *, native: bool) -> str:
        self.compare()
        form = "NATIVE" if native else "CANONICAL"
        path: str = self.call("savepoint", job=self.job, folder=str(folder), format=form)["path"]
        return path

    def compare(self) -> int:
        """Wait until the state of each key was compared once more, and return the last number."""
        before = self.call("compared", job=self.job, wanted=0)["compared"]
        last: int = self.call("compared", job=self.job, wanted=before + _COMPARED)["last"]
        return last

    def stop(self) -> None:
        if self.job:
            self.call("stop", job=self.job)
        self.job = ""

    def restore(self, root: Path, snapshot: str, *, newest: bool, patience_s: float) -> str:
        """Restore a snapshot and write what is pending; return the fault, empty if there is none.

        Parameters
        ----------
        newest
            No job has written after the snapshot was taken, so no number is written twice.
        """
        try:
            return self._restore(root, snapshot, newest=newest, patience_s=patience_s)
        except FlinkRefusedError as error:
            return str(error)
        finally:
            self.stop()

    def _restore(self, root: Path, snapshot: str, *, newest: bool, patience_s: float) -> str:
        self.start(root, snapshot, hold=False)
        last = self.compare()
        self.checkpoint()
        end = time.monotonic() + patience_s
        while fault := self._fault(last, newest=newest):
            if time.monotonic() > end:
                return fault
            time.sleep(0.1)
        return ""

    def _fault(self, last: int, *, newest: bool) -> str:
        """Return what the outputs lack of the numbers up to the last one before the checkpoint."""
        for name, numbers in self.kind.written(self.flink, self.out).items():
            if missing := sorted({*range(last + 1)}.difference(numbers)):
                return f"{name}: {len(missing)} of {last + 1} numbers are missing, from {missing[0]} on"
            if newest and name != self.kind.open_output:
                twice = sorted(n for n, times in Counter(numbers).items() if times > 1)
                if twice:
                    return f"{name}: {len(twice)} numbers are written twice, from {twice[0]} on"
        return ""
