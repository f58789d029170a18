"""The directory of an exported table, which appears complete, and what a killed export left there.

A local directory is written beside the target, in a hidden one that is renamed at the end: a killed process leaves no target. In other file
systems, files are written in the target, and ``_SUCCESS`` is added last. In both, a marker names the process that writes
(:mod:`statetool.io.owner`). The next export to the same target removes the files of a process of this machine that has ended.

Whether a process of another machine has ended cannot be known. In an object store, it therefore writes its marker again every minute. A marker
that is older than a quarter of an hour, by the clock of the store, is that of a killed export. Markers of earlier releases, which are written
once, count as those of running exports for a day. A process that stood still for so long notices that its marker is gone, and gives up.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa

from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError, TargetExistsError
from statetool.io import owner
from statetool.io.files import exists, file_system, is_dir, is_local, list_dir, local_path
from statetool.io.listing import stat
from statetool.io.targets import make_folders, read_if_there, writing

#: Folder of unfinished files below the target.
STAGING: Final = "_temporary"
#: Name of the folders to which snapshots are appended, and of their column.
CHECKPOINT: Final = "checkpoint_id"
_MARKER: Final = "owner-"
_NOTE: Final = "an export of statetool is written here"
#: Seconds between two writes of the marker in an object store.
_BEAT_S: Final = 60.0
#: Age of a marker of another machine at which its export counts as killed; and of one that is written once.
_DEAD_S: Final = 15 * 60
_DEAD_WITHOUT_BEATS_S: Final = 24 * 3600
_OWN_FILE: Final = re.compile(r"([^/]+=[^/]*/)?part-[0-9a-f]{32}\.[a-z]+")


class _Export:
    """A running export of this process, for as long as it is referred to."""


@contextmanager
def new_directory(target: str) -> Iterator[str]:
    """Yield the directory in which to write a new one: a hidden one beside a local target, which becomes the target at the end.

    An error removes what was written.

    Raises
    ------
    TargetExistsError
        The target was created in the meantime.
    """
    fs, root = file_system(target)
    if not is_local(target):
        try:
            yield target
        except TargetExistsError:
            raise
        except BaseException:
            remove_folder(fs, root)
            raise
        return
    folder, _, name = root.rpartition("/")
    _remove_killed_local(fs, folder, name)
    write_id, export = uuid.uuid4().hex, _Export()
    place, marker = (f"{folder}/.{name}.{write_id}.{end}" for end in ("partial", "owner"))
    owner.RUNNING[write_id] = export
    try:
        with writing(target):
            os.makedirs(folder, exist_ok=True)
            fs.pipe_file(marker, owner.describe_owner(_NOTE))
        yield place
        with writing(target):
            try:
                os.rename(place, root)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
                raise target_exists(target) from None
    except BaseException:
        remove_folder(fs, place)
        raise
    finally:
        with suppress(OSError):
            fs.rm(marker)
        owner.RUNNING.pop(write_id, None)


def _remove_killed_local(fs: Any, folder: str, name: str) -> None:
    """Remove the hidden directories of exports to a target whose processes have ended."""
    marker = re.compile(rf"\.{re.escape(name)}\.([0-9a-f]{{32}})\.owner")
    with suppress(OSError):
        for found in filter(None, map(marker.fullmatch, os.listdir(folder))):
            path = f"{folder}/{found[0]}"
            if owner.is_running(read_if_there(path) or b"", found[1]) is False:
                remove_folder(fs, f"{path.removesuffix('owner')}partial")
                os.remove(path)


@contextmanager
def marked(fs: Any, staging: str, target: str) -> Iterator[Callable[[], None]]:
    """Mark a folder of unfinished files as written by this process, and show again and again that it runs.

    Yields the function that ends this, which fails if another export has taken over the target. The marker is removed with the folder.

    Raises
    ------
    TargetExistsError
        Something failed, because another export has taken over the target.
    """
    write_id, export = uuid.uuid4().hex, _Export()
    owner.RUNNING[write_id] = export
    make_folders(fs, staging)
    marker, content = f"{staging}/{_MARKER}{write_id}", owner.describe_owner(_NOTE, _BEAT_S)
    fs.pipe_file(marker, content)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(_BEAT_S):
            if _is_lost(fs, marker):
                return
            with suppress(OSError, StatetoolError):
                fs.pipe_file(marker, content)

    thread = threading.Thread(target=beat, name="statetool-export-marker", daemon=True)

    def stop() -> None:
        ended.set()
        thread.join()

    def finish() -> None:
        stop()
        if _is_lost(fs, marker):
            raise _taken_over(target)

    thread.start()
    try:
        yield finish
    except BaseException as error:
        if not ended.is_set() and _is_lost(fs, marker):
            raise _taken_over(target) from error
        raise
    finally:
        stop()
        owner.RUNNING.pop(write_id, None)


def _taken_over(target: str) -> TargetExistsError:
    return TargetExistsError(
        f"{target} was taken over by another export, as this one showed no sign of life",
        hint="look at what the other one wrote, or choose a new directory",
    )


def _is_lost(fs: Any, marker: str) -> bool:
    """Return True if it is certain that a marker is gone."""
    try:
        fs.invalidate_cache()
        return not fs.exists(marker)
    except (OSError, StatetoolError):
        return False


def _remove_killed_remote(target: str) -> None:
    """Remove what exports left in a target without ``_SUCCESS``, if they have ended and nothing else is there."""
    fs, root = file_system(target)
    fs.invalidate_cache()
    with suppress(FileNotFoundError):
        names = [name.removeprefix(root).lstrip("/") for name in fs.find(root)]
        markers = [name for name in names if name.startswith(f"{STAGING}/{_MARKER}")]
        own = all(name.startswith(f"{STAGING}/") or _OWN_FILE.fullmatch(name) for name in names)
        if markers and own and all(_wait_s(f"{target.rstrip('/')}/{marker}") == 0 for marker in markers):
            remove_folder(fs, root)


def _wait_s(marker: str) -> float | None:
    """Return the seconds after which an export counts as killed, 0 if it has ended; ``None`` if it runs, or nothing can be said."""
    content = read_if_there(marker) or b""
    running = owner.is_running(content, marker.rpartition(_MARKER)[2])
    if running is not None:
        return None if running else 0
    clock = f"{marker.rpartition('/')[0]}/clock-{uuid.uuid4().hex}"
    fs, path = file_system(clock)
    fs.pipe_file(path, b"")
    try:
        found, now = stat(marker), stat(clock)
    finally:
        fs.rm(path)
    if found is None or now is None or found.modified_ms is None or now.modified_ms is None:
        return None
    limit = _DEAD_S if owner.has_beats(content) else _DEAD_WITHOUT_BEATS_S
    return max(0, limit - (now.modified_ms - found.modified_ms) / 1000)


def target_exists(target: str) -> TargetExistsError:
    """Return the error for a directory that exists, which says if it is that of an export that did not end."""
    if is_local(target) or exists(f"{target.rstrip('/')}/_SUCCESS"):
        return TargetExistsError(f"{target} already exists", hint="choose a new directory")
    found = f"{target} already exists, without _SUCCESS"
    hint = "if none runs, remove the directory, or choose a new one"
    for marker in _markers_in(target):
        wait_s = _wait_s(marker)
        name = owner.name_owner(read_if_there(marker) or b"") or "another machine"
        if wait_s:
            words = f"{found}: an export by {name} runs, or was killed"
            again = f"try again in {wait_s / 60:,.0f} minutes, when it counts as killed unless it gives a sign of life"
            return TargetExistsError(words, hint=f"{again}; {hint}")
    return TargetExistsError(f"{found}: an export to it runs, or was killed on another machine", hint=hint)


def _markers_in(target: str) -> list[str]:
    """Return the markers in a target that is not local."""
    staging = f"{target.rstrip('/')}/{STAGING}"
    try:
        return [uri for uri, _ in list_dir(staging) if uri.rpartition("/")[2].startswith(_MARKER)]
    except (OSError, SnapshotNotFoundError):
        return []


def export_place(schema: pa.Schema, target: str, append_as: int | None) -> str:
    """Return the directory that an export creates: the target, or a folder below it for a checkpoint.

    Raises
    ------
    TargetExistsError
        The directory exists.
    OptionError
        The table already has a column with the name of the folders.
    """
    if append_as is not None and CHECKPOINT in schema.names:
        raise OptionError(f"the table already has a column {CHECKPOINT}", hint="export it without --append")
    place = target if append_as is None else f"{target.rstrip('/')}/{CHECKPOINT}={append_as}"
    if not is_local(place):
        _remove_killed_remote(place)
    if exists(place) and not _is_empty(place):
        raise target_exists(place)
    return place


def _is_empty(place: str) -> bool:
    """Return True if a local directory is empty: a write may replace it, unless it is a link or the root of a volume."""
    if not is_local(place) or not is_dir(place):
        return False
    if os.path.islink(local_path(place)) or os.path.ismount(local_path(place)):
        return False
    return not list_dir(place)


def remove_folder(fs: Any, folder: str) -> None:
    """Remove a folder and its contents; in an object store it disappears with its last file."""
    with suppress(FileNotFoundError):
        fs.rm(folder, recursive=True)
