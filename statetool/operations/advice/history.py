"""The history of a job's checkpoints, the aims for them, and the formulas.

Formulas, with the letters used in the displayed arithmetic:

* ``d`` is the duration of a checkpoint (99th percentile), ``I`` the interval, ``P`` the period: a checkpoint starts every
  max(I, d + min-pause).
* Overhead is the share of time spent taking checkpoints, ``d / P``. Overhead of at most ``x`` needs ``P >= d / x``, which
  ``min-pause = d * (1 - x) / x`` maintains even if checkpoints take longer.
* Recovery: after ``r`` (detecting the failure, and loading state: bytes / (parallelism * rate)), up to ``I + d + r`` of input remains to
  be processed at ``c`` times the normal rate: ``y = r + (I + d + r) / (c - 1)``. At most ``y`` needs ``I <= (y - r) * (c - 1) - d - r``.
* A transaction of an exactly-once sink stays open from one checkpoint to the end of the next: up to ``P + timeout``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from statetool.errors import OptionError
from statetool.operations.advice.configuration import Configuration
from statetool.operations.advice.statistics import CheckpointStatistics, SubtaskTimes
from statetool.operations.directories.chain import Chain

#: Assumed time to detect a failure and restart tasks, which no file records.
DETECTION_MS: Final = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One piece of advice from the history of a job.

    ``topic`` is its subject; ``now`` the measured or configured value, ``advised`` the suggested value (``None``: no change), ``key`` the
    option; ``arithmetic`` is the computation, ``page`` the page of Flink's documentation.
    """

    topic: str
    key: str | None
    now: str | None
    advised: str | None
    message: str
    arithmetic: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured(Advice):
    """Advice that lacks a measurement; ``message`` says which, and how to provide it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet(Advice):
    """An aim that no value of the option meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """The aims for checkpoints and recovery, and assumptions about the job.

    ``overhead`` is a share, ``recovery_ms`` the maximum time after a failure until results are up to date, ``catch_up``
    the throughput while catching up as a multiple of the normal input rate, ``restore_bytes_s`` the bytes per second that a subtask loads.
    """

    overhead: float = 0.1
    recovery_ms: float = 300_000.0
    catch_up: float = 2.0
    restore_bytes_s: int = 100 << 20

    def __post_init__(self) -> None:
        if not 0 < self.overhead < 1:
            raise OptionError(f"the overhead {self.overhead} is not between 0 and 1")
        if self.catch_up <= 1:
            raise OptionError(
                f"a job that processes {self.catch_up} times its input never catches up", hint="give a number above 1"
            )
        if self.recovery_ms <= 0 or self.restore_bytes_s <= 0:
            raise OptionError("the recovery time and the restore rate must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All known facts about a job."""

    chain: Chain
    statistics: CheckpointStatistics | None
    subtasks: Sequence[SubtaskTimes]
    configuration: Configuration | None
    aims: Aims
    parallelism: int
    writes_to_kafka: bool

    @property
    def interval_ms(self) -> float | None:
        """Return the configured interval, or else the observed one."""
        return self.option_ms("interval") or self.observed_interval_ms

    @property
    def observed_interval_ms(self) -> float | None:
        """Return the median time between checkpoints; missing ids count as deleted checkpoints."""
        if self.statistics is not None and len(self.statistics.checkpoints) > 1:
            points = [(c.checkpoint_id, c.triggered_ms) for c in self.statistics.checkpoints]
        else:
            points = [(c.checkpoint_id, c.modified_ms) for c in self.chain.checkpoints if c.modified_ms is not None]
        steps = [(t - s) / (j - i) for (i, s), (j, t) in itertools.pairwise(points) if j > i and t > s]
        return median(steps) if steps else None

    @property
    def duration_ms(self) -> float | None:
        """Return the 99th percentile of checkpoint durations; ``None`` without the REST statistics."""
        return None if self.statistics is None else self.statistics.p99_ms

    @property
    def state_bytes(self) -> int:
        """Return the size of the newest snapshot in bytes."""
        return self.chain.checkpoints[-1].total_bytes

    @property
    def restore_ms(self) -> float:
        """Return the time until a failed job resumes: detecting the failure, and loading state."""
        return DETECTION_MS + 1000 * self.state_bytes / (self.aims.restore_bytes_s * self.parallelism)

    def option_ms(self, name: str) -> float | None:
        """Return a duration of the configuration, by the last part of its key."""
        return None if self.configuration is None else self.configuration.millis(f"execution.checkpointing.{name}")
