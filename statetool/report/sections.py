"""Sections about problems, unreadable state, differences, sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import several
from statetool.report.markup import Html, element, join_html, table
from statetool.report.numbers import count

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.report.facts import Connections, Differences
    from statetool.snapshot.state_info import StateInfo
    from statetool.verification.verify import Verification

#: Colours of words.
_LOOKS: Final = {
    "error": "bad", "not": "bad", "warning": "warn", "unknown": "warn", "after_migration": "warn", "difference": "warn", "fully": "good"
}  # fmt: skip
_PROBLEMS: Final = ("severity", "operator", "problem", "state", "subtask", "file", "offset")
_COUNTS: Final = ("operator", "state", "entries_before", "entries_after", "added", "removed", "changed")
_STRUCTURE: Final = ("severity", "operator", "state", "what", "before", "after")
_SOURCES: Final = ("operator", "connector", "subtasks", "held", "assigned", "unassigned", "finished", "undecoded", "problems", "note")  # fmt: skip
_SINKS: Final = ("operator", "connector", "role", "pending", "open", "oldest_checkpoint", "undecoded", "note")
_SHALLOW: Final = "Values were not decoded; a deep verification does that."


def word(text: str) -> Html:
    """Return a word in the colour of its meaning."""
    return element("span", text.replace("_", " "), class_=_LOOKS.get(text))


def records(rows: Sequence[Any], names: Sequence[str], coloured: str = "") -> Html:
    """Return fields of records as a table."""
    return table(
        [n.replace("_", " ") for n in names], ([_cell(getattr(r, n), n == coloured) for n in names] for r in rows)
    )


def _cell(value: Any, coloured: bool) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return word(value) if coloured else count(value) if isinstance(value, int | float) else value


def findings(verification: Verification) -> Html:
    """Return the findings of the verification, and the number of checked parts."""
    looked = f"{several(verification.operators, 'operator')}, {several(verification.streams, 'piece')} in files, "
    looked += f"{several(verification.entries, 'entry', 'entries')} of keyed state, "
    looked += f"{several(verification.keys, 'key')} in their key groups"
    if verification.deep:
        looked += f", {several(verification.elements, 'element')} of operator state"
    counts = ", ".join(
        several(sum(p.severity == name for p in verification.problems), name) for name in ("error", "warning", "note")
    )
    more = " There are more problems than are shown." if verification.truncated else ""
    parts = [
        element("p", f"Looked at {looked}: {counts}.{more}"),
        "" if verification.deep else element("p", _SHALLOW, class_="soft"),
    ]
    if verification.problems:
        parts.append(records(verification.problems, _PROBLEMS, "severity"))
    return join_html(parts)


def unread(states: Iterable[StateInfo], reasons: Sequence[str]) -> Html:
    """Return unreadable states, and everything that was not checked, with the reason."""
    rows = [s for s in states if not s.readable]
    shown = records(rows, ("operator", "name", "reason", "scope", "kind")) if rows else ""
    about = element("p", "Only the bytes of these are known. Whether something is wrong with them was not checked:")
    return join_html([shown, about, element("ul", *(element("li", r) for r in reasons))]) if reasons else Html("")


def verdicts(check: Check, against: str) -> Html:
    """Return the restore verdict per operator, and per state that is not restored fully."""
    rows: list[tuple[Any, ...]] = []
    for operator in check.operators:
        rows.append((operator.uid, "", word(operator.verdict), operator.reason, operator.remedy))
        rows += [
            (operator.uid, s.name, word(s.verdict), s.reason, s.remedy) for s in operator.states if s.verdict != "fully"
        ]
    warnings = element("ul", *(element("li", w) for w in check.warnings), class_="warn") if check.warnings else ""
    about = element("p", f"Against {against}", class_="soft")
    top = element("p", element("strong", word(check.verdict)), f": {check.reason}" if check.reason else "")
    return join_html(
        [about, top, warnings, table(("operator", "state", "verdict", "reason", "what to do"), rows) if rows else ""]
    )


def differences(answer: Differences, against: str) -> Html:
    """Return the differences: counts of keys, entries and elements, then operators, states and types."""
    counts = [c for c in answer.counts if c.added + c.removed + c.changed]
    total = sum(c.added + c.removed + c.changed for c in counts)
    words = (
        "Nothing differs." if answer.equal else f"{several(total, 'difference')} in {several(len(counts), 'state')}."
    )
    shown = [element("p", f"Before: this snapshot. After: {against}", class_="soft"), element("p", words)]
    if counts:
        shown.append(records(counts, _COUNTS))
    if answer.structure:
        shown += [element("h3", "What they say of states"), records(answer.structure, _STRUCTURE, "severity")]
    if answer.unread:
        shown += [element("h3", "Not compared"), element("ul", *(element("li", reason) for reason in answer.unread))]
    return join_html(shown)


def connections(answer: Connections) -> Html:
    """Return the state of sources and sinks, and the result of the cross-check of readers and enumerators."""
    shown = []
    if answer.sources:
        shown += [element("h3", "Sources"), records(answer.sources, _SOURCES)]
    if answer.checks:
        rows = [
            (c.operator, c.split_id, c.subtasks, word("warning" if c.is_problem else "note"), c.message)
            for c in answer.checks
        ]
        names = ("operator", "split", "subtasks", "", "finding")
        shown += [element("h3", "Splits in readers and enumerators"), table(names, rows)]
    if answer.sinks:
        shown += [element("h3", "Sinks"), records(answer.sinks, _SINKS)]
    return join_html(shown)
