"""Findings as blocks: location, finding, reason, and the command to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statetool.errors import several
from statetool.html.markup import Html, element, html, join
from statetool.reporting.verdicts.finding import Finding, Findings

#: Further blocks are collapsed.
MOST_OPEN: Final = 5
_LOOKS: Final = {"error": "bad", "unknown": "warn", "warning": "warn", "difference": "warn"}


def findings_html(findings: Findings) -> Html:
    """Return the blocks of findings, worst first, and the line that says what is fine."""
    conditions = element("ul", *(element("li", c) for c in findings.conditions)) if findings.conditions else ""
    return join([finding_blocks(findings.findings), element("p", findings.summary), conditions])


def finding_blocks(findings: Sequence[Finding]) -> Html:
    """Return a block for each finding. Only the first ones are open."""
    blocks = [_block(f) for f in findings]
    rest = blocks[MOST_OPEN:]
    more = element("details", element("summary", f"{several(len(rest), 'more finding')}"), *rest) if rest else ""
    return join([*blocks[:MOST_OPEN], more])


def _block(finding: Finding) -> Html:
    tag = element("b", finding.severity, class_=_LOOKS.get(finding.severity))
    where = join([" ", " › ".join(finding.where)]) if finding.where else ""
    parts: list[Html] = [element("p", tag, where), element("p", finding.what)]
    if finding.why:
        parts.append(element("p", finding.why, class_="soft"))
    if finding.details:
        items = (join([element("dt", name), element("dd", value)]) for name, value in finding.details)
        parts.append(element("dl", *items))
    if finding.remedy:
        parts.append(element("p", finding.remedy))
    if finding.command:
        parts.append(element("pre", element("code", finding.command)))
    return element("div", *parts, class_=f"finding {html(finding.severity)}")
