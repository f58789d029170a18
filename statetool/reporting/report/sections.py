"""Sections about the verification, the restore, differences, sources and sinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import several
from statetool.html.markup import Html, element, join, table
from statetool.html.numbers import count
from statetool.html.operators import operator_name
from statetool.reporting.verdicts.markup import finding_blocks
from statetool.reporting.verdicts.steps import steps_table

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.reporting.report.facts import Connections, Differences
    from statetool.reporting.verdicts.finding import Finding

#: Colors of words.
_LOOKS: Final = {
    "not": "bad", "warning": "warn", "unknown": "warn", "after_migration": "warn", "difference": "warn", "fully": "good"
}  # fmt: skip
_COUNTS: Final = ("operator", "state", "entries_before", "entries_after", "added", "removed", "changed")
_STRUCTURE: Final = ("severity", "operator", "state", "what", "before", "after")
_SOURCES: Final = ("operator", "connector", "subtasks", "held", "assigned", "unassigned", "finished", "undecoded", "problems", "note")  # fmt: skip
_SINKS: Final = ("operator", "connector", "role", "pending", "open", "oldest_checkpoint", "undecoded", "note")


def word(text: str) -> Html:
    """Return a word in the color of its meaning."""
    return element("span", text.replace("_", " "), class_=_LOOKS.get(text))


def records(rows: Sequence[Any], names: Sequence[str], colored: str = "") -> Html:
    """Return fields of records as a table."""
    return table(
        [n.replace("_", " ") for n in names], ([_cell(getattr(r, n), n, colored) for n in names] for r in rows)
    )


def _cell(value: Any, name: str, colored: str) -> Any:
    if name == "operator":
        return operator_name(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return word(value) if name == colored else count(value) if isinstance(value, int | float) else value


def verification(summary: str, notes: Sequence[Finding]) -> Html:
    """Return the number of checked parts, and the notes."""
    return join([element("p", summary), finding_blocks(notes)])


def verdicts(check: Check, against: str) -> Html:
    """Return the restore verdict per operator, and per state that is not restored fully."""
    rows: list[tuple[Any, ...]] = []
    for operator in check.operators:
        rows.append((operator_name(operator.uid), "", word(operator.verdict), operator.reason))
        rows += [
            (operator_name(operator.uid), s.name, word(s.verdict), s.reason)
            for s in operator.states
            if s.verdict != "fully"
        ]
    about = element("p", f"Into: {against}", class_="soft")
    top = element("p", element("strong", word(check.verdict)), f": {check.reason}" if check.reason else "")
    steps = [element("h3", "Steps"), steps_table(check.steps)] if check.steps else []
    return join([about, top, table(("operator", "state", "verdict", "reason"), rows) if rows else "", *steps])


def differences(answer: Differences, against: str, before: str = "this snapshot") -> Html:
    """Return the differences: counts of keys, entries and elements, then operators, states and types."""
    counts = [c for c in answer.counts if c.added + c.removed + c.changed]
    total = sum(c.added + c.removed + c.changed for c in counts)
    words = "No differences." if answer.equal else f"{several(total, 'difference')} in {several(len(counts), 'state')}."
    shown = [element("p", f"Before: {before}. After: {against}", class_="soft"), element("p", words)]
    if counts:
        shown.append(records(counts, _COUNTS))
    if answer.structure:
        shown += [element("h3", "Operators, states and types"), records(answer.structure, _STRUCTURE, "severity")]
    if answer.unread:
        shown += [element("h3", "Not compared"), element("ul", *(element("li", reason) for reason in answer.unread))]
    return join(shown)


def connections(answer: Connections) -> Html:
    """Return the state of sources and sinks, and the result of the cross-check of readers and enumerators."""
    shown = []
    if answer.sources:
        shown += [element("h3", "Sources"), records(answer.sources, _SOURCES)]
    if answer.checks:
        rows = [
            (operator_name(c.operator), c.split_id, c.subtasks, word("warning" if c.is_problem else "note"), c.message)
            for c in answer.checks
        ]
        names = ("operator", "split", "subtasks", "", "finding")
        shown += [element("h3", "Splits in readers and enumerators"), table(names, rows)]
    if answer.sinks:
        shown += [element("h3", "Sinks"), records(answer.sinks, _SINKS)]
    return join(shown)
