"""HTML representation of statistics in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from statetool.analysis.statistics.records import RecordTables
from statetool.html.fragment import fragment
from statetool.html.markup import Html, element, table
from statetool.html.numbers import count, share, size
from statetool.html.operators import operator_name

#: Rows that are shown of each table. ``to_pandas`` returns all.
_MOST_ROWS: Final = 20


def statistics_html(tables: RecordTables, reasons: Iterable[str]) -> Html:
    """Return the reasons for unread state, and the largest operators, states and keys, from the tables of statistics."""
    operators = sorted(tables.rows("operators"), key=lambda o: -o.size_bytes)
    states = sorted(tables.rows("states"), key=lambda s: -(s.size_bytes or 0))
    largest = sorted(tables.rows("largest"), key=lambda r: -r.size_bytes)
    operator_rows = (
        (operator_name(o.operator), size(o.size_bytes), size(o.entries_bytes), count(o.entries), count(o.keys))
        for o in operators[:_MOST_ROWS]
    )
    state_rows = (
        (operator_name(s.operator), s.state, s.kind, size(s.size_bytes), share(s.share), count(s.entries), size(s.largest_value))
        for s in states[:_MOST_ROWS]
    )  # fmt: skip
    largest_rows = (
        (operator_name(r.operator), r.what, r.state, r.key, r.key_group, r.subtask, size(r.size_bytes))
        for r in largest[:_MOST_ROWS]
    )
    about = "Stored: bytes in files, which Flink may compress. Uncompressed: bytes of keys and values."
    return fragment(
        *_unread(reasons),
        element("p", about, class_="soft"),
        table(("operator", "stored", "uncompressed", "entries", "keys"), operator_rows, _title("Operators", operators)),
        _collapsed(
            _title("States", states),
            table(("operator", "state", "kind", "uncompressed", "of operator", "entries", "largest value"), state_rows),
        ),
        _collapsed(
            _title("Largest keys and values", largest),
            table(("operator", "largest", "state", "key", "key group", "subtask", "uncompressed"), largest_rows),
        ),
        element("p", f"Tables for to_pandas(): {', '.join(tables.tables)}", class_="soft"),
    )


def estimate_html(tables: RecordTables, reasons: Iterable[str]) -> Html:
    """Return the reasons for unread state, and the largest operators and states, from the tables of estimates."""
    operators = sorted(tables.rows("operators"), key=lambda o: -o.stored_bytes)
    operator_rows = (
        (operator_name(o.operator), count(o.files), size(o.stored_bytes), count(o.entries), count(o.at_least), count(o.at_most))
        for o in operators[:_MOST_ROWS]
    )  # fmt: skip
    state_rows = (
        (operator_name(s.operator), s.state, s.kind, count(s.entries), count(s.at_least), count(s.at_most), s.basis)
        for s in tables.rows("states")[:_MOST_ROWS]
    )
    numbers = ("entries", "at least", "at most")
    return fragment(
        *_unread(reasons),
        element("p", "Numbers of entries are estimates. An empty cell is unknown.", class_="soft"),
        table(("operator", "files", "stored", *numbers), operator_rows, _title("Operators", operators)),
        _collapsed(
            _title("States", tables.rows("states")), table(("operator", "state", "kind", *numbers, "basis"), state_rows)
        ),
    )


def _unread(reasons: Iterable[str]) -> Iterable[Html]:
    return (element("p", element("b", "Not read", class_="warn"), f": {reason}") for reason in reasons)


def _title(name: str, rows: Sequence[object]) -> str:
    return name if len(rows) <= _MOST_ROWS else f"{name}: the largest {_MOST_ROWS} of {len(rows):,}"


def _collapsed(title: str, content: Html) -> Html:
    return element("details", element("summary", title), content)
