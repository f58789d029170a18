"""Which write gets a target that another one has started, and the timing of interrupts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import FormatError, TargetExistsError, WriteFailedError
from statetool.io import files, owner, targets
from statetool.saving import marks, publish
from statetool.saving.publish import Publication
from tests.support.cli_output import command_of, commands
from tests.support.zoo import ZOO


def begin(target: str) -> Publication:
    publication = Publication(target)
    publication.__enter__()
    with publication.staging.create() as f:
        f.write(b"begun")
    return publication


def write(target: str, *, take_over: bool = False) -> None:
    with Publication(target, take_over=take_over) as publication:
        with publication.staging.create() as f:
            f.write(b"abc")
        publication.commit(b"meta", [f.staged])


def from_elsewhere(publication: Publication, hours: float) -> None:
    """Let the marker of a write look as if it was made on another machine this many hours ago."""
    marker = Path(publication.staging.marker)
    marker.write_text(json.dumps({**json.loads(marker.read_bytes()), "host": "elsewhere", "name": "worker-7"}))
    when = time.time() - hours * 3600
    os.utime(marker, (when, when))


def test_the_target_of_a_killed_process_is_free(tmp_path: Path) -> None:
    target = tmp_path / "sp"
    code = """
        import os, sys
        from statetool.saving.publish import Publication
        publication = Publication(sys.argv[1])
        publication.__enter__()
        with publication.staging.create() as f:
            f.write(b"left")
        os._exit(9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(target)], check=False)
    assert len(os.listdir(target)) == 2
    Publication.check(str(target))
    write(str(target))
    assert len(os.listdir(target)) == 2


def test_a_write_that_goes_on_is_not_disturbed(tmp_path: Path) -> None:
    target = str(tmp_path / "sp")
    first = begin(target)
    for attempt in (Publication.check, write):
        with pytest.raises(TargetExistsError, match=rf"process {os.getpid()} on .*--take-over"):
            attempt(target)
    with first.staging.create() as f:
        f.write(b"on")
    first.commit(b"meta", [f.staged])
    assert len(os.listdir(target)) == 2


def test_the_age_of_a_write_of_another_machine_decides(tmp_path: Path) -> None:
    target = str(tmp_path / "sp")
    first = begin(target)
    from_elsewhere(first, hours=23.9)
    with pytest.raises(TargetExistsError, match=r"may still be running: process \d+ on worker-7"):
        write(target)
    assert sum(name.startswith(".statetool-") for name in os.listdir(target)) == 1
    from_elsewhere(first, hours=24.1)
    write(target)
    assert len(os.listdir(target)) == 2
    with pytest.raises(FileNotFoundError, match="took it over"):
        first.commit(b"old", [])


def test_a_marker_that_names_no_process_is_judged_by_its_age(tmp_path: Path) -> None:
    target = str(tmp_path / "sp")
    first = begin(target)
    Path(first.staging.marker).write_bytes(b"written by an earlier release")
    with pytest.raises(TargetExistsError, match=r"another write to .* may still be running"):
        write(target)
    write(target, take_over=True)
    assert len(os.listdir(target)) == 2


def test_files_of_a_write_that_may_publish_stay_until_another_has(tmp_path: Path) -> None:
    target = str(tmp_path / "sp")
    first = begin(target)
    from_elsewhere(first, hours=0)
    second = Publication(target, take_over=True)
    second.__enter__()
    assert sum(name.startswith(first.staging.write_id) for name in os.listdir(target)) == 1
    second.abort()
    assert sum(name.startswith(first.staging.write_id) for name in os.listdir(target)) == 1
    write(target)
    assert len(os.listdir(target)) == 2


def test_leftovers_beside_a_savepoint_disturb_nobody(tmp_path: Path) -> None:
    savepoint = str(tmp_path / "sp")
    st.copy(ZOO, savepoint)
    for name in (".statetool-0", ".statetool-0.over", "0-keyed-1"):
        (tmp_path / "sp" / name).write_bytes(b"left")
    assert st.verify(savepoint).ok
    st.copy(savepoint, str(tmp_path / "copy"))
    assert os.listdir(tmp_path / "copy") == ["_metadata"]
    with pytest.raises(TargetExistsError, match="already contains a snapshot"):
        st.copy(ZOO, savepoint, take_over=True)


def test_a_pid_of_another_process_is_not_taken_for_that_of_a_write() -> None:
    marker = json.loads(owner.describe_owner())

    def running(**changed: object) -> bool | None:
        return owner.is_running(json.dumps({**marker, **changed}).encode(), "no write of this process")

    assert running() is False
    assert running(started="1") is False  # the system reused the PID for a later process
    assert running(host="elsewhere") is None
    assert owner.is_running(b"no JSON", "x") is None


def test_every_writing_command_takes_over(tmp_path: Path) -> None:
    target = str(tmp_path / "sp")
    first = begin(target)
    refused = CliRunner().invoke(cli, ["uid", ZOO, target, "timers=t"])
    assert refused.exit_code == 2
    assert "--take-over" in refused.stderr
    done = CliRunner().invoke(cli, ["uid", ZOO, target, "timers=t", "--take-over"])
    assert done.exit_code == 0, done.stderr
    assert st.verify(target).ok
    del first
    pairs = ({"source", "target"}, {"src", "dst"})
    writing = [c for c in map(command_of, commands()) if any(pair <= {p.name for p in c.params} for pair in pairs)]
    assert len(writing) >= 17
    for command in writing:
        assert "take_over" in {p.name for p in command.params}, command.name


class Interrupter:
    """Raises ``KeyboardInterrupt`` at the n-th line that a write runs in the modules."""

    modules: Final = {publish.__file__, targets.__file__, marks.__file__, owner.__file__}

    def __init__(self, line: int) -> None:
        self.left = line
        self.place = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self.modules:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def interrupted_at(line: int, target: str) -> tuple[str, KeyboardInterrupt | None]:
    interrupter = Interrupter(line)
    before = sys.gettrace()
    sys.settrace(interrupter)
    try:
        write(target)
    except KeyboardInterrupt as error:
        return interrupter.place, error
    finally:
        sys.settrace(before)
    return interrupter.place, None


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.full)])
def test_an_interrupt_at_any_line_leaves_a_whole_savepoint_or_none(tmp_path: Path, step: int) -> None:
    complete = 0
    for line in range(1, 2000, step):
        target = tmp_path / str(line)
        place, error = interrupted_at(line, str(target))
        if not place:
            break
        names = os.listdir(target) if target.exists() else []
        if "_metadata" in names:
            complete += 1
            assert [(target / n).read_bytes() for n in names if "-state-" in n] == [b"abc"], place
            assert error is None or "no savepoint" not in str(error), place
        else:
            assert error is not None, place
            assert "complete" not in str(error) or "unknown" in str(error), place
            write(str(target), take_over=True)
            assert len(os.listdir(target)) == 2, place
    assert 0 < complete < line // step


def test_an_interrupt_after_the_commit_says_that_the_savepoint_is_complete(tmp_path: Path) -> None:
    target = str(tmp_path / "sp")
    with pytest.raises(KeyboardInterrupt, match=r"the savepoint in .* is complete"), Publication(target) as publication:  # noqa: PT012
        publication.commit(b"meta", [])
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt, match="no savepoint was written"), Publication(f"{target}2") as publication:
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["sp"]


def test_a_clean_up_that_fails_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(uri: str) -> None:
        raise PermissionError(13, "Permission denied")

    with Publication(str(tmp_path / "sp")) as publication:
        monkeypatch.setattr(targets, "remove", denied)
        monkeypatch.setattr(targets, "put_new", lambda uri, data, through: Path(uri).write_bytes(data))
        with pytest.warns(UserWarning, match="is complete, but .* could not be .*removed: .*denied"):
            publication.commit(b"meta", [])
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # others may be about what tests before have left open
            publication.commit(b"meta", [])
    assert (tmp_path / "sp" / "_metadata").read_bytes() == b"meta"


def test_an_unknown_end_is_told_and_nothing_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = f"memory://{tmp_path.name}/sp"

    def lost(*_: object, **__: object) -> None:
        raise WriteFailedError("no answer")

    publication = Publication(target)
    with pytest.raises(WriteFailedError, match=r"unknown whether _metadata was written .*--take-over"), publication:  # noqa: PT012
        with publication.staging.create() as f:
            f.write(b"abc")
        monkeypatch.setattr(targets, "put_new", lost)
        publication.commit(b"meta", [f.staged])
    monkeypatch.undo()
    assert f.staged.name in targets.list_sizes(target)
    # The request may be completed as long as the process exists.
    with pytest.raises(TargetExistsError, match="may still be running"):
        write(target)
    files.file_system(target)[0].pipe(f"/{tmp_path.name}/sp/_metadata", b"meta")
    with pytest.raises(TargetExistsError, match="contains a snapshot"):
        write(target, take_over=True)


def test_files_removed_by_others_take_the_savepoint_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_new = targets.put_new

    def disturbed(uri: str, data: bytes, **options: Any) -> None:
        put_new(uri, data, **options)
        if uri.endswith("_metadata"):
            for path in (tmp_path / "sp").glob("*-state-*"):
                path.unlink()

    monkeypatch.setattr(targets, "put_new", disturbed)
    with pytest.raises(FormatError, match=r"found no file.*nothing was published"):
        write(str(tmp_path / "sp"))
    assert os.listdir(tmp_path) == []
