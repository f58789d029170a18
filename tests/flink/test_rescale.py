"""Rescaled copies of savepoints written by Flink restore with every key, value, timer and row; windows continue."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case, with_max_parallelism
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


@pytest.mark.in_turn(0)  # where keys move depends on the form and the numbers
@pytest.mark.case("{written}")
@pytest.mark.parametrize(
    ("written", "restored", "number", "parallelism"),
    [
        pytest.param("rocksdb-canonical", "rocksdb", 1024, 2, id="rocksdb-up"),
        pytest.param("rocksdb-canonical", "hashmap", 32, 2, id="rocksdb-down"),
        pytest.param("rocksdb-canonical", "hashmap", 77, 2, id="rocksdb-no-divisor"),
        pytest.param("hashmap-canonical", "rocksdb", 2048, 1, id="hashmap-up"),
        pytest.param("hashmap-canonical", "rocksdb", 32, 3, id="hashmap-down"),
        pytest.param("hashmap-canonical", "hashmap", 101, 2, id="hashmap-no-divisor"),
        pytest.param("rocksdb-native", "rocksdb", 90, 2, id="native"),
        pytest.param("rocksdb-native", "hashmap", 90, 2, id="native-to-heap"),
        pytest.param("rocksdb-incremental", "rocksdb", 60, 2, id="incremental"),
    ],
)
def test_rescaled_savepoint_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, restored: str, number: int, parallelism: int
) -> None:
    case = own_case(corpus, flink, written)
    target = tmp_path / "rescaled"
    changes_backend = (written, restored) == ("rocksdb-native", "hashmap")
    statetool.rescale(str(metadata_of(case)), str(target), number, format="canonical" if changes_backend else "same")
    expected = with_max_parallelism(expected_of(case), lambda _: number)
    requests = judge.requests_for(target, expected)
    answer = judge.restore(
        flink, target, requests, backend=restored, parallelism=parallelism, savepoint=tmp_path / "again"
    )
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=parallelism) == []
    assert windows.wrongly_continued(flink, target, expected, backend=restored) == []


@pytest.mark.case("hashmap-canonical")
def test_subtasks_that_met_different_subclasses_are_joined(flink: FlinkMachine, corpus: Path, tmp_path: Path) -> None:
    case = own_case(corpus, flink, "hashmap-canonical")
    expected = {"orders": expected_of(case)["orders"]}
    (request,) = judge.requests_for(case / "snapshot", expected)
    requests = [request]
    taken = judge.restore(flink, case / "snapshot", requests, backend="rocksdb", parallelism=4, savepoint=tmp_path)
    described = statetool.load(taken["savepoint"]).inventory.operator("orders").keyed.descriptions
    assert described, "all subtasks have met the same subclasses: nothing is tried"
    assert judge.read_back(Path(taken["savepoint"]), expected, parallelism=4) == []
    target = tmp_path / "rescaled"
    statetool.rescale(taken["savepoint"], str(target), 90)
    expected["orders"]["max_parallelism"] = request["max_parallelism"] = 90
    answer = judge.restore(flink, target, requests, backend="rocksdb", savepoint=tmp_path / "again")
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []


@pytest.mark.case("rocksdb-canonical")
def test_half_the_key_groups_and_other_subtasks_restore(flink: FlinkMachine, corpus: Path, tmp_path: Path) -> None:
    case = own_case(corpus, flink, "rocksdb-canonical")
    changes = {"orders": 64, "by-pojo": 64, "timers": 64, "collections-by-string": 9}
    target = tmp_path / "rescaled"
    ids = {o["operator_id"]: n for n, o in expected_of(case).items()}
    by_id = {i: changes[n] for i, n in ids.items() if n in changes}
    statetool.rescale(str(case / "snapshot"), str(target), by_id, parallelism=dict.fromkeys(by_id, 4))
    expected = expected_of(case)
    for name, number in changes.items():
        expected[name]["max_parallelism"] = number
    answer = judge.restore(flink, target, judge.requests_for(target, expected), backend="rocksdb", parallelism=1)
    assert judge.differences(answer, expected) == []
