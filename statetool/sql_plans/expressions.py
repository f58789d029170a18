"""Texts for the columns that a plan computes, which tell the values of a column, and not only its name.

Two plans give the same name to different expressions: the planner generates some (``$f1``, ``EXPR$0``) from their position, and a query
can call ``price * 2`` and ``price * 3`` both ``x``. The text of the expression identifies the column instead:
``SUM(price * 2)`` is ``sum(price * 2)``, and not ``sum($f1)`` in one plan and ``sum($f2)`` in the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from operator import index
from typing import Any, Final

from statetool.sql_plans.row_types import row_names

#: Names that the planner generates.
_GENERATED: Final = re.compile(r"\$f\d+|EXPR\$\d+|\$\d+")
#: A text that identifies no column.
_UNKNOWN: Final = "$f0"
_CONSTANT: Final = re.compile(r"\bconstant \d+")
#: Names of built-in functions: ``$SUM$1``, ``$*$1``.
_BUILTIN: Final = re.compile(r"\$(.+)\$\d+")
#: Built-in functions whose result depends on its type, which no operand tells.
_OF_ITS_TYPE: Final = re.compile(r"CAST|JSON_|REINTERPRET")
_OPERATOR: Final = re.compile(r"[^\w\s$]+")
_ROOT: Final = re.compile(r"\w+")
#: Types of literals that are written as their value.
_PLAIN: Final = frozenset({"BIGINT", "BOOLEAN", "DECIMAL", "DOUBLE", "FLOAT", "INT", "SMALLINT", "TINYINT"})
#: Members of a call that its text has, or that do not change its value.
_CALL: Final = frozenset({"kind", "syntax", "sqlKind", "type", "operands", "internalName", "systemName", "catalogName"})
#: Deepest chain of nodes that is followed to the node that computes a column.
_MAX_NODES: Final = 50
#: Longest text of an expression, in characters; of longer ones, the hash is shown.
_MAX_TEXT: Final = 400
#: Names and calls that need no parentheses beside an operator.
_WORD: Final = re.compile(r"[\w$.]+|`[^`]*`")
#: Members of a node that do not tell what it computes: its place, texts for reading, and settings.
_NOT_COMPUTED: Final = frozenset({
    "id", "type", "uid", "description", "configuration", "state", "inputProperties", "outputType", "inputUpsertKey", "inputChangelogMode",
})  # fmt: skip
#: The version of a node's type, which releases raise.
_VERSION: Final = re.compile(r"_\d+$")


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
        self._known: dict[int, list[str]] = {}

    def of(self, node: int, depth: int = 0) -> list[str]:
        """Return texts for a node's output columns: names of columns of tables, and the expressions of others.

        Columns have the planner's name (:func:`is_identified`) if nothing tells how they are computed.

        Raises
        ------
        KeyError, IndexError, TypeError, AttributeError, RecursionError
            The plan lacks a member that such nodes have, or is nested too deeply.
        """
        if node not in self._known:
            self._known[node] = [_UNKNOWN]  # for a plan with a cycle
            self._known[node] = list(map(_shortened, self._of(node, depth)))
        return self._known[node]

    def _of(self, node: int, depth: int) -> list[str]:
        spec = self._nodes[node]
        names = row_names(spec["outputType"])
        sources = self._inputs.get(node, ())
        if not sources:
            return list(map(_quoted, names))
        if depth > _MAX_NODES:
            return [_UNKNOWN] * len(names)
        before = [self.of(source, depth + 1) for source in sources]
        if len(sources) > 1:
            return self._of_several(node, names, before)
        (columns,) = before
        projection = spec.get("projection")
        if projection is not None:
            if len(projection) != len(names):
                raise TypeError(f"one expression per column, found {len(projection)} for {len(names)}")
            return [_column(name, e, columns) for name, e in zip(names, projection, strict=True)]
        if "projects" in spec:
            return _expanded(names, spec["projects"], columns)
        for grouping in ("grouping", "finalAggGrouping"):
            if grouping in spec:
                keys = [columns[i] for i in spec[grouping]]
                return [*keys, *self._aggregated(node, names[len(keys) :], columns, keys)]
        given = row_names(self._nodes[sources[0]]["outputType"])
        if names[: len(given)] == given and len(columns) == len(given):
            # The node forwards its rows, such as an exchange, or adds columns to them.
            return [*columns, *_described(names[len(given) :], spec, columns)]
        return _described(names, spec, columns)

    def _of_several(self, node: int, names: list[str], before: list[list[str]]) -> list[str]:
        spec = self._nodes[node]
        sources = self._inputs[node]
        if "union" in str(spec.get("type")):
            if {*map(len, before)} != {len(names)}:
                raise TypeError(f"{len(names)} columns in each input")
            branches = zip(*before, strict=True)
            return [texts[0] if len({*texts}) == 1 else " or ".join(texts) for texts in branches]
        if names == row_names(self._nodes[sources[0]]["outputType"]) and len(names) == len(before[0]):
            return before[0]  # a semi join
        if len(names) != sum(map(len, before)):
            return _described(names, spec, [text for texts in before for text in texts])
        # In another query, only one of two equal columns of a self join may be read: both are named by their input.
        shared = self._share_tables(sources)
        several = {text for texts in before for text in texts if shared or sum(text in o for o in before) > 1}
        return [
            f"{text} of input {number}" if text in several else text
            for number, texts in enumerate(before)
            for text in texts
        ]

    def _share_tables(self, sources: Sequence[int]) -> bool:
        """Return True if several inputs of a node may read the same table."""
        tables = [self._tables_before(source) for source in sources]
        every = [table for found in tables for table in found]
        return "" in every or len(every) > len({*every})

    def _tables_before(self, node: int) -> set[str]:
        """Return the identifiers of the tables that a node reads; that of a source without a name is empty."""
        waiting, seen, found = [node], set[int](), set[str]()
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            waiting += self._inputs.get(at, ())
            if not self._inputs.get(at):
                table = (self._nodes[at].get("scanTableSource") or {}).get("table") or {}
                found.add(str(table.get("identifier", "")))
        return found

    def _aggregated(self, node: int, names: list[str], columns: list[str], keys: list[str]) -> list[str]:
        """Return texts for the results of a node's aggregates."""
        spec = self._nodes[node]
        calls, kind = spec.get("aggCalls") or (), str(spec.get("type"))
        if "local-" in kind or "incremental-" in kind:
            return names  # accumulators
        if "group-aggregate" not in kind or len(calls) != len(names):
            return _described(names, spec, columns)
        read = self.of_local(node) if "localAggInputRowType" in spec else columns
        if read is None:
            return [_UNKNOWN] * len(names)
        return [f"{_aggregate(call, read)} by ({', '.join(keys)})" for call in calls]

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


def _column(name: str, expression: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return the text of a column of a projection."""
    text = _text(expression, columns)
    if text is None:
        return _described([name], expression, columns)[0] if is_identified(name) else name
    return text


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"expression {_digest(text)}" if is_identified(text) else _UNKNOWN


def _described(names: Sequence[str], part: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """Return texts for columns that a part of the plan computes from others and whose expression is not known: equal parts have equal texts."""
    if not names:
        return []
    if not all(map(is_identified, columns)):
        return [f"{_quoted(name)} {_UNKNOWN}" for name in names]
    kind = _VERSION.sub("", str(part.get("type")))
    digest = _digest(kind, {n: p for n, p in part.items() if n not in _NOT_COMPUTED}, columns)
    return [f"{_quoted(name)} {digest}" for name in names]


def _expanded(names: Sequence[str], projects: Sequence[Sequence[Any]], columns: Sequence[str]) -> list[str]:
    """Return texts for the columns of rows that are multiplied, once for each set of columns of GROUPING SETS."""
    if any(len(one) != len(names) for one in projects):
        raise TypeError(f"one expression per column, of which there are {len(names)}")
    sets = [[_column(name, e, columns) for name, e in zip(names, one, strict=True)] for one in projects]
    by_column = list(zip(*sets, strict=True))
    varied = [texts for texts in by_column if len({*texts}) > 1]
    if not all(is_identified(text) for texts in varied for text in texts):
        return [texts[0] if len({*texts}) == 1 else _UNKNOWN for texts in by_column]
    digest = _digest(varied)
    return [
        texts[0] if len({*texts}) == 1 else f"{name.lstrip('$')} of the grouping sets {digest}"
        for name, texts in zip(names, by_column, strict=True)
    ]


def _aggregate(call: Mapping[str, Any], columns: Sequence[str]) -> str:
    name = next((str(call[n]) for n in ("internalName", "systemName", "catalogName") if call.get(n)), "")
    builtin = _BUILTIN.fullmatch(name)
    shown = builtin[1].strip("$").lower() if builtin is not None else name or f"aggregate {_digest(call)}"
    arguments = ", ".join(columns[i] for i in call["argList"]) or "*"
    condition = f" filter {columns[call['filterArg']]}" if call.get("filterArg", -1) >= 0 else ""
    return f"{shown}({'distinct ' if call.get('distinct') else ''}{arguments}){condition}"


def _quoted(name: str) -> str:
    """Return the name of a column so that it is no expression of others."""
    return name if _WORD.fullmatch(name) is not None else f"`{name}`"


def _digest(*parts: Any) -> str:
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def condition_text(condition: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return a condition on columns as text, as JSON if it has a part of an unknown kind."""
    text = _text(condition, columns)
    if text is None:  # the JSON has the positions of columns
        return f"{json.dumps(condition, sort_keys=True)} of ({', '.join(columns)})"
    return text


def _text(expression: Mapping[str, Any], columns: Sequence[str], *, inner: bool = False) -> str | None:
    """Return the text of an expression, ``None`` if it has a part of an unknown kind. ``inner``: it is an operand of an operator."""
    match expression["kind"]:
        case "INPUT_REF":
            column = columns[index(expression["inputIndex"])]
            return f"({column})" if inner and _WORD.fullmatch(column) is None else column
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
    operands = call.get("operands", ())  # PROCTIME() has none
    is_operator = _OPERATOR.fullmatch(shown) is not None and len(operands) == 2
    texts = [_text(operand, columns, inner=is_operator) for operand in operands]
    known = [text for text in texts if text is not None]
    if not name or len(known) < len(texts):
        return None
    if is_operator:
        return f"({known[0]} {shown} {known[1]})" if inner else f"{known[0]} {shown} {known[1]}"
    cast = f" AS {call['type']}" if builtin is None or _OF_ITS_TYPE.search(shown) is not None else ""
    return f"{shown}({', '.join(known)}{cast})"
