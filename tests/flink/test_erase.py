"""Savepoints with erased, sampled, set and purged state restore in Flink with exactly the expected content."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import statetool
from tests.support.flink import judge
from tests.support.flink.corpus_cases import expected_of, is_one_of, keep_rows, own_case
from tests.support.flink.edited import IN_PLACE, opened, restored_differences
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full
#: A form that both releases write is changed in one of them by each test, in turn: what is written in another form depends on the form, and
#: what Flink accepts on the release and the form.
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


@pytest.mark.case("{written}")
@pytest.mark.in_turn(1)
@pytest.mark.parametrize(("written", "backend"), [*CASES, ("forst", "forst"), ("forst-native", "forst")])
def test_erased_keys_are_absent_and_their_timers_never_fire(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    window_key = expected["win-tumble-reduce"]["keyed_state"]["states"]["window-contents"]["rows"][-1]["key"]
    keys = (*KEYS, window_key)
    done = statetool.erase(opened(case, expected, tmp_path), str(tmp_path / "sp"), keys, allow_missing=True)
    assert keep_rows(expected, lambda _, key: not is_one_of(key, keys)) > 0
    assert done.proof is not None
    assert done.plan.entries > 0
    if written in IN_PLACE:
        assert {operator.form for operator in done.plan.operators} <= {"unchanged", "in place"}
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []


@pytest.mark.case("{written}")
@pytest.mark.in_turn(2)
@with_cases
def test_keys_chosen_by_their_values_are_absent(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    rows = expected["with-ttl"]["keyed_state"]["states"]["ttl-sum"]["rows"]
    sums = {row["key"]: row["value"] for row in rows}
    limit = sorted(sums.values())[len(sums) // 2]
    source = opened(case, expected, tmp_path)
    statetool.erase(source, str(tmp_path / "sp"), where=f'"ttl-sum" >= {limit}', operators=["with-ttl"])
    assert keep_rows(expected, lambda uid, key: uid != "with-ttl" or sums[key] < limit) > 0
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []


@pytest.mark.case("{written}")
@pytest.mark.in_turn(3)
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


@pytest.mark.case("{written}")
@pytest.mark.in_turn(4)
@with_cases
def test_set_values_and_timers_are_seen(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    source = opened(case, expected, tmp_path)
    tuples = expected["by-tuple"]["keyed_state"]["states"]
    key = tuples["count"]["rows"][0]["key"]
    values = {"count": 1000, "seen[0]": 5, "seen[+]": 7, 'last[{"f0": 0, "f1": "m"}].f1': "new"}
    statetool.set_values(source, str(tmp_path / "one"), "by-tuple", tuple(key), values)
    row_of(tuples, "count", key)["value"] = 1000
    seen = row_of(tuples, "seen", key)["value"]
    seen[:] = [5, *seen[1:], 7]
    next(v for k, v in row_of(tuples, "last", key)["value"] if k == [0, "m"])[1] = "new"

    timed = expected["with-ttl"]["keyed_state"]["states"]
    values = {"ttl-value": "new", "ttl-list[1]": 99, "plain": 3}
    second = statetool.load(str(tmp_path / "one"), uids=[u for u in source if source[u].uid])
    statetool.set_values(second, str(tmp_path / "two"), "with-ttl", 4, values, remove=["ttl-sum"])
    row_of(timed, "ttl-value", 4)["value"] = "new"
    row_of(timed, "ttl-list", 4)["value"][1] = 99
    row_of(timed, "plain", 4)["value"] = 3
    timed["ttl-sum"]["rows"] = [row for row in timed["ttl-sum"]["rows"] if row["key"] != 4]

    timers = expected["timers"]["keyed_state"]["event_time_timers"]
    gone = next(timer for timer in timers if timer["key"] == "timer-3")
    added = gone | {"timestamp": gone["timestamp"] + 1}
    third = statetool.load(str(tmp_path / "two"), uids=[u for u in source if source[u].uid])
    statetool.set_values(
        third,
        str(tmp_path / "sp"),
        "timers",
        "timer-3",
        add_timers=[("event", added["timestamp"])],
        remove_timers=[("event", gone["timestamp"])],
    )
    timers[timers.index(gone)] = added
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []


@pytest.mark.case("{written}")
@pytest.mark.in_turn(5)
@with_cases
def test_values_set_in_windows_are_fired(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    source = opened(case, expected, tmp_path)
    tumbling = expected["win-tumble-reduce"]["keyed_state"]["states"]["window-contents"]["rows"][-1]
    window = tumbling["namespace"]
    change = {"window-contents.f1": 100_000}
    path = str(tmp_path / "one")
    statetool.set_values(source, path, "win-tumble-reduce", tumbling["key"], change, namespace=window)
    tumbling["value"][1] = 100_000

    if "win-session-reduce" not in expected:  # the job of checkpoints has fewer operators
        assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "one") == []
        return
    # Sessions are named as the timers and tables show them, which may be another window than the one that stores the contents.
    sessions = expected["win-session-reduce"]["keyed_state"]["states"]
    merged = sessions["merging-window-set"]["rows"][0]
    session, stored = merged["value"][0]
    second = statetool.load(path, uids=[u for u in source if source[u].uid])
    statetool.set_values(second, str(tmp_path / "sp"), "win-session-reduce", merged["key"], change, namespace=session)
    contents = sessions["window-contents"]["rows"]
    next(r for r in contents if r["key"] == merged["key"] and r["namespace"] == stored)["value"][1] = 100_000
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []


def row_of(states: dict[str, Any], state: str, key: Any) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in states[state]["rows"] if row["key"] == key)
    return row


@pytest.mark.case("{written}")
@pytest.mark.in_turn(6)
@with_cases
def test_purged_values_and_timers_are_gone(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    source = opened(case, expected, tmp_path)
    timers = expected["timers"]["keyed_state"]["event_time_timers"]
    limit = sorted(timer["timestamp"] for timer in timers)[len(timers) // 2]
    statetool.purge(source, str(tmp_path / "one"), {"ttl-map": 1, "ttl-list": 1}, now_ms=1 << 60)
    second = statetool.load(str(tmp_path / "one"), uids=[u for u in source if source[u].uid])
    statetool.purge(second, str(tmp_path / "sp"), event_timers_before_ms=limit, operators=["timers"])
    for state in ("ttl-map", "ttl-list"):
        expected["with-ttl"]["keyed_state"]["states"][state]["rows"] = []
    timers[:] = [timer for timer in timers if timer["timestamp"] >= limit]
    assert restored_differences(flink, tmp_path, expected, backend, tmp_path / "sp") == []
