"""How long a job keeps a checkpoint, compared with the time that reads take."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from statetool.errors import several

#: No job takes checkpoints in a shorter period. Copied ones may have been written at the same time.
_LEAST_PERIOD_MS: Final = 50
#: Part of a period in which it is unlikely that a checkpoint completes.
_NEGLIGIBLE: Final = 0.01
#: Number of pauses to remember.
_PAUSES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The number of checkpoints that a job keeps, and the seconds between two of them."""

    retained: int
    period_s: float

    @property
    def lifetime_s(self) -> float:
        """Seconds after which Flink deletes a checkpoint."""
        return self.retained * self.period_s

    def needed(self, read_s: float) -> int:
        """Return how many checkpoints the job must keep, so that the newest one still exists after a read."""
        return math.ceil(read_s / self.period_s) + 1

    def advice(self, read_s: float) -> str | None:
        """Return a warning for a read that took longer than Flink keeps a checkpoint, ``None`` for a shorter one.

        Parameters
        ----------
        read_s
            Seconds that the read took.
        """
        if read_s <= self.lifetime_s:
            return None
        return (
            f"the read took {read_s:.1f} s, but {self.describe()}. "
            f"set execution.checkpointing.num-retained: {self.needed(read_s)}"
        )

    def describe(self) -> str:
        """Return what the job keeps, and for how long."""
        return (
            f"the job deletes a checkpoint after about {self.lifetime_s:.1f} s "
            f"(it keeps {several(self.retained, 'checkpoint')}, and takes one each {self.period_s:.1f} s)"
        )


@dataclass(slots=True)
class BatchTimes:
    """The times of batches that read the checkpoints in a directory, and those of the checkpoints.

    Attributes
    ----------
    written_ms
        When each checkpoint that was listed was written, by id, in milliseconds since 1970.
    retained
        The smallest number of checkpoints in a listing that shows a deletion. ``None`` as long as no deletion is known.
    least_read_s
        The last batch read for at least this many seconds. 0 as long as too little is known.
    """

    written_ms: dict[int, int] = field(default_factory=dict)
    retained: int | None = None
    least_read_s: float = 0.0
    _listed: list[int] = field(default_factory=list)
    #: Start of the last batch, and the number of checkpoints that were newer than its oldest one.
    _batch: tuple[float, int] | None = None
    #: Seconds between two polls with no batch between them, and the last poll.
    _pauses: deque[float] = field(default_factory=lambda: deque(maxlen=_PAUSES))
    _polled_s: float | None = None

    def add_listing(self, written_ms: Mapping[int, int]) -> None:
        """Note the checkpoints of a listing by id."""
        if written_ms and min(written_ms) > min(self._listed, default=min(written_ms)):
            self.retained = min(len(written_ms), self.retained or len(written_ms))
        self._listed = sorted(written_ms)
        self.written_ms.update(written_ms)

    def start_batch(self, now_s: float, oldest: int) -> None:
        """Note that a batch starts to read checkpoints, the oldest of which is given."""
        self._batch = now_s, sum(number > oldest for number in self._listed)

    def end_batch(self, now_s: float) -> str | None:
        """Return a warning if the job may delete checkpoints before a batch that takes as long as the last one has read them.

        Returns ``None`` as long as too little is known, and if no batch was started.
        """
        if self._batch is None:
            return None
        (start_s, newer), self._batch = self._batch, None
        retention = self.retention
        if retention is None:
            return None
        needed = newer + retention.needed(now_s - start_s - _NEGLIGIBLE * retention.period_s)
        if needed <= retention.retained:
            return None
        return (
            f"batches start {now_s - start_s:.1f} s apart, and {retention.describe()}. "
            f"To read each one before it is deleted, set execution.checkpointing.num-retained: {needed}"
        )

    @property
    def retention(self) -> Retention | None:
        """The retention of the job, ``None`` as long as too little is known."""
        numbers = sorted(self.written_ms)
        steps = [(self.written_ms[b] - self.written_ms[a]) / (b - a) for a, b in pairwise(numbers)]
        if self.retained is None or not steps or median(steps) < _LEAST_PERIOD_MS:
            return None
        return Retention(retained=self.retained, period_s=median(steps) / 1000)

    def add_poll(self, now_s: float) -> None:
        """Note that the query looks for new checkpoints. The last batch, if one was started, has ended some time after the poll before."""
        if self._batch is not None:
            # The end of a batch shows at the next poll: with a trigger interval, up to a pause later.
            self.least_read_s = max(0.0, now_s - self._batch[0] - max(self._pauses)) if self._pauses else 0.0
        elif self._polled_s is not None:
            self._pauses.append(now_s - self._polled_s)
        self._polled_s = now_s

    def readable(self, numbers: Sequence[int], now_ms: float) -> tuple[int, ...]:
        """Return the checkpoints that a batch can read before the job deletes them, if it takes as long as the last one.

        Returns all as long as too little is known, if none would be kept long enough even when it is new, and if a checkpoint exists for
        longer than the job seems to keep one: the clock of the storage may be another.

        Parameters
        ----------
        numbers
            Ids of listed checkpoints.
        now_ms
            The time, in milliseconds since 1970.
        """
        retention = self.retention
        if retention is None or not 0 < self.least_read_s <= retention.lifetime_s:
            return tuple(numbers)
        left_s = {n: retention.lifetime_s - (now_ms - self.written_ms[n]) / 1000 for n in self._listed}
        if min(left_s.values()) < 0:
            return tuple(numbers)
        return tuple(n for n in numbers if left_s[n] >= self.least_read_s)
