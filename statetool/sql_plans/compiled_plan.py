"""Column names from a compiled plan (``COMPILE PLAN``), for states of SQL operators.

Snapshots store the types of rows but no names. The plan's JSON has the names of the columns between its nodes. A node of the plan becomes
one or several operators of the job, whose uids begin with the node's id: ``4_group-aggregate``, or in Flink 1.15
``4_stream-exec-group-aggregate_1_group-aggregate``. The rows that each kind of operator stores are fixed in Flink
(``org.apache.flink.table.runtime.operators``); only states with unambiguous rows get names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final

from statetool.errors import FormatError, OptionError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.files import InputFile
from statetool.serializers.core.base import Serializer
from statetool.serializers.naming import rows_of
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.sql_plans.accumulators import accumulator_names, unique_names, view_aggregates
from statetool.sql_plans.expressions import ColumnTexts, condition_text, is_identified
from statetool.sql_plans.joins import PlanJoin, join_of
from statetool.sql_plans.ranks import PlanRank, PlanSingle, kept_row, rank_of, single_of
from statetool.sql_plans.row_types import row_names, row_roots

_UID: Final = re.compile(r"(\d+)_(.+)")
#: Names of SQL operators, as in the web interface: ``GroupAggregate[4]``, ``Source: orders[1]``, ``out[5]: Writer``.
_NAME: Final = re.compile(r"(?:Source: )?(.*)\[(\d+)\](?:: \w+)?")
_TYPE: Final = re.compile(r"stream-exec-(.+?)(?:_\d+)?")
#: Names of transformations, the last part of an operator's uid.
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
#: Transformations with state that only nodes of the same name have.
WITH_STATE: Final = frozenset({
    "changelog-normalize", "deduplicate", "delta-join", "global-group-aggregate", "global-window-aggregate", "group-aggregate",
    "group-table-aggregate", "group-window-aggregate", "incremental-group-aggregate", "interval-join", "join", "match", "multi-join",
    "over-aggregate", "rank", "sink", "temporal-join", "window-aggregate", "window-deduplicate", "window-join", "window-rank",
})  # fmt: skip
#: Types that the planner may exchange: snapshot and plan still fit.
_FAMILIES: Final[Mapping[str, str]] = {"CHAR": "VARCHAR", "BINARY": "VARBINARY", "TIMESTAMP_LTZ": "TIMESTAMP"}
#: Kinds of the rows in states, in the order of the state's serializers, for :meth:`_Node._fields`; for a state with fewer rows, the last
#: ones apply.
_ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "IntervalJoinLeftCache": ("input 0",),
    "IntervalJoinRightCache": ("input 1",),
    "Top1-Rank-State": ("input 0",),
    "_async_wait_operator_state_": ("input 0",),
    "_delta_join_operator_async_wait_state_": ("input 0", "input 1", "input 0"),
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
#: The same for sinks that order the rows of a key; other operators have states with the same names but other rows.
_ROWS_OF_SINKS: Final[Mapping[str, tuple[str, ...]]] = {
    "current-value": ("input 0",),
    "list": ("input 0",),
    "rowToSqnState": ("upsert key",),
    "sqnToNodeState": ("input 0",),
    "values": ("input 0",),
    "watermark-buffer": ("input 0",),
}
_SINK: Final = "dynamicTableSink"
#: The name of window specifications in :meth:`CompiledPlan.settings`.
WINDOW: Final = "the window"
#: The name of the tables and conditions of all nodes before a node in :meth:`CompiledPlan.settings`.
ROWS_BEFORE: Final = "the source of its rows"
#: Abilities of sources that leave out rows.
_CHOOSES_ROWS: Final = frozenset({"FilterPushDown", "LimitPushDown", "PartitionPushDown"})
#: Nodes without state that write another number of rows than they read. All of their members count, except for :data:`_SETTINGS`.
_MULTIPLIES: Final = frozenset({
    "async-correlate", "correlate", "expand", "limit", "lookup-join", "ml-predict-table-function", "process-table-function",
    "python-correlate", "sort-limit", "union", "values", "vector-search-table-function", "window-table-function",
})  # fmt: skip
#: Those of them whose members name no columns, or whose columns are compared elsewhere.
_READS_NO_COLUMNS: Final = frozenset({"limit", "union", "values"})
#: Names that Flink gives to tables without one. They differ in each run.
_UNNAMED_TABLE: Final = re.compile(r"\*anonymous|Unregistered_", re.IGNORECASE)
#: Longest text of the rows of an input, in characters; of longer ones, the hash is shown.
_MAX_ROWS_TEXT: Final = 2000
_MULTI_JOIN: Final = "multi-join-input-"
#: Nodes of which all members are compared, and the members that are not, or that have names in :meth:`CompiledPlan.settings`.
_COMPARED: Final = frozenset({
    "changelog-normalize", "delta-join", "interval-join", "match", "multi-join", "over-aggregate", "temporal-join", "window-deduplicate",
    "window-join", "window-rank",
})  # fmt: skip
_SETTINGS: Final = frozenset({
    "configuration", "description", "id", "inputChangelogMode", "inputProperties", "inputUpsertKey", "outputType", "state", "type", "uid",
})  # fmt: skip
_NOT_COMPARED: Final = _SETTINGS | {
    "intervalJoinSpec", "leftWindowing", "orderBy", "overSpec", "rankRange", "rightWindowing", "windowing",
}  # fmt: skip


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
        #: Names of the operators of the snapshot that the plan is for, as far as they are known.
        self.operator_names: tuple[str, ...] = ()
        try:
            plan = json.loads(text)
            self.nodes: dict[int, dict[str, Any]] = {n["id"]: n for n in plan["nodes"]}
            self.inputs: dict[int, list[int]] = {}
            for edge in plan["edges"]:
                self.inputs.setdefault(edge["target"], []).append(edge["source"])
        except (ValueError, KeyError, TypeError) as e:
            raise FormatError(f"not a valid compiled plan: {e!r}") from e

    @classmethod
    def read(cls, file: str) -> CompiledPlan:
        """Read a plan from a local path or a URI.

        Raises
        ------
        FormatError, SnapshotNotFoundError
        """
        with InputFile(file) as f:
            text = bytes(f.read_at(0, f.size))
        try:
            return cls(text)
        except FormatError as error:
            raise error.at(file=file) from None

    def uids(self) -> Iterator[tuple[str, int]]:
        """Yield the uids that the plan's operators can have in Flink's default formats, each with its node."""
        for node, spec in self.nodes.items():
            if "uid" in spec:  # set for a process table function
                yield str(spec["uid"]), node
            for name in _TRANSFORMATIONS:
                yield f"{node}_{name}", node
                yield f"{node}_{spec.get('type')}_{name}", node

    def uid_of(self, operator_id: str) -> str:
        """Return the uid of an operator in Flink's default formats, empty if it has another."""
        return next((uid for uid, _ in self.uids() if operator_id_for_uid(uid) == operator_id), "")

    def node_of(self, operator_id: str, uid: str = "", name: str = "") -> int:
        """Return the node of an operator.

        Parameters
        ----------
        operator_id
            32 hex digits, the hash of the uid. Snapshots before Flink 2.0 store nothing else.
        uid, name
            The uid, and the name with the node's id (``GroupAggregate[4]``), if known.

        Raises
        ------
        OptionError
            No node of the plan has the operator, or the node with its id is of another type.
        """
        node = self.find_node(operator_id, uid, name)
        if node is None:
            raise OptionError(
                f"the plan has no node for operator {name or uid or operator_id!r}",
                hint=f"compile the plan of this job, or pass node= in Python: {self._listed()}",
            )
        return node

    def find_node(self, operator_id: str, uid: str = "", name: str = "") -> int | None:
        """Return the node of an operator, ``None`` if the plan has none. Parameters as for :meth:`node_of`.

        Raises
        ------
        OptionError
            The node with the operator's id is of another type, or names of operators tell that the plan is that of another job.
        """
        node = self._find_node(operator_id, uid, name)
        if node is not None:
            self.check_names(self.operator_names)
        return node

    def _find_node(self, operator_id: str, uid: str, name: str) -> int | None:
        by_uid = _UID.fullmatch(uid)
        if by_uid is not None and int(by_uid[1]) in self.nodes:
            return self._of_type(int(by_uid[1]), by_uid[2].rpartition("_")[2], uid)
        for candidate, node in self.uids():
            if operator_id_for_uid(candidate) == operator_id:
                return self._of_type(node, candidate.rpartition("_")[2], candidate)
        by_name = _NAME.fullmatch(name)
        if by_name is not None and int(by_name[2]) in self.nodes:
            node = int(by_name[2])
            if self._is_called(node, by_name[1]):
                return node
        return None

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse a plan whose nodes read other tables than the operators with their ids, or are of other types.

        Parameters
        ----------
        names
            Names of operators, as far as the snapshot stores them.

        Raises
        ------
        OptionError
            The plan is that of another job.
        """
        for name in names:
            found = _NAME.fullmatch(name)
            spec = None if found is None else self.nodes.get(int(found[2]))
            if found is None or spec is None:
                continue
            kind = self.kind(int(found[2]))
            known, shown = {k.replace("-", ""): k for k in WITH_STATE}, found[1].lower()
            if kind == "table-source-scan" and name.startswith("Source: "):
                table = (
                    str((spec["scanTableSource"].get("table") or {}).get("identifier", ""))
                    .rpartition(".")[2]
                    .strip("`")
                )
                other = f"reads {table}" if table and found[1] != table and not _UNNAMED_TABLE.search(table) else ""
            else:
                other = f"is {kind!r}" if kind in WITH_STATE and shown in known and known[shown] != kind else ""
            if other:
                raise OptionError(
                    f"the plan does not fit: the snapshot has the operator {name!r}, and node {found[2]} of the plan {other}",
                    hint="compile the plan of this job",
                )

    def _listed(self) -> str:
        return ", ".join(f"{i} ({n.get('type')})" for i, n in self.nodes.items())

    def _of_type(self, node: int, transformation: str, uid: str) -> int:
        """Return the node, after a check that nodes of its type have such an operator."""
        own = _TYPE.fullmatch(str(self.nodes[node].get("type")))
        if own is not None and own[1] != transformation and {own[1], transformation} <= WITH_STATE:
            raise OptionError(
                f"the plan does not fit: node {node} is {own[1]!r}, and the operator is {uid!r}",
                hint="compile the plan of this job",
            )
        return node

    def _is_called(self, node: int, name: str) -> bool:
        """Return True if an operator's name is that of the node's type. Sources and sinks are called after their tables."""
        spec = self.nodes[node]
        own = _TYPE.fullmatch(str(spec.get("type")))
        return own is None or _SINK in spec or "scanTableSource" in spec or own[1].replace("-", "") == name.lower()

    def columns(
        self,
        node: int,
        states: Iterable[StateMetaInfo],
        key: Serializer | None = None,
        *,
        expressions: bool = False,
    ) -> dict[str, list[str]]:
        """Return names for the rows of an operator, in the form of ``columns=``.

        Parameters
        ----------
        key
            The serializer of the operator's keys.
        expressions
            Name computed columns by their expressions, which two plans can compare, and not by the planner's ``$f1``.

        Raises
        ------
        OptionError
            There is no such node, or its rows do not fit those of the states or keys.
        FormatError
            The plan lacks a member that such a node has.
        """
        if node not in self.nodes:
            raise OptionError(f"the plan has no node {node}", hint=f"nodes: {self._listed()}")
        with self.locating(node):
            return self._node(node, expressions=expressions).columns(states, key)

    def views(self, node: int) -> dict[str, str]:
        """Return the aggregates of a node, named by expressions, by the prefixes of the states in which they keep values (``agg0$``).

        Raises
        ------
        FormatError
            The plan lacks a member that such a node has.
        """
        with self.locating(node):
            return self._node(node, expressions=True).views()

    def kind(self, node: int) -> str:
        """Return the type of a node without its version: ``group-aggregate``."""
        own = _TYPE.fullmatch(str(self.nodes[node].get("type")))
        return "" if own is None else own[1]

    def settings(self, node: int) -> dict[str, str]:
        """Return what decides which rows a node keeps: its order, its windows and their bounds, by readable names.

        Raises
        ------
        FormatError
            The plan lacks a member that such a node has.
        """
        with self.locating(node):
            own = self._node(node, expressions=True).settings()
            return {
                **{name: self._identified(node, value) for name, value in own},
                ROWS_BEFORE: self._rows_before(node),
            }

    def join(self, node: int) -> PlanJoin | None:
        """Return the sides of a join, ``None`` for other nodes; errors as for :meth:`settings`."""
        with self.locating(node):
            if self.kind(node) != "join":
                return None
            own = self._node(node, expressions=True)
            return join_of(own.spec, own.inputs, self._rows_of_sides(node))

    def rank(self, node: int) -> PlanRank | None:
        """Return what a Top-N keeps, ``None`` for other nodes; errors as for :meth:`settings`."""
        with self.locating(node):
            if self.kind(node) != "rank":
                return None
            own = self._node(node, expressions=True)
            is_time = "PROCTIME" in _as_text(self.nodes[self.inputs[node][0]]["outputType"])
            return rank_of(own.spec, own.inputs, self._rows_before(node), is_time=is_time)

    def single(self, node: int) -> PlanSingle | None:
        """Return what a deduplication keeps, ``None`` for other nodes; errors as for :meth:`settings`."""
        with self.locating(node):
            if self.kind(node) != "deduplicate":
                return None
            own = self._node(node, expressions=True)
            return single_of(own.spec, own.inputs, self._rows_before(node))

    def _rows_of_sides(self, node: int) -> list[str]:
        """Return what decides which rows each input of a node has. Tables without a name are different ones on each side."""
        texts, known = ColumnTexts(self.nodes, self.inputs), dict[int, list[str]]()
        rows = [" and ".join(self._rows_parts(at, texts, known)) or "none" for at in self.inputs[node]]
        named = [self._are_named(at) for at in self.inputs[node]]
        return [row if named[n] else f"{row} of input {n}" for n, row in enumerate(rows)]

    def _are_named(self, node: int) -> bool:
        """Return True if all tables from which a node gets its rows have a name."""
        waiting, seen = [node], set[int]()
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            waiting += self.inputs.get(at, [])
            table = (self.nodes[at].get("scanTableSource") or {}).get("table") or {}
            name = str(table.get("identifier", ""))
            if not self.inputs.get(at) and (not name or _UNNAMED_TABLE.search(name)):
                return False
        return True

    def _rows_before(self, node: int) -> str:
        """Return what decides which rows reach a node: tables, conditions, keys, kinds of joins and settings of all nodes before it."""
        return self._identified(node, self._rows_of_inputs(node, ColumnTexts(self.nodes, self.inputs), {}) or "none")

    def _identified(self, node: int, text: str) -> str:
        """Return a text with all nodes before a node, if it does not tell its columns: equal texts then have equal nodes."""
        if is_identified(text):
            return text
        specs = json.loads(self.query(node))[1:]
        own = [{n: p for n, p in spec.items() if n not in _SETTINGS or n == "id"} for spec in specs]
        return f"{text} of {_digest(own)}"

    def _rows_of_inputs(self, node: int, texts: ColumnTexts, known: dict[int, list[str]]) -> str:
        """Return the parts of all inputs of a node. Those of a join stay apart, in their order; those of a union have none, but their columns."""
        sources = self.inputs.get(node, ())
        inputs = [" and ".join(self._rows_parts(at, texts, known)) or "none" for at in sources]
        if len(inputs) < 2:
            return "".join(inputs)
        if self.kind(node) == "union":
            columns = (", ".join(texts.of(at)) for at in sources)
            inputs = sorted(f"{part} with {own}" for part, own in zip(inputs, columns, strict=True))
        return ", ".join(f"({part})" for part in inputs)

    def _rows_parts(self, at: int, texts: ColumnTexts, known: dict[int, list[str]]) -> list[str]:
        """Return what decides which rows leave a node, in no order but that of the text: planners move conditions."""
        if at in known:
            return known[at]
        known[at] = []  # for a plan with a cycle
        before = self.inputs.get(at, ())
        found = list(self._rows_parts(before[0], texts, known)) if len(before) == 1 else []
        if len(before) > 1:
            found.append(self._rows_of_inputs(at, texts, known))
        known[at] = sorted(map(_short_text, [*found, *self._own_rows(at, texts)]))
        return known[at]

    def _own_rows(self, at: int, texts: ColumnTexts) -> Iterator[str]:
        spec, kind = self.nodes[at], self.kind(at)
        source = spec.get("scanTableSource") or {}
        table = str((source.get("table") or {}).get("identifier", ""))
        if table and not _UNNAMED_TABLE.search(table):
            yield f"the table {table}"
        chosen = [_as_text(a) for a in source.get("abilities") or () if a.get("type") in _CHOOSES_ROWS]
        if chosen:  # they have the positions of columns
            schema = ((source.get("table") or {}).get("resolvedTable") or {}).get("schema") or {}
            yield f"{' and '.join(chosen)} of {', '.join(str(c.get('name')) for c in schema.get('columns') or ())}"
        if (condition := texts.condition(at)) is not None:
            yield condition
        if kind in _MULTIPLIES:
            parts = [f"{n} {_as_text(p)}" for n, p in spec.items() if n not in _SETTINGS]
            sources = self.inputs.get(at, [])
            if kind not in _READS_NO_COLUMNS:  # members have the positions of columns
                parts.append(f"reading {', '.join(text for source in sources for text in texts.of(source))}")
            yield " ".join([f"{kind} of {len(sources)}", *parts])
        if kind in WITH_STATE and not kind.startswith("local-"):
            own = self._node(at, expressions=True)
            settings = [f"{name} {value}" for name, value in own.settings()]
            if "joinSpec" in spec:
                settings += [f"on {own.join_condition()}", *own.right_keys()]
            yield " ".join([f"{kind} by ({', '.join(own.key_names() or ())})", *settings])

    @contextmanager
    def locating(self, node: int) -> Iterator[None]:
        """Name the node in the error for a member that the plan lacks.

        Raises
        ------
        FormatError
            The plan lacks a member that such a node has.
        """
        try:
            yield
        except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as e:
            raise FormatError(f"node {node} of the plan ({self.nodes[node].get('type')}) lacks {e}") from e

    def query(self, node: int) -> str:
        """Return a node and all nodes before it as JSON, without their ids."""
        order: list[int] = []
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at not in order:
                order.append(at)
                waiting += self.inputs.get(at, [])
        specs = [
            {**self.nodes.get(i, {}), "id": order.index(i), "inputs": [order.index(j) for j in self.inputs.get(i, [])]}
            for i in order
        ]
        return json.dumps(specs, sort_keys=True)

    def _node(self, node: int, *, expressions: bool) -> _Node:
        sources = self.inputs.get(node, [])
        types = [self.nodes[i]["outputType"] for i in sources]
        spec = self.nodes[node]
        local_type = spec.get("localAggInputRowType")
        local = None if local_type is None else row_names(local_type)
        if not expressions:
            return _Node(node, spec, types, [row_names(t) for t in types], local)
        texts = ColumnTexts(self.nodes, self.inputs)
        names = [texts.of(i) for i in sources]
        if local is not None:
            before = texts.of_local(node)
            local = before if before is not None and len(before) == len(local) else local
        return _Node(node, spec, types, names, local, is_compared=True)


class _Node:
    """A node of the plan, with the names and types of its inputs' fields."""

    def __init__(
        self,
        node: int,
        spec: Mapping[str, Any],
        input_types: Sequence[Any],
        inputs: Sequence[list[str]],
        local: Sequence[str] | None,
        *,
        is_compared: bool = False,
    ) -> None:
        #: Whether the names are compared with those of another plan, and need not be names of columns in Spark.
        self.is_compared = is_compared
        self.node = node
        self.spec = spec
        self.inputs = inputs
        #: Columns that the local aggregation before a global one reads.
        self.local = local
        self.roots = [row_roots(t) for t in input_types]

    def columns(self, states: Iterable[StateMetaInfo], key: Serializer | None) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        key_names = self.key_names()
        if key_names is not None and isinstance(key, RowDataSerializer) and len(key_names) != len(key.names):
            if _SINK not in self.spec:  # which may be keyed by other columns than the primary key
                raise self._unfit("key", key, key_names)
            key_names = None
        if key_names is not None and self.is_compared:
            names["key"] = unique_names(key_names)
        elif key_names is not None and _distinct_in_spark(key_names):
            names["key"] = key_names
        for meta in states:
            if meta.kind != "timers":
                names.update(self._state_columns(meta))
        return names

    def _state_columns(self, meta: StateMetaInfo) -> Iterator[tuple[str, list[str]]]:
        rows = [(path, row) for path, row in rows_of(meta.value) if isinstance(row, RowDataSerializer)]
        kinds = self._row_kinds(meta.name, len(rows))
        if len(rows) > len(kinds):
            return
        for (path, row), kind in zip(rows, kinds[len(kinds) - len(rows) :], strict=True):
            fields = self._accumulator(row) if kind == "accumulator" else self._fields(kind)
            word, _, number = kind.rpartition(" ")
            if word == "input" and not _fits(row, self.roots[int(number)]):
                raise self._unfit(meta.name, row, self.inputs[int(number)])
            # The plan does not say which of several keys an operator uses: only the number of fields confirms it.
            certain = "key" not in kind or fields is None or len(fields) == len(row.names)
            if fields is not None and self.is_compared:
                fields = unique_names(fields)
            if fields is not None and certain and _distinct_in_spark(fields):
                yield meta.name if len(rows) == 1 else ".".join((meta.name, *path)), fields

    def _unfit(self, what: str, row: RowDataSerializer, fields: Sequence[str]) -> OptionError:
        return OptionError(
            f"the plan does not fit: {what!r} has the fields ({', '.join(t.root for t in row.sql)}), and node {self.node}"
            f" ({self.spec.get('type')}) has {', '.join(fields)}",
            hint="compile the plan of this job",
        )

    def _row_kinds(self, state: str, rows: int) -> tuple[str, ...]:
        """Return the kinds of the rows in a state, for :meth:`_fields`."""
        if state.startswith(_MULTI_JOIN):
            number = state.removeprefix(_MULTI_JOIN)
            return (f"unique key {number}", f"input {number}") if rows > 1 else ("record",)
        if _SINK in self.spec:
            return _ROWS_OF_SINKS.get(state, ())
        return _ROWS.get(state, ())

    def _fields(self, kind: str) -> list[str] | None:
        """Return the fields of a kind of rows (:data:`_ROWS`), ``None`` if the plan does not say."""
        word, _, number = kind.rpartition(" ")
        match word:
            case "input":
                return self.inputs[int(number)]
            case "sort":
                over = self.spec.get("overSpec")
                order = over["groups"][0]["orderBy"] if over else self.spec.get("orderBy") or self.spec.get("sortSpec")
                return self._input_fields([f["index"] for f in order["fields"]]) if order else None
            case "unique key":
                keys = self._unique_keys(int(number))
                return [self.inputs[int(number)][i] for i in min(keys, key=len)] if keys else None
            case "rank":
                return self._input_fields(self.spec["rankStrategy"]["primaryKeys"])
            case "upsert":
                upsert_key = self.spec.get("inputUpsertKey")
                return self._input_fields(upsert_key) if upsert_key else self.inputs[0]
        return ["join_key", "record"] if kind == "record" else None

    def _unique_keys(self, number: int) -> list[list[int]]:
        if "inputUniqueKeys" in self.spec:
            return list(self.spec["inputUniqueKeys"][number])
        side = ("left", "right")[number]
        # Flink 1.15 calls them unique keys.
        return list(self.spec.get(f"{side}UpsertKeys") or self.spec.get(f"{side}UniqueKeys") or ())

    def _input_fields(self, fields: Iterable[int]) -> list[str]:
        return [self.inputs[0][i] for i in fields]

    def key_names(self) -> list[str] | None:
        """Return the fields that the operator is keyed by, ``None`` if the plan does not say."""
        spec = self.spec
        for name in ("grouping", "partialAggGrouping", "uniqueKeys", "partitionKeys"):
            if name in spec:
                return self._input_fields(spec[name])
        for name in ("partition", "partitionSpec"):
            if name in spec:
                return self._input_fields(spec[name]["fields"])
        for name in ("overSpec", "matchSpec"):
            if name in spec:
                return self._input_fields(spec[name]["partition"]["fields"])
        if "intervalJoinSpec" in spec:
            return self._input_fields(spec["intervalJoinSpec"]["joinSpec"]["leftKeys"])
        if "joinSpec" in spec:
            return self._input_fields(spec["joinSpec"]["leftKeys"])
        if "leftJoinKeys" in spec:
            return self._input_fields(spec["leftJoinKeys"])
        if "joinAttributeMap" in spec:
            return self._input_fields(spec["inputProperties"][0]["requiredDistribution"]["keys"])
        if "functionCall" in spec:
            tables = [o for o in spec["functionCall"].get("operands", ()) if o.get("kind") == "TABLE_ARG_CALL"]
            return [self.inputs[tables[0]["inputIndex"]][i] for i in tables[0]["partitionKeys"]] if tables else None
        if "temporalTable" in spec:
            return self._input_fields(spec["inputUpsertKey"]) if spec.get("inputUpsertKey") else None
        if _SINK in spec:
            schema = spec[_SINK]["table"]["resolvedTable"]["schema"]
            key = schema.get("primaryKey")
            return list(key["columns"]) if key else None
        return None

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield what decides which rows the node keeps."""
        spec = self.spec
        groups = spec["overSpec"]["groups"] if "overSpec" in spec else ()
        orders = [spec.get("orderBy"), spec.get("sortSpec"), *(group["orderBy"] for group in groups)]
        if fields := [field for order in orders if order for field in order["fields"]]:
            yield "the order", ", ".join(map(self._sorted_field, fields))
        windows = [spec[name]["window"] for name in ("windowing", "leftWindowing", "rightWindowing") if name in spec]
        windows += [spec["window"]] if "window" in spec else []
        if windows:
            # The legacy window names its time field too, which is no part of its size.
            shown = [{n: v for n, v in w.items() if n not in ("alias", "timeField")} for w in windows]
            yield WINDOW, _as_text(shown[0] if len(shown) == 1 else shown)
        if "rankRange" in spec:
            yield "the range of ranks", _as_text(spec["rankRange"])
        if "intervalJoinSpec" in spec:
            bounds = spec["intervalJoinSpec"]["windowBounds"]
            yield "the interval", _as_text({n: v for n, v in bounds.items() if n.endswith("Bound")})
        if (kind := spec.get("joinSpec", {}).get("joinType")) is not None:
            yield "the kind of the join", kind
            if kind != "INNER":  # rows of an outer side have the number of their partners
                yield "the condition of the join", self.join_condition()
                if not all(nulls := spec["joinSpec"].get("filterNulls") or ()):
                    yield (
                        "the keys in which nulls are equal",
                        ", ".join(
                            name for name, filters in zip(self.key_names() or (), nulls, strict=False) if not filters
                        ),
                    )
        if "keepLastRow" in spec:
            yield "the row that is kept", kept_row(spec)
        if groups and "isRows" in groups[0]:
            yield "the unit of the bounds", _as_text([group["isRows"] for group in groups])
        if groups and (constants := spec["overSpec"].get("constants")):
            yield "the constants", ", ".join(_as_text(c.get("value", c)) for c in constants)
        yield from self._other_settings()
        if groups:
            yield "the bounds", _as_text([[group["lowerBound"], group["upperBound"]] for group in groups])

    def right_keys(self) -> list[str]:
        """Return the columns of the right side that equal the key of a join, and whether nulls are equal too."""
        join = self.spec["joinSpec"]
        keys = [self.inputs[1][i] for i in join["rightKeys"]]
        nulls = [] if all(join.get("filterNulls") or ()) else [f"with nulls {_as_text(join['filterNulls'])}"]
        return [f"of the right side {', '.join(keys)}", *nulls]

    def _other_settings(self) -> Iterator[tuple[str, str]]:
        """Yield the members of a node of a kind whose members have no names here: any difference may matter."""
        own = _TYPE.fullmatch(str(self.spec.get("type")))
        if own is not None and own[1] in _COMPARED:
            for name, part in self.spec.items():
                if name not in _NOT_COMPARED:
                    yield f"{name} of the plan node", _as_text(part)
            # These members have the positions of columns, and rows in states of a multi-way join have no names.
            yield "the columns of the inputs", "; ".join(", ".join(names) for names in self.inputs)

    def join_condition(self) -> str:
        """Return the condition of a join beside the equality of its keys."""
        condition = self.spec.get("joinSpec", {}).get("nonEquiCondition")
        columns = [f"{name} of input {n}" for n, names in enumerate(self.inputs) for name in names]
        return "none" if condition is None else condition_text(condition, columns)

    def _sorted_field(self, field: Mapping[str, Any]) -> str:
        nulls = "last" if field["nullIsLast"] else "first"
        return f"{self.inputs[0][field['index']]} {'ASC' if field['isAscending'] else 'DESC'} NULLS {nulls.upper()}"

    def views(self) -> dict[str, str]:
        """Return the aggregates by the prefixes of the states in which they keep values."""
        aggregates = self._aggregates()
        return {} if aggregates is None else view_aggregates(*aggregates)

    def _accumulator(self, row: RowDataSerializer) -> list[str] | None:
        aggregates = self._aggregates()
        return None if aggregates is None else accumulator_names(*aggregates, row)

    def _aggregates(self) -> tuple[list[Mapping[str, Any]], list[bool], Sequence[str]] | None:
        """Return the aggregate calls, whether rows are retracted from each, and the names of the input's fields."""
        spec = self.spec
        if "overSpec" in spec:
            (group,) = spec["overSpec"]["groups"]
            # Rows are retracted when they leave a window with a lower bound.
            bounded = group["lowerBound"]["kind"] != "UNBOUNDED_PRECEDING"
            return group["aggCalls"], [bounded] * len(group["aggCalls"]), self.inputs[0]
        if "aggCalls" not in spec:
            return None
        inputs = self.inputs[0] if self.local is None else self.local
        retracts = spec.get("aggCallNeedRetractions") or [bool(spec.get("needRetraction"))] * len(spec["aggCalls"])
        return spec["aggCalls"], retracts, inputs


def _fits(row: RowDataSerializer, roots: Sequence[str | None]) -> bool:
    """Return True if a row of the snapshot has as many fields as a row of the plan, of types with the same roots."""
    stored = [_FAMILIES.get(t.root, t.root) for t in row.sql]
    planned = [None if root is None else _FAMILIES.get(root, root) for root in roots]
    return len(stored) == len(planned) and all(p in (None, s) for s, p in zip(stored, planned, strict=True))


def _distinct_in_spark(names: Sequence[str]) -> bool:
    """Return True if Spark can distinguish the names: SQL allows names that differ only in case."""
    return len({n.lower() for n in names}) == len(names)


def _short_text(text: str) -> str:
    if len(text) <= _MAX_ROWS_TEXT:
        return text
    return f"rows {_digest(text)}" if is_identified(text) else f"rows {_digest(text)} $f0"


def _digest(part: Any) -> str:
    return sha256(_as_text(part).encode()).hexdigest()[:16]


def _as_text(spec: Any) -> str:
    """Return a part of the plan as text that is equal for equal parts."""
    return json.dumps(spec, sort_keys=True)
