"""The findings of a report: those of all analyses, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statetool.compatibility.verdicts import A
from statetool.errors import StatetoolError
from statetool.reporting.report.facts import Facts
from statetool.reporting.verdicts.check import check_findings
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding, Findings, Severity
from statetool.reporting.verdicts.sources import source_findings
from statetool.reporting.verdicts.verify import verify_findings
from statetool.types.operators import display_name

#: Findings that lead the page. The others are in their sections.
_LEADING: Final[tuple[Severity, ...]] = ("error", "unknown", "warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFindings:
    """All findings of a report. ``fine`` has a sentence for each analysis, ``notes`` the notes of the verification."""

    leading: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    verified: str
    fine: tuple[str, ...]


def report_findings(facts: Facts) -> ReportFindings:
    """Return the findings of all analyses."""
    commands = CommandLine(a=facts.path, b=facts.other or "B")
    parts: list[Findings] = []
    verified = None
    if not isinstance(facts.verification, StatetoolError):
        verified = verify_findings(facts.verification, commands)
        parts.append(verified)
    if facts.check is not None and not isinstance(facts.check, StatetoolError):
        parts.append(check_findings(facts.check, commands))
    if not isinstance(facts.connections, StatetoolError):
        sources = [s.operator for s in facts.connections.sources]
        if sources or facts.connections.checks:
            parts.append(source_findings(facts.connections.checks, sources, commands))
    found = [*_failures(facts), *_unread(facts, commands), *(f for part in parts for f in part.findings)]
    leading = sorted((f for f in found if f.severity in _LEADING), key=lambda f: _LEADING.index(f.severity))
    return ReportFindings(
        leading=tuple(dict.fromkeys(leading)),
        notes=() if verified is None else tuple(f for f in verified.findings if f.severity not in _LEADING),
        verified="" if verified is None else verified.summary,
        fine=tuple(part.summary for part in parts if part is not verified),
    )


def _failures(facts: Facts) -> Iterator[Finding]:
    """Yield the errors that replace results."""
    for error in facts.failures:
        details = (
            (name, str(value))
            for name, value in (("file", error.where.file), ("byte", error.where.offset))
            if value is not None
        )
        places = (("operator", error.where.operator), ("state", error.where.state))
        where = tuple(f"{name} {display_name(value)}" for name, value in places if value is not None)
        yield Finding(severity="error", where=where, what=error.message, details=tuple(details), remedy=error.hint)


def _unread(facts: Facts, commands: CommandLine) -> Iterator[Finding]:
    """Yield the state that could not be read, each with the reason. Unread state of sources is a finding of their check."""
    reasons: set[str] = set()
    for state in () if isinstance(facts.states, StatetoolError) else facts.states:
        if not state.readable:
            reasons.add(state.reason)
            name = state.name if state.kind == "unread" else f"state {state.name}"
            where = (f"operator {display_name(state.operator)}", name)
            by_jar = "--jar" in state.reason
            yield Finding(
                severity="unknown",
                where=where,
                what="Not read: only its bytes are known.",
                why=state.reason,
                remedy="Create the report again with the job's jar." if by_jar else "",
                command=commands.suggest("report", A, "--jar", "FILE") if by_jar else "",
            )
    for sink in () if isinstance(facts.connections, StatetoolError) else facts.connections.unread_sinks:
        where = (f"operator {display_name(sink.operator)}", "sink")
        yield Finding(severity="unknown", where=where, what="Its uncommitted data was not read.", why=sink.note)
    for answer, words in ((facts.statistics, "Not measured."), (facts.differences, "Not compared.")):
        if answer is not None and not isinstance(answer, StatetoolError):
            for reason in answer.unread:
                if not any(known in reason for known in reasons):
                    yield Finding(severity="unknown", where=(), what=words, why=reason)
