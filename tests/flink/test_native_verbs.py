"""Changed copies written as native savepoints restore in Flink with exactly the expected content, and windows go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.formats.metadata.properties import read_properties
from statetool.formats.operator_id import operator_id_for_uid
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
@pytest.mark.parametrize(
    ("written", "verb"),
    [("rocksdb-canonical", rescale), ("rocksdb-incremental", keep), ("rocksdb-heap-timers", transform)],
)
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


def with_new_operator(edits: statetool.SavepointWriter, target: Path, flink: FlinkMachine) -> dict[str, Any]:
    """Add an operator with timers in the same form, and return what Flink should find in it."""
    keys = list(range(50))
    timers = pa.table({"key": keys, "timestamp": [1000 + key for key in keys], "domain": ["event"] * 50})
    state = statetool.bootstrap_keyed_state(pa.table({"key": keys, "n": keys}), timers=timers)
    added = edits.with_operator("added", state, parallelism=2, max_parallelism=128, new=True)
    added.write(str(target), format="same", flink_version=flink.version)
    return {
        "operator_id": operator_id_for_uid("added"),
        "max_parallelism": 128,
        "keyed_state": {
            "states": {"n": {"rows": [{"key": key, "value": key} for key in keys]}},
            "event_time_timers": [{"key": key, "namespace": None, "timestamp": 1000 + key} for key in keys],
            "processing_time_timers": [],
        },
    }


@pytest.mark.case("{written}")
@pytest.mark.parametrize(
    ("written", "backend"),
    [
        ("rocksdb-incremental", "rocksdb"),
        ("rocksdb-heap-timers", "rocksdb"),
        ("hashmap-checkpoint", "hashmap"),
        pytest.param("forst", "forst", marks=pytest.mark.since(2, 0)),
        pytest.param("forst-native", "forst", marks=pytest.mark.since(2, 0)),
    ],
)
def test_a_new_operator_beside_native_ones_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str
) -> None:
    """In the databases of RocksDB and ForSt, in a canonical stream beside the layout of the heap backend."""
    case = own_case(corpus, flink, written)
    expected = expected_of(case)
    target = tmp_path / "same"
    edits = statetool.SavepointWriter.from_existing(statetool.load(str(metadata_of(case)), declarations=CLASSES))
    only = {"added": with_new_operator(edits, target, flink)}
    old, expected = expected, {**expected, **only}
    requests = judge.requests_for(target, expected)
    answer = judge.restore(
        flink, target, requests, backend=backend, parallelism=2, savepoint=tmp_path / "again", format="NATIVE"
    )
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), old, parallelism=2) == []
    for factory in ("HEAP", "default") if backend != "hashmap" else ():
        config = {f"state.backend.{backend}.timer-service.factory": "HEAP"} if factory == "HEAP" else {}
        answer = judge.restore(
            flink, target, judge.requests_for(target, only), backend=backend, parallelism=3, config=config
        )
        assert judge.differences(answer, only) == []


@pytest.mark.case("rocksdb-canonical")
@pytest.mark.parametrize("max_parallelism", [None, 256])
def test_a_canonical_operator_beside_databases_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, max_parallelism: int | None
) -> None:
    """The metadata says that the savepoint is native. Flink decides for each operator by its handles."""
    case, canonical = own_case(corpus, flink, "rocksdb-incremental"), own_case(corpus, flink, "rocksdb-canonical")
    names = ["by-tuple", "timers", "collections-by-string"]
    expected, grafted = expected_of(case), expected_of(canonical)
    target = tmp_path / "same"
    statetool.graft(
        str(metadata_of(case)), str(metadata_of(canonical)), str(target), {name: f"other-{name}" for name in names},
        max_parallelism=max_parallelism, format="same",
    )  # fmt: skip
    for name in names:
        number = max_parallelism or grafted[name]["max_parallelism"]
        other = {"operator_id": operator_id_for_uid(f"other-{name}"), "max_parallelism": number}
        expected[f"other-{name}"] = {**grafted[name], **other}
    opened = statetool.load(str(target), uids=[f"other-{name}" for name in names])
    forms = {opened[f"other-{name}"].inventory.keyed.managed[0].layout() for name in names}
    assert forms == {"database" if max_parallelism else "canonical"}
    properties = read_properties(opened._inventory.metadata.properties)
    assert properties is not None
    assert properties.format == "native"
    answer = judge.restore(
        flink, target, judge.requests_for(target, expected), backend="rocksdb", parallelism=2,
        savepoint=tmp_path / "again", format="CANONICAL",
    )  # fmt: skip
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []


@pytest.mark.case("rocksdb-incremental")
@pytest.mark.parametrize("mode", ["CLAIM", "NO_CLAIM"])
def test_a_value_set_in_a_database_restores(flink: FlinkMachine, corpus: Path, tmp_path: Path, mode: str) -> None:
    """Only the table files with the key are written. The job goes on, and is restored from its incremental checkpoint."""
    case = own_case(corpus, flink, "rocksdb-incremental")
    expected = expected_of(case)
    source, changed, target = str(metadata_of(case)), tmp_path / "changed", tmp_path / "set"
    statetool.set_values(statetool.load(source, uids=["timers"]), str(changed), "timers", "timer-3", {"registered": 9})
    new = statetool.load(str(changed), uids=["timers"])
    statetool.set_values(new, str(target), "timers", "timer-new", {"registered": 8}, new_key=True)
    rows = expected["timers"]["keyed_state"]["states"]["registered"]["rows"]
    next(row for row in rows if row["key"] == "timer-3")["value"] = 9
    rows.append({**rows[0], "key": "timer-new", "value": 8})
    requests = judge.requests_for(target, expected)
    modes = dict.fromkeys(("execution.savepoint-restore-mode", "execution.state-recovery.claim-mode"), mode)
    config = {
        **modes,
        "state.backend.incremental": "true",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.interval": "365 d",
    }
    snapshot = target
    for parallelism in (2, 3):
        answer = judge.restore(
            flink, snapshot, requests, backend="rocksdb", parallelism=parallelism, checkpoint=True, config=config
        )
        assert judge.differences(answer, expected) == []
        snapshot = Path(answer["checkpoint"])
