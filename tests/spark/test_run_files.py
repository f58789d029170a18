"""On one machine, tasks pass runs to each other in files. Otherwise Spark shuffles them. Both ways give the same bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import statetool
from statetool.errors import EncodeError
from statetool.snapshot.inventory import Inventory
from statetool.spark.private import is_local_master, session_folder
from statetool.spark.write import run_files, runner
from tests.support.snapshots.stored import stream_bytes

N = 5000
STATES = {"n": statetool.value("BIGINT"), "text": statetool.value("STRING")}


def rows() -> pa.Table:
    return pa.table({"id": range(N), "n": range(N), "text": ["x" * (i % 90) for i in range(N)]})


@pytest.fixture(params=["files", "shuffle"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "shuffle":
        monkeypatch.setattr(run_files, "session_folder", lambda _: None)
    return str(request.param)


def write(data: Any, target: Path, spark: Any) -> Inventory:
    state = statetool.bootstrap_keyed_state(data, key="id", states=STATES)
    elements = statetool.bootstrap_list_state("elements", data, value="n")
    writer = statetool.SavepointWriter.new(spark=spark).with_operator("o", state, elements, parallelism=3)
    writer.write(str(target), flink_version="2.3")
    return Inventory(str(target))


def test_only_positions_of_runs_are_shuffled_on_one_machine(
    spark: Any, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(rows(), tmp_path / "rows.parquet", row_group_size=1000)
    shuffled: list[tuple[int, int]] = []
    shuffle = runner._shuffle

    def counted(runs: Any, partitions: int) -> Any:
        sizes = "coalesce(sum(length(data)), 0) AS bytes", "count(file) AS files"
        shuffled.extend((row.bytes, row.files) for row in runs.selectExpr(*sizes).collect())
        return shuffle(runs, partitions)

    monkeypatch.setattr(runner, "_shuffle", counted)
    ways = {
        "tasks": pads.dataset(str(tmp_path / "rows.parquet")),
        "frame": spark.read.parquet(str(tmp_path / "rows.parquet")),
    }
    (here,) = write(rows(), tmp_path / "here", None).operators.values()
    for name, data in ways.items():
        (found,) = write(data, tmp_path / name, spark).operators.values()
        assert stream_bytes(found) == stream_bytes(here)
        values = {
            place: statetool.load(str(tmp_path / place))["o"].to_arrow("elements")["value"] for place in ("here", name)
        }
        assert sorted(values["here"].to_pylist()) == sorted(values[name].to_pylist()) == list(range(N))
        size, files = shuffled.pop()
        assert (size == 0 and files > 0) if way == "files" else (size > 30 * N and files == 0)


def test_no_file_of_runs_is_left(spark: Any, way: str, tmp_path: Path) -> None:
    parent = session_folder(spark)
    assert parent is not None
    before = os.listdir(parent)
    frame = spark.createDataFrame([(i % 4000, i, "x") for i in range(N)], "id BIGINT, n BIGINT, text STRING")
    with pytest.raises(EncodeError, match="occurs twice"):
        write(frame, tmp_path / "twice", spark)
    write(frame.dropDuplicates(["id"]), tmp_path / "once", spark)
    assert os.listdir(parent) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["once"]


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*,3]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://h:7077", False),
        ("yarn", False),
    ],
)
def test_executors_of_a_cluster_need_not_share_files(master: str, local: bool) -> None:
    assert is_local_master(master) == local


def test_a_session_without_a_context_shuffles() -> None:
    assert session_folder(object()) is None


@pytest.mark.parametrize("reuse", ["true", "false"])
def test_workers_of_a_single_task_shuffle(spark: Any, monkeypatch: pytest.MonkeyPatch, reuse: str) -> None:
    """Otherwise there would be as many open files as tasks."""
    context = spark.sparkContext
    conf = context.getConf().set("spark.python.worker.reuse", reuse)
    monkeypatch.setattr(context, "getConf", lambda: conf)
    with run_files.run_folder(spark) as folder:
        assert (folder is None) == (reuse == "false")
