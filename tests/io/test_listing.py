"""Listings of local directories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from statetool.errors import SnapshotNotFoundError
from statetool.io import listing
from statetool.io.listing import FoundFile, list_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2", "b/c/3", "a", "d", ".statetool-trash/4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * len(name))
    (tmp_path / "e").symlink_to(tmp_path / "nothing")
    (tmp_path / "f").symlink_to(tmp_path / "d")
    return tmp_path


def found_in(folder: Path) -> list[FoundFile]:
    return [
        FoundFile(uri=str(folder / name), size_bytes=status.st_size, modified_ms=status.st_mtime_ns // 1_000_000)
        for name in ("a", "b/2", "b/c/3", "d", "f")
        for status in [(folder / name).stat()]
    ]


@pytest.mark.parametrize("in_directory", [True, False])
def test_files_are_listed_by_name_without_broken_links(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, in_directory: bool
) -> None:
    monkeypatch.setattr(listing, "_IN_DIRECTORY", in_directory)
    assert list(list_files(str(folder))) == found_in(folder)


def test_the_size_of_a_file_is_looked_up_in_its_open_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, names = found_in(folder), []
    stat = os.stat

    def counted(path: Any, **more: Any) -> os.stat_result:
        names.append((path, bool(more)))
        return stat(path, **more)

    monkeypatch.setattr(os, "stat", counted)
    assert list(list_files(str(folder))) == expected
    assert names == [(name, True) for name in ("a", "d", "e", "f", "2", "3")]


@pytest.mark.parametrize("in_directory", [True, False])
def test_what_cannot_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch, *, in_directory: bool) -> None:
    monkeypatch.setattr(listing, "_IN_DIRECTORY", in_directory)
    os.mkfifo(folder / "pipe")
    with pytest.raises(SnapshotNotFoundError, match="nothing does not exist"):
        list(list_files(str(folder / "nothing")))
    for name in ("a", "pipe"):
        with pytest.raises(SnapshotNotFoundError, match=f"{name} cannot be listed: Not a directory"):
            list(list_files(str(folder / name)))


def test_a_directory_that_is_deleted_meanwhile_is_left_out(folder: Path) -> None:
    files = list_files(str(folder))
    assert next(files).uri == str(folder / "a")
    for name in ("b/2", "b/c/3"):
        (folder / name).unlink()
    for name in ("b/c", "b"):
        (folder / name).rmdir()
    assert [file.uri for file in files] == [str(folder / name) for name in ("d", "f")]
