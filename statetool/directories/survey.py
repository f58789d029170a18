"""Every snapshot below a directory with the files that it needs, based on one listing and the metadata of each snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from statetool.cluster.paths import resolve_directory
from statetool.errors import SnapshotNotFoundError, StatetoolError, several
from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.handles import SegmentHandle, file_streams
from statetool.formats.metadata.model import handles_of
from statetool.io import files
from statetool.io.deletion import grace_end, is_deleted
from statetool.io.listing import FoundFile, list_files, stat
from statetool.snapshot.locate import METADATA_NAME, Locator

CHECKPOINT: Final = re.compile(r"chk-[0-9]+")
SAVEPOINT: Final = re.compile(r"savepoint-([0-9a-f]{6})-[0-9a-f]{12}")
JOB: Final = re.compile(r"[0-9a-f]{32}")
#: Maximum number of listings, if snapshots are deleted while they are read.
_MOST_LISTINGS: Final = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of a file that a snapshot needs. If the file is ``missing``, ``file`` is its path in the metadata."""

    file: str
    start: int
    size_bytes: int
    missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSnapshot:
    """A snapshot. ``problem`` describes a defect, and is always set if ``metadata`` is ``None``.

    ``named`` are the names, without directories, of all files that the metadata references.
    """

    directory: str
    metadata_file: FoundFile | None
    metadata: SnapshotMetadata | None
    pieces: frozenset[Piece]
    problem: str
    named: frozenset[str] = frozenset()

    @property
    def kind_by_name(self) -> str:
        """``checkpoint`` or ``savepoint`` if its directory has a name in Flink's form, else ``unknown``."""
        return kind_by_name(self.directory.rpartition("/")[2])

    @property
    def job(self) -> str:
        """The job id, as :func:`job_in_path` returns it."""
        return job_in_path(self.directory)

    def ranges(self) -> dict[str, list[tuple[int, int]]]:
        """Return the ranges ``(start, end)`` of each file that the snapshot needs; they may overlap."""
        ranges: dict[str, list[tuple[int, int]]] = {}
        for piece in self.pieces:
            ranges.setdefault(piece.file, []).append((piece.start, piece.start + piece.size_bytes))
        return ranges

    def needed_bytes(self) -> dict[str, int]:
        """Return the number of bytes of each file that the snapshot needs. Overlapping ranges count once."""
        return {name: count_covered_bytes(ranges) for name, ranges in self.ranges().items()}


def kind_by_name(name: str) -> str:
    """Return ``checkpoint`` or ``savepoint`` for a directory's name in Flink's form, else ``unknown``."""
    if CHECKPOINT.fullmatch(name):
        return "checkpoint"
    return "savepoint" if SAVEPOINT.fullmatch(name) else "unknown"


def job_in_path(directory: str) -> str:
    """Return the job id in the path of a snapshot, or its first six digits from a savepoint's name, or an empty text."""
    head, _, name = directory.rpartition("/")
    if match := SAVEPOINT.fullmatch(name):
        return match.group(1)
    above = head.rpartition("/")[2]
    return above if JOB.fullmatch(above) else ""


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

    def find(self, uri: str) -> FoundFile | None:
        """Return a file, or ``None`` if it does not exist. The file system is queried only for files outside of the directories."""
        if uri not in self._asked:
            self._asked[uri] = self._look(files.canonical(uri))
        return self._asked[uri]

    def _look(self, place: str) -> FoundFile | None:
        if place in self.files or any(place.startswith(f"{root}/") for root in self.roots):
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
    roots = [resolve_directory(r, rebase).rstrip("/") or "/" for r in roots]
    for root in roots:
        if files.exists(root) and not files.is_dir(root):
            raise SnapshotNotFoundError(
                f"{root} is a file", hint="point to a directory that holds snapshots, such as the checkpoint directory"
            )
    for _ in range(_MOST_LISTINGS):
        tree = Survey(tuple(files.canonical(r) for r in roots), {f.uri: f for root in roots for f in list_files(root)})
        found = [_read(tree, directory, rebase) for directory in sorted(_directories(tree))]
        end = grace_end()
        deleted = {id(s) for s in found if s.problem and s.metadata_file and is_deleted(s.metadata_file.uri, end)}
        tree.snapshots += [s for s in found if id(s) not in deleted]
        if not deleted:
            break  # otherwise list again: new snapshots of the running job are missing, too
    return tree


def _directories(tree: Survey) -> set[str]:
    """Return the directories with metadata, and those that are named like a snapshot but have no metadata."""
    snapshots = {files.parent(uri) for uri in tree.files if uri.rpartition("/")[2] == METADATA_NAME}
    for uri in tree.files:
        root = next(r for r in tree.roots if uri.startswith(f"{r.rstrip('/')}/"))
        names = uri[len(root) :].strip("/").split("/")
        for i, name in enumerate(names[:-1]):
            if CHECKPOINT.fullmatch(name) or SAVEPOINT.fullmatch(name):
                snapshots.add(files.join(root, "/".join(names[: i + 1])))
    return snapshots


def _read(tree: Survey, directory: str, rebase: tuple[tuple[str, str], ...]) -> FoundSnapshot:
    file = tree.files.get(files.canonical(files.join(directory, METADATA_NAME)))
    nothing: frozenset[Piece] = frozenset()
    if file is None:
        return FoundSnapshot(
            directory=directory,
            metadata_file=None,
            metadata=None,
            pieces=nothing,
            problem=f"no {METADATA_NAME}: it is still being written, or was given up",
        )
    try:
        metadata = parse_metadata(files.read_whole(file.uri), file=file.uri)
        locator = Locator(file.uri, rebase, lambda uri: tree.find(uri) is not None)
        pieces = frozenset(pieces_of(metadata, tree, locator))
    except (StatetoolError, OSError) as error:
        problem = f"the metadata cannot be read: {error}"
        return FoundSnapshot(directory=directory, metadata_file=file, metadata=None, pieces=nothing, problem=problem)
    return FoundSnapshot(
        directory=directory,
        metadata_file=file,
        metadata=metadata,
        pieces=pieces,
        problem=_problem(pieces, tree),
        named=frozenset(
            s.path.rstrip("/").rpartition("/")[2] for h in handles_of(metadata) for s, _ in file_streams(h)
        ),
    )


def pieces_of(metadata: SnapshotMetadata, tree: Survey, locator: Locator) -> Iterator[Piece]:
    """Yield the ranges of files that a snapshot needs. A range shared by several states occurs several times."""
    for handle in handles_of(metadata):
        for stream, is_log in file_streams(handle):
            start = stream.start if isinstance(stream, SegmentHandle) else 0
            try:
                place = locator.resolve(stream)
            except SnapshotNotFoundError:
                place = None
            file = tree.find(place.file) if place is not None else None
            if place is None or file is None:
                yield Piece(place.file if place is not None else stream.path, start, stream.size_bytes, missing=True)
            else:
                yield Piece(file.uri, start, file.size_bytes if is_log else stream.size_bytes)


def _problem(pieces: frozenset[Piece], tree: Survey) -> str:
    missing = sorted({p.file for p in pieces if p.missing})
    words = []
    if missing:
        total = len({p.file for p in pieces})
        words.append(f"missing: {len(missing)} of {several(total, 'file')}, first {missing[0]}")
    short = []
    for piece in pieces:
        file = None if piece.missing else tree.find(piece.file)
        if file is not None and file.size_bytes < piece.start + piece.size_bytes:
            short.append((piece.file, file.size_bytes, piece.start + piece.size_bytes))
    if short:
        name, size, wanted = min(short)
        words.append(f"too short: {several(len(short), 'file')}, first {name} with {size} of {wanted} bytes")
    return "; ".join(words)
