"""Exports: partitioned by key group, several checkpoints next to each other, lakehouse tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import statetool
from statetool.errors import MissingDependencyError, OptionError, StatetoolError, TargetExistsError
from statetool.spark.lakes import lake_error
from statetool.spark.write import export
from statetool.spark.write.export import export_table
from statetool.tables.request import ScanRequest
from tests.support.spark.data_sources import rows_of
from tests.support.zoo import ZOO

TABLE = ScanRequest()


@pytest.fixture(scope="module")
def timers(spark: Any) -> statetool.Operator:
    return statetool.load(ZOO, spark=spark)["timers"]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Return the expected content of an export with key groups."""
    expected: list[dict[str, Any]] = statetool.load(ZOO)["timers"].to_arrow(key_group=True).to_pylist()
    return expected


def same(actual: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    def ordered(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(repr(sorted(row.items())) for row in rows)

    return ordered(actual) == ordered(expected)


@pytest.mark.parametrize(
    ("style", "reader"), [("parquet", "parquet"), pytest.param("jsonl", "json", marks=pytest.mark.full)]
)
def test_key_groups_are_folders(
    spark: Any, timers: statetool.Operator, rows: list[dict[str, Any]], tmp_path: Path, style: str, reader: str
) -> None:
    target = tmp_path / "out"
    assert export_table(timers, TABLE, str(target), style=style, by_key_group=True) == len(rows)
    folders = {int(p.name.removeprefix("key_group=")) for p in target.glob("key_group=*")}
    assert folders == {row["key_group"] for row in rows}
    assert same(rows_of(spark.read.format(reader).load(str(target))), rows)


def test_key_groups_are_folders_of_avro_files_too(
    timers: statetool.Operator, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    assert export_table(timers, TABLE, str(target), style="avro", by_key_group=True) == len(rows)
    exported: list[dict[str, Any]] = []
    for file in target.rglob("*.avro"):
        group = int(file.parent.name.removeprefix("key_group="))
        with file.open("rb") as stream:
            exported += [{**row, "key_group": group} for row in fastavro.reader(stream) if isinstance(row, dict)]
    assert same(exported, rows)
    assert sorted(p.name for p in target.iterdir() if "=" not in p.name) == ["_SUCCESS"]


@pytest.mark.parametrize("style", ["parquet", pytest.param("avro", marks=pytest.mark.full)])
def test_checkpoints_lie_side_by_side(
    spark: Any, timers: statetool.Operator, rows: list[dict[str, Any]], tmp_path: Path, style: str
) -> None:
    target = str(tmp_path / "out")
    for checkpoint in (7, 8):
        assert export_table(timers, TABLE, target, style=style, append_as=checkpoint) == len(rows)
    with pytest.raises(TargetExistsError, match="checkpoint_id=8 already exists"):
        export_table(timers, TABLE, target, style=style, append_as=8)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["checkpoint_id=7", "checkpoint_id=8"]
    if style == "parquet":
        exported = rows_of(spark.read.parquet(target))
        assert same(exported, [
            {"key": r["key"], "registered": r["registered"], "checkpoint_id": c} for c in (7, 8) for r in rows
        ])  # fmt: skip


def test_a_column_of_that_name_is_not_lost(spark: Any, tmp_path: Path) -> None:
    state = statetool.bootstrap_keyed_state(pa.table({"key": [1], "checkpoint_id": [2]}), key="key")
    statetool.SavepointWriter.new().with_operator("o", state).write(str(tmp_path / "sp"))
    operator = statetool.load(str(tmp_path / "sp"), spark=spark)["o"]
    with pytest.raises(OptionError, match="the table already has a column checkpoint_id"):
        export_table(operator, TABLE, str(tmp_path / "out"), append_as=1)


def test_key_groups_are_of_keyed_state_alone(spark: Any, tmp_path: Path) -> None:
    savepoint = statetool.load(ZOO, spark=spark)
    operator, table = next(
        (o, t) for o in savepoint.operators.values() for t in o.tables if "key" not in o.scan(t).schema.names
    )
    with pytest.raises(StatetoolError, match="no key groups"):
        export_table(operator, ScanRequest.of(table), str(tmp_path / "out"), by_key_group=True)


@pytest.mark.parametrize("style", ["delta", "iceberg"])
def test_what_a_session_has_not_is_named(spark: Any, timers: statetool.Operator, tmp_path: Path, style: Any) -> None:
    with pytest.raises(MissingDependencyError, match=f"no {style}.*--packages"):
        export_table(timers, TABLE, str(tmp_path / "out") if style == "delta" else "rows", style=style)
    with pytest.raises(MissingDependencyError, match=f"no {style}.*--packages"):
        export_table(timers, TABLE, "rows", style=style, append_as=1)
    changes = "1L AS checkpoint_id, now() AS checkpoint_time, null AS compared_with, 'insert' AS change, 1 AS key"
    with pytest.raises(MissingDependencyError, match=f"no {style}.*--packages"):
        statetool.fold_into("rows", key=["key"], format=style)(spark.sql(f"SELECT {changes}"), 0)


@pytest.mark.parametrize(
    ("release", "hint"),
    [
        ("4.2.1", r"^start it with --packages io\.delta:delta-spark_4\.2_2\.13:\S+, and the catalog"),
        (
            "4.3.0",
            r"^there is none for PySpark 4\.3: use PySpark 4\.2 with --packages io\.delta:delta-spark_4\.2_2\.13:",
        ),
    ],
)
def test_a_package_for_another_release_of_spark_is_named(
    monkeypatch: pytest.MonkeyPatch, release: str, hint: str
) -> None:
    monkeypatch.setattr("pyspark.__version__", release)
    text = "An error occurred while calling o80.sql.\n: java.lang.NoSuchMethodError: 'void org.apache.spark.sql.X'"
    error = lake_error(RuntimeError(text), "delta")
    assert error is not None
    assert error.message == "the package of delta in this session is for another release of Spark"
    assert re.search(hint, error.hint or "")
    assert lake_error(RuntimeError("no space left"), "delta") is None


@pytest.fixture
def lake(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Replace lakehouse tables by Spark's tables, because the jars of the former are not available."""
    monkeypatch.setitem(export._TABLES, "iceberg", "parquet")
    yield "exported"
    spark.sql("DROP TABLE IF EXISTS exported")


def test_tables_of_a_lake(spark: Any, timers: statetool.Operator, rows: list[dict[str, Any]], lake: str) -> None:
    options: dict[str, Any] = {"style": "iceberg", "by_key_group": True}
    for checkpoint in (7, 8):
        assert export_table(timers, TABLE, lake, append_as=checkpoint, **options) == len(rows)
    with pytest.raises(TargetExistsError, match="exported has rows of checkpoint 8"):
        export_table(timers, TABLE, lake, append_as=8, **options)
    assert same(rows_of(spark.table(lake)), [{**row, "checkpoint_id": c} for c in (7, 8) for row in rows])
    with pytest.raises(TargetExistsError, match="exported already exists"):
        export_table(timers, TABLE, lake, **options)
