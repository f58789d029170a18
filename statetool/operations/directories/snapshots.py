"""List the snapshots below a directory, and mark the one from which a job would restore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from statetool.errors import FormatError
from statetool.formats.metadata.properties import read_properties
from statetool.io import files
from statetool.io.deletion import grace_end, is_deleted
from statetool.operations.directories.heads import SnapshotHead, read_heads
from statetool.operations.directories.survey import (
    MOST_LISTINGS,
    FoundSnapshot,
    Survey,
    bytes_of_ranges,
    job_of,
    list_tree,
    read_snapshot,
    survey,
)
from statetool.snapshot.locate import METADATA_NAME
from statetool.snapshot.parsed import ParsedMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """A checkpoint or savepoint.

    ``kind`` is checkpoint, savepoint or unknown. Since version 4 it is read from the metadata, in older versions it follows from the
    directory's name. ``type_name`` and ``format`` (canonical, native) are those of the metadata. ``modified_ms`` is the time when
    ``_metadata`` was written, in epoch milliseconds. ``own_bytes`` counts ``_metadata`` and the needed files in the snapshot's directory,
    and ``shared_bytes`` the needed bytes elsewhere. ``problem`` is the reason why the snapshot is not ``complete``. ``newest_of_job``
    marks the complete snapshot of a job with the highest id, and ``newest`` the most recently written of these.
    """

    path: str
    job: str
    kind: str
    type_name: str | None
    format: str | None
    checkpoint_id: int | None
    metadata_version: int | None
    modified_ms: int | None
    operators: int | None
    own_bytes: int
    shared_bytes: int
    complete: bool
    problem: str
    newest_of_job: bool = False
    newest: bool = False


def list_snapshots(root: str, *, rebase: Mapping[str, str] | None = None) -> list[SnapshotRow]:
    """List every checkpoint and savepoint below a directory, by job and id.

    Reads only metadata. A directory that is named like a snapshot but has no ``_metadata`` is listed as incomplete.

    Parameters
    ----------
    root
        A directory: a local path or any URI that fsspec can list.
    rebase
        ``{old prefix: new prefix}`` for absolute paths of files that were moved.

    Raises
    ------
    SnapshotNotFoundError
        The directory does not exist or cannot be listed.
    """
    from statetool.html.records import RecordList

    tree = survey([root], rebase=tuple((rebase or {}).items()))
    rows = [_row(s) for s in tree.snapshots]
    return RecordList(sorted(_mark_newest(rows), key=_place))


def newest_snapshot(root: str, *, rebase: Mapping[str, str] | None = None) -> ParsedMetadata | None:
    """Return the metadata of the snapshot that :func:`list_snapshots` marks as ``newest``, ``None`` if no snapshot is complete.

    Reads the heads of all metadata, and the complete metadata of the newest snapshots until one is complete. Parameters and errors as for
    :func:`list_snapshots`.
    """
    rules = tuple((rebase or {}).items())
    for _ in range(MOST_LISTINGS):
        tree = list_tree([root])
        listed = sorted(tree.metadata_files(), key=lambda file: file.uri)
        all_heads = read_heads(listed)
        jobs = _by_job(all_heads, tree)
        newest: tuple[SnapshotHead, ParsedMetadata] | None = None
        deleted = len(all_heads) < len(listed)
        while jobs and not deleted:
            heads = max(jobs, key=lambda heads: max(map(_written, heads)))
            if newest is not None and max(map(_written, heads)) <= _written(newest[0]):
                break
            head = heads.pop(0)
            found = read_snapshot(tree, head.path, rebase=rules, keep_handles=True)
            deleted = bool(found.problem) and is_deleted(files.join(head.path, METADATA_NAME), grace_end())
            if not found.problem and (newest is None or _written(head) > _written(newest[0])):
                assert found.metadata is not None
                assert found.metadata_file is not None
                newest = head, ParsedMetadata(file=found.metadata_file.uri, metadata=found.metadata)
            if not heads or not found.problem:
                jobs = [other for other in jobs if other is not heads]
        if not deleted:
            break  # otherwise list again: new snapshots of the running job are missing, too
    return None if newest is None else newest[1]


def _by_job(heads: Sequence[SnapshotHead], tree: Survey) -> list[list[SnapshotHead]]:
    """Return the readable heads of each job's snapshots, from the newest on."""
    job_ids = {job for d in tree.directories() if len(job := job_of(d)) == 32}
    by_job: dict[str, list[SnapshotHead]] = {}
    for head in heads:
        if not head.problem:
            by_job.setdefault(_job_of(head, job_ids), []).append(head)
    return [sorted(of_job, key=_age, reverse=True) for of_job in by_job.values()]


def _written(head: SnapshotRow | SnapshotHead) -> tuple[int, int]:
    return head.modified_ms or 0, head.checkpoint_id or 0


def chain_of(row: SnapshotRow) -> str:
    """Return a common identifier of a job's snapshots: the first six digits of the job id (as in savepoint names), else their directory."""
    return row.job[:6] or files.parent(row.path)


def _place(row: SnapshotRow) -> tuple[str, bool, int, str]:
    return chain_of(row), row.checkpoint_id is None, row.checkpoint_id or 0, row.path


def _row(snapshot: FoundSnapshot) -> SnapshotRow:
    metadata, file = snapshot.metadata, snapshot.metadata_file
    properties, problem = None, snapshot.problem
    if metadata is not None:
        try:
            properties = read_properties(metadata.properties)
        except FormatError as error:
            problem = problem or f"the metadata cannot be read: {error}"
    own = shared = 0
    inside = f"{files.canonical(snapshot.directory)}/"
    for name, ranges in snapshot.needed.items():
        size = ranges if isinstance(ranges, int) else bytes_of_ranges(ranges)
        if name.startswith(inside):
            own += size
        else:
            shared += size
    return SnapshotRow(
        path=snapshot.directory,
        job=snapshot.job,
        kind=properties.kind if properties is not None else snapshot.kind_by_name,
        type_name=properties.type_name if properties is not None else None,
        format=properties.format if properties is not None else None,
        checkpoint_id=metadata.checkpoint_id if metadata is not None else None,
        metadata_version=metadata.version if metadata is not None else None,
        modified_ms=file.modified_ms if file is not None else None,
        operators=len(metadata.operators) if metadata is not None else None,
        own_bytes=own + (file.size_bytes if file is not None else 0),
        shared_bytes=shared,
        complete=not problem,
        problem=problem,
    )


def _mark_newest(rows: list[SnapshotRow]) -> list[SnapshotRow]:
    """Mark the newest complete snapshots: the one with the highest id of each job, and the most recently written of these."""
    job_ids = {r.job for r in rows if len(r.job) == 32}
    newest: dict[str, int] = {}
    for i, row in enumerate(rows):
        if not row.complete:
            continue
        job = _job_of(row, job_ids)
        if job not in newest or _age(row) > _age(rows[newest[job]]):
            newest[job] = i
    for i in newest.values():
        rows[i] = replace(rows[i], newest_of_job=True)
    if newest:
        last = max(newest.values(), key=lambda i: _written(rows[i]))
        rows[last] = replace(rows[last], newest=True)
    return rows


def _job_of(row: SnapshotRow | SnapshotHead, job_ids: set[str]) -> str:
    """Return a common identifier of the job's snapshots: the job id (complete, if only one matches), else their directory."""
    if len(row.job) == 6:
        matching = [job for job in job_ids if job.startswith(row.job)]
        return matching[0] if len(matching) == 1 else row.job
    return row.job or files.parent(row.path)


def _age(row: SnapshotRow | SnapshotHead) -> tuple[int, int]:
    return row.checkpoint_id or 0, row.modified_ms or 0
