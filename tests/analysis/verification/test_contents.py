from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import statetool
from statetool.analysis.verification.channels import offsets_of
from statetool.errors import StatetoolError
from statetool.formats.metadata.handles import KeyGroupsHandle, OperatorStreamHandle, RelativeFileHandle
from tests.support.failures.damage import Patient, patched
from tests.support.failures.problems import errors, move_key, only
from tests.support.snapshots.trees import link, replace_file


def test_a_key_in_a_wrong_key_group(patient: Patient) -> None:
    batch, _ = patient.entries("orders", 0, "order")
    move_key(patient, "orders")
    problem = only(errors(patient.folder))
    assert (problem.operator, problem.subtask, problem.state) == ("orders", 0, "order")
    assert f"is in key group {int(batch.group[0])}" in problem.problem
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
    """Return the start of a key group that has the beginning of a compressed stream."""
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
    problems = errors(patient.folder, deep=True)
    assert problems
    assert all("a buffer of" in p.problem and p.offset == at and p.file == str(file) for p in problems)


@pytest.mark.full
@pytest.mark.parametrize("case", ["v2_3_0-finished/snapshot/chk-3", "v2_3_0-unaligned-inline/snapshot/chk-2"])
def test_no_damage_is_more_than_a_problem(case: str, corpus: Path, tmp_path: Path) -> None:
    """Any change gives a list of problems or a ``StatetoolError``."""
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
