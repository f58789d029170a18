"""Savepoints and checkpoints on request: the request, and waiting for the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from statetool.errors import (
    ConnectionFailedError,
    FormatError,
    OptionError,
    SnapshotNotFoundError,
    StatetoolError,
    UnsupportedError,
)
from statetool.io import files
from statetool.operations.cluster.client import RestClient, RestError, reading_answer, shorten_reason
from statetool.operations.cluster.jobs import Job, read_checkpoint

#: Releases of Flink whose REST API first had checkpoints on request, and formats of savepoints.
_TRIGGERS_CHECKPOINTS: Final = (1, 17)
_HAS_FORMATS: Final = (1, 15)
#: Seconds to wait for the path of a complete checkpoint. Flink's answers are up to 3 s old (``web.refresh-interval``).
_PATIENCE_S: Final = 5.0
_STEPS_S: Final = (0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRequest:
    """A POST request for a savepoint or checkpoint of a job. ``status_path`` is followed by the id of the request."""

    what: Literal["savepoint", "checkpoint"]
    path: str
    body: dict[str, Any]
    status_path: str


class TriggerFailedError(StatetoolError):
    """A savepoint or checkpoint that Flink could not take."""


def savepoint_request(
    client: RestClient,
    job: Job,
    target: str | None,
    format: Literal["canonical", "native"] | None,
    *,
    stop: bool,
    drain: bool,
) -> TriggerRequest:
    """Return the request for a savepoint.

    Parameters
    ----------
    target
        Directory, absolute or a URI, in which Flink creates the savepoint's directory. ``None`` for the one that the job is configured with.
    format
        By default that of Flink, which is canonical.
    stop
        Stop the job with this savepoint.
    drain
        Let event time reach its end before, so that windows and timers fire. Such a job is finished, not paused.

    Raises
    ------
    OptionError
        The directory is relative, or ``drain`` is given without ``stop``.
    TriggerFailedError
        The job has ended.
    UnsupportedError
        The release of Flink has only the canonical format.
    """
    _require_running(client, job)
    if drain and not stop:
        raise OptionError("a job is only drained when it stops", hint="add --stop, or remove --drain")
    if target is not None and files.is_local(target) and not files.local_path(target).startswith("/"):
        raise OptionError(
            f"{target!r} is a relative path, and Flink has another working directory",
            hint="give an absolute path or a URI that all machines of the job can write to",
        )
    if format is not None:
        _require_release(client, _HAS_FORMATS, "choose the format of a savepoint", "remove --format")
    chosen = {} if format is None else {"formatType": format.upper()}
    status_path = f"/jobs/{job.job_id}/savepoints"
    if stop:
        body = {**({} if target is None else {"targetDirectory": target}), "drain": drain, **chosen}
        return TriggerRequest(what="savepoint", path=f"/jobs/{job.job_id}/stop", body=body, status_path=status_path)
    body = {**({} if target is None else {"target-directory": target}), "cancel-job": False, **chosen}
    return TriggerRequest(what="savepoint", path=status_path, body=body, status_path=status_path)


def checkpoint_request(client: RestClient, job: Job) -> TriggerRequest:
    """Return the request for a checkpoint of the kind that the job is configured for.

    Raises
    ------
    TriggerFailedError
        The job has ended.
    UnsupportedError
        The release of Flink cannot trigger checkpoints.
    """
    _require_running(client, job)
    _require_release(client, _TRIGGERS_CHECKPOINTS, "take a checkpoint on request", "run: statetool savepoint")
    path = f"/jobs/{job.job_id}/checkpoints"
    return TriggerRequest(what="checkpoint", path=path, body={}, status_path=path)


def _require_running(client: RestClient, job: Job) -> None:
    if job.has_ended:
        raise TriggerFailedError(f"{job} has ended", hint=f"run: statetool jobs {client.server}")


def _require_release(client: RestClient, least: tuple[int, int], what: str, hint: str) -> None:
    version = str(client.get("/config").get("flink-version", ""))
    numbers = tuple(int(n) for n in version.split(".")[:2] if n.isdecimal())
    if len(numbers) == 2 and numbers < least:
        raise UnsupportedError(f"Flink {version} cannot {what}, which needs {least[0]}.{least[1]}", hint=hint)


def trigger(client: RestClient, job: Job, request: TriggerRequest, on_wait: Callable[[float], None]) -> str:
    """Send the request, wait for the result and return the path of the snapshot, as Flink names it.

    Parameters
    ----------
    on_wait
        Called while waiting, with the seconds since the request.

    Raises
    ------
    TriggerFailedError
        Flink could not take it; the message is its reason.
    ConnectionFailedError
        The server does not answer. The savepoint or checkpoint may be in progress.
    """
    start = time.monotonic()
    try:
        number = _field(client.post(request.path, request.body), request.path, "request-id")
    except RestError as error:
        if request.what == "savepoint" and not request.body.keys() & {"target-directory", "targetDirectory"}:
            error.hint = "pass --to DIR, if execution.checkpointing.savepoint-dir of the cluster is not set"
        raise
    path = f"{request.status_path}/{number}"
    attempt = 0
    while True:
        try:
            answer = client.get(path)
        except ConnectionFailedError as error:
            error.hint = f"the {request.what} may still be in progress or complete: {error.hint}"
            raise
        status = _field(_field(answer, path, "status"), path, "id")
        if status == "COMPLETED":
            return _location(client, job, request, _field(answer, path, "operation"), path)
        if status != "IN_PROGRESS":
            raise FormatError(f"{path}: a {request.what} with the unknown status {status!r:.100}")
        client.renew_deadline()
        on_wait(time.monotonic() - start)
        time.sleep(_STEPS_S[min(attempt, len(_STEPS_S) - 1)])
        attempt += 1


def _location(client: RestClient, job: Job, request: TriggerRequest, operation: Any, path: str) -> str:
    with reading_answer(path):
        failure = operation.get("failure-cause")
        cause = failure and str(failure.get("stack-trace") or failure.get("class"))
    if cause:
        reason = shorten_reason(client.hide(cause))
        raise TriggerFailedError(f"Flink could not take a {request.what} of {job}: {reason}")
    if request.what == "savepoint":
        return str(_field(operation, path, "location"))
    with reading_answer(path):
        number = int(operation["checkpointId"])
    end = time.monotonic() + _PATIENCE_S
    while (taken := read_checkpoint(client, job, number)) is None and time.monotonic() < end:
        time.sleep(_STEPS_S[-1])
    if taken is None or taken.path is None:
        raise SnapshotNotFoundError(
            f"checkpoint {number} of {job} is complete, but Flink does not name its path",
            hint="run: statetool savepoint, if the job stores checkpoints in the JobManager's memory",
        )
    return taken.path


def _field(tree: Any, path: str, name: str) -> Any:
    with reading_answer(path):
        return tree[name]
