"""Checkpoints and native savepoints, converted to canonical savepoints, restore in Flink with every value, on both backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

import statetool
from tests.support.corpora.archives import unpack
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError

pytestmark = pytest.mark.full

#: Kind and backend of each case, and the backend that restores it: mostly the other one.
_CASES: Final = (
    ("rocksdb-incremental", "hashmap"),
    ("rocksdb-native", "rocksdb"),
    ("hashmap-checkpoint", "rocksdb"),
    ("hashmap-native", "rocksdb"),
    ("rocksdb-full", "hashmap"),
    ("rocksdb-heap-timers", "hashmap"),
    ("rocksdb-heap-timers-canonical", "rocksdb"),
    ("hashmap-checkpoint-compressed", "rocksdb"),
    ("file-merging-rocksdb", "hashmap"),
    ("changelog-hashmap", "rocksdb"),
    ("changelog-rocksdb", "hashmap"),
    ("changelog-materialized", "rocksdb"),
    ("forst", "rocksdb"),
    ("forst-native", "hashmap"),
    ("hashmap-checkpoint-inline", "rocksdb"),
    ("rocksdb-incremental-inline", "hashmap"),
    ("rocksdb-native-inline", "hashmap"),
    ("file-merging-hashmap", "rocksdb"),
)


@pytest.mark.case("{name}")
@pytest.mark.parametrize(("name", "backend"), _CASES)
def test_converted_checkpoint_restores(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, name: str, backend: str
) -> None:
    case = own_case(corpus, flink, name)
    target = tmp_path / "canonical"
    # In the heap layout, the ends of Kryo's values are known if their classes are declared.
    statetool.convert(statetool.load(str(metadata_of(case)), declarations=CLASSES), str(target))
    expected = expected_of(case)
    requests = judge.requests_for(target, expected)
    answer = judge.restore(flink, target, requests, backend=backend, savepoint=tmp_path / "again")
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []
    assert windows.wrongly_continued(flink, target, expected, backend=backend) == []


@pytest.mark.since(2, 3)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_asynchronous_state_restores_as_state_of_other_backends(
    flink: FlinkMachine, tmp_path: Path, backend: str
) -> None:
    """Flink refuses it with these backends as it is, and after a mere conversion to a canonical savepoint."""
    case = unpack(Path(__file__).parents[1] / "corpus" / "jobs.tar.xz", tmp_path / "jobs") / "v2_3_0-keys-async-forst"
    every = json.loads((case / "expected.json").read_text())["operators"]
    expected = {
        uid: every[uid] for uid in ("k-boolean", "k-char", "k-byte", "k-double", "k-local-date-time", "k-tuple1")
    }
    snapshot = str(max((case / "snapshot").rglob("_metadata")).parent)
    canonical, target = str(tmp_path / "canonical"), tmp_path / "v1"
    statetool.convert(snapshot, canonical)
    statetool.convert(canonical, str(target), state_api="v1")
    requests = judge.requests_for(target, expected)
    with pytest.raises(FlinkRefusedError):
        judge.restore(flink, Path(canonical), requests, backend=backend)
    answer = judge.restore(flink, target, requests, backend=backend, savepoint=tmp_path / "again")
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []
