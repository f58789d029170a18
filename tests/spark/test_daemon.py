from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark

from statetool.spark.private import without_zip

INSTALLED = Path(pyspark.__file__).parent


def test_workers_of_own_sessions_load_the_installed_pyspark(spark: Any) -> None:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__]})

    (row,) = spark.range(1).repartition(1).mapInArrow(where, "file STRING").collect()
    assert row.file == pyspark.__file__


def test_workers_of_own_sessions_find_imported_what_tasks_need(spark: Any) -> None:
    def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Earlier tasks may have imported the same; objects excluded from collection existed when the worker was forked.
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})

    (row,) = spark.range(1).repartition(1).mapInArrow(imported, "frozen LONG").collect()
    assert row.frozen > 100_000


def test_a_zip_gives_way_only_to_the_pyspark_that_it_came_with(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    own = str(tmp_path / "pyspark" / "python" / "lib" / "pyspark.zip")
    other = str(INSTALLED / "python" / "lib" / "pyspark.zip")
    assert without_zip([own, "/a", str(tmp_path)]) == ["/a", str(tmp_path)]
    assert without_zip([other, "/a", str(tmp_path)]) == [other, "/a", str(tmp_path)]
    assert without_zip([own, other, str(tmp_path)]) == [own, other, str(tmp_path)]
    assert without_zip([own, "/a"]) == [own, "/a"]
    assert without_zip(["/a", str(tmp_path)]) == ["/a", str(tmp_path)]
