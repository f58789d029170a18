"""Findings of a comparison: differences in states and values, and everything that was not compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from statetool.analysis.comparison.prose import difference_at, shown_values
from statetool.compatibility.verdicts import A, B
from statetool.errors import sentence, several, share
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding, Findings, Severity
from statetool.types.operators import describe_operators

if TYPE_CHECKING:
    from statetool.analysis.comparison.records import DifferenceCounts, StructureDifference

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
    one_sided = {s.operator for s in structure if s.what == "operator"}
    findings = [
        *_of_structure(structure, commands),
        *(_of_state(c, rows) for c in summary if _number(c) and c.operator not in one_sided),
        *_of_one_sided([r for r in rows if r["operator"] in one_sided]),
        *(_not_compared(reason, commands) for reason in unread),
    ]
    return Findings(findings=tuple(_in_order(findings)), summary=_summary(structure, summary, rows, unread, written))


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by severity and operator, with one finding per place."""
    places: dict[tuple[Severity, tuple[str, ...]], list[Finding]] = {}
    for finding in findings:
        places.setdefault((finding.severity, finding.where), []).append(finding)
    merged = [_merged(same) if where else same[0] for (_, where), same in places.items()]
    merged += [f for (_, where), same in places.items() if not where for f in same[1:]]
    operators = list(dict.fromkeys(f.where[:1] for f in merged))
    return sorted(merged, key=lambda f: (_ORDER.index(f.severity), operators.index(f.where[:1])))


def _merged(findings: Sequence[Finding]) -> Finding:
    first, *_ = findings
    what = " ".join(f.what for f in findings)
    return replace(first, what=what, details=tuple(d for f in findings for d in f.details))


def _number(counts: DifferenceCounts) -> int:
    return counts.added + counts.removed + counts.changed


def _of_structure(structure: Iterable[StructureDifference], commands: CommandLine) -> Iterator[Finding]:
    """Yield the findings about descriptions. Operators with the same difference share one."""
    same: dict[tuple[str, str | None, str, str | None, str | None], list[str]] = {}
    uids = []
    for s in structure:
        if s.what == "uid":
            uids.append((s.operator, f"{s.before or 'none'} before, {s.after or 'none'} after"))
        else:
            same.setdefault((s.severity, s.state, s.what, s.before, s.after), []).append(s.operator)
    for (severity, state, what, before, after), operators in same.items():
        names = describe_operators(operators)
        unknown = what.endswith(_NOT_COMPARED)
        details = ((f"{what} before", before), (f"{what} after", after))
        yield Finding(
            severity="unknown" if unknown else "difference" if severity == "difference" else "note",
            where=(names,) if state is None else (names, f"state {state}"),
            what=_description(what, before, after),
            details=()
            if before is None or after is None or unknown
            else tuple((n.replace("_", " "), t or "") for n, t in details),
            remedy="Its files can be listed, and compared as bytes." if unknown else "",
            command=commands.suggest("files", A) if unknown else "",
        )
    if uids:
        where = several(len(uids), "operator")
        yield Finding(severity="note", where=(where,), what="The uid differs.", details=tuple(uids))


def _description(what: str, before: str | None, after: str | None) -> str:
    if what.endswith(_NOT_COMPARED):
        return f"The {what.removesuffix(_NOT_COMPARED)} is not compared: statetool does not know its format."
    name = what.replace("_", " ")
    if before is None or after is None:
        return f"The {name} exists only {'after' if before is None else 'before'}: {after or before}."
    return f"The {name} differs."


def _of_one_sided(rows: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield the differences to show of operators that only one side has, whose states are not listed one by one."""
    for operator in dict.fromkeys(r["operator"] for r in rows):
        details = tuple(d for r in rows if r["operator"] == operator for d in _of_row(r, state=r["state"]))
        yield Finding(severity="difference", where=(describe_operators([operator]),), what="", details=details)


def _of_state(counts: DifferenceCounts, rows: Iterable[Mapping[str, Any]]) -> Finding:
    parts = (("added", counts.added), ("removed", counts.removed), ("changed", counts.changed))
    changes = ", ".join(f"{several(n, 'value')} {change}" for change, n in parts if n)
    own = [r for r in rows if (r["operator"], r["state"]) == (counts.operator, counts.state)]
    before, after = several(counts.entries_before, "entry", "entries"), f"{counts.entries_after:,} after"
    return Finding(
        severity="difference",
        where=(describe_operators([counts.operator]), f"state {counts.state}"),
        what=f"{changes}. The state has {before} before, {after}.",
        details=tuple(detail for row in own for detail in _of_row(row)),
    )


def _of_row(row: Mapping[str, Any], *, state: str = "") -> Iterator[tuple[str, str]]:
    parts = [f"state {state}"] if state else []
    place = ", ".join([*parts, *(f"{name} {row[c]}" for c, name in _PLACES.items() if row[c] is not None)])
    yield row["change"], place or "element"
    before, after = shown_values(row["before"], row["after"])
    if row["change"] != "added":
        yield "  before", before
    if row["change"] != "removed":
        yield "  after", after
    if row["change"] == "changed" and (at := difference_at(row["before"], row["after"])):
        yield "  first difference", at


def _not_compared(reason: str, commands: CommandLine) -> Finding:
    message, bracket, hint = reason.partition("]. ")
    remedy = "Pass --jar or --declare, or compare only other operators and states (--uid, --states)."
    return Finding(
        severity="unknown",
        where=(),
        what=f"Not compared: {sentence(message + bracket.strip())}",
        remedy=f"{sentence(hint)} {remedy}".strip(),
        command=commands.suggest("diff", A, B, "--jar", "FILE"),
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
    shown = f" ({len(rows):,} shown, --limit)" if total > len(rows) else ""
    found = [f"{several(total, 'difference')}{f', written to {written}' if written else shown}"] if total else []
    found += (
        [f"{len(described):,} in descriptions" if found else f"{several(len(described), 'difference')} in descriptions"]
        if described
        else []
    )
    headline = " and ".join(found) or ("No differences in what was compared" if unread else "No differences")
    parts = (
        f" {several(len(unread), 'part')} of the state {'was' if len(unread) == 1 else 'were'} not compared."
        if unread
        else ""
    )
    # A state may be compared in part.
    verbs = ("shows no difference", "show no difference") if unread else ("is unchanged", "are unchanged")
    return f"{headline}. {share(len(states - changed), len(states), 'compared state', *verbs)}.{parts}"
