"""Values of rows as markup: nested values fold, and long texts are cut."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from statetool.errors import several
from statetool.html.markup import Html, element, html, join
from statetool.tables.rows import value_text

#: Longer texts are cut: a page shows a row, not a document.
_MOST_TEXT: Final = 2000
#: Nested values as long as this do not fold.
_FLAT_TEXT: Final = 40
#: Maximum number of elements of a value that a page shows.
_MOST_ELEMENTS: Final = 200
_MOST_DEPTH: Final = 12


def cell(value: Any, depth: int = 0) -> Html:
    """Return a value as markup. Lists, maps and structs fold, unless they are short."""
    if value is None:
        return element("span", "null", class_="soft")
    if isinstance(value, int) and not isinstance(value, bool):
        return element("data", value, value=value)
    if isinstance(value, str) and not value:
        return element("span", '""', class_="soft")
    pairs = _pairs(value)
    text = _cut(value_text(value), _MOST_TEXT if pairs is None or depth >= _MOST_DEPTH else _FLAT_TEXT)
    if pairs is None or depth >= _MOST_DEPTH or not text.endswith("…"):
        return html(text)
    shown = [join([element("dt", name), element("dd", cell(part, depth + 1))]) for name, part in pairs[:_MOST_ELEMENTS]]
    if len(pairs) > _MOST_ELEMENTS:
        shown.append(element("dt", f"{several(len(pairs) - _MOST_ELEMENTS, 'element')} more", class_="soft"))
    summary = element("summary", text, " ", element("span", f"({len(pairs):,})", class_="soft"))
    return element("details", summary, element("dl", *shown), class_="value")


def _pairs(value: Any) -> list[tuple[str, Any]] | None:
    """Return the parts of a nested value with their names; ``None`` for other values."""
    match value:
        case dict():
            return [(str(name), part) for name, part in value.items()]
        case [(_, _), *_] if all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            return [(_cut(value_text(name), _FLAT_TEXT) or "null", part) for name, part in value]
        case list():
            return [(f"{i}", part) for i, part in enumerate(value)]
    return None


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def key_text(key: Any) -> str | None:
    """Return a shown key as text with which it is looked up; ``None`` if it has no such text."""
    plain = _plain(key)
    if plain is None:
        return None
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, str | dict) else json.dumps(plain)


def _plain(key: Any) -> Any:
    match key:
        case bool() | int() | str():
            return key
        case dict() if key and None not in (parts := {str(name): _plain(part) for name, part in key.items()}).values():
            return {"fields": parts}
    return None


def rows_table(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], first: Mapping[int, Html] | None = None
) -> Html:
    """Return rows as a table with all columns. ``first`` has the markup of the first cell of some rows."""
    head = element("tr", *(element("th", name, scope="col") for name in names))
    body = []
    for number, row in enumerate(rows):
        cells = [cell(row[name]) for name in names]
        if first and number in first:
            cells[0] = first[number]
        body.append(element("tr", *(element("td", c, class_=_class(c)) for c in cells)))
    shown = element("table", element("thead", head), element("tbody", *body))
    return element("div", shown, class_="scroll", tabindex="0", role="region", **{"aria-label": "rows"})


def _class(shown: Html) -> str | None:
    return "number" if shown.startswith("<data") else None
