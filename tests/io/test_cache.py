"""Cache folders: who may own them, their modes, and processes without a folder to write to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from statetool.demo import SAVEPOINT
from statetool.io.cache import cache_folders, is_private, writable
from statetool.kernels.core import kept

OTHER = 12345
#: Variables that choose another folder, or compile more than a small command does.
UNSET = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "STATETOOL_JIT")


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home, with a temporary folder beside it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "home"


def test_new_folders_are_private_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        folder = cache_folders("kernels")[0] / "stamp"
        assert not (home / ".cache").exists()  # looking makes nothing
        assert writable(folder)
    finally:
        os.umask(before)
    assert folder == home / ".cache" / "statetool" / "kernels" / "stamp"
    assert {mode(level) for level in (folder, *folder.parents[:3])} == {0o700}


@pytest.mark.parametrize("bits", [0o770, 0o702, 0o777])
def test_a_folder_that_others_can_write_to_is_not_used(home: Path, bits: int) -> None:
    folder = home / ".cache" / "statetool"
    folder.mkdir(parents=True)
    folder.chmod(bits)
    assert cache_folders("uids") == [home.parent / "tmp" / f"statetool-{os.getuid()}" / "uids"]
    folder.chmod(0o755)  # made by hand: others can read it
    assert cache_folders("uids")[0] == folder / "uids"


def test_a_folder_of_another_user_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / ".cache" / "statetool"
    folder.mkdir(parents=True)
    owner = os.stat(folder).st_uid
    # Seen by another user than its owner, who need not be root as in a container.
    monkeypatch.setattr("statetool.io.cache._ROOT", OTHER)
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert cache_folders("uids") == [home.parent / "tmp" / f"statetool-{owner + 1}" / "uids"]
    assert not is_private(folder)
    assert not writable(folder)


def test_a_link_by_another_user_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "own")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    assert is_private(tmp_path / "link")
    assert not is_private(tmp_path / "dangling")
    lstat = Path.lstat

    def planted(path: Path) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], OTHER, *found[5:10])) if path.name == "link" else found

    monkeypatch.setattr(Path, "lstat", planted)
    assert not is_private(tmp_path / "link")
    assert is_private(tmp_path / "own")


def test_a_folder_that_another_user_makes_first_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache_folders("kernels")[0]
    mkdir = Path.mkdir

    def raced(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        mkdir(path, mode, parents, exist_ok)
        if path.name == "statetool":
            path.chmod(0o777)

    monkeypatch.setattr(Path, "mkdir", raced)
    assert not writable(folder)


def test_numbas_folder_is_checked_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home))
    assert kept._own_folders() == [home / "statetool"]
    (home / "statetool").mkdir()
    (home / "statetool").chmod(0o777)
    assert kept._own_folders() == []


def test_without_any_folder_nothing_is_cached(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setenv("HOME", "/proc")
    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    assert not any(map(writable, cache_folders("kernels")))


def test_commands_work_if_the_home_is_read_only(tmp_path: Path) -> None:
    # Nobody can make a file in /proc, not even root.
    variables = {k: v for k, v in os.environ.items() if k not in UNSET}
    variables |= {"HOME": "/proc", "TMPDIR": str(tmp_path)}
    code = (
        "import sys; from statetool.cli.main import main; from statetool.kernels.core import kept\n"
        f"print(kept.target(), file=sys.stderr); sys.argv[1:] = ['count', {SAVEPOINT!r}, 'reminders']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    own = tmp_path / f"statetool-{os.getuid()}"
    assert done.returncode == 0, done.stderr
    assert done.stderr.split() == [str(own / "kernels" / kept.stamp())]
    assert {path for path in tmp_path.iterdir()} == {own}
    assert mode(own) == 0o700
