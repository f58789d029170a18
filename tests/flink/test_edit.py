"""Changed copies of savepoints written by Flink restore: edited values, other uids, dropped and renamed operators and states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, own_case
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


def opened(snapshot: Path, expected: dict[str, Any]) -> statetool.Savepoint:
    """Open a snapshot with names for operators of releases that do not store them."""
    return statetool.load(str(snapshot), uids=[n for n, o in judge.stateful(expected).items() if not o.get("no_uid")])


def rows_of(expected: dict[str, Any], operator: str, state: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = expected[operator]["keyed_state"]["states"][state]["rows"]
    return rows


def replaced(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


@pytest.mark.case("{written}-canonical")
@pytest.mark.parametrize(("written", "backend"), [("rocksdb", "hashmap"), ("hashmap", "rocksdb")])
def test_edited_values_restore(flink: FlinkMachine, corpus: Path, tmp_path: Path, written: str, backend: str) -> None:
    case = own_case(corpus, flink, f"{written}-canonical")
    expected = expected_of(case)
    sp = opened(case / "snapshot", expected)

    counts = sp["by-tuple"].to_arrow(states=["count"])
    counts = replaced(counts, "count", pc.add(counts["count"], pa.scalar(1000, pa.int32())))
    for row in rows_of(expected, "by-tuple", "count"):
        row["value"] += 1000

    names = sp["collections-by-string"].to_arrow("names")
    names = replaced(names, "value", pc.binary_join_element_wise(names["value"], "!", ""))
    for row in rows_of(expected, "collections-by-string", "names"):
        row["value"] = [v + "!" for v in row["value"]]

    sums = sp["with-ttl"].to_arrow(states=["ttl-sum"], ttl="raw")
    half = sums.filter(pc.equal(pc.bit_wise_and(sums["key"], pa.scalar(1, pa.int64())), 0))
    expected["with-ttl"]["keyed_state"]["states"]["ttl-sum"]["rows"] = [
        r for r in rows_of(expected, "with-ttl", "ttl-sum") if r["key"] % 2 == 0
    ]

    buffered = sp["op-lists"].to_arrow("buffered")
    expected["op-lists"]["operator_state"]["buffered"]["rows"] *= 2

    statetool.SavepointWriter.from_existing(sp).with_operator(
        "by-tuple", statetool.bootstrap_keyed_state(counts, states=["count"], like=sp["by-tuple"])
    ).with_operator(
        "collections-by-string", statetool.bootstrap_state("names", names, like=sp["collections-by-string"])
    ).with_operator(
        "with-ttl", statetool.bootstrap_keyed_state(half, states=["ttl-sum"], like=sp["with-ttl"])
    ).with_operator(
        "op-lists",
        statetool.bootstrap_list_state("buffered", pa.concat_tables([buffered, buffered]), like=sp["op-lists"]),
    ).write(str(tmp_path / "sp"))

    requests = judge.requests_for(tmp_path / "sp", expected)
    answer = judge.restore(flink, tmp_path / "sp", requests, backend=backend, savepoint=tmp_path / "again")
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []
    assert windows.wrongly_continued(flink, tmp_path / "sp", expected, backend=backend) == []


@pytest.mark.case("hashmap-canonical")
def test_swapped_uids_dropped_operators_and_states_restore(flink: FlinkMachine, corpus: Path, tmp_path: Path) -> None:
    case = own_case(corpus, flink, "hashmap-canonical")
    expected = expected_of(case)
    uids = {"by-short": "by-double", "by-double": "by-short", "timers": "clock"}
    statetool.change_uids(opened(case / "snapshot", expected), str(tmp_path / "renamed"), uids)
    expected = {uids.get(n, n): o for n, o in expected.items()}
    for name in uids.values():
        expected[name]["operator_id"] = operator_id_for_uid(name)

    statetool.drop(
        opened(tmp_path / "renamed", expected),
        str(tmp_path / "dropped"),
        ["orders", "op-lists"],
        states={"scalars-by-long": ["string", "bigdec"], "by-tuple": ["seen"]},
    )
    for operator in ("orders", "op-lists"):
        del expected[operator]
    for operator, state in (("scalars-by-long", "string"), ("scalars-by-long", "bigdec"), ("by-tuple", "seen")):
        del expected[operator]["keyed_state"]["states"][state]

    sp = opened(tmp_path / "dropped", expected)
    statetool.SavepointWriter.from_existing(sp).rename_state("by-tuple", "last", "latest").remove_operator(
        "by-byte"
    ).with_checkpoint_id(4711).write(str(tmp_path / "sp"))
    states = expected["by-tuple"]["keyed_state"]["states"]
    states["latest"] = states.pop("last")
    del expected["by-byte"]

    answer = judge.restore(
        flink,
        tmp_path / "sp",
        judge.requests_for(tmp_path / "sp", expected),
        backend="hashmap",
        savepoint=tmp_path / "again",
    )
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []
