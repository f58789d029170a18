"""What a check finds: how serializers go together, and verdicts on states, operators and the whole snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Literal

Verdict = Literal["fully", "after_migration", "unknown", "not"]


class Level(IntEnum):
    """How a new serializer goes with what an old one wrote, best first; of parts the worst counts."""

    AS_IS = 0
    RECONFIGURED = 1
    AFTER_MIGRATION = 2
    UNKNOWN = 3
    INCOMPATIBLE = 4

    @property
    def verdict(self) -> Verdict:
        """What it means for a restore."""
        return _VERDICTS[self]


_VERDICTS: Final[dict[Level, Verdict]] = {
    Level.AS_IS: "fully",
    Level.RECONFIGURED: "fully",
    Level.AFTER_MIGRATION: "after_migration",
    Level.UNKNOWN: "unknown",
    Level.INCOMPATIBLE: "not",
}
_ORDER: Final[tuple[Verdict, ...]] = ("fully", "after_migration", "unknown", "not")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts; ``fully`` of none."""
    return max(verdicts, key=_ORDER.index, default="fully")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWarning:
    """A restore that succeeds, and then ``loses`` values or ``may_change`` them."""

    kind: Literal["loses", "may_change"]
    text: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """How two serializers go together, why, and what can be done."""

    level: Level
    reason: str = ""
    remedy: str = ""
    warnings: tuple[CheckWarning, ...] = ()

    def inside(self, step: str) -> Resolution:
        """Return the resolution of a part, with the way to it in its reason."""
        warnings = tuple(replace(w, text=f"{step}: {w.text}") for w in self.warnings)
        return Resolution(self.level, f"{step}: {self.reason}" if self.reason else "", self.remedy, warnings)


def combined(parts: Iterable[Resolution]) -> Resolution:
    """Return what parts mean for the whole: the worst level with its reasons, and all warnings."""
    found = list(parts)
    level = max((p.level for p in found), default=Level.AS_IS)
    leading = [p for p in found if p.level == level]
    return Resolution(
        level,
        "; ".join(dict.fromkeys(p.reason for p in leading if p.reason)),
        "; ".join(dict.fromkeys(p.remedy for p in leading if p.remedy)),
        tuple(dict.fromkeys(w for p in found for w in p.warnings)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVerdict:
    """Whether one state is restored; ``reason`` says why not, ``remedy`` what to do."""

    name: str
    verdict: Verdict
    reason: str
    remedy: str
    warnings: tuple[CheckWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorVerdict:
    """Whether one operator is restored: the worst of its own reasons and its states. ``uid`` is its id where no uid is known."""

    uid: str
    verdict: Verdict
    reason: str
    remedy: str
    states: tuple[StateVerdict, ...] = ()
    warnings: tuple[CheckWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Whether a snapshot is restored into a job."""

    verdict: Verdict
    reason: str
    operators: tuple[OperatorVerdict, ...] = field(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is lost or may change though the restore succeeds, with operator and state."""
        found = [f"{o.uid}: {w.kind}: {w.text}" for o in self.operators for w in o.warnings]
        found += [f"{o.uid}.{s.name}: {w.kind}: {w.text}" for o in self.operators for s in o.states for w in s.warnings]
        return tuple(found)

    @property
    def ok(self) -> bool:
        """Whether it restores, fully or after migration, and nothing is lost or may change."""
        return self.verdict in ("fully", "after_migration") and not self.warnings
