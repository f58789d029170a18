"""Delete orphans and checkpoints: files are moved to a trash folder, if no job writes to the directory.

A checkpoint in progress writes files before the metadata that names them, and a later checkpoint names files of earlier ones. A job may
also have claimed a snapshot of another job, and then needs files in that job's directory. No listing of a directory is atomic. The rules
that follow from this:

1. *The directory is quiet*: no file in it, metadata included, is younger than the threshold, by the clock of the file system.
2. *All metadata is known*: a metadata file that cannot be read (damaged, or of a newer version of the format) refuses everything. So do
   symbolic links, also to nothing, behind which other metadata may be hidden. For the directory of one job, the directories of all jobs
   beside it are read (:mod:`statetool.operations.directories.roots`). Files that only operator state names count as named, and state that may name
   files and cannot be decoded refuses everything (:mod:`statetool.operations.directories.state_files`).
3. *The metadata stays the same*: two complete surveys, one after the other, find the same metadata files. Only files that are not named in
   either of them move. A job beside the directory that writes but has no complete checkpoint yet refuses everything.
4. *Only state files move*: Flink names them by UUIDs, directly in ``chk-N``, ``shared`` and savepoints, or in the subdirectories that file
   merging makes. Nothing else is touched: not the working files of ForSt, no file of the user, and no file of a changelog, which a job writes
   all the time, and may need for its next checkpoint even if that is days away. Files in ``taskowned`` belong to operators, and only their
   code knows which they need: such a file only moves with a deleted checkpoint, if its metadata alone named it.
5. *Afterwards* the directories are surveyed once more. If new metadata names a moved file, it is moved back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from statetool.errors import DirectoryInUseError, OptionError, UnknownNameError, several, suggest
from statetool.io import files
from statetool.io.listing import FoundFile
from statetool.operations.directories.orphans import (
    DEFAULT_MIN_AGE,
    OrphanFile,
    age_seconds,
    check_known,
    check_state_known,
    find_orphans,
)
from statetool.operations.directories.roots import (
    SHARED,
    check_is_whole,
    check_links,
    directories_to_read,
    real_directory,
    survey_with_other_paths,
)
from statetool.operations.directories.state_files import with_state_files
from statetool.operations.directories.survey import CHECKPOINT, JOB, SAVEPOINT, FoundSnapshot, Survey, names_of, survey
from statetool.operations.directories.trash import Trash, TrashedFile
from statetool.snapshot.locate import METADATA_NAME

#: Lowest threshold: longer than any survey, and than most checkpoints.
LEAST_AGE_SECONDS: Final = 3600
_MOST_SURVEYS: Final = 6
_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
#: Names of Flink's state files, and of files that statetool stages in a new savepoint.
_STATE_FILE: Final = re.compile(rf"{_UUID}|[0-9a-f]{{32}}-[a-z]+-{_UUID}")
_TASK_OWNED: Final = "taskowned"
_NOT_OF_FLINK: Final = "not a state file of Flink"
_OF_OPERATORS: Final = "in taskowned, whose files operators may need although no snapshot names them"
#: A subdirectory of file merging: ``job_<id>_op_<id>_<subtask>_<parallelism>``, ``job_<id>_tm_<id>``.
_MERGING: Final = re.compile(r"(job|tm|op)_.*")
#: A file of a changelog, in a folder of its job.
_CHANGELOG: Final = re.compile(rf"/[0-9a-f]{{32}}/dstl/{_UUID}")
#: Chooses the files to move and those to keep, from a survey.
Choose: TypeAlias = Callable[[Survey], "tuple[list[TrashedFile], list[OrphanFile]]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """The result of a clean-up.

    Attributes
    ----------
    trash_id
        Name of the trash folder, empty if nothing was moved.
    folder
        URI of the trash folder.
    moved
        Files that were moved there.
    kept
        Files that no metadata references, but that are not certain to be state files that no job needs. ``reason`` says why.
    directories
        The directories whose snapshots were read.
    """

    trash_id: str
    folder: str
    moved: tuple[TrashedFile, ...]
    kept: tuple[OrphanFile, ...]
    directories: tuple[str, ...] = ()


def move_orphans(
    root: str,
    *,
    min_age: str | float = DEFAULT_MIN_AGE,
    retained: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
) -> CleanUp:
    """Move the files below a directory that no metadata references to a trash folder.

    Parameters
    ----------
    root, retained, rebase
        As for :func:`statetool.orphans`.
    min_age
        Threshold: every file below ``root`` must be older, metadata included. At least one hour.

    Raises
    ------
    DirectoryInUseError
        A job may be writing to the directory, or to one beside it whose needs are unknown.
    FormatError
        Some metadata cannot be read.
    SnapshotNotFoundError
        A directory does not exist or cannot be listed, or contains no snapshots.
    OptionError
        The threshold is not valid or too low, the directory is part of a snapshot, or the file system reports no times.
    """
    trash = Trash.new(real_directory(root))

    def choose(tree: Survey) -> tuple[list[TrashedFile], list[OrphanFile]]:
        moved, kept = [], []
        for row in find_orphans(tree):
            if not is_state_file(row.path, trash.root):
                kept.append(replace(row, reason=_NOT_OF_FLINK))
            elif _TASK_OWNED in row.path.split("/"):
                kept.append(replace(row, reason=_OF_OPERATORS))
            else:
                moved.append(trash.describe(tree.files[row.path], row.reason))
        return moved, kept

    return _clean_up(trash, choose, root, min_age, retained, rebase)


def delete_checkpoint(
    root: str,
    checkpoint: str,
    *,
    min_age: str | float = DEFAULT_MIN_AGE,
    retained: Iterable[str] = (),
    rebase: Mapping[str, str] | None = None,
) -> CleanUp:
    """Move a retained checkpoint, with all files that only it needs, to a trash folder.

    Parameters
    ----------
    checkpoint
        Its id, the name of its directory, or its path.
    root, min_age, retained, rebase
        As for :func:`move_orphans`.

    Raises
    ------
    UnknownNameError, OptionError
        There is no such checkpoint, several have the id, or it is the newest complete one of its directory.
    DirectoryInUseError, FormatError, SnapshotNotFoundError
        As for :func:`move_orphans`.
    """
    trash = Trash.new(real_directory(root))

    def choose(tree: Survey) -> tuple[list[TrashedFile], list[OrphanFile]]:
        chosen = _find_checkpoint(tree, trash.root, checkpoint)
        _check_not_newest(tree, chosen)
        needed, others = names_of(s for s in tree.snapshots if s is not chosen)
        inside = f"{trash.root.rstrip('/')}/"
        own = sorted({uri for uri in chosen.needed if uri.startswith(inside) and uri in tree.files} - needed)
        alone = [tree.files[uri] for uri in own if uri.rpartition("/")[2] not in others]
        assert chosen.metadata_file is not None
        reason = f"only {chosen.directory} needs it"
        moved = [trash.describe(f, reason) for f in alone if is_state_file(f.uri, trash.root)]
        kept = [
            OrphanFile(path=f.uri, size_bytes=f.size_bytes, modified_ms=f.modified_ms, reason=_NOT_OF_FLINK)
            for f in alone
            if not is_state_file(f.uri, trash.root)
        ]
        # Metadata first, as Flink does: a snapshot without some of its files must not look complete.
        return [trash.describe(chosen.metadata_file, "deleted"), *moved], kept

    return _clean_up(trash, choose, root, min_age, retained, rebase)


def restore_trash(root: str, trash_id: str) -> list[TrashedFile]:
    """Move the files of a trash folder back to their places.

    Raises
    ------
    UnknownNameError
        The directory has no such trash folder.
    TargetExistsError
        Other files have taken some of the places.
    FormatError
        The manifest of the folder is damaged.
    """
    return Trash.find(real_directory(root), trash_id).restore()


def is_state_file(uri: str, root: str) -> bool:
    """Return True if a file has a name and a place that only state files of Flink and statetool have."""
    names = uri.removeprefix(root.rstrip("/") + "/").split("/")
    # A job's directory, or one of its folders, may itself be the root.
    folders = [root.rstrip("/").rpartition("/")[2], *names[:-1]]
    if not _STATE_FILE.fullmatch(names[-1]):
        return False
    last = folders[-1]
    if last in SHARED or CHECKPOINT.fullmatch(last) or SAVEPOINT.fullmatch(last):
        return True
    return len(folders) > 1 and folders[-2] in SHARED and _MERGING.fullmatch(last) is not None


def _clean_up(
    trash: Trash,
    choose: Choose,
    root: str,
    min_age: str | float,
    retained: Iterable[str],
    rebase: Mapping[str, str] | None,
) -> CleanUp:
    seconds = age_seconds(min_age)
    if seconds < LEAST_AGE_SECONDS:
        raise OptionError(
            f"files of the last {seconds:g} seconds may belong to a checkpoint in progress",
            hint="pass a threshold of at least 1h (--older-than 1h)",
        )
    check_is_whole(trash.root)
    roots = directories_to_read(root, retained)
    rules = tuple((rebase or {}).items())
    moving, kept = _choose_twice(trash, roots, rules, choose, int(seconds * 1000))
    if not moving:
        return CleanUp(trash_id="", folder="", moved=(), kept=tuple(kept), directories=tuple(roots))
    moved = trash.take(moving)
    _check_afterwards(trash, roots, rules, moved)
    return CleanUp(
        trash_id=trash.trash_id,
        folder=trash.folder,
        moved=tuple(moved),
        kept=tuple(kept),
        directories=tuple(roots),
    )


def _choose_twice(
    trash: Trash, roots: list[str], rules: tuple[tuple[str, str], ...], choose: Choose, age_ms: int
) -> tuple[list[TrashedFile], list[OrphanFile]]:
    """Return the files to move that two surveys in a row choose, if both find the same metadata.

    Adds directories to ``roots`` that only metadata leads to.

    Raises
    ------
    DirectoryInUseError
        The metadata changes all the time.
    """
    before: tuple[frozenset[FoundFile], frozenset[str]] | None = None
    for _ in range(_MOST_SURVEYS):
        tree = survey_with_other_paths(roots, rules)
        check_known(tree, trash.root)
        check_links(roots)
        _check_quiet(tree, trash, age_ms)
        tree = with_state_files(tree, rules)
        check_state_known(tree)
        moving, kept = choose(tree)
        metadata = frozenset(f for uri, f in tree.files.items() if uri.rpartition("/")[2] == METADATA_NAME)
        if before is not None and before[0] == metadata:
            return [row for row in moving if row.path in before[1]], kept
        before = metadata, frozenset(row.path for row in moving)
    raise DirectoryInUseError(
        "checkpoints are written and deleted faster than they can be read",
        hint="try again, or while the job takes no checkpoints",
    ).at(file=roots[1] if len(roots) > 1 else trash.root)


def _check_quiet(tree: Survey, trash: Trash, age_ms: int) -> None:
    """Refuse if some file below the root is young, or if a job beside it writes and has no complete checkpoint.

    Raises
    ------
    DirectoryInUseError
    """
    now = trash.store_time_ms()
    inside = f"{trash.root.rstrip('/')}/"
    young = [f for f in tree.files.values() if f.modified_ms is None or now - f.modified_ms < age_ms]
    own = [f for f in young if f.uri.startswith(inside)]
    if own:
        newest = max(own, key=lambda f: f.modified_ms or now)
        age = "unknown age" if newest.modified_ms is None else f"{max(0, now - newest.modified_ms) // 1000:,} s old"
        raise DirectoryInUseError(
            f"a job may be writing to {trash.root}: {several(len(own), 'file')} younger than the threshold, newest {newest.uri} ({age})",
            hint="stop the job and wait, pass the directory of a job that has ended, or lower the threshold (--older-than)",
        )
    writing = {directory for file in young if (directory := _job_directory(file.uri))}
    unknown = writing - {_job_directory(s.directory) for s in tree.snapshots if s.metadata is not None}
    if unknown:
        # A changelog may have its own directory for each job: the checkpoints that name files there are those of the job.
        unknown -= {_job_directory(uri) for s in tree.snapshots for uri in s.needed if _CHANGELOG.search(uri)}
    if unknown:
        raise DirectoryInUseError(
            f"the job in {min(unknown)} has no complete checkpoint yet: the files that it needs are unknown",
            hint="wait until it has completed one",
        )


def _job_directory(uri: str) -> str:
    """Return the directory of the job that a path belongs to, empty if none."""
    names = uri.split("/")
    at = next((i for i, name in enumerate(names) if JOB.fullmatch(name)), None)
    return "" if at is None else "/".join(names[: at + 1])


def _check_afterwards(
    trash: Trash, roots: list[str], rules: tuple[tuple[str, str], ...], moved: list[TrashedFile]
) -> None:
    """Move files back that metadata names which was written meanwhile.

    Raises
    ------
    DirectoryInUseError
        There was such metadata.
    """
    tree = with_state_files(survey(roots, rebase=rules), rules)
    _, named = names_of(tree.snapshots)
    unread = [
        s.directory for s in tree.snapshots if s.unread_state or (s.metadata is None and s.metadata_file is not None)
    ]
    wanted = [row for row in moved if unread or row.path.rpartition("/")[2] in named]
    if wanted:
        restored = trash.restore({row.path for row in wanted})
        raise DirectoryInUseError(
            f"a job wrote a snapshot meanwhile: {several(len(restored), 'file')} moved back",
            hint="try again when no job writes there",
        ).at(file=trash.root)


def _find_checkpoint(tree: Survey, root: str, checkpoint: str) -> FoundSnapshot:
    inside = f"{root.rstrip('/')}/"
    known = [s for s in tree.snapshots if s.metadata is not None and files.canonical(s.directory).startswith(inside)]
    wanted = files.canonical(checkpoint).rstrip("/")
    by_path = [s for s in known if files.canonical(s.directory) == wanted]
    found = by_path or [s for s in known if checkpoint in (_id_of(s), s.directory.rpartition("/")[2])]
    if not found:
        raise UnknownNameError(
            f"{root} has no checkpoint {checkpoint!r}",
            hint=suggest(checkpoint, [s.directory.rpartition("/")[2] for s in known]),
        )
    if len(found) > 1:
        raise OptionError(
            f"{several(len(found), 'snapshot')} have the id {checkpoint}: {', '.join(s.directory for s in found)}",
            hint="pass the path of one",
        )
    return found[0]


def _id_of(snapshot: FoundSnapshot) -> str:
    assert snapshot.metadata is not None
    return str(snapshot.metadata.checkpoint_id)


def _check_not_newest(tree: Survey, chosen: FoundSnapshot) -> None:
    """Refuse the newest complete snapshot of a directory: the job restores it."""
    above = files.parent(chosen.directory)
    complete = [
        s for s in tree.snapshots if s.metadata is not None and not s.problem and files.parent(s.directory) == above
    ]
    newest = max(complete, key=lambda s: s.metadata.checkpoint_id if s.metadata else -1, default=None)
    if newest is not None and newest.directory == chosen.directory:
        raise OptionError(
            f"{chosen.directory} is the newest complete snapshot in {above}",
            hint="take a savepoint or copy it first (statetool copy), and then remove the directory of the job",
        )
