"""Every snapshot below a directory, with the files that each needs: one listing, then the metadata alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from statetool.errors import SnapshotNotFoundError, StatetoolError
from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.handles import (
    SegmentHandle,
    file_streams,
)
from statetool.formats.metadata.model import handles_of
from statetool.io import files
from statetool.io.listing import FoundFile, list_files, stat
from statetool.snapshot.locate import METADATA_NAME, Locator

CHECKPOINT: Final = re.compile(r"chk-[0-9]+")
SAVEPOINT: Final = re.compile(r"savepoint-([0-9a-f]{6})-[0-9a-f]{12}")
JOB: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of a file that a snapshot needs; ``file`` is as the metadata has it where it is ``missing``."""

    file: str
    start: int
    size_bytes: int
    missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSnapshot:
    """A snapshot, or what is left of one: without ``metadata`` there is a ``problem``.

    ``named`` are the names, without directories, of all files that the metadata names.
    """

    directory: str
    metadata_file: FoundFile | None
    metadata: SnapshotMetadata | None
    pieces: frozenset[Piece]
    problem: str
    named: frozenset[str] = frozenset()

    @property
    def kind_by_name(self) -> str:
        """``checkpoint`` or ``savepoint`` if its directory is called as Flink calls them, else ``unknown``."""
        name = self.directory.rpartition("/")[2]
        if CHECKPOINT.fullmatch(name):
            return "checkpoint"
        return "savepoint" if SAVEPOINT.fullmatch(name) else "unknown"

    @property
    def job(self) -> str:
        """Job id, or the six digits of it that a savepoint's name has, or nothing, as its path says."""
        head, _, name = self.directory.rpartition("/")
        if match := SAVEPOINT.fullmatch(name):
            return match.group(1)
        above = head.rpartition("/")[2]
        return above if JOB.fullmatch(above) else ""

    def needed_bytes(self) -> dict[str, int]:
        """Return how many bytes of each file the snapshot needs; ranges that overlap count once."""
        ranges: dict[str, list[tuple[int, int]]] = {}
        for piece in self.pieces:
            ranges.setdefault(piece.file, []).append((piece.start, piece.start + piece.size_bytes))
        return {name: covered(some) for name, some in ranges.items()}


def covered(ranges: list[tuple[int, int]]) -> int:
    """Return how many bytes some ranges cover together."""
    total = end = 0
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


@dataclass(slots=True)
class Survey:
    """Files by canonical URI, and snapshots, below some directories."""

    roots: tuple[str, ...]
    files: dict[str, FoundFile]
    snapshots: list[FoundSnapshot] = field(default_factory=list)
    #: What was asked for: checkpoints of one job name the same files again and again.
    _asked: dict[str, FoundFile | None] = field(default_factory=dict)

    def find(self, uri: str) -> FoundFile | None:
        """Return a file, without asking the file system for what lies below the directories."""
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
    """List directories and read the metadata of every snapshot in them.

    Raises
    ------
    SnapshotNotFoundError
        A directory is not there or cannot be listed.
    """
    roots = [r.rstrip("/") or "/" for r in roots]
    for root in roots:
        if files.exists(root) and not files.is_dir(root):
            raise SnapshotNotFoundError(
                f"{root} is a file", hint="point to a directory that holds snapshots, such as the checkpoint directory"
            )
    found = {f.uri: f for root in roots for f in list_files(root)}
    result = Survey(tuple(files.canonical(r) for r in roots), found)
    for directory in sorted(_directories(result)):
        result.snapshots.append(_read(result, directory, rebase))
    return result


def _directories(found: Survey) -> set[str]:
    """Return the directories of snapshots, and those that are called like one but have no metadata."""
    snapshots = {files.parent(uri) for uri in found.files if uri.rpartition("/")[2] == METADATA_NAME}
    for uri in found.files:
        root = next(r for r in found.roots if uri.startswith(f"{r.rstrip('/')}/"))
        parts = uri[len(root) :].strip("/").split("/")
        for i, name in enumerate(parts[:-1]):
            if CHECKPOINT.fullmatch(name) or SAVEPOINT.fullmatch(name):
                snapshots.add(files.join(root, "/".join(parts[: i + 1])))
    return snapshots


def _read(found: Survey, directory: str, rebase: tuple[tuple[str, str], ...]) -> FoundSnapshot:
    file = found.files.get(files.canonical(files.join(directory, METADATA_NAME)))
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
        locator = Locator(file.uri, rebase, lambda uri: found.find(uri) is not None)
        pieces = frozenset(pieces_of(metadata, found, locator))
    except (StatetoolError, OSError) as error:
        problem = f"the metadata cannot be read: {error}"
        return FoundSnapshot(directory=directory, metadata_file=file, metadata=None, pieces=nothing, problem=problem)
    return FoundSnapshot(
        directory=directory,
        metadata_file=file,
        metadata=metadata,
        pieces=pieces,
        problem=_problem(pieces, found),
        named=frozenset(
            s.path.rstrip("/").rpartition("/")[2] for h in handles_of(metadata) for s, _ in file_streams(h)
        ),
    )


def pieces_of(metadata: SnapshotMetadata, found: Survey, locator: Locator) -> Iterator[Piece]:
    """Yield the ranges of files that a snapshot needs; one range several times where several states share it."""
    for handle in handles_of(metadata):
        for stream, is_log in file_streams(handle):
            start = stream.start if isinstance(stream, SegmentHandle) else 0
            try:
                place = locator.resolve(stream)
            except SnapshotNotFoundError:
                place = None
            file = found.find(place.file) if place is not None else None
            if place is None or file is None:
                yield Piece(place.file if place is not None else stream.path, start, stream.size_bytes, missing=True)
            else:
                yield Piece(file.uri, start, file.size_bytes if is_log else stream.size_bytes)


def _problem(pieces: frozenset[Piece], found: Survey) -> str:
    missing = sorted({p.file for p in pieces if p.missing})
    words = []
    if missing:
        total = len({p.file for p in pieces})
        words.append(f"{len(missing)} of {total} files are missing, first {missing[0]}")
    short = []
    for piece in pieces:
        file = None if piece.missing else found.find(piece.file)
        if file is not None and file.size_bytes < piece.start + piece.size_bytes:
            short.append((piece.file, file.size_bytes, piece.start + piece.size_bytes))
    if short:
        name, size, wanted = min(short)
        words.append(f"{len(short)} files are too short, first {name} with {size} of {wanted} bytes")
    return "; ".join(words)
