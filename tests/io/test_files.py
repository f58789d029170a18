"""Local files that change while they are read, and invalid paths."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import statetool
from statetool.errors import FormatError, SnapshotNotFoundError
from statetool.io import files
from statetool.io.files import InputFile

#: A process that maps a file is killed (SIGBUS) when it accesses truncated bytes.
_TRUNCATE = """
import os, sys
from statetool.errors import FormatError
from statetool.io.files import InputFile
path = sys.argv[1]
with InputFile(path) as f:
    kept = f.read_at(0, f.size)
    os.truncate(path, 10)
    assert bytes(kept) == b"x" * 100_000
    assert bytes(f.read_at(0, 10)) == b"x" * 10
    try:
        bytes(f.read_at(0, 100_000))
    except FormatError as error:
        print(error)
"""


def test_a_file_that_is_truncated_while_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_bytes(b"x" * 100_000)
    done = subprocess.run([sys.executable, "-c", _TRUNCATE, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert f"expected 100000 bytes, found 10 [file {file}, offset 0]" in done.stdout
    assert "truncated while it was read" in done.stdout


def test_reads_of_one_file_in_several_threads(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    file = tmp_path / "state"
    file.write_bytes(b"".join(n.to_bytes(4, "big") for n in range(50_000)))
    with InputFile(str(file)) as f, ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda n: int.from_bytes(f.read_at(4 * n, 4), "big"), range(50_000))
        assert list(found) == list(range(50_000))
        with pytest.raises(FormatError, match="the file has 200000 bytes in all"):
            f.read_at(199_999, 2)


def test_links_in_a_circle(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for read in (statetool.load, statetool.list_snapshots, statetool.orphans, statetool.verify):
        with pytest.raises(SnapshotNotFoundError, match=r"(?i)too many levels of symbolic links") as error:
            read(str(loop))
        assert str(loop) in str(error.value)


def test_a_working_directory_that_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for read in (statetool.load, statetool.list_snapshots, files.canonical):
        with pytest.raises(SnapshotNotFoundError, match=r"the working directory does not exist"):
            read("savepoint-1")
    os.chdir(tmp_path)
