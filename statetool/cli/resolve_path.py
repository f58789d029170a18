"""Resolution of a path to a snapshot: the path itself, or a snapshot below it."""

from __future__ import annotations

from collections.abc import Mapping

import click

import statetool
from statetool.directories.snapshots import SnapshotRow
from statetool.errors import SnapshotNotFoundError
from statetool.io import files
from statetool.io.deletion import grace_end, is_deleted
from statetool.snapshot.locate import METADATA_NAME

_MOST_NAMED = 10
#: Context key of the running command for the snapshot that ``--latest`` chose.
_NEWEST = "statetool.newest"


class SnapshotChoicesError(SnapshotNotFoundError):
    """A directory of snapshots given instead of one snapshot. ``choices`` are lines that name the snapshots."""

    choices: tuple[str, ...] = ()


def is_snapshot(path: str) -> bool:
    """Return True if a path is a snapshot itself: its metadata file, or a directory with one."""
    return not files.is_dir(path) or files.exists(files.join(path, METADATA_NAME))


def newest_snapshot(path: str, rebase: Mapping[str, str]) -> str:
    """Return the path itself if it is a snapshot, else the path of the newest complete snapshot below it.

    Raises
    ------
    SnapshotNotFoundError
        The path contains no complete snapshot.
    """
    if is_snapshot(path):
        return path
    newest = _newest(statetool.list_snapshots(path, rebase=rebase))
    if newest is None:
        raise SnapshotNotFoundError(f"no complete snapshot below {path}", hint="statetool ls says what is there")
    click.get_current_context().meta[_NEWEST] = newest
    return newest


def newest_is_deleted() -> bool:
    """Return True if the snapshot that :func:`newest_snapshot` chose below a directory was deleted."""
    newest = click.get_current_context().meta.get(_NEWEST)
    return newest is not None and is_deleted(files.join(newest, METADATA_NAME), grace_end())


def naming_choices(error: SnapshotNotFoundError, path: str, rebase: Mapping[str, str]) -> SnapshotNotFoundError:
    """Return an error that names the snapshots below a directory, or the same error if there are none or the path is a snapshot itself."""
    if is_snapshot(path):
        return error
    rows = statetool.list_snapshots(path, rebase=rebase)
    if not rows:
        return error
    newest = _newest(rows)
    lines = [f"{r.path}{' (newest)' if r.path == newest else '' if r.complete else ' (not complete)'}" for r in rows]
    more = [f"and {len(lines) - _MOST_NAMED} more, which statetool ls names"] if len(lines) > _MOST_NAMED else []
    choices = SnapshotChoicesError(
        f"{path} is no snapshot, but a directory with {len(rows)} below it",
        hint="name one, or let --latest take the newest:",
    )
    choices.choices = tuple(f"  {line}" for line in (*lines[-_MOST_NAMED:], *more))
    return choices


def _newest(rows: list[SnapshotRow]) -> str | None:
    return next((r.path for r in rows if r.newest), None)
