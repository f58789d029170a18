"""How long a running job keeps a checkpoint, as its history shows."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from statetool.io.retention import Retention
from statetool.operations.cluster.jobs import CheckpointHistory, find_job, read_history
from statetool.operations.cluster.overview import connect


def observed_retention(history: CheckpointHistory) -> Retention | None:
    """Return the retention that a history shows, ``None`` if no checkpoint was deleted yet or the period is unknown."""
    completed = [c for c in history.recent if c.kind == "checkpoint" and c.status == "COMPLETED"]
    steps = [after.triggered_ms - before.triggered_ms for before, after in pairwise(completed)]
    retained = sum(not c.deleted for c in completed)
    if not steps or median(steps) <= 0 or not 0 < retained < len(completed):
        return None
    return Retention(retained=retained, period_s=median(steps) / 1000)


def retention_advice(url: str, read_s: float) -> str | None:
    """Return a warning if a read of a running job took longer than the job keeps a checkpoint.

    Raises
    ------
    StatetoolError
        As :func:`statetool.operations.cluster.overview.connect` and :func:`statetool.operations.cluster.jobs.find_job`.
    """
    client, jobs, address = connect(url)
    job = find_job(jobs, address.job, address.server)
    found = None if job.has_ended or address.savepoint else observed_retention(read_history(client, job))
    return None if found is None else found.advice(read_s)
