"""Findings of a comparison: differences in states and values, and everything that was not compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from statetool.comparison.prose import difference_at, shown_values
from statetool.comparison.records import DifferenceCounts, StructureDifference
from statetool.compatibility.verdicts import A, B
from statetool.errors import sentence, several
from statetool.verdicts.commands import CommandLine
from statetool.verdicts.finding import Finding, Findings, Severity

_ORDER: Final[tuple[Severity, ...]] = ("difference", "unknown", "note")
_NOT_COMPARED: Final = ", not compared"
_PLACES: Final = {"key": "key", "namespace": "namespace", "map_key": "map key", "list_index": "list index"}


def diff_findings(
    structure: Sequence[StructureDifference],
    summary: Sequence[DifferenceCounts],
    rows: Sequence[Mapping[str, Any]],
    unread: Sequence[str],
    commands: CommandLine | None = None,
    *,
    written: str | None = None,
) -> Findings:
    """Return the findings of a comparison.

    Parameters
    ----------
    summary
        Counts of all compared states.
    rows
        The differences to show.
    unread
        Reasons why some state was not compared.
    written
        File with all differences.
    """
    commands = CommandLine() if commands is None else commands
    findings = [
        *_of_structure(structure, commands),
        *(_of_state(counts, rows) for counts in summary if _number(counts)),
        *(_not_compared(reason, commands) for reason in unread),
    ]
    operators = list(dict.fromkeys(f.where[:1] for f in findings))
    findings.sort(key=lambda f: (_ORDER.index(f.severity), operators.index(f.where[:1])))
    return Findings(findings=tuple(findings), summary=_summary(structure, summary, rows, unread, written))


def _number(counts: DifferenceCounts) -> int:
    return counts.added + counts.removed + counts.changed


def _of_structure(structure: Iterable[StructureDifference], commands: CommandLine) -> Iterator[Finding]:
    """Yield the findings about descriptions. Operators with the same difference share one."""
    same: dict[tuple[str, str | None, str, str | None, str | None], list[str]] = {}
    for s in structure:
        same.setdefault((s.severity, s.state, s.what, s.before, s.after), []).append(s.operator)
    for (severity, state, what, before, after), operators in same.items():
        names = f"operator {operators[0]}"
        if len(operators) > 1:
            names = f"{several(len(operators), 'operator')} ({', '.join(operators)})"
        unknown = what.endswith(_NOT_COMPARED)
        details = (("before", before or "none"), ("after", after or "none"))
        yield Finding(
            severity="unknown" if unknown else "difference" if severity == "difference" else "note",
            where=(names,) if state is None else (names, f"state {state}"),
            what=_description(what, before, after),
            details=details if before != after else (),
            remedy="Its files can be listed, and compared as bytes." if unknown else "",
            command=commands.suggest("files", A) if unknown else "",
        )


def _description(what: str, before: str | None, after: str | None) -> str:
    if what.endswith(_NOT_COMPARED):
        return f"The {what.removesuffix(_NOT_COMPARED)} is not compared: statetool does not know its format."
    if what in ("operator", "state"):
        return f"The {what} exists only {'after' if before is None else 'before'}."
    return f"The {what.replace('_', ' ')} differs."


def _of_state(counts: DifferenceCounts, rows: Iterable[Mapping[str, Any]]) -> Finding:
    parts = (("added", counts.added), ("removed", counts.removed), ("changed", counts.changed))
    changes = ", ".join(f"{several(n, 'value')} {change}" for change, n in parts if n)
    own = [r for r in rows if (r["operator"], r["state"]) == (counts.operator, counts.state)]
    before, after = several(counts.entries_before, "entry", "entries"), f"{counts.entries_after:,} after"
    return Finding(
        severity="difference",
        where=(f"operator {counts.operator}", f"state {counts.state}"),
        what=f"{changes}. The state has {before} before, {after}.",
        details=tuple(detail for row in own for detail in _of_row(row)),
    )


def _of_row(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    place = ", ".join(f"{name} {row[column]}" for column, name in _PLACES.items() if row[column] is not None)
    yield row["change"], place or "element"
    before, after = shown_values(row["before"], row["after"])
    if row["change"] != "added":
        yield "  before", before
    if row["change"] != "removed":
        yield "  after", after
    if row["change"] == "changed" and (at := difference_at(row["before"], row["after"])):
        yield "  first difference", at


def _not_compared(reason: str, commands: CommandLine) -> Finding:
    return Finding(
        severity="unknown",
        where=(),
        what=f"Not compared: {sentence(reason)}",
        remedy="Declare the class or the type, or compare only other operators and states (--operator, --states).",
        command=commands.suggest("diff", A, B, "--declare", "FILE"),
    )


def _summary(
    structure: Iterable[StructureDifference],
    summary: Sequence[DifferenceCounts],
    rows: Sequence[Mapping[str, Any]],
    unread: Sequence[str],
    written: str | None,
) -> str:
    described = [s for s in structure if s.severity == "difference"]
    total = sum(map(_number, summary))
    states = {(c.operator, c.state) for c in summary}
    changed = {(s.operator, s.state) for s in described} | {(c.operator, c.state) for c in summary if _number(c)}
    found = [several(total, "difference")] if total else []
    found += [f"{several(len(described), 'difference')} in descriptions"] if described else []
    shown = f", {len(rows):,} shown (--limit)" if total > len(rows) else ""
    headline = " and ".join(found) + (f", written to {written}" if written else shown) if found else "No differences"
    parts = (
        f" {several(len(unread), 'part')} of the state {'was' if len(unread) == 1 else 'were'} not compared."
        if unread
        else ""
    )
    return f"{headline}. {_unchanged(len(states - changed), len(states))}{parts}"


def _unchanged(fine: int, states: int) -> str:
    return f"{fine:,} of {several(states, 'compared state')} {'is' if fine == 1 else 'are'} unchanged."
