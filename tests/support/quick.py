"""Selection of similar cases for the quick and the uncompiled run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest

#: This is the uncompiled run (``nox -s uncompiled``). Its kernels are plain Python, a hundred times as slow. It finds errors that compiled code
#: hides, such as an index out of bounds: these depend on the code that runs, not on the number of similar cases.
UNCOMPILED: Final = os.environ.get("STATETOOL_JIT") == "0"


def fewer_uncompiled(cases: list[Any], *chosen: Any) -> list[Any]:
    """Return parameters of a test whose cases run the same kernels: only the chosen ones in the uncompiled run."""
    return list(chosen) if UNCOMPILED else cases


def examples(number: int) -> int:
    """Return the number of examples of a property of kernels: a third of it in the uncompiled run."""
    return number // 3 if UNCOMPILED else number


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
