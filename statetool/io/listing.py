"""The files below a directory, with sizes and times, by one listing instead of a request per file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from operator import attrgetter
from typing import Any, Final, NamedTuple

from statetool.errors import SnapshotNotFoundError, StatetoolError
from statetool.io.files import (
    NO_FILE,
    canonical,
    check_bucket,
    file_system,
    forget_listing,
    is_local,
    join,
    list_dir,
    parent,
    reading,
)
from statetool.io.storage import storage_error

#: Folder of files that were deleted and can be restored (:mod:`statetool.operations.directories.trash`). Listings leave it out.
TRASH_NAME: Final = ".statetool-trash"
#: Whether the system lists an open directory, and looks for files in it.
_IN_DIRECTORY: Final = os.scandir in os.supports_fd and os.stat in os.supports_dir_fd
#: Names of the modification time in fsspec's file systems. An object is never changed, only created again.
_TIME_NAMES: Final = ("mtime", "LastModified", "last_modified", "modified", "updated", "created")


class FoundFile(NamedTuple):
    """A file, local ones by plain path; ``modified_ms`` is ``None`` if the file system does not report it."""

    uri: str
    size_bytes: int
    modified_ms: int | None


def list_files(root: str) -> Iterator[FoundFile]:
    """Yield every file below a directory, at any depth, except those in a trash folder.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist, or part of it cannot be listed for lack of permission.
    StorageError
        The storage fails.
    """
    with _listing(root):
        yield from _local_files(canonical(root)) if is_local(root) else _remote_files(root)


def find_directories(root: str, wanted: Callable[[str], bool], skipped: Collection[str]) -> Iterator[str]:
    """Yield the directories below a directory, at any depth, whose names are wanted, without listing them.

    Directories with the names in ``skipped`` are left out, too. Errors as for :func:`list_files`.
    """
    with _listing(root):
        yield from _find(canonical(root), wanted, skipped)


def find_links(root: str) -> Iterator[str]:
    """Yield the symbolic links below a local directory, at any depth, also those to nothing, except in a trash folder. Errors as for :func:`list_files`."""
    with _listing(root):
        yield from _links(canonical(root))


def _links(directory: str) -> Iterator[str]:
    below: list[str] = []
    # A running job deletes checkpoints that it no longer retains during the listing.
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.name != TRASH_NAME and entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
    for path in below:
        yield from _links(path)


def _find(directory: str, wanted: Callable[[str], bool], skipped: Collection[str]) -> Iterator[str]:
    for below in _directories_in(directory):
        name = below.rpartition("/")[2]
        if wanted(name):
            yield below
        elif name not in skipped:
            # A running job deletes checkpoints that it no longer retains during the listing.
            with contextlib.suppress(FileNotFoundError):
                yield from _find(below, wanted, skipped)


def _directories_in(directory: str) -> list[str]:
    if is_local(directory):
        with os.scandir(directory) as entries:
            return sorted(e.path for e in entries if e.is_dir(follow_symlinks=False))
    forget_listing(directory)
    return [uri for uri, is_directory in list_dir(directory) if is_directory]


@contextlib.contextmanager
def _listing(root: str) -> Iterator[None]:
    """Convert the errors of a listing."""
    try:
        yield
    except StatetoolError:
        raise
    except FileNotFoundError as e:
        check_bucket(root)
        raise SnapshotNotFoundError(f"{root} does not exist") from e
    except OSError as e:
        if not is_local(root):
            raise storage_error(e, root) from e
        raise SnapshotNotFoundError(f"{root} cannot be listed: {e.strerror or e}") from e


def _local_files(root: str) -> Iterator[FoundFile]:
    for found in _local_entries(root):
        if isinstance(found, FoundFile):
            yield found
        else:
            # A running job deletes checkpoints that it no longer retains during the listing.
            with contextlib.suppress(FileNotFoundError):
                yield from _local_files(found)


def _local_entries(root: str) -> list[FoundFile | str]:
    """Return the files and the paths of the directories in a directory, by name.

    There may be 200,000 files. The system takes a third less time for the size of each if it need not follow the whole path.
    """
    before = root if root.endswith("/") else f"{root}/"
    found: list[FoundFile | str] = []
    with _open_directory(root) as folder:
        with os.scandir(root if folder is None else folder) as entries:
            listed = sorted(entries, key=attrgetter("name"))
        for entry in listed:
            name = entry.name
            path = before + name
            if entry.is_dir(follow_symlinks=False):
                if name != TRASH_NAME:
                    found.append(path)
            elif entry.is_symlink() and entry.is_dir():
                continue  # its time is that of the directory: it is not a file
            elif name != TRASH_NAME and (file := _local_stat(path, name, folder)) is not None:
                found.append(file)
    return found


@contextlib.contextmanager
def _open_directory(path: str) -> Iterator[int | None]:
    """Open a directory in this block; ``None`` if the system cannot look for files in an open directory."""
    if not _IN_DIRECTORY:
        yield None
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _local_stat(path: str, name: str = "", folder: int | None = None) -> FoundFile | None:
    """Return size and time of a file, ``None`` if it does not exist.

    Parameters
    ----------
    name, folder
        Its name in an open directory, if there is one.
    """
    try:
        status = os.stat(path) if folder is None else os.stat(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise
    except ValueError:
        if "\0" in path:
            return None
        raise
    return FoundFile(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _remote_files(root: str) -> Iterator[FoundFile]:
    fs, path = file_system(root)
    fs.invalidate_cache(path)
    if not fs.exists(path):
        raise SnapshotNotFoundError(f"{root} does not exist")
    infos: Mapping[str, Mapping[str, Any]] = fs.find(path, detail=True)
    for name in sorted(infos):
        if infos[name].get("type") != "directory":
            relative = name.lstrip("/").removeprefix(path.strip("/")).lstrip("/")
            if TRASH_NAME in relative.split("/"):
                continue
            yield _from_info(join(root, relative) if relative else root, infos[name])


def stat(uri: str) -> FoundFile | None:
    """Return size and time of one file, ``None`` if it does not exist."""
    if is_local(uri):
        return _local_stat(canonical(uri))
    try:
        with reading(uri):
            fs, path = file_system(uri)
            return _from_info(uri, fs.info(path))
    except FileNotFoundError:
        return None


@dataclass(slots=True)
class FileStats:
    """Size and time of many files, as :func:`stat` returns them.

    Of a remote directory, the first file is requested. For further files the directory is listed, once: a lookup in the listing that a client
    keeps takes as long as the listing is. If a file is not found, the directory is listed again: a client may have kept an older listing.

    Attributes
    ----------
    forgets
        Listings that the client kept before do not count: files may have been deleted since.
    """

    forgets: bool = False
    _asked: set[str] = field(default_factory=set)
    _listed: dict[str, dict[str, FoundFile]] = field(default_factory=dict)
    #: Directories that were listed again.
    _renewed: set[str] = field(default_factory=set)

    def __call__(self, uri: str) -> FoundFile | None:
        """Return size and time of a file, ``None`` if it does not exist."""
        if is_local(uri):
            return stat(uri)
        folder = parent(uri)
        if folder not in self._asked:
            self._asked.add(folder)
            if self.forgets:
                forget_listing(folder)
            if (found := stat(uri)) is not None:
                return found
        if folder not in self._listed:
            self._listed[folder] = _files_in(folder)
        if uri not in self._listed[folder] and folder not in self._renewed:
            self._renewed.add(folder)
            forget_listing(folder)
            self._listed[folder] = _files_in(folder)
        return self._listed[folder].get(uri)


def sizes_in(folder: str) -> dict[str, int]:
    """Return the sizes of the files directly in a directory by name, none if it does not exist: one listing, also for 200,000 files.

    Raises
    ------
    StorageError
        The storage fails.
    """
    if is_local(folder):
        try:
            with os.scandir(canonical(folder) or "/") as entries:
                return {e.name: e.stat().st_size for e in entries if e.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            return {}
    try:
        with reading(folder):
            fs, path = file_system(folder)
            forget_listing(folder)
            infos: Sequence[Mapping[str, Any]] = fs.ls(path, detail=True)
    except (FileNotFoundError, SnapshotNotFoundError):
        return {}
    return {i["name"].rpartition("/")[2]: int(i.get("size") or 0) for i in infos if i["type"] != "directory"}


def _files_in(folder: str) -> dict[str, FoundFile]:
    """Return the files directly in a remote directory by their URIs, none if it does not exist."""
    try:
        with reading(folder):
            fs, path = file_system(folder)
            infos: Sequence[Mapping[str, Any]] = fs.ls(path, detail=True)
    except FileNotFoundError:
        return {}
    uris = (join(folder, info["name"].rstrip("/").rpartition("/")[2]) for info in infos)
    return {uri: _from_info(uri, info) for uri, info in zip(uris, infos, strict=True) if info["type"] != "directory"}


def _from_info(uri: str, info: Mapping[str, Any]) -> FoundFile:
    return FoundFile(uri=canonical(uri), size_bytes=int(info.get("size") or 0), modified_ms=_time_ms(info))


def _time_ms(info: Mapping[str, Any]) -> int | None:
    for name in _TIME_NAMES:
        value = info.get(name)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.replace("Z", "+00:00"))
            except ValueError:
                continue
        if isinstance(value, datetime):
            value = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value * 1000)
    return None
