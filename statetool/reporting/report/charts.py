"""Charts as inline SVG without text: the page's text stays readable at any width, and details are in titles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from statetool.html.markup import Html, element

#: Maximum number of columns or cells that stay distinguishable; beyond it, neighbours share one.
MOST_COLUMNS: Final = 128
MOST_CELLS: Final = 512
#: With fewer columns, each is as wide as with this many.
_LEAST_COLUMNS: Final = 8
_CELLS_A_ROW: Final = 64
_HEIGHT: Final = 30
#: Opacity of the smallest value above 0, which stays visible.
_FAINTEST: Final = 0.12


def bar(value: float, most: float) -> Html:
    """Return the bar of a value; ``most`` fills the cell."""
    width = round(100 * value / most, 2) if most > 0 and value > 0 else 0
    return _svg("bar", 100, 10, [element("rect", width=width, height=10)], stretched=True)


def columns(values: Sequence[int], label: Callable[[int, int, int], str], words: str | None = None) -> Html:
    """Return one column per value; a column of several values is as high as the largest.

    Parameters
    ----------
    label
        Returns the title of a column, from its first and last index and its value.
    words
        What the chart shows, for readers who do not see it.
    """
    most = max(values, default=0)
    bars = []
    for x, (first, last) in enumerate(_runs(len(values), MOST_COLUMNS)):
        value = max(values[first : last + 1])
        height = round(_HEIGHT * value / most, 2) if most > 0 else 0
        title = element("title", label(first, last, value))
        bars.append(element("rect", title, x=x, y=round(_HEIGHT - height, 2), width=0.85, height=height))
    return _svg("columns", max(len(bars), _LEAST_COLUMNS), _HEIGHT, bars, stretched=True, words=words)


def heat_map(values: Sequence[int], label: Callable[[int, int, int], str], words: str | None = None) -> Html:
    """Return one cell per value, stronger for larger values; a cell of several values shows their sum. Others as for :func:`columns`."""
    cells = list(_runs(len(values), MOST_CELLS))
    sums = [sum(values[first : last + 1]) for first, last in cells]
    most = max([1, *sums])
    squares = []
    for i, ((first, last), value) in enumerate(zip(cells, sums, strict=True)):
        strength = round(_FAINTEST + (1 - _FAINTEST) * value / most, 3)
        look = {"fill-opacity": strength} if value > 0 else {"class": "empty"}
        title = element("title", label(first, last, value))
        squares.append(element("rect", title, x=i % _CELLS_A_ROW, y=i // _CELLS_A_ROW, width=0.9, height=0.9, **look))
    return _svg("heat", _CELLS_A_ROW, -(-len(cells) // _CELLS_A_ROW), squares, words=words)


def line(values: Sequence[int]) -> Html:
    """Return a line through values, from 0 at the bottom to the largest at the top."""
    most, steps = max(values, default=0), max(len(values) - 1, 1)
    points = [
        f"{100 * i / steps:.2f},{_HEIGHT - 1 - (_HEIGHT - 2) * (v / most if most else 0):.2f}"
        for i, v in enumerate(values)
    ]
    if len(points) == 1:
        points.append(f"100,{points[0].partition(',')[2]}")
    return _svg("line", 100, _HEIGHT, [element("polyline", points=" ".join(points))], stretched=True)


def _runs(number: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last index of up to ``most`` runs, all of the same length except the last."""
    step = -(-number // most) or 1
    for first in range(0, number, step):
        yield first, min(first + step, number) - 1


def _svg(
    kind: str, width: int, height: int, children: Sequence[Html], *, stretched: bool = False, words: str | None = None
) -> Html:
    """Return a chart. Without words it repeats a number of the text beside it, and is hidden from screen readers."""
    named = {"aria-hidden": "true"} if words is None else {"role": "img", "aria-label": words}
    return element(
        "svg",
        *children,
        class_=kind,
        viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none" if stretched else None,
        **named,
    )
