"""Local files are flushed to disk while they are written, and are complete on systems that ignore such advice."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from statetool.errors import TargetExistsError, WriteFailedError
from statetool.io import targets
from statetool.io.targets import NewFile

_PIECE = bytes(range(256)) * 4


def written(path: Path, pieces: int) -> bytes:
    """Return the content of a file written in pieces."""
    f = NewFile(str(path))
    for _ in range(pieces):
        f.write(_PIECE)
    f.close()
    return path.read_bytes()


@pytest.fixture
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_WINDOW_BYTES", 2 * len(_PIECE))


@pytest.mark.usefixtures("_small_windows")
def test_the_system_is_told_that_what_is_written_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advice: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *words: advice.append(words), raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    assert written(tmp_path / "f", 5) == _PIECE * 5
    assert advice == [(0, 2 * len(_PIECE), 4), (0, 4 * len(_PIECE), 4)]


@pytest.mark.usefixtures("_small_windows")
@pytest.mark.parametrize("system", ["has no advice", "refuses it"])
def test_a_system_without_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    if system == "has no advice":
        monkeypatch.delattr(os, "posix_fadvise", raising=False)
    else:

        def refuse(*_: object) -> None:
            raise OSError("not on this file system")

        monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    assert written(tmp_path / "f", 5) == _PIECE * 5


class Store:
    """An object store whose package may support conditional uploads, and whose server may not."""

    protocol = "store"

    def __init__(self, error: int | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.error = error

    def invalidate_cache(self) -> None:
        pass

    def exists(self, path: str) -> bool:
        return False  # another write creates the object right after the check

    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        if mode == "create" and self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        if mode == "create" and path in self.objects:
            raise FileExistsError(path)
        self.objects[path] = data


class EarlierStore(Store):
    def pipe_file(self, path: str, data: bytes) -> None:  # type: ignore[override]
        self.objects[path] = data


@pytest.mark.parametrize("store", [Store(), Store(errno.ENOSYS), EarlierStore()])
def test_uploads_are_conditional_where_the_store_can(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "file_system", lambda uri: (store, uri))
    targets.put_new("store://a/b", b"first")
    assert store.objects == {"store://a/b": b"first"}
    if type(store) is Store and store.error is None:
        with pytest.raises(TargetExistsError, match="already exists"):
            targets.put_new("store://a/b", b"second")
        assert store.objects == {"store://a/b": b"first"}


def test_a_refused_upload_is_not_tried_without_its_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(errno.EACCES)
    monkeypatch.setattr(targets, "file_system", lambda uri: (store, uri))
    with pytest.raises(WriteFailedError, match="Permission denied"):
        targets.put_new("store://a/b", b"first")
    assert store.objects == {}
