"""Folders of the user's, for what is made once and found again: nobody else may write to them, as what lies there is executed."""

from __future__ import annotations

import getpass
import os
import stat
import tempfile
from pathlib import Path


def cache_folders(kind: str) -> list[Path]:
    """Return where things of a kind may be kept, best first: the user's cache folder, then a folder for temporary files."""
    cached = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # A user whom the machine does not know has no home, and the path then stays as it is.
    places = [] if cached.startswith("~") else [Path(cached) / "statetool" / kind]
    temporary = Path(tempfile.gettempdir()) / f"statetool-{getattr(os, 'getuid', getpass.getuser)()}"
    return [*places, temporary / kind] if _is_private(temporary) else places


def writable(folder: Path) -> bool:
    """Make a folder, and tell whether files can be put into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _is_private(folder: Path) -> bool:
    """Make a folder that nobody else can write to."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return mine and stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
