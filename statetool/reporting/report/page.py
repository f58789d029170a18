"""The report: findings and the commands that help, then numbers, then one section per result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import StatetoolError, several
from statetool.html.fragment import fragment
from statetool.html.markup import Html, element, html, join
from statetool.html.numbers import count, moment, size
from statetool.html.style import STYLE
from statetool.reporting.report import sections, sizes, times
from statetool.reporting.report.facts import Facts
from statetool.reporting.report.findings import ReportFindings, report_findings
from statetool.reporting.report.style import PAGE_STYLE, REPORT_STYLE
from statetool.reporting.verdicts.markup import finding_blocks

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.reporting.report.facts import Answer
    from statetool.reporting.verdicts.finding import Finding

#: Browsers load nothing for this page and run no code in it, whatever names a snapshot contains.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_VERDICTS: Final = {"fully": "good", "after_migration": "warn", "unknown": "warn", "not": "bad"}
#: Maximum number of unread pieces that the top of the page names. The findings name all.
_MOST_NAMED: Final = 12


def page(facts: Facts) -> str:
    """Return the whole document."""
    found = report_findings(facts)
    contents = list(_sections(facts, found))
    links = element("nav", *(element("a", name, href=f"#{anchor}") for anchor, name, _ in contents))
    head = join(
        [
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">'),
            element("title", f"{facts.path}: snapshot report"),
            element("style", Html(STYLE + REPORT_STYLE + PAGE_STYLE)),
        ]
    )
    body = (element("section", element("h2", name), inner, id=anchor) for anchor, name, inner in contents)
    top = element("header", element("h1", "Snapshot report"), summary(facts, found))
    foot = element("footer", f"Ages and timers count from {moment(facts.now_ms)}. Made by statetool.")
    shown = element("body", top, links, element("main", *body), foot, class_="statetool")
    return f"<!DOCTYPE html>\n{element('html', element('head', head), shown, lang='en')}\n"


def inline(facts: Facts) -> Html:
    """Return the report for a notebook: the same content without links. All sections except the findings are collapsed."""
    found = report_findings(facts)
    parts = (
        element("section", inner) if anchor == "findings" else element("details", element("summary", name), inner)
        for anchor, name, inner in _sections(facts, found)
    )
    return fragment(element("header", summary(facts, found)), *parts, style=STYLE + REPORT_STYLE)


def summary(facts: Facts, found: ReportFindings) -> Html:
    """Return the verdict in one line, the names of everything that was not read, and the most important numbers."""
    counted = Counter(f.severity for f in found.leading)
    parts = [several(counted["error"], "error"), several(counted["warning"], "warning")]
    words = " and ".join(part for part in parts if not part.startswith("0 "))
    fine = "No errors or warnings in what was read and checked." if counted["unknown"] else "No errors or warnings."
    words = f"{words} found." if words else fine
    look = "bad" if counted["error"] else "warn" if counted["warning"] or counted["unknown"] else "good"
    return join(
        [
            element("p", facts.path, class_="soft"),
            element("p", element("strong", words, class_=look), " ", *(f"{sentence} " for sentence in found.fine)),
            _not_read([f for f in found.leading if f.severity == "unknown"]),
            _cards(facts),
        ]
    )


def _not_read(unknown: list[Finding]) -> Html:
    """Return one line with the names of everything that was not read or not checked."""
    names = list(dict.fromkeys(" › ".join(f.where) or f.what for f in unknown))
    if not names:
        return Html("")
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    head = element("strong", "Not read or not checked: ", class_="warn")
    return element("p", head, "; ".join(names[:_MOST_NAMED]), more)


def _cards(facts: Facts) -> Html:
    """Return the most important numbers."""
    cards: list[tuple[str, Any]] = [
        ("checkpoint", facts.checkpoint_id),
        ("metadata", f"version {facts.metadata_version}"),
        ("operators", count(len(facts.operators))),
    ]
    if not isinstance(facts.states, StatetoolError):
        cards.append(("states", count(sum(s.kind != "unread" for s in facts.states))))
    cards.append(("stored", size(sum(o.state_bytes + o.coordinator_bytes for o in facts.operators))))
    if not isinstance(facts.statistics, StatetoolError):
        measured = facts.statistics.rows("operators")
        if measured and all(o.entries is not None for o in measured):
            cards.append(("uncompressed", size(sum(o.entries_bytes for o in measured))))
            cards.append(("entries", count(sum(o.entries for o in measured))))
    cards.append(("verified", _verified(facts)))
    if facts.check is not None:
        cards.append(("restores", _restores(facts.check)))
    return element("dl", *(element("div", element("dt", n), element("dd", v)) for n, v in cards), class_="cards")


def _verified(facts: Facts) -> Html:
    verification = facts.verification
    if isinstance(verification, StatetoolError):
        return element("span", "failed", class_="bad")
    counted = Counter(p.severity for p in verification.problems)
    if counted["error"]:
        return element("span", several(counted["error"], "error"), class_="bad")
    if verification.unread:
        return element("span", "in part", class_="warn")
    if counted["warning"]:
        return element("span", several(counted["warning"], "warning"), class_="warn")
    return element("span", "no errors", class_="good")


def _restores(check: Answer[Check]) -> Html:
    if isinstance(check, StatetoolError):
        return element("span", "unknown", class_="bad")
    words, look = check.verdict.replace("_", " "), _VERDICTS[check.verdict]
    if check.warnings and check.verdict in ("fully", "after_migration"):
        words, look = f"{words}, {several(len(check.warnings), 'warning')}", "warn"
    return element("span", words, class_=look)


def _sections(facts: Facts, found: ReportFindings) -> Iterator[tuple[str, str, Html]]:
    """Yield anchor, title and content of each section that is not empty. Errors are findings."""
    statistics = facts.statistics
    makers: list[tuple[str, str, Any, Callable[[Any], Html]]] = [
        ("findings", "Findings", found.leading, finding_blocks),
        (
            "verification",
            "Verification",
            facts.verification,
            lambda _: sections.verification(found.verified, found.notes),
        ),
        ("restore", "Restore", facts.check, lambda check: sections.verdicts(check, facts.against)),
        ("differences", "Differences", facts.differences, lambda answer: sections.differences(answer, facts.against)),
        ("operators", "Operators", facts.operators, lambda rows: sizes.operators(rows, statistics)),
        ("states", "States", facts.states, lambda states: sizes.states(states, statistics)),
        ("key-groups", "Key groups", statistics, sizes.key_groups),
        ("subtasks", "Subtasks", statistics, sizes.subtasks),
        ("largest", "Largest keys and values", statistics, sizes.largest),
        ("distribution", "Distribution of sizes", statistics, sizes.distribution),
        ("timers", "Timers", statistics, times.timers),
        ("ages", "Ages of values with a TTL", statistics, times.ages),
        ("growth", "Growth", facts.growth, times.growth),
        ("connections", "Sources and sinks", facts.connections, sections.connections),
    ]
    for anchor, name, answer, make in makers:
        if answer is not None and not isinstance(answer, StatetoolError) and (inner := make(answer)):
            yield anchor, name, inner
