"""Records of one type as a table, in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import islice
from typing import Any, Final, TypeVar

from statetool.errors import several
from statetool.html.fragment import fragment
from statetool.html.markup import Html, element, html, table
from statetool.html.numbers import count, moment, size
from statetool.html.operators import operator_name
from statetool.types.operators import OperatorLabel

T = TypeVar("T")
#: A notebook keeps every row that it shows.
_MOST_ROWS: Final = 500


class RecordList(list[T]):
    """A list of records that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return fragment(record_table(self))


def record_table(records: Sequence[Any], title: str = "") -> Html:
    """Return the first records as a table with a column per field: sizes with units, times in UTC, and no empty columns."""
    if not records:
        return element("p", title or "no rows", class_="soft")
    names = [field.name for field in fields(records[0])]
    return row_table(names, ([getattr(record, name) for name in names] for record in records), len(records), title)


def row_table(names: Sequence[str], rows: Iterable[Sequence[Any]], number: int, title: str = "") -> Html:
    """Return the first of a ``number`` of rows as a table; see :func:`record_table`."""
    cells = [[_cell(name, value) for name, value in zip(names, row, strict=True)] for row in islice(rows, _MOST_ROWS)]
    shown = table([_heading(name) for name in names], cells, title or several(number, "row"))
    left = number - len(cells)
    return shown if left <= 0 else Html(shown + element("p", f"{several(left, 'row')} more", class_="soft"))


def _heading(name: str) -> str:
    return name.removesuffix("_ms").removesuffix("_bytes").replace("_", " ")


def _cell(name: str, value: Any) -> Html:
    match value:
        case bool():
            return html("yes" if value else "")
        case OperatorLabel():
            return operator_name(value)
        case int() if name.endswith("_bytes") or name.startswith("bytes_"):
            return size(value)
        case int() if name.endswith("_ms"):
            return element("time", moment(value))
        case int() if name.endswith(("_id", "_version", "_checkpoint")):
            return element("data", value, value=value)
        case float() if name == "reuse":
            return element("data", f"{value:.1%}", value=value)
        case int() | float():
            return count(value)
    return html(value)
