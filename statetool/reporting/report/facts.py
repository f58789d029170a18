"""The content of a report: results, or the errors that replace them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from statetool.errors import StatetoolError
from statetool.types.operators import display_name

if TYPE_CHECKING:
    from statetool.analysis.comparison.records import DifferenceCounts, StructureDifference
    from statetool.analysis.statistics.records import GrowthRow
    from statetool.analysis.statistics.statistics import Statistics
    from statetool.analysis.verification.verify import Verification
    from statetool.compatibility.verdicts import Check
    from statetool.connectors.checks import SourceCheck
    from statetool.connectors.rows import SinkRow, SourceRow
    from statetool.snapshot.metadata_tables import OperatorRow
    from statetool.snapshot.state_info import StateInfo

T = TypeVar("T")
#: A result, or the error that prevented it.
Answer: TypeAlias = T | StatetoolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """State of sources and sinks."""

    sources: list[SourceRow]
    checks: list[SourceCheck]
    sinks: list[SinkRow]

    @property
    def ok(self) -> bool:
        """Return True if each split is assigned as expected."""
        return not any(c.is_problem and not c.is_unknown for c in self.checks)

    @property
    def unread(self) -> list[str]:
        """Return the state of sources and sinks that no connector can read."""
        sources = [f"{display_name(c.operator)}: {c.message}" for c in self.checks if c.is_unknown]
        return sources + [f"{display_name(s.operator)}: {s.note}" for s in self.unread_sinks]

    @property
    def unread_sinks(self) -> list[SinkRow]:
        """Return the sinks with state that no connector can read."""
        return [s for s in self.sinks if s.undecoded or s.pending is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """The differences to another snapshot; ``unread`` says why some state was not compared."""

    equal: bool
    structure: tuple[StructureDifference, ...]
    counts: list[DifferenceCounts]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All results of one report.

    ``growth`` is ``None`` without a directory of checkpoints, ``differences`` without a second snapshot, and ``check`` without a second
    snapshot or a release; ``against`` names these, and ``other`` is the path of the second snapshot.
    """

    path: str
    checkpoint_id: int
    metadata_version: int
    now_ms: int
    operators: list[OperatorRow]
    states: Answer[list[StateInfo]]
    statistics: Answer[Statistics]
    verification: Answer[Verification]
    connections: Answer[Connections]
    growth: Answer[list[GrowthRow]] | None
    against: str
    other: str
    check: Answer[Check] | None
    differences: Answer[Differences] | None
    allow_unread: bool = False

    @property
    def failures(self) -> tuple[StatetoolError, ...]:
        """Return the errors that replace results."""
        values = (getattr(self, f.name) for f in fields(self))
        return tuple(v for v in values if isinstance(v, StatetoolError))

    @property
    def unread(self) -> tuple[str, ...]:
        """Return the state that could not be read: its location, and the reason."""
        reasons: list[str] = []
        if not isinstance(self.states, StatetoolError):
            reasons += (
                f"{display_name(s.operator)}, {s.name or s.scope}: {s.reason}" for s in self.states if not s.readable
            )
        if not isinstance(self.verification, StatetoolError):
            reasons += (
                f"{display_name(p.operator or '')}: {p.problem}" for p in self.verification.problems if p.unread
            )
        for answer in (self.statistics, self.connections, self.differences):
            if answer is not None and not isinstance(answer, StatetoolError):
                reasons += answer.unread
        return tuple(dict.fromkeys(reasons))

    @property
    def is_sound(self) -> bool:
        """Return True if, in all parts read, the snapshot is whole, splits are assigned correctly, and a job would restore (if checked)."""
        judged = (self.verification, self.connections, self.check)
        return not self.failures and all(j is None or isinstance(j, StatetoolError) or j.ok for j in judged)

    @property
    def ok(self) -> bool:
        """Return True if nothing is wrong, and everything was read or may stay unread."""
        return self.is_sound and (self.allow_unread or not self.unread)
