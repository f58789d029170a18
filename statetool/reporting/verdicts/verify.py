"""Findings of a verification: damage, and everything that was not read or not checked."""

from __future__ import annotations

import re
from typing import Final

from statetool.analysis.verification.problems import Problem
from statetool.analysis.verification.verify import Verification
from statetool.compatibility.verdicts import A
from statetool.errors import sentence, several
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding, Findings, Severity
from statetool.types.operators import display_name

_TRIED: Final = re.compile(r"; tried (?P<paths>.*?)\. (?P<hint>[A-Z].*)$")
_REBASE: Final = "rebase OLD=NEW"
_ORDER: Final[tuple[Severity, ...]] = ("error", "unknown", "warning", "note")


def verify_findings(verification: Verification, commands: CommandLine | None = None) -> Findings:
    """Return the findings of a verification."""
    commands = CommandLine() if commands is None else commands
    findings = [_finding(p, commands) for p in verification.problems]
    findings = [f for f in findings if not any(_repeats(f, other) for other in findings)]
    findings.sort(key=lambda f: _ORDER.index(f.severity))
    return Findings(findings=tuple(findings), summary=_summary(verification))


def _repeats(finding: Finding, other: Finding) -> bool:
    """Return True if another finding has the same reason: state that was not read was not checked either."""
    if (finding.severity, finding.where) != (other.severity, other.where) or finding.what == other.what:
        return False
    return other.what.lower().endswith(finding.what.lower())


def _finding(problem: Problem, commands: CommandLine) -> Finding:
    what, tried = _without_tried(problem)
    remedy = command = ""
    if problem.unread:
        remedy = "Pass the job's jar (--jar), declare its type (--declare), or accept that this state is not checked."
        command = commands.suggest("verify", A, "--allow-unread")
    elif problem.is_missing_file or _REBASE in problem.problem:
        remedy = "" if _REBASE in problem.problem else "Copy the file back, or pass the new location of its directory."
        command = commands.suggest("verify", A, "--rebase", "OLD=NEW")
    elif "--jar" in problem.problem:
        command = commands.suggest("verify", A, "--jar", "FILE")
    elif problem.is_unknown:
        remedy = "Nothing indicates damage. To be sure, restore a copy of the job from this snapshot."
    return Finding(
        severity="unknown" if problem.is_unknown else problem.severity,
        where=_where(problem),
        what=sentence(what),
        details=(*_details(problem), *tried),
        remedy=remedy,
        command=command,
    )


def _without_tried(problem: Problem) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the text of a problem, and the paths under which a missing file was looked for as details."""
    found = _TRIED.search(problem.problem) if problem.is_missing_file else None
    if found is None:
        return problem.problem, ()
    paths = dict.fromkeys(found["paths"].split(", "))
    return f"the file does not exist. {found['hint']}", tuple(("tried", path) for path in paths if path != problem.file)


def _where(problem: Problem) -> tuple[str, ...]:
    operator = None if problem.operator is None else display_name(problem.operator)
    parts = (("operator", operator), ("subtask", problem.subtask), ("state", problem.state))
    return tuple(f"{name} {value}" for name, value in parts if value is not None)


def _details(problem: Problem) -> tuple[tuple[str, str], ...]:
    parts = (("file", problem.file), ("byte", problem.offset))
    return tuple((name, str(value)) for name, value in parts if value is not None)


def _summary(verification: Verification) -> str:
    checked = [
        several(verification.operators, "operator"),
        f"{several(verification.streams, 'piece')} of state in files",
        f"{several(verification.entries, 'entry', 'entries')} of keyed state",
        f"{'about ' if verification.keys_are_estimated else ''}{several(verification.keys, 'key')} in their key groups",
    ]
    if verification.named_files:
        checked.insert(2, f"{several(verification.named_files, 'file')} that only state names")
    if verification.deep:
        checked.append(f"{several(verification.elements, 'element')} of operator state")
    errors = sum(p.severity == "error" for p in verification.problems)
    found = (
        f"{errors:,} or more errors" if verification.truncated else several(errors, "error") if errors else "no errors"
    )
    unread = f", {several(verification.unread, 'piece')} of state not read" if verification.unread else ""
    depth = (
        "Values without a checksum may have been changed in ways that no reader can detect."
        if verification.deep
        else "Values were not decoded (--deep)."
    )
    return f"Checked {', '.join(checked)}: {found}{unread}. {depth}"
