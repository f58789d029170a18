"""Test of the harness itself: savepoints of Flink restore with every value; damage and wrong types are detected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, own_case
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError

pytestmark = pytest.mark.full


@pytest.mark.case("{backend}-canonical")
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_flinks_own_savepoint_restores_with_every_value(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, backend: str
) -> None:
    case = own_case(corpus, flink, f"{backend}-canonical")
    expected = expected_of(case)
    requests = judge.requests_for(case / "snapshot", expected)
    answer = judge.restore(flink, case / "snapshot", requests, backend=backend, savepoint=tmp_path)
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []


@pytest.mark.case("rocksdb-canonical")
def test_flinks_window_operators_go_on(flink: FlinkMachine, corpus: Path) -> None:
    case = own_case(corpus, flink, "rocksdb-canonical")
    assert windows.wrongly_continued(flink, case / "snapshot", expected_of(case), backend="rocksdb") == []


@pytest.mark.case("hashmap-canonical")
def test_a_wrong_value_a_lost_key_and_a_lost_timer_are_told(flink: FlinkMachine, corpus: Path) -> None:
    case = own_case(corpus, flink, "hashmap-canonical")
    expected = {n: o for n, o in expected_of(case).items() if n in ("by-tuple", "timers", "op-lists")}
    requests = judge.requests_for(case / "snapshot", expected)
    answer = judge.restore(flink, case / "snapshot", requests, backend="hashmap")
    assert judge.differences(answer, expected) == []
    expected["by-tuple"]["keyed_state"]["states"]["count"]["rows"][0]["value"] += 1
    expected["by-tuple"]["keyed_state"]["states"]["seen"]["rows"].pop()
    expected["timers"]["keyed_state"]["event_time_timers"].pop()
    expected["op-lists"]["operator_state"]["offsets"]["rows"].pop()
    found = judge.differences(answer, expected)
    assert sorted({f.split(":")[0] for f in found}) == [
        "by-tuple.count",
        "by-tuple.seen",
        "op-lists.offsets",
        "timers event timers",
        "timers fired timers",
    ]


@pytest.mark.case("hashmap-canonical")
def test_a_type_that_is_not_the_jobs_is_refused(flink: FlinkMachine, corpus: Path) -> None:
    case = own_case(corpus, flink, "hashmap-canonical")
    expected = {n: o for n, o in expected_of(case).items() if n == "by-byte"}
    (request,) = judge.requests_for(case / "snapshot", expected)
    request["states"][0]["type"] = "LONG"
    with pytest.raises(FlinkRefusedError, match="StateMigrationException"):
        judge.restore(flink, case / "snapshot", [request], backend="hashmap")


@pytest.mark.case("hashmap-canonical")
def test_a_cut_file_is_refused(flink: FlinkMachine, corpus: Path, tmp_path: Path) -> None:
    case = own_case(corpus, flink, "hashmap-canonical")
    expected = {n: o for n, o in expected_of(case).items() if n == "scalars-by-long"}
    requests = judge.requests_for(case / "snapshot", expected)
    shutil.copytree(case / "snapshot", tmp_path / "cut")
    for file in (tmp_path / "cut").iterdir():
        if file.name != "_metadata":
            file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(FlinkRefusedError, match="EOFException"):
        judge.restore(flink, tmp_path / "cut", requests, backend="hashmap")
