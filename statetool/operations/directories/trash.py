"""Trash folders: files are moved there instead of being deleted, and one call moves them back.

A trash folder is located in the directory that is cleaned up, so it is in the same file system::

    ROOT/.statetool-trash/20260131T120000Z-0123abcd/manifest.json    every file with its size and time, written before the first move
    ROOT/.statetool-trash/20260131T120000Z-0123abcd/files/chk-7/...  the files under their paths below ROOT

Remove a folder to free its space.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Final

from statetool.errors import FormatError, OptionError, TargetExistsError, UnknownNameError, several, suggest
from statetool.io import files, targets
from statetool.io.listing import TRASH_NAME, FoundFile, stat

_MANIFEST: Final = "manifest.json"
_FILES: Final = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashedFile:
    """A file in a trash folder. ``path`` is relative to the directory that was cleaned up, ``modified_ms`` in epoch milliseconds."""

    path: str
    size_bytes: int
    modified_ms: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Trash:
    """One trash folder of a directory."""

    root: str
    trash_id: str

    @classmethod
    def new(cls, root: str) -> Trash:
        """Return a folder with a new name. Nothing is written."""
        time = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        return cls(files.canonical(root), f"{time}-{uuid.uuid4().hex[:8]}")

    @classmethod
    def find(cls, root: str, trash_id: str) -> Trash:
        """Return an existing folder.

        Raises
        ------
        UnknownNameError
            The directory has no such folder.
        """
        root = files.canonical(root)
        known = [n for n, size in targets.list_sizes(files.join(root, TRASH_NAME)).items() if size is None]
        if trash_id not in known:
            raise UnknownNameError(f"{root} has no trash folder {trash_id!r}", hint=suggest(trash_id, sorted(known)))
        return cls(root, trash_id)

    @property
    def folder(self) -> str:
        """URI of the folder."""
        return files.join(self.root, f"{TRASH_NAME}/{self.trash_id}")

    def place_of(self, path: str) -> str:
        """Return the URI of a file in the folder, from its path below the directory."""
        return files.join(self.folder, f"{_FILES}/{path}")

    def store_time_ms(self) -> int:
        """Return the present time by the clock of the file system: that of a file written now.

        Raises
        ------
        OptionError
            The file system does not report times.
        """
        probe = files.join(self.root, f"{TRASH_NAME}/clock-{uuid.uuid4()}")
        targets.make_dir(files.parent(probe))
        targets.put_new(probe, b"")
        try:
            found = stat(probe)
        finally:
            targets.remove(probe)
            targets.remove_dir(files.parent(probe))  # unless it has trash
        if found is None or found.modified_ms is None:
            raise OptionError(
                f"the file system of {self.root} does not report the age of files",
                hint="clean up with the tools of the file system, after the job has ended",
            )
        return found.modified_ms

    def describe(self, file: FoundFile, reason: str) -> TrashedFile:
        """Return the row of a file below the directory."""
        path = file.uri.removeprefix(self.root.rstrip("/") + "/")
        return TrashedFile(path=path, size_bytes=file.size_bytes, modified_ms=file.modified_ms, reason=reason)

    def take(self, rows: Iterable[TrashedFile]) -> list[TrashedFile]:
        """Move files into the folder, in this order, and return those that still existed.

        Raises
        ------
        WriteFailedError
            The file system refuses a move. The files moved before can be restored.
        """
        rows = list(rows)
        targets.make_dir(self.folder)
        manifest = json.dumps({"root": self.root, "files": [asdict(row) for row in rows]}, indent=1)
        targets.put_new(files.join(self.folder, _MANIFEST), manifest.encode())
        return [row for row in rows if targets.move(files.join(self.root, row.path), self.place_of(row.path))]

    def rows(self) -> list[TrashedFile]:
        """Return the files of the manifest, whether they are still in the folder or not.

        Raises
        ------
        FormatError
            The manifest is missing or damaged.
        """
        uri = files.join(self.folder, _MANIFEST)
        try:
            data = targets.read_if_there(uri)
            return [_row(fields) for fields in json.loads(data or b"")["files"]]
        except (ValueError, LookupError, TypeError, RecursionError, IsADirectoryError) as error:
            raise FormatError(
                f"the manifest of the trash folder cannot be read: {error}",
                hint=f"move the files below {files.join(self.folder, _FILES)} back to the same paths below {self.root}",
            ).at(file=uri) from None

    def restore(self, names: Collection[str] | None = None) -> list[TrashedFile]:
        """Move files back to their old places, last first, so that ``_metadata`` follows the files that it needs.

        Parameters
        ----------
        names
            Paths of files to restore, by default all.

        Returns
        -------
        list of TrashedFile
            The restored files. Files that are not in the folder are left out: they were never moved, or already restored.

        Raises
        ------
        TargetExistsError
            Other files have taken some of the old places. All others are restored.
        """
        restored: list[TrashedFile] = []
        taken: list[str] = []
        for row in reversed([row for row in self.rows() if names is None or row.path in names]):
            place = files.join(self.root, row.path)
            moved = targets.size_of(self.place_of(row.path))
            if moved is None:
                continue
            if targets.size_of(place) == moved == row.size_bytes and not _differ(place, self.place_of(row.path)):
                targets.remove(self.place_of(row.path))  # a move was interrupted when both names had the file
                restored.append(row)
                continue
            try:
                if targets.move(self.place_of(row.path), place):
                    restored.append(row)
            except TargetExistsError:
                taken.append(place)
        if taken:
            raise TargetExistsError(
                f"{several(len(taken), 'file')} cannot be restored, because another file is there: {taken[0]}",
                hint=f"compare them with those in {files.join(self.folder, _FILES)}",
            )
        return restored


def _row(fields: Any) -> TrashedFile:
    """Return a file of a manifest.

    Raises
    ------
    ValueError, LookupError, TypeError
        Its fields are not those of a file below the directory.
    """
    row = TrashedFile(**fields)
    whole = isinstance(row.size_bytes, int) and isinstance(row.modified_ms, int | None)
    if not whole or not isinstance(row.path, str) or not isinstance(row.reason, str):
        raise TypeError(f"wrong types of fields: {fields!r}")
    row.path.encode()
    if {"", ".", ".."} & set(row.path.split("/")) or "\0" in row.path:
        raise ValueError(f"a path outside of the directory: {row.path!r}")
    return row


def _differ(first: str, second: str) -> bool:
    with files.InputFile(first) as a, files.InputFile(second) as b:
        size = targets.size_of(first) or 0
        step = 8 << 20
        return any(
            a.read_at(at, min(step, size - at)) != b.read_at(at, min(step, size - at)) for at in range(0, size, step)
        )
