"""Tables as HTML, which notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; without names of columns it has no head."""
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr>" if names else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption>{head}{body}</table>"


def _cell(value: Any) -> str:
    text = escape("" if value is None else str(value))
    return f'<td style="text-align: left">{text}</td>'
