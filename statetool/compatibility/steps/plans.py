"""Submit the job: a compiled plan is read by the release that runs it.

Follows ``ExecNodeContext`` and ``ExecNodeMetadataUtil``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from statetool.compatibility.releases import shown_releases
from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, guarded, is_unknown, refuses
from statetool.compatibility.verdicts import Remedy
from statetool.io import files
from statetool.types.operators import describe_operators

#: Node types that Flink 1.15 introduced, without ``stream-exec-`` (``ExecNodeMetadata.minPlanVersion`` of Flink 2.3.0).
_SINCE_1_15: Final = frozenset(
    {
        "calc_1",
        "changelog-normalize_1",
        "correlate_1",
        "deduplicate_1",
        "drop-update-before_1",
        "exchange_1",
        "expand_1",
        "global-group-aggregate_1",
        "global-window-aggregate_1",
        "group-aggregate_1",
        "group-window-aggregate_1",
        "incremental-group-aggregate_1",
        "interval-join_1",
        "join_1",
        "limit_1",
        "local-group-aggregate_1",
        "local-window-aggregate_1",
        "lookup-join_1",
        "match_1",
        "mini-batch-assigner_1",
        "over-aggregate_1",
        "rank_1",
        "sink_1",
        "sort-limit_1",
        "table-source-scan_1",
        "temporal-join_1",
        "temporal-sort_1",
        "union_1",
        "values_1",
        "watermark-assigner_1",
        "window-aggregate_1",
        "window-deduplicate_1",
        "window-join_1",
        "window-rank_1",
        "window-table-function_1",
    }
)
#: Releases that introduced the others.
_SINCE: Final[Mapping[str, tuple[int, int]]] = {
    "async-calc_1": (1, 19),
    "async-correlate_1": (2, 2),
    "delta-join_1": (2, 1),
    "delta-join_2": (2, 3),
    "ml-predict-table-function_1": (2, 1),
    "multi-join_1": (2, 1),
    "process-table-function_1": (2, 1),
    "python-async-calc_1": (2, 0),
    "python-calc_1": (1, 16),
    "python-correlate_1": (1, 16),
    "python-group-aggregate_1": (1, 16),
    "python-group-window-aggregate_1": (1, 16),
    "python-over-aggregate_1": (1, 16),
    "sink_2": (2, 3),
    "sort_1": (1, 18),
    "table-source-scan_2": (2, 3),
    "vector-search-table-function_1": (2, 2),
}
_PREFIX: Final = "stream-exec-"


#: States of Top-N (``org.apache.flink.table.runtime.operators.rank``).
_RANKED: Final = frozenset({"Top1-Rank-State", "data-state-with-append", "data-state-with-update", "data-state"})


def _has_plan(restore: Restore) -> bool:
    return restore.new is not None and restore.new.columns_from_plan is not None


def _irrelevant(restore: Restore) -> str:
    ranks = any(_RANKED & p.old.listed_keyed.keys() for p in restore.pairs) and restore.has_snapshot
    return "" if _has_plan(restore) or ranks else "no compiled plan of the new job is given"


def _ranks(restore: Restore) -> list[str]:
    """Return the operators of Top-N whose order and ranks the plans of both jobs do not tell."""
    if not restore.has_snapshot:
        return []
    sides = ((p.old, p.new) for p in restore.pairs if p.new is not None and _RANKED & p.old.listed_keyed.keys())
    return [str(old.label) for old, new in sides if None in (old.plan_aggregates, new.plan_aggregates)]


def _ranking(restore: Restore) -> Iterator[Result]:
    """Q10: Top-N keeps the first rows of an order (``AppendOnlyTopNFunction``). Which one it was, only the plan says."""
    if ranks := _ranks(restore):
        text = f"the order and the ranks of Top-N of {describe_operators(ranks)} did not change"
        yield Assumption(rule="Q10", text=text, option="--columns-from-plan-a and --columns-from-plan-b")


def _node_types(restore: Restore) -> Iterator[Result]:
    """Q4: the release has all types of nodes, in their versions (``ExecNodeContext``: Unsupported exec node type)."""
    if restore.new is None or restore.new.columns_from_plan is None:
        return
    path = restore.new.columns_from_plan
    releases = [tuple(map(int, r.split("."))) for r in restore.releases]
    if not releases:
        yield Assumption(
            rule="Q4", text="the release of the new job has all nodes of the compiled plan", option="--flink"
        )
        return
    oldest, newest = releases[0], releases[-1]
    types = sorted({str(n.get("type", "")).removeprefix(_PREFIX) for n in read_nodes(path)})
    since = {name: (1, 15) if name in _SINCE_1_15 else _SINCE.get(name) for name in types}
    shown = f"Flink {shown_releases(restore.releases)}"
    if late := [name for name, first in since.items() if first is not None and first > newest]:
        text = f"The compiled plan has nodes that {shown} does not have: {', '.join(late)}."
        yield refuses("Q4", text, Remedy("Compile the plan with that release.", is_final=True))
    elif late := [name for name, first in since.items() if first is not None and first > oldest]:
        text = f"the release of the new job has the nodes {', '.join(late)} of the compiled plan (B may be of {shown})"
        yield Assumption(rule="Q4", text=text, option="--flink")
    if strange := [name for name, first in since.items() if first is None]:
        text = f"Whether {shown} has the nodes {', '.join(strange)} of the compiled plan is unknown."
        yield is_unknown("Q4", text, f"Run EXPLAIN of the plan with {shown}.")


def read_nodes(path: str) -> list[Mapping[str, Any]]:
    """Return the nodes of a compiled plan, which was read before."""
    nodes: list[Mapping[str, Any]] = json.loads(files.read_whole(path)).get("nodes", [])
    return nodes


def _tables(restore: Restore) -> Iterator[Result]:
    """Q3: tables of the catalog must have the schemas of the plan (``ContextResolvedTableJsonDeserializer``)."""
    if not _has_plan(restore):
        return
    yield Assumption(
        rule="Q3",
        text="the tables of the catalog have the schemas that the compiled plan has",
        option="EXECUTE PLAN with the same catalog",
    )


def _own_plans(restore: Restore) -> Iterator[Result]:
    """Q11: a plan of another job may have the same nodes and types (:meth:`CompiledPlan.check_names` refuses those that names tell)."""
    if not _has_plan(restore):
        return
    yield Assumption(
        rule="Q11",
        text="each compiled plan is that of the job that wrote its snapshot: the ids, nodes and types fit",
        option="the plan file that the job executed",
    )


STEP: Final = Step(
    name="plans",
    title="Compiled plan",
    follows="ExecNodeContext, ContextResolvedTableJsonDeserializer",
    irrelevant=_irrelevant,
    checks=(_node_types, _tables, _own_plans, guarded(_ranking)),
)
