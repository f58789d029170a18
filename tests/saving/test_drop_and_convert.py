"""Dropped operators and states, conversion to canonical, and uid changes in complete snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.errors import OptionError, TargetExistsError, UnknownNameError
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import write_meta_v6
from statetool.io.output import Output
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import file_rows
from tests.support.checks.copies import check_copy
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots.entries import readable
from tests.support.snapshots.stored import header_bytes, records, stream_bytes


def source_of(corpus: Path, name: str = "v2_3_0-rocksdb-canonical") -> Path:
    return Case(corpus / name).metadata.parent


def test_a_dropped_operator_is_gone_and_the_others_keep_their_bytes(corpus: Path, tmp_path: Path) -> None:
    old = Inventory(str(source_of(corpus)))
    plan = statetool.drop(str(source_of(corpus)), str(tmp_path / "new"), ["timers", operator_id_for_uid("orders")])
    assert [(r.operator, r.state) for r in plan.dropped] == [("timers", None), ("orders", None)]
    new = Inventory(str(tmp_path / "new"))
    assert list(new.operators) == [o for o in old.operators if o not in ("timers", "orders")]
    for name, operator in new.operators.items():
        assert stream_bytes(operator) == stream_bytes(old.operators[name])
    assert new.metadata.properties == old.metadata.properties


def test_a_dropped_state_leaves_the_other_entries_and_snapshots_as_they_were(corpus: Path, tmp_path: Path) -> None:
    old = Inventory(str(source_of(corpus))).operators["timers"]
    names = [n for n in old.keyed_states if not n.startswith("_timer_state/event")]
    gone = [n for n in old.keyed_states if n not in names]
    assert names
    assert gone
    statetool.drop(str(source_of(corpus)), str(tmp_path / "new"), states={"timers": gone})
    new = Inventory(str(tmp_path / "new")).operators["timers"]
    assert list(new.keyed_states) == names
    assert list(records(new)) == sorted(
        (r for r in records(old) if r[1] in names), key=lambda r: (r[0], names.index(r[1]), r[2])
    )
    for before, after in zip(header_bytes(old), header_bytes(new), strict=True):
        for name in names:
            at = before.index(name.encode())
            assert before[at : at + 60] in after


def test_a_dropped_operator_state_leaves_the_others(corpus: Path, tmp_path: Path) -> None:
    case = Case(corpus / "v2_3_0-hashmap-canonical-compressed")
    wanted = {
        u: o["operator_state"] for u, o in case.expected["operators"].items() if len(o.get("operator_state") or {}) > 1
    }
    uid, states = next(iter(wanted.items()))
    gone = next(iter(states))
    statetool.drop(str(case.metadata.parent), str(tmp_path / "new"), states={uid: [gone]})
    assert gone not in Inventory(str(tmp_path / "new")).operators[uid].operator_states
    del states[gone]
    check_copy(case, tmp_path / "new")


def test_an_operator_without_its_last_state_has_no_handle(corpus: Path, tmp_path: Path) -> None:
    old = Inventory(str(source_of(corpus))).operators["by-byte"]
    statetool.drop(str(source_of(corpus)), str(tmp_path / "new"), states={"by-byte": list(old.keyed_states)})
    new = Inventory(str(tmp_path / "new")).operators["by-byte"]
    assert [s.managed_keyed for s in new.state.subtasks] == [None]


def test_unknown_names_are_told(corpus: Path, tmp_path: Path) -> None:
    source, target = str(source_of(corpus)), str(tmp_path / "new")
    with pytest.raises(UnknownNameError, match="timers"):
        statetool.drop(source, target, ["timer"])
    with pytest.raises(UnknownNameError, match="no state 'nothing'"):
        statetool.drop(source, target, states={"timers": ["nothing"]})
    with pytest.raises(OptionError, match="nothing to drop"):
        statetool.drop(source, target)
    assert not (tmp_path / "new").exists()


CONVERTED = (
    "v1_13_6-rocksdb-incremental",
    "v1_20_5-hashmap-checkpoint",
    "v1_20_5-rocksdb-native",
    "v2_3_0-file-merging-rocksdb",
    "v2_3_0-hashmap-checkpoint-compressed",
    "v2_3_0-hashmap-native",
    "v2_3_0-rocksdb-full",
    "v2_3_0-rocksdb-incremental-inline",
    "v2_3_0-changelog-rocksdb",
)


@pytest.mark.parametrize("name", quick(CONVERTED, "v2_3_0-hashmap-native"))
def test_any_snapshot_becomes_a_canonical_savepoint(corpus: Path, tmp_path: Path, name: str) -> None:
    case = Case(corpus / name)
    plan = statetool.convert(str(readable(case, tmp_path / "some")), str(tmp_path / "new"))
    assert "rewritten" in {o.keyed_state for o in plan.operators}
    new = Inventory(str(tmp_path / "new"))
    for operator in new.operators.values():
        for s in operator.state.subtasks:
            if s.managed_keyed is not None:
                assert isinstance(s.managed_keyed, KeyGroupsHandle)
                assert s.managed_keyed.tag == 7
        assert all(Path(r.path).parent == tmp_path / "new" for r in file_rows(operator))
    if new.metadata.version >= 4:
        assert new.metadata.properties == savepoint_properties()
    check_copy(case, tmp_path / "new")


def test_a_canonical_savepoint_is_copied(corpus: Path, tmp_path: Path) -> None:
    old = Inventory(str(source_of(corpus)))
    statetool.convert(str(source_of(corpus)), str(tmp_path / "new"), checkpoint_id=77)
    new = Inventory(str(tmp_path / "new"))
    assert new.metadata.checkpoint_id == 77
    for name, operator in new.operators.items():
        assert stream_bytes(operator) == stream_bytes(old.operators[name])


@pytest.mark.parametrize(
    "name", quick(["v1_20_5-rocksdb-native", "v2_3_0-hashmap-checkpoint"], "v1_20_5-rocksdb-native")
)
def test_native_snapshots_are_rescaled_too(corpus: Path, tmp_path: Path, name: str) -> None:
    case = Case(corpus / name)
    statetool.rescale(str(readable(case, tmp_path / "some")), str(tmp_path / "new"), 300)
    check_copy(case, tmp_path / "new")


def test_properties_of_what_the_corpus_holds_are_ours(corpus: Path) -> None:
    for name, style in (("v1_17_2-hashmap-canonical", "canonical"), ("v2_3_0-rocksdb-native", "native")):
        assert Inventory(str(Case(corpus / name).metadata)).metadata.properties == savepoint_properties(style)  # type: ignore[arg-type]


def test_uids_change_in_a_whole_snapshot(corpus: Path, tmp_path: Path) -> None:
    source = source_of(corpus)
    old = Inventory(str(source))
    rows = statetool.change_uids(str(source), str(tmp_path / "new"), {"timers": "orders", "orders": "timers"})
    assert {(r.old_uid, r.new_uid) for r in rows} == {("timers", "orders"), ("orders", "timers")}
    new = Inventory(str(tmp_path / "new"))
    assert stream_bytes(new.operators["orders"]) == stream_bytes(old.operators["timers"])
    assert stream_bytes(new.operators["timers"]) == stream_bytes(old.operators["orders"])
    with pytest.raises(TargetExistsError):
        statetool.change_uids(str(source), str(tmp_path / "new"), {"timers": "t"})


def test_heap_timers_beside_rocksdb_become_managed_where_keys_move(corpus: Path, tmp_path: Path) -> None:
    case = Case(corpus / "v2_3_0-rocksdb-heap-timers")
    old = Inventory(str(case.metadata))
    assert any(s.raw_keyed is not None for o in old.operators.values() for s in o.state.subtasks)
    statetool.convert(str(case.metadata.parent), str(tmp_path / "same"))
    check_copy(case, tmp_path / "same")
    statetool.rescale(str(tmp_path / "same"), str(tmp_path / "new"), 90)
    new = Inventory(str(tmp_path / "new"))
    assert all(s.raw_keyed is None for o in new.operators.values() for s in o.state.subtasks)
    check_copy(Case(corpus / "v2_3_0-rocksdb-heap-timers"), tmp_path / "new")
    # The metadata of the timer states equals Flink's.
    flinks = Inventory(str(Case(corpus / "v2_3_0-rocksdb-heap-timers-canonical").metadata)).operators["timers"]
    for name, (_, meta) in flinks.keyed_states.items():
        theirs, ours = Output(), Output()
        write_meta_v6(theirs, meta)
        write_meta_v6(ours, new.operators["timers"].keyed_states[name][1])
        assert ours == theirs


@pytest.mark.parametrize("name", quick(["v2_3_0-changelog-rocksdb", "v2_3_0-forst"], "v2_3_0-changelog-rocksdb"))
def test_logs_and_forst_become_canonical(corpus: Path, tmp_path: Path, name: str) -> None:
    case = Case(corpus / name)
    statetool.convert(str(case.metadata.parent), str(tmp_path / "new"))
    check_copy(case, tmp_path / "new")


@pytest.mark.parametrize(
    "name",
    [
        "legacy-raw-state-heap-timers-rocks-db-1.12",
        "new-stateful-udf-migration-itcase-flink1.7-rocksdb-savepoint",
        "stateful-scala-with-broadcast-udf-migration-itcase-flink1.5-rocksdb-savepoint",
    ],
)
def test_old_savepoints_are_rescaled_or_refused_with_a_reason(
    migration_savepoints: Path, tmp_path: Path, name: str
) -> None:
    source = next((migration_savepoints / name).rglob("_metadata")).parent
    plan = statetool.rescale(str(source), str(tmp_path / "new"), 100, dry_run=True)
    assert all(o.problem for o in plan.operators if o.keys_move == "refused")
    wanted = {o.operator_id: 100 for o in plan.operators if o.keys_move != "refused"}
    statetool.rescale(str(source), str(tmp_path / "new"), wanted)
    verification = statetool.verify(str(tmp_path / "new"), deep=True)
    assert [p for p in verification.problems if p.severity == "error"] == []
    old, new = Inventory(str(source)), Inventory(str(tmp_path / "new"))
    for before, after in zip(old.operators.values(), new.operators.values(), strict=True):
        moved = after.state.max_parallelism != before.state.max_parallelism
        assert after.keyed_states.keys() == before.keyed_states.keys()
        assert not (moved and after.keyed.raw_timers)
