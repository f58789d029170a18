"""The page: a summary at the top, then one section per result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import StatetoolError, several
from statetool.report import sections, sizes, times
from statetool.report.facts import Facts
from statetool.report.markup import Html, element, html, join_html
from statetool.report.numbers import count, moment, size
from statetool.report.style import STYLE

if TYPE_CHECKING:
    from statetool.compatibility.verdicts import Check
    from statetool.report.facts import Answer

#: Browsers load nothing for this page and run no code in it, whatever names a snapshot contains.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_VERDICTS: Final = {"fully": "good", "after_migration": "warn", "unknown": "warn", "not": "bad"}


def page(facts: Facts) -> str:
    """Return the whole document."""
    contents = list(_sections(facts))
    title = f"{facts.path}: snapshot report"
    links = element("nav", *(element("a", name, href=f"#{anchor}") for anchor, name, _ in contents))
    body = join_html(element("section", element("h2", name), inner, id=anchor) for anchor, name, inner in contents)
    head = join_html(
        [
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{html(_POLICY)}">'),
            element("title", title),
            element("style", Html(STYLE)),
        ]
    )
    foot = element("footer", f"Ages and timers count from {moment(facts.now_ms)}. Made by statetool.")
    top = element("header", element("h1", "Snapshot report"), element("p", facts.path, class_="soft"), _cards(facts))
    root = element("html", element("head", head), element("body", top, links, element("main", body), foot), lang="en")
    return f"<!DOCTYPE html>\n{root}\n"


def _cards(facts: Facts) -> Html:
    """Return the summary at the top."""
    cards: list[tuple[str, Any]] = [
        ("checkpoint", facts.checkpoint_id),
        ("metadata version", facts.metadata_version),
        ("operators", count(len(facts.operators))),
        ("bytes", size(sum(o.state_bytes + o.coordinator_bytes for o in facts.operators))),
    ]
    if not isinstance(facts.states, StatetoolError):
        cards.append(("states", count(sum(s.kind != "unread" for s in facts.states))))
    if not isinstance(facts.statistics, StatetoolError):
        cards.append(("entries", count(sum(o.entries for o in facts.statistics.rows("operators")))))
    cards.append(("whole", _whole(facts)))
    if facts.check is not None:
        cards.append(("restores", _restores(facts.check)))
    if not isinstance(facts.connections, StatetoolError) and not facts.connections.ok:
        wrong = count(sum(c.is_problem and not c.is_unknown for c in facts.connections.checks))
        cards.append(("problems of sources", element("span", wrong, class_="bad")))
    if facts.unread:
        cards.append(("not read", element("span", count(len(facts.unread)), class_="warn")))
    if facts.failures:
        cards.append(("not answered", element("span", count(len(facts.failures)), class_="bad")))
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in cards))


def _whole(facts: Facts) -> Html:
    verification = facts.verification
    if isinstance(verification, StatetoolError):
        return element("span", "not known", class_="bad")
    counted = Counter(p.severity for p in verification.problems)
    if counted["error"]:
        return element("span", several(counted["error"], "error"), class_="bad")
    if verification.unread:
        return element("span", "not all read", class_="warn")
    return element(
        "span", f"yes, {several(counted['warning'], 'warning')}" if counted["warning"] else "yes", class_="good"
    )


def _restores(check: Answer[Check]) -> Html:
    if isinstance(check, StatetoolError):
        return element("span", "not known", class_="bad")
    words, look = check.verdict.replace("_", " "), _VERDICTS[check.verdict]
    if check.warnings:
        return element(
            "span", f"{words}, {several(len(check.warnings), 'warning')}", class_="warn" if look == "good" else look
        )
    return element("span", words, class_=look)


def _sections(facts: Facts) -> Iterator[tuple[str, str, Html]]:
    """Yield anchor, title and content of each section that is not empty; an error is shown only in its first section."""
    statistics = facts.statistics
    makers: list[tuple[str, str, Any, Callable[[Any], Html]]] = [
        ("findings", "Is it whole?", facts.verification, sections.findings),
        ("unread", "What cannot be read", facts.states, lambda states: sections.unread(states, facts.unread)),
        ("restore", "Would it restore?", facts.check, lambda check: sections.verdicts(check, facts.against)),
        ("differences", "What differs?", facts.differences, lambda answer: sections.differences(answer, facts.against)),
        ("operators", "Operators", facts.operators, lambda rows: sizes.operators(rows, statistics)),
        ("states", "States", facts.states, lambda states: sizes.states(states, statistics)),
        ("key-groups", "Key groups", statistics, sizes.key_groups),
        ("subtasks", "Subtasks", statistics, sizes.subtasks),
        ("largest", "Largest keys and values", statistics, sizes.largest),
        ("distribution", "Distribution of sizes", statistics, sizes.distribution),
        ("timers", "Timers", statistics, times.timers),
        ("ages", "Ages of values with a time to live", statistics, times.ages),
        ("growth", "Growth", facts.growth, times.growth),
        ("connections", "Sources and sinks", facts.connections, sections.connections),
    ]
    shown_errors: set[int] = set()
    for anchor, name, answer, make in makers:
        if isinstance(answer, StatetoolError):
            if id(answer) not in shown_errors:
                shown_errors.add(id(answer))
                yield anchor, name, element("p", f"No answer: {answer}", class_="bad")
        elif answer is not None and (inner := make(answer)):
            yield anchor, name, inner
