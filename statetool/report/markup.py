"""Markup whose text is always escaped: names, keys and reasons come from snapshots, which are not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from statetool.errors import printable

#: Longer texts get a minimum width in a table, so that they do not become columns of single words.
_LONG: Final = 48


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
    return Html(f"<{tag}{written}>{join_html(children)}</{tag}>")


def join_html(parts: Iterable[Any]) -> Html:
    """Return the parts, concatenated."""
    return Html("".join(map(html, parts)))


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Html:
    """Return a table, which scrolls independently if the page is narrow."""
    head = element("tr", *(element("th", name) for name in names))
    body = join_html(element("tr", *map(_cell, row)) for row in rows)
    return element("div", element("table", element("thead", head), element("tbody", body)), class_="scroll")


def _cell(value: Any) -> Html:
    text = html(value)
    return element("td", text, class_="long" if not isinstance(value, Html) and len(text) > _LONG else None)
