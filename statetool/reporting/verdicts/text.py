"""Findings as lines of text. Prose is wrapped; commands, paths, URLs and values are never broken or shortened."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final, NamedTuple

from statetool.errors import printable
from statetool.reporting.verdicts.finding import Finding, Findings

#: Prose is easier to read in lines that are not longer than this.
_LONGEST_LINE: Final = 100
_INDENT: Final = "  "


class StyledLine(NamedTuple):
    """A line of a verdict. The first ``styled`` characters, by default all, stand out as a severity does, or as ``fine``."""

    text: str
    style: str = ""
    styled: int | None = None


def lines_of(findings: Findings, width: int) -> Iterator[StyledLine]:
    """Yield the lines of a verdict: one block per finding, with an empty line after each, the summary, and its conditions."""
    for finding in findings.findings:
        first, *more = block_of(finding, width)
        yield StyledLine(first, finding.severity, len(finding.severity) + 1)
        yield from map(StyledLine, (*more, ""))
    severities = {finding.severity for finding in findings.findings}
    style = next((s for s in ("error", "unknown") if s in severities), "fine")
    for line in _wrapped(findings.summary, width, ""):
        yield StyledLine(line, style)
    for condition in findings.conditions:
        yield from map(StyledLine, _wrapped(f"* {condition}", width, _INDENT, more=_INDENT))


def block_of(finding: Finding, width: int) -> Iterator[str]:
    """Yield the lines of one finding: severity and location, what and why, details, and the command that helps."""
    where = ", ".join(finding.where) or "snapshot"
    yield from _wrapped(f"{finding.severity}: {where}", width, "", more=_INDENT)
    yield from _wrapped(finding.what, width, _INDENT)
    yield from _wrapped(finding.why, width, _INDENT)
    for label, value in finding.details:
        yield f"{_INDENT}{printable(label)}: {printable(value)}".rstrip()
    yield from _wrapped(finding.remedy, width, _INDENT)
    if finding.command:
        yield f"{_INDENT * 2}{printable(finding.command)}"
    if finding.page:
        yield f"{_INDENT}See {printable(finding.page)}"


def _wrapped(text: str, width: int, indent: str, *, more: str = "") -> list[str]:
    return textwrap.wrap(
        printable(text),
        min(width, _LONGEST_LINE),
        initial_indent=indent,
        subsequent_indent=indent + more,
        break_long_words=False,
        break_on_hyphens=False,
    )
