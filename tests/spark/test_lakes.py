"""Real tables of Delta and Iceberg: folded and exported rows equal those of a model in Python (``--lakes``, each on its own PySpark)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import uuid4

import pytest

import statetool
from statetool.errors import OptionError, TargetExistsError
from statetool.spark import folding
from statetool.spark.write.export import export_table
from statetool.tables.request import ScanRequest
from tests.support.spark.followed import follow_a_job
from tests.support.zoo import ZOO

pytestmark = pytest.mark.full

Key = tuple[tuple[str | None, int] | None, int | None]
Value = tuple[tuple[int, list[str | None]] | None, bytes | None]
Row = tuple[Any, ...]
KEY: Final = ("key", "list.index")
KIND: Final = (
    "checkpoint_id LONG NOT NULL, checkpoint_time TIMESTAMP, compared_with LONG, change STRING NOT NULL, "
    "key STRUCT<name: STRING, `a.b`: TINYINT>, `list.index` LONG, `v``s` STRUCT<a: INT, b: ARRAY<STRING>>, bytes BINARY"
)
KEYS: Final[list[Key]] = [(k, i) for k in (("a", 1), ("a", 2), (None, 1), None) for i in (0, 1, None)]


class Changes:
    """Random state of a job, and its changes in the form of a stream."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.state: dict[Key, Value] = {}
        self.checkpoint = 0

    def _value(self) -> Value:
        texts: list[str | None] = ["x", None]
        return (
            (self.random.randrange(9), texts[: self.random.randrange(3)]) if self.random.random() < 0.8 else None,
            self.random.randbytes(2) if self.random.random() < 0.8 else None,
        )

    def next(self, *, whole: bool) -> list[Row]:
        old, before = dict(self.state), self.checkpoint
        self.checkpoint += self.random.randint(1, 3)
        for key in KEYS:
            fate = self.random.random()
            if fate < 0.3:
                self.state.pop(key, None)
            elif fate < 0.7:
                self.state[key] = self._value()
        head = (self.checkpoint, datetime(2026, 1, 31), None if whole else before)
        if whole:
            return [(*head, "insert", *key, *value) for key, value in self.state.items()]
        return [
            *((*head, "delete", *k, *v) for k, v in old.items() if k not in self.state),
            *(
                (*head, "update" if k in old else "insert", *k, *v)
                for k, v in self.state.items()
                if k not in old or old[k] != v
            ),
        ]

    @property
    def rows(self) -> list[str]:
        return sorted(repr((*key, *value)) for key, value in self.state.items())


def rows_of(spark: Any, table: str) -> list[str]:
    rows = spark.table(table).drop("checkpoint_id").collect()
    return sorted(
        repr((
            None if key is None else tuple(key),
            index,
            None if value is None else (value.a, value.b),
            None if data is None else bytes(data),
        ))
        for key, index, value, data in rows
    )  # fmt: skip


class Lake:
    """Tests shared by both formats."""

    style: Any

    @pytest.fixture
    def table(self) -> str:
        raise NotImplementedError

    @pytest.mark.parametrize("seed", range(2))
    def test_the_table_is_the_state_after_each_batch(self, spark: Any, table: str, seed: int) -> None:
        job, fold = Changes(seed), statetool.fold_into(table, key=KEY, format=self.style)
        for number in range(5):
            rows = [row for n in range(1 + number % 2) for row in job.next(whole=number in (0, 3) and n == 0)]
            for _ in range(2):  # a repeated batch changes nothing
                fold(spark.createDataFrame(rows, KIND), number)
                assert rows_of(spark, table) == job.rows

    def test_a_batch_that_was_killed_is_repeated(self, spark: Any, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
        job, fold = Changes(7), statetool.fold_into(table, key=KEY, format=self.style)
        first = spark.createDataFrame(job.next(whole=True), KIND)
        with monkeypatch.context() as patch:
            patch.setattr(folding, "merge_statement", killed)
            with pytest.raises(OptionError, match="killed"):
                fold(first, 0)
        assert rows_of(spark, table) == []
        fold(first, 0)
        assert rows_of(spark, table) == job.rows

    def test_a_job_is_followed_into_the_table(self, spark: Any, table: str, tmp_path: Path) -> None:
        """By a stream, or before PySpark 4.2 by batches of changes."""
        for truth in follow_a_job(tmp_path, table, self.style):
            assert {row.key: bytes(row.a) for row in spark.table(table).collect()} == truth

    def test_an_export_is_a_table(self, spark: Any, table: str) -> None:
        timers = statetool.load(ZOO, spark=spark)["timers"]
        rows = timers.to_arrow().num_rows
        self._export(spark, timers, table, rows)

    def _export(self, spark: Any, timers: Any, target: str, rows: int) -> None:
        assert export_table(timers, ScanRequest(), target, style=self.style) == rows
        with pytest.raises(TargetExistsError, match="already exists"):
            export_table(timers, ScanRequest(), target, style=self.style)

    def test_checkpoints_lie_side_by_side(self, spark: Any, table: str) -> None:
        timers = statetool.load(ZOO, spark=spark)["timers"]
        rows = timers.to_arrow().num_rows
        for checkpoint in (7, 8):
            assert (
                export_table(timers, ScanRequest(), table, style=self.style, append_as=checkpoint, by_key_group=True)
                == rows
            )
        with pytest.raises(TargetExistsError, match="has rows of checkpoint 8"):
            export_table(timers, ScanRequest(), table, style=self.style, append_as=8, by_key_group=True)
        counted = spark.table(table).groupBy("checkpoint_id").count().collect()
        assert sorted(map(tuple, counted)) == [(7, rows), (8, rows)]


def killed(*_: Any, **__: Any) -> str:
    raise OptionError("killed")


class TestDelta(Lake):
    style = "delta"

    @pytest.fixture
    def table(self, spark: Any, lakes: None) -> Iterator[str]:
        yield (name := f"t{uuid4().hex}")
        spark.sql(f"DROP TABLE IF EXISTS {name}")

    def test_an_export_is_a_folder(self, spark: Any, lakes: None, tmp_path: Path) -> None:
        timers = statetool.load(ZOO, spark=spark)["timers"]
        rows = timers.to_arrow().num_rows
        self._export(spark, timers, str(tmp_path / "out"), rows)
        for checkpoint in (7, 8):
            place = str(tmp_path / "all")
            assert export_table(timers, ScanRequest(), place, style="delta", append_as=checkpoint) == rows
        with pytest.raises(TargetExistsError, match="has rows of checkpoint 8"):
            export_table(timers, ScanRequest(), place, style="delta", append_as=8)


class TestIceberg(Lake):
    style = "iceberg"

    @pytest.fixture
    def table(self, spark: Any, lakes: None) -> str:
        return f"iceberg.lakes.t{uuid4().hex}"
