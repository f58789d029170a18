"""Items of tasks: each task receives only its own, however many there are."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.cloudpickle import dumps

import statetool
from statetool.formats.key_groups import owner_of
from statetool.spark import stages, views
from statetool.spark.frames import scan_stages
from statetool.spark.stages import FEW_ITEMS, Stages, stages_of_items
from statetool.tables.request import ScanRequest
from tests.support.snapshots.build import LONG
from tests.support.snapshots.canonical import Subtask, composite_key, encoded, group_of, keyed, savepoint, serializer
from tests.support.snapshots.large import large_checkpoint
from tests.support.spark.data_sources import data_sources, rows_of

NUMBERS = pa.schema([pa.field("partition", pa.int32()), pa.field("number", pa.int64())])


def numbered(items: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
    """Return each item with the number of its partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for item in items:
        yield pa.RecordBatch.from_pylist(
            [{"partition": context.partitionId(), "number": pickle.loads(item)}], schema=NUMBERS
        )


@pytest.mark.parametrize("count", [0, 1, FEW_ITEMS, FEW_ITEMS + 1, 5 * FEW_ITEMS])
def test_each_item_is_a_task(spark: Any, count: int) -> None:
    frame = stages_of_items([pickle.dumps(n) for n in range(count)], numbered, NUMBERS).frame(spark)
    rows = frame.collect()
    assert sorted(r.number for r in rows) == [*range(count)]
    assert len({r.partition for r in rows}) == count


def test_items_of_one_task_stay_together(spark: Any) -> None:
    count = 2 * FEW_ITEMS
    rows = stages_of_items([pickle.dumps(n) for n in range(count)], numbered, NUMBERS, one_task=True).frame(spark)
    assert [r.number for r in rows.collect()] == [*range(count)]
    assert {r.partition for r in rows.collect()} == {0}


def test_rows_of_items_have_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "_BATCH_BYTES", 10)
    monkeypatch.setattr(stages, "_BATCH_ITEMS", 3)
    items = [bytes(n) for n in (4, 4, 4, 20, 1, 1, 1, 1)]
    (first, _) = stages.stages_of_source(lambda: items, 1, numbered, NUMBERS).stages
    batches = list(first.function(iter([pa.RecordBatch.from_pydict({"id": [0]})])))
    assert [[len(i) for i in b.column(0).to_pylist()] for b in batches] == [[4, 4], [4], [20], [1, 1, 1], [1]]


def task_bytes(planned: Stages) -> int:
    """Return the size of the function that every task receives."""
    return len(dumps(planned.stages[-1].function))


def test_what_a_task_receives_does_not_grow_with_the_number_of_splits(tmp_path: Path) -> None:
    sizes = {}
    for files in (1_000, 10_000):
        checkpoint = statetool.load(str(large_checkpoint(tmp_path / str(files), files, states=3)), uids=["op"])
        scan = checkpoint["op"].plan(ScanRequest.of("s0"))
        assert len(scan.splits) > files // 2
        sizes[files] = task_bytes(scan_stages(scan, None))
    assert sizes[1_000] == sizes[10_000] < 2_000


def savepoint_of_long_keys(folder: Path, values: dict[int, int], *, subtasks: int) -> None:
    """Write a savepoint with a value state ``s`` of longs."""
    key, entries = serializer(LONG), [list[tuple[str, int, bytes, bytes]]() for _ in range(subtasks)]
    for k, value in values.items():
        group = group_of(key, k, 128)
        entry = ("s", group, composite_key(encoded(key, k)), encoded(key, value))
        entries[owner_of(group, subtasks, 128)].append(entry)
    savepoint(folder, [Subtask(key=LONG, states=[keyed("s", "value", LONG)], entries=e) for e in entries])


@data_sources
@pytest.mark.parametrize("plain", [False, True], ids=["put", "made"])
def test_views_of_many_files_are_planned_by_their_queries(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    values = {n: n * n for n in range(2_000)}
    savepoint_of_long_keys(tmp_path, values, subtasks=40)
    monkeypatch.setattr(views, "MANY_FILES", 1)
    monkeypatch.setattr(views, "scan_table", None)  # the driver plans no splits
    if plain:
        monkeypatch.setattr("statetool.spark.private.view_writer", lambda _: None)
    savepoint = statetool.load(str(tmp_path), uids=["op"], spark=spark)
    savepoint.register("many")
    monkeypatch.undo()
    frame = spark.table("many_op_keyed_state")
    assert {r.key: r.s for r in frame.collect()} == values
    joined = spark.sql("SELECT count(*) AS n FROM many_op_keyed_state a JOIN many_op_keyed_state b USING (key)")
    assert joined.collect()[0].n == len(values)
    expected = rows_of(savepoint["op"].table("s"))
    assert sorted(map(repr, rows_of(spark.table("many_op_s")))) == sorted(map(repr, expected))
    assert spark.sql("SELECT * FROM many_op_s LIMIT 3").count() == 3
