"""Choice of a checkpoint or savepoint of a job."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from statetool.errors import (
    CheckpointDeletedError,
    FormatError,
    SnapshotNotFoundError,
    StatetoolError,
    UnknownNameError,
    several,
)
from statetool.io import files
from statetool.io.deletion import find_replacement, newer_checkpoints
from statetool.io.origins import may_open
from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.jobs import (
    Checkpoint,
    CheckpointHistory,
    Job,
    find_job,
    job_url,
    list_jobs,
    read_checkpoint,
    read_history,
)
from statetool.snapshot.locate import METADATA_NAME, has_complete_metadata, rebase_path, refuse_path

_LATEST: Final = "latest"
#: Seconds to wait until Flink names the checkpoint that replaced a deleted one. Its answers are up to 3 s old (``web.refresh-interval``).
_PATIENCE_S: Final = 5.0
_STEP_S: Final = 0.1
_MOST_NAMED: Final = 10


def find_snapshot(client: RestClient, address: JobAddress, rebase: Sequence[tuple[str, str]] = ()) -> str:
    """Return the path of the snapshot that an address names, by default the newest complete checkpoint.

    Parameters
    ----------
    client
        A client for the server of the address, of :func:`statetool.operations.cluster.servers.open_server`.

    Raises
    ------
    StatetoolError
        As :func:`statetool.operations.cluster.paths.resolve_path`.
    """
    return _find(client, find_job(list_jobs(client), address.job, address.server), address, rebase)


def find_snapshots(
    client: RestClient, address: JobAddress, rebase: Sequence[tuple[str, str]] = ()
) -> list[tuple[Job, str | StatetoolError]]:
    """Return the job that an address names, or all jobs that have not ended, each with the path of its snapshot or the error.

    Raises
    ------
    StatetoolError
        As :func:`statetool.operations.cluster.jobs.find_job` and :func:`statetool.operations.cluster.jobs.list_jobs`.
    """
    jobs = list_jobs(client)
    chosen = [find_job(jobs, address.job, address.server)] if address.job else [j for j in jobs if not j.has_ended]
    found: list[tuple[Job, str | StatetoolError]] = []
    for job in chosen:
        try:
            found.append((job, _find(client, job, address, rebase)))
        except StatetoolError as error:
            found.append((job, error))
    return found


def _find(client: RestClient, job: Job, address: JobAddress, rebase: Sequence[tuple[str, str]]) -> str:
    end = time.monotonic() + _PATIENCE_S
    while True:
        chosen = _choose(client, job, address, rebase)
        found = _existing(chosen, rebase)
        if found is not None:
            return found
        waits = address.is_newest and not job.has_ended
        if waits and (later := _later_checkpoint(chosen, job, rebase)) is not None:
            return later
        if not waits or not _may_be_replaced(chosen, rebase) or time.monotonic() > end:
            raise _missing(chosen, job, read_history(client, job), address, rebase)
        time.sleep(_STEP_S)


def existing_path(path: str, rebase: Sequence[tuple[str, str]], source: str) -> str:
    """Return the location of a snapshot here.

    Parameters
    ----------
    path
        The path as Flink knows it.
    source
        What names the path, for messages.

    Raises
    ------
    SnapshotNotFoundError
        It does not exist here.
    FormatError
        It is not a path of files.
    """
    check_named_path(path, rebase, source)
    found = next((c for c in _candidates(path, rebase) if files.exists(files.join(c, METADATA_NAME))), None)
    if found is None:
        raise _absent(path, source)
    return found


def check_named_path(path: str, rebase: Sequence[tuple[str, str]], source: str) -> None:
    """Refuse a path that a server or another source names, if opening it would ask other servers than storage.

    Raises
    ------
    FormatError
        It is not a path of storage, and no rule of ``rebase`` names its location.
    """
    if not may_open(path, [new for _, new in rebase]) and next(rebase_path(path, rebase), None) is None:
        raise refuse_path(path, source)
    if JobAddress.parse(path) is not None:  # opening it would send credentials to the server in it
        raise FormatError(f"{source} names {path!r}, which is not a path of files")


def _absent(path: str | None, source: str) -> SnapshotNotFoundError:
    return SnapshotNotFoundError(
        f"{path}, which {source} names, does not exist here",
        hint="if the path is that of another machine or container, mount it and pass --rebase OLD=NEW, rebase={old: new}",
    )


def _candidates(path: str | None, rebase: Sequence[tuple[str, str]]) -> list[str]:
    found = [*rebase_path(path or "", rebase), path or ""]
    return [place for place in found if may_open(place, [new for _, new in rebase])]


def _existing(checkpoint: Checkpoint, rebase: Sequence[tuple[str, str]]) -> str | None:
    """Return the location of a snapshot, ``None`` if it was deleted or does not exist here."""
    if checkpoint.deleted:
        return None
    candidates = _candidates(checkpoint.path, rebase)
    return next((c for c in candidates if files.exists(files.join(c, METADATA_NAME))), None)


def _later_checkpoint(checkpoint: Checkpoint, job: Job, rebase: Sequence[tuple[str, str]]) -> str | None:
    """Return the newest complete checkpoint in the directory of a deleted one, which Flink does not name yet. ``None`` if there is none.

    With a period of 1 s and one retained checkpoint, Flink names a deleted one most of the time.
    """
    for candidate in _candidates(checkpoint.path, rebase):
        # Without a directory per job (execution.checkpointing.create-subdir), it may be that of another job.
        if files.parent(candidate).rpartition("/")[2] == job.job_id and files.is_dir(files.parent(candidate)):
            found = (path for _, path in newer_checkpoints(candidate) if has_complete_metadata(path))
            return next(found, None)
    return None


def _may_be_replaced(checkpoint: Checkpoint, rebase: Sequence[tuple[str, str]]) -> bool:
    """Return True if a newer checkpoint has replaced this one, and Flink will name it."""
    return checkpoint.deleted or any(files.is_dir(files.parent(c)) for c in _candidates(checkpoint.path, rebase))


def _missing(
    checkpoint: Checkpoint,
    job: Job,
    history: CheckpointHistory,
    address: JobAddress,
    rebase: Sequence[tuple[str, str]],
) -> SnapshotNotFoundError:
    places = [files.join(candidate, METADATA_NAME) for candidate in _candidates(checkpoint.path, rebase)]
    # Flink's answer may be older than the deletion.
    if checkpoint.deleted or any(find_replacement(place) is not None for place in places):
        return CheckpointDeletedError(
            f"{checkpoint.kind} {checkpoint.checkpoint_id} of {job} was deleted by Flink",
            hint=_newer_hint(history, checkpoint) if job.has_ended or address.is_newest else _kept(history, job),
        )
    return _absent(checkpoint.path, address.server)


def _choose(client: RestClient, job: Job, address: JobAddress, rebase: Sequence[tuple[str, str]]) -> Checkpoint:
    """Return the chosen snapshot, which is complete and has a path."""
    history = read_history(client, job)
    if address.savepoint == _LATEST:
        found = _latest_savepoint(job, history, address)
    elif address.checkpoint in (None, _LATEST) and address.savepoint is None:
        found = _latest_checkpoint(job, history, address)
        if address.checkpoint is None:
            _reject_newer_savepoint(job, history, found)
    else:
        found = _by_id(client, job, history, address)
    what = f"{found.kind} {found.checkpoint_id} of {job}"
    if found.status != "COMPLETED":
        state = f"failed: {found.reason}" if found.status == "FAILED" else "is not complete"
        raise SnapshotNotFoundError(f"{what} {state}", hint=_known(history))
    if found.path is None:
        raise SnapshotNotFoundError(
            f"{what} has no path, because the job stores checkpoints in the JobManager's memory",
            hint=f"run: statetool savepoint {job_url(address.server, job)} --to DIR",
        )
    check_named_path(found.path, rebase, address.server)
    return found


def _latest_checkpoint(job: Job, history: CheckpointHistory, address: JobAddress) -> Checkpoint:
    found = history.newest("checkpoint")
    if found is not None:
        return found
    counts = f"{history.in_progress} in progress, {history.failed} failed"
    hints = []
    if history.newest("savepoint") is not None:
        hints.append("add ?savepoint=latest for its newest savepoint")
    if history.restored_path:
        hints.append(f"open {history.restored_path}, from which it was restored")
    if not job.has_ended:
        url = job_url(address.server, job)
        hints.append(f"run: statetool checkpoint {url}, or statetool savepoint {url} --to DIR")
    failures = [c for c in history.recent if c.status == "FAILED" and c.reason]
    last = f"; the last failure: {failures[-1].reason}" if failures else ""
    raise SnapshotNotFoundError(f"{job} has no completed checkpoint ({counts}{last})", hint="; or ".join(hints))


def _reject_newer_savepoint(job: Job, history: CheckpointHistory, checkpoint: Checkpoint) -> None:
    """Raise an error if a job was stopped with a savepoint: its checkpoints are older than its final state."""
    newer = [c for c in history.recent if c.kind == "savepoint" and c.status != "FAILED"]
    if job.has_ended and newer and newer[-1].checkpoint_id > checkpoint.checkpoint_id:
        raise SnapshotNotFoundError(
            f"{job} has ended with savepoint {newer[-1].checkpoint_id}, newer than its last checkpoint",
            hint=f"add ?savepoint=latest, or ?checkpoint={checkpoint.checkpoint_id} for the checkpoint",
        )


def _latest_savepoint(job: Job, history: CheckpointHistory, address: JobAddress) -> Checkpoint:
    found = history.newest("savepoint")
    newer = [c for c in history.recent if c.kind == "savepoint" and c.status == "IN_PROGRESS"]
    # Flink's history of a job that a savepoint stopped still has that savepoint in progress, without its path.
    if job.has_ended and newer and (found is None or newer[-1].checkpoint_id > found.checkpoint_id):
        raise SnapshotNotFoundError(
            f"Flink does not name the path of savepoint {newer[-1].checkpoint_id}, the last of {job}",
            hint="give the path that the command that stopped the job has printed",
        )
    if found is None:
        hints = []
        if history.newest("checkpoint") is not None:
            hints.append("use ?checkpoint=latest for its newest checkpoint")
        if not job.has_ended:
            hints.append(f"run: statetool savepoint {job_url(address.server, job)} --to DIR")
        raise SnapshotNotFoundError(f"{job} has no completed savepoint", hint="; or ".join(hints))
    return found


def _by_id(client: RestClient, job: Job, history: CheckpointHistory, address: JobAddress) -> Checkpoint:
    kind = "savepoint" if address.savepoint else "checkpoint"
    number = int(address.savepoint or address.checkpoint or 0)
    known = next((c for c in history.recent if c.checkpoint_id == number), None)
    found = known or read_checkpoint(client, job, number)
    if found is None or found.kind != kind:
        other = "" if found is None else f", which is a {found.kind}: use ?{found.kind}={number}"
        raise UnknownNameError(f"Flink does not know {kind} {number} of {job}{other}", hint=_kept(history, job))
    return found


def _known(history: CheckpointHistory) -> str:
    complete = [c for c in history.recent if c.status == "COMPLETED" and not c.deleted]
    ids = ", ".join(f"{c.kind} {c.checkpoint_id}" for c in complete[-_MOST_NAMED:])
    return f"it knows {ids}" if ids else f"it knows {several(0, 'completed checkpoint')}"


def _kept(history: CheckpointHistory, job: Job) -> str:
    """Return the snapshots that exist, and how a running job keeps more of its checkpoints."""
    more = "" if job.has_ended else "; for more of them, set execution.checkpointing.num-retained of the job"
    return f"{_known(history)}{more}"


def _newer_hint(history: CheckpointHistory, deleted: Checkpoint) -> str:
    savepoint = history.newest("savepoint")
    if savepoint is not None and not savepoint.deleted and savepoint is not deleted:
        return f"its newest savepoint is {savepoint.path}: add ?savepoint=latest"
    return "set execution.checkpointing.externalized-checkpoint-retention to keep checkpoints of jobs that end"
