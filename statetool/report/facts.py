"""What a report is made of: answers, each as it was found, or the error that kept it from being found."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from statetool.errors import StatetoolError

if TYPE_CHECKING:
    from statetool.comparison.records import DifferenceCounts, StructureDifference
    from statetool.compatibility.verdicts import Check
    from statetool.connectors.checks import SourceCheck
    from statetool.connectors.rows import SinkRow, SourceRow
    from statetool.snapshot.metadata_tables import OperatorRow
    from statetool.snapshot.state_info import StateInfo
    from statetool.statistics.records import GrowthRow
    from statetool.statistics.statistics import Statistics
    from statetool.verification.verify import Verification

T = TypeVar("T")
#: What was found, or why it was not.
Found: TypeAlias = T | StatetoolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """What sources and sinks keep."""

    sources: list[SourceRow]
    checks: list[SourceCheck]
    sinks: list[SinkRow]

    @property
    def ok(self) -> bool:
        """Whether each split is where it should be."""
        return not any(c.is_problem for c in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What another snapshot says differently; ``unread`` says why some state was not compared."""

    equal: bool
    structure: tuple[StructureDifference, ...]
    counts: list[DifferenceCounts]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of one report.

    ``growth`` is ``None`` without a directory of checkpoints; ``differences`` are without another snapshot, and ``check`` without that and
    a release; ``against`` names them.
    """

    path: str
    checkpoint_id: int
    metadata_version: int
    now_ms: int
    operators: list[OperatorRow]
    states: Found[list[StateInfo]]
    statistics: Found[Statistics]
    verification: Found[Verification]
    connections: Found[Connections]
    growth: Found[list[GrowthRow]] | None
    against: str
    check: Found[Check] | None
    differences: Found[Differences] | None

    @property
    def failures(self) -> tuple[StatetoolError, ...]:
        """Errors that stand for answers."""
        values = (getattr(self, f.name) for f in fields(self))
        return tuple(v for v in values if isinstance(v, StatetoolError))

    @property
    def ok(self) -> bool:
        """Whether all was answered and read, the snapshot is whole, splits are where they should be, and a job would restore if that was asked."""
        judged = (self.verification, self.connections, self.check)
        return not self.failures and all(j is None or isinstance(j, StatetoolError) or j.ok for j in judged)
