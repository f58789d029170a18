"""Types for the state of Python jobs.

Pass them to ``statetool.load(..., python={"count": Types.LONG(), "items": ListState(Types.STRING()), "sizes": "MapState(STRING, LONG)"})``.
"""

from __future__ import annotations

from statetool.types.python_types import (
    ListState,
    MapState,
    PythonState,
    PythonType,
    Types,
    ValueState,
    parse_python_state,
    parse_python_type,
)

__all__ = [
    "ListState",
    "MapState",
    "PythonState",
    "PythonType",
    "Types",
    "ValueState",
    "parse_python_state",
    "parse_python_type",
]
