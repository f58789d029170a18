"""Restriction of all paths, in requests and in the metadata of snapshots, to one directory.

Links are followed as long as they stay inside. Anyone with write access below the directory could change a link after it was checked: serve
only directories that nobody else can write to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

import statetool
from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError
from statetool.io import files
from statetool.operations.cluster.paths import resolve_directory
from statetool.operations.directories.snapshots import SnapshotRow
from statetool.snapshot.locate import METADATA_NAME

_NOT_BELOW: Final = re.compile(r"^[/~\\]|^[A-Za-z][A-Za-z0-9+.-]*:|(^|[/\\])\.\.([/\\]|$)|\0")
#: Maximum number of snapshots in a listing.
_MOST_SNAPSHOTS: Final = 500


class OutsideError(OptionError):
    """A path outside the served directory."""


class Root:
    """A directory of snapshots: a local path, any URI that fsspec can list, or the URL of a job for the directory of its checkpoints.

    Parameters
    ----------
    load
        Opens a snapshot whose path was checked.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist.
    StatetoolError
        The URL of a job cannot be resolved, as :func:`statetool.operations.cluster.paths.resolve_directory`.
    """

    def __init__(self, root: str, load: Callable[[str], statetool.Savepoint] | None = None) -> None:
        root = resolve_directory(root)
        self._load = load or statetool.load
        self._local = files.is_local(root)
        if not files.is_dir(root):
            raise SnapshotNotFoundError(f"{root} is not a directory")
        self._root = os.path.realpath(files.local_path(root)) if self._local else files.canonical(root)

    def open(self, name: str) -> statetool.Savepoint:
        """Open the snapshot at a path below the root. The locations of all of its files are checked first.

        Raises
        ------
        OutsideError
            The path, its metadata or a file named in the metadata is outside.
        StatetoolError
            There is no snapshot, or it cannot be read.
        """
        if _NOT_BELOW.search(name):
            raise OutsideError(f"{name!r} is not a path below the root", hint="give it as list_snapshots does")
        path = files.join(self._root, name) if name not in ("", ".") else self._root
        self._check(path)
        self._check(files.join(path, METADATA_NAME))
        savepoint = self._load(path)
        for row in savepoint.metadata_rows("files"):
            if not row.inline:
                self._check(row.path)
        return savepoint

    def rows(self) -> list[tuple[str, SnapshotRow]]:
        """Return the snapshots below the root with their names, by job and id."""
        rows = statetool.list_snapshots(self._root)[-_MOST_SNAPSHOTS:]
        return [(files.canonical(row.path).removeprefix(self._root).strip("/") or ".", row) for row in rows]

    def snapshots(self) -> Iterator[tuple[str, statetool.Savepoint | StatetoolError]]:
        """Yield the paths of snapshots below the root, each with the snapshot or the error raised when opening it."""
        for name in self._names():
            try:
                yield name, self.open(name)
            except StatetoolError as error:
                yield name, error

    def _names(self) -> list[str]:
        if self._local:
            walked = os.walk(self._root, followlinks=False)
            paths = [os.path.relpath(folder, self._root) for folder, _, names in walked if METADATA_NAME in names]
        else:
            rows = statetool.list_snapshots(self._root)
            paths = [r.path.removeprefix(self._root).strip("/") or "." for r in rows if r.metadata_version is not None]
        return sorted(paths)[:_MOST_SNAPSHOTS]

    def _check(self, path: str) -> None:
        """Raise an error for a path that is not below the root after links are followed."""
        if self._local and files.is_local(path):
            real = os.path.realpath(files.local_path(path))
            inside = os.path.commonpath([real, self._root]) == self._root
        else:
            # Some file systems interpret two dots, also in their escaped form, as the parent directory.
            inside = not self._local and f"{files.canonical(path)}/".startswith(f"{self._root}/")
            inside = inside and ".." not in unquote(path).replace("\\", "/").split("/")
        if not inside:
            raise OutsideError(f"{path} is outside the served directory")
