"""How long a job keeps a checkpoint, as its history shows, compared with the time that a read took."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from statetool.cluster.jobs import CheckpointHistory, find_job, read_history
from statetool.cluster.overview import connect
from statetool.errors import several


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The number of checkpoints that a job keeps, and the seconds between two of them."""

    retained: int
    period_s: float

    @property
    def lifetime_s(self) -> float:
        """Seconds after which Flink deletes a checkpoint."""
        return self.retained * self.period_s

    def advice(self, read_s: float) -> str | None:
        """Return a warning for a read that took longer than Flink keeps a checkpoint, ``None`` for a shorter one.

        Parameters
        ----------
        read_s
            Seconds that the read took.
        """
        if read_s <= self.lifetime_s:
            return None
        needed = math.ceil(read_s / self.period_s) + 1
        return (
            f"the read took {read_s:.1f} s, but the job deletes a checkpoint after about {self.lifetime_s:.1f} s "
            f"(it keeps {several(self.retained, 'checkpoint')}, and takes one each {self.period_s:.1f} s). "
            f"set execution.checkpointing.num-retained: {needed}"
        )


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
        As :func:`statetool.cluster.overview.connect` and :func:`statetool.cluster.jobs.find_job`.
    """
    client, jobs, address = connect(url)
    job = find_job(jobs, address.job, address.server)
    found = None if job.has_ended or address.savepoint else observed_retention(read_history(client, job))
    return None if found is None else found.advice(read_s)
