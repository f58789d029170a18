"""HTML representation of verdicts in notebooks: findings first, then tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from statetool.html.fragment import fragment
from statetool.html.markup import Html, element, table
from statetool.html.numbers import count
from statetool.html.operators import operator_name
from statetool.reporting.verdicts.check import check_findings
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.diff import diff_findings
from statetool.reporting.verdicts.markup import findings_html
from statetool.reporting.verdicts.steps import steps_table
from statetool.reporting.verdicts.verify import verify_findings

if TYPE_CHECKING:
    from statetool.analysis.comparison.records import DifferenceCounts, StructureDifference
    from statetool.analysis.verification.verify import Verification
    from statetool.compatibility.verdicts import Check

_COUNTS: Final = ("operator", "state", "entries before", "entries after", "added", "removed", "changed")


def check_html(check: Check, *, a: str, b: str) -> Html:
    """Return the findings of a check, and a table of all verdicts. ``a`` and ``b`` are paths for the commands."""
    rows: list[tuple[str, ...]] = []
    for operator in check.operators:
        rows.append((operator_name(operator.uid), "", operator.verdict.replace("_", " "), operator.reason))
        rows += [("", s.name, s.verdict.replace("_", " "), s.reason) for s in operator.states]
    verdicts = table(("operator", "state", "verdict", "reason"), rows)
    findings = findings_html(check_findings(check, CommandLine(a=a, b=b)))
    steps = (
        element("details", element("summary", "Steps of the restore"), steps_table(check.steps)) if check.steps else ""
    )
    return fragment(findings, element("details", element("summary", "All verdicts"), verdicts) if rows else "", steps)


def verification_html(verification: Verification, *, a: str) -> Html:
    """Return the findings of a verification. ``a`` is the path for the commands."""
    return fragment(findings_html(verify_findings(verification, CommandLine(a=a))))


def comparison_html(
    structure: Sequence[StructureDifference],
    summary: Sequence[DifferenceCounts],
    rows: Sequence[Mapping[str, Any]],
    unread: Sequence[str],
    *,
    a: str,
    b: str,
) -> Html:
    """Return the findings of a comparison with the first differences, and a table of the counts of all states."""
    findings = findings_html(diff_findings(structure, summary, rows, unread, CommandLine(a=a, b=b)))
    counts = (
        (operator_name(c.operator), c.state, *map(count, (c.entries_before, c.entries_after, c.added, c.removed, c.changed)))
        for c in summary
    )  # fmt: skip
    states = element("details", element("summary", "All compared states"), table(_COUNTS, counts))
    return fragment(findings, states if summary else "")
