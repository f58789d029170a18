"""HTML of one object in a notebook."""

from __future__ import annotations

from typing import Any

from statetool.html.markup import Html, element
from statetool.html.style import STYLE


def fragment(*parts: Any, style: str = STYLE) -> Html:
    """Return the parts in one block with its style, for ``_repr_html_``."""
    return element("div", element("style", Html(style)), *parts, class_="statetool")
