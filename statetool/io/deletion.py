"""Distinguish a snapshot deleted while it was read from a damaged one.

Flink deletes checkpoints that it no longer retains: ``_metadata`` first, then the files. If ``_metadata`` is gone, a missing or short file
does not mean that the snapshot is damaged.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Final

from statetool.errors import CheckpointDeletedError, FormatError, SnapshotNotFoundError, StorageError
from statetool.io import files

_CHECKPOINT: Final = re.compile(r"chk-([0-9]+)")
#: Another Flink thread deletes shared files, so one may disappear shortly before ``_metadata`` does.
_GRACE_SECONDS: Final = 0.5
_STEP_SECONDS: Final = 0.05
#: Maximum number of listings that find no complete checkpoint: each may have looked at a new one before, and at an old one after a job has
#: completed the new one and deleted the old one.
MOST_EMPTY_LISTINGS: Final = 3


@lru_cache(maxsize=4096)
def _staying(metadata_file: str) -> threading.Event:
    """Return whether a metadata file still existed after a wait, so that no later check waits for it."""
    return threading.Event()


def check_deletion(metadata_file: str, error: BaseException | None = None) -> None:
    """Raise an error if a snapshot was deleted; ``metadata_file`` is empty for streams without a snapshot.

    Raises
    ------
    CheckpointDeletedError
        Its ``_metadata`` is gone.
    """
    if metadata_file and is_deleted(metadata_file, grace_end()):
        raise _is_deleted(metadata_file) from error


@contextmanager
def noticing_deletion(metadata_file: str) -> Iterator[None]:
    """Check whether the snapshot was deleted if one of its files is missing or short.

    Raises
    ------
    CheckpointDeletedError
        The snapshot was deleted.
    """
    try:
        yield
    except CheckpointDeletedError:
        raise
    except (FormatError, SnapshotNotFoundError) as error:
        check_deletion(metadata_file, error)
        raise


def grace_end() -> float:
    """Return the time until which to wait for a deletion in progress, as :func:`time.monotonic` counts."""
    return time.monotonic() + _GRACE_SECONDS


def is_deleted(metadata_file: str, end: float) -> bool:
    """Return True if the ``_metadata`` of a snapshot is gone; wait until ``end`` for that of a checkpoint."""
    while files.is_stored(metadata_file):
        if _checkpoint_id(files.parent(metadata_file)) is None or _staying(metadata_file).is_set():
            return False
        if time.monotonic() > end:
            _staying(metadata_file).set()
            return False
        time.sleep(_STEP_SECONDS)
    return True


def newer_checkpoints(folder: str) -> list[tuple[int, str]]:
    """Return the ids and directories of the checkpoints next to an existing or deleted one that are newer, the newest first.

    Raises
    ------
    SnapshotNotFoundError
        The directory that contained the checkpoint does not exist.
    """
    number = _checkpoint_id(folder)
    directory = files.parent(folder)
    files.forget_listing(directory)
    ids = [_checkpoint_id(uri) for uri, is_dir in files.list_dir(directory) if is_dir]
    newer = sorted((n for n in ids if number is not None and n is not None and n > number), reverse=True)
    return [(n, files.join(directory, f"chk-{n}")) for n in newer]


def find_replacement(metadata_file: str) -> str | None:
    """Return the newest complete checkpoint next to a missing one that is newer, ``None`` if there is none."""
    folder, _, name = metadata_file.rpartition("/")
    for _ in range(MOST_EMPTY_LISTINGS):
        try:
            newer = newer_checkpoints(folder)
            found = next((path for _, path in newer if files.is_stored(files.join(path, name))), None)
        except (SnapshotNotFoundError, StorageError, OSError):
            return None
        if found is not None or not newer:
            return found
    return None


def check_replacement(metadata_file: str) -> None:
    """Raise an error if a checkpoint whose ``_metadata`` does not exist has a newer complete one next to it.

    Raises
    ------
    CheckpointDeletedError
        There is a newer one.
    """
    newest = find_replacement(metadata_file)
    if newest is not None:
        raise CheckpointDeletedError(
            f"Flink deleted this checkpoint, or did not complete it: {files.parent(metadata_file)}",
            hint=f"read a newer one, such as {newest}, or {_retention_hint(metadata_file)}",
        )


def needed_retention(metadata_file: str) -> str:
    """Return how many checkpoints Flink must keep, so that a deleted one would still exist: ``more than 3``. Without newer ones: ``more``."""
    folder, _, name = metadata_file.rpartition("/")
    number = _checkpoint_id(folder)
    try:
        newer = next((n for n, path in newer_checkpoints(folder) if files.exists(files.join(path, name))), None)
    except (SnapshotNotFoundError, StorageError, OSError):
        newer = None
    return "more" if newer is None or number is None else f"more than {newer - number}"


def _checkpoint_id(folder: str) -> int | None:
    """Return the id in the name of a checkpoint's directory, ``None`` for other names."""
    match = _CHECKPOINT.fullmatch(folder.rstrip("/").rpartition("/")[2])
    return int(match[1]) if match else None


def _is_deleted(metadata_file: str) -> CheckpointDeletedError:
    folder = files.parent(metadata_file)
    if _checkpoint_id(folder) is None:
        return CheckpointDeletedError(f"{folder} was deleted while it was read", hint="read another snapshot")
    return CheckpointDeletedError(
        f"Flink deleted this checkpoint while it was read: {folder}",
        hint=f"read the newest with --latest, or {_retention_hint(metadata_file)}",
    )


def _retention_hint(metadata_file: str) -> str:
    return (
        f"let Flink keep {needed_retention(metadata_file)}: execution.checkpointing.num-retained "
        "(before Flink 1.20 state.checkpoints.num-retained)"
    )
