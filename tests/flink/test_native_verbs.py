"""Changed copies written as native savepoints restore in Flink with exactly the expected content, and windows go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import (
    expected_of,
    is_one_of,
    keep_rows,
    metadata_of,
    own_case,
    some_of,
    with_max_parallelism,
)
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full

#: Keys that ``keep`` leaves in the operator of timers.
KEYS: Final = ("timer-3", "timer-4")


def rescale(source: statetool.Savepoint, target: str, expected: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    statetool.rescale(source, target, 300, parallelism=3, **form)
    return with_max_parallelism(expected, lambda _: 300)


def keep(source: statetool.Savepoint, target: str, expected: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    statetool.keep(source, target, KEYS, operators=["timers"], **form)
    assert keep_rows(expected, lambda name, key: name != "timers" or is_one_of(key, KEYS)) > 0
    return expected


def transform(
    source: statetool.Savepoint, target: str, expected: dict[str, Any], form: dict[str, Any]
) -> dict[str, Any]:
    def add(table: pa.Table) -> pa.Table:
        counts = pc.add(table["count"], pa.scalar(1000, pa.int32()))
        return table.set_column(table.schema.get_field_index("count"), "count", counts)

    source["by-tuple"].transform(add, states=["count"]).write(target, **form)
    for row in expected["by-tuple"]["keyed_state"]["states"]["count"]["rows"]:
        row["value"] += 1000
    return expected


@pytest.mark.case("{written}")
@pytest.mark.in_turn(1)
@pytest.mark.parametrize("written", ["rocksdb-canonical", "rocksdb-incremental", "rocksdb-heap-timers"])
@pytest.mark.parametrize("verb", [rescale, keep, transform])
@pytest.mark.parametrize("backend", ["rocksdb", "heap", pytest.param("forst", marks=pytest.mark.since(2, 0))])
def test_a_native_copy_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, verb: Callable[..., dict[str, Any]], backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    uids = [name for name, operator in judge.stateful(expected).items() if not operator.get("no_uid")]
    source = statetool.load(str(metadata_of(case)), declarations=CLASSES, uids=uids)
    target = tmp_path / "native"
    expected = verb(source, str(target), expected, {"format": "native", "backend": backend})
    restores = "hashmap" if backend == "heap" else backend
    for parallelism, found in ((2, expected), (3, some_of(expected))):
        requests = judge.requests_for(target, found)
        answer = judge.restore(
            flink, target, requests, backend=restores, parallelism=parallelism,
            savepoint=tmp_path / f"again-{parallelism}", format="NATIVE",
        )  # fmt: skip
        assert judge.differences(answer, found) == []
        assert judge.read_back(Path(answer["savepoint"]), found, parallelism=parallelism) == []
    assert windows.wrongly_continued(flink, target, expected, backend=restores) == []


@pytest.mark.case("{written}")
@pytest.mark.parametrize(
    ("written", "verb", "backend"),
    [
        ("rocksdb-incremental", rescale, "rocksdb"),
        ("rocksdb-heap-timers", rescale, "rocksdb"),
        ("hashmap-checkpoint", transform, "hashmap"),
        pytest.param("forst", rescale, "forst", marks=pytest.mark.since(2, 0)),
    ],
)
def test_a_copy_in_the_same_form_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, verb: Callable[..., dict[str, Any]], backend: str
) -> None:
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    uids = [name for name, operator in judge.stateful(expected).items() if not operator.get("no_uid")]
    source = statetool.load(str(metadata_of(case)), declarations=CLASSES, uids=uids)
    target = tmp_path / "same"
    expected = verb(source, str(target), expected, {"format": "same"})
    before, after = (
        {o.label: {s.layout() for s in o.keyed.managed} for o in savepoint._inventory.operators.values()}
        for savepoint in (source, statetool.load(str(target), uids=uids))
    )
    assert before == after
    answer = judge.restore(flink, target, judge.requests_for(target, expected), backend=backend, parallelism=3)
    assert judge.differences(answer, expected) == []
    assert windows.wrongly_continued(flink, target, expected, backend=backend) == []
