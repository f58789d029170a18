"""The history of a job's checkpoints, the aims for them, and the formulas.

The formulas, in the letters of the arithmetic that is shown:

* ``d`` how long a checkpoint takes (99 of 100), ``I`` the interval, ``P`` the period: a checkpoint starts every max(I, d + min-pause).
* Overhead is the share of time in which a checkpoint is being taken, ``d / P``. At most ``x`` needs ``P >= d / x``, which
  ``min-pause = d * (1 - x) / x`` holds even where checkpoints take longer.
* Recovery: after ``r`` (finding the failure, and loading state: bytes / (parallelism * rate)) there is up to ``I + d + r`` of input to
  catch up with, at ``c`` times the usual speed: ``y = r + (I + d + r) / (c - 1)``. At most ``y`` needs ``I <= (y - r) * (c - 1) - d - r``.
* A transaction of an exactly-once sink is open from one checkpoint to the end of the next: up to ``P + timeout``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from statetool.advice.configuration import Configuration
from statetool.advice.statistics import CheckpointStatistics, SubtaskTimes
from statetool.directories.chain import Chain
from statetool.errors import OptionError

#: How long it takes to find a failure and start tasks anew, which nothing records.
DETECTION_MS: Final = 10_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One piece of advice from the history of a job.

    ``topic`` is its subject; ``now`` what was measured or is set, ``advised`` what to set (``None``: nothing to change), ``key`` the
    option; ``arithmetic`` how it was computed, ``page`` the page of Flink's documentation.
    """

    topic: str
    key: str | None
    now: str | None
    advised: str | None
    message: str
    arithmetic: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """The aims for checkpoints and recovery, and assumptions about the job.

    ``overhead`` is a share, ``recovery_ms`` how long after a failure results are behind at most, ``catch_up`` how many times the usual
    input the job can take, ``restore_bytes_s`` bytes that a subtask loads in a second.
    """

    overhead: float = 0.1
    recovery_ms: float = 300_000.0
    catch_up: float = 2.0
    restore_bytes_s: int = 100 << 20

    def __post_init__(self) -> None:
        if not 0 < self.overhead < 1:
            raise OptionError(f"an overhead of {self.overhead} is no share between 0 and 1")
        if self.catch_up <= 1:
            raise OptionError(
                f"a job that takes {self.catch_up} times its input never catches up", hint="more than 1 is needed"
            )
        if self.recovery_ms <= 0 or self.restore_bytes_s <= 0:
            raise OptionError("recovery and the rate of loading are above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that is known of a job."""

    chain: Chain
    statistics: CheckpointStatistics | None
    subtasks: Sequence[SubtaskTimes]
    configuration: Configuration | None
    aims: Aims
    parallelism: int

    @property
    def interval_ms(self) -> float | None:
        """The configured interval, else the observed one."""
        return self.option_ms("interval") or self.observed_interval_ms

    @property
    def observed_interval_ms(self) -> float | None:
        """The median time between checkpoints; missing ids count as checkpoints that have been deleted."""
        if self.statistics is not None and len(self.statistics.checkpoints) > 1:
            points = [(c.checkpoint_id, c.triggered_ms) for c in self.statistics.checkpoints]
        else:
            points = [(c.checkpoint_id, c.modified_ms) for c in self.chain.checkpoints if c.modified_ms is not None]
        steps = [(t - s) / (j - i) for (i, s), (j, t) in itertools.pairwise(points) if j > i and t > s]
        return median(steps) if steps else None

    @property
    def duration_ms(self) -> float | None:
        """How long 99 of 100 checkpoints take at most; ``None`` without the REST statistics."""
        return None if self.statistics is None else self.statistics.p99_ms

    @property
    def state_bytes(self) -> int:
        """Bytes of the newest snapshot."""
        return self.chain.checkpoints[-1].total_bytes

    @property
    def restore_ms(self) -> float:
        """How long it takes until a failed job goes on: finding the failure, and loading state."""
        return DETECTION_MS + 1000 * self.state_bytes / (self.aims.restore_bytes_s * self.parallelism)

    def option_ms(self, name: str) -> float | None:
        """Return a duration of the configuration, by the end of its key."""
        return None if self.configuration is None else self.configuration.millis(f"execution.checkpointing.{name}")
