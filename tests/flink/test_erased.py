"""Savepoints without the state of some keys, and samples of savepoints, restore in Flink with exactly the expected content."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full
CASES = (
    ("rocksdb-canonical", "rocksdb"),
    ("rocksdb-native", "rocksdb"),
    ("rocksdb-incremental", "rocksdb"),
    ("hashmap-canonical", "hashmap"),
    ("hashmap-checkpoint", "hashmap"),
    ("rocksdb-canonical-compressed", "hashmap"),
    ("rocksdb-full", "rocksdb"),
    ("rocksdb-heap-timers", "rocksdb"),
    ("changelog-hashmap", "hashmap"),
)
with_cases = pytest.mark.parametrize(("written", "backend"), CASES)
#: Keys of the operators timers, by-short and with-ttl (and other numbers), and those of windows.
KEYS: tuple[Any, ...] = ("timer-3", 4, 8)


def opened(case: Path, expected: dict[str, Any], work: Path) -> statetool.Savepoint:
    """Open a snapshot, without the operators in heap layout that have values whose end only user code can find."""
    uids = [n for n, o in judge.stateful(expected).items() if not o.get("no_uid")]
    savepoint = statetool.load(str(metadata_of(case)), uids=uids)
    unreadable = [
        operator.operator_id
        for operator in savepoint.operators.values()
        if any(meta.value.needs_frame for _, meta in operator.inventory.keyed_states.values())
    ]
    if (case.name.rpartition("-")[2] != "hashmap" and "hashmap-checkpoint" not in case.name) or not unreadable:
        return savepoint
    statetool.drop(savepoint, str(work / "readable"), unreadable)
    for name in [n for n, o in expected.items() if o["operator_id"] in unreadable]:
        del expected[name]
    return statetool.load(str(work / "readable"), uids=[uid for uid in uids if uid in expected])


def keep_rows(expected: dict[str, Any], stays: Callable[[str, Any], bool]) -> int:
    """Remove the rows and timers of keys that do not stay from the expected content, and return their number."""
    removed = 0
    for name, operator in expected.items():
        keyed = operator.get("keyed_state")
        if not keyed:
            continue
        rows_of = [described["rows"] for described in keyed["states"].values()]
        for rows in (*rows_of, keyed["event_time_timers"], keyed["processing_time_timers"]):
            left = [row for row in rows if stays(name, row["key"])]
            removed += len(rows) - len(left)
            rows[:] = left
    return removed


def is_one_of(key: Any, keys: Collection[Any]) -> bool:
    return isinstance(key, str | int | float) and not isinstance(key, bool) and key in keys


def restored_differences(
    flink: FlinkMachine, tmp_path: Path, expected: dict[str, Any], backend: str, target: Path
) -> list[str]:
    requests = judge.requests_for(target, expected)
    answer = judge.restore(flink, target, requests, backend=backend, savepoint=tmp_path / "again")
    return [
        *judge.differences(answer, expected),
        *judge.read_back(Path(answer["savepoint"]), expected, parallelism=2),
        *windows.wrongly_continued(flink, target, expected, backend=backend),
    ]


@pytest.mark.case("{written}")
@with_cases
def test_erased_keys_are_absent_and_their_timers_never_fire(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    window_key = expected["win-tumble-reduce"]["keyed_state"]["states"]["window-contents"]["rows"][-1]["key"]
    keys = (*KEYS, window_key)
    done = statetool.erase(opened(case, expected, tmp_path), str(tmp_path / "sp"), keys)
    assert keep_rows(expected, lambda _, key: not is_one_of(key, keys)) > 0
    assert done.proof is not None
    assert done.plan.entries > 0
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []


@pytest.mark.case("{written}")
@with_cases
def test_a_sample_restores(flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    plan = statetool.sample(opened(case, expected, tmp_path), str(tmp_path / "sp"), keys="40%", seed=7)
    assert sum(row.keys or 0 for row in plan.operators) > 0
    requests = judge.requests_for(tmp_path / "sp", expected)
    answer = judge.restore(flink, tmp_path / "sp", requests, backend=backend, savepoint=tmp_path / "again")
    found = found_keys(answer)
    assert any(found.values())
    # Keys that the job found have all their state and timers.
    assert keep_rows(expected, lambda name, key: text_of(key) in found[name]) > 0
    assert judge.differences(answer, expected) == []


def text_of(key: Any) -> str:
    return json.dumps(judge.normal(key), sort_keys=True)


def found_keys(answer: dict[str, Any]) -> dict[str, set[str]]:
    """Return the keys that each operator found."""
    found: dict[str, set[str]] = defaultdict(set)
    for subtask in answer["opened"]:
        rows = [row for rows in subtask.get("states", {}).values() for row in rows]
        rows += [*subtask.get("event_time_timers", ()), *subtask.get("processing_time_timers", ())]
        found[subtask["operator"]] |= {text_of(row["key"]) for row in rows}
    return found
