"""HTML representation of statistics in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from statetool.html.fragment import fragment
from statetool.html.markup import Html, element, table
from statetool.html.numbers import count, share, size
from statetool.html.operators import operator_name

#: Rows that are shown of each table. ``to_pandas`` returns all.
_MOST_ROWS: Final = 20


def statistics_html(tables: Mapping[str, Sequence[Any]], reasons: Iterable[str]) -> Html:
    """Return the reasons for unread state, and the largest operators, states and keys, from the tables of statistics."""
    unread = (element("p", element("b", "Not read", class_="warn"), f": {reason}") for reason in reasons)
    operators = sorted(tables["operators"], key=lambda o: -o.size_bytes)
    states = sorted(tables["states"], key=lambda s: -s.size_bytes)
    largest = sorted(tables["largest"], key=lambda r: -r.size_bytes)
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
        *unread,
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
        element("p", f"Tables for to_pandas(): {', '.join(tables)}", class_="soft"),
    )


def _title(name: str, rows: list[object]) -> str:
    return name if len(rows) <= _MOST_ROWS else f"{name}: the largest {_MOST_ROWS} of {len(rows):,}"


def _collapsed(title: str, content: Html) -> Html:
    return element("details", element("summary", title), content)
