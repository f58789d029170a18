"""Small writes run on the driver without using the session. Large ones run in tasks, with the same bytes."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import statetool
from statetool.errors import EncodeError, OptionError
from statetool.saving.bootstrap import datasets
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition, StreamWriteTask
from statetool.saving.local import LocalRunner
from statetool.saving.streams.elements import ElementStreams
from statetool.saving.streams.keyed import CarriedEntries
from statetool.saving.versions import parse_release
from statetool.snapshot.inventory import Inventory
from tests.support.snapshots.stored import stream_bytes
from tests.support.spark.in_process import Frame, Tasks
from tests.support.zoo import ZOO

runner = pytest.importorskip("statetool.spark.write.runner")


class Idle:
    """A session with settings that cannot run anything."""

    conf: dict[str, str] = {}  # noqa: RUF012 - nobody adds to it


class Sized:
    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


def test_a_small_rescale_runs_nothing_on_spark(tmp_path: Path) -> None:
    wanted = {"orders": 300, "by-tuple": 64}
    statetool.rescale(ZOO, str(tmp_path / "here"), wanted)
    statetool.rescale(ZOO, str(tmp_path / "session"), wanted, spark=cast(Any, Idle()))
    here, session = Inventory(str(tmp_path / "here")), Inventory(str(tmp_path / "session"))
    for name, operator in here.operators.items():
        assert stream_bytes(operator) == stream_bytes(session.operators[name])


def test_tasks_rescale_to_the_same_bytes(tmp_path: Path) -> None:
    wanted = {"orders": 300, "collections-by-string": 64, "op-lists": 128}
    for name, session in (("here", None), ("tasks", Tasks())):
        statetool.rescale(ZOO, str(tmp_path / name), wanted, parallelism=3, spark=cast(Any, session))
    here, tasks = Inventory(str(tmp_path / "here")), Inventory(str(tmp_path / "tasks"))
    for name, operator in here.operators.items():
        assert stream_bytes(operator) == stream_bytes(tasks.operators[name])


@pytest.mark.parametrize("groups", [2, 300])
def test_tasks_write_a_table_to_the_same_bytes(groups: int, tmp_path: Path) -> None:
    n = 3000
    table = pa.table(
        {"id": [f"key {i * 7919 % n}" for i in range(n)], "a": list(range(n)), "b": ["x" * (i % 90) for i in range(n)]}
    )
    files = parquet(table, tmp_path / "files")
    states = {"a": statetool.value("BIGINT"), "b": statetool.value("STRING")}
    tasks = runner.SparkRunner(Tasks())
    found: list[Any] = []
    for data, run in (
        (table, LocalRunner()),
        (Frame(table.to_batches(max_chunksize=700)), tasks),
        (files, LocalRunner()),
        (files, tasks),
    ):
        state = statetool.bootstrap_keyed_state(data, key="id", states=states)
        writer = statetool.SavepointWriter.new(max_parallelism=groups).with_operator("o", state, parallelism=2)
        wanted = Composition(changes=writer.changes, max_parallelism=groups)
        target = str(tmp_path / f"{len(found)}")
        write_composition(wanted, target, parse_release("2.3", default=3), run)
        found.append(stream_bytes(Inventory(target).operators["o"]))
    assert found.count(found[0]) == 4


def parquet(table: pa.Table, folder: Path) -> Any:
    """Return a table as a dataset of two Parquet files with several row groups each."""
    folder.mkdir()
    half = table.num_rows // 2
    for name, part in (("a", table.slice(0, half)), ("b", table.slice(half))):
        pq.write_table(part, folder / f"{name}.parquet", row_group_size=400)
    return pads.dataset(str(folder), format="parquet")


def test_a_dataset_without_spark_may_have_a_filter(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3, 4], "n": [5, 6, 7, 8], "unused": ["a", "b", "c", "d"]})
    some = parquet(table, tmp_path / "files").filter(pads.field("id") > 2)
    state = statetool.bootstrap_keyed_state(some, key="id", states={"n": statetool.value("BIGINT")})
    new = statetool.SavepointWriter.new().with_operator("o", state).write(str(tmp_path / "here"), flink_version="2.3")
    assert sorted(new["o"].to_arrow().to_pylist(), key=str) == [{"key": 3, "n": 7}, {"key": 4, "n": 8}]
    writer = statetool.SavepointWriter.new().with_operator("o", state)
    with pytest.raises(OptionError, match="without its filter, or a Spark DataFrame"):
        write_composition(
            Composition(changes=writer.changes),
            str(tmp_path / "tasks"),
            parse_release("2.3", default=3),
            runner.SparkRunner(Tasks()),
        )
    assert not (tmp_path / "tasks").exists()


def test_tasks_cannot_share_a_dataset_in_memory() -> None:
    memory = pads.dataset([pa.table({"id": [1]})])
    with pytest.raises(OptionError, match=r"InMemoryDataset is not stored in files.*pass a pyarrow\.Table"):
        datasets.dataset_parts(memory, 1)


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_file_of_a_dataset_that_cannot_be_read(damage: str, tmp_path: Path) -> None:
    """Tasks name it; without Spark, the error is that of Arrow. Nothing is left behind."""
    files = parquet(pa.table({"id": list(range(1000)), "n": list(range(1000))}), tmp_path / "files")
    (part,) = datasets.dataset_parts(files, 1 << 30)
    batches = chain.from_iterable(datasets.dataset_batches(file, files.schema, ["id", "n"], 100) for file in part)
    state = statetool.bootstrap_keyed_state(files, key="id")
    writer = statetool.SavepointWriter.new().with_operator("o", state)
    damaged = tmp_path / "files" / "b.parquet"
    content = damaged.read_bytes()
    damaged.unlink()
    if damage == "cut":
        damaged.write_bytes(content[:200])
    with pytest.raises(EncodeError, match="a dataset cannot be read: ") as raised:
        list(batches)
    assert raised.value.where.file == str(damaged)
    with pytest.raises(EncodeError, match="a dataset cannot be read: "):
        writer.write(str(tmp_path / "new"), flink_version="2.3")
    assert not (tmp_path / "new").exists()


def test_parts_of_a_dataset_have_alike_many_bytes(tmp_path: Path) -> None:
    table = pa.table({"id": list(range(4000)), "n": [str(i) for i in range(4000)]})
    files = parquet(table, tmp_path / "files")
    whole = datasets.dataset_parts(files, 1 << 30)
    assert [len(part) for part in whole] == [10]
    assert [len(part) for part in datasets.dataset_parts(files, 1)] == [1] * 10
    read = [b for part in whole for file in part for b in datasets.dataset_batches(file, files.schema, ["id"], 300)]
    assert pa.Table.from_batches(read)["id"].to_pylist() == list(range(4000))


def test_timers_and_operator_state_come_from_datasets(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "n": [3, 4]})
    timers = pa.table({"id": [1, 2, 2], "timestamp": [10, 20, 30], "domain": ["event", "processing", "event"]})
    elements = pa.table({"value": list(range(2000))})
    found: list[Any] = []
    for folder, as_data in (("tables", lambda table, _: table), ("files", lambda t, name: parquet(t, tmp_path / name))):
        state = statetool.bootstrap_keyed_state(as_data(rows, "rows"), key="id", timers=as_data(timers, "timers"))
        listed = statetool.bootstrap_list_state("l", as_data(elements, "elements"))
        writer = statetool.SavepointWriter.new().with_operator("o", state, listed, parallelism=2)
        new = writer.write(str(tmp_path / folder), flink_version="2.3")
        found.append(stream_bytes(new._inventory.operators["o"]))
        assert new["o"].to_arrow("timers").num_rows == 3
    assert found[0] == found[1]


@pytest.mark.parametrize(("parallelism", "max_parallelism"), [(3, 128), (5, 128), (3, 64)])
def test_an_edit_shuffles_only_new_rows(parallelism: int, max_parallelism: int, tmp_path: Path) -> None:
    """The task that writes a subtask reads its entries of the base, unless keys move to other key groups."""
    n = 400
    table = pa.table({"key": list(range(n)), "n": list(range(n)), "text": ["x" * 1000] * n})
    state = statetool.bootstrap_keyed_state(table)
    writer = statetool.SavepointWriter.new(max_parallelism=128).with_operator("o", state, parallelism=3)
    base = writer.write(str(tmp_path / "base"))
    rows = pa.table({"key": list(range(n)), "n": [i + 1 for i in range(n)]})
    for name, data in (("here", rows), ("tasks", Frame(rows.to_batches(max_chunksize=100)))):
        edit = statetool.bootstrap_keyed_state(data, like=base["o"])
        edited = statetool.SavepointWriter.from_existing(base).with_operator(
            "o", edit, parallelism=parallelism, max_parallelism=max_parallelism
        )
        wanted = Composition(base=base._inventory, changes=edited.changes)
        run = LocalRunner() if data is rows else runner.SparkRunner(Tasks())
        write_composition(wanted, str(tmp_path / name), parse_release("2.3", default=3), run)
    (here,), (tasks,) = (Inventory(str(tmp_path / name)).operators.values() for name in ("here", "tasks"))
    assert stream_bytes(here) == stream_bytes(tasks)
    assert (Frame.shuffled < 100 * n) == (max_parallelism == 128), Frame.shuffled
    assert tasks.state.max_parallelism == max_parallelism


def test_the_size_of_a_data_frame_is_not_known() -> None:
    data = pa.table({"id": [1, 2], "n": [3, 4]})
    assert runner.size_here(_job(data)) == data.nbytes
    assert runner.size_here(_job(data, object())) is None


def _job(*tables: Any) -> Any:
    streams = ElementStreams(operator="o", header=b"", subtasks=(0,), inline_bytes=0, kept={})
    return StreamWriteTask(streams=streams, tables=tuple((t, cast(Any, None)) for t in tables))


def test_tasks_read_alike_many_bytes_not_files() -> None:
    sizes = [1 << 20] * 508 + [100 << 20, 1, 1]
    kept = [(0, cast(CarriedEntries, Sized(size))) for size in sizes]
    tasks = runner.tasks_by_size(kept)
    assert [place for task in tasks for place, _, _ in task] == list(range(len(sizes)))
    assert len(tasks) == 508 // 32 + 2
    assert runner.tasks_by_size([]) == []
