"""Jobs of a server with their checkpoints, as rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from statetool.errors import OptionError
from statetool.operations.cluster.address import JobAddress
from statetool.operations.cluster.client import RestClient
from statetool.operations.cluster.jobs import Checkpoint, CheckpointHistory, Job, find_job, list_jobs, read_history
from statetool.operations.cluster.servers import open_server


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job with its newest complete checkpoint.

    Attributes
    ----------
    duration_ms
        Uptime, or the time from start to end.
    checkpoint_ms
        Time at which the checkpoint was triggered, in milliseconds since 1970.
    completed, failed, in_progress
        Numbers of checkpoints and savepoints since the JobManager started the job.
    """

    job_id: str
    name: str
    state: str
    start_ms: int
    duration_ms: int
    checkpoint_id: int | None
    checkpoint_ms: int | None
    checkpoint_duration_ms: int | None
    checkpoint_bytes: int | None
    checkpoint_path: str | None
    completed: int
    failed: int
    in_progress: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshotRow:
    """A failed checkpoint or a savepoint of a job. The fields are those of :class:`statetool.operations.cluster.jobs.Checkpoint`."""

    job_id: str
    job_name: str
    checkpoint_id: int
    kind: str
    status: str
    triggered_ms: int
    duration_ms: int
    state_bytes: int
    path: str | None
    deleted: bool
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Jobs, and those of their recent checkpoints that failed or are savepoints, as far as Flink remembers them."""

    jobs: tuple[JobRow, ...]
    failed: tuple[JobSnapshotRow, ...]
    savepoints: tuple[JobSnapshotRow, ...]


def read_overview(url: str) -> Overview:
    """Return the jobs of a server, or only the job that the URL names.

    Raises
    ------
    OptionError
        Not the URL of a job or server.
    StatetoolError
        As :func:`statetool.operations.cluster.paths.resolve_path`.
    """
    client, jobs, address = connect(url)
    chosen = [find_job(jobs, address.job, address.server)] if address.job else jobs
    histories = [(job, read_history(client, job)) for job in chosen]
    recent = [(job, c) for job, history in histories for c in history.recent]
    return Overview(
        jobs=tuple(_job_row(job, history) for job, history in histories),
        failed=tuple(_snapshot_row(job, c) for job, c in recent if c.status == "FAILED"),
        savepoints=tuple(
            _snapshot_row(job, c) for job, c in recent if c.kind == "savepoint" and c.status == "COMPLETED"
        ),
    )


def connect(url: str) -> tuple[RestClient, list[Job], JobAddress]:
    """Return a client for the URL's server, its jobs, and the parsed URL.

    Raises
    ------
    OptionError
        Not the URL of a job or server.
    StatetoolError
        As :func:`statetool.operations.cluster.jobs.list_jobs`.
    """
    address = JobAddress.parse(url)
    if address is None:
        raise OptionError(f"{url!r} is not the URL of a job or a JobManager", hint="write flink://HOST:8081/JOB")
    client, address = open_server(address)
    return client, list_jobs(client), address


def _job_row(job: Job, history: CheckpointHistory) -> JobRow:
    newest = history.newest("checkpoint")
    return JobRow(
        job_id=job.job_id,
        name=job.name,
        state=job.state,
        start_ms=job.start_ms,
        duration_ms=job.duration_ms,
        checkpoint_id=None if newest is None else newest.checkpoint_id,
        checkpoint_ms=None if newest is None else newest.triggered_ms,
        checkpoint_duration_ms=None if newest is None else newest.duration_ms,
        checkpoint_bytes=None if newest is None else newest.state_bytes,
        checkpoint_path=None if newest is None else newest.path,
        completed=history.completed,
        failed=history.failed,
        in_progress=history.in_progress,
    )


def _snapshot_row(job: Job, checkpoint: Checkpoint) -> JobSnapshotRow:
    return JobSnapshotRow(job_id=job.job_id, job_name=job.name, **asdict(checkpoint))
