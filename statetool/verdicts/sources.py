"""Findings of ``sources check``: splits that are read twice, or by no reader, and sources that cannot be checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statetool.compatibility.verdicts import A
from statetool.connectors.checks import SourceCheck
from statetool.errors import sentence, several
from statetool.verdicts.commands import CommandLine
from statetool.verdicts.finding import Finding, Findings, Severity

_ORDER: Final[tuple[Severity, ...]] = ("error", "unknown", "note")


def source_findings(
    checks: Sequence[SourceCheck], sources: Sequence[str], commands: CommandLine | None = None
) -> Findings:
    """Return the findings about sources. ``sources`` are the operators of all sources that were checked."""
    commands = CommandLine() if commands is None else commands
    findings = sorted((_finding(c, commands) for c in checks), key=lambda f: _ORDER.index(f.severity))
    wrong = {c.operator for c in checks if c.is_problem}
    fine = sum(s not in wrong for s in sources)
    summary = (
        f"{fine:,} of {several(len(sources), 'source')} {'reads' if fine == 1 else 'read'} each split exactly once."
    )
    return Findings(findings=tuple(findings), summary=summary if sources else "The snapshot has no sources.")


def _finding(check: SourceCheck, commands: CommandLine) -> Finding:
    parts = (("operator", check.operator), ("split", check.split_id), ("subtasks", check.subtasks))
    remedy = command = ""
    if check.is_unknown:
        remedy = "Compare the stored bytes of its splits with another snapshot of the job."
        command = commands.suggest("sources", "show", A, "--uid", check.operator, "--json")
    elif check.is_problem:
        remedy = "Compare the positions in the readers with the enumerator."
        command = commands.suggest("sources", "show", A, "--uid", check.operator)
        if check.check == "assigned_held_by_none":
            remedy = "Compare with the splits that the enumerator knows."
            command = commands.suggest("sources", "show", A, "--uid", check.operator, "--enumerator")
    return Finding(
        severity="unknown" if check.is_unknown else "error" if check.is_problem else "note",
        where=tuple(f"{name} {value}" for name, value in parts if value),
        what=sentence(check.message),
        remedy=remedy,
        command=command,
    )
