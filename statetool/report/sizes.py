"""Sections about large state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from statetool.errors import StatetoolError
from statetool.report import charts
from statetool.report.markup import Html, element, join_html, table
from statetool.report.numbers import count, share, size, size_text

if TYPE_CHECKING:
    from statetool.report.facts import Answer
    from statetool.snapshot.metadata_tables import OperatorRow
    from statetool.snapshot.state_info import StateInfo
    from statetool.statistics.records import DistributionRow, LargestRow, RestoreRow, SkewRow
    from statetool.statistics.statistics import Statistics


def operators(operator_rows: Sequence[OperatorRow], statistics: Answer[Statistics]) -> Html:
    """Return the operators, largest first."""
    measured = {} if isinstance(statistics, StatetoolError) else {o.operator: o for o in statistics.rows("operators")}
    most = max((_bytes(o) for o in operator_rows), default=0)
    rows = []
    for o in sorted(operator_rows, key=_bytes, reverse=True):
        m = measured.get(o.operator)
        counts = () if m is None else (count(m.entries), count(m.keys), share(m.snappy_ratio))
        name = join_html([o.operator, element("div", o.name, class_="soft") if o.name not in ("", o.operator) else ""])
        finished = " (finished)" if o.fully_finished else ""
        rows.append(
            (name, f"{o.parallelism}{finished}", o.max_parallelism, size(_bytes(o)), charts.bar(_bytes(o), most), *counts, o.operator_id)
        )  # fmt: skip
    count_names = ("entries", "keys", "Snappy would leave") if measured else ()
    return table(("operator", "parallelism", "max parallelism", "bytes", "", *count_names, "id"), rows)


def _bytes(operator: OperatorRow) -> int:
    return operator.state_bytes + operator.coordinator_bytes


def states(state_infos: Sequence[StateInfo], statistics: Answer[Statistics]) -> Html:
    """Return the states with their types, largest first."""
    rows = [] if isinstance(statistics, StatetoolError) else statistics.rows("states")
    measured = {(s.operator, s.scope, s.state): s for s in rows}
    most = max((s.size_bytes for s in rows), default=0)
    listed = [(s, measured.get((s.operator, s.scope, s.name))) for s in state_infos if s.kind != "unread"]
    shown: list[tuple[Any, ...]] = []
    for s, m in sorted(listed, key=lambda pair: -1 if pair[1] is None else pair[1].size_bytes, reverse=True):
        types = " → ".join(t for t in (s.key_type, s.namespace_type, s.value_type) if t)
        numbers: tuple[Any, ...] = ("",) * 6
        if m is not None:
            numbers = (size(m.size_bytes), charts.bar(m.size_bytes, most), share(m.share), count(m.entries), count(m.keys), size(m.largest_value))  # fmt: skip
        kind = f"{s.kind}, {s.scope}" + (", TTL" if s.ttl else "")
        shown.append((s.operator, s.name, kind, types, *numbers))
    names = ("operator", "state", "kind", "key → namespace → value", "bytes", "", "of operator", "entries", "keys", "largest value")  # fmt: skip
    return table(names, shown) if shown else Html("")


def key_groups(statistics: Statistics) -> Html:
    """Return a heat map of the key groups of each operator: bytes of keyed entries."""
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    for row in statistics.rows("sizes"):
        if row.part == "entries" and row.key_group is not None:
            sizes[row.operator][row.key_group] += row.size_bytes
    maps = []
    for operator in statistics.rows("operators"):
        if group_bytes := sizes[operator.operator]:
            largest, most = max(group_bytes.items(), key=lambda pair: pair[1])
            words = f"{len(group_bytes):,} of {operator.max_parallelism:,} key groups have entries; the largest, {largest}, has {size_text(most)}"
            values = [group_bytes[g] for g in range(operator.max_parallelism)]
            chart = charts.heat_map(values, lambda a, b, n: f"{_range('key group', a, b)}: {n:,} bytes")
            maps += [element("h3", operator.operator), element("p", words, class_="soft"), chart]
    return join_html(maps)


def _range(name: str, first: int, last: int) -> str:
    return f"{name} {first}" if first == last else f"{name}s {first} to {last}"


def subtasks(statistics: Statistics) -> Html:
    """Return the balance of keyed entries over subtasks, and the bytes read by a restore."""
    skew: dict[tuple[str, int], list[SkewRow]] = defaultdict(list)
    restore: dict[tuple[str, int], list[RestoreRow]] = defaultdict(list)
    for s in statistics.rows("skew"):
        skew[s.operator, s.parallelism].append(s)
    for r in statistics.rows("restore"):
        restore[r.operator, r.parallelism].append(r)
    rows = []
    for operator_at in dict.fromkeys([*restore, *skew]):
        skew_rows, restore_rows = skew.get(operator_at, []), restore.get(operator_at, [])
        evenness: tuple[Any, ...] = ("", "")
        if skew_rows:
            chart = charts.columns(
                [s.size_bytes for s in skew_rows], lambda a, b, n: f"{_range('subtask', a, b)}: {n:,} bytes{'' if a == b else ' at most'}"
            )  # fmt: skip
            evenness = (chart, f"{max(s.of_mean for s in skew_rows):.2f} × the mean")
        slowest = max((r.seconds for r in restore_rows), default=None)
        reading = (
            size(sum(r.read_bytes for r in restore_rows)),
            count(sum(r.requests for r in restore_rows)),
            "" if slowest is None else f"{slowest:,.1f} s",
        )
        rows.append((*operator_at, *evenness, *reading))
    names = ("operator", "parallelism", "keyed entries by subtask", "the largest", "restore reads", "requests", "slowest subtask, about")  # fmt: skip
    return table(names, rows) if rows else Html("")


def largest(statistics: Statistics) -> Html:
    """Return the largest keys, values, lists and maps of each operator, in a collapsed block."""
    largest_rows: list[LargestRow] = statistics.rows("largest")
    parts = []
    for operator, of_operator in groupby(largest_rows, key=lambda r: r.operator):
        rows = [
            (r.what, r.state, r.key, r.key_group, r.subtask, count(r.length), size(r.size_bytes)) for r in of_operator
        ]
        names = ("largest", "state", "key", "key group", "subtask", "length", "bytes")
        parts.append(element("details", element("summary", operator), table(names, rows)))
    return join_html(parts)


def distribution(statistics: Statistics) -> Html:
    """Return the size distribution of each state's keys and values, collapsed; each column covers twice the sizes of the previous one."""
    parts = []
    names = ("state", "of", "count", "from", "how many of each size", "to")
    for operator, of_operator in groupby(statistics.rows("distribution"), key=lambda r: r.operator):
        rows = [_sizes(list(of_state)) for _, of_state in groupby(of_operator, key=lambda r: (r.state, r.what))]
        parts.append(element("details", element("summary", operator), table(names, rows)))
    return join_html(parts)


def _sizes(rows: Sequence[DistributionRow]) -> tuple[Any, ...]:
    """Return the row of a state's sizes, including empty classes between others."""
    first, last = rows[0], rows[-1]
    by_digits = {r.at_most.bit_length(): r.count for r in rows}
    lowest = min(by_digits)
    counts = [by_digits.get(d, 0) for d in range(lowest, max(by_digits) + 1)]

    def label(low: int, high: int, number: int) -> str:
        return f"{1 << lowest + low >> 1:,} to {(1 << lowest + high) - 1:,}: {number:,}"

    chart = charts.columns(counts, label)
    return (
        first.state,
        first.what.replace("_", " "),
        count(sum(counts)),
        count(first.at_least),
        chart,
        count(last.at_most),
    )
