"""A step of a restore, and what its rules yield.

A step is a module with an object :class:`Step`. Its rules are functions that take the :class:`~statetool.compatibility.restore.Restore`
and yield findings (:class:`Found`, by the functions below), verdicts on states (:class:`StateFound`) and assumptions
(:class:`~statetool.compatibility.step_verdicts.Assumption`). A rule that yields nothing has proved that it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from statetool.compatibility.step_verdicts import Assumption, Kind, StepFinding
from statetool.compatibility.verdicts import Cause, CheckWarning, Level, Remedy, Resolution, StateVerdict
from statetool.errors import NO_FINDING, UNREAD, StatetoolError, sentence
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import Scope

if TYPE_CHECKING:
    from statetool.compatibility.restore import Pair, Restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding about an operator, or about the whole snapshot if ``operator`` is ``None``."""

    rule: str
    resolution: Resolution
    operator: OperatorInventory | None = None

    def kinds(self) -> Iterator[tuple[Kind, str, str]]:
        """Yield kind, text and remedy of each part."""
        yield from _kinds(self.resolution.causes, self.resolution.warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFound:
    """The verdict on one state of an operator, which may have a keyed state and an operator state of the same name."""

    rule: str
    operator: OperatorInventory
    scope: Scope
    verdict: StateVerdict

    def kinds(self) -> Iterator[tuple[Kind, str, str]]:
        """Yield kind, text and remedy of each part."""
        yield from _kinds(self.verdict.causes, self.verdict.warnings)


Result: TypeAlias = "Found | StateFound | Assumption"
Check: TypeAlias = "Callable[[Restore], Iterator[Result]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a restore.

    Attributes
    ----------
    name
        Name in JSON and in the table of rules.
    title
        A noun phrase for people.
    follows
        The classes of Flink that the step follows.
    irrelevant
        Returns the reason why the snapshot has nothing that this step restores; empty if it has.
    checks
        The rules.
    """

    name: str
    title: str
    follows: str
    irrelevant: Callable[[Restore], str]
    checks: tuple[Check, ...]

    def run(self, restore: Restore) -> Iterator[Result]:
        """Yield the results of all rules."""
        for check in self.checks:
            yield from check(restore)


def guarded(check: Check) -> Check:
    """Return a check that is unknown, instead of an error, if it cannot read a part of the snapshot."""

    def run(restore: Restore) -> Iterator[Result]:
        try:
            yield from check(restore)
        except NO_FINDING:
            raise
        except StatetoolError as error:
            yield unread(error, "statetool cannot read this part of the snapshot")

    return run


def is_always_relevant(restore: Restore) -> str:
    """Return no reason: every restore has this step."""
    return ""


def per_pair(rule: Callable[[Restore, Pair], Iterator[Result]]) -> Check:
    """Return a check that calls a rule for each operator that both jobs have. Operators that cannot be read are unknown."""

    def check(restore: Restore) -> Iterator[Result]:
        for pair in restore.pairs:
            try:
                yield from rule(restore, pair)
            except UNREAD:
                continue  # The steps of operator state and keyed state report it.
            except NO_FINDING:
                raise
            except StatetoolError as error:
                yield unread(error, "statetool cannot read this part of the operator", pair.old)

    return check


def is_open(result: Result) -> bool:
    """Return True if a result says that something is unknown."""
    return "unknown" in kinds_of(result)


def kinds_of(result: Result) -> set[Kind]:
    """Return the kinds of the parts of a result, none of an assumption."""
    return set() if isinstance(result, Assumption) else {kind for kind, _, _ in result.kinds()}


def refuses(
    rule: str, text: str, remedy: Remedy | str | None = None, operator: OperatorInventory | None = None
) -> Found:
    """Return the finding that Flink does not restore the snapshot."""
    return Found(rule=rule, resolution=Resolution.because(Level.INCOMPATIBLE, text, remedy), operator=operator)


def is_unknown(
    rule: str, text: str, remedy: Remedy | str | None = None, operator: OperatorInventory | None = None
) -> Found:
    """Return the finding that an input is missing that decides whether Flink restores the snapshot."""
    return Found(rule=rule, resolution=Resolution.because(Level.UNKNOWN, text, remedy), operator=operator)


def loses(rule: str, text: str, remedy: Remedy | str | None = None, operator: OperatorInventory | None = None) -> Found:
    """Return the finding that values are lost without an error of Flink."""
    return _warns(rule, CheckWarning(kind="loses", message=text, remedy=_as_remedy(remedy)), operator)


def may_change(
    rule: str, text: str, remedy: Remedy | str | None = None, operator: OperatorInventory | None = None
) -> Found:
    """Return the finding that values or results may change without an error of Flink."""
    return _warns(rule, CheckWarning(kind="may_change", message=text, remedy=_as_remedy(remedy)), operator)


def fails_later(
    rule: str, text: str, remedy: Remedy | str | None = None, operator: OperatorInventory | None = None
) -> Found:
    """Return the finding that Flink restores the snapshot, and fails at the first checkpoint, record or timer."""
    return _warns(rule, CheckWarning(kind="later", message=text, remedy=_as_remedy(remedy)), operator)


def note(rule: str, text: str, remedy: Remedy | str | None = None, operator: OperatorInventory | None = None) -> Found:
    """Return a note, which does not change the exit code."""
    cause = Cause(level=Level.AS_IS, reason=text, remedy=_as_remedy(remedy), is_note=True)
    return Found(rule=rule, resolution=Resolution(Level.AS_IS, (cause,)), operator=operator)


def unread(error: StatetoolError, consequence: str, operator: OperatorInventory | None = None) -> Found:
    """Return the finding that a part of the snapshot cannot be read."""
    text = sentence(f"{consequence}: {error.message}")
    return is_unknown("M3", text, sentence(error.hint) or None, operator)


def _warns(rule: str, warning: CheckWarning, operator: OperatorInventory | None) -> Found:
    cause = Cause(level=Level.AS_IS, reason=warning.message, remedy=warning.remedy)
    return Found(rule=rule, resolution=Resolution(Level.AS_IS, (cause,), (warning,)), operator=operator)


def _as_remedy(remedy: Remedy | str | None) -> Remedy | None:
    return (Remedy(remedy) if remedy else None) if isinstance(remedy, str) else remedy


def _kinds(causes: tuple[Cause, ...], warnings: tuple[CheckWarning, ...]) -> Iterator[tuple[Kind, str, str]]:
    for cause in causes:
        remedy = "" if cause.remedy is None else str(cause.remedy)
        if cause.level == Level.INCOMPATIBLE:
            yield "not", cause.text, remedy
        elif cause.level == Level.UNKNOWN:
            yield "unknown", cause.text, remedy
        elif cause.is_note or cause.level == Level.AFTER_MIGRATION:
            yield "note", cause.text, remedy
    for warning in warnings:
        if not warning.in_reason:
            yield warning.kind, warning.message, "" if warning.remedy is None else str(warning.remedy)


def findings_of(result: Found | StateFound) -> Iterator[StepFinding]:
    """Yield the parts of a result as findings of its step."""
    operator = None if result.operator is None else str(result.operator.label)
    state = result.verdict.name if isinstance(result, StateFound) else None
    for kind, text, remedy in result.kinds():
        yield StepFinding(rule=result.rule, kind=kind, operator=operator, state=state, text=text, remedy=remedy)
