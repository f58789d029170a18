"""Checkpoints followed by batches of changes: the table is the state, whatever is killed or deleted. Rows are read in this process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from statetool.errors import CheckpointDeletedError, FormatError, OptionError
from statetool.jobs import batches
from statetool.jobs.batches import follow_in_batches
from statetool.operations.directories import following
from tests.support.snapshots.incremental import Job
from tests.support.spark.data_sources import data_sources

pytest.importorskip("pyspark.sql.datasource", reason="PySpark before 4.0 has no Python data sources")

from statetool.spark.source.streaming import CheckpointsReader, CheckpointTable

OPTIONS = {"operatorUid": "op", "mode": "changes", "upserts": "true", "uids": "op", "failOnDataLoss": "false"}


class Session:
    """A session whose frames are the rows that the data source reads, planned when they are counted."""

    def __init__(self) -> None:
        self.read = self
        self._options: dict[str, str] = {}
        self.rows: list[dict[str, Any]] = []

    def format(self, _: str) -> Session:
        return self

    def options(self, **options: str) -> Session:
        self._options = options
        return self

    def load(self, root: str) -> Session:
        self._options["path"] = root
        return self

    def persist(self) -> Session:
        return self

    def unpersist(self) -> None:
        self.rows = []

    def count(self) -> None:
        reader = CheckpointsReader(CheckpointTable.of(self._options))
        self.rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


class Table:
    """A table that folds changes as :mod:`statetool.spark.folding` does."""

    def __init__(self) -> None:
        self.rows: dict[int, bytes] = {}
        self.checkpoint = -1

    def fold(self, frame: Any, _: int) -> None:
        rows = [r for r in frame.rows if r["checkpoint_id"] > self.checkpoint]
        if not rows:
            return
        whole = max((r["checkpoint_id"] for r in rows if r["compared_with"] is None), default=None)
        if whole is not None:
            rows = [r for r in rows if r["checkpoint_id"] >= whole]
            self.rows = {}
        elif min(r["compared_with"] for r in rows) < self.checkpoint:
            raise FormatError("the changes follow an earlier checkpoint")
        for row in sorted(rows, key=lambda r: int(r["checkpoint_id"])):
            if row["change"] == "delete":
                self.rows.pop(row["key"], None)
            else:
                self.rows[row["key"]] = bytes(row["a"])
        self.checkpoint = max(r["checkpoint_id"] for r in rows)


@data_sources
def test_the_table_is_the_state_whatever_is_killed_or_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, offsets, table = tmp_path / "root", tmp_path / "offsets", Table()

    def follow(**more: str) -> None:
        follow_in_batches(Session(), str(root), {**OPTIONS, **more}, table.fold, str(offsets), seconds=None)

    def killed_after(checkpoint: int, now: int) -> None:
        (offsets / f"checkpoint-{now}").rename(offsets / f"checkpoint-{checkpoint}")

    with Job(root) as job:
        for n in range(4):
            for key in range(n, n + 3):
                job.put("a", key, b"%d" % n)
            job.delete("a", n)
            job.checkpoint()
            if n in (1, 3):
                follow()
                assert table.rows == job.truth["a"]
        killed_after(2, 4)
        follow()
        assert table.rows == job.truth["a"]
        # The checkpoint of the position was deleted: the next one is read completely.
        job.delete("a", 5)
        job.put("a", 78, b"y")
        job.checkpoint()
        shutil.rmtree(root / "chk-4")
        with pytest.raises(CheckpointDeletedError, match="checkpoint 4 was deleted"):
            follow(failOnDataLoss="true")
        follow()
        assert table.rows == job.truth["a"]
        # Killed before the position was written, and then the checkpoint deleted that the table has.
        job.delete("a", 78)
        job.put("a", 79, b"z")
        job.checkpoint()
        killed_after(3, 5)
        shutil.rmtree(root / "chk-5")
        follow()
        assert table.rows == job.truth["a"]
        # Deleted after the listing, before the batch is planned: it would lack the deletion without an error.
        job.delete("a", 79)
        job.put("a", 80, b"q")
        job.checkpoint()

        def listed(*arguments: Any) -> Any:
            found = following.completed_checkpoints(*arguments)
            shutil.rmtree(root / "chk-6", ignore_errors=True)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(batches, "completed_checkpoints", listed)
            follow()
        assert table.rows == job.truth["a"]
        # The position is gone, and the next checkpoint has no rows.
        for key in list(job.truth["a"]):
            job.delete("a", key)
        job.checkpoint()
        shutil.rmtree(root / "chk-7")
        follow()
        job.put("a", 2, b"y")
        job.checkpoint()
        follow()
        assert table.rows == job.truth["a"] == {2: b"y"}
        assert [p.name for p in offsets.iterdir()] == ["checkpoint-9"]


def test_options_of_streams_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="backlogThreshold is an option of streams"):
        follow_in_batches(Session(), "/root", {"backlogThreshold": "3"}, Table().fold, str(tmp_path), seconds=None)
