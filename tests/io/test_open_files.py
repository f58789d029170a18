"""Local files that stay open during a pass: shared as long as they are the files at their paths, and bounded in number."""

from __future__ import annotations

import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

from statetool.errors import SnapshotNotFoundError
from statetool.io import open_files
from statetool.io.files import InputFile, Stamp, stamp_of
from statetool.io.open_files import OpenFile, close_file, keeping_open, open_file

_MOST = 3


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without open files, whatever readers of other tests are still open, and end without them."""
    fresh = {"most_idle": _MOST, "passes": 0, "shared": {}, "idle": OrderedDict(), "turns": {}}
    for name, value in fresh.items():
        monkeypatch.setattr(open_files._FILES, name, value)
    yield
    assert open_count(tmp_path) == 0
    assert not open_files._FILES.shared
    assert not open_files._FILES.turns


def open_count(folder: Path) -> int:
    """Return how often files in a folder are open in this process."""
    inside = {(status.st_dev, status.st_ino) for status in (file.stat() for file in folder.iterdir())}
    count = 0
    for descriptor in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            status = os.fstat(int(descriptor))
            count += (status.st_dev, status.st_ino) in inside
    return count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "file"
    file.write_bytes(b"first")
    return file


def read(path: Path) -> bytes:
    opened = open_file(str(path))
    try:
        return bytes(opened.file.read_at(0, opened.file.size))
    finally:
        close_file(opened)


def visit(path: Path) -> OpenFile:
    """Open and close a file."""
    opened = open_file(str(path))
    close_file(opened)
    return opened


def opening(path: Path) -> int:
    """Return the number of threads that open a file."""
    turn = open_files._FILES.turns.get(str(path))
    return 0 if turn is None else turn.threads


def test_a_file_is_shared_in_a_pass_only(path: Path) -> None:
    assert visit(path) is not visit(path)
    with keeping_open():
        first = visit(path)
        with keeping_open():
            assert visit(path) is first
        assert visit(path) is first
    assert visit(path) is not first


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_was_replaced_or_changed_is_opened_again(path: Path, *, held: bool, in_place: bool) -> None:
    with keeping_open():
        first = open_file(str(path))
        if not held:
            close_file(first)
        new = path if in_place else path.with_name("new")
        new.write_bytes(b"second")
        os.replace(new, path)
        assert read(path) == b"second"
        assert visit(path) is not first
        if held:
            assert bytes(first.file.read_at(0, 5)) == (b"secon" if in_place else b"first")
            close_file(first)
        assert read(path) == b"second"


@pytest.mark.parametrize("held", [False, True])
def test_a_file_that_was_deleted(path: Path, *, held: bool) -> None:
    with keeping_open():
        first = open_file(str(path))
        if not held:
            close_file(first)
        path.unlink()
        for _ in range(2):
            with pytest.raises(SnapshotNotFoundError, match="file does not exist"):
                open_file(str(path))
        if held:
            assert bytes(first.file.read_at(0, 5)) == b"first"
            close_file(first)


def test_the_least_recently_used_files_are_closed(tmp_path: Path) -> None:
    paths = [tmp_path / str(n) for n in range(2 * _MOST)]
    for file in paths:
        file.write_bytes(b"")
    with keeping_open():
        held = [open_file(str(file)) for file in paths]
        assert open_count(tmp_path) == len(paths)
        for opened in held:
            close_file(opened)
        assert open_count(tmp_path) == _MOST
        # The first ones were closed; each that is opened again takes the place of the next.
        assert not any(visit(file) is opened for file, opened in zip(paths, held, strict=True))
        kept = visit(paths[0])
        for file in paths[1:_MOST]:
            visit(file)
            assert visit(paths[0]) is kept


def test_a_reader_may_outlive_the_pass(path: Path) -> None:
    with keeping_open():
        opened = open_file(str(path))
    assert bytes(opened.file.read_at(0, 5)) == b"first"
    close_file(opened)


def test_threads_share_files(tmp_path: Path) -> None:
    paths = [tmp_path / str(n) for n in range(2 * _MOST)]
    for number, file in enumerate(paths):
        file.write_bytes(bytes([number]) * 100)
    with keeping_open(), ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read, paths * 200))
    assert found == [bytes([n]) * 100 for n in range(len(paths))] * 200


@pytest.mark.parametrize("step", ["open", "share", "close"])
def test_a_slow_file_does_not_hold_up_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    paths = [tmp_path / str(n) for n in range(2)]
    both = Barrier(2, timeout=600)  # each thread waits until the other one is in the same step

    class SlowFile(InputFile):
        def __init__(self, uri: str) -> None:
            super().__init__(uri)
            if step == "open":
                both.wait()

        def close(self) -> None:
            if step == "close":
                both.wait()
            super().close()

    def slow_stamp(status: os.stat_result) -> Stamp:
        if step == "share":
            both.wait()
        return stamp_of(status)

    for file in paths:
        file.write_bytes(b"first")
    monkeypatch.setattr(open_files, "InputFile", SlowFile)
    monkeypatch.setattr(open_files, "stamp_of", slow_stamp)
    with ThreadPoolExecutor(2) as pool:
        if step == "close":
            assert list(pool.map(read, paths)) == [b"first"] * 2
        else:
            with keeping_open():
                assert list(pool.map(read, paths)) == [b"first"] * 2
                assert list(pool.map(read, paths)) == [b"first"] * 2


def test_threads_that_open_the_same_file_open_it_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others, opened = Event(), []

    class SlowFile(InputFile):
        def __init__(self, uri: str) -> None:
            opened.append(uri)
            assert others.wait(600)
            super().__init__(uri)

    monkeypatch.setattr(open_files, "InputFile", SlowFile)
    with keeping_open(), ThreadPoolExecutor(4) as pool:
        found = [pool.submit(read, path) for _ in range(4)]
        while not any(f.done() for f in found) and opening(path) < 4:
            time.sleep(0.001)
        others.set()
        assert [f.result() for f in found] == [b"first"] * 4
    assert opened == [str(path)]


def test_a_process_that_is_forked_in_a_pass_opens_its_own_files(path: Path) -> None:
    with keeping_open():
        first = visit(path)
        child = os.fork()
        if not child:
            with keeping_open():
                os._exit(0 if read(path) == b"first" and visit(path) is not first else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert visit(path) is first
