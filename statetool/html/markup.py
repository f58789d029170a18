"""Markup whose text is always escaped: names, keys and reasons come from snapshots, which are not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from statetool.errors import printable

#: Longer texts get a minimum width in a table, so that they do not become columns of single words. Longer words are broken anywhere.
_LONG: Final = 48
_LONG_WORD: Final = 24
_TAG: Final = re.compile("<[^>]*>")


class Html(str):
    """Markup; :func:`html` converts any other text to it."""

    __slots__ = ()


def html(value: Any) -> Html:
    """Return markup unchanged and anything else as escaped text; ``None`` becomes empty.

    Examples
    --------
    >>> html("<b>\\x00\\u202e")
    '&lt;b&gt;\\\\x00\\\\u202e'
    """
    if isinstance(value, Html):
        return value
    return Html(escape(printable("" if value is None else str(value))))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; ``class_`` is the attribute ``class``, and attributes that are ``None`` are left out."""
    written = "".join(f' {name.rstrip("_")}="{html(value)}"' for name, value in attributes.items() if value is not None)
    return Html(f"<{tag}{written}>{join(children)}</{tag}>")


def join(parts: Iterable[Any]) -> Html:
    """Return the parts, concatenated."""
    return Html("".join(map(html, parts)))


def table(names: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> Html:
    """Return a table without its empty columns. It scrolls independently if the page is too narrow."""
    cells = [[html(value) for value in row] for row in rows]
    used = [i for i in range(len(names)) if not cells or any(row[i] for row in cells)]
    kinds = {i: _kind([row[i] for row in cells]) for i in used}
    head = element("tr", *(element("th", names[i], class_=kinds[i]) for i in used))
    body = join(element("tr", *(element("td", row[i], class_=kinds[i]) for i in used)) for row in cells)
    title = element("caption", caption) if caption else ""
    return element("div", element("table", title, element("thead", head), element("tbody", body)), class_="scroll")


def _kind(cells: Sequence[Html]) -> str | None:
    """Return the class of a column: ``number``, ``moment``, ``long`` for texts of several lines, ``word`` for long words, or ``None``."""
    if any(cell.startswith("<data") for cell in cells):
        return "number"
    if any(cell.startswith("<time") for cell in cells):
        return "moment"
    if any("<svg" in cell for cell in cells):
        return None
    texts = [_TAG.sub(" ", cell) for cell in cells]
    if max(map(len, texts), default=0) > _LONG:
        return "long"
    return "word" if any(len(word) > _LONG_WORD for text in texts for word in text.split()) else None
