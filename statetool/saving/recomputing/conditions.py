"""Evaluation of the conditions of joins on Arrow columns, with the three values of SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from statetool.sql_plans.conditions import AND, COMPARISONS, IS_NOT_NULL, IS_NULL, NOT, OR

_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = dict(
    zip(COMPARISONS, (pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal), strict=True)
)


def is_true(condition: Mapping[str, Any], columns: Sequence[pa.Array]) -> Any:
    """Return bool[n]: whether the condition is true for each row. Columns are those of the left side, then those of the right one."""
    found = _evaluate(condition, columns)
    return pc.fill_null(found, False).to_numpy(zero_copy_only=False)


def _evaluate(part: Mapping[str, Any], columns: Sequence[pa.Array]) -> Any:
    if part["kind"] == "INPUT_REF":
        return columns[part["inputIndex"]]
    if part["kind"] == "LITERAL":
        return pa.scalar(part["value"])
    name, operands = part["internalName"], [_evaluate(o, columns) for o in part["operands"]]
    if name == AND:
        return reduce(pc.and_kleene, operands)
    if name == OR:
        return reduce(pc.or_kleene, operands)
    if name == NOT:
        return pc.invert(operands[0])
    if name in (IS_NULL, IS_NOT_NULL):
        return (pc.is_null if name == IS_NULL else pc.is_valid)(operands[0])
    return _COMPARE[name](*operands)
