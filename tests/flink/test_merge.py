"""Grafted, split and merged savepoints restore with every key, value, timer and row; their jobs continue."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case
from tests.support.flink.machine import FlinkMachine
from tests.support.snapshots.halves import write_halves

pytestmark = (
    pytest.mark.full
)  # in_turn: how operators and keys are put together depends on the form, not on the release

#: Operators of the second job; one has windows, one operator state, and one timers.
SECOND = ("timers", "with-ttl", "op-lists", "win-session-list")
BY_KEYS = ("timers", "by-tuple", "with-ttl", "collections-by-string", "by-short")
BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


def expect_restore(
    flink: FlinkMachine, snapshot: str | Path, expected: dict[str, Any], *, backend: str, work: Path
) -> None:
    """Check that Flink finds exactly the expected state, and again after the restored job has taken a savepoint."""
    requests = judge.requests_for(Path(snapshot), expected)
    answer = judge.restore(flink, Path(snapshot), requests, backend=backend, savepoint=work)
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []


def without(expected: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: operator for name, operator in expected.items() if name not in names}


@pytest.mark.in_turn(0)
@pytest.mark.case("{written}")
@pytest.mark.parametrize(
    ("written", "backend"),
    [
        ("rocksdb-canonical", "hashmap"),
        ("hashmap-canonical", "rocksdb"),
        ("rocksdb-native", "rocksdb"),
        ("rocksdb-incremental", "rocksdb"),
    ],
)
def test_both_parts_of_a_split_and_their_merge_restore(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    """The operators of one of the snapshots have eleven different max parallelisms, which all of them keep."""
    case = own_case(corpus, flink, written)
    source, expected = str(metadata_of(case)), expected_of(case)
    first, second, merged = (str(tmp_path / name) for name in ("first", "second", "merged"))
    if written == "rocksdb-canonical":
        ids = {name: expected[name]["operator_id"] for name in expected if expected[name].get("keyed_state")}
        numbers = dict(zip(ids, range(60, 60 + len(ids)), strict=True))
        assert len(numbers) > 10
        statetool.rescale(source, str(tmp_path / "source"), {ids[name]: n for name, n in numbers.items()})
        source = str(tmp_path / "source")
        for name, number in numbers.items():
            expected[name]["max_parallelism"] = number
    statetool.split(source, first, second, SECOND)
    rest = without(expected, SECOND)
    own = {name: expected[name] for name in SECOND}
    expect_restore(flink, first, rest, backend=backend, work=tmp_path / "again-1")
    expect_restore(flink, second, own, backend=backend, work=tmp_path / "again-2")
    assert windows.wrongly_continued(flink, Path(second), own, backend=backend) == []
    statetool.merge(first, second, merged)
    expect_restore(flink, merged, expected, backend=backend, work=tmp_path / "again-3")
    assert windows.wrongly_continued(flink, Path(merged), expected, backend=backend) == []


@pytest.mark.in_turn(1)
@pytest.mark.case("{written}")
@pytest.mark.parametrize(
    ("written", "backend"),
    [
        ("rocksdb-incremental", "rocksdb"),
        ("file-merging-rocksdb", "rocksdb"),
        ("changelog-rocksdb", "rocksdb"),
        ("changelog-hashmap", "hashmap"),
        ("hashmap-checkpoint", "hashmap"),
    ],
)
def test_operators_of_a_checkpoint_are_grafted_onto_a_savepoint(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    """The grafted operators come from another kind of snapshot, another run of the job and another checkpoint id."""
    base = own_case(corpus, flink, "hashmap-canonical")
    other = own_case(corpus, flink, written)
    smaller, target = str(tmp_path / "smaller"), str(tmp_path / "grafted")
    statetool.drop(str(metadata_of(base)), smaller, SECOND)
    statetool.graft(smaller, str(metadata_of(other).parent), target, SECOND)
    ids = [statetool.load(p).checkpoint_id for p in (smaller, str(metadata_of(other)), target)]
    assert ids[2] == max(ids)
    expected = without(expected_of(base), SECOND) | {name: expected_of(other)[name] for name in SECOND}
    expect_restore(flink, target, expected, backend=backend, work=tmp_path / "again")
    assert windows.wrongly_continued(flink, Path(target), expected, backend=backend) == []


@BACKENDS
@pytest.mark.in_turn(0)
@pytest.mark.case("rocksdb-canonical")
def test_a_grafted_operator_moves_to_other_key_groups(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, backend: str
) -> None:
    case = own_case(corpus, flink, "rocksdb-canonical")
    savepoint = statetool.load(str(metadata_of(case)))
    writer = statetool.SavepointWriter.new()
    for uid in SECOND:
        writer = writer.with_operator(uid, savepoint[uid], max_parallelism=90)
    writer.write(str(tmp_path / "grafted"))
    expected = copy.deepcopy({name: expected_of(case)[name] for name in SECOND})
    for operator in expected.values():
        operator["max_parallelism"] = 90
    expect_restore(flink, tmp_path / "grafted", expected, backend=backend, work=tmp_path / "again")
    assert windows.wrongly_continued(flink, tmp_path / "grafted", expected, backend=backend) == []


@BACKENDS
@pytest.mark.in_turn(0)
@pytest.mark.case("{written}")
@pytest.mark.parametrize("written", ["rocksdb-canonical", "hashmap-canonical"])
@pytest.mark.parametrize("rescaled", [False, True], ids=["same-key-groups", "other-key-groups"])
def test_halves_of_the_keys_are_merged(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str, rescaled: bool
) -> None:
    case = own_case(corpus, flink, written)
    savepoint = statetool.load(str(metadata_of(case)))
    first, second = write_halves(savepoint, BY_KEYS, tmp_path)
    if rescaled:
        statetool.rescale(second, str(tmp_path / "rescaled"), 60, parallelism=3)
        second = str(tmp_path / "rescaled")
    plan = statetool.merge(first, second, str(tmp_path / "merged"))
    assert {row.action for row in plan.operators} == {"merged"}
    expected = {name: expected_of(case)[name] for name in BY_KEYS}
    expect_restore(flink, tmp_path / "merged", expected, backend=backend, work=tmp_path / "again")


@BACKENDS
@pytest.mark.in_turn(1)
@pytest.mark.case("rocksdb-canonical")
def test_a_moved_state_belongs_to_the_other_operator(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, backend: str
) -> None:
    """The operators have 7 and 128 key groups, so keys move by their hash code."""
    case = own_case(corpus, flink, "rocksdb-canonical")
    target = tmp_path / "moved"
    states = {"total": None, "visits": "visits-of-orders", "history": None}
    statetool.move_state(str(metadata_of(case)), str(target), "collections-by-string", "timers", states)
    names = ("collections-by-string", "timers")
    expected = copy.deepcopy({name: expected_of(case)[name] for name in names})
    old, new = (expected[name]["keyed_state"]["states"] for name in names)
    for name, renamed in states.items():
        new[renamed or name] = old.pop(name)
    expect_restore(flink, target, expected, backend=backend, work=tmp_path / "again")
