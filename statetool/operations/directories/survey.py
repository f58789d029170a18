"""Every snapshot below a directory with the files that it needs, based on one listing and the metadata of each snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from statetool.errors import SnapshotNotFoundError, StatetoolError, several
from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.handles import (
    FileHandle,
    FileReference,
    RelativeFileHandle,
    SegmentHandle,
    file_streams,
)
from statetool.formats.metadata.model import handles_of
from statetool.formats.metadata.reader import columns_pay_off, parse_references
from statetool.io import files
from statetool.io.deletion import MOST_EMPTY_LISTINGS, grace_end, is_deleted
from statetool.io.garbage import collector_paused
from statetool.io.listing import FoundFile, list_files, stat
from statetool.io.threads import in_threads
from statetool.operations.cluster.paths import resolve_directory
from statetool.snapshot.locate import METADATA_NAME, Locator

if TYPE_CHECKING:
    from statetool.formats.metadata.columns import ReferenceColumns
    from statetool.operations.directories.file_index import FileIndex

CHECKPOINT: Final = re.compile(r"chk-[0-9]+")
SAVEPOINT: Final = re.compile(r"savepoint-([0-9a-f]{6})-[0-9a-f]{12}")
JOB: Final = re.compile(r"[0-9a-f]{32}")
#: Ranges ``(start, end)`` of a file, which may overlap; of a single range from the start of the file only the end, since there are many.
Ranges: TypeAlias = "int | list[tuple[int, int]]"
#: Maximum number of listings, if snapshots are deleted while they are read.
MOST_LISTINGS: Final = 5
#: Number of metadata files of a remote directory that are read concurrently.
_THREADS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSnapshot:
    """A snapshot. ``problem`` describes a defect, and is always set if ``metadata`` is ``None``.

    Attributes
    ----------
    metadata
        The metadata, without the subtasks of operators unless they are to be kept.
    needed
        The ranges of each file that the snapshot needs. A file that does not exist has its path in the metadata.
    other_names
        Names, without directories, of files that the metadata references by another name than in ``needed``, and of those that only state
        names (:mod:`statetool.operations.directories.state_files`).
    unread_state
        Why it is not known which files its state names, empty if it is, or was not asked.
    """

    directory: str
    metadata_file: FoundFile | None
    metadata: SnapshotMetadata | None
    needed: Mapping[str, Ranges]
    problem: str
    other_names: frozenset[str] = frozenset()
    unread_state: str = ""

    @property
    def kind_by_name(self) -> str:
        """``checkpoint`` or ``savepoint`` if its directory has a name in Flink's form, else ``unknown``."""
        return kind_by_name(self.directory.rpartition("/")[2])

    @property
    def job(self) -> str:
        """The job id by its path; see :func:`job_of`."""
        return job_of(self.directory)


def names_of(snapshots: Iterable[FoundSnapshot]) -> tuple[set[str], set[str]]:
    """Return the files that snapshots need, and the names, without directories, by which their metadata references files."""
    snapshots = list(snapshots)
    needed = set[str]().union(*(s.needed for s in snapshots))
    return needed, {_name(uri) for uri in needed}.union(*(s.other_names for s in snapshots))


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def bytes_of_ranges(ranges: Ranges) -> int:
    """Return the number of bytes in ranges of a file. Overlapping ranges count once."""
    return ranges if isinstance(ranges, int) else count_covered_bytes(ranges)


def join_ranges(ranges: Ranges | None, others: Ranges) -> Ranges:
    """Return the ranges of a file in either of two collections."""
    if ranges is None:
        return others
    if isinstance(ranges, int) and isinstance(others, int):
        return max(ranges, others)
    first, second = ([(0, r)] if isinstance(r, int) else r for r in (ranges, others))
    return first + second


def kind_by_name(name: str) -> str:
    """Return ``checkpoint`` or ``savepoint`` for a directory's name in Flink's form, else ``unknown``."""
    if CHECKPOINT.fullmatch(name):
        return "checkpoint"
    return "savepoint" if SAVEPOINT.fullmatch(name) else "unknown"


def count_covered_bytes(ranges: list[tuple[int, int]]) -> int:
    """Return the number of bytes in at least one of the ranges."""
    total = end = 0
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


@dataclass(slots=True)
class Survey:
    """The files, by canonical URI, and the snapshots below the directories ``roots``."""

    roots: tuple[str, ...]
    files: dict[str, FoundFile]
    snapshots: list[FoundSnapshot] = field(default_factory=list)
    #: Results of :meth:`find` by URI: checkpoints of one job reference the same files many times.
    _asked: dict[str, FoundFile | None] = field(default_factory=dict)
    #: The metadata files and the directories with files, which are found once: there may be 200,000 files.
    _found: tuple[list[FoundFile], frozenset[str]] | None = None

    def find(self, uri: str) -> FoundFile | None:
        """Return a file, or ``None`` if it does not exist. The file system is queried only for files outside of the directories."""
        file = self.files.get(uri)
        if file is not None:
            return file
        if uri not in self._asked:
            self._asked[uri] = self._look(files.canonical(uri))
        return self._asked[uri]

    def is_listed(self, uri: str) -> bool:
        """Return True if a canonical URI is below the directories."""
        return any(uri.startswith(f"{root}/") for root in self.roots)

    def file_index(self) -> FileIndex | None:
        """Return an index of the files for columns of references; ``None`` if there is too little metadata for it."""
        if not columns_pay_off(sum(file.size_bytes for file in self.metadata_files())):
            return None
        from statetool.operations.directories.file_index import FileIndex  # a small directory needs no NumPy

        return FileIndex(list(self.files.values()))

    def metadata_files(self) -> list[FoundFile]:
        """Return the metadata files of the snapshots."""
        return self._metadata_and_folders()[0]

    def directories(self) -> set[str]:
        """Return the directories with metadata, and those that are named like a snapshot but have no metadata."""
        snapshots = {files.parent(file.uri) for file in self.metadata_files()}
        for above in self._metadata_and_folders()[1]:
            root = next(r for r in self.roots if f"{above}/".startswith(f"{r.rstrip('/')}/"))
            names = above[len(root) :].strip("/").split("/")
            for i, name in enumerate(names):
                if CHECKPOINT.fullmatch(name) or SAVEPOINT.fullmatch(name):
                    snapshots.add(files.join(root, "/".join(names[: i + 1])))
        return snapshots

    def may_have_missed(self) -> bool:
        """Return True if the complete checkpoints of a job may be missing: its checkpoints were completed and deleted during the listing."""
        complete = {files.parent(file.uri) for file in self.metadata_files()}
        jobs = {files.parent(directory) for directory in complete}
        return not complete or any(
            CHECKPOINT.fullmatch(_name(directory)) and files.parent(directory) not in jobs
            for directory in self.directories() - complete
        )

    def _metadata_and_folders(self) -> tuple[list[FoundFile], frozenset[str]]:
        if self._found is None:
            folders = frozenset(uri.rpartition("/")[0] or "/" for uri in self.files)
            possible = (files.join(folder, METADATA_NAME) for folder in sorted(folders))
            self._found = [self.files[uri] for uri in possible if uri in self.files], folders
        return self._found

    def _look(self, place: str) -> FoundFile | None:
        if place in self.files or self.is_listed(place):
            return self.files.get(place)
        if place not in self._asked:
            self._asked[place] = stat(place)
        return self._asked[place]


def survey(roots: Iterable[str], *, rebase: tuple[tuple[str, str], ...] = ()) -> Survey:
    """List directories and read the metadata of every snapshot in them. Snapshots deleted in the meantime are left out.

    Parameters
    ----------
    roots
        Directories, or URLs of jobs for the directories of their checkpoints.

    Raises
    ------
    SnapshotNotFoundError
        A directory does not exist, is a file or cannot be listed.
    """
    roots = [resolve_directory(root, rebase) for root in roots]
    for _ in range(MOST_LISTINGS):
        tree = list_tree(roots)
        directories = sorted(tree.directories())
        read = partial(read_snapshot, tree, rebase=rebase, index=tree.file_index())
        found = (
            [read(d) for d in directories]
            if all(map(files.is_local, roots))
            else list(in_threads(read, directories, threads=_THREADS))
        )
        end = grace_end()
        deleted = {id(s) for s in found if s.problem and s.metadata_file and is_deleted(s.metadata_file.uri, end)}
        tree.snapshots += [s for s in found if id(s) not in deleted]
        if not deleted:
            break  # otherwise list again: new snapshots of the running job are missing, too
    return tree


def list_tree(roots: Iterable[str]) -> Survey:
    """List directories without reading their snapshots; errors as for :func:`survey`."""
    roots = [r.rstrip("/") or "/" for r in roots]
    for root in roots:
        check_root(root)
    for _ in range(MOST_EMPTY_LISTINGS):
        with collector_paused():
            listed = {f.uri: f for root in roots for f in list_files(root)}
        tree = Survey(tuple(files.canonical(r) for r in roots), listed)
        if not tree.may_have_missed():
            break
    return tree


def check_root(root: str) -> None:
    """Raise an error for a file in place of a directory that holds snapshots, and for a bucket that does not exist.

    Raises
    ------
    SnapshotNotFoundError
    """
    if files.is_dir(root):
        return
    if files.exists(root):
        raise SnapshotNotFoundError(
            f"{root} is a file", hint="point to a directory that holds snapshots, such as the checkpoint directory"
        )
    files.check_bucket(root)


def job_of(directory: str) -> str:
    """Return the job id in the path of a snapshot, or its first six digits from a savepoint's name, or an empty text."""
    head, _, name = directory.rpartition("/")
    if match := SAVEPOINT.fullmatch(name):
        return match.group(1)
    above = head.rpartition("/")[2]
    return above if JOB.fullmatch(above) else ""


def read_snapshot(
    tree: Survey,
    directory: str,
    *,
    rebase: tuple[tuple[str, str], ...],
    index: FileIndex | None = None,
    keep_handles: bool = False,
) -> FoundSnapshot:
    """Read the metadata of a snapshot and look for its files in the listing.

    Parameters
    ----------
    index
        Index of the listed files (see :meth:`Survey.file_index`), which saves time if many snapshots are read.
    keep_handles
        Keep the subtasks of operators in the metadata, without an index.
    """
    file = tree.files.get(files.canonical(files.join(directory, METADATA_NAME)))
    if file is None:
        return FoundSnapshot(
            directory=directory,
            metadata_file=None,
            metadata=None,
            needed={},
            problem=f"no {METADATA_NAME}: it is still being written, or was given up",
        )
    try:
        metadata, parts = _read_references(file, in_columns=index is not None, keep_handles=keep_handles)
        needs = Needs(tree, Locator(file.uri, rebase, lambda uri: tree.find(uri) is not None))
        for part in needs.add_listed(parts):
            if isinstance(part, tuple):
                needs.add(*part)
            else:
                assert index is not None
                index.add_references(part, needs)
    except (StatetoolError, OSError) as error:
        problem = f"the metadata cannot be read: {error}"
        return FoundSnapshot(directory=directory, metadata_file=file, metadata=None, needed={}, problem=problem)
    return FoundSnapshot(
        directory=directory,
        metadata_file=file,
        metadata=metadata,
        needed=needs.ranges,
        problem=needs.problem(),
        other_names=frozenset(needs.other_names),
    )


def _read_references(
    file: FoundFile, *, in_columns: bool, keep_handles: bool
) -> tuple[SnapshotMetadata, Iterable[ReferenceColumns | FileReference]]:
    data = files.read_whole(file.uri)
    if not keep_handles:
        references = parse_references(data, file=file.uri, in_columns=in_columns)
        return references.metadata, references.parts
    metadata = parse_metadata(data, file=file.uri)
    handles = (handle for handle in handles_of(metadata) if handle is not None)
    return metadata, (part for handle in handles for part in file_streams(handle))


@dataclass(slots=True)
class Needs:
    """The ranges of files that a snapshot needs, as in :class:`FoundSnapshot`, and those that do not exist."""

    tree: Survey
    locator: Locator
    ranges: dict[str, Ranges] = field(default_factory=dict)
    other_names: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    #: File, size and missing range.
    short: set[tuple[str, int, int, int]] = field(default_factory=set)

    def add(self, stream: FileHandle | RelativeFileHandle | SegmentHandle, is_log: bool) -> None:
        """Find the file of a stream and add its range."""
        start = stream.start if isinstance(stream, SegmentHandle) else 0
        place, file = None, None
        if not isinstance(stream, RelativeFileHandle) and self.locator.tries_path_first(stream.path):
            file = self.tree.find(stream.path)
        if file is None:
            with suppress(SnapshotNotFoundError):
                place = self.locator.file_of(stream)
            file = None if place is None else self.tree.find(place)
        name = place or stream.path
        if file is None:
            self.missing.add(name)
            self._add_range(name, start, start + stream.size_bytes)
        else:
            name = file.uri
            self.add_found(file, start, start + (file.size_bytes if is_log else stream.size_bytes))
        if name != stream.path and _name(name) != _name(stream.path):
            self.other_names.add(_name(stream.path))

    def add_listed(
        self, parts: Iterable[ReferenceColumns | FileReference]
    ) -> Iterator[ReferenceColumns | FileReference]:
        """Add each file that is listed by its path, and yield the references that take more: columns, segments, changelogs, and files that
        were not found, are too short, or were added already.
        """
        listed, ranges = self.tree.files, self.ranges
        by_path = self.locator.tries_paths_first
        for part in parts:
            if by_path and isinstance(part, tuple) and isinstance(part[0], FileHandle) and not part[1]:
                path, size = part[0].path, part[0].size_bytes
                file = listed.get(path)
                if file is not None and file.size_bytes >= size and path not in ranges:
                    # The size of a file is one number for all snapshots.
                    ranges[file.uri] = file.size_bytes if file.size_bytes == size else size
                    continue
            yield part
            by_path = self.locator.tries_paths_first  # the part may show that files were moved

    def add_found(self, file: FoundFile, start: int, end: int) -> None:
        """Add a range of a file."""
        if file.size_bytes < end:
            self.short.add((file.uri, file.size_bytes, start, end))
        self._add_range(file.uri, start, end)

    def add_new(self, ends: dict[str, int]) -> bool:
        """Add ranges from the start of files; return False, and add none, if a range of one of the files exists."""
        if not self.ranges.keys().isdisjoint(ends):
            return False
        self.ranges.update(ends)
        return True

    def is_listed(self, uri: str) -> bool:
        """Return True if a canonical URI is below the listed directories."""
        return self.tree.is_listed(uri)

    def _add_range(self, name: str, start: int, end: int) -> None:
        self.ranges[name] = join_ranges(self.ranges.get(name), end if start == 0 else [(start, end)])

    def problem(self) -> str:
        """Return what is missing, empty if nothing is."""
        words = []
        if self.missing:
            total = several(len(self.ranges), "file")
            words.append(f"missing: {len(self.missing)} of {total}, first {min(self.missing)}")
        if self.short:
            name, size, wanted = min((name, size, end) for name, size, _, end in self.short)
            words.append(f"too short: {several(len(self.short), 'file')}, first {name} with {size} of {wanted} bytes")
        return "; ".join(words)
