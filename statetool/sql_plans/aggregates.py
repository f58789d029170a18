"""Names from two compiled plans for the rows of one operator, to carry columns over by name.

Snapshots of SQL jobs store the fields of a row by position. If a query changes, its plan tells which field is which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from statetool.sql_plans.derived import derived_columns
from statetool.sql_plans.expressions import is_identified
from statetool.sql_plans.joins import JoinChange, PlanJoin, join_change
from statetool.sql_plans.ranks import PlanRank, PlanSingle, RankChange, rank_change, single_change

_VIEW: Final = re.compile(r"(agg\d+\$|distinctAcc_\d+)")
_KEY: Final = "key"
_ACCUMULATOR: Final = "accState"
#: Nodes with the same state.
_ONE_KIND: Final = frozenset({"group-aggregate", "global-group-aggregate"})
#: Suffix of names of the old plan that do not identify a column.
_OLD: Final = " before"
#: Names of the rows of a state, by path.
RowNames = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAggregates:
    """Names from a compiled plan for an operator.

    Attributes
    ----------
    columns
        Names of the fields of rows, by the path of each row. ``key`` is the row of the operator's keys.
    views
        Aggregates by the prefixes of the states that hold their views.
    query
        Text of the operator's node and all nodes before it. The names of two plans with the same text mean the same.
    settings
        What decides which rows the operator keeps: the order of Top-N, windows.
    kind
        The type of the node: ``group-aggregate``.
    join, rank, single
        What a join, a Top-N or a deduplication keeps.
    """

    columns: Mapping[str, tuple[str, ...]]
    views: Mapping[str, str]
    query: str
    settings: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    join: PlanJoin | None = None
    rank: PlanRank | None = None
    single: PlanSingle | None = None

    def rows_of(self, state: str) -> dict[str, tuple[str, ...]]:
        """Return the names of the rows of a state, by path."""
        return {p: names for p, names in self.columns.items() if p == state or p.startswith(f"{state}.")}

    def aggregate_of(self, state: str) -> str | None:
        """Return the aggregate whose view a state holds, ``None`` for other states."""
        prefix = _VIEW.match(state)
        return None if prefix is None else self.views.get(prefix[1])


def changed_rows(old: PlanAggregates | None, new: PlanAggregates | None, state: str) -> tuple[RowNames, RowNames]:
    """Return the names of a state's rows in both plans, empty if they are the same or a plan does not name them.

    Names that do not identify a column become different in the two plans, so that such columns are never taken for each other.
    """
    if old is None or new is None or old.query == new.query:
        return (), ()
    before, after = old.rows_of(state), new.rows_of(state)
    if before.keys() != after.keys():  # see unnamed_rows
        return (), ()
    before = {path: tuple(n if is_identified(n) else f"{n}{_OLD}" for n in names) for path, names in before.items()}
    if before == after:
        return (), ()
    return tuple(before.items()), tuple(after.items())


def unnamed_rows(old: PlanAggregates | None, new: PlanAggregates | None, state: str) -> str:
    """Return the reason why a state's columns can only be matched by position, empty if both plans name the same rows of it."""
    if old is None or new is None or old.query == new.query:
        return ""
    before, after = old.rows_of(state), new.rows_of(state)
    sides = (("old", before, after), ("new", after, before))
    unnamed = [
        f"the {side} plan does not name the columns of {path}"
        for side, own, other in sides
        for path in other
        if path not in own
    ]
    return f"{', and '.join(unnamed)}, so its columns can only be matched by position" if unnamed else ""


def changed_view(old: PlanAggregates | None, new: PlanAggregates | None, state: str) -> str:
    """Return the reason why a state's values may belong to another aggregate in the new plan, empty if they do not."""
    if old is None or new is None or old.query == new.query:
        return ""
    before, after = old.aggregate_of(state), new.aggregate_of(state)
    if before is None or (before == after and is_identified(before)):
        return ""
    if state in moved_views(old, new, (state,)):
        return ""
    return f"it has the values of {before} in the old plan, and of {after or 'no aggregate'} in the new one"


def moved_views(
    old: PlanAggregates | None, new: PlanAggregates | None, states: tuple[str, ...]
) -> dict[str, str | None]:
    """Return the new names of states with views of aggregates that have another position, ``None`` for aggregates that the new query lacks.

    States of aggregates that the plans do not identify are not among them.
    """
    if old is None or new is None or old.query == new.query:
        return {}
    found: dict[str, str | None] = {}
    for state in states:
        prefix, aggregate = _VIEW.match(state), old.aggregate_of(state)
        if (
            prefix is None
            or aggregate is None
            or not all(map(is_identified, (*old.views.values(), *new.views.values())))
        ):
            continue
        kind = prefix[1].rstrip("$0123456789")
        same = [[p for p, a in plan.views.items() if a == aggregate and p.startswith(kind)] for plan in (old, new)]
        if len(same[0]) != 1 or len(same[1]) > 1:
            continue
        if not same[1]:
            # Another order or choice of filters gives the bits of such a view to other aggregates.
            if not any(_without_filters(a) == _without_filters(aggregate) for a in new.views.values()):
                found[state] = None
        elif same[1] != same[0]:
            found[state] = same[1][0] + state.removeprefix(prefix[1])
    return found


def _without_filters(view: str) -> str:
    return view.partition(" for ")[0]


def added_distinct(old: PlanAggregates | None, new: PlanAggregates | None) -> list[str]:
    """Return the new aggregates of distinct values whose view exists already: what it has seen is not added to them again."""
    if old is None or new is None or old.query == new.query:
        return []
    before, after = old.columns.get(_ACCUMULATOR, ()), new.columns.get(_ACCUMULATOR, ())
    derived = derived_columns(before, after)
    seen = {
        _without_filters(v).removeprefix("distinct(").removesuffix(")")
        for v in old.views.values()
        if v.startswith("distinct(")
    }
    return [n for n in after if n not in before and n not in derived and any(f"(distinct {s})" in n for s in seen)]


def unplanned_view(old: PlanAggregates | None, new: PlanAggregates | None, state: str) -> str:
    """Return the reason why it is not known whose values a state holds, empty if the plans tell, or if it holds no view of an aggregate."""
    if (old is not None and new is not None) or _VIEW.match(state) is None:
        return ""
    return "it holds the values of an aggregate of SQL, which may be another one in the new query, such as COUNT(DISTINCT x) and COUNT(DISTINCT y)"


def changed_key(old: PlanAggregates | None, new: PlanAggregates | None) -> str:
    """Return the reason why keys may have other columns in the new plan, empty if they do not."""
    if old is None or new is None or old.query == new.query:
        return ""
    before, after = old.columns.get(_KEY), new.columns.get(_KEY)
    if before is None or after is None:
        named = "new" if before is None else "old"
        return "" if before == after else f"only the {named} plan names the columns of the key"
    if before == after and all(map(is_identified, before)):
        return ""
    return f"the columns of the key were ({', '.join(before)}) and are ({', '.join(after)})"


def changed_state(old: PlanAggregates | None, new: PlanAggregates | None) -> JoinChange | RankChange | None:
    """Return what becomes of the whole state of a join, Top-N or deduplication, ``None`` if its states are compared one by one."""
    if old is None or new is None or old.query == new.query:
        return None
    change = join_change(old.join, new.join)
    return change or rank_change(old.rank, new.rank) or single_change(old.single, new.single)


def changed_settings(old: PlanAggregates | None, new: PlanAggregates | None) -> list[str]:
    """Return what decides which rows an operator keeps and differs between the plans, such as the order of Top-N, with both values."""
    if old is None or new is None or changed_state(old, new) is not None:
        return []
    before, after = old.settings, new.settings
    kinds = (
        [f"the operator was {old.kind} and is {new.kind}"]
        if old.kind != new.kind and not {old.kind, new.kind} <= _ONE_KIND
        else []
    )
    return kinds + [
        f"{name} was {before[name]} and is {after[name]}"
        for name in before
        if name in after and before[name] != after[name]
    ]


def moved_columns(before: RowNames, after: RowNames) -> list[str]:
    """Return the columns that Flink, which reads rows by position, takes for others."""
    of_new = dict(after)
    return [
        f"{old.removesuffix(_OLD)} as {new}"
        for path, names in before
        for old, new in zip(names, of_new[path], strict=False)
        if old != new
    ]
