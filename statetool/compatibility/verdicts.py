"""Results of a check: resolutions of serializers, and verdicts on states, operators and the whole snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Literal

Verdict = Literal["fully", "after_migration", "unknown", "not"]


class Level(IntEnum):
    """Compatibility of a new serializer with the values of an old one, best first. The worst part determines the whole."""

    AS_IS = 0
    RECONFIGURED = 1
    AFTER_MIGRATION = 2
    UNKNOWN = 3
    INCOMPATIBLE = 4

    @property
    def verdict(self) -> Verdict:
        """The verdict on a restore at this level."""
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
    """Return the worst verdict, ``fully`` if there is none."""
    return max(verdicts, key=_ORDER.index, default="fully")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWarning:
    """A warning about a restore that succeeds but ``loses`` values or ``may_change`` them."""

    kind: Literal["loses", "may_change"]
    text: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """Compatibility of a new serializer with the values of an old one, with the reason and the remedy if it is not compatible."""

    level: Level
    reason: str = ""
    remedy: str = ""
    warnings: tuple[CheckWarning, ...] = ()

    def inside(self, step: str) -> Resolution:
        """Return the same resolution, with a step of the type path prepended to its reason and its warnings."""
        warnings = tuple(replace(w, text=f"{step}: {w.text}") for w in self.warnings)
        return Resolution(self.level, f"{step}: {self.reason}" if self.reason else "", self.remedy, warnings)


def combine(resolutions: Iterable[Resolution]) -> Resolution:
    """Combine the resolutions of parts: the worst level with its reasons, and all warnings."""
    resolutions = list(resolutions)
    level = max((p.level for p in resolutions), default=Level.AS_IS)
    leading = [p for p in resolutions if p.level == level]
    return Resolution(
        level,
        "; ".join(dict.fromkeys(p.reason for p in leading if p.reason)),
        "; ".join(dict.fromkeys(p.remedy for p in leading if p.remedy)),
        tuple(dict.fromkeys(w for p in resolutions for w in p.warnings)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVerdict:
    """Restore verdict on one state. ``reason`` is the reason if it is not restored, ``remedy`` the action to take."""

    name: str
    verdict: Verdict
    reason: str
    remedy: str
    warnings: tuple[CheckWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorVerdict:
    """Restore verdict on one operator: the worst verdict on itself and its states. ``uid`` is its id if no uid is known."""

    uid: str
    verdict: Verdict
    reason: str
    remedy: str
    states: tuple[StateVerdict, ...] = ()
    warnings: tuple[CheckWarning, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of checking whether a snapshot can be restored into a job."""

    verdict: Verdict
    reason: str
    operators: tuple[OperatorVerdict, ...] = field(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Values that are lost or may change although the restore succeeds, with operator and state."""
        texts = [f"{o.uid}: {w.kind}: {w.text}" for o in self.operators for w in o.warnings]
        texts += [f"{o.uid}.{s.name}: {w.kind}: {w.text}" for o in self.operators for s in o.states for w in s.warnings]
        return tuple(texts)

    @property
    def ok(self) -> bool:
        """Whether the snapshot is restored, fully or after migration, and no values are lost or may change."""
        return self.verdict in ("fully", "after_migration") and not self.warnings
