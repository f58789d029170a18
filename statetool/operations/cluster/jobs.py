"""Jobs of a server, and the history of their checkpoints.

``/jobs/overview`` lists jobs. ``/jobs/<id>/checkpoints`` has the counts, the latest and the last ten checkpoints of a job, savepoints
included. The HistoryServer answers both for jobs that ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statetool.errors import OptionError, UnknownNameError, nearest, several, suggest
from statetool.operations.cluster.client import NotFlinkError, RestClient, RestError, reading_answer, shorten_reason

_PREFIX: Final = re.compile(r"[0-9a-f]{4,31}")
_ENDED: Final = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})
_NOT_FOUND: Final = 404
_MOST_NAMED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job. ``duration_ms`` is its uptime, or the time from start to end."""

    job_id: str
    name: str
    state: str
    start_ms: int
    duration_ms: int

    @property
    def has_ended(self) -> bool:
        """Whether the job cannot run again under this id."""
        return self.state in _ENDED

    def __str__(self) -> str:
        return f"{self.name!r} ({self.job_id}, {self.state})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint or savepoint of a job, as Flink reports it.

    Attributes
    ----------
    kind
        ``checkpoint`` or ``savepoint``.
    status
        ``COMPLETED``, ``FAILED`` or ``IN_PROGRESS``.
    path
        Directory. ``None`` if it is not complete, or the job stores checkpoints in the JobManager's memory.
    deleted
        Whether Flink deleted it.
    reason
        Why it failed.
    """

    checkpoint_id: int
    kind: str
    status: str
    triggered_ms: int
    duration_ms: int
    state_bytes: int
    path: str | None
    deleted: bool
    reason: str | None

    @classmethod
    def parse(cls, tree: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint in a JSON object of the REST API."""
        path, reason = tree.get("external_path"), tree.get("failure_message")
        return cls(
            checkpoint_id=int(tree["id"]),
            kind="savepoint" if tree["is_savepoint"] else "checkpoint",
            status=str(tree["status"]),
            triggered_ms=int(tree["trigger_timestamp"]),
            duration_ms=int(tree["end_to_end_duration"]),
            state_bytes=int(tree["state_size"]),
            path=None if not path or path.startswith("<") else str(path),  # <checkpoint-not-externally-addressable>
            deleted=bool(tree.get("discarded")),
            reason=shorten_reason(str(reason)) if reason else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHistory:
    """Counts and recent checkpoints of a job. ``recent`` is in the order of their ids, savepoints included."""

    completed: int
    failed: int
    in_progress: int
    restored_path: str | None
    recent: tuple[Checkpoint, ...]

    def newest(self, kind: str) -> Checkpoint | None:
        """Return the newest complete checkpoint or savepoint."""
        return next((c for c in reversed(self.recent) if c.kind == kind and c.status == "COMPLETED"), None)


#: The history of a job without checkpoints.
NO_CHECKPOINTS: Final = CheckpointHistory(completed=0, failed=0, in_progress=0, restored_path=None, recent=())


def list_jobs(client: RestClient) -> list[Job]:
    """Return all jobs of a server, the latest start first.

    Raises
    ------
    NotFlinkError
        The server is not Flink's.
    ConnectionFailedError
        The server does not answer.
    """
    tree = client.get("/jobs/overview")
    if not isinstance(tree.get("jobs"), list):
        raise NotFlinkError(f"{client.server} is not Flink's REST API", hint="check host, port and path")
    with reading_answer(f"{client.server}/jobs/overview"):
        jobs = [
            Job(
                job_id=str(j["jid"]),
                name=str(j["name"]),
                state=str(j["state"]),
                start_ms=int(j["start-time"]),
                duration_ms=int(j["duration"]),
            )
            for j in tree["jobs"]
        ]
    return sorted(jobs, key=lambda j: (-j.start_ms, j.job_id))


def find_job(jobs: Sequence[Job], name: str, server: str) -> Job:
    """Return a job by its id, its name, or at least four digits of its id.

    Of several jobs with one name, the only one that has not ended is meant. Without a name, it is the only job.

    Raises
    ------
    UnknownNameError
        There is no such job.
    OptionError
        Several jobs match.
    """
    by_id = [j for j in jobs if j.job_id == name.lower()]
    matching = by_id or [j for j in jobs if not name or j.name == name]
    if not by_id and _PREFIX.fullmatch(name.lower()):
        matching += [j for j in jobs if j.job_id.startswith(name.lower()) and j not in matching]
    if not jobs:
        raise UnknownNameError(
            f"{server} has no jobs", hint="start the job, or ask the HistoryServer for a job that ended"
        )
    if not matching:
        names = list(dict.fromkeys(j.name for j in jobs))
        near = f"{suggest(name, names)} " if nearest(name, names) else ""
        known = ", ".join((*names[:_MOST_NAMED], *(["..."] if len(names) > _MOST_NAMED else [])))
        raise UnknownNameError(
            f"{server} has no job {name!r}", hint=f"{near}its jobs are: {known} (run: statetool jobs {server})"
        )
    if len(matching) > 1:
        matching = [j for j in matching if not j.has_ended] or matching
    if len(matching) > 1:
        listed = ", ".join(map(str, matching[:_MOST_NAMED])) + (", ..." if len(matching) > _MOST_NAMED else "")
        problem = (
            f"{several(len(matching), 'job')} of {server} match {name!r}" if name else f"{server} has several jobs"
        )
        raise OptionError(f"{problem}: {listed}", hint=f"give the id of one, as in {job_url(server, matching[0])}")
    return matching[0]


def job_url(server: str, job: Job) -> str:
    """Return a URL of a job that commands take, for hints."""
    return f"{server}{'/jobs' if server.startswith('http') else ''}/{job.job_id}"


def read_history(client: RestClient, job: Job) -> CheckpointHistory:
    """Return the checkpoints of a job; :data:`NO_CHECKPOINTS` if checkpointing is not enabled.

    Raises
    ------
    ConnectionFailedError
        The server does not answer.
    FormatError
        The answer is not that of Flink.
    """
    path = f"/jobs/{job.job_id}/checkpoints"
    tree = get_if_found(client, path)
    if tree is None:
        return NO_CHECKPOINTS
    with reading_answer(f"{client.server}{path}"):
        counts, latest = tree["counts"], tree["latest"]
        found = {c.checkpoint_id: c for c in map(Checkpoint.parse, _reported(tree))}
        return CheckpointHistory(
            completed=int(counts["completed"]),
            failed=int(counts["failed"]),
            in_progress=int(counts["in_progress"]),
            restored_path=(latest.get("restored") or {}).get("external_path"),
            recent=tuple(found[number] for number in sorted(found)),
        )


def read_checkpoint(client: RestClient, job: Job, number: int) -> Checkpoint | None:
    """Return a checkpoint or savepoint of a job by its id, ``None`` if the server does not know it (any more).

    Raises
    ------
    ConnectionFailedError
        The server does not answer.
    FormatError
        The answer is not that of Flink.
    """
    path = f"/jobs/{job.job_id}/checkpoints/details/{number}"
    tree = get_if_found(client, path)
    if tree is None:
        return None
    with reading_answer(f"{client.server}{path}"):
        return Checkpoint.parse(tree)


def get_if_found(client: RestClient, path: str, kind: type = dict) -> Any:
    """Return the JSON answer to a GET request, ``None`` if Flink answers with status 404.

    Parameters
    ----------
    kind
        As for :meth:`statetool.operations.cluster.client.RestClient.get`.

    Raises
    ------
    ConnectionFailedError
        The server does not answer.
    """
    try:
        return client.get(path, kind)
    except RestError as error:
        if error.status != _NOT_FOUND:
            raise
        return None


def _reported(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the checkpoints of an answer, some of them twice, the latest news of each last."""
    yield from (tree["latest"][kind] for kind in ("failed", "savepoint", "completed") if tree["latest"].get(kind))
    yield from tree["history"]
