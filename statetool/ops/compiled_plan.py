"""Names of columns from a compiled plan (``COMPILE PLAN``), for states of SQL operators.

Snapshots hold the types of rows and no names; the plan's JSON has the names of what flows between its nodes. A node of the plan is an
operator of the job, whose uid begins with the node's id (``4_group-aggregate``). Which rows each kind of operator keeps is fixed in
Flink (``org.apache.flink.table.runtime.operators``); only states for which that is sure get names. Accumulators have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from statetool.errors import FormatError, OptionError
from statetool.formats.state_meta import StateMeta
from statetool.serializers.naming import rows_of

_UID: Final = re.compile(r"(\d+)_")
#: States that hold rows of an input, by the number of the input.
_OF_INPUT: Final[Mapping[str, int]] = {
    "deduplicate-state": 0,
    "Top1-Rank-State": 0,
    "data-state-with-append": 0,
    "data-state-with-update": 0,
    "data-state": 0,
    "inputState": 0,
    "valueMapState": 0,
    "left-records": 0,
    "right-records": 1,
    "IntervalJoinLeftCache": 0,
    "IntervalJoinRightCache": 1,
}
#: States whose keys are sort keys.
_BY_SORT_KEY: Final = frozenset({"data-state-with-append", "data-state", "sorted-map"})


class CompiledPlan:
    """A compiled plan.

    Parameters
    ----------
    text
        Its JSON.

    Raises
    ------
    FormatError
        Not a compiled plan.
    """

    def __init__(self, text: str | bytes) -> None:
        try:
            plan = json.loads(text)
            self.nodes: dict[int, dict[str, Any]] = {n["id"]: n for n in plan["nodes"]}
            self.inputs: dict[int, list[int]] = {}
            for edge in plan["edges"]:
                self.inputs.setdefault(edge["target"], []).append(edge["source"])
        except (ValueError, KeyError, TypeError) as e:
            raise FormatError(f"not the JSON of a compiled plan: {e!r}") from e

    def node_of(self, uid: str) -> int:
        """Return the node of an operator.

        Raises
        ------
        OptionError
            The uid does not begin with the id of a node.
        """
        found = _UID.match(uid)
        if found is None or int(found[1]) not in self.nodes:
            raise OptionError(
                f"no node of the plan belongs to the operator {uid!r}",
                hint="name it with node=..., one of " + ", ".join(f"{i} ({n['type']})" for i, n in self.nodes.items()),
            )
        return int(found[1])

    def columns(self, node: int, states: Iterable[StateMeta]) -> dict[str, list[str]]:
        """Return names for the rows of an operator, as ``columns=`` takes them.

        Raises
        ------
        OptionError
            There is no such node.
        FormatError
            The plan lacks what such a node has.
        """
        if node not in self.nodes:
            raise OptionError(f"the plan has no node {node}")
        try:
            return self._columns(self.nodes[node], [self._names(i) for i in self.inputs.get(node, [])], states)
        except (KeyError, IndexError, TypeError) as e:
            raise FormatError(f"node {node} of the plan ({self.nodes[node].get('type')}) lacks {e}") from e

    def _columns(
        self, node: Mapping[str, Any], inputs: Sequence[list[str]], states: Iterable[StateMeta]
    ) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        key = _key_fields(node)
        if key is not None:
            found["key"] = [inputs[0][i] for i in key]
        for meta in states:
            if meta.kind == "timers":
                continue
            if meta.name in _BY_SORT_KEY and "orderBy" in node:
                path = meta.name if meta.name == "sorted-map" else f"{meta.name}.key"
                found[path] = [inputs[0][f["index"]] for f in node["orderBy"]["fields"]]
            if meta.name in _OF_INPUT:
                # Where there are two rows, the other one is a key of fields that the plan does not tell.
                rows = list(rows_of(meta.value))
                path = meta.name if len(rows) == 1 else f"{meta.name}.value"
                if rows:
                    found[path] = inputs[_OF_INPUT[meta.name]]
        return found

    def _names(self, node: int) -> list[str]:
        return row_names(self.nodes[node]["outputType"])


def _key_fields(node: Mapping[str, Any]) -> list[int] | None:
    """Return the fields of the first input that an operator is keyed by, ``None`` where the plan does not say."""
    if "grouping" in node:
        return list(node["grouping"])
    if "uniqueKeys" in node:
        return list(node["uniqueKeys"])
    if "partition" in node:
        return list(node["partition"]["fields"])
    if "overSpec" in node:
        return list(node["overSpec"]["partition"]["fields"])
    if "intervalJoinSpec" in node:
        return list(node["intervalJoinSpec"]["joinSpec"]["leftKeys"])
    if "joinSpec" in node:
        return list(node["joinSpec"]["leftKeys"])
    return None


def row_names(row_type: Any) -> list[str]:
    """Return the names of the fields of a row type, in either form that plans have: SQL text or an object.

    Raises
    ------
    TypeError
        Neither.
    """
    if isinstance(row_type, dict):
        return [f["name"] for f in row_type["fields"]]
    if not isinstance(row_type, str) or not row_type.startswith("ROW<"):
        raise TypeError(f"{row_type!r} instead of a row type")
    names, depth, at = [], 0, 4
    fresh = True
    while at < len(row_type):
        letter = row_type[at]
        if letter == "`":
            name, at = _quoted(row_type, at)
            if depth == 0 and fresh:
                names.append(name)
            fresh = False
            continue
        if letter == "'":
            at = _behind_text(row_type, at)
            continue
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth -= 1
        elif letter == "," and depth == 0:
            fresh = True
        at += 1
    return names


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Return the name in backquotes at ``at`` (a backquote in it is doubled), and the place behind it."""
    name = ""
    at += 1
    while at < len(text):
        if text[at] == "`":
            if text[at + 1 : at + 2] != "`":
                return name, at + 1
            at += 1
        name += text[at]
        at += 1
    raise TypeError("a name without its end")


def _behind_text(text: str, at: int) -> int:
    """Return the place behind a quoted comment or class name."""
    at += 1
    while at < len(text):
        if text[at] == "'":
            if text[at + 1 : at + 2] != "'":
                return at + 1
            at += 1
        at += 1
    raise TypeError("a text without its end")
