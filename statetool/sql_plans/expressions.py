"""Texts for the columns that a plan computes, whose names (``$f1``, ``EXPR$0``) the planner generates from their position.

Two plans give the same generated name to different expressions. The text of the expression identifies the column instead:
``SUM(price * 2)`` is ``sum(price * 2)``, and not ``sum($f1)`` in one plan and ``sum($f2)`` in the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Final

from statetool.sql_plans.row_types import row_names

#: Names that the planner generates.
_GENERATED: Final = re.compile(r"\$f\d+|EXPR\$\d+|\$\d+")
_CONSTANT: Final = re.compile(r"\bconstant \d+")
#: Names of built-in functions: ``$SUM$1``, ``$*$1``.
_BUILTIN: Final = re.compile(r"\$(.+)\$\d+")
_OPERATOR: Final = re.compile(r"[^\w\s$]+")
_ROOT: Final = re.compile(r"\w+")
#: Types of literals that are written as their value.
_PLAIN: Final = frozenset({"BIGINT", "BOOLEAN", "DECIMAL", "DOUBLE", "FLOAT", "INT", "SMALLINT", "TINYINT"})
#: Members of a call that its text has, or that do not change its value.
_CALL: Final = frozenset({"kind", "syntax", "sqlKind", "type", "operands", "internalName", "systemName", "catalogName"})
#: Deepest chain of nodes that is followed to the node that computes a column.
_MAX_NODES: Final = 50


def is_identified(name: str) -> bool:
    """Return True if a column's name does not depend on its position in the query."""
    return _GENERATED.search(name) is None and _CONSTANT.search(name) is None


class ColumnTexts:
    """Texts for the columns of a plan's nodes.

    Parameters
    ----------
    nodes, inputs
        The nodes of the plan by id, and the ids of each node's inputs.
    """

    def __init__(self, nodes: Mapping[int, Mapping[str, Any]], inputs: Mapping[int, Sequence[int]]) -> None:
        self._nodes = nodes
        self._inputs = inputs

    def of(self, node: int, depth: int = 0) -> list[str]:
        """Return the names of a node's output columns. Generated names are replaced by the text of their expression, if it is known.

        Raises
        ------
        KeyError, IndexError, TypeError, AttributeError, RecursionError
            The plan lacks a member that such nodes have, or is nested too deeply.
        """
        spec = self._nodes[node]
        names = row_names(spec["outputType"])
        sources = self._inputs.get(node, ())
        if all(map(is_identified, names)) or len(sources) != 1 or depth > _MAX_NODES:
            return names
        before = self.of(sources[0], depth + 1)
        projection = spec.get("projection")
        if projection is None:
            # The node forwards its rows, such as an exchange.
            same = names == row_names(self._nodes[sources[0]]["outputType"])
            return before if same else names
        if len(projection) != len(names):
            raise TypeError(f"one expression per column, found {len(projection)} for {len(names)}")
        texts = [_text(expression, before) for expression in projection]
        return [name if is_identified(name) or text is None else text for name, text in zip(names, texts, strict=True)]

    def condition(self, node: int) -> str | None:
        """Return the condition of a node on the rows of its input as text, ``None`` if it has none; errors as for :meth:`of`."""
        condition = self._nodes[node].get("condition")
        sources = self._inputs.get(node, ())
        if not isinstance(condition, Mapping) or len(sources) != 1:
            return None
        return condition_text(condition, self.of(sources[0]))

    def of_local(self, node: int) -> list[str] | None:
        """Return the columns that the local aggregation before a global one reads, ``None`` if the plan has none."""
        for _ in range(_MAX_NODES):
            sources = self._inputs.get(node, ())
            if len(sources) != 1:
                return None
            (node,) = sources
            if "local-group-aggregate" in str(self._nodes[node].get("type")):
                return self.of(self._inputs[node][0])
        return None


def condition_text(condition: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return a condition on columns as text, as JSON if it has a part of an unknown kind."""
    return _text(condition, columns) or json.dumps(condition, sort_keys=True)


def _text(expression: Mapping[str, Any], columns: Sequence[str], *, inner: bool = False) -> str | None:
    """Return the text of an expression, ``None`` if it has a part of an unknown kind. ``inner``: it is an operand of an operator."""
    match expression["kind"]:
        case "INPUT_REF":
            return columns[index(expression["inputIndex"])]
        case "LITERAL":
            return _literal(expression)
        case "FIELD_ACCESS":
            record = _text(expression["expr"], columns, inner=True)
            return None if record is None else f"{record}.{expression['name']}"
        case "CALL" if expression.keys() <= _CALL:
            return _call(expression, columns, inner=inner)
    return None


def _literal(literal: Mapping[str, Any]) -> str:
    kind = _ROOT.match(str(literal["type"]))
    if literal.keys() <= {"kind", "value", "type"} and kind is not None:
        if kind[0] in _PLAIN:
            return str(literal.get("value"))
        if kind[0] in ("CHAR", "VARCHAR"):
            return repr(literal.get("value"))
    return json.dumps({k: v for k, v in literal.items() if k != "kind"}, sort_keys=True)


def _call(call: Mapping[str, Any], columns: Sequence[str], *, inner: bool) -> str | None:
    name = next((str(call[n]) for n in ("internalName", "systemName", "catalogName") if call.get(n)), "")
    builtin = _BUILTIN.fullmatch(name)
    shown = builtin[1] if builtin is not None else name
    is_operator = _OPERATOR.fullmatch(shown) is not None and len(call["operands"]) == 2
    texts = [_text(operand, columns, inner=is_operator) for operand in call["operands"]]
    known = [text for text in texts if text is not None]
    if not name or len(known) < len(texts):
        return None
    if is_operator:
        return f"({known[0]} {shown} {known[1]})" if inner else f"{known[0]} {shown} {known[1]}"
    cast = f" AS {call['type']}" if "CAST" in shown else ""
    return f"{shown}({', '.join(known)}{cast})"
