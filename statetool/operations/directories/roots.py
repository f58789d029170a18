"""The directories that clean-up reads: the given ones, without links, and those of other jobs beside the root.

A job may have claimed a snapshot of the job beside it, and then needs files in that job's directory. Where the directory of a job is, depends
on Flink's configuration:

* ``DIR/<job id>``, by default: the jobs beside it are below ``DIR``.
* ``DIR`` (``execution.checkpointing.create-subdir: false``): other jobs have directories beside ``DIR``, of any name. Those with the files of
  snapshots are read.

``DIR`` may be a symbolic link to a volume. Other jobs are then beside the link, so the directories beside each path of the root are read: the
given one, those that links lead to, and those by which its own snapshots name their files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError
from statetool.io import files
from statetool.io.listing import find_links
from statetool.operations.directories.survey import CHECKPOINT, JOB, SAVEPOINT, Survey, check_root, survey
from statetool.snapshot.locate import METADATA_NAME

#: Directories of a job with files of several checkpoints.
SHARED: Final = ("shared", "taskowned")


def real_directory(path: str) -> str:
    """Return one spelling of a directory, without symbolic links if it is local."""
    place = files.canonical(path)
    return os.path.realpath(place) if files.is_local(place) else place


def directories_to_read(root: str, retained: Iterable[str]) -> list[str]:
    """Return a directory without symbolic links, those of the jobs beside it, and other directories.

    Raises
    ------
    OptionError
        Something beside the directory cannot be seen.
    """
    check_root(root)
    real = real_directory(root)
    beside = (directory for path in _paths_to(files.canonical(root)) for directory in _beside(real, path))
    return list(dict.fromkeys([real, *beside, *map(real_directory, retained)]))


def survey_with_other_paths(roots: list[str], rebase: tuple[tuple[str, str], ...]) -> Survey:
    """Survey directories, and those beside other paths by which the snapshots in the first one name its files. Adds these to ``roots``.

    Raises
    ------
    OptionError
        Something beside such a path cannot be seen.
    """
    tree = survey(roots, rebase=rebase)
    beside = dict.fromkeys(d for path in _other_paths(roots[0], tree) for d in _beside(roots[0], path))
    more = [directory for directory in beside if directory not in roots]
    if not more:
        return tree
    roots += more
    return survey(roots, rebase=rebase)


def _beside(root: str, path: str) -> Iterator[str]:
    """Yield the directories of other jobs beside a path of a directory, and the one that has those of all jobs."""
    above, _, name = path.rstrip("/").rpartition("/")
    if JOB.fullmatch(name) and above:
        yield above
    elif _is_of_job(_names_in(root)):
        yield from _jobs_beside(root, above)


def _paths_to(path: str) -> Iterator[str]:
    """Yield the absolute path of a directory, and those of the links and of the directory that it leads to."""
    seen: set[str] = set()
    while path not in seen:
        if files.is_local(path):
            above, name = os.path.split(path)
            path = os.path.join(os.path.realpath(above), name)
        seen.add(path)
        yield path
        if files.is_local(path) and os.path.islink(path):
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))


def _other_paths(root: str, tree: Survey) -> Iterator[str]:
    """Yield other local paths of a directory by which its snapshots name files in it."""
    inside = f"{root.rstrip('/')}/"
    if not files.is_local(root):
        return
    own = (s for s in tree.snapshots if files.canonical(s.directory).startswith(inside))
    outside = {files.parent(uri) for s in own for uri in s.needed if not tree.is_listed(uri)}
    for folder in filter(files.is_local, outside):
        below = os.path.realpath(folder).removeprefix(root.rstrip("/"))
        if below != os.path.realpath(folder) and below.startswith("/") and folder.endswith(below):
            yield from _paths_to(folder.removesuffix(below))


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
    """Refuse symbolic links in directories to others: listings do not follow them, so metadata may be hidden behind them.

    Raises
    ------
    OptionError
    """
    local = [directory for directory in directories if files.is_local(directory)]
    for link in (link for directory in local for link in find_links(directory)):
        target = os.path.realpath(link)
        if not os.path.exists(target):
            hint = "mount the volume, or remove the link"
        elif any(f"{target}/".startswith(f"{directory.rstrip('/')}/") for directory in local):
            continue  # the directory that it leads to is read
        else:
            hint = f"add --retained {target}, clean up that directory, or remove the link"
        raise OptionError(
            f"{link} is a symbolic link to {os.readlink(link)}, so not all snapshots are known", hint=hint
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
