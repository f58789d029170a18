"""Conditions of joins that are evaluated here: comparisons of columns and literals of the same family of types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_ROOT: Final = re.compile(r"[A-Z_]+")
#: Names of calls in plans.
COMPARISONS: Final = ("$=$1", "$<>$1", "$<$1", "$<=$1", "$>$1", "$>=$1")
AND, OR, NOT = "$AND$1", "$OR$1", "$NOT$1"
IS_NULL, IS_NOT_NULL = "$IS NULL$1", "$IS NOT NULL$1"
_WHOLE: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
#: Literals that JSON has as they are.
_LITERALS: Final = frozenset({*_WHOLE, "CHAR", "VARCHAR", "BOOLEAN"})


def unknown_part(condition: Mapping[str, Any]) -> str:
    """Return the part of a condition that cannot be evaluated, empty if there is none."""
    name, operands = str(condition.get("internalName", condition.get("kind"))), condition.get("operands") or ()
    if condition.get("kind") != "CALL":
        return "" if condition.get("kind") == "INPUT_REF" and _family(condition) == "BOOLEAN" else name
    if name in (AND, OR, NOT):
        return next((part for o in operands if (part := unknown_part(o))), "")
    if name in (IS_NULL, IS_NOT_NULL):
        return "" if [o.get("kind") for o in operands] == ["INPUT_REF"] else name
    if name not in COMPARISONS or len(operands) != 2:
        return name
    families = {_family(o) for o in operands}
    return name if len(families) > 1 or None in families else ""


def _family(operand: Mapping[str, Any]) -> str | None:
    """Return the family of types of a column or literal, ``None`` for others."""
    root = _ROOT.match(str(operand.get("type")))
    name = "" if root is None else root[0]
    if operand.get("kind") == "LITERAL":
        if name not in _LITERALS or operand.get("value") is None or operand.keys() - {"kind", "value", "type"}:
            return None
    elif operand.get("kind") != "INPUT_REF":
        return None
    if name in _WHOLE:
        return "whole"
    if name == "VARCHAR" or (name == "CHAR" and operand.get("kind") == "LITERAL"):
        return "text"
    return name if name in ("BOOLEAN", "DATE") else None
