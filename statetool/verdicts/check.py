"""Findings of a check: what keeps a job from restoring a snapshot, or makes it lose values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from statetool.compatibility.verdicts import (
    STARTS_EMPTY,
    Cause,
    Check,
    CheckWarning,
    Level,
    OperatorVerdict,
    Placeholder,
    Remedy,
    StateVerdict,
    Verdict,
)
from statetool.errors import several, share
from statetool.types.operators import describe_operators
from statetool.verdicts.commands import CommandLine
from statetool.verdicts.finding import Finding, Findings, Severity

if TYPE_CHECKING:
    from statetool.migration.plan import MigrationPlan, StateMigration

_ORDER: Final[tuple[Severity, ...]] = ("error", "unknown", "warning", "note")
_SEVERITIES: Final[dict[Level, Severity]] = {
    Level.INCOMPATIBLE: "error",
    Level.UNKNOWN: "unknown",
    Level.AFTER_MIGRATION: "note",
}
_CONSEQUENCES: Final[dict[Level, str]] = {
    Level.INCOMPATIBLE: "Flink does not restore this state.",
    Level.AFTER_MIGRATION: "Flink migrates the values when it restores them.",
}
_VERDICTS: Final[dict[Verdict, str]] = {
    "fully": "The job restores.",
    "after_migration": "The job restores, and Flink migrates values.",
    "unknown": "Whether the job restores is unknown.",
    "not": "The job does not restore.",
}


def check_findings(check: Check, commands: CommandLine | None = None, plan: MigrationPlan | None = None) -> Findings:
    """Return the findings of a check.

    Parameters
    ----------
    plan
        The plan of a migration of the snapshot to the new job, which shows if ``statetool migrate`` helps.
    """
    remedies = _Remedies(CommandLine() if commands is None else commands, plan)
    findings = list(_findings(check, remedies))
    findings.sort(key=lambda f: _ORDER.index(f.severity))
    return Findings(findings=tuple(findings), summary=_summary(check))


def _findings(check: Check, remedies: _Remedies) -> Iterator[Finding]:
    yield from _of_causes((), check.causes, remedies)
    yield from _of_operators(check.operators, remedies)
    for operator in check.operators:
        where = (describe_operators([operator.uid]),)
        yield from _of_warnings(where, operator.warnings, remedies)
        for state in operator.states:
            place = (*where, f"state {state.name}")
            migration = remedies.migration(operator.uid, state.name)
            yield from _of_causes(place, state.causes, remedies, migration)
            yield from _of_warnings(place, state.warnings, remedies, migration)


def _of_operators(operators: Iterable[OperatorVerdict], remedies: _Remedies) -> Iterator[Finding]:
    """Yield the findings about operators themselves. Operators with the same cause share one."""
    same: dict[tuple[Level, tuple[str, ...], str, str], list[tuple[str, Cause]]] = {}
    for operator in operators:
        for cause in operator.causes:
            text = "" if cause.remedy is None else cause.remedy.text
            same.setdefault((cause.level, cause.path, cause.reason, text), []).append((operator.uid, cause))
    for shared in same.values():
        where = describe_operators([uid for uid, _ in shared])
        yield from _of_causes((where,), (_merged([cause for _, cause in shared]),), remedies)


def _merged(causes: Sequence[Cause]) -> Cause:
    """Return one cause for several operators: its command has the options of all their commands."""
    first, *others = causes
    if first.remedy is None:
        return first
    command = first.remedy.command
    for cause in others:
        if cause.remedy is not None and cause.remedy.command != first.remedy.command:
            command += tuple(w for w in cause.remedy.command[1:] if not isinstance(w, Placeholder))
    return replace(first, remedy=replace(first.remedy, command=command))


def _of_causes(
    where: tuple[str, ...],
    causes: tuple[Cause, ...],
    remedies: _Remedies,
    migration: StateMigration | None = None,
) -> Iterator[Finding]:
    for cause in causes:
        if cause.level in _SEVERITIES:
            remedy, command = remedies.of(cause.remedy, migration)
            yield Finding(
                severity=_SEVERITIES[cause.level],
                where=_within(where, cause.path),
                what=cause.reason,
                why=_CONSEQUENCES.get(cause.level, "") if len(where) > 1 else "",
                remedy=remedy,
                command=command,
            )


def _of_warnings(
    where: tuple[str, ...],
    warnings: tuple[CheckWarning, ...],
    remedies: _Remedies,
    migration: StateMigration | None = None,
) -> Iterator[Finding]:
    for warning in warnings:
        if not warning.in_reason:
            remedy, command = remedies.of(warning.remedy, migration)
            lost = "Values are lost" if warning.kind == "loses" else "Values may change"
            yield Finding(
                severity="warning",
                where=_within(where, warning.path),
                what=warning.message,
                why=f"{lost} although Flink restores the snapshot.",
                remedy=remedy,
                command=command,
            )


def _within(where: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
    return (*where, ".".join(path)) if path else where


class _Remedies:
    """Remedies as text and command. With the plan of a migration, ``migrate`` is suggested only if it helps."""

    def __init__(self, commands: CommandLine, plan: MigrationPlan | None) -> None:
        self._commands = commands
        self._plan = plan
        self._migrations = {} if plan is None else {(s.uid, s.state): s for s in plan.states}

    def migration(self, uid: str, state: str) -> StateMigration | None:
        """Return the planned migration of a state."""
        return self._migrations.get((uid, state))

    def of(self, remedy: Remedy | None, migration: StateMigration | None) -> tuple[str, str]:
        """Return the text and the command of a remedy."""
        if remedy is None:
            return "", ""
        text, command = remedy.text, remedy.command
        if self._plan is not None and command[:1] == ("migrate",) and "--dry-run" not in command:
            text, command = self._migrate(remedy, migration)
        return text, self._commands.suggest(*command) if command else ""

    def _migrate(self, remedy: Remedy, migration: StateMigration | None) -> tuple[str, tuple[str, ...]]:
        assert self._plan is not None
        dry_run = (*remedy.command, "--dry-run")
        if migration is None:
            return "statetool has no conversion for this state. See its possible conversions.", dry_run
        steps = "; ".join(f"{s.path}: {s.text}" for s in migration.steps)
        if any(s.change == "impossible" for s in migration.unaccepted):
            return f"Not every value can be converted ({steps}). See the steps of the migration.", dry_run
        if migration.unaccepted:
            return f"A migrated copy loses something ({steps}). See the steps, and accept them with --accept.", dry_run
        if self._plan.refused or any(row.needs != "nothing" for row in self._plan.rows):
            return f"statetool can convert this state ({steps}), but others need a decision. See the steps.", dry_run
        return f"Write a copy of the snapshot with converted values ({steps}; nothing is lost).", remedy.command


def _summary(check: Check) -> str:
    headline = _VERDICTS[check.verdict]
    if check.warnings and check.verdict in ("fully", "after_migration"):
        headline = headline.replace("restores", "restores, but values are lost or may change", 1)
    operators = [o for o in check.operators if o.reason != STARTS_EMPTY]
    states = sum(len(o.states) for o in operators)
    fine = sum(_is_fine(s) for o in operators if _is_fine(o) for s in o.states)
    whole = sum(_is_fine(o) and all(map(_is_fine, o.states)) for o in operators)
    within = f"(in {whole:,} of {several(len(operators), 'operator')})"
    unchanged = share(fine, states, "state", f"{within} restores unchanged.", f"{within} restore unchanged.")
    new = len(check.operators) - len(operators)
    empty = f" {several(new, 'new operator')} {'starts' if new == 1 else 'start'} empty." if new else ""
    apart = "Apart from that, " if check.causes else ""
    return f"{headline} {apart}{unchanged}{empty}"


def _is_fine(verdict: OperatorVerdict | StateVerdict) -> bool:
    """Return True if a state, or an operator apart from its states, is restored unchanged."""
    return not verdict.warnings and all(c.level < Level.AFTER_MIGRATION for c in verdict.causes)
