"""Sections about large state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import StatetoolError, several
from statetool.html.markup import Html, element, join, table
from statetool.html.numbers import count, share, size, size_text
from statetool.html.operators import operator_ids, operator_name
from statetool.reporting.report import charts

if TYPE_CHECKING:
    from statetool.analysis.statistics.records import DistributionRow, LargestRow, RestoreRow, SkewRow
    from statetool.analysis.statistics.statistics import Statistics
    from statetool.reporting.report.facts import Answer
    from statetool.snapshot.metadata_tables import OperatorRow
    from statetool.snapshot.state_info import StateInfo

_STORED: Final = (
    "Stored: bytes in the files of the snapshot, which Flink may compress. "
    "Uncompressed: bytes of keys and values, without headers and framing. "
    "Snappy ratio: size of a compressed sample of the entries, relative to the sample."
)
_UNCOMPRESSED: Final = "Sizes are uncompressed bytes of keys and values. A compressed snapshot stores fewer bytes."


def operators(operator_rows: Sequence[OperatorRow], statistics: Answer[Statistics]) -> Html:
    """Return the operators, largest first."""
    measured = {} if isinstance(statistics, StatetoolError) else {o.operator: o for o in statistics.rows("operators")}
    most = max((_bytes(o) for o in operator_rows), default=0)
    rows: list[tuple[Any, ...]] = []
    for o in sorted(operator_rows, key=_bytes, reverse=True):
        m = measured.get(o.operator)
        counts: tuple[Any, ...] = ("",) * 4
        if m is not None:
            counts = (size(m.entries_bytes), count(m.entries), count(m.keys), share(m.snappy_ratio))
        finished = " (finished)" if o.fully_finished else ""
        stored = join([size(_bytes(o)), charts.bar(_bytes(o), most)])
        rows.append((operator_name(o.operator), stored, *counts, f"{o.parallelism}{finished}", o.max_parallelism))
    names = ("operator", "stored", "uncompressed", "entries", "keys", "Snappy ratio", "parallelism", "max parallelism")
    about = element("p", _STORED, class_="soft")
    return join([about, table(names, rows), operator_ids(o.operator for o in operator_rows)])


def _bytes(operator: OperatorRow) -> int:
    return operator.state_bytes + operator.coordinator_bytes


def states(state_infos: Sequence[StateInfo], statistics: Answer[Statistics]) -> Html:
    """Return the states with their types, largest first."""
    rows = [] if isinstance(statistics, StatetoolError) else statistics.rows("states")
    measured = {(s.operator, s.scope, s.state): s for s in rows}
    most = max((s.size_bytes or 0 for s in rows), default=0)
    listed = [(s, measured.get((s.operator, s.scope, s.name))) for s in state_infos if s.kind != "unread"]
    shown: list[tuple[Any, ...]] = []
    for s, m in sorted(listed, key=lambda pair: -1 if pair[1] is None else pair[1].size_bytes or 0, reverse=True):
        numbers: tuple[Any, ...] = ("",) * 5
        if m is not None and m.size_bytes is not None:
            uncompressed = join([size(m.size_bytes), charts.bar(m.size_bytes, most)])
            numbers = (uncompressed, share(m.share), count(m.entries), count(m.keys), size(m.largest_value))
        kind = f"{s.scope} {s.kind}" + (", TTL" if s.ttl else "")
        types = " → ".join(t for t in (s.key_type, s.namespace_type, s.value_type) if t and t != "VoidNamespace")
        state = join([s.name, element("div", types, class_="soft")])
        shown.append((operator_name(s.operator), state, kind, *numbers))
    names = ("operator", "state and types", "kind", "uncompressed", "of operator", "entries", "keys", "largest value")
    return join([element("p", _UNCOMPRESSED, class_="soft"), table(names, shown)]) if shown else Html("")


def key_groups(statistics: Statistics) -> Html:
    """Return a heat map of the key groups of each operator: uncompressed bytes of keyed entries."""
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    for row in statistics.rows("sizes"):
        if row.part == "entries" and row.key_group is not None:
            sizes[row.operator][row.key_group] += row.size_bytes
    maps = []
    for operator in statistics.rows("operators"):
        if group_bytes := sizes[operator.operator]:
            largest, most = max(group_bytes.items(), key=lambda pair: pair[1])
            words = f"{len(group_bytes):,} of {operator.max_parallelism:,} key groups have entries; the largest, {largest}, has {size_text(most)} uncompressed"
            values = [group_bytes[g] for g in range(operator.max_parallelism)]
            chart = charts.heat_map(values, lambda a, b, n: f"{_range('key group', a, b)}: {n:,} bytes", words)
            maps += [element("h3", operator_name(operator.operator)), element("p", words, class_="soft"), chart]
    return join(maps)


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
    for operator, parallelism in dict.fromkeys([*restore, *skew]):
        skew_rows, restore_rows = skew.get((operator, parallelism), []), restore.get((operator, parallelism), [])
        evenness: tuple[Any, ...] = ("", "")
        if skew_rows:
            most = max(skew_rows, key=lambda s: s.size_bytes)
            words = f"sizes of {several(len(skew_rows), 'subtask')}; the largest, {most.subtask}, has {size_text(most.size_bytes)}"
            chart = charts.columns(
                [s.size_bytes for s in skew_rows], lambda a, b, n: f"{_range('subtask', a, b)}: {n:,} bytes{'' if a == b else ' at most'}", words
            )  # fmt: skip
            evenness = (chart, f"{max(s.of_mean for s in skew_rows):.2f} × the mean")
        slowest = max((r.seconds for r in restore_rows), default=None)
        reading = (
            size(sum(r.read_bytes for r in restore_rows)),
            count(sum(r.requests for r in restore_rows)),
            "" if slowest is None else f"about {slowest:,.1f} s",
        )
        rows.append((operator_name(operator), parallelism, *evenness, *reading))
    about = "Keyed entries are uncompressed bytes. A restore reads stored bytes; its time is an estimate."
    names = ("operator", "parallelism", "keyed entries by subtask", "largest subtask", "restore reads", "requests", "slowest subtask")  # fmt: skip
    return join([element("p", about, class_="soft"), table(names, rows)]) if rows else Html("")


def largest(statistics: Statistics) -> Html:
    """Return the largest keys, values, lists and maps of each operator, in a collapsed block."""
    largest_rows: list[LargestRow] = statistics.rows("largest")
    parts = []
    for operator, of_operator in groupby(largest_rows, key=lambda r: r.operator):
        rows = [
            (r.what, r.state, r.key, r.key_group, r.subtask, count(r.length), size(r.size_bytes)) for r in of_operator
        ]
        names = ("largest", "state", "key", "key group", "subtask", "length", "uncompressed")
        parts.append(element("details", element("summary", operator_name(operator)), table(names, rows)))
    return join(parts)


def distribution(statistics: Statistics) -> Html:
    """Return the size distribution of each state's keys and values, collapsed; each column covers twice the sizes of the previous one."""
    parts = []
    names = ("state", "of", "count", "from", "how many of each size", "to")
    for operator, of_operator in groupby(statistics.rows("distribution"), key=lambda r: r.operator):
        rows = [_sizes(list(of_state)) for _, of_state in groupby(of_operator, key=lambda r: (r.state, r.what))]
        parts.append(element("details", element("summary", operator_name(operator)), table(names, rows)))
    return join(parts)


def _sizes(rows: Sequence[DistributionRow]) -> tuple[Any, ...]:
    """Return the row of a state's sizes, including empty classes between others."""
    first, last = rows[0], rows[-1]
    by_digits = {r.at_most.bit_length(): r.count for r in rows}
    lowest = min(by_digits)
    counts = [by_digits.get(d, 0) for d in range(lowest, max(by_digits) + 1)]

    def label(low: int, high: int, number: int) -> str:
        return f"{1 << lowest + low >> 1:,} to {(1 << lowest + high) - 1:,}: {number:,}"

    words = f"how many {first.what.replace('_', ' ')}s of {first.state} have each size"
    chart = charts.columns(counts, label, words)
    return (
        first.state,
        first.what.replace("_", " "),
        count(sum(counts)),
        count(first.at_least),
        chart,
        count(last.at_most),
    )
