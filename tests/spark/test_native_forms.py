"""Native savepoints on Spark: the task that gathers a subtask writes its database, with what threads of this process write."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.formats.metadata.handles import streams_of
from statetool.io import targets
from statetool.saving.streams.native import HeapForm, NativeForm
from statetool.spark.write import runner
from tests.support.failures.failing_io import FailingIO
from tests.support.servers.object_store import object_store
from tests.support.snapshots.keyed_content import content_of

Backend: TypeAlias = Literal["rocksdb", "forst", "heap"]
N = 2000


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("native") / "base"
    keys = range(N)
    maps = pa.array([[("a", i), (f"b{i}", 1)] for i in keys], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"key": keys, "n": keys, "text": ["x" * (i % 90) for i in keys], "counts": maps})
    timers = pa.table({"key": keys, "timestamp": keys})
    state = statetool.bootstrap_keyed_state(table, timers=timers)
    writer = statetool.SavepointWriter.new(max_parallelism=128).with_operator("op", state, parallelism=3)
    writer.write(str(path), flink_version="2.3")
    return str(path)


@pytest.fixture
def in_tasks(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the session, with a driver that cannot write native state itself."""

    def refuse(*_: object) -> None:
        raise AssertionError("written by the driver")

    spark.conf.set("spark.statetool.localBytes", "0")
    with monkeypatch.context() as patch:
        patch.setattr(NativeForm, "write", refuse)
        patch.setattr(HeapForm, "write", refuse)
        yield spark
    spark.conf.unset("spark.statetool.localBytes")


def stored(snapshot: str) -> dict[int, list[tuple[str, int, bytes]]]:
    """The files of keyed state of each subtask: name, size, and bytes unless they have random identities."""
    (operator,) = statetool.load(snapshot)._inventory.operators.values()
    found: dict[int, list[tuple[str, int, bytes]]] = {}
    for subtask in operator.state.subtasks:
        for handle in (subtask.managed_keyed, subtask.raw_keyed):
            for stream in streams_of(handle) if handle is not None else ():
                place = statetool.load(snapshot)._inventory.resolve(stream)
                assert place is not None
                with place.open() as f:
                    raw = bytes(f.read_at(0, place.size_bytes))
                # Table files and manifests name the database, which has a random identity.
                is_named = b"rocksdb" in raw or b"RocksDB" in raw or b"leveldb" in raw
                found.setdefault(subtask.index, []).append(("", len(raw), b"" if is_named else raw))
    return {index: sorted(files) for index, files in found.items()}


def check_same(here: str, there: str) -> None:
    assert content_of(there) == content_of(here)
    assert stored(there) == stored(here)
    assert len(stored(there)) >= 3
    assert statetool.verify(there, deep=True).ok


@pytest.mark.filterwarnings("ignore:operator op has timers")
@pytest.mark.parametrize("backend", ["rocksdb", "heap"])
def test_tasks_rescale_as_threads_do(
    base: str, spark: Any, tmp_path: Path, backend: Backend, request: pytest.FixtureRequest
) -> None:
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    options: dict[str, Any] = {"parallelism": 4, "format": "native", "backend": backend}
    statetool.rescale(base, here, 300, **options)
    statetool.rescale(base, there, 300, **options, spark=request.getfixturevalue("in_tasks"))
    check_same(here, there)


def test_tasks_transform_as_threads_do(base: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    def double(table: pa.Table) -> pa.Table:
        return table.set_column(table.schema.get_field_index("n"), "n", pc.multiply(table["n"], 2))

    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    options: dict[str, Any] = {"format": "native", "backend": "forst"}
    statetool.load(base)["op"].transform(double, states=["n"]).write(here, **options)
    opened = statetool.load(base, spark=request.getfixturevalue("in_tasks"))
    opened["op"].transform({"n": "n * 2"}).write(there, **options)
    check_same(here, there)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    with object_store("tasks") as store:
        yield store


def _let_tasks_fail(patch: pytest.MonkeyPatch, point: int, kind: tuple[str, bool], flag: Path) -> None:
    """Let a call of each task that gathers a subtask fail, as in :class:`FailingIO`; a task whose call has failed creates a file."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    gatherer = runner._gatherer

    def failing(*arguments: Any) -> Any:
        run = gatherer(*arguments)

        def gather(batches: Any) -> Any:
            os.environ.update(variables)
            with pytest.MonkeyPatch.context() as inner:
                io = FailingIO(point, kind, inner)
                try:
                    yield from run(batches)
                finally:
                    if io.failed_call:
                        flag.touch()

        return gather

    patch.setattr(runner, "_gatherer", failing)


@pytest.mark.full
@pytest.mark.parametrize(("backend", "first", "step"), [("rocksdb", 1, 3), ("forst", 2, 3), ("heap", 1, 1)])
def test_a_task_that_an_object_store_refuses_publishes_nothing(
    in_tasks: Any, bucket: Any, tmp_path: Path, backend: Backend, first: int, step: int
) -> None:
    """Calls of a task fail, every third one of the longer tasks; nothing is left, and the next write is complete."""
    state = statetool.bootstrap_keyed_state(in_tasks.range(0, 50, 1, 2).selectExpr("id AS key", "id AS n"))
    writer = statetool.SavepointWriter.new(max_parallelism=8).with_operator("op", state, parallelism=1)
    target, failed = f"s3://tasks/{backend}", 0

    def write() -> None:
        writer.write(target, flink_version="2.3", format="native", backend=backend, inline_bytes=0)

    for point in itertools.count(first, step):
        flag = tmp_path / f"{point}"
        with pytest.MonkeyPatch.context() as patch:
            _let_tasks_fail(patch, point, ("error", point % 2 == 0), flag)
            try:
                write()
            except Exception as error:  # noqa: BLE001 - Spark raises many classes
                assert flag.exists(), error
                assert not targets.list_sizes(target)
                failed += 1
            else:
                assert not flag.exists()
                break
    assert failed > 2
    assert statetool.verify(target, deep=True).ok
    assert statetool.load(target)["op"].to_arrow().num_rows == 50
