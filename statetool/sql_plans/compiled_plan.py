"""Names of columns from a compiled plan (``COMPILE PLAN``), for states of SQL operators.

Snapshots hold the types of rows and no names; the plan's JSON has the names of what flows between its nodes. A node of the plan is one or
several operators of the job, whose uids begin with the node's id: ``4_group-aggregate``, in Flink 1.15 ``4_stream-exec-group-aggregate_1_group-aggregate``.
Which rows each kind of operator keeps is fixed in Flink (``org.apache.flink.table.runtime.operators``); only states for which that is
sure get names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from statetool.errors import FormatError, OptionError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import StateMeta
from statetool.serializers.naming import rows_of
from statetool.serializers.rowdata import RowDataSerializer
from statetool.sql_plans.accumulators import accumulator_names
from statetool.sql_plans.row_types import row_names

_UID: Final = re.compile(r"(\d+)_")
#: What an operator of a node may be called: its transformation, the last part of its uid.
_TRANSFORMATIONS: Final = (
    "async-calc", "async-correlate", "calc", "changelog-normalize", "constraint-validator", "correlate", "deduplicate",
    "delta-join", "drop-update-before", "expand", "filter-left", "filter-right", "global-group-aggregate",
    "global-window-aggregate", "group-aggregate", "group-table-aggregate", "group-window-aggregate",
    "incremental-group-aggregate", "interval-join", "join", "local-group-aggregate", "local-window-aggregate", "lookup-join",
    "lookup-join-key-ordered", "lookup-join-materialize", "match", "mini-batch-assigner", "ml-predict-table-function", "multi-join",
    "over-aggregate", "pad-left", "pad-right", "partitioner", "process", "python-async-calc", "python-calc", "python-correlate",
    "python-group-aggregate", "python-group-window-aggregate", "python-over-aggregate", "rank", "sink", "sort", "source",
    "temporal-join", "temporal-sort", "timestamp-inserter", "upsert-materialize", "values", "vector-search-table-function",
    "watermark-assigner", "watermark-timestamp-assigner", "window", "window-aggregate", "window-deduplicate", "window-join",
    "window-rank",
)  # fmt: skip
#: What rows states hold, in the order of the state's serializers, in words that :meth:`_Node._fields` knows. Where a state has fewer rows,
#: the last ones are meant.
_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "IntervalJoinLeftCache": ("input 0",),
    "IntervalJoinRightCache": ("input 1",),
    "Top1-Rank-State": ("input 0",),
    "_async_wait_operator_state_": ("input 0",),
    "_keyed_async_wait_operator_state_": ("input 0", "input 0"),
    "accState": ("accumulator",),
    "accMapState": ("sort key", "accumulator"),
    "data-state": ("sort key", "input 0"),
    "data-state-with-append": ("sort key", "input 0"),
    "data-state-with-update": ("rank key", "input 0"),
    "dataState": ("input 0",),
    "deduplicate-state": ("input 0",),
    "eventQueuesStateName": ("input 0",),
    "inputState": ("input 0",),
    "left": ("input 0",),
    "left-records": ("unique key 0", "input 0"),
    "localBufferState": ("input 0",),
    "previous-aggs": ("accumulator",),
    "right": ("input 1",),
    "right-records": ("unique key 1", "input 1"),
    "sharedBuffer-events": ("input 0",),
    "sortState": ("input 0",),
    "sortedListState": ("sort key",),
    "sorted-map": ("sort key",),
    "valueMapState": ("input 0",),
    "waiting-to-emit-on-timer": ("input 0",),
    "window-aggs": ("accumulator",),
    "window_deduplicate": ("input 0",),
    "window_rank": ("sort key", "input 0"),
}
#: The same for sinks that put rows of one key in order; other operators have states of these names with other rows.
_ROWS_OF_SINKS: Final[Mapping[str, tuple[str, ...]]] = {
    "current-value": ("input 0",),
    "list": ("input 0",),
    "rowToSqnState": ("upsert key",),
    "sqnToNodeState": ("input 0",),
    "values": ("input 0",),
    "watermark-buffer": ("input 0",),
}
_SINK: Final = "dynamicTableSink"
_MULTI_JOIN: Final = "multi-join-input-"


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

    def uids(self) -> Iterator[tuple[str, int]]:
        """Yield the uids that the plan's operators can have, each with its node: by Flink's default formats."""
        for node, spec in self.nodes.items():
            if "uid" in spec:  # of a process table function
                yield str(spec["uid"]), node
            for name in _TRANSFORMATIONS:
                yield f"{node}_{name}", node
                yield f"{node}_{spec.get('type')}_{name}", node

    def node_of(self, operator_id: str, uid: str = "") -> int:
        """Return the node of an operator.

        Parameters
        ----------
        operator_id
            32 hex digits, which are the hash of the uid: all that snapshots before Flink 2.0 have.
        uid
            The uid, if it is known.

        Raises
        ------
        OptionError
            Neither the id nor the uid is one that this plan gives.
        """
        found = _UID.match(uid)
        if found is not None and int(found[1]) in self.nodes:
            return int(found[1])
        for candidate, node in self.uids():
            if operator_id_for_uid(candidate) == operator_id:
                return node
        raise OptionError(
            f"no node of the plan belongs to the operator {uid or operator_id!r}",
            hint="name it with node=..., one of "
            + ", ".join(f"{i} ({n.get('type')})" for i, n in self.nodes.items())
            + "; ids of nodes go on with each plan that a session compiles",
        )

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
            inputs = [row_names(self.nodes[i]["outputType"]) for i in self.inputs.get(node, [])]
            return _Node(self.nodes[node], inputs).columns(states)
        except (KeyError, IndexError, TypeError, AttributeError) as e:
            raise FormatError(f"node {node} of the plan ({self.nodes[node].get('type')}) lacks {e}") from e


class _Node:
    """A node of the plan, with the names of its inputs' fields."""

    def __init__(self, spec: Mapping[str, Any], inputs: Sequence[list[str]]) -> None:
        self.spec = spec
        self.inputs = inputs

    def columns(self, states: Iterable[StateMeta]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        key = self._key()
        if key is not None and _tellable(key):
            found["key"] = key
        for meta in states:
            if meta.kind != "timers":
                found.update(self._of_state(meta))
        return found

    def _of_state(self, meta: StateMeta) -> Iterator[tuple[str, list[str]]]:
        rows = [(path, row) for path, row in rows_of(meta.value) if isinstance(row, RowDataSerializer)]
        wanted = self._rows(meta.name, len(rows))
        if len(rows) > len(wanted):
            return
        for (path, row), what in zip(rows, wanted[len(wanted) - len(rows) :], strict=True):
            fields = self._accumulator(row) if what == "accumulator" else self._fields(what)
            # Which of several keys an operator takes is not in the plan in so many words.
            sure = "key" not in what or fields is None or len(fields) == len(row.names)
            if fields is not None and sure and _tellable(fields):
                yield meta.name if len(rows) == 1 else ".".join((meta.name, *path)), fields

    def _rows(self, state: str, rows: int) -> tuple[str, ...]:
        """Return what the rows of a state are, in words that :meth:`_fields` knows."""
        if state.startswith(_MULTI_JOIN):
            number = state.removeprefix(_MULTI_JOIN)
            return (f"unique key {number}", f"input {number}") if rows > 1 else ("record",)
        if _SINK in self.spec:
            return _ROWS_OF_SINKS.get(state, ())
        return _ROWS.get(state, ())

    def _fields(self, what: str) -> list[str] | None:
        """Return the fields that one of the words in :data:`_ROWS` stands for, ``None`` where the plan does not tell."""
        word, _, number = what.rpartition(" ")
        match word:
            case "input":
                return self.inputs[int(number)]
            case "sort":
                over = self.spec.get("overSpec")
                order = over["groups"][0]["orderBy"] if over else self.spec.get("orderBy") or self.spec.get("sortSpec")
                return self._of_input([f["index"] for f in order["fields"]]) if order else None
            case "unique key":
                keys = self._unique_keys(int(number))
                return [self.inputs[int(number)][i] for i in min(keys, key=len)] if keys else None
            case "rank":
                return self._of_input(self.spec["rankStrategy"]["primaryKeys"])
            case "upsert":
                upsert_key = self.spec.get("inputUpsertKey")
                return self._of_input(upsert_key) if upsert_key else self.inputs[0]
        return ["join_key", "record"] if what == "record" else None

    def _unique_keys(self, number: int) -> list[list[int]]:
        if "inputUniqueKeys" in self.spec:
            return list(self.spec["inputUniqueKeys"][number])
        side = ("left", "right")[number]
        # Flink 1.15 calls them unique keys.
        return list(self.spec.get(f"{side}UpsertKeys") or self.spec.get(f"{side}UniqueKeys") or ())

    def _of_input(self, fields: Iterable[int]) -> list[str]:
        return [self.inputs[0][i] for i in fields]

    def _key(self) -> list[str] | None:
        """Return the fields that the operator is keyed by, ``None`` where the plan does not say."""
        spec = self.spec
        for name in ("grouping", "partialAggGrouping", "uniqueKeys", "partitionKeys"):
            if name in spec:
                return self._of_input(spec[name])
        for name in ("partition", "partitionSpec"):
            if name in spec:
                return self._of_input(spec[name]["fields"])
        if "overSpec" in spec:
            return self._of_input(spec["overSpec"]["partition"]["fields"])
        if "matchSpec" in spec:
            return self._of_input(spec["matchSpec"]["partition"]["fields"])
        if "intervalJoinSpec" in spec:
            return self._of_input(spec["intervalJoinSpec"]["joinSpec"]["leftKeys"])
        if "joinSpec" in spec:
            return self._of_input(spec["joinSpec"]["leftKeys"])
        if "joinAttributeMap" in spec:
            return self._of_input(spec["inputProperties"][0]["requiredDistribution"]["keys"])
        if "functionCall" in spec:
            tables = [o for o in spec["functionCall"].get("operands", ()) if o.get("kind") == "TABLE_ARG_CALL"]
            return [self.inputs[tables[0]["inputIndex"]][i] for i in tables[0]["partitionKeys"]] if tables else None
        if "temporalTable" in spec:
            return self._of_input(spec["inputUpsertKey"]) if spec.get("inputUpsertKey") else None
        if _SINK in spec:
            schema = spec[_SINK]["table"]["resolvedTable"]["schema"]
            key = schema.get("primaryKey")
            return list(key["columns"]) if key else None
        return None

    def _accumulator(self, row: RowDataSerializer) -> list[str] | None:
        spec = self.spec
        if "overSpec" in spec:
            (group,) = spec["overSpec"]["groups"]
            # Rows leave a window that has a beginning.
            bounded = group["lowerBound"]["kind"] != "UNBOUNDED_PRECEDING"
            return accumulator_names(group["aggCalls"], [bounded] * len(group["aggCalls"]), self.inputs[0], row)
        if "aggCalls" not in spec:
            return None
        local = spec.get("localAggInputRowType")
        inputs = self.inputs[0] if local is None else row_names(local)
        retracts = spec.get("aggCallNeedRetractions") or [bool(spec.get("needRetraction"))] * len(spec["aggCalls"])
        return accumulator_names(spec["aggCalls"], retracts, inputs, row)


def _tellable(names: Sequence[str]) -> bool:
    """Tell whether Spark can tell the names apart: SQL allows such that differ in case only."""
    return len({n.lower() for n in names}) == len(names)
