"""The newest checkpoint of each job below a directory, by names: one listing per directory, whatever the number of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from statetool.errors import SnapshotNotFoundError
from statetool.io import files
from statetool.io.deletion import MOST_EMPTY_LISTINGS
from statetool.io.listing import FoundFile, stat
from statetool.operations.directories.survey import CHECKPOINT, JOB, job_of
from statetool.snapshot.locate import METADATA_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestCheckpoint:
    """A checkpoint. ``job`` is the job id in its path, or an empty text. ``metadata_file`` has the time when it was completed."""

    job: str
    path: str
    metadata_file: FoundFile


def newest_checkpoints(root: str) -> list[NewestCheckpoint]:
    """Return the complete checkpoint with the highest id of each job.

    Parameters
    ----------
    root
        The directory of a job's checkpoints, with directories ``chk-N``, or a directory of such directories, named by job ids.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist or has no complete checkpoint.
    """
    listed = _folders(root)
    jobs = [uri for uri in listed if JOB.fullmatch(_name(uri))]
    found = [newest for newest in (_newest(root, listed), *map(_newest, jobs)) if newest is not None]
    if not found:
        raise SnapshotNotFoundError(
            f"{root} has no complete checkpoint chk-N",
            hint="pass the directory of a job's checkpoints, or the path of one snapshot",
        )
    return found


def _folders(directory: str) -> list[str]:
    files.forget_listing(directory)
    return [uri for uri, is_dir in files.list_dir(directory) if is_dir]


def _name(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2]


def _newest(folder: str, listed: list[str] | None = None) -> NewestCheckpoint | None:
    """Return the newest complete checkpoint in a directory, ``None`` if there is none or the directory was deleted.

    Parameters
    ----------
    listed
        The directories in it, if it was just listed.
    """
    for _ in range(MOST_EMPTY_LISTINGS):
        try:
            checkpoints = [uri for uri in listed or _folders(folder) if CHECKPOINT.fullmatch(_name(uri))]
        except FileNotFoundError:
            return None
        listed = None
        for path in sorted(checkpoints, key=lambda uri: -int(_name(uri).removeprefix("chk-"))):
            file = stat(files.join(path, METADATA_NAME))
            if file is not None:
                return NewestCheckpoint(job=job_of(files.canonical(path)), path=path, metadata_file=file)
        if not checkpoints:
            return None
    return None
