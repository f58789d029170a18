"""Findings of ``sources check``: splits that are read twice, or by no reader, and sources that cannot be checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statetool.compatibility.verdicts import A
from statetool.connectors.checks import SourceCheck
from statetool.errors import sentence, several, share
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding, Findings, Severity
from statetool.types.operators import describe_operators

_ORDER: Final[tuple[Severity, ...]] = ("error", "unknown", "note")
#: Findings about splits that no reader has.
_IN_ENUMERATOR: Final = ("assigned_held_by_none", "unassigned_twice")


def source_findings(
    checks: Sequence[SourceCheck], sources: Sequence[str], commands: CommandLine | None = None
) -> Findings:
    """Return the findings about sources. ``sources`` are the operators of all sources that were checked."""
    commands = CommandLine() if commands is None else commands
    same: dict[tuple[str, str, str], list[SourceCheck]] = {}
    for check in checks:
        same.setdefault((check.operator, check.check, check.message), []).append(check)
    findings = sorted((_finding(c, commands) for c in same.values()), key=lambda f: _ORDER.index(f.severity))
    wrong = {c.operator for c in checks if c.is_problem}
    fine = sum(s not in wrong for s in sources)
    summary = f"{share(fine, len(sources), 'source', 'reads', 'read')} each split exactly once."
    return Findings(findings=tuple(findings), summary=summary if sources else "The snapshot has no sources.")


def _finding(checks: Sequence[SourceCheck], commands: CommandLine) -> Finding:
    """Return one finding for all splits of a source with the same problem."""
    check = checks[0]
    splits = [c for c in checks if c.split_id is not None]
    where = describe_operators([check.operator]), *([several(len(splits), "split")] if splits else [])
    remedy = command = ""
    if check.is_unknown:
        remedy = "Look at the stored bytes of its splits."
        command = commands.suggest("sources", "show", A, "--uid", check.operator, "--json")
    elif check.is_problem:
        enumerator = ("--enumerator",) if check.check in _IN_ENUMERATOR else ()
        remedy = f"Look at the positions in the {'enumerator' if enumerator else 'readers'}, then add or remove splits in a copy (sources add, sources remove)."
        command = commands.suggest("sources", "show", A, "--uid", check.operator, *enumerator)
    return Finding(
        severity="unknown" if check.is_unknown else "error" if check.is_problem else "note",
        where=where,
        what=sentence(check.message),
        details=tuple(("split", _split(c)) for c in splits),
        remedy=remedy,
        command=command,
    )


def _split(check: SourceCheck) -> str:
    readers = f" in subtask{'s' if ',' in check.subtasks else ''} {check.subtasks}" if check.subtasks else ""
    return f"{check.split_id}{readers}"
