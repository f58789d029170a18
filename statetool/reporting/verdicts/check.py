"""Findings of a check: what keeps a job from restoring a snapshot, or makes it lose values."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from statetool.compatibility.verdicts import (
    NEW,
    A,
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
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding, Findings, Severity
from statetool.types.operators import OperatorLabel, describe_operators, display_name

if TYPE_CHECKING:
    from statetool.migration.plan import MigrationPlan, StateMigration

_ORDER: Final[tuple[Severity, ...]] = ("error", "unknown", "warning", "note")
#: New operators whose names are shown.
_MOST_NAMES: Final = 10
_SEVERITIES: Final[dict[Level, Severity]] = {
    Level.INCOMPATIBLE: "error",
    Level.UNKNOWN: "unknown",
    Level.AFTER_MIGRATION: "note",
}
_CONSEQUENCES: Final[dict[Level, str]] = {
    Level.INCOMPATIBLE: "Flink does not restore this state.",
    Level.AFTER_MIGRATION: "Flink migrates the values when it restores them.",
}
_WARNINGS: Final = {
    "later": "Flink restores the snapshot, and the job fails afterwards.",
    "loses": "Values are lost without an error of Flink.",
    "may_change": "Values may change without an error of Flink.",
}
_VERDICTS: Final[dict[Verdict, str]] = {
    "fully": "The job restores.",
    "after_migration": "The job restores, and Flink migrates values.",
    "unknown": "Whether the job restores is unknown.",
    "not": "The job does not restore.",
}


def verdict_sentence(check: Check, snapshot: str) -> str:
    """Return the verdict on a snapshot in one sentence, followed by its reason. It starts in lower case, and may follow a word and a colon."""
    texts: dict[Verdict, str] = {
        "fully": f"the new job restores {snapshot}",
        "after_migration": f"the new job restores {snapshot}, and Flink migrates values",
        "unknown": f"whether the new job restores {snapshot} is unknown",
        "not": f"the new job does not restore {snapshot}",
    }
    text = texts[check.verdict]
    if check.verdict in ("fully", "after_migration") and (count := len(check.assumptions)):
        text += f", if {several(count, 'assumption')} {'holds' if count == 1 else 'hold'}"
    return f"{text}: {check.reason}" if check.reason else f"{text}."


def check_findings(check: Check, commands: CommandLine | None = None, plan: MigrationPlan | None = None) -> Findings:
    """Return the findings of a check.

    Parameters
    ----------
    plan
        The plan of a migration of the snapshot to the new job, which shows if ``statetool migrate`` helps.
    """
    # If Flink does not read the metadata, it does not restore a snapshot without some state either.
    if plan is not None:
        # As Flink 2 does when it migrates values that get a time to live.
        plan = plan.with_last_access(int(time.time() * 1000))
    remedies = _Remedies(CommandLine() if commands is None else commands, plan, droppable=not _is_refused(check))
    if plan is not None and remedies.droppable:
        remedies.rest = _without_dropped(plan, check, remedies)
    findings = [*_of_renamed(check, commands or CommandLine()), *_findings(check, remedies)]
    findings.sort(key=lambda f: (_ORDER.index(f.severity), _comes_last(f)))
    return Findings(
        findings=tuple(_with_remedies_once(findings)), summary=_summary(check), conditions=_conditions(check)
    )


def _of_renamed(check: Check, commands: CommandLine) -> Iterator[Finding]:
    """Yield what must be done before Flink restores operators that have other ids in the new job."""
    if not check.renamed:
        return
    labels = {o.uid.operator_id: o.uid for o in check.operators if isinstance(o.uid, OperatorLabel)}
    yield Finding(
        severity="warning",
        where=(describe_operators([labels.get(c.new_id, c.new_uid or c.new_id) for c in check.renamed]),),
        what=f"Flink finds state by operator id, and {'this operator has' if len(check.renamed) == 1 else 'these have'} another id in the new job.",
        why="The new job does not find the state in A itself. This verdict is on a copy in which it has the new id.",
        remedy="Write the copy, and start the new job from it.",
        command=commands.rename([(c.old_id, c.new_uid or c.new_id) for c in check.renamed]),
    )


def _with_remedies_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings. Of those about one state or operator with the same remedy, such as one per field, only the last has it."""
    for finding, following in zip_longest(findings, findings[1:]):
        if (
            following is not None
            and finding.where
            and (finding.severity, finding.where[:2], finding.why, finding.remedy, finding.command)
            == (following.severity, following.where[:2], following.why, following.remedy, following.command)
        ):
            yield replace(finding, why="", remedy="", command="")
        else:
            yield finding


def _comes_last(finding: Finding) -> bool:
    """Return True for a migration: it needs what the commands against other errors write, such as a snapshot without a state."""
    return finding.severity == "error" and finding.command.startswith(("statetool migrate", "statetool upgrade"))


def _findings(check: Check, remedies: _Remedies) -> Iterator[Finding]:
    yield from _of_causes((), check.causes, remedies)
    yield from _of_warnings((), check.snapshot_warnings, remedies)
    yield from _of_operators(check.operators, remedies)
    yield from _of_same_warnings(check.operators, remedies)
    yield from _of_states(check.operators, remedies)


def _of_states(operators: Iterable[OperatorVerdict], remedies: _Remedies) -> Iterator[Finding]:
    """Yield the findings about states. States with the same finding, such as one about a class that Kryo writes, share one."""
    same: dict[Finding, list[tuple[str, str, Finding]]] = {}
    for operator in operators:
        where = (describe_operators([operator.uid]),)
        is_dropped = remedies.of_operator(operator.uid).drops(operator)
        for state in operator.states:
            place = (*where, f"state {state.name}")
            of_state = remedies.of_state(operator.uid, state, is_dropped=is_dropped)
            for finding in chain(
                _of_causes(place, state.causes, of_state), _of_warnings(place, state.warnings, of_state)
            ):
                same.setdefault(replace(finding, where=()), []).append((operator.uid, state.name, finding))
    for shared, places in same.items():
        by_operator: dict[str, dict[str, None]] = {}
        for uid, state_name, _ in places:
            by_operator.setdefault(uid, {})[state_name] = None
        count = sum(map(len, by_operator.values()))
        if count == 1:
            yield from (finding for _, _, finding in places)
        else:
            names = "; ".join(f"{display_name(uid)}: {', '.join(of)}" for uid, of in by_operator.items())
            why = shared.why.replace("this state", "these states")
            yield replace(shared, why=why, where=(f"{several(count, 'state')} ({names})",))


def _of_operators(operators: Iterable[OperatorVerdict], remedies: _Remedies) -> Iterator[Finding]:
    """Yield the findings about operators themselves. Operators with the same cause share one."""
    same: dict[tuple[Level, tuple[str, ...], str, Remedy | None], list[tuple[str, Cause]]] = {}
    for operator in operators:
        for cause in operator.causes:
            same.setdefault((cause.level, cause.path, cause.reason, _shared(cause.remedy)), []).append(
                (operator.uid, cause)
            )
    for shared in same.values():
        uids = [uid for uid, _ in shared]
        of_operator = remedies.of_operator(uids[0]) if len(uids) == 1 else remedies
        yield from _of_causes((describe_operators(uids),), (_merged([cause for _, cause in shared]),), of_operator)


def _of_same_warnings(operators: Iterable[OperatorVerdict], remedies: _Remedies) -> Iterator[Finding]:
    """Yield the warnings about operators themselves. Operators with the same warning share one."""
    same: dict[CheckWarning, list[str]] = {}
    for operator in operators:
        for warning in operator.warnings:
            same.setdefault(warning, []).append(operator.uid)
    for warning, uids in same.items():
        yield from _of_warnings((describe_operators(uids),), (warning,), remedies)


def _shared(remedy: Remedy | None) -> Remedy | None:
    """Return the part of a remedy that operators must have in common: one call of ``rescale`` takes several operators."""
    rescales = remedy is not None and remedy.command[:1] == ("rescale",)
    return replace(remedy, command=()) if remedy is not None and rescales else remedy


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
) -> Iterator[Finding]:
    for cause in causes:
        if cause.level in _SEVERITIES or cause.is_note:
            remedy, command = remedies.of_cause(cause)
            yield Finding(
                severity=_SEVERITIES.get(cause.level, "note"),
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
) -> Iterator[Finding]:
    for warning in warnings:
        if not warning.in_reason:
            remedy, command = remedies.of(warning.remedy)
            yield Finding(
                severity="error" if warning.kind == "later" else "warning",
                where=_within(where, warning.path),
                what=warning.message,
                why=_WARNINGS[warning.kind],
                remedy=remedy,
                command=command,
            )


def _within(where: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
    return (*where, ".".join(path)) if path else where


class _Remedies:
    """Remedies as text and command. A command is suggested only if a trial shows that it helps: ``migrate`` by the plan of a migration.

    All commands that are printed can be run one after another, so each operator and each state has one, whatever the number of its causes.
    """

    def __init__(self, commands: CommandLine, plan: MigrationPlan | None, *, droppable: bool) -> None:
        self._commands = commands
        self._plan = plan
        #: The plan without the states that other commands leave out.
        self.rest = plan
        self.droppable = droppable
        self._migration: StateMigration | None = None
        #: The remedy that leaves out the state of the finding.
        self._drop = Remedy("")
        self._is_refused = False
        #: The text and command that mend all causes of a state.
        self._mends: tuple[str, tuple[str, ...]] | None = None

    def of_operator(self, uid: str) -> _Remedies:
        """Return the remedies of one operator."""
        found = _Remedies(self._commands, self._plan, droppable=self.droppable)
        found.rest = self.rest
        found._drop = Remedy(
            "If its state is not needed, drop it: it then starts empty.", ("drop", A, NEW, "--uid", uid)
        )
        return found

    def drops(self, verdict: OperatorVerdict | StateVerdict) -> bool:
        """Return True if the command against the causes of the operator itself, or of the state, leaves it out."""
        verbs = {command[0] for _, command in self._against(verdict) if command}
        return "drop" in verbs and "migrate" not in verbs

    def of_state(self, uid: str, verdict: StateVerdict, *, is_dropped: bool) -> _Remedies:
        """Return the remedies of one state. ``is_dropped``: the command against causes of the operator leaves it out."""
        found = self.of_operator(uid)
        found._drop = Remedy(
            "If its values are not needed, drop the state: it then starts empty.",
            (*found._drop.command, "--state", verdict.name),
        )
        # The plan was made without the names that the other snapshot has for the same operators.
        planned = () if self._plan is None else self._plan.states
        place = (_operator_id(uid), verdict.name)
        found._migration = next((s for s in planned if (_operator_id(s.uid), s.state) == place), None)
        against = found._against(verdict)
        found._is_refused = bool(against)
        if is_dropped:
            found._mends = ("Leaving out the operator leaves out this state, too.", ())
        else:
            found._mends = next((a for a in against if a[1][:1] == ("migrate",)), None)
        return found

    def _against(self, verdict: OperatorVerdict | StateVerdict) -> list[tuple[str, tuple[str, ...]]]:
        return [self._mending(c) for c in verdict.causes if c.level == Level.INCOMPATIBLE]

    def of(self, remedy: Remedy | None) -> tuple[str, str]:
        """Return the text and the command of a remedy. A state that Flink refuses has the command against that."""
        text, command = self._tried(remedy)
        return self._shown(text, () if self._is_refused else command)

    def of_cause(self, cause: Cause) -> tuple[str, str]:
        """Return the text and the command against a cause. State that Flink refuses can always be left out."""
        text, command = self._mending(cause)
        if cause.level == Level.INCOMPATIBLE and self._mends is not None and command != self._mends[1]:
            own = self._tried(cause.remedy)[0] if self._mends[1] else ""
            text, command = f"{own} {self._mends[0]}".strip(), self._mends[1]
        return self._shown(text, command)

    def _mending(self, cause: Cause) -> tuple[str, tuple[str, ...]]:
        text, command = self._tried(cause.remedy)
        is_final = cause.remedy is not None and cause.remedy.is_final
        if cause.level == Level.INCOMPATIBLE and self.droppable and self._drop.command and not command and not is_final:
            return f"{text} {self._drop.text}".strip(), self._drop.command
        return text, command

    def _shown(self, text: str, command: tuple[str, ...]) -> tuple[str, str]:
        return text, self._commands.suggest(*command) if command else ""

    def _tried(self, remedy: Remedy | None) -> tuple[str, tuple[str, ...]]:
        if remedy is None:
            return "", ()
        if not remedy.migrates or self.rest is None:
            return f"{remedy.otherwise} {remedy.text}".lstrip(), remedy.command
        text, command = self._migrate(remedy, self.rest)
        return (text if command else f"{remedy.otherwise} {text}".lstrip()), command

    def _migrate(self, remedy: Remedy, plan: MigrationPlan) -> tuple[str, tuple[str, ...]]:
        if self._migration is None:
            return "statetool has no conversion for this state.", ()
        own = f"{self._migration.name}: "
        if refused := [r.removeprefix(own) for r in (self._plan or plan).refused if r.startswith(own)]:
            return f"statetool does not convert this state: {'; '.join(refused)}.", ()
        paths: dict[str, list[str]] = {}
        for step in self._migration.steps:
            paths.setdefault(step.text, []).append(step.path)
        steps = "; ".join(f"{', '.join(of)}: {text}" for text, of in paths.items())
        impossible = [s for s in self._migration.unaccepted if s.change == "impossible"]
        if impossible and all(s.asks for s in impossible):
            return f"statetool can convert this state if you decide what only you know ({steps}).", remedy.command
        if impossible:
            text = f"Not every value can be converted ({steps}). See the choices: statetool migrate --dry-run."
            return text, ()
        if self._migration.failure:
            return f"Not every value can be converted ({steps}): {self._migration.failure}.", ()
        if plan.refused or any(s.failure for s in plan.states) or any(r.needs == "correction" for r in plan.rows):
            text = f"statetool can convert this state ({steps}), but others need a decision. See the steps."
            return text, remedy.command
        accepted = tuple(w for row in plan.rows if row.needs == "acceptance" for w in ("--accept", row.step))
        accessed = any(s.choices.last_access_ms is not None for s in plan.states)
        last_access = ("--last-access", "now") if accessed else ()
        command = (*(word for word in remedy.command if word != "--dry-run"), *last_access, *accepted)
        if self._migration.unaccepted:
            return f"Write a copy of the snapshot with converted values ({steps}). With --accept, you agree.", command
        return f"Write a copy of the snapshot with converted values ({steps}; nothing is lost).", command


def _without_dropped(plan: MigrationPlan, check: Check, remedies: _Remedies) -> MigrationPlan:
    """Return the plan of the snapshot without the operators and states that the suggested commands leave out."""
    operators: set[str] = set()
    states: set[tuple[str, str]] = set()
    for operator in check.operators:
        operator_id = _operator_id(operator.uid)
        if remedies.of_operator(operator.uid).drops(operator):
            operators.add(operator_id)
        for state in operator.states:
            if remedies.of_state(operator.uid, state, is_dropped=False).drops(state):
                states.add((operator_id, state.name))
    gone = [s for s in plan.states if _operator_id(s.uid) in operators or (_operator_id(s.uid), s.state) in states]
    names: list[str] = []
    for operator in check.operators:
        operator_id = _operator_id(operator.uid)
        for name in (str(operator.uid), operator_id):
            names += [f"{name}{end}" for end in (":", ".") if operator_id in operators]
            names += [f"{name}.{state.name}:" for state in operator.states if (operator_id, state.name) in states]
    refused = tuple(r for r in plan.refused if not r.startswith(tuple(names)))
    return replace(plan, states=tuple(s for s in plan.states if s not in gone), refused=refused)


def _operator_id(uid: str) -> str:
    return uid.operator_id if isinstance(uid, OperatorLabel) else uid


def _is_refused(check: Check) -> bool:
    """Return True if Flink does not restore the snapshot at all, whatever its operators have."""
    return any(c.level == Level.INCOMPATIBLE for c in check.causes)


def _summary(check: Check) -> str:
    operators = [o for o in check.operators if not o.is_new]
    states = sum(len(o.states) for o in operators)
    fine = sum(_is_fine(s) for o in operators if _is_fine(o) for s in o.states)
    whole = sum(_is_fine(o) and all(map(_is_fine, o.states)) for o in operators)
    within = f"(in {whole:,} of {several(len(operators), 'operator')})"
    unchanged = (
        share(fine, states, "state", f"{within} restores unchanged.", f"{within} restore unchanged.")
        if states
        else share(whole, len(operators), "operator", "restores unchanged.", "restore unchanged.")
    )
    new = [display_name(o.uid) for o in check.operators if o.is_new]
    names = ", ".join((*new[:_MOST_NAMES], *(["..."] if len(new) > _MOST_NAMES else [])))
    empty = (
        f" {several(len(new), 'new operator')} {'starts' if len(new) == 1 else 'start'} empty: {names}." if new else ""
    )
    apart = "Apart from that, " if _is_refused(check) else ""
    return f"{_headline(check)} {apart}{unchanged}{empty}"


def _headline(check: Check) -> str:
    headline = _VERDICTS[check.verdict]
    if check.renamed:
        headline = headline.replace("The job restores", "The job restores the renamed copy").replace(
            "the job restores", "the job restores the renamed copy"
        )
    if check.verdict not in ("fully", "after_migration"):
        return headline
    kinds = {w.kind for w in check.snapshot_warnings}
    kinds |= {w.kind for o in check.operators for w in (*o.warnings, *(w for s in o.states for w in s.warnings))}
    if "later" in kinds:
        return headline.replace("restores", "restores, and then fails", 1)
    if kinds:
        return headline.replace("restores", "restores, but values are lost or may change", 1)
    if count := len(check.assumptions):
        return f"{headline.removesuffix('.')} if the {'assumption' if count == 1 else f'{count} assumptions'} below {'holds' if count == 1 else 'hold'}."
    return headline


def _conditions(check: Check) -> tuple[str, ...]:
    """Return the assumptions as text, each with the option that proves it."""
    if check.verdict not in ("fully", "after_migration"):
        return ()
    return tuple(f"{a.text}; proved by {a.option}" for a in check.assumptions)


def _is_fine(verdict: OperatorVerdict | StateVerdict) -> bool:
    """Return True if a state, or an operator apart from its states, is restored unchanged."""
    return not verdict.warnings and all(c.level < Level.AFTER_MIGRATION for c in verdict.causes)
