"""Sources go on in real Flink from savepoints that were rescaled: each record is read exactly once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.source_jobs import (
    SOURCES,
    read_numbers,
    run_job,
    shard_positions,
    source_machine,
    take_savepoint,
)

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("connectors_by_maven")]


@pytest.fixture(scope="module")
def source_flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkMachine]:
    machine = source_machine(tmp_path_factory.mktemp("sources-flink"))
    yield machine
    machine.close()


def connector_rows(taken: dict[str, Any], table: Any) -> list[Any]:
    return list(statetool.load(taken["savepoint"]).connector_rows(table))


def rescale(taken: dict[str, Any], folder: Path, fixed: Iterable[str] = ()) -> str:
    """Rescale the savepoint of a job except for some operators, and return the path of the new one."""
    target = str(folder / "rescaled")
    operators = statetool.load(taken["savepoint"]).operators.keys() - fixed
    statetool.rescale(
        taken["savepoint"], target, dict.fromkeys(operators, 200), parallelism=dict.fromkeys(operators, 3)
    )
    return target


@pytest.mark.parametrize("source", ["iceberg", "files", "kinesis"])
def test_a_rescaled_source_reads_the_rest(source: str, source_flink: FlinkMachine, tmp_path: Path) -> None:
    taken = take_savepoint(source_flink, source, tmp_path)
    # Flink sets max parallelism 1 for the monitor of files.
    fixed = [r.operator for r in connector_rows(taken, "sources") if r.connector == "continuous-file-monitoring"]
    rescaled = rescale(taken, tmp_path, fixed)
    read = read_numbers(taken)
    rest = sorted(set(range(SOURCES[source])) - set(read))
    assert read
    assert rest
    answer = run_job(source_flink, source, tmp_path, snapshot=rescaled, wanted=len(rest))
    assert sorted(map(int, answer["records"])) == rest
    began = {shard: at for found in answer["began"] for shard, at in found.items()}
    assert began == shard_positions(taken)


def test_a_rescaled_source_of_jdbc_goes_on_in_its_ranges(source_flink: FlinkMachine, tmp_path: Path) -> None:
    """Release 3.3 enumerates all ranges again after a restore, so only the next rows of each range are compared."""
    taken = take_savepoint(source_flink, "jdbc", tmp_path)
    held = [json.loads(r.details) for r in connector_rows(taken, "source_splits")]
    answer = run_job(source_flink, "jdbc", tmp_path, snapshot=rescale(taken, tmp_path), wanted=20)
    numbers = list(map(int, answer["records"]))
    assert len(held) == 2
    for split in held:
        low, high = split["parameters"]
        found = [n for n in numbers if low <= n <= high]
        first = low + split["offset"]
        assert found == list(range(first, first + len(found)))
    assert len(numbers) >= 20
