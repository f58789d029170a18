"""Options of a run of the new job's classes, and what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

DEFAULT_SAMPLE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run.

    Attributes
    ----------
    flink_home
        The folder of a Flink installation. Defaults to ``FLINK_HOME``, then to the package apache-flink-libraries.
    sample
        Values that are read per state; ``None`` for all.
    """

    flink_home: str | None = None
    sample: int | None = DEFAULT_SAMPLE


@dataclass(frozen=True, slots=True)
class StateRead:
    """The entries of one state that a run read. ``is_whole``: they are all."""

    operator: str
    state: str
    entries: int
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run did: the release of Flink, the version of Java, the entries that it read per state, and the seconds that it took."""

    flink: str
    java: str
    sample: int | None
    seconds: float
    states: tuple[StateRead, ...]

    def record(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        states = [
            {"operator": s.operator, "state": s.state, "entries": s.entries, "is_whole": s.is_whole}
            for s in self.states
        ]
        return {
            "flink": self.flink,
            "java": self.java,
            "sample": self.sample,
            "seconds": round(self.seconds, 3),
            "states": states,
        }
