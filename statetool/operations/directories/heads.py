"""The snapshots below a directory by the first bytes of their metadata: fast for thousands of snapshots and for frequent calls.

Only :mod:`statetool.operations.directories.snapshots` checks that the files of a snapshot exist.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statetool.errors import StatetoolError, StorageError
from statetool.formats.metadata.model import MAGIC, VERSIONS
from statetool.io import files
from statetool.io.deletion import MOST_EMPTY_LISTINGS
from statetool.io.listing import FoundFile, find_directories, list_files, stat
from statetool.io.threads import in_threads
from statetool.operations.directories.survey import CHECKPOINT, job_of, kind_by_name
from statetool.snapshot.locate import METADATA_NAME
from statetool.types.operators import name_in_sql, unique_names

_HEAD: Final = struct.Struct(">IiqI")
_THREADS: Final = 16
#: Directories next to checkpoints that hold files of several.
_OF_FILES: Final = frozenset({"shared", "taskowned"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHead:
    """Properties of a snapshot from its path and the head of its metadata.

    ``database`` is its name in a catalog: that of its directory, with underscores (``chk_42``, ``savepoint_5ca1ab_0123456789ab``). If
    several snapshots have this name, the first six digits of the job id are appended, and then a number. ``kind`` is checkpoint,
    savepoint or unknown, by the directory's name. ``modified_ms`` is the time when ``_metadata`` was written, in epoch milliseconds.
    ``problem`` is the reason why the head could not be read. In this case ``checkpoint_id`` is ``None``, and so is ``metadata_version``
    unless it is a version that this release does not know.
    """

    database: str
    path: str
    job: str
    kind: str
    checkpoint_id: int | None
    metadata_version: int | None
    modified_ms: int | None
    problem: str


def snapshot_heads(root: str) -> list[SnapshotHead]:
    """List every snapshot with metadata below a directory, by checkpoint id and then by time.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist or cannot be listed.
    StorageError
        The storage fails.
    """
    heads: list[SnapshotHead] = []
    for _ in range(MOST_EMPTY_LISTINGS):
        heads = heads or read_heads([f for f in list_files(root) if f.uri.rpartition("/")[2] == METADATA_NAME])
    return _with_unique_names(sorted(heads, key=_order))


def checkpoint_heads(root: str, known: dict[str, SnapshotHead]) -> list[SnapshotHead]:
    """List the checkpoints below a directory (``chk-42``), by checkpoint id and then by time; errors as for :func:`snapshot_heads`.

    Directories of shared files are not listed, and heads in ``known`` are not read again.

    Parameters
    ----------
    known
        Readable heads of earlier calls by directory, which is brought up to date.
    """
    heads: list[SnapshotHead] = []
    for _ in range(MOST_EMPTY_LISTINGS):
        heads = heads or _checkpoint_heads(root, known)
    known.clear()
    known.update((head.path, head) for head in heads if not head.problem)
    return _with_unique_names(sorted(heads, key=_order))


def _checkpoint_heads(root: str, known: Mapping[str, SnapshotHead]) -> list[SnapshotHead]:
    directories = list(find_directories(root, lambda name: CHECKPOINT.fullmatch(name) is not None, _OF_FILES))
    found = in_threads(stat, [files.join(d, METADATA_NAME) for d in directories if d not in known], threads=_THREADS)
    return [*(known[d] for d in directories if d in known), *read_heads([f for f in found if f is not None])]


def read_heads(metadata_files: Sequence[FoundFile]) -> list[SnapshotHead]:
    """Read the heads of listed metadata files, except those deleted since; several concurrently if they are remote."""
    heads = (
        map(_read, metadata_files)
        if all(files.is_local(f.uri) for f in metadata_files)
        else in_threads(_read, metadata_files, threads=_THREADS)
    )
    return [head for head in heads if head is not None]


def _order(head: SnapshotHead) -> tuple[bool, int, int, str]:
    return head.checkpoint_id is None, head.checkpoint_id or 0, head.modified_ms or 0, head.path


def _read(file: FoundFile) -> SnapshotHead | None:
    """Read the head of a metadata file; ``None`` if it was deleted since it was listed."""
    directory = files.parent(file.uri)
    name = directory.rpartition("/")[2]
    checkpoint_id = version = None
    problem = ""
    try:
        magic, version, checkpoint_id, _ = _HEAD.unpack(_first_bytes(file))
        if magic != MAGIC or version not in VERSIONS or checkpoint_id < 0:
            problem = f"{METADATA_NAME} does not start as one of versions {VERSIONS[0]} to {VERSIONS[-1]}"
            checkpoint_id = None
            # Retain the number of a later version, so that followers do not skip the snapshot.
            version = version if magic == MAGIC and version not in VERSIONS else None
    except StorageError:
        raise
    except FileNotFoundError:
        return None
    except struct.error:
        problem = f"{METADATA_NAME} is cut off"
    except (StatetoolError, OSError) as error:
        problem = f"{METADATA_NAME} cannot be read: {error}"
    return SnapshotHead(
        database=name_in_sql(name),
        path=directory,
        job=job_of(directory),
        kind=kind_by_name(name),
        checkpoint_id=checkpoint_id,
        metadata_version=version,
        modified_ms=file.modified_ms,
        problem=problem,
    )


def _first_bytes(file: FoundFile) -> bytes:
    if file.size_bytes < _HEAD.size:
        return b""
    if files.is_local(file.uri):
        with open(file.uri, "rb", buffering=0) as f:
            return f.read(_HEAD.size)
    return files.read_range(file.uri, 0, _HEAD.size)


def _with_unique_names(heads: list[SnapshotHead]) -> list[SnapshotHead]:
    often = Counter(h.database for h in heads)
    wanted = [f"{h.database}_{h.job[:6]}" if often[h.database] > 1 and h.job else h.database for h in heads]
    return [replace(h, database=name) for h, name in zip(heads, unique_names(wanted), strict=True)]
