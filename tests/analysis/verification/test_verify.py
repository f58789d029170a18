from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import fsspec
import pytest
from click.testing import CliRunner

import statetool
from statetool.analysis.verification import contents, distinct_keys
from statetool.analysis.verification.content_plan import ContentPlanner
from statetool.analysis.verification.contents import check_contents
from statetool.analysis.verification.entry_check import ContentTask, EntryCheck
from statetool.cli.main import cli
from statetool.entries import stream_reader
from statetool.entries.form import EntryRequest
from statetool.errors import FormatError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.metadata.handles import OperatorStreamHandle
from statetool.formats.metadata.savepoint import savepoint_properties
from statetool.reporting.verdicts.verify import verify_findings
from statetool.snapshot.inventory import Inventory
from tests.support.failures.damage import Patient, patched
from tests.support.failures.problems import errors, move_key, only
from tests.support.snapshots.trees import link, replace_file

# ---- intact snapshots ---------------------------------------------------------------------------


@pytest.mark.full
def test_every_snapshot_of_the_corpus_is_whole(corpus: Path) -> None:
    for metadata in sorted(corpus.glob("*/snapshot/**/_metadata")):
        verification = statetool.verify(str(metadata.parent), deep=True)
        assert [p for p in verification.problems if p.severity != "note" and not p.unread] == [], metadata
        # In heap layout, the end of a value is unknown if Kryo wrote its class, or if it is of an undescribed subclass.
        reasons = ("in the layout of the heap backend", "that the snapshot does not describe")
        assert all(any(r in p.problem for r in reasons) for p in verification.problems if p.unread), metadata
        assert verification.ok == (not verification.unread)
        if "changelog" not in str(metadata):
            assert verification.entries


def test_what_is_checked_is_counted(corpus: Path) -> None:
    shallow = statetool.verify(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"))
    deep = statetool.verify(str(corpus / "v2_3_0-rocksdb-canonical" / "snapshot"), deep=True)
    assert shallow.operators == deep.operators == 38
    assert shallow.keys == deep.keys > 400
    assert shallow.entries == deep.entries > 2000
    assert (shallow.elements, deep.elements > 200) == (0, True)
    assert not shallow.truncated


@pytest.mark.parametrize("name", ["rocksdb-native-inline/snapshot", "rocksdb-incremental/snapshot/chk-4"])
def test_keys_are_counted_alike_in_all_forms(corpus: Path, name: str) -> None:
    canonical = statetool.verify(str(corpus / "v2_3_0-rocksdb-canonical-compressed" / "snapshot"))
    other = statetool.verify(str(corpus / f"v2_3_0-{name}"))
    assert (other.entries, other.keys) == (canonical.entries, canonical.keys) == (895, 221)


def test_the_number_of_many_keys_is_estimated(monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    monkeypatch.setattr(distinct_keys, "MOST", 20)
    verification = statetool.verify(str(corpus / "v2_3_0-rocksdb-native-inline" / "snapshot"))
    assert verification.keys_are_estimated
    assert 150 < verification.keys < 320
    assert ", about " in verify_findings(verification).summary


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
    problems = statetool.verify(str(patient.folder)).problems
    assert {p.severity for p in problems} == {"warning"}
    assert {p.operator for p in problems} == {"win-session-list", "win-tumble-reduce", None}
    (others,) = [p.problem for p in problems if p.operator is None]
    assert "timers of these operators are lost, too" in others
    assert "timers" in others.partition("(")[2].partition(")")[0].split(", ")
    assert "win-count" in others  # Its windows are global, and close without timers.
    assert "win-session-list" not in others


def test_windows_of_a_change_log_that_never_had_a_timer(corpus: Path, tmp_path: Path) -> None:
    """A change log does not name queues without timers. Those of other operators show that none were on the heap."""
    log = next((corpus / "v2_3_0-changelog-rocksdb").rglob("_metadata")).parent
    statetool.convert(str(log), str(tmp_path / "native"), format="native", backend="rocksdb")
    states = statetool.load(str(tmp_path / "native"))["win-count"].states
    assert not [name for name in states if "timer" in name]
    assert statetool.verify(str(tmp_path / "native")).problems == ()


def test_a_native_savepoint_without_timers_may_have_lost_them(restores: Path) -> None:
    """Nothing shows whether a job without windows had timers: verify says so, and does not call the savepoint whole."""
    (note,) = statetool.verify(str(restores / "heap-timers-native")).problems
    assert (note.severity, note.operator) == ("note", None)
    assert "if the job has timers" in note.problem
    assert statetool.verify(str(restores / "rocksdb-timers-native")).problems == ()


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
    problems = errors(root / "chk-4")
    gone = {Path(p.file or "").name for p in problems}
    assert {v.name for v in victims} <= gone
    assert all(p.operator and p.subtask is not None for p in problems)
    assert any("tried" in p.problem for p in problems)


def test_files_of_another_length(corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / "v2_3_0-hashmap-checkpoint" / "snapshot" / "chk-2", tmp_path / "chk-2")
    short, longer = [f for f in sorted(root.iterdir()) if f.name != "_metadata"][:2]
    replace_file(short, short.read_bytes()[:-1])
    replace_file(longer, longer.read_bytes() + b"\0")
    problems = {Path(p.file or "").name: p for p in errors(root) if "the metadata says" in p.problem}
    assert set(problems) == {short.name, longer.name}
    assert str(short.stat().st_size) in problems[short.name].problem


def test_a_segment_that_ends_before_it_should(corpus: Path, tmp_path: Path) -> None:
    root = link(corpus / "v2_3_0-file-merging-hashmap" / "snapshot", tmp_path / "snapshot")
    merged = max((f for f in root.rglob("*") if f.is_file() and "taskowned" in str(f)), key=lambda f: f.stat().st_size)
    replace_file(merged, merged.read_bytes()[:-5])
    problems = errors(root / "chk-3")
    assert any("the metadata says" in p.problem and p.file == str(merged) for p in problems)


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
    problems = errors(patient.folder)
    assert any("also in subtask 0" in p.problem and p.subtask == 1 for p in problems)
    assert any("are in no handle" in p.problem for p in problems)


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
    verification = statetool.verify(str(patient.folder))
    assert verification.ok
    assert any(p.severity == "warning" and "never seen a record" in p.problem for p in verification.problems)


def test_key_groups_beyond_max_parallelism(patient: Patient) -> None:
    handle = patient.keyed("orders", 1)
    patient.change_subtask("orders", 1, lambda s: replace(s, managed_keyed=replace(handle, start=handle.start + 1)))
    assert any("max parallelism is 128" in p.problem for p in errors(patient.folder))


def _swap(offsets: list[int]) -> list[int]:
    first, second = [i for i, o in enumerate(offsets) if o > 0][:2]
    offsets[first], offsets[second] = offsets[second], offsets[first]
    return offsets


def test_swapped_offsets(patient: Patient) -> None:
    handle = patient.keyed("orders", 0)
    groups = [handle.start + i for i, o in enumerate(handle.offsets) if o > 0][:2]
    patient.change_offsets("orders", 0, _swap)
    problems = errors(patient.folder)
    assert len(problems) == 2
    for problem, group in zip(problems, groups[::-1], strict=True):
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


def test_no_more_problems_than_asked_for(patient: Patient) -> None:
    for uid in ("orders", "timers", "by-tuple"):
        patient.change_offsets(uid, 0, _swap)
    everything = statetool.verify(str(patient.folder))
    assert not everything.truncated
    first_two = statetool.verify(str(patient.folder), max_problems=2)
    assert first_two.truncated
    assert len(first_two.problems) == 2


# ---- entry points -------------------------------------------------------------------------------


def test_verify_by_uri(corpus: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(corpus / "v2_3_0-hashmap-native" / "snapshot"), "/verified", recursive=True)
    try:
        assert statetool.verify("memory://verified", deep=True, allow_unread=True).ok
        name = next(n for n in memory.ls("/verified", detail=False) if not n.endswith("_metadata"))
        memory.rm(name)
        assert not statetool.verify("memory://verified", allow_unread=True).ok
    finally:
        memory.rm("/verified", recursive=True)


def test_a_key_type_that_is_not_known_is_no_clean_bill(patient: Patient) -> None:
    """A changed bit in a class name could be another valid class: reading fails, so the result is not "fine"."""
    file = next(f for f in sorted(patient.folder.iterdir()) if b"base.LongSerializer$" in f.read_bytes()[:4000])
    whole = file.read_bytes()
    at = whole.index(b"base.LongSerializer$")
    replace_file(file, patched(whole, at + 5, b"l"))
    verification = statetool.verify(str(patient.folder))
    assert not verification.ok
    (problem,) = [p for p in verification.problems if p.severity == "warning"]
    assert verification.unread == 1
    assert "base.longSerializer$LongSerializerSnapshot' is not known" in problem.problem
    assert statetool.verify(str(patient.folder), allow_unread=True).ok
    refused = CliRunner().invoke(cli, ["verify", str(patient.folder)])
    assert refused.exit_code == 1
    assert "no errors, 1 piece of state not read" in " ".join(refused.stdout.split())
    assert CliRunner().invoke(cli, ["verify", str(patient.folder), "--allow-unread"]).exit_code == 0


def test_bytes_behind_the_metadata_are_told(patient: Patient) -> None:
    file = patient.folder / "_metadata"
    replace_file(file, file.read_bytes() + b"more")
    warnings = [p for p in statetool.verify(str(patient.folder)).problems if p.severity == "warning"]
    assert only(warnings).problem == "4 bytes follow the end of the metadata, which Flink ignores"


def test_names_that_a_database_does_not_give_are_told(corpus: Path, tmp_path: Path) -> None:
    patient = Patient.of(corpus / "v2_3_0-rocksdb-native" / "snapshot", tmp_path / "snapshot")
    raw = (patient.folder / "_metadata").read_bytes()
    replace_file(patient.folder / "_metadata", raw.replace(b"OPTIONS-", b"OPTIONR-", 1))
    warnings = [p for p in statetool.verify(str(patient.folder)).problems if p.severity == "warning"]
    assert "the database has a file 'OPTIONR-" in only(warnings).problem


def test_an_open_savepoint(patient: Patient) -> None:
    savepoint = statetool.load(str(patient.folder))
    assert statetool.verify(savepoint, deep=True) == statetool.verify(str(patient.folder), deep=True)


def test_the_command(patient: Patient) -> None:
    fine = CliRunner().invoke(cli, ["verify", str(patient.folder), "--deep", "--output", "json"])
    assert fine.exit_code == 0
    assert {p["severity"] for p in json.loads(fine.stdout)} == {"note"}
    assert "no errors" in fine.stderr
    patient.change_offsets("orders", 0, _swap)
    wrong = CliRunner().invoke(cli, ["verify", str(patient.folder)])
    assert wrong.exit_code == 1
    assert wrong.stdout.startswith("error: operator orders, subtask 0")
    assert "2 errors" in wrong.stdout


@pytest.mark.full
def test_a_large_key_group_of_the_heap_layout_is_checked_in_windows(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = next((corpus / "v2_3_0-hashmap-checkpoint" / "snapshot").rglob("_metadata")).parent
    sizes: list[int] = []
    batch = EntryCheck.batch

    def seen(check: EntryCheck, entries: EntryBatch) -> None:
        sizes.append(len(entries))
        batch(check, entries)

    monkeypatch.setattr(EntryCheck, "batch", seen)
    whole = statetool.verify(str(snapshot), deep=True, threads=1)
    groups, sizes = sizes, []
    monkeypatch.setattr(contents, "EntryRequest", partial(EntryRequest, batch_bytes=200))
    monkeypatch.setattr(stream_reader, "STATE_BYTES", 0)
    windowed = statetool.verify(str(snapshot), deep=True, threads=1)
    # If a key group cannot be read to its end, the entries before the damage are counted.
    assert windowed.entries >= whole.entries > 1000
    assert [p.problem for p in windowed.problems] == [p.problem for p in whole.problems]
    assert len(sizes) > 10 * len(groups)
    assert max(sizes) < max(groups) / 10
