"""Tell a snapshot that was deleted while it was read from one that is damaged.

Flink deletes checkpoints that it no longer retains: ``_metadata`` first, then the files. A file that is missing or short says nothing of
a snapshot whose ``_metadata`` is gone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from statetool.errors import CheckpointDeletedError, FormatError, SnapshotNotFoundError
from statetool.io import files

_CHECKPOINT: Final = re.compile(r"chk-[0-9]+")
#: Shared files are deleted by another thread of Flink's, so that one may go shortly before ``_metadata`` does.
_GRACE_SECONDS: Final = 0.5
_STEP_SECONDS: Final = 0.05
#: Metadata files that stayed where they were, so that nobody waits for them again.
_STAYING: Final[set[str]] = set()


def check_deletion(metadata_file: str, error: BaseException | None = None) -> None:
    """Raise an error if a snapshot was deleted; of streams without a snapshot, ``metadata_file`` is empty.

    Raises
    ------
    CheckpointDeletedError
        Its ``_metadata`` is gone.
    """
    if metadata_file and is_deleted(metadata_file, grace_end()):
        raise _deleted(metadata_file) from error


@contextmanager
def noticing_deletion(metadata_file: str) -> Iterator[None]:
    """Check whether the snapshot was deleted when a file of it is missing or short.

    Raises
    ------
    CheckpointDeletedError
        It was.
    """
    try:
        yield
    except CheckpointDeletedError:
        raise
    except (FormatError, SnapshotNotFoundError) as error:
        check_deletion(metadata_file, error)
        raise


def grace_end() -> float:
    """Return until when a deletion that has begun is waited for, as :func:`time.monotonic` counts."""
    return time.monotonic() + _GRACE_SECONDS


def is_deleted(metadata_file: str, end: float) -> bool:
    """Return True if the ``_metadata`` of a snapshot is gone; that of a checkpoint may go until ``end``."""
    while files.is_stored(metadata_file):
        is_checkpoint = _CHECKPOINT.fullmatch(files.parent(metadata_file).rpartition("/")[2])
        if not is_checkpoint or metadata_file in _STAYING:
            return False
        if time.monotonic() > end:
            _STAYING.add(metadata_file)
            return False
        time.sleep(_STEP_SECONDS)
    return True


def _deleted(metadata_file: str) -> CheckpointDeletedError:
    folder = files.parent(metadata_file)
    if not _CHECKPOINT.fullmatch(folder.rpartition("/")[2]):
        return CheckpointDeletedError(f"{folder} was deleted while it was read", hint="read another snapshot")
    return CheckpointDeletedError(
        f"Flink deleted this checkpoint while it was read: {folder}",
        hint="read the newest with --latest, or let Flink keep more: execution.checkpointing.num-retained "
        "(before Flink 1.20 state.checkpoints.num-retained)",
    )
