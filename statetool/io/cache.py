"""Private cache folders of the user. Their files are executed, so nobody else may be able to write to them."""

from __future__ import annotations

import getpass
import os
import stat
import tempfile
from pathlib import Path


def cache_folders(kind: str) -> list[Path]:
    """Return the cache folders for files of a kind, best first: in the user's cache folder, then in a temporary one."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # The path of a user without a home directory stays unexpanded.
    folders = [] if cache_home.startswith("~") else [Path(cache_home) / "statetool" / kind]
    temporary = Path(tempfile.gettempdir()) / f"statetool-{getattr(os, 'getuid', getpass.getuser)()}"
    return [*folders, temporary / kind] if _is_private(temporary) else folders


def writable(folder: Path) -> bool:
    """Make a folder, and return True if files can be created in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def keep_newest(folder: Path, name: str, text: str, *, most: int) -> None:
    """Store a text, and remove the oldest files (``*.json``) above a number. Failures only cost time."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as stream:
            stream.write(text)
        os.replace(stream.name, folder / name)
        cached = sorted(folder.glob("*.json"), key=lambda f: f.stat().st_mtime)
        for old in cached[: max(0, len(cached) - most)]:
            old.unlink()
    except OSError:
        return


def _is_private(folder: Path) -> bool:
    """Make a folder, and return True if nobody else can write to it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return is_own and stat.S_ISDIR(status.st_mode) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
