"""Rescaled savepoints: every row unchanged, every key in the key group of its hash code, and bytes in Flink's format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.errors import OptionError, StatetoolError, TargetExistsError, UnsupportedError
from statetool.formats.key_groups import key_group_for, range_for
from statetool.formats.metadata import parse_metadata
from statetool.formats.metadata.handles import KeyGroupsHandle
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import file_rows
from statetool.snapshot.operator import OperatorInventory
from tests.support.checks.copies import check_copy
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots.stored import header_bytes, records, streams

CASES = (
    "v1_13_6-rocksdb-canonical",
    "v1_20_5-hashmap-canonical",
    "v2_3_0-hashmap-canonical-compressed",
    "v2_3_0-rocksdb-canonical",
)


@pytest.mark.parametrize("number", quick([1024, 32, 100], 100))
@pytest.mark.parametrize("name", quick(CASES, "v2_3_0-rocksdb-canonical"))
def test_every_row_is_found_again_and_every_key_is_in_its_group(
    corpus: Path, tmp_path: Path, name: str, number: int
) -> None:
    case = Case(corpus / name)
    old = Inventory(str(case.metadata))
    plan = statetool.rescale(str(case.metadata.parent), str(tmp_path / "new"), number)
    new = Inventory(str(tmp_path / "new"))
    check_copy(case, tmp_path / "new")
    assert len(plan.operators) == len(old.operators)
    for before, after in zip(old.operators.values(), new.operators.values(), strict=True):
        assert after.state.max_parallelism == number
        assert after.state.parallelism == min(before.state.parallelism, number)
        left, right = list(records(before)), list(records(after))
        assert Counter(r[1:] for r in left) == Counter(r[1:] for r in right)
        check_layout(before, after, right)


def check_layout(
    before: OperatorInventory, after: OperatorInventory, rows: list[tuple[int, str, bytes, bytes]]
) -> None:
    handles = [s.managed_keyed for s in after.state.subtasks]
    if not streams(before):
        assert handles == [s.managed_keyed for s in before.state.subtasks]
        return
    for subtask, handle in enumerate(handles):
        assert isinstance(handle, KeyGroupsHandle)
        assert handle.tag == 7
        groups = range_for(subtask, after.state.parallelism, after.state.max_parallelism)
        assert range(handle.start, handle.start + len(handle.offsets)) == groups
    header = streams(after)[0].header()
    # The header is Flink's, byte for byte.
    assert header_bytes(after) == header_bytes(before)
    # Keys ascend within a state, like RocksDB's.
    order = {m.name: i for i, m in enumerate(header.states)}
    places = [(g, order[s], k) for g, s, k, _ in rows]
    assert places == sorted(places)
    for op in (before, after):
        for s in header.states:
            assert s.name in op.keyed_states
    check_hashes(before, after, rows)


def check_hashes(
    before: OperatorInventory, after: OperatorInventory, rows: list[tuple[int, str, bytes, bytes]]
) -> None:
    from statetool.io.cursor import Cursor

    header = streams(after)[0].header()
    timers = {m.name for m in header.states if m.kind == "timers"}
    for group, state, raw, _ in rows:
        value = header.key.decode(Cursor(raw[8:] if state in timers else raw))
        if header.key.type_name.startswith("POJO"):
            by_name: dict[str, Any] = dict(zip((n for n, _ in header.key.children()), value, strict=True))
            code = objects_hash(by_name[f] for f in ("zone", "account", "active"))
        else:
            code = header.key.hash_code(value)
        assert group == key_group_for(code, after.state.max_parallelism)


def objects_hash(values: Iterator[Any]) -> int:
    """Compute ``Objects.hash`` of strings, numbers and booleans explicitly."""
    h = 1
    for v in values:
        if isinstance(v, bool):
            part = 1231 if v else 1237
        elif isinstance(v, str):
            part = 0
            for c in v:
                part = 31 * part + ord(c)
        else:
            part = (v ^ v >> 32) if v is not None else 0
        h = (31 * h + part) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


def test_only_named_operators_change_and_the_others_keep_their_bytes(corpus: Path, tmp_path: Path) -> None:
    source = Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent
    plan = statetool.rescale(str(source), str(tmp_path / "new"), {"by-pojo": 256, "timers": 7})
    assert {(p.operator, p.new_max_parallelism, p.keys_move) for p in plan.operators} == {
        ("by-pojo", 256, "formula"),
        ("timers", 7, "hash"),
    }
    old, new = Inventory(str(source)), Inventory(str(tmp_path / "new"))
    for before, after in zip(old.operators.values(), new.operators.values(), strict=True):
        if before.label not in ("by-pojo", "timers"):
            assert before.state.max_parallelism == after.state.max_parallelism
            for left, right in zip(streams(before), streams(after), strict=True):
                with left.stream.open() as f, right.stream.open() as g:
                    assert f.read_at(0, left.stream.size_bytes) == g.read_at(0, right.stream.size_bytes)
                assert left.handle.offsets == right.handle.offsets
    assert old.metadata.properties == new.metadata.properties
    assert new.metadata.checkpoint_id == old.metadata.checkpoint_id


def test_the_target_is_never_one_that_is_there(corpus: Path, tmp_path: Path) -> None:
    source = Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent
    (tmp_path / "file").write_text("x")
    for target in (source, tmp_path):
        before = sorted(p.name for p in target.iterdir())
        with pytest.raises(TargetExistsError):
            statetool.rescale(str(source), str(target), 256)
        assert sorted(p.name for p in target.iterdir()) == before


def test_a_failed_rescale_leaves_nothing(corpus: Path, tmp_path: Path) -> None:
    source = Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent
    with pytest.raises(StatetoolError, match="puts"):
        statetool.rescale(
            str(source), str(tmp_path / "new"), 256, hashes={"corpus.PublicTypes$ShopKey": "record(zone, account)"}
        )
    assert not (tmp_path / "new").exists()


def test_in_flight_records_are_refused(corpus: Path, tmp_path: Path) -> None:
    source = Case(corpus / "v2_3_0-unaligned").metadata.parent
    with pytest.raises(UnsupportedError, match="in-flight records"):
        statetool.rescale(str(source), str(tmp_path / "new"), 256)


@pytest.mark.parametrize("number", [0, 32769, -1])
def test_impossible_numbers_are_refused(corpus: Path, tmp_path: Path, number: int) -> None:
    source = Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent
    with pytest.raises(OptionError):
        statetool.rescale(str(source), str(tmp_path / "new"), number)


def test_a_dry_run_writes_nothing(corpus: Path, tmp_path: Path) -> None:
    source = Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent
    plan = statetool.rescale(str(source), str(tmp_path / "new"), 1000, dry_run=True)
    (pojo,) = [p for p in plan.operators if p.operator == "by-pojo"]
    assert pojo.formula == "corpus.PublicTypes$ShopKey: Objects.hash(zone, account, active)"
    assert pojo.keys_tested == 12
    assert pojo.chance < 1e-15
    assert not (tmp_path / "new").exists()


def test_metadata_of_the_copy_names_its_own_files(corpus: Path, tmp_path: Path) -> None:
    source = Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent
    statetool.rescale(str(source), str(tmp_path / "new"), 256)
    (tmp_path / "new").rename(tmp_path / "moved")
    metadata = parse_metadata((tmp_path / "moved" / "_metadata").read_bytes())
    rows = [r for o in Inventory(str(tmp_path / "moved")).operators.values() for r in file_rows(o)]
    assert {Path(r.path).parent for r in rows} == {tmp_path / "moved"}
    assert {p.name for p in (tmp_path / "moved").iterdir()} == {Path(r.path).name for r in rows} | {"_metadata"}
    assert metadata.version == 6


@pytest.mark.parametrize("parallelism", quick([1, 2, 5], 2))
@pytest.mark.parametrize("name", ["v2_3_0-hashmap-canonical-compressed", "v1_17_2-rocksdb-canonical"])
def test_operator_state_of_subtasks_that_are_no_more_goes_to_others(
    corpus: Path, tmp_path: Path, name: str, parallelism: int
) -> None:
    case = Case(corpus / name)
    statetool.rescale(str(case.metadata.parent), str(tmp_path / "new"), 128, parallelism=parallelism)
    check_copy(case, tmp_path / "new")
    for operator in Inventory(str(tmp_path / "new")).operators.values():
        assert operator.state.parallelism == parallelism
        assert all(s.index < parallelism for s in operator.state.subtasks)
        counts: dict[str, list[int]] = {}
        for part in operator.elements.streams:
            for state, offsets in part.offsets.items():
                counts.setdefault(state, []).append(len(offsets))
        for state, n in counts.items():
            if operator.operator_states[state].kind == "list" and parallelism < 3 and len(n) > 1:
                assert max(n) - min(n) <= 1


def test_the_plan_tells_what_cannot_move_and_nothing_is_written(corpus: Path, tmp_path: Path) -> None:
    source = str(Case(corpus / "v2_3_0-unaligned").metadata.parent)
    plan = statetool.rescale(source, str(tmp_path / "new"), 1000, dry_run=True)
    refused = [p for p in plan.operators if p.keys_move == "refused"]
    assert refused
    assert all("in-flight records" in p.problem and "flink stop" in p.problem for p in refused)
    with pytest.raises(UnsupportedError, match="likewise"):
        statetool.rescale(source, str(tmp_path / "new"), 1000)
    assert not (tmp_path / "new").exists()


def test_what_is_written_verifies(corpus: Path, tmp_path: Path) -> None:
    source = str(Case(corpus / "v2_3_0-rocksdb-canonical").metadata.parent)
    statetool.rescale(source, str(tmp_path / "new"), 1000)
    verification = statetool.verify(str(tmp_path / "new"), deep=True)
    assert [p for p in verification.problems if p.severity == "error"] == []


def test_finished_subtasks_keep_their_places(corpus: Path, tmp_path: Path) -> None:
    case = Case(corpus / "v2_3_0-finished")
    old = Inventory(str(case.metadata))
    statetool.rescale(str(case.metadata.parent), str(tmp_path / "new"), 100)
    new = Inventory(str(tmp_path / "new"))
    for before, after in zip(old.operators.values(), new.operators.values(), strict=True):
        assert after.state.max_parallelism == 100
        assert after.state.fully_finished == before.state.fully_finished
        assert [(s.index, s.finished) for s in after.state.subtasks] == [
            (s.index, s.finished) for s in before.state.subtasks
        ]
    check_copy(case, tmp_path / "new")
    with pytest.raises(UnsupportedError, match="had finished"):
        statetool.rescale(str(case.metadata.parent), str(tmp_path / "other"), 100, parallelism=1)
