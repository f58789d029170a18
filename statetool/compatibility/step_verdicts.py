"""Verdicts on the steps of a restore: each step is proved, assumed, unknown, not relevant, or has findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

#: ``later``: Flink restores the snapshot, and fails at the first checkpoint, record or timer.
Kind = Literal["not", "unknown", "later", "loses", "may_change", "note"]
Status = Literal["not_relevant", "proved", "assumed", "note", "may_change", "loses", "later", "unknown", "not"]
#: Best first.
_ORDER: Final[tuple[Status, ...]] = (
    "not_relevant", "proved", "note", "assumed", "may_change", "loses", "later", "unknown", "not",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A fact that the check does not know and takes for granted, and the option that proves it."""

    rule: str
    text: str
    option: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinding:
    """A finding of a step. ``operator`` and ``state`` are ``None`` if it concerns the whole snapshot or operator."""

    rule: str
    kind: Kind
    operator: str | None
    state: str | None
    text: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """The verdict on one step of a restore.

    Attributes
    ----------
    status
        ``proved``, ``assumed`` (an input is missing), ``not_relevant`` (the snapshot has nothing that the step restores), or the worst
        kind of the findings.
    reason
        Why the step is not relevant; empty otherwise.
    """

    step: str
    status: Status
    reason: str = ""
    assumptions: tuple[Assumption, ...] = ()
    findings: tuple[StepFinding, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {
            "step": self.step,
            "status": self.status,
            "reason": self.reason,
            "assumptions": [{"rule": a.rule, "text": a.text, "option": a.option} for a in self.assumptions],
            "findings": [
                {"rule": f.rule, "kind": f.kind, "operator": f.operator, "state": f.state, "text": f.text, "remedy": f.remedy}
                for f in self.findings
            ],
        }  # fmt: skip


def worst_status(statuses: Iterable[Status]) -> Status:
    """Return the worst status, ``proved`` if there is none."""
    return max(statuses, key=_ORDER.index, default="proved")
