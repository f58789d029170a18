"""Values as one line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statetool.errors import printable
from statetool.types.operators import OperatorLabel


def shown_text(value: Any, nothing: str = "-") -> str:
    """Return a value in one line. Maps and structs have Spark's form, and control characters are escaped."""
    if value is None:
        return nothing
    if isinstance(value, OperatorLabel):
        return printable(value.display)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{printable(str(k))}: {shown_text(v, 'null')}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        if value and all(isinstance(v, tuple) and len(v) == 2 for v in value):  # Arrow's map
            return "{" + ", ".join(f"{shown_text(k)} -> {shown_text(v, 'null')}" for k, v in value) + "}"
        return "[" + ", ".join(shown_text(v, "null") for v in value) + "]"
    return printable(str(value))
