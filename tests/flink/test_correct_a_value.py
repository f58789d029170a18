"""A savepoint with one corrected value restores: Flink sees the corrected value, and everything else unchanged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import statetool
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case
from tests.support.flink.machine import FlinkMachine
from tests.support.zoo import ZOO

pytestmark = pytest.mark.full


def correct(target: Path) -> None:
    """Write a copy of the zoo in which a state of one key has the value 7, as the notebook ``correct-a-value`` does."""
    savepoint = statetool.load(ZOO)
    operator = savepoint["with-ttl"]
    state = operator.to_arrow(states=["plain"])
    value = pc.if_else(pc.equal(state["key"], 2), pa.scalar(7, pa.int64()), state["plain"])
    change = statetool.bootstrap_keyed_state(state.set_column(1, "plain", value), like=operator)
    statetool.SavepointWriter.from_existing(savepoint).with_operator("with-ttl", change).write(str(target))


@pytest.mark.case("rocksdb-canonical-compressed")
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_the_corrected_savepoint_restores(flink: FlinkMachine, corpus: Path, tmp_path: Path, backend: str) -> None:
    case = own_case(corpus, flink, "rocksdb-canonical-compressed")
    original, target = Path(ZOO), tmp_path / "corrected"
    assert (original / "_metadata").read_bytes() == metadata_of(case).read_bytes(), "it is another savepoint"
    correct(target)

    expected = expected_of(case)
    job = judge.requests_for(original, expected)
    answer = judge.restore(flink, target, job, backend=backend, savepoint=tmp_path / "again")
    (difference,) = judge.differences(answer, expected)
    assert difference == "with-ttl.plain: [2, null] is 7, expected 1700000080000"
    (row,) = [r for r in expected["with-ttl"]["keyed_state"]["states"]["plain"]["rows"] if r["key"] == 2]
    row["value"] = 7
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []
    assert windows.wrongly_continued(flink, target, expected, backend=backend) == []
