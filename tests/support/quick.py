"""Selection of similar cases for the quick run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], *chosen: Any) -> list[Any]:
    """Return parameters of a test: the chosen ones unchanged, all others marked with ``full``.

    Raises
    ------
    ValueError
        A chosen case is not among the cases.
    """
    cases = list(cases)
    if unknown := [c for c in chosen if c not in cases]:
        raise ValueError(f"{unknown} are none of the cases")
    full = pytest.mark.full
    return [c if c in chosen else pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=full) for c in cases]
