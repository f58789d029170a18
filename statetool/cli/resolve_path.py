"""Resolution of a path to a snapshot: the path itself, or a snapshot below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import statetool
from statetool.errors import SnapshotNotFoundError
from statetool.io import files
from statetool.io.deletion import grace_end, is_deleted, needed_retention
from statetool.operations.cluster.paths import is_job
from statetool.operations.directories import snapshots
from statetool.snapshot.locate import METADATA_NAME
from statetool.snapshot.parsed import hand_over

_MOST_NAMED: Final = 10


class SnapshotChoicesError(SnapshotNotFoundError):
    """A directory of snapshots given instead of one snapshot. ``choices`` are lines that name the snapshots."""

    choices: tuple[str, ...] = ()


def is_snapshot(path: str) -> bool:
    """Return True if a path is a snapshot itself: its metadata file, a directory with one, or the URL of a job."""
    return is_job(path) or not files.is_dir(path) or files.exists(files.join(path, METADATA_NAME))


def newest_snapshot(path: str, rebase: Mapping[str, str]) -> str:
    """Return the path itself if it is a snapshot, else the path of the newest complete snapshot below it, whose metadata is handed over.

    Raises
    ------
    SnapshotNotFoundError
        The path contains no complete snapshot.
    """
    if is_snapshot(path):
        return path
    newest = snapshots.newest_snapshot(path, rebase=rebase)
    if newest is None:
        raise SnapshotNotFoundError(f"no complete snapshot below {path}", hint=f"run: statetool ls {path}")
    hand_over(newest)
    return newest.directory


def was_deleted(path: str) -> bool:
    """Return True if a snapshot existed and was deleted."""
    return is_deleted(files.join(path, METADATA_NAME), grace_end())


def retention_of(path: str) -> str:
    """Return how many checkpoints Flink must keep, so that a deleted one would still exist, as ``more than 3``."""
    return needed_retention(files.join(path, METADATA_NAME))


def add_choices(error: SnapshotNotFoundError, path: str, rebase: Mapping[str, str]) -> SnapshotNotFoundError:
    """Return an error that names the snapshots below a directory, or the same error if there are none or the path is a snapshot itself."""
    if is_snapshot(path):
        return error
    rows = statetool.list_snapshots(path, rebase=rebase)
    if not rows:
        return error
    newest = next((r.path for r in rows if r.newest), None)
    lines = [f"{r.path}{' (newest)' if r.path == newest else '' if r.complete else ' (incomplete)'}" for r in rows]
    more = [f"and {len(lines) - _MOST_NAMED} more: run statetool ls {path}"] if len(lines) > _MOST_NAMED else []
    choices = SnapshotChoicesError(
        f"{path} is a directory of snapshots ({len(rows)} found)", hint="pass the path of one, or add --latest"
    )
    choices.choices = tuple(f"  {line}" for line in (*lines[-_MOST_NAMED:], *more))
    return choices
