"""Changes folded into a table: the table equals the state, whatever is repeated."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.errors import FormatError, OptionError, SnapshotNotFoundError
from statetool.jobs.follow import main
from statetool.spark import folding
from statetool.spark.folding import merge_statement
from tests.support.snapshots.incremental import Job
from tests.support.spark.data_sources import data_sources

pytestmark = pytest.mark.full
OPTIONS = ("--option", "uids=op")


def follow(root: Path, work: Path, *more: str) -> int:
    places = ("--target", str(work / "lake"), "--offsets", str(work / "offsets"))
    return main([str(root), "--uid", "op", *places, "--once", *OPTIONS, *more])


def lake(spark: Any, work: Path) -> dict[int, bytes]:
    rows = statetool.read_folded(spark, str(work / "lake")).collect()
    assert len({r.key for r in rows}) == len(rows)
    return {r.key: bytes(r.a) for r in rows}


@data_sources
class TestFolding:
    def test_the_table_is_the_state_of_the_last_checkpoint(self, spark: Any, tmp_path: Path) -> None:
        root = tmp_path / "root"
        with pytest.raises(SnapshotNotFoundError, match="nothing was folded"):
            statetool.read_folded(spark, str(tmp_path / "lake"))
        with Job(root) as job:
            for n in range(5):
                for key in range(n, n + 3):
                    job.put("a", key, b"%d" % n)
                job.delete("a", n)
                job.checkpoint()
                if n in (1, 2, 4):
                    assert follow(root, tmp_path) == 0
                    assert lake(spark, tmp_path) == job.truth["a"]
            # The offsets of the last batch are deleted, as if it had been killed before it finished: it is repeated.
            newest = max((tmp_path / "offsets" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
            newest.unlink()
            (tmp_path / "offsets" / "commits" / f".{newest.name}.crc").unlink(missing_ok=True)
            before = sorted(p.name for p in (tmp_path / "lake").iterdir())
            assert follow(root, tmp_path) == 0
            assert sorted(p.name for p in (tmp_path / "lake").iterdir()) == before
            # The remains of a batch that was killed while writing are removed by the next one.
            (tmp_path / "lake" / "checkpoint-6-left").mkdir()
            job.put("a", 77, b"x")
            job.checkpoint()
            assert follow(root, tmp_path) == 0
            assert lake(spark, tmp_path) == job.truth["a"]
            assert len(list((tmp_path / "lake").glob("checkpoint-*"))) == 2
            # Unread checkpoints were deleted: the next one is read completely, and replaces the table.
            job.delete("a", 77)
            job.checkpoint()
            for number in (6, 7):
                shutil.rmtree(root / f"chk-{number}")
            job.put("a", 78, b"y")
            job.checkpoint()
            assert follow(root, tmp_path, "--option", "failOnDataLoss=false") == 0
            assert lake(spark, tmp_path) == job.truth["a"]

    def test_the_job_does_not_ask_what_rows_were_before(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        changes: list[str] = []
        fold_into = statetool.fold_into

        def recorded(*places: Any, **options: Any) -> Any:
            fold = fold_into(*places, **options)

            def fold_batch(frame: Any, batch_id: int) -> None:
                changes.extend(row.change for row in frame.select("change").collect())
                fold(frame, batch_id)

            return fold_batch

        monkeypatch.setattr(statetool, "fold_into", recorded)
        with Job(tmp_path / "root") as job:
            for key in (1, 2):
                job.put("a", key, b"before")
            job.checkpoint()
            assert follow(tmp_path / "root", tmp_path) == 0
            changes.clear()
            job.put("a", 2, b"after")
            job.checkpoint()
            assert follow(tmp_path / "root", tmp_path) == 0
            assert changes == ["upsert"]
            assert lake(spark, tmp_path) == job.truth["a"]

    def test_the_first_checkpoint_may_have_no_rows(self, spark: Any, tmp_path: Path) -> None:
        root = tmp_path / "root"
        with Job(root) as job:
            job.checkpoint()
            job.checkpoint()
            assert follow(root, tmp_path) == 0
            job.put("a", 1, b"x")
            job.checkpoint()
            assert follow(root, tmp_path) == 0
            assert lake(spark, tmp_path) == job.truth["a"] == {1: b"x"}
            job.delete("a", 1)
            job.put("a", 2, b"y")
            job.checkpoint()
            assert follow(root, tmp_path) == 0
            assert lake(spark, tmp_path) == job.truth["a"]

    def test_what_was_lost_is_not_kept_when_the_next_checkpoint_has_no_rows(self, spark: Any, tmp_path: Path) -> None:
        root = tmp_path / "root"
        with Job(root) as job:
            job.put("a", 1, b"x")
            job.checkpoint()
            assert follow(root, tmp_path) == 0
            job.delete("a", 1)
            job.checkpoint()
            shutil.rmtree(root / "chk-1")
            assert follow(root, tmp_path, "--option", "failOnDataLoss=false") == 0
            job.put("a", 2, b"y")
            job.checkpoint()
            assert follow(root, tmp_path, "--option", "failOnDataLoss=false") == 0
            assert lake(spark, tmp_path) == job.truth["a"] == {2: b"y"}

    def test_what_does_not_belong_together_is_refused(self, spark: Any, tmp_path: Path) -> None:
        fold = statetool.fold_into(str(tmp_path / "lake"), key=["key"])
        kind = "checkpoint_id LONG, checkpoint_time TIMESTAMP, compared_with LONG, change STRING, key LONG, a LONG"
        with pytest.raises(FormatError, match="follow checkpoint 3, but the table is empty"):
            fold(spark.createDataFrame([(4, None, 3, "update", 1, 1)], kind), 0)
        with pytest.raises(Exception, match="does not tell the rows of the table apart"):
            fold(spark.createDataFrame([(4, None, None, "insert", 1, a) for a in (1, 2)], kind), 0)
        fold(spark.createDataFrame([(4, None, None, "insert", 1, 1)], kind), 0)
        with pytest.raises(FormatError, match="follow checkpoint 3, but the table is at checkpoint 4"):
            fold(spark.createDataFrame([(5, None, 3, "update", 1, 2)], kind), 1)
        with pytest.raises(OptionError, match="no column 'checkpoint_id'"):
            fold(spark.range(1), 0)
        with pytest.raises(OptionError, match="is not a list of columns"):
            statetool.fold_into("x", key="key")

    def test_columns_have_any_name(self, spark: Any, tmp_path: Path) -> None:
        names = ["key.id", "a`b", "the state"]
        kind = "checkpoint_id LONG, checkpoint_time TIMESTAMP, compared_with LONG, change STRING, " + ", ".join(
            f"{folding._quote(n)} LONG" for n in names
        )
        fold = statetool.fold_into(str(tmp_path / "lake"), key=names[:2])
        fold(spark.createDataFrame([(1, None, None, "insert", k, None, 0) for k in (1, 2, 3)], kind), 0)
        fold(spark.createDataFrame([(2, None, 1, "delete", 1, None, 0), (2, None, 1, "update", 2, None, 9)], kind), 1)
        table = statetool.read_folded(spark, str(tmp_path / "lake"))
        assert table.columns == names
        assert sorted(map(tuple, table.collect())) == [(2, None, 9), (3, None, 0)]

    def test_a_table_that_refused_changes_is_not_there_to_take_them_the_next_time(self, spark: Any) -> None:
        kind = "checkpoint_id LONG, checkpoint_time TIMESTAMP, compared_with LONG, change STRING, key LONG, a LONG"
        changes = spark.createDataFrame([(4, None, 3, "update", 1, 1)], kind)
        folding._merge(changes.limit(0), "refused_changes", ["key"], "iceberg")
        for _ in range(2):
            with pytest.raises(FormatError, match="the table is empty"):
                folding._merge(changes, "refused_changes", ["key"], "iceberg")
        assert not spark.catalog.tableExists("refused_changes")

    def test_the_merge_is_one_that_spark_understands(self, spark: Any) -> None:
        parser = spark._jsparkSession.sessionState().sqlParser()
        for whole in (False, True):
            text = merge_statement(
                "lake.orders", "changed", ["key", "map_key"], ["key", "map_key", "value"], whole=whole
            )
            assert ("NOT MATCHED BY SOURCE" in text) == whole
            assert "MergeIntoTable" in parser.parsePlan(text).toString()


@data_sources
def test_batches_of_changes_make_the_same_table(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on PySpark 4.0 and 4.1, whose streams have no position; ``tests/spark/test_batches.py`` has what may happen between batches."""
    monkeypatch.setattr("statetool.spark.source.streaming.STREAMS_KNOW_THEIR_POSITION", False)
    root = tmp_path / "root"
    with Job(root) as job:
        for n in range(4):
            for key in range(n, n + 3):
                job.put("a", key, b"%d" % n)
            job.delete("a", n)
            job.checkpoint()
            if n in (1, 3):
                assert follow(root, tmp_path) == 0
                assert lake(spark, tmp_path) == job.truth["a"]
        shutil.rmtree(root / "chk-4")
        job.delete("a", 5)
        job.checkpoint()
        assert follow(root, tmp_path, "--option", "failOnDataLoss=true") == 3
        assert follow(root, tmp_path) == 0
        assert lake(spark, tmp_path) == job.truth["a"]
    assert follow(root, tmp_path, "--option", "backlogThreshold=3") == 2
