"""``statetool.write`` of a DataFrame, and why it is no ``df.write``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from tests.support.snapshots.keyed_content import content_of
from tests.support.spark.data_sources import data_sources

pyspark = pytest.importorskip("pyspark")

N = 2000


def test_tasks_write_the_entries_of_an_arrow_table(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"id": range(N), "count": range(N), "name": [f"user-{i}" for i in range(N)]})
    frame = spark.createDataFrame(table.to_pylist(), "id long, count long, name string").repartition(5)
    given: dict[str, Any] = {"uid": "accounts", "key": "id", "parallelism": 3, "flink_version": "2.3"}
    written = statetool.write(frame, str(tmp_path / "spark"), **given)
    statetool.write(table, str(tmp_path / "arrow"), **given)
    assert content_of(str(tmp_path / "spark")) == content_of(str(tmp_path / "arrow"))
    again = statetool.write(written["accounts"].keyed_state(), str(tmp_path / "again"), uid="accounts", like=written)
    assert again["accounts"].count() == N
    assert not any(d.added or d.removed or d.changed for d in written.diff(again).summary())


@data_sources
def test_df_write_names_the_function(spark: Any, tmp_path: Path) -> None:
    statetool.register(spark)
    frame = spark.range(3).withColumnRenamed("id", "key")
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match=r"statetool\.write\(df, path, uid="):
            frame.write.format("flink-state").mode(mode).save(str(tmp_path / "sp"))
    assert not [*tmp_path.iterdir()]


@data_sources
@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_spark_refuses_the_mode_that_never_overwrites(spark: Any, tmp_path: Path, mode: str) -> None:
    """Spark refuses it for every data source in Python, so the default of ``df.write`` cannot be had."""
    statetool.register(spark)
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(3).write.format("flink-state").mode(mode).save(str(tmp_path / "sp"))
