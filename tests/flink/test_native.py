"""Snapshots written as native savepoints of RocksDB or ForSt restore in Flink with every value, and the job goes on from incremental checkpoints."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import statetool
from statetool.errors import UnsupportedError
from statetool.formats.metadata.handles import IncrementalHandle
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.rocksdb import database_writer, table_writer
from statetool.migration.state_api import StateApi
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.flink import forms, judge, windows
from tests.support.flink.corpus_cases import expected_of, metadata_of, own_case, some_of
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tests.support.flink.versions import release_of

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
    "rocksdb-heap-timers",
    "forst",
)


#: Checkpoints are incremental, stay after the job, and may refer to files of the savepoint that they were restored from.
_CHECKPOINTS: Final = {
    "state.backend.incremental": "true",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.checkpointing.interval": "365 d",
}
#: Who owns the files of the snapshot. It makes no difference to a file which snapshot its state came from.
_MODES: Final = ("CLAIM", "NO_CLAIM")


@pytest.mark.case("{name}")
@pytest.mark.in_turn(1)
@pytest.mark.parametrize(("name", "parallelism"), zip(_CASES, itertools.cycle([1, 2, 3])))
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
@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", ["rocksdb-canonical", "hashmap-canonical"])
@pytest.mark.parametrize(("mode", "ingest"), zip(_MODES, [False, True]))
def test_the_job_goes_on_from_its_incremental_checkpoints(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, name: str, mode: str, *, ingest: bool
) -> None:
    case = own_case(corpus, flink, name)
    target = tmp_path / "native"
    statetool.convert(str(metadata_of(case)), str(target), format="native", backend="rocksdb")
    expected = some_of(expected_of(case))
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


@pytest.mark.since(2, 0)
@pytest.mark.case("{name}")
@pytest.mark.parametrize(("name", "mode"), zip([*_CASES, "forst-native"], itertools.cycle(_MODES)))
def test_a_job_of_forst_goes_on_from_its_checkpoints(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, name: str, mode: str
) -> None:
    case = own_case(corpus, flink, name)
    target = tmp_path / "native"
    savepoint = statetool.load(str(metadata_of(case)), declarations=CLASSES)
    statetool.convert(savepoint, str(target), format="native", backend="forst")
    expected = expected_of(case)
    assert windows.wrongly_continued(flink, target, expected, backend="forst") == []
    config = {**_CHECKPOINTS, "execution.state-recovery.claim-mode": mode}
    snapshot = target
    for parallelism, found in ((2, expected), (3, some_of(expected)), (1, some_of(expected))):
        requests = judge.requests_for(target, found)
        answer = judge.restore(
            flink, snapshot, requests, backend="forst", parallelism=parallelism, checkpoint=True, config=config
        )
        assert judge.differences(answer, found) == []
        snapshot = Path(answer["checkpoint"])


@pytest.mark.case("{name}")
@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("name", "mode"), zip([*_CASES, "forst-native"], itertools.cycle(_MODES)))
def test_a_job_of_the_heap_backend_goes_on(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, name: str, mode: str
) -> None:
    case = own_case(corpus, flink, name)
    target = tmp_path / "native"
    savepoint = statetool.load(str(metadata_of(case)), declarations=CLASSES)
    statetool.convert(savepoint, str(target), format="native", backend="heap")
    expected = expected_of(case)
    assert windows.wrongly_continued(flink, target, expected, backend="hashmap") == []
    config = {**_CHECKPOINTS, "execution.state-recovery.claim-mode": mode}
    snapshot = target
    for parallelism, found in ((2, expected), (3, some_of(expected)), (1, some_of(expected))):
        requests = judge.requests_for(target, found)
        answer = judge.restore(
            flink, snapshot, requests, backend="hashmap", parallelism=parallelism, checkpoint=True, config=config
        )
        assert judge.differences(answer, found) == []
        snapshot = Path(answer["checkpoint"])


@pytest.mark.case("rocksdb-heap-timers")
@pytest.mark.in_turn(4)
@pytest.mark.parametrize("backend", ["rocksdb", "forst"])
@pytest.mark.parametrize("factory", ["HEAP", "default"])
def test_timers_of_the_heap_are_found_wherever_the_job_keeps_timers(
    flink: FlinkMachine, corpus: Path, tmp_path: Path, backend: str, factory: str
) -> None:
    case = own_case(corpus, flink, "rocksdb-heap-timers")
    target = tmp_path / "native"
    savepoint = statetool.load(str(metadata_of(case)), declarations=CLASSES)
    statetool.convert(savepoint, str(target), format="native", backend=backend)  # type: ignore[arg-type]
    expected = expected_of(case)
    requests = judge.requests_for(target, expected)
    config = {f"state.backend.{backend}.timer-service.factory": "HEAP"} if factory == "HEAP" else {}
    answer = judge.restore(flink, target, requests, backend=backend, parallelism=3, config=config)
    assert judge.differences(answer, expected) == []


@pytest.mark.since(2, 1)
@pytest.mark.parametrize("api", ["sync", "async"])
def test_forst_restores_state_of_both_apis(zoo_flink: FlinkMachine, tmp_path: Path, api: forms.Api) -> None:
    """Flink 2.0 has asynchronous operators, but no function that may use their state."""
    base, expected = forms.make_base(zoo_flink, tmp_path / "base", api)
    target = tmp_path / "forst"
    statetool.convert(str(base), str(target), format="native", backend="forst")
    snapshot = target
    for parallelism in (2, 3, 1):
        found = forms.restore(
            zoo_flink, snapshot, expected, api, backend="forst", parallelism=parallelism, append=parallelism == 2
        )
        assert found.differences == []
        expected = forms.appended(expected) if parallelism == 2 else expected
        snapshot = found.checkpoint


#: First words of ForSt about state of the other API: those of Flink 2.0, and those of later releases about a time to live.
_CAST: Final = "RegisteredKeyValueStateBackendMetaInfo cannot be cast"
_TTL: Final = (
    "StateMigrationException: The new state serializer .* must not be incompatible with the old state serializer"
)


@pytest.mark.since(2, 0)
@pytest.mark.parametrize("api", ["sync", "async"])
def test_forst_restores_state_converted_to_the_other_api(
    zoo_flink: FlinkMachine, tmp_path: Path, api: forms.Api
) -> None:
    """V3, V6: the state has a time to live."""
    base, expected = forms.make_base(zoo_flink, tmp_path / "base", api)
    other: forms.Api = "sync" if api == "async" else "async"
    target, is_first = tmp_path / "forst", release_of(zoo_flink.version) == (2, 0)

    def convert() -> None:
        state_api: StateApi = "v1" if other == "sync" else "v2"
        statetool.convert(str(base), str(target), format="native", backend="forst", state_api=state_api)

    if is_first and api == "async":
        with pytest.raises(UnsupportedError, match="map whose keys are not described"):
            convert()
        return
    convert()
    assert forms.restore(zoo_flink, target, expected, other, backend="forst").differences == []
    with pytest.raises(FlinkRefusedError, match=_CAST if is_first else _TTL):
        forms.restore(zoo_flink, target, expected, api, backend="forst")


@pytest.mark.since(2, 0)
@pytest.mark.parametrize("api", ["sync", "async"])
def test_forst_restores_state_of_the_other_api_without_time_to_live(
    zoo_flink: FlinkMachine, tmp_path: Path, api: forms.Api
) -> None:
    """V3, V6: from Flink 2.1 on, with all values and timers, and it goes on from its checkpoints."""
    base, whole = forms.make_base(zoo_flink, tmp_path / "base", api)
    is_first = release_of(zoo_flink.version) == (2, 0)
    # Flink 2.0 does not describe the keys of asynchronous maps.
    expected, left_out = forms.without(whole, forms.LIVING, *(["map"] if is_first else []))
    other: forms.Api = "sync" if api == "async" else "async"
    target = tmp_path / "forst"
    statetool.drop(str(base), str(tmp_path / "dropped"), states=left_out)
    statetool.convert(str(tmp_path / "dropped"), str(target), format="native", backend="forst")
    if is_first:
        with pytest.raises(FlinkRefusedError, match=_CAST):
            forms.restore(zoo_flink, target, expected, other, backend="forst")
        return
    snapshot = target
    for parallelism in (2, 3):
        found = forms.restore(zoo_flink, snapshot, expected, other, backend="forst", parallelism=parallelism)
        assert found.differences == []
        snapshot = found.checkpoint


@pytest.mark.since(2, 0)
def test_forst_does_not_migrate_values_of_asynchronous_state(zoo_flink: FlinkMachine, tmp_path: Path) -> None:
    """V2: a POJO gets a field."""
    savepoint = forms.write_grown(zoo_flink.version, tmp_path, "old")
    for kind in forms.GROWN:
        with pytest.raises(FlinkRefusedError, match="UnsupportedOperationException: State migration not support yet"):
            zoo_flink.call(
                "class", **{"class": "GrownJob"}, kinds=[kind], backend="forst", snapshot=str(savepoint)
            )  # fmt: skip


@pytest.mark.since(2, 0)
def test_forst_restores_canonical_savepoints_if_its_timers_are_on_the_heap(
    zoo_flink: FlinkMachine, tmp_path: Path
) -> None:
    """V1, and V6: canonical savepoints have no state of the other API for it."""
    base, whole = forms.make_base(zoo_flink, tmp_path / "base", "sync")
    expected, living = forms.without(whole, forms.LIVING)
    statetool.drop(str(base), str(tmp_path / "dropped"), states=living)
    canonical, heap = tmp_path / "canonical", tmp_path / "heap"
    statetool.convert(str(tmp_path / "dropped"), str(canonical))
    statetool.convert(str(tmp_path / "dropped"), str(heap), format="native", backend="heap")
    on_heap = {"state.backend.forst.timer-service.factory": "HEAP"}
    for path in (canonical, heap):
        with pytest.raises(FlinkRefusedError, match="Not support restoring yet for ForStStateBackend"):
            forms.restore(zoo_flink, path, expected, "sync", backend="forst")
    with pytest.raises(FlinkRefusedError, match=r"ArrayIndexOutOfBoundsException|EOFException"):
        forms.restore(zoo_flink, heap, expected, "sync", backend="forst", config=on_heap)
    with pytest.raises(FlinkRefusedError, match=_CAST):
        forms.restore(zoo_flink, canonical, expected, "async", backend="forst", config=on_heap)
    snapshot = canonical
    for parallelism in (2, 3):
        found = forms.restore(
            zoo_flink, snapshot, expected, "sync", backend="forst", parallelism=parallelism, config=on_heap
        )
        assert found.differences == []
        snapshot = found.checkpoint


@pytest.mark.parametrize("ingest", [False, True])
def test_databases_of_many_files_restore(
    flink: FlinkMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ingest: bool
) -> None:
    monkeypatch.setattr(database_writer.DatabaseWriter.__init__, "__kwdefaults__", {"table_bytes": 1 << 17})
    monkeypatch.setattr(table_writer, "_PORTION_BYTES", 1 << 14)
    n = 20_000
    draw = random.Random(5)
    texts = [draw.randbytes(40).hex() for _ in range(n)]
    keys = pa.array([i * 7919 % n for i in range(n)], pa.int64())
    lists = pa.array([[i, i + 1] for i in range(n)], pa.list_(pa.int64()))
    table = pa.table({"key": keys, "text": texts, "n": pa.array(range(n), pa.int64()), "some": lists})
    moments = [draw.randrange(1 << 40) for _ in range(n)]
    timers = pa.table({"key": keys, "timestamp": pa.array(moments, pa.int64()), "domain": ["event"] * n})
    types = {"text": statetool.value("STRING"), "n": statetool.value("BIGINT"), "some": statetool.list_of("BIGINT")}
    state = statetool.bootstrap_keyed_state(table, states=types, timers=timers)
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(str(tmp_path / "base"), flink_version=flink.version)
    target = tmp_path / "native"
    statetool.convert(str(tmp_path / "base"), str(target), format="native", backend="rocksdb")
    columns = {"text": texts, "n": range(n), "some": lists.to_pylist()}
    rows = {
        name: {"rows": [{"key": k, "value": v} for k, v in zip(keys.to_pylist(), column, strict=True)]}
        for name, column in columns.items()
    }
    handles = [
        s.managed_keyed for o in statetool.load(str(target))._inventory.operators.values() for s in o.state.subtasks
    ]
    assert all(isinstance(handle, IncrementalHandle) and len(handle.private) > 10 for handle in handles)
    expected = {
        "op": {
            "operator_id": operator_id_for_uid("op"),
            "max_parallelism": 128,
            "keyed_state": {
                "states": rows,
                "event_time_timers": timers_of(keys.to_pylist(), moments),
                "processing_time_timers": [],
            },
        }
    }
    requests = judge.requests_for(target, expected)
    rescaling = {"state.backend.rocksdb.use-ingest-db-restore-mode": str(ingest).lower()}
    snapshot = target
    for parallelism in (2, 3, 1):
        answer = judge.restore(
            flink, snapshot, requests, backend="rocksdb", parallelism=parallelism, checkpoint=True,
            config={**_CHECKPOINTS, **rescaling},
        )  # fmt: skip
        assert judge.differences(answer, expected) == []
        snapshot = Path(answer["checkpoint"])


@pytest.mark.since(2, 0)
def test_an_operator_with_timers_alone_restores_in_forst(flink: FlinkMachine, tmp_path: Path) -> None:
    """All timers are raw keyed state, and no subtask has a database, as in savepoints of Flink."""
    keys, moments = list(range(50)), [1000 + i for i in range(50)]
    table = pa.table({"key": keys, "v": keys})
    timers = pa.table({"key": keys, "timestamp": moments, "domain": ["event"] * 50})
    state = statetool.bootstrap_keyed_state(table, timers=timers)
    writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(str(tmp_path / "base"), flink_version=flink.version)
    target = tmp_path / "native"
    statetool.drop(str(tmp_path / "base"), str(tmp_path / "only"), states={"op": ["v"]})
    statetool.convert(str(tmp_path / "only"), str(target), format="native", backend="forst")
    subtasks = [s for o in statetool.load(str(target)).inventory.operators.values() for s in o.state.subtasks]
    assert [s.managed_keyed for s in subtasks] == [None, None]
    expected = {
        "op": {
            "operator_id": operator_id_for_uid("op"),
            "max_parallelism": 128,
            "keyed_state": {
                "states": {},
                "event_time_timers": timers_of(keys, moments),
                "processing_time_timers": [],
            },
        }
    }
    requests = judge.requests_for(target, expected)
    snapshot = target
    for parallelism in (2, 3):
        answer = judge.restore(
            flink, snapshot, requests, backend="forst", parallelism=parallelism, checkpoint=True, config=_CHECKPOINTS
        )
        assert judge.differences(answer, expected) == []
        snapshot = Path(answer["checkpoint"])


def timers_of(keys: list[int], moments: list[int]) -> list[dict[str, object]]:
    return [{"key": k, "namespace": None, "timestamp": t} for k, t in zip(keys, moments, strict=True)]
