"""Findings of ``advise``: settings to change, with the arithmetic, and measurements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statetool.errors import sentence, share
from statetool.operations.advice.history import Advice, Unmeasured, Unmet
from statetool.reporting.verdicts.finding import Finding, Findings, Severity

_ORDER: Final[tuple[Severity, ...]] = ("warning", "advice", "unknown", "note")


def advise_findings(advice: Sequence[Advice]) -> Findings:
    """Return the findings from the history of a job's checkpoints."""
    findings = sorted(map(_finding, advice), key=lambda f: _ORDER.index(f.severity))
    options = [a for a in advice if a.key is not None]
    fine = sum(_severity(a) == "note" for a in options)
    summary = f"{share(fine, len(options), 'setting', 'needs', 'need')} no change."
    return Findings(findings=tuple(findings), summary=summary)


def _severity(advice: Advice) -> Severity:
    if isinstance(advice, Unmet):
        return "warning"
    if isinstance(advice, Unmeasured):
        return "unknown"
    return "note" if advice.advised is None else "advice"


def _finding(advice: Advice) -> Finding:
    details = (("now", advice.now), ("arithmetic", advice.arithmetic))
    return Finding(
        severity=_severity(advice),
        where=(advice.topic,) if advice.key is None else (advice.topic, advice.key),
        what=sentence(advice.message),
        details=tuple((name, text) for name, text in details if text),
        remedy="" if advice.advised is None else f"Set {advice.key}: {advice.advised}",
        page="" if _severity(advice) == "note" else advice.page,
    )
