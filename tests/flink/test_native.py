"""Snapshots written as native savepoints of RocksDB restore in Flink with every value, and the job goes on from incremental checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import statetool
from statetool.formats.metadata.handles import IncrementalHandle
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full

_CASES: Final = (
    "rocksdb-canonical",
    "rocksdb-native",
    "rocksdb-incremental",
    "rocksdb-full",
    "rocksdb-canonical-compressed",
    "hashmap-canonical",
    "hashmap-checkpoint",
    "hashmap-native",
    "changelog-rocksdb",
    "file-merging-rocksdb",
    "forst",
)


#: Checkpoints are incremental, stay after the job, and may refer to files of the savepoint that they were restored from.
_CHECKPOINTS: Final = {
    "state.backend.incremental": "true",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.interval": "365 d",
}


@pytest.mark.case("{name}")
@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_native_savepoint_restores_at_each_parallelism(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, name: str, parallelism: int
) -> None:
    case = own_case(corpus, flink, name)
    target = tmp_path / "native"
    # In the heap layout, the ends of Kryo's values are known if their classes are declared.
    savepoint = statetool.load(str(metadata_of(case)), declarations=CLASSES)
    statetool.convert(savepoint, str(target), format="native", backend="rocksdb")
    operators = statetool.load(str(target))._inventory.operators.values()
    handles = [s.managed_keyed for o in operators for s in o.state.subtasks if s.managed_keyed is not None]
    assert handles
    assert all(isinstance(handle, IncrementalHandle) for handle in handles)
    expected = expected_of(case)
    requests = judge.requests_for(target, expected)
    answer = judge.restore(
        flink,
        target,
        requests,
        backend="rocksdb",
        parallelism=parallelism,
        savepoint=tmp_path / "again",
        format="NATIVE",
    )
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=parallelism) == []
    assert windows.wrongly_continued(flink, target, expected, backend="rocksdb") == []


@pytest.mark.case("{name}")
@pytest.mark.parametrize("name", ["rocksdb-canonical", "hashmap-canonical"])
@pytest.mark.parametrize("mode", ["CLAIM", "NO_CLAIM"])
@pytest.mark.parametrize("ingest", [False, True])
def test_the_job_goes_on_from_its_incremental_checkpoints(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, name: str, mode: str, *, ingest: bool
) -> None:
    case = own_case(corpus, flink, name)
    target = tmp_path / "native"
    statetool.convert(str(metadata_of(case)), str(target), format="native", backend="rocksdb")
    expected = expected_of(case)
    requests = judge.requests_for(target, expected)
    modes = dict.fromkeys(("execution.savepoint-restore-mode", "execution.state-recovery.claim-mode"), mode)
    rescaling = {"state.backend.rocksdb.use-ingest-db-restore-mode": str(ingest).lower()}
    config = {**_CHECKPOINTS, **modes, **rescaling}
    snapshot = target
    for parallelism in (2, 2, 3, 1):
        answer = judge.restore(
            flink, snapshot, requests, backend="rocksdb", parallelism=parallelism, checkpoint=True, config=config
        )
        assert judge.differences(answer, expected) == []
        snapshot = Path(answer["checkpoint"])
        stored = [s for o in statetool.load(str(snapshot))._inventory.operators.values() for s in o.keyed.managed]
        assert stored
        assert all(state.database for state in stored)
