"""Findings of ``advise``: settings to change, with the arithmetic, and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statetool.advice.history import Advice, Unmeasured
from statetool.errors import sentence, several
from statetool.verdicts.finding import Finding, Findings, Severity

_ORDER: Final[tuple[Severity, ...]] = ("advice", "unknown", "note")


def advise_findings(advice: Sequence[Advice]) -> Findings:
    """Return the findings from the history of a job's checkpoints."""
    findings = sorted(map(_finding, advice), key=lambda f: _ORDER.index(f.severity))
    options = [a for a in advice if a.key is not None]
    fine = sum(a.advised is None and not isinstance(a, Unmeasured) for a in options)
    summary = f"{fine:,} of {several(len(options), 'setting')} {'needs' if fine == 1 else 'need'} no change."
    return Findings(findings=tuple(findings), summary=summary)


def _finding(advice: Advice) -> Finding:
    severity: Severity = "advice" if advice.advised is not None else "note"
    unknown = isinstance(advice, Unmeasured)
    details = (("now", advice.now), ("arithmetic", advice.arithmetic))
    return Finding(
        severity="unknown" if unknown else severity,
        where=(advice.topic if advice.key is None else f"{advice.topic}, {advice.key}",),
        what=sentence(advice.message),
        details=tuple((name, text) for name, text in details if text),
        remedy="" if advice.advised is None else f"Set {advice.key}: {advice.advised}",
        page=advice.page,
    )
