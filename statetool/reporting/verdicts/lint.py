"""Findings of ``lint``: settings of a Flink configuration that conflict, or that have a safer alternative."""

from __future__ import annotations

from collections.abc import Sequence

from statetool.errors import sentence, several
from statetool.operations.advice import findings as advice
from statetool.reporting.verdicts.finding import Finding, Findings


def lint_findings(found: Sequence[advice.Finding], settings: int) -> Findings:
    """Return the findings about a configuration with this number of settings."""
    return Findings(findings=tuple(map(_finding, found)), summary=_summary(found, settings))


def _finding(finding: advice.Finding) -> Finding:
    return Finding(
        severity=finding.level,
        where=(f"{finding.key}: {finding.value}" if finding.value is not None else f"{finding.key} (not set)",),
        what=sentence(finding.message),
        page=finding.page,
    )


def _summary(found: Sequence[advice.Finding], settings: int) -> str:
    wrong = {f.key for f in found if f.is_contradiction and f.value is not None}
    conflicts = sum(f.is_contradiction for f in found)
    headline = f"{several(conflicts, 'setting')} in conflict" if conflicts else "No conflicts"
    fine = f"{settings - len(wrong):,} of {several(settings, 'setting')} in the file are consistent"
    return f"{headline}; {fine}. Settings in the job's code are not checked."
