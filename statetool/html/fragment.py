"""HTML of one object in a notebook."""

from __future__ import annotations

import re
from typing import Any, Final

from statetool.html.markup import Html, element, join
from statetool.html.style import STYLE

#: JupyterLab aligns all cells to the right, and removes style sheets from outputs of notebooks that it does not trust. It keeps these styles
#: of elements, except for ``anywhere``.
_ALIGNED: Final = {
    "number": "text-align:right;vertical-align:top;white-space:nowrap",
    "moment": "text-align:left;vertical-align:top;white-space:nowrap",
    "long": "text-align:left;vertical-align:top;overflow-wrap:break-word;overflow-wrap:anywhere;min-width:16rem;max-width:32rem",
    "word": "text-align:left;vertical-align:top;overflow-wrap:break-word;overflow-wrap:anywhere;min-width:9rem;max-width:32rem",
    "": "text-align:left;vertical-align:top",
}
#: The markup of a cell of :func:`~statetool.html.markup.table`. Texts cannot contain it: they are escaped.
_CELL: Final = re.compile(r'<(t[dh]|caption)(?: class="(number|moment|long|word)")?>')
#: Notebooks take what stands between two dollar signs, as in names of Java's inner classes, for a formula, except here.
_CLASS: Final = "statetool tex2jax_ignore mathjax_ignore"


def fragment(*parts: Any, style: str = STYLE) -> Html:
    """Return the parts in one block with its style, for ``_repr_html_``."""
    aligned = _CELL.sub(lambda cell: f'{cell[0][:-1]} style="{_ALIGNED[cell[2] or ""]}">', join(parts))
    return element("div", element("style", Html(style)), Html(aligned), class_=_CLASS)
