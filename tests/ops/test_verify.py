from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, StatetoolError
from statetool.formats.metadata.handles import KeyGroupsHandle, OperatorStreamHandle, RelativeFileHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.ops.channels import offsets_of
from statetool.ops.content_plan import ContentPlanner
from statetool.ops.contents import check_contents
from statetool.ops.entry_check import ContentTask
from statetool.ops.problems import Problem
from statetool.plan.inventory import Inventory
from tests.ops.damage import Patient, patched
from tests.ops.trees import link, replace_file


@pytest.fixture
def patient(corpus: Path, tmp_path: Path) -> Patient:
    return Patient.of(corpus / "v2_3_0-rocksdb-canonical" / "snapshot", tmp_path / "snapshot")


def errors(path: Path, *, deep: bool = False, **options: object) -> list[Problem]:
    found = statetool.verify(str(path), deep=deep, **options)  # type: ignore[arg-type]
    wrong = [p for p in found.problems if p.severity == "error"]
    assert found.ok == (not wrong)
    return wrong


def only(problems: list[Problem]) -> Problem:
    (problem,) = problems
    return problem


def move_key(patient: Patient, uid: str) -> None:
    """Change the last byte of a key, which then lies in a key group that is not its own."""
    batch, base = patient.entries(uid, 0, next(iter(Inventory(str(patient.folder)).operator(uid).keyed_states)))
    at = int(batch.key_end[0]) - 2  # in front of the namespace
    patient.change_bytes(uid, 0, base + at, bytes([int(batch.data[at]) ^ 1]))


# ---- what is whole ------------------------------------------------------------------------------


def test_every_snapshot_of_the_corpus_is_whole(corpus: Path) -> None:
    for metadata in sorted(corpus.glob("*/snapshot/**/_metadata")):
        found = statetool.verify(str(metadata.parent), deep=True)
        assert [p for p in found.problems if p.severity != "note"] == [], metadata
        if "changelog" not in str(metadata):
            assert found.entries


def test_what_is_checked_is_counted(corpus: Path) -> None:
    shallow = statetool.verify(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"))
    deep = statetool.verify(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"), deep=True)
    assert shallow.operators == deep.operators == 38
    assert shallow.keys == deep.keys > 400
    assert 2000 < shallow.entries < deep.entries
    assert not shallow.truncated


def test_a_hash_that_is_not_known_is_proved_by_the_keys(patient: Patient) -> None:
    def tasks() -> list[ContentTask]:
        inventory = Inventory(str(patient.folder))
        return ContentPlanner(inventory.operator("by-pojo"), inventory.resolve, [], deep=False).run()

    whole = [check_contents(t) for t in tasks()]
    assert sum(r.keys for r in whole) == 12
    assert not any(r.problems or r.unknown_hash for r in whole)
    proved = tasks()[0].formula
    move_key(patient, "by-pojo")
    wrong = only([p for t in tasks() for p in check_contents(replace(t, formula=proved)).problems])
    assert (wrong.severity, wrong.operator) == ("warning", "by-pojo")
    assert "ShopKey: " in wrong.problem


def test_a_hash_that_the_keys_do_not_prove_is_said(patient: Patient) -> None:
    move_key(patient, "by-pojo")
    note = only(list(statetool.verify(str(patient.folder)).problems))
    assert (note.severity, note.operator) == ("note", "by-pojo")
    assert "not checked" in note.problem
    assert "formulas puts the 13 keys" in note.problem


def test_timers_that_a_native_savepoint_lost(corpus: Path, tmp_path: Path) -> None:
    Patient.of(corpus / "v2_3_0-rocksdb-heap-timers" / "snapshot", tmp_path / "snapshot")
    patient = Patient(tmp_path / "snapshot" / "chk-3")
    whole = statetool.verify(str(patient.folder))
    assert whole.problems == ()
    for operator in patient.metadata.operators:
        for subtask in operator.subtasks:
            patient.change_subtask(operator.uid, subtask.index, lambda s: replace(s, raw_keyed=None))
    assert statetool.verify(str(patient.folder)).problems == ()
    patient.write(replace(patient.metadata, properties=savepoint_properties("native")))
    found = statetool.verify(str(patient.folder)).problems
    assert {p.severity for p in found} == {"warning"}
    assert {p.operator for p in found} == {"win-count", "win-session-list", "win-tumble-reduce"}


def test_one_thread_finds_what_many_find(patient: Patient) -> None:
    patient.change_offsets("orders", 0, _swap)
    assert errors(patient.folder, threads=1) == errors(patient.folder, threads=4) != []


# ---- files --------------------------------------------------------------------------------------


def test_missing_files(corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / "v2_3_0-rocksdb-incremental" / "snapshot", tmp_path / "snapshot")
    victims = [next(f for f in sorted((root / d).iterdir()) if f.name != "_metadata") for d in ("shared", "chk-4")]
    named = (root / "chk-4" / "_metadata").read_bytes()
    victims[0] = next(f for f in sorted((root / "shared").iterdir()) if f.name.encode() in named)
    for victim in victims:
        victim.unlink()
    found = errors(root / "chk-4")
    gone = {Path(p.file or "").name for p in found}
    assert {v.name for v in victims} <= gone
    assert all(p.operator and p.subtask is not None for p in found)
    assert any("tried" in p.problem for p in found)


def test_files_of_another_length(corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / "v2_3_0-hashmap-checkpoint" / "snapshot" / "chk-2", tmp_path / "chk-2")
    short, longer = [f for f in sorted(root.iterdir()) if f.name != "_metadata"][:2]
    replace_file(short, short.read_bytes()[:-1])
    replace_file(longer, longer.read_bytes() + b"\0")
    found = {Path(p.file or "").name: p for p in errors(root) if "the metadata says" in p.problem}
    assert set(found) == {short.name, longer.name}
    assert str(short.stat().st_size) in found[short.name].problem


def test_a_segment_that_ends_before_it_should(corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / "v2_3_0-file-merging-hashmap" / "snapshot", tmp_path / "snapshot")
    merged = max((f for f in root.rglob("*") if f.is_file() and "taskowned" in str(f)), key=lambda f: f.stat().st_size)
    replace_file(merged, merged.read_bytes()[:-5])
    found = errors(root / "chk-3")
    assert any("the metadata says" in p.problem and p.file == str(merged) for p in found)


def test_a_change_log_that_is_gone(corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / "v2_3_0-changelog-rocksdb", tmp_path / "case")
    log = sorted(f for f in (root / "dstl").rglob("*") if f.is_file())[0]
    log.unlink()
    assert {Path(p.file or "").name for p in errors(root / "snapshot" / "chk-3")} == {log.name}


def test_damaged_metadata_is_unreadable_input(patient: Patient) -> None:
    file = patient.folder / "_metadata"
    replace_file(file, file.read_bytes()[:1000])
    with pytest.raises(FormatError):
        statetool.verify(str(patient.folder))
    assert CliRunner().invoke(cli, ["verify", str(patient.folder)]).exit_code == 3


# ---- key groups and offsets ---------------------------------------------------------------------


def test_key_groups_in_two_subtasks(patient: Patient) -> None:
    first = patient.keyed("orders", 0)
    patient.change_subtask("orders", 1, lambda s: replace(s, managed_keyed=first))
    found = errors(patient.folder)
    assert any("also in subtask 0" in p.problem and p.subtask == 1 for p in found)
    assert any("are in no handle" in p.problem for p in found)


def test_key_groups_in_no_subtask(patient: Patient) -> None:
    handle = patient.keyed("orders", 1)
    fewer = replace(handle, offsets=handle.offsets[:-2])
    patient.change_subtask("orders", 1, lambda s: replace(s, managed_keyed=fewer))
    problem = errors(patient.folder)[0]
    last = handle.start + len(handle.offsets) - 1
    assert f"key groups {last - 1} to {last} are in no handle" in problem.problem
    assert (problem.operator, problem.subtask) == ("orders", 1)


def test_a_subtask_without_keyed_state_is_a_warning(patient: Patient) -> None:
    patient.change_subtask("orders", 1, lambda s: replace(s, managed_keyed=None))
    found = statetool.verify(str(patient.folder))
    assert found.ok
    assert any(p.severity == "warning" and "never seen a record" in p.problem for p in found.problems)


def test_key_groups_beyond_max_parallelism(patient: Patient) -> None:
    handle = patient.keyed("orders", 1)
    patient.change_subtask("orders", 1, lambda s: replace(s, managed_keyed=replace(handle, start=handle.start + 1)))
    assert any("there are 128" in p.problem for p in errors(patient.folder))


def _swap(offsets: list[int]) -> list[int]:
    first, second = [i for i, o in enumerate(offsets) if o > 0][:2]
    offsets[first], offsets[second] = offsets[second], offsets[first]
    return offsets


def test_swapped_offsets(patient: Patient) -> None:
    handle = patient.keyed("orders", 0)
    groups = [handle.start + i for i, o in enumerate(handle.offsets) if o > 0][:2]
    patient.change_offsets("orders", 0, _swap)
    found = errors(patient.folder)
    assert len(found) == 2
    for problem, group in zip(found, groups[::-1], strict=True):
        assert (problem.operator, problem.subtask) == ("orders", 0)
        assert f"key group {group}" in problem.problem
        assert problem.offset is not None


@pytest.mark.parametrize("case", ["v2_3_0-hashmap-native", "v2_3_0-hashmap-canonical-compressed"])
def test_swapped_offsets_of_other_layouts(case: str, corpus: Path, tmp_path: Path) -> None:
    patient = Patient.of(corpus / case / "snapshot", tmp_path / "snapshot")
    assert errors(patient.folder) == []
    patient.change_offsets("timers", 0, _swap)
    assert {(p.operator, p.subtask) for p in errors(patient.folder)} == {("timers", 0)}


def test_offsets_outside_of_the_stream(patient: Patient) -> None:
    def far(offsets: list[int]) -> list[int]:
        offsets[[i for i, o in enumerate(offsets) if o > 0][-1]] = 1 << 40
        return offsets

    patient.change_offsets("orders", 0, far)
    assert any("of a stream of" in p.problem and p.offset == 1 << 40 for p in errors(patient.folder))


def test_two_key_groups_at_one_offset(patient: Patient) -> None:
    def same(offsets: list[int]) -> list[int]:
        first, second = [i for i, o in enumerate(offsets) if o > 0][:2]
        offsets[second] = offsets[first]
        return offsets

    patient.change_offsets("orders", 0, same)
    assert any("start at the same byte" in p.problem for p in errors(patient.folder))


def test_offsets_of_operator_state(patient: Patient) -> None:
    def shifted(handle: OperatorStreamHandle) -> OperatorStreamHandle:
        first = handle.states[0]
        return replace(handle, states=(replace(first, offsets=(*first.offsets[:-1], 1 << 30)), *handle.states[1:]))

    uid = "op-lists"
    subtask = next(
        s
        for s in patient.operator(uid).subtasks
        if isinstance(s.managed_operator, OperatorStreamHandle) and s.managed_operator.states[0].offsets
    )
    handle = subtask.managed_operator
    assert isinstance(handle, OperatorStreamHandle)
    patient.change_subtask(uid, subtask.index, lambda s: replace(s, managed_operator=shifted(handle)))
    assert any(p.offset == 1 << 30 and p.state == handle.states[0].name for p in errors(patient.folder))


# ---- keys and values ----------------------------------------------------------------------------


def test_a_key_in_a_wrong_key_group(patient: Patient) -> None:
    batch, _ = patient.entries("orders", 0, "order")
    move_key(patient, "orders")
    problem = only(errors(patient.folder))
    assert (problem.operator, problem.subtask, problem.state) == ("orders", 0, "order")
    assert f"lies in key group {int(batch.group[0])}" in problem.problem
    assert "its hash code belongs to" in problem.problem


def test_a_timer_in_a_wrong_key_group(patient: Patient) -> None:
    handle = patient.keyed("timers", 0)
    assert isinstance(handle, KeyGroupsHandle)
    name = "_timer_state/event_user-timers"
    batch, base = patient.entries("timers", 0, name)
    at = int(batch.key[0]) + 8 + 1  # timestamp, length of the key
    patient.change_bytes("timers", 0, base + at, bytes([int(batch.data[at]) ^ 1]))
    problem = only(errors(patient.folder))
    assert (problem.operator, problem.state) == ("timers", name)


def test_a_key_with_the_number_of_another_key_group(patient: Patient) -> None:
    batch, base = patient.entries("orders", 0, "order")
    at = base + int(batch.key[0]) - 1
    number = int(batch.data[batch.key[0] - 1])
    patient.change_bytes("orders", 0, at, bytes([number ^ 1]))
    problem = only(errors(patient.folder))
    assert "number of its key group" in problem.problem
    assert problem.offset is not None


def test_a_broken_value_is_found_by_deep_alone(corpus: Path, tmp_path: Path) -> None:
    patient = Patient.of(corpus / "v2_3_0-rocksdb-canonical" / "snapshot", tmp_path / "snapshot")
    batch, base = patient.entries("scalars-by-long", 0, "string")
    at = base + int(batch.value[0])
    patient.change_bytes("scalars-by-long", 0, at, b"\x7f")
    assert errors(patient.folder) == []
    problem = only(errors(patient.folder, deep=True))
    assert (problem.operator, problem.subtask, problem.state) == ("scalars-by-long", 0, "string")
    assert f"key group {int(batch.group[0])}" in problem.problem
    assert problem.file is not None


def test_several_broken_values_are_each_named(patient: Patient) -> None:
    for subtask in (0, 1):
        batch, base = patient.entries("keyed-broadcast", subtask, "latest")
        patient.change_bytes("keyed-broadcast", subtask, base + int(batch.value[0]), b"\x7f")
    assert [p.subtask for p in errors(patient.folder, deep=True)] == [0, 1]


def test_no_more_problems_than_asked_for(patient: Patient) -> None:
    for uid in ("orders", "timers", "by-tuple"):
        patient.change_offsets(uid, 0, _swap)
    everything = statetool.verify(str(patient.folder))
    assert not everything.truncated
    some = statetool.verify(str(patient.folder), most=2)
    assert some.truncated
    assert len(some.problems) == 2


def test_a_broken_element_of_operator_state(corpus: Path, tmp_path: Path) -> None:
    patient = Patient.of(corpus / "v2_3_0-hashmap-native" / "snapshot", tmp_path / "snapshot")
    from statetool.formats.metadata.handles import ByteStreamHandle

    for subtask in patient.operator("op-lists").subtasks:
        handle = subtask.managed_operator
        if not isinstance(handle, OperatorStreamHandle) or not isinstance(handle.stream, ByteStreamHandle):
            continue
        state = next((s for s in handle.states if s.offsets), None)
        if state is None:
            continue
        stream = handle.stream
        data = bytearray(stream.data)
        data[state.offsets[0]] = 0xFF
        new = replace(handle, stream=replace(stream, data=bytes(data)))
        patient.change_subtask("op-lists", subtask.index, lambda s, new=new: replace(s, managed_operator=new))  # type: ignore[misc]
        break
    problem = only(errors(patient.folder, deep=True))
    assert (problem.operator, problem.state) == ("op-lists", state.name if state is not None else "")


@pytest.mark.parametrize("case", ["v2_3_0-hashmap-canonical-compressed", "v2_3_0-hashmap-checkpoint-compressed"])
def test_a_checksum_that_does_not_fit_is_found_by_deep_alone(case: str, corpus: Path, tmp_path: Path) -> None:
    source = next((corpus / case).glob("snapshot/**/_metadata")).parent
    patient = Patient.of(source, tmp_path / "snapshot")
    handle = patient.keyed("timers", 0)
    heap = "checkpoint" in case
    offset = max(handle.offsets) if not heap else _compressed_group(patient, handle)
    # Number of the key group, stream identifier, type and length of the chunk; then its checksum.
    patient.change_bytes("timers", 0, offset + (4 if heap else 0) + 10 + 4, b"\0\1\2\3")
    assert errors(patient.folder) == []
    assert any("checksum" in p.problem and p.operator == "timers" for p in errors(patient.folder, deep=True))


def _compressed_group(patient: Patient, handle: KeyGroupsHandle) -> int:
    """Return where a key group with the beginning of a compressed stream starts."""
    assert isinstance(handle.stream, RelativeFileHandle)
    data = (patient.folder / handle.stream.path).read_bytes()
    return next(o for o in handle.offsets if data[o + 4 : o + 8] == b"\xff\x06\0\0")


def test_a_buffer_of_channel_state_that_is_cut(corpus: Path, tmp_path: Path) -> None:
    patient = Patient.of(corpus / "v2_3_0-unaligned" / "snapshot" / "chk-2", tmp_path / "chk-2")
    assert errors(patient.folder, deep=True) == []
    channels = [c for o in patient.metadata.operators for s in o.subtasks for c in s.input_channels + s.output_channels]
    assert channels
    stream = channels[0].stream
    assert isinstance(stream, RelativeFileHandle)
    at = offsets_of(channels[0])[0]
    file = patient.folder / stream.path
    replace_file(file, patched(file.read_bytes(), at, b"\x7f\0\0\0"))
    found = errors(patient.folder, deep=True)
    assert found
    assert all("a buffer of" in p.problem and p.offset == at and p.file == str(file) for p in found)


@pytest.mark.parametrize("case", ["v2_3_0-finished/snapshot/chk-3", "v2_3_0-unaligned-inline/snapshot/chk-2"])
def test_no_damage_is_more_than_a_problem(case: str, corpus: Path, tmp_path: Path) -> None:
    """Whatever is changed: a list of problems or an error of ours."""
    chance = random.Random(case)
    source = corpus / case
    files = sorted(f.name for f in source.iterdir())
    outcomes: set[bool | None] = set()
    for n in range(60):
        folder = link(source, tmp_path / str(n))
        name = chance.choice(files) if n % 2 else "_metadata"
        data = bytearray((folder / name).read_bytes())
        at = chance.randrange(len(data))
        data[at : at + chance.choice((1, 8))] = chance.randbytes(chance.choice((0, 1, 8)))
        replace_file(folder / name, bytes(data))
        try:
            outcomes.add(statetool.verify(str(folder), deep=True).ok)
        except StatetoolError:
            outcomes.add(None)
    assert {False, None} <= outcomes


# ---- ways in ------------------------------------------------------------------------------------


def test_verify_by_uri(corpus: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(corpus / "v2_3_0-hashmap-native" / "snapshot"), "/verified", recursive=True)
    try:
        assert statetool.verify("memory://verified", deep=True).ok
        name = next(n for n in memory.ls("/verified", detail=False) if not n.endswith("_metadata"))
        memory.rm(name)
        assert not statetool.verify("memory://verified").ok
    finally:
        memory.rm("/verified", recursive=True)


def test_an_open_savepoint(patient: Patient) -> None:
    savepoint = statetool.load(str(patient.folder))
    assert statetool.verify(savepoint, deep=True) == statetool.verify(str(patient.folder), deep=True)


def test_the_command(patient: Patient) -> None:
    fine = CliRunner().invoke(cli, ["verify", str(patient.folder), "--deep", "--output", "json"])
    assert fine.exit_code == 0
    assert {p["severity"] for p in json.loads(fine.stdout)} == {"note"}
    assert "0 errors" in fine.stderr
    patient.change_offsets("orders", 0, _swap)
    wrong = CliRunner().invoke(cli, ["verify", str(patient.folder)])
    assert wrong.exit_code == 1
    assert wrong.stdout.startswith("severity  operator")
    assert "orders" in wrong.stdout
    assert "2 errors" in wrong.stderr
