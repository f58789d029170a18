"""The directories that clean-up reads: the given ones, without links, and those of other jobs beside the root.

A job may have claimed a snapshot of the job beside it, and then needs files in that job's directory. Where the directory of a job is, depends
on Flink's configuration:

* ``DIR/<job id>``, by default: the jobs beside it are below ``DIR``.
* ``DIR`` (``execution.checkpointing.create-subdir: false``): other jobs have directories beside ``DIR``, of any name. Those with the files of
  snapshots are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from statetool.directories.survey import CHECKPOINT, JOB, SAVEPOINT, check_root
from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError
from statetool.io import files
from statetool.io.listing import find_links
from statetool.snapshot.locate import METADATA_NAME

#: Directories of a job with files of several checkpoints.
SHARED: Final = ("shared", "taskowned")


def real_directory(path: str) -> str:
    """Return one spelling of a directory, without symbolic links if it is local."""
    place = files.canonical(path)
    return os.path.realpath(place) if files.is_local(place) else place


def directories_to_read(root: str, retained: Iterable[str]) -> list[str]:
    """Return a directory, those of the jobs beside it, and other directories.

    Parameters
    ----------
    root
        The directory, as :func:`real_directory` returns it.

    Raises
    ------
    OptionError
        Something beside the directory cannot be seen.
    """
    check_root(root)
    above, _, name = root.rstrip("/").rpartition("/")
    if JOB.fullmatch(name) and above:
        beside = [above]
    else:
        beside = list(_jobs_beside(root, above)) if _is_of_job(_names_in(root)) else []
    return list(dict.fromkeys([root, *beside, *map(real_directory, retained)]))


def check_is_whole(root: str) -> None:
    """Refuse a directory that is a part of a job's or of a snapshot's.

    Raises
    ------
    OptionError
    """
    above, _, name = root.rstrip("/").rpartition("/")
    if CHECKPOINT.fullmatch(name) or SAVEPOINT.fullmatch(name) or name in SHARED:
        raise OptionError(
            f"{root} is part of the files of a job", hint=f"pass the directory of the job or of all its jobs: {above}"
        )


def check_links(directories: Iterable[str]) -> None:
    """Refuse symbolic links in directories: listings do not follow them, so metadata may be hidden behind them.

    Raises
    ------
    OptionError
    """
    for directory in directories:
        for link in find_links(directory) if files.is_local(directory) else ():
            raise OptionError(
                f"{link} is a symbolic link to {os.readlink(link)}, so not all snapshots are known",
                hint="clean up the directory that it points to, or remove the link",
            )


def _jobs_beside(root: str, above: str) -> Iterator[str]:
    """Yield the directories beside that of a job that have snapshots, or jobs with snapshots."""
    for place, is_directory in files.list_dir(above or "/"):
        if files.is_local(place) and os.path.islink(place):
            target = os.path.realpath(place)
            if not os.path.exists(target):
                raise OptionError(
                    f"{place}, beside {root}, is a symbolic link to {target}, which does not exist: not all snapshots are known",
                    hint="mount the volume, or remove the link",
                )
            place, is_directory = target, os.path.isdir(target)
        if is_directory and place.rstrip("/") != root.rstrip("/") and _has_snapshots(place, root):
            yield place


def _has_snapshots(directory: str, root: str) -> bool:
    try:
        names = _names_in(directory)
    except (SnapshotNotFoundError, OSError) as error:
        if not files.is_dir(directory):
            return False
        reason = error.message if isinstance(error, StatetoolError) else error
        raise OptionError(
            f"{directory}, beside {root}, cannot be listed, so not all snapshots are known: {reason}",
            hint="run this as the user that runs Flink",
        ) from error
    return _is_of_job(names) or any(n == METADATA_NAME or SAVEPOINT.fullmatch(n) or JOB.fullmatch(n) for n in names)


def _is_of_job(names: Iterable[str]) -> bool:
    """Return True if a directory with these names is that of a job."""
    return any(CHECKPOINT.fullmatch(name) or name in SHARED for name in names)


def _names_in(directory: str) -> list[str]:
    return [uri.rstrip("/").rpartition("/")[2] for uri, _ in files.list_dir(directory)]
