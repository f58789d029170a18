"""Outlines of plan nodes without their ids, so that nodes of two plans can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from statetool.sql_plans.expressions import ColumnTexts
from statetool.sql_plans.row_types import row_roots

if TYPE_CHECKING:
    from statetool.sql_plans.compiled_plan import CompiledPlan

#: The version of a node's type, which releases raise: ``stream-exec-sink_2``.
_VERSION: Final = re.compile(r"_\d+$")
_TABLES: Final = ("scanTableSource", "dynamicTableSink")
#: Members that do not tell what a node computes from its input: its place, texts for reading, settings, and what other members tell.
_NOT_COMPARED: Final = frozenset({
    "id", "type", "uid", "description", "configuration", "state", "inputProperties", "outputType", "inputUpsertKey", "inputChangelogMode",
    *_TABLES,
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutline:
    """A node of a plan, without ids.

    Attributes
    ----------
    kind
        The type without its version: ``group-aggregate``.
    tables
        The table of a source or sink. For other nodes, all tables from which their rows come.
    inputs
        The columns of each input with their type roots. Computed columns have the text of their expression.
    members
        The parts of the node that say what it computes, as JSON by name.
    query
        The node and all nodes before it as text.
    """

    kind: str
    tables: tuple[str, ...]
    inputs: tuple[str, ...]
    members: Mapping[str, str]
    query: str

    def differences(self, other: NodeOutline) -> Iterator[str]:
        """Yield the differences that make another node compute something else.

        Members that only one of the plans has do not count: releases add members.
        """
        if self.kind != other.kind:
            yield f"plan node {self.kind}, {other.kind}"
            return
        for what, before, after in (("table", self.tables, other.tables), ("input", self.inputs, other.inputs)):
            if before != after:
                yield f"{what} of the plan node {', '.join(before) or 'none'} -> {', '.join(after) or 'none'}"
        for name in self.members:
            if name in other.members and self.members[name] != other.members[name]:
                yield f"{name} of the plan node"


def outline_of(plan: CompiledPlan, node: int) -> NodeOutline:
    """Return the outline of a node.

    Raises
    ------
    FormatError
        The plan lacks a member that such a node has.
    """
    with plan.locating(node):
        spec = plan.nodes[node]
        return NodeOutline(
            kind=kind_of(spec),
            tables=tuple(sorted(set(_own_tables(spec) or _tables_before(plan, node)))),
            inputs=tuple(_columns(plan, source) for source in plan.inputs.get(node, ())),
            members={
                n: json.dumps(_without_aliases(n, part), sort_keys=True)
                for n, part in sorted(spec.items())
                if n not in _NOT_COMPARED
            },
            query=plan.query(node),
        )


def kind_of(spec: Mapping[str, Any]) -> str:
    """Return the type of a node without its version."""
    return _VERSION.sub("", str(spec.get("type")).removeprefix("stream-exec-"))


def _without_aliases(name: str, part: Any) -> Any:
    """Return a member without the names of results of aggregates, which do not change them."""
    return [{n: p for n, p in call.items() if n != "name"} for call in part] if name == "aggCalls" else part


def _own_tables(spec: Mapping[str, Any]) -> list[str]:
    return [str(spec[name]["table"]["identifier"]) for name in _TABLES if name in spec]


def _tables_before(plan: CompiledPlan, node: int) -> Iterator[str]:
    waiting, seen = [node], set[int]()
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            yield from _own_tables(plan.nodes[at])
            waiting += plan.inputs.get(at, [])


def _columns(plan: CompiledPlan, node: int) -> str:
    names = ColumnTexts(plan.nodes, plan.inputs).of(node)
    roots = row_roots(plan.nodes[node]["outputType"])
    return ", ".join(f"{name} {root or ''}".strip() for name, root in zip(names, roots, strict=True))
