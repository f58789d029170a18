"""Counts by size and by time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from statetool.kernels.core.arrays import Int64s

#: Sizes 0, 1, 2 to 3, 4 to 7, and so on.
SIZE_CLASSES: Final = 64
_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE
#: Edges between spans of time, in milliseconds: of ages before now, of timers from now on.
AGE_EDGES: Final = (0, _MINUTE, 60 * _MINUTE, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY)
TIMER_EDGES: Final = (-365 * _DAY, -30 * _DAY, -_DAY, -60 * _MINUTE, *AGE_EDGES)


def size_classes(sizes: Int64s) -> Int64s:
    """Count sizes by their number of binary digits: int64[64]."""
    return np.bincount(np.frexp(sizes.astype(np.float64))[1], minlength=SIZE_CLASSES)


def class_bounds(digits: int) -> tuple[int, int]:
    """Return the least and the largest size of a class.

    Examples
    --------
    >>> [class_bounds(d) for d in (0, 1, 3)]
    [(0, 0), (1, 1), (4, 7)]
    """
    return (0, 0) if digits == 0 else (1 << digits - 1, (1 << digits) - 1)


def count_spans(times: Int64s, edges: tuple[int, ...]) -> Int64s:
    """Count times between edges: int64[len(edges) + 1]; an edge belongs to the span that it begins."""
    return np.bincount(np.searchsorted(np.array(edges), times, side="right"), minlength=len(edges) + 1)


def spans(edges: tuple[int, ...]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the bounds of the spans that :func:`count_spans` counts."""
    yield from zip((None, *edges), (*edges, None), strict=True)
