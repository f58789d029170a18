"""Files that only state names: found, checked, kept by clean-up and taken along by copies. The checkpoints are of real jobs (``write_ahead_job``)."""

from __future__ import annotations

import itertools
import shutil
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import statetool
from statetool.analysis.verification.named_files import check_named_files
from statetool.columns.pieces import Encoded
from statetool.connectors import named_files as module
from statetool.connectors.elements import OperatorBytes
from statetool.connectors.layouts.file_sink import count_requests
from statetool.connectors.model import NamedFile
from statetool.connectors.named_files import NamedFiles, elements_with_files, named_files, state_names
from statetool.connectors.sinks import COMPACT_STATE
from statetool.connectors.state_handles import handles_in, read_object, rename_files
from statetool.errors import FormatError, UnsupportedError
from statetool.formats.metadata import OperatorState, SubtaskState, parse_metadata, write_metadata
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaObject
from statetool.io.listing import FoundFile, stat
from statetool.saving.compose import write_composition
from statetool.saving.composition import Composition, OperatorChange
from statetool.saving.local import LocalRunner
from statetool.saving.named_files import named_streams
from statetool.saving.versions import parse_release
from statetool.types.declared import NOTHING_DECLARED
from tests.support.corpora.archives import unpack
from tests.support.flink.write_ahead_job import ARCHIVE, UIDS
from tests.support.snapshots import beam, canonical
from tests.support.snapshots.trees import JOB, age, lose_file

STATE = "pending-checkpoints"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of the jobs, by release."""
    return unpack(ARCHIVE, tmp_path_factory.mktemp("write-ahead"))


@pytest.fixture(params=["v2_3_0", "v1_20_5"])
def checkpoint(request: pytest.FixtureRequest, jobs: Path, tmp_path: Path) -> Path:
    """A copy of a checkpoint in the directory of its job, beside ``taskowned``, a month old."""
    job = shutil.copytree(jobs / request.param, tmp_path / "checkpoints" / JOB)
    age(tmp_path / "checkpoints")
    return next(job.glob("chk-*"))


def load(checkpoint: Path | str) -> statetool.Savepoint:
    return statetool.load(str(checkpoint), uids=UIDS)


def task_owned(checkpoint: Path) -> set[str]:
    return {file.name for file in (checkpoint.parent / "taskowned").iterdir()}


def problems(checkpoint: Path | str, severity: str) -> list[str]:
    verification = statetool.verify(load(checkpoint))
    return [p.problem for p in verification.problems if p.severity == severity and p.state == STATE]


def test_each_kind_of_file_is_found(checkpoint: Path) -> None:
    operators = load(checkpoint).inventory.operators
    found = {uid: named_files(operators[uid]).files for uid in operators}
    assert {Path(f.path).name for f in found["ahead"]} == task_owned(checkpoint)
    assert {(f.is_state, f.state, f.subtask) for f in found["ahead"]} == {(True, STATE, 0), (True, STATE, 1)}
    sizes = {f.name: f.stat().st_size for f in (checkpoint.parent / "taskowned").iterdir()}
    assert {Path(f.path).name: f.size_bytes for f in found["ahead"]} == sizes
    assert [(f.fails_restore, f.committed_path) for f in found["open"]] == [(True, None)] * 2
    rolled = found["Sink Committer: rolled"]
    assert [(f.fails_restore, f.path != f.committed_path) for f in rolled] == [(False, True)] * 2
    assert {len(files) for uid, files in found.items() if uid not in ("ahead", "open", "Sink Committer: rolled")} == {0}


def test_the_sink_is_shown(checkpoint: Path) -> None:
    (row,) = (r for r in load(checkpoint).connector_rows("sinks") if r.connector == "write-ahead-sink")
    assert (row.role, row.pending, row.note) == ("sink", len(task_owned(checkpoint)), "")


def test_verify_says_which_files_are_needed_and_which_are_gone(checkpoint: Path) -> None:
    (needed,) = problems(checkpoint, "note")
    count = len(task_owned(checkpoint))
    assert f"needs files that only its state names: {count} files in file:" in needed
    first, *others = sorted((checkpoint.parent / "taskowned").iterdir())
    first.unlink()
    (gone,) = problems(checkpoint, "warning")
    assert gone.startswith(f"1 of {count} files that only this state names do not exist")
    assert first.name in gone
    others[0].write_bytes(others[0].read_bytes()[:-1])
    (short,) = problems(checkpoint, "error")
    assert "the state that names it says" in short


def test_check_and_report_say_it_too(checkpoint: Path) -> None:
    """X11."""
    (ahead,) = (o for o in statetool.check(load(checkpoint), flink_version="2.3").operators if o.uid == "ahead")
    assert ahead.verdict == "fully"
    assert any("Needs files that only its state names" in c.reason for c in ahead.causes)
    assert "that only state names" in load(checkpoint).report()._repr_html_()


def test_clean_up_keeps_copies_that_only_state_names(checkpoint: Path) -> None:
    """The copies have the names of state files, beside metadata that does not name them."""
    root = checkpoint.parents[1]
    copy = root / "savepoint-5ca1ab-0123456789ab"
    statetool.copy(str(checkpoint), str(copy))
    named = {f.name for f in copy.iterdir() if "-named-" in f.name}
    assert len(named) == len(task_owned(checkpoint))
    lost = lose_file(copy)
    age(root)
    assert {Path(row.path).name for row in statetool.orphans(str(root))} == {lost.name}
    assert [Path(row.path).name for row in statetool.delete_orphans(str(root)).moved] == [lost.name]
    assert problems(copy, "warning") == []


def hide(checkpoint: Path) -> None:
    """Replace the class of the elements by one that is not known."""
    name = b"GenericWriteAheadSink$PendingCheckpoint"
    for file in [f for f in checkpoint.iterdir() if name in f.read_bytes()]:
        file.write_bytes(file.read_bytes().replace(name, b"GenericWriteAheadSink$AnotherCheckpoint"))
    age(checkpoint.parents[1])


def test_state_that_cannot_be_decoded_is_said_and_refuses_clean_up(checkpoint: Path, tmp_path: Path) -> None:
    hide(checkpoint)
    lost = lose_file(checkpoint.parent / "shared")
    (unknown,) = problems(checkpoint, "note")
    assert unknown == "files that this state may name are not checked: " + unknown.partition(": ")[2]
    with pytest.raises(FormatError, match=f"may name files and cannot be decoded.*{STATE}"):
        statetool.delete_orphans(str(checkpoint.parents[1]))
    with pytest.raises(FormatError, match="may name files"):
        statetool.orphans(str(checkpoint.parents[1]))
    assert lost.exists()
    assert statetool.orphans(str(checkpoint.parents[1]), ignore_unreadable=True)
    (ahead,) = (o for o in statetool.check(load(checkpoint), flink_version="2.3").operators if o.uid == "ahead")
    assert ahead.verdict == "unknown"
    with pytest.warns(UserWarning, match="not copied, and stay needed"):
        statetool.copy(str(checkpoint), str(tmp_path / "copy"))


WRITES: dict[str, Callable[[str, str], Any]] = {
    "copy": statetool.copy,
    "convert": statetool.convert,
    "rescale": lambda source, target: statetool.rescale(source, target, 32),
    "drop": lambda source, target: statetool.drop(source, target, ["open"], uids=["open"]),
}


@pytest.mark.parametrize("verb", WRITES)
def test_all_writes_take_the_files_along(checkpoint: Path, tmp_path: Path, verb: str) -> None:
    before = {f.name: f.read_bytes() for f in (checkpoint.parent / "taskowned").iterdir()}
    target = tmp_path / "a new one"
    WRITES[verb](str(checkpoint), str(target))
    shutil.rmtree(checkpoint.parents[1])
    files = named_files(statetool.load(str(target), uids=["ahead"]).inventory.operators["ahead"]).files
    assert {Path(f.path.removeprefix("file:")).parent for f in files} == {target}
    assert sorted(Path(f.path.removeprefix("file:")).read_bytes() for f in files) == sorted(before.values())
    assert statetool.verify(str(target), deep=True).ok


def test_a_copy_by_reference_names_the_original_files(checkpoint: Path, tmp_path: Path) -> None:
    statetool.SavepointWriter.from_existing(load(checkpoint)).write(str(tmp_path / "new"), reference_files=True)
    files = named_files(load(tmp_path / "new").inventory.operators["ahead"]).files
    assert {Path(f.path).name for f in files} == task_owned(checkpoint)


def test_files_that_are_gone_keep_their_names_in_a_copy(checkpoint: Path, tmp_path: Path) -> None:
    """A sink that has sent their records has deleted them."""
    gone = sorted((checkpoint.parent / "taskowned").iterdir())[0]
    gone.unlink()
    with pytest.warns(UserWarning, match=f"1 file that only its state names .*{gone.name}"):
        copied = statetool.copy(str(checkpoint), str(tmp_path / "copy"), compare=True)
    files = {Path(f.path).name for f in named_files(load(copied.target).inventory.operators["ahead"]).files}
    assert gone.name in files
    assert len([name for name in files if "-named-" in name]) == len(files) - 1


def test_a_failed_copy_of_a_named_file_leaves_nothing(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkpoint.parent / "taskowned" / min(task_owned(checkpoint))).write_bytes(b"")
    with pytest.raises(FormatError, match="the state that names it says"):
        statetool.copy(str(checkpoint), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def finish(checkpoint: Path, uid: str, index: int) -> None:
    """Replace a subtask by one that has finished."""
    operator_id = load(checkpoint).inventory.operators[uid].state.operator_id
    file = checkpoint / "_metadata"
    metadata = parse_metadata(file.read_bytes())

    def with_finished(operator: OperatorState) -> OperatorState:
        done = (SubtaskState(index=s.index, finished=True) if s.index == index else s for s in operator.subtasks)
        return replace(operator, subtasks=tuple(done)) if operator.operator_id == operator_id else operator

    file.write_bytes(write_metadata(replace(metadata, operators=tuple(map(with_finished, metadata.operators)))))


@pytest.mark.parametrize("verb", ["copy", "convert", "drop"])
def test_subtasks_that_have_finished_stay_finished(checkpoint: Path, tmp_path: Path, verb: str) -> None:
    finish(checkpoint, "ahead", 0)
    WRITES[verb](str(checkpoint), str(tmp_path / "new"))
    operator = statetool.load(str(tmp_path / "new"), uids=["ahead"]).inventory.operators["ahead"]
    named = named_files(operator).files
    assert named
    assert {(f.subtask, Path(f.path.removeprefix("file:")).parent) for f in named} == {(1, tmp_path / "new")}
    assert {s.index: s.finished for s in operator.state.subtasks} == {0: True, 1: False}
    assert statetool.verify(str(tmp_path / "new"), deep=True).ok


class Unchanged:
    """A conversion of elements to the same bytes."""

    needs_whole_keys, keeps_entries, identity, types = False, True, b"unchanged", NOTHING_DECLARED

    def __init__(self, meta: StateMetaInfo) -> None:
        self.meta = meta

    def elements(self, data: Any, starts: Any, ends: Any) -> Encoded:
        return Encoded(data, np.append(starts, ends[-1]))


def test_converted_states_name_the_copies(checkpoint: Path, tmp_path: Path) -> None:
    inventory = load(checkpoint).inventory
    conversion = Unchanged(inventory.operators["ahead"].operator_states[STATE])
    change = OperatorChange(conversions={STATE: cast(Any, conversion)})
    target = tmp_path / "new"
    composition = Composition(base=inventory, changes={"ahead": change})
    write_composition(composition, str(target), parse_release(None), LocalRunner())
    named = named_files(load(target).inventory.operators["ahead"]).files
    assert {Path(f.path.removeprefix("file:")).parent for f in named} == {target}
    assert len({f.path for f in named}) == len(task_owned(checkpoint))


def test_files_to_copy_are_looked_for_at_the_same_time(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)

    first = itertools.count()

    def wait(place: str) -> FoundFile | None:
        if next(first) < 2:
            together.wait(timeout=60)
        return stat(place)

    monkeypatch.setattr("statetool.saving.named_files.stat", wait)
    assert len(named_streams(load(checkpoint).inventory.operators["ahead"])) == len(task_owned(checkpoint))


def test_directories_of_sinks_are_looked_into_at_the_same_time(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)

    def find(place: str) -> FoundFile:
        together.wait(timeout=60)
        return FoundFile(place, 1, None)

    named = [NamedFile(path=f"s3://bucket/{hour}/part-0", size_bytes=1, state=STATE) for hour in (10, 11)]
    monkeypatch.setattr(
        "statetool.analysis.verification.named_files.named_files", lambda _: NamedFiles(files=tuple(named))
    )
    operator = load(checkpoint).inventory.operators["ahead"]
    assert check_named_files(operator, "s3://bucket/chk-1/_metadata", find)[1] == []


def test_elements_that_cannot_be_decoded_stay(checkpoint: Path) -> None:
    operator = load(checkpoint).inventory.operators["ahead"]
    paths = [f.path for f in named_files(operator).of_state]
    elements = [e.data for e in OperatorBytes(operator).elements(STATE)]

    def some(data: bytes) -> Any:
        if data == elements[0]:
            raise FormatError("not a Java stream")
        return read_object(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "read_object", some)
        written = elements_with_files(operator, dict.fromkeys(paths, "file:/new"))[STATE]
    assert [a == b for a, b in zip(elements, [*written[0], *written[1]], strict=True)] == [
        True,
        *(False for _ in elements[1:]),
    ]


def element(checkpoint: Path) -> bytes:
    return next(OperatorBytes(load(checkpoint).inventory.operators["ahead"]).elements(STATE)).data


@pytest.mark.parametrize("path", ["file:/a b/ü%x", "s3://bucket/a+b;c", "hdfs://host:8020/?#[x]"])
def test_paths_are_written_as_java_writes_uris(jobs: Path, path: str) -> None:
    data = element(next((jobs / "v2_3_0").glob("chk-*")))
    (handle,) = handles_in(read_object(data))
    assert handle.path is not None
    assert rename_files(data, {"another": path}) == data
    renamed = rename_files(data, {handle.path: path})
    (moved,) = handles_in(read_object(renamed))
    assert (moved.path, moved.size_bytes) == (path, handle.size_bytes)
    assert rename_files(renamed, {path: handle.path}) == data
    assert b" " not in renamed[-len(path) * 3 :]


def test_a_handle_without_a_path_is_not_known() -> None:
    handle = JavaObject(JavaClass("org.example.CloudStateHandle", parent=JavaClass("java.lang.Object")))
    array = JavaArray(JavaClass("[Ljava.lang.Object;"), [handle, handle])
    with pytest.raises(UnsupportedError, match=r"org\.example\.CloudStateHandle"):
        list(handles_in(array))


def test_handles_in_other_states_of_java_serialization_are_found(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink of a user may keep handles in a state of any name."""
    operator = load(checkpoint).inventory.operators["ahead"]
    expected = {f.path for f in named_files(operator).of_state}
    monkeypatch.setattr(module, "sinks_in", lambda _: [])
    assert {f.path for f in named_files(operator).of_state} == expected
    elements = elements_with_files(operator, dict.fromkeys(expected, "file:/new"))
    assert {handle.path for of in elements[STATE].values() for e in of for handle in handles_in(read_object(e))} == {
        "file:/new"
    }


def test_files_that_wait_for_compaction_are_named(connector_cases: Path) -> None:
    """The coordinator of the compaction keeps them. Requests of the compactor itself are not decoded, and said to be unknown."""
    savepoint = statetool.load(str(connector_cases / "v2_3_0-file-sink-compact" / "snapshot"))
    named = {
        name: named_files(o)
        for o in savepoint.inventory.operators.values()
        for name in state_names(o.state) & {COMPACT_STATE, "remaining_requests_raw_state"}
    }
    assert len(named[COMPACT_STATE].files) > 0
    assert {file.fails_restore for file in named[COMPACT_STATE].files} == {False}
    assert named["remaining_requests_raw_state"].unread == ()


@pytest.mark.parametrize("requests", [0, 2])
def test_requests_of_a_compactor_are_counted(requests: int) -> None:
    listed = struct.pack(">qii", 7, 1, requests) + requests * (struct.pack(">i", 3) + b"abc")
    inner = struct.pack(">Ii", 0xA946BE83, 1) + listed
    assert count_requests(struct.pack(">ii", 1, len(inner)) + inner) == requests


def test_files_of_beam_are_said_to_be_unchecked(tmp_path: Path) -> None:
    """Elements between the steps of a file write are ``FileBasedSink.FileResult``, with the names of temporary files."""
    result = beam.obj("org.apache.beam.sdk.io.FileBasedSink$FileResultCoder")
    buffered = beam.coder("List", elementCoder=beam.windowed(result, beam.GLOBAL))
    states = [
        canonical.keyed("buffered", "value", beam.unversioned(buffered)),
        canonical.keyed("sums", "value", beam.unversioned(beam.coder("VarLong"))),
    ]
    subtask = canonical.Subtask(key=beam.unversioned(beam.KEY), states=states, entries=[])
    canonical.savepoint(tmp_path, [subtask], max_parallelism=1)
    (operator,) = statetool.load(str(tmp_path)).inventory.operators.values()
    _, problems = check_named_files(operator, str(tmp_path / "_metadata"), stat)
    assert [(p.severity, p.state) for p in problems] == [("note", "buffered")]
    assert "Beam's file writes" in problems[0].problem
