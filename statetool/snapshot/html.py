"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from statetool.errors import printable


def html_table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table. Without column names it has no header row."""
    head = f"<tr>{''.join(f'<th>{_text(name)}</th>' for name in names)}</tr>" if names else ""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{_text(title)}</caption>{head}{body}</table>"


def _cell(value: Any) -> str:
    return f'<td style="text-align: left">{_text(value)}</td>'


def _text(value: Any) -> str:
    return escape(printable("" if value is None else str(value)))
