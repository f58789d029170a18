"""Sections about what is wrong, unreadable or different, and about sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import StatetoolError
from statetool.report.markup import Html, element, joined, table
from statetool.report.numbers import count, several

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.report.facts import Connections, Differences, Found
    from statetool.snapshot.state_info import StateInfo
    from statetool.statistics.statistics import Statistics
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
    """Return a word in the colour of what it says."""
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


def findings(found: Verification) -> Html:
    """Return what verification found, and how much it looked at."""
    looked = (
        f"{found.operators:,} operators, {found.streams:,} pieces in files, {found.entries:,} entries of keyed state, "
    )
    looked += f"{found.keys:,} keys in their key groups" + (
        f", {found.elements:,} elements of operator state" if found.deep else ""
    )
    counts = ", ".join(
        several(sum(p.severity == name for p in found.problems), name) for name in ("error", "warning", "note")
    )
    more = " There are more problems than are shown." if found.truncated else ""
    parts = [
        element("p", f"Looked at {looked}: {counts}.{more}"),
        "" if found.deep else element("p", _SHALLOW, class_="soft"),
    ]
    if found.problems:
        parts.append(records(found.problems, _PROBLEMS, "severity"))
    return joined(parts)


def unread(states: Iterable[StateInfo], statistics: Found[Statistics]) -> Html:
    """Return states that cannot be read, and why."""
    rows = [s for s in states if not s.readable]
    reasons = () if isinstance(statistics, StatetoolError) else statistics.unread
    said = element("ul", *(element("li", r) for r in reasons)) if reasons else ""
    shown = records(rows, ("operator", "name", "reason", "scope", "kind")) if rows else ""
    about = element("p", "Only the bytes of these are known:") if reasons else ""
    return joined([shown, about, said])


def verdicts(found: Check, against: str) -> Html:
    """Return whether a job restores: for each operator, and for the states that are not restored just as they are."""
    rows: list[tuple[Any, ...]] = []
    for operator in found.operators:
        rows.append((operator.uid, "", word(operator.verdict), operator.reason, operator.remedy))
        rows += [
            (operator.uid, s.name, word(s.verdict), s.reason, s.remedy) for s in operator.states if s.verdict != "fully"
        ]
    warnings = element("ul", *(element("li", w) for w in found.warnings), class_="warn") if found.warnings else ""
    about = element("p", f"Against {against}", class_="soft")
    top = element("p", element("strong", word(found.verdict)), f": {found.reason}" if found.reason else "")
    return joined(
        [about, top, warnings, table(("operator", "state", "verdict", "reason", "what to do"), rows) if rows else ""]
    )


def differences(found: Differences, against: str) -> Html:
    """Return what differs: what snapshots say of states, then counts of keys, entries and elements."""
    counts = [c for c in found.counts if c.added + c.removed + c.changed]
    total = sum(c.added + c.removed + c.changed for c in counts)
    words = "Nothing differs." if found.equal else f"{total:,} values differ, in {len(counts):,} states."
    shown = [element("p", f"Before: this snapshot. After: {against}", class_="soft"), element("p", words)]
    if counts:
        shown.append(records(counts, _COUNTS))
    if found.structure:
        shown += [element("h3", "What they say of states"), records(found.structure, _STRUCTURE, "severity")]
    if found.unread:
        shown += [element("h3", "Not compared"), element("ul", *(element("li", reason) for reason in found.unread))]
    return joined(shown)


def connections(found: Connections) -> Html:
    """Return what sources and sinks keep, and what the cross-check of readers and enumerators finds."""
    shown = []
    if found.sources:
        shown += [element("h3", "Sources"), records(found.sources, _SOURCES)]
    if found.checks:
        rows = [
            (c.operator, c.split_id, c.subtasks, word("warning" if c.is_problem else "note"), c.message)
            for c in found.checks
        ]
        names = ("operator", "split", "subtasks", "", "finding")
        shown += [element("h3", "Splits in readers and enumerators"), table(names, rows)]
    if found.sinks:
        shown += [element("h3", "Sinks"), records(found.sinks, _SINKS)]
    return joined(shown)
