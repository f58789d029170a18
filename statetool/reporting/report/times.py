"""Sections about time: timers, ages, growth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from statetool.errors import several
from statetool.html.markup import Html, element, join, table
from statetool.html.numbers import between, change, count, moment, size
from statetool.html.operators import operator_name
from statetool.reporting.report import charts

if TYPE_CHECKING:
    from statetool.analysis.statistics.records import GrowthRow
    from statetool.analysis.statistics.statistics import Statistics


def timers(statistics: Statistics) -> Html:
    """Return the firing times of timers, by state."""
    parts = []
    for (operator, state), of_state in groupby(statistics.rows("timers"), key=lambda r: (r.operator, r.state)):
        total, *spans = of_state
        most = max((r.count for r in spans), default=0)
        rows = [
            (between(r.in_at_least_ms, r.in_below_ms, past="overdue {}", ahead="in {}"), count(r.count), charts.bar(r.count, most))
            for r in spans
        ]  # fmt: skip
        words = f"{total.count:,} of {total.domain} time, from {moment(total.first_ms)} to {moment(total.last_ms)}"
        parts += [
            element("h3", operator_name(operator), f": {state}"),
            element("p", words, class_="soft"),
            table(("fires", "timers", ""), rows),
        ]
    if parts:
        parts.append(
            element("p", "Whether timers of event time are overdue depends on the job's watermark.", class_="soft")
        )
    return join(parts)


def ages(statistics: Statistics) -> Html:
    """Return the ages of values with TTL since their last access, by state."""
    parts = []
    for (operator, state), of_state in groupby(statistics.rows("ages"), key=lambda r: (r.operator, r.state)):
        total, *spans = of_state
        most = max((r.count for r in spans), default=0)
        rows = [
            (between(r.age_at_least_ms, r.age_below_ms, past="{} ahead of now", ahead="{} ago"), count(r.count), charts.bar(r.count, most))
            for r in spans
        ]  # fmt: skip
        expired = "" if total.expired is None else f", {total.expired:,} of them expired"
        parts += [
            element("h3", operator_name(operator), f": {state}"),
            element("p", f"{several(total.count, 'value')}{expired}", class_="soft"),
            table(("accessed last", "values", ""), rows),
        ]
    return join(parts)


def growth(growth_rows: Sequence[GrowthRow]) -> Html:
    """Return the contents of each checkpoint, and the growth of each state over them."""
    paths = list(dict.fromkeys(r.path for r in growth_rows))
    total, added, ids = Counter[str](), Counter[str](), {r.path: r.checkpoint_id for r in growth_rows}
    states: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    unread = dict.fromkeys((r.operator, r.state) for r in growth_rows if r.size_bytes is None)
    for r in growth_rows:
        if r.size_bytes is not None and (r.operator, r.state) not in unread:
            total[r.path] += r.size_bytes
            states[r.operator, r.state][r.path] = r.size_bytes
    for before, path in pairwise(paths):
        added[path] = total[path] - total[before]
    most = max(total.values(), default=0)
    checkpoints = [
        (ids[p], p, size(total[p]), charts.bar(total[p], most), change(added[p] if i else None))
        for i, p in enumerate(paths)
    ]
    rows = []
    for (operator, state), by_path in states.items():
        sizes = [by_path.get(p, 0) for p in paths]
        rows.append((sizes[-1] - sizes[0], operator, state, sizes))
    grown = [
        (operator_name(operator), state, size(sizes[0]), charts.line(sizes), size(sizes[-1]), change(added_bytes))
        for added_bytes, operator, state, sizes in sorted(rows, key=lambda r: -abs(r[0]))
    ]
    without = ", ".join(f"{operator}.{state}" for operator, state in unread)
    return join(
        [
            element("p", f"Not included, because they could not be read in every checkpoint: {without}", class_="warn")
            if unread
            else "",
            table(("checkpoint", "path", "uncompressed state", "", "growth"), checkpoints),
            element("h3", "By state"),
            table(("operator", "state", "first", "uncompressed, over the checkpoints", "last", "growth"), grown),
        ]
    )
