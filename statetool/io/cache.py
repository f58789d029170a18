"""Private cache folders of the user. Their files are executed, so nobody else may be able to write to them.

A folder is made with mode 0700. One that belongs to another user, or that others can write to, is not used. Looking for a file makes no
folder.
"""

from __future__ import annotations

import getpass
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

#: The superuser, who may have filled the cache of an image.
_ROOT: Final = 0


def cache_folders(kind: str) -> list[Path]:
    """Return the cache folders for files of a kind, best first: in the user's cache folder, then in a temporary one."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # The path of a user without a home directory stays unexpanded.
    folders = [] if cache_home.startswith("~") else [Path(cache_home) / "statetool"]
    try:
        folders.append(Path(tempfile.gettempdir()) / f"statetool-{getattr(os, 'getuid', getpass.getuser)()}")
    except FileNotFoundError:  # a container whose file system is read-only
        pass
    return [folder / kind for folder in folders if is_private(folder)]


def writable(folder: Path) -> bool:
    """Make a folder that only its owner can use, and return True if files can be created in it."""
    missing = [level for level in (folder, *folder.parents) if not os.path.lexists(level)]
    try:
        for level in reversed(missing):
            level.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    # In a shared folder, another user may have made one of the levels first.
    return all(map(is_private, (folder, *missing))) and os.access(folder, os.W_OK)


def is_private(folder: Path) -> bool:
    """Return True if a folder belongs to this user or to root, and nobody else can write to it, or if it does not exist.

    A link is followed only if its target is safe and the link belongs to this user or to root, too.
    """
    try:
        link, status = folder.lstat(), folder.stat()
    except FileNotFoundError:
        return not os.path.lexists(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "getuid"):  # Windows, where the user's folders have access control lists instead
        return True
    trusted = {os.getuid(), _ROOT}
    return {link.st_uid, status.st_uid} <= trusted and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


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
