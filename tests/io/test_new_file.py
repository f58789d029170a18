"""Local files are flushed to disk while they are written, and are complete on systems that ignore such advice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statetool.io import targets
from statetool.io.targets import NewFile

_PIECE = bytes(range(256)) * 4


def written(path: Path, pieces: int) -> bytes:
    """Return the content of a file with some pieces."""
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
