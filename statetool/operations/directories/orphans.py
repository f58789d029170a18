"""Files that no retained metadata references. :mod:`statetool.operations.directories.cleanup` deletes them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from statetool.errors import FormatError, OptionError, SnapshotNotFoundError, several
from statetool.io import files
from statetool.io.listing import FoundFile
from statetool.operations.cluster.paths import resolve_directory
from statetool.operations.directories.roots import directories_to_read, survey_with_other_paths
from statetool.operations.directories.state_files import with_state_files
from statetool.operations.directories.survey import Survey, names_of
from statetool.snapshot.locate import METADATA_NAME

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw])")
DEFAULT_MIN_AGE: Final = "7d"
#: Highest age: a thousand years.
_MOST_SECONDS: Final = 1000 * 366 * 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFile:
    """A file that no metadata references. ``reason`` says why it is an orphan, and ``modified_ms`` is in epoch milliseconds."""

    path: str
    size_bytes: int
    modified_ms: int | None
    reason: str


def age_seconds(age: str | float) -> float:
    """Return an age in seconds, parsed from ``7d``, ``12h``, ``30m``, ``45s``, ``2w``, or a number of seconds.

    Raises
    ------
    OptionError
        The age is not valid.
    """
    match = _AGE.fullmatch(age.strip()) if isinstance(age, str) else None
    if match is not None:
        age = float(match.group(1)) * _UNITS[match.group(2)]
    if isinstance(age, str | bool) or not 0 <= age <= _MOST_SECONDS:
        raise OptionError(f"{age!r} is not a valid age", hint="pass 7d, 12h, 30m or 45s")
    return float(age)


def orphans(
    root: str,
    *,
    min_age: str | float = DEFAULT_MIN_AGE,
    retained: Iterable[str] = (),
    ignore_unreadable: bool = False,
    rebase: Mapping[str, str] | None = None,
    now_ms: int | None = None,
) -> list[OrphanFile]:
    """Return the files below a directory that no metadata references.

    Files are compared by name, without their directory: Flink's file names are unique, and a copied checkpoint may still reference its
    original location. Files that only operator state names (of write-ahead sinks and file sinks) count as referenced.

    Parameters
    ----------
    root
        A directory: a local path or any URI that fsspec can list. Or the URL of a job, for the
        directory of its checkpoints. If it is the directory of one job, those of the jobs beside it are read, too.
    min_age
        Leave out younger files (``"7d"``, ``"12h"``, seconds): a running job writes files before the metadata that references them.
    retained
        Further directories with retained snapshots, such as those of savepoints.
    ignore_unreadable
        Report files even if some metadata cannot be read. Files that only such metadata references are then reported too.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.
    now_ms
        Reference time for ages in epoch milliseconds. Defaults to the current time.

    Raises
    ------
    FormatError
        Some metadata cannot be read, and ``ignore_unreadable`` is not set.
    SnapshotNotFoundError
        A directory does not exist or cannot be listed, or contains no snapshots.
    OptionError
        ``min_age`` is not a valid age, or the file system does not provide the age of a file.
    """
    seconds = age_seconds(min_age)
    rules = tuple((rebase or {}).items())
    roots = directories_to_read(resolve_directory(root, rules), retained)
    tree = survey_with_other_paths(roots, rules)
    check_known(tree, roots[0], ignore_unreadable=ignore_unreadable)
    if any(find_orphans(tree)):
        tree = with_state_files(tree, rules)
        check_state_known(tree, ignore_unreadable=ignore_unreadable)
    newest = (int(time.time() * 1000) if now_ms is None else now_ms) - int(seconds * 1000)
    rows = []
    for row in find_orphans(tree):
        if seconds and row.modified_ms is None:
            raise OptionError(
                f"the file system does not report the age of {row.path}",
                hint="pass min_age=0 (--min-age 0s) to ignore ages",
            )
        if not seconds or (row.modified_ms or 0) <= newest:
            rows.append(row)
    from statetool.html.records import RecordList  # only for notebooks

    return RecordList(sorted(rows, key=lambda r: r.path))


def find_orphans(tree: Survey) -> Iterator[OrphanFile]:
    """Yield the files below the first directory of a survey, of any age, that no metadata in the survey references."""
    needed, named = names_of(tree.snapshots)
    unfinished = {files.canonical(s.directory): s.problem for s in tree.snapshots if s.metadata is None}
    base = tree.roots[0].rstrip("/")
    for uri, file in tree.files.items():
        name = uri.rpartition("/")[2]
        if uri.startswith(f"{base}/") and name != METADATA_NAME and name not in named and uri not in needed:
            yield _row(file, unfinished)


def check_known(tree: Survey, root: str, *, ignore_unreadable: bool = False) -> None:
    """Refuse a survey without snapshots, or with metadata that cannot be read: the files that they need are unknown.

    Raises
    ------
    SnapshotNotFoundError, FormatError
    """
    if not any(s.metadata_file is not None for s in tree.snapshots):
        raise SnapshotNotFoundError(
            f"no snapshot below {root}: the needed files are unknown",
            hint="pass the directory of a job or of all checkpoints, or pass other directories with --retained DIR",
        )
    unreadable = [s for s in tree.snapshots if s.metadata is None and s.metadata_file is not None]
    if unreadable and not ignore_unreadable:
        raise FormatError(
            f"{len(unreadable)} of {several(len(tree.snapshots), 'snapshot')} cannot be read: the files that they need are unknown; "
            f"first {unreadable[0].directory}: {unreadable[0].problem}",
            hint="repair or remove it, or add --ignore-unreadable to continue without it",
        )


def check_state_known(tree: Survey, *, ignore_unreadable: bool = False) -> None:
    """Refuse a survey in which state that may name files cannot be decoded.

    Raises
    ------
    FormatError
    """
    unread = [] if ignore_unreadable else [s for s in tree.snapshots if s.unread_state]
    if unread:
        raise FormatError(
            f"the state of {several(len(unread), 'snapshot')} may name files and cannot be decoded; first {unread[0].directory}: "
            f"{unread[0].unread_state}",
            hint="run statetool verify on it, and repair or remove it",
        )


def _row(file: FoundFile, unfinished: Mapping[str, str]) -> OrphanFile:
    above = files.parent(file.uri)
    problem = unfinished.get(above) or unfinished.get(files.parent(above))
    reason = f"its snapshot has {problem}" if problem else "no retained snapshot references it"
    return OrphanFile(path=file.uri, size_bytes=file.size_bytes, modified_ms=file.modified_ms, reason=reason)
