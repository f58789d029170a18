"""The content of a report: its answers, or the errors that stand for them."""

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
#: An answer, or the error that prevented it.
Answer: TypeAlias = T | StatetoolError


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
    """The differences to another snapshot; ``unread`` says why some state was not compared."""

    equal: bool
    structure: tuple[StructureDifference, ...]
    counts: list[DifferenceCounts]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All answers of one report.

    ``growth`` is ``None`` without a directory of checkpoints, ``differences`` without another snapshot, and ``check`` without another
    snapshot or a release; ``against`` names these.
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
    check: Answer[Check] | None
    differences: Answer[Differences] | None

    @property
    def failures(self) -> tuple[StatetoolError, ...]:
        """Errors that stand for answers."""
        values = (getattr(self, f.name) for f in fields(self))
        return tuple(v for v in values if isinstance(v, StatetoolError))

    @property
    def ok(self) -> bool:
        """Whether all was answered and read, the snapshot is whole, splits are where they should be, and a job would restore, if asked."""
        judged = (self.verification, self.connections, self.check)
        return not self.failures and all(j is None or isinstance(j, StatetoolError) or j.ok for j in judged)
