"""Changes of joins, Top-N and deduplications that two plans tell: which side has the rows of a new one, and when nothing tells."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from statetool.errors import OptionError
from statetool.sql_plans.compiled_plan import CompiledPlan
from statetool.sql_plans.joins import JoinChange, JoinSide, PlanJoin, join_change, join_of
from statetool.sql_plans.ranks import (
    PlanRank,
    PlanSingle,
    RankChange,
    SortedColumn,
    rank_change,
    rank_of,
    single_change,
)

_LEFT: Final = JoinSide(
    columns=("a", "b"), keys=(0,), layout="counted", unique=(), counts_partners=False, rows="the table `o`"
)
_RIGHT: Final = replace(_LEFT, columns=("c", "d"), rows="the table `s`")
_JOIN: Final = PlanJoin(sides=(_LEFT, _RIGHT), kind="INNER", filters_nulls=(True,), condition=None)


def changed(left: dict[str, Any] | None = None, right: dict[str, Any] | None = None, **more: Any) -> JoinChange:
    """Return the change to a join with other sides."""
    new = replace(_JOIN, sides=(replace(_LEFT, **left or {}), replace(_RIGHT, **right or {})), **more)
    found = join_change(_JOIN, new)
    assert found is not None
    return found


def test_columns_and_keys_come_from_the_old_rows() -> None:
    assert changed() == JoinChange()
    removed = changed(left={"columns": ("a",)})
    assert [s.columns for s in removed.sources] == [(0,), (0, 1)]
    assert "lose b" in removed.text
    assert changed(left={"columns": ("b", "a")}).sources[0].columns == (1, 0)
    assert "needs e" in changed(left={"columns": ("a", "e")}).refusal
    # The right key has no name of its own in the key of the state.
    assert "the key of the right rows was (c) and is (d)" in changed(right={"keys": (1,)}).text
    # Rows of several old keys become equal: those of one key group do not have all of them.
    assert "change the key first" in changed(left={"columns": ("b",)}).refusal


def test_what_the_plans_do_not_identify_is_refused() -> None:
    assert "do not tell which column" in changed(left={"columns": ("a", "$f1")}).refusal
    odd = replace(_JOIN, sides=(replace(_LEFT, rows="$f0 > 2"), _RIGHT))
    other = replace(odd, sides=(replace(odd.sides[0], columns=("a",)), _RIGHT))
    change = join_change(odd, other)
    assert change is not None
    assert "which rows" in change.refusal


def test_rows_of_another_source_are_refused_with_another_change() -> None:
    rows: dict[str, Any] = {"rows": "the table `o` and late"}
    assert (
        join_change(_JOIN, replace(_JOIN, sides=(replace(_LEFT, **rows), _RIGHT))) is None
    )  # asked for as for other operators
    assert "change them first" in changed(left={**rows, "columns": ("a",)}).refusal
    assert "change them first" in changed(left=rows, right={"keys": (1,)}).refusal


def test_partners_are_counted_or_carried() -> None:
    outer: dict[str, Any] = {"counts_partners": True}
    counted = changed(left=outer, kind="LEFT")
    assert counted.carries_partners == (False, False)
    assert "partners of the left rows are counted" in counted.text
    assert "is not evaluated" in changed(left=outer, kind="LEFT", condition="b > d").refusal
    assert "join key changes too" in changed(left={**outer, "keys": (1,)}, kind="LEFT").refusal
    old = replace(_JOIN, kind="LEFT", sides=(replace(_LEFT, counts_partners=True), _RIGHT), condition="b > d")
    fewer = replace(old, sides=(replace(old.sides[0], columns=("b", "a"), keys=(1,)), _RIGHT))
    carried = join_change(old, fewer)
    assert carried is not None
    assert carried.carries_partners == (True, False)
    other = join_change(old, replace(old, condition="b > d + 1"))
    assert other is not None
    assert "is not evaluated" in other.refusal
    nulls = join_change(replace(old, condition=None), replace(old, condition=None, filters_nulls=(False,)))
    assert nulls is not None
    assert "are counted" in nulls.text
    unknown = replace(old, condition="$f1 > d")
    change = join_change(unknown, unknown)
    assert change is not None
    assert change.refusal


def test_unique_keys() -> None:
    unique: dict[str, Any] = {"layout": "unique", "unique": (1,)}
    assert "has a unique key" in changed(left=unique).refusal
    old = replace(_JOIN, sides=(replace(_LEFT, **unique), _RIGHT))
    lost = join_change(old, _JOIN)
    assert lost is not None
    assert "another unique key" in lost.text
    spec: dict[str, Any] = {
        "joinSpec": {"joinType": "LEFT", "leftKeys": [0], "rightKeys": [0], "filterNulls": [True]},
        "leftUpsertKeys": [[1, 2], [0, 2], [0]],
        "rightUpsertKeys": [[1, 2], [2, 1]],
    }
    join = join_of(spec, [["a", "b", "c"]] * 2, ["x", "y"])
    assert join is not None
    assert [(s.layout, s.unique, s.counts_partners) for s in join.sides] == [
        ("single", (), True),
        ("unique", (1, 2), False),
    ]
    assert join_of({"joinSpec": {**spec["joinSpec"], "joinType": "ASOF"}}, [["a"]] * 2, ["x", "y"]) is None


def test_sides_of_a_self_join_exchange_columns() -> None:
    """Both sides have the same rows, so a column may come from the other one."""
    old = replace(_JOIN, sides=(_LEFT, replace(_LEFT, columns=("a", "e"))))
    new = replace(old, sides=(replace(_LEFT, columns=("a", "e")), _LEFT))
    change = join_change(old, new)
    assert change is not None
    assert [s.side for s in change.sources] == [1, 0]
    # Tables without a name are different ones.
    first, second = (
        replace(j, sides=(replace(j.sides[0], rows="none of input 0"), replace(j.sides[1], rows="none of input 1")))
        for j in (old, new)
    )
    refused = join_change(first, second)
    assert refused is not None
    assert "needs e" in refused.refusal


_RANK: Final = PlanRank(
    strategy="append",
    columns=("a", "b"),
    partition=("a",),
    order=(SortedColumn(column="b", ascending=True, nulls_last=False),),
    last=3,
    numbered=False,
    sort=(1,),
    keys=(),
    rows="the table `o`",
)


def ranked(**more: Any) -> RankChange:
    found = rank_change(_RANK, replace(_RANK, **more))
    assert found is not None
    return found


def test_ranks() -> None:
    assert ranked() == RankChange()
    assert ranked(last=2).text == "of 3 rows per key, the first 2 remain"
    assert ranked(last=1, strategy="top1", columns=("b",)).columns == (1,)
    assert "no rows after rank 3" in ranked(last=4).refusal
    assert "no c" in ranked(last=2, columns=("a", "c")).refusal
    other = (SortedColumn(column="b", ascending=True, nulls_last=True),)
    assert "NULLS FIRST and is b ASC NULLS LAST" in ranked(order=other).refusal
    assert "another way" in ranked(strategy="retract").refusal
    assert rank_change(_RANK, replace(_RANK, rows="the table `p`")) is None
    assert rank_change(replace(_RANK, partition=("$f1",)), replace(_RANK, partition=("$f1",), last=2)) is None
    counted = replace(_RANK, numbered=True)
    assert rank_change(_RANK, counted) == RankChange()
    cut = rank_change(counted, _RANK)
    assert cut is not None
    assert "rows after rank 3" in cut.text
    every = replace(_RANK, strategy="retract")
    assert rank_change(every, replace(every, last=9)) == RankChange()
    updated = replace(_RANK, strategy="update", keys=(0,))
    change = rank_change(updated, replace(updated, last=2, keys=(1,)))
    assert change is not None
    assert "unique key" in change.refusal


def test_ranks_of_unknown_kinds_are_not_compared() -> None:
    spec: dict[str, Any] = {
        "rankType": "ROW_NUMBER",
        "partition": {"fields": [0]},
        "orderBy": {"fields": [{"index": 1, "isAscending": True, "nullIsLast": False}]},
        "rankRange": {"type": "Constant", "start": 1, "end": 3},
        "rankStrategy": {"type": "AppendFast"},
        "outputRowNumber": False,
    }
    assert rank_of(spec, [["a", "b"]], "the table `o`", is_time=False) == _RANK
    assert rank_of(spec, [["a", "b"]], "the table `o`", is_time=True) is None
    for other in ({"rankType": "RANK"}, {"rankRange": {"type": "Variable", "end": 1}}, {"rankStrategy": {"type": "?"}}):
        assert rank_of({**spec, **other}, [["a", "b"]], "the table `o`", is_time=False) is None


def test_single_rows() -> None:
    last = PlanSingle(kept="last row by processing time", key=("a",), rows="the table `o`")
    first = replace(last, kept="first row by processing time")
    change = single_change(last, first)
    assert change is not None
    assert change.text
    refused = single_change(first, last)
    assert refused is not None
    assert "the new query needs the last row" in refused.refusal
    assert single_change(last, replace(first, key=("b",))) is None
    by_row = single_change(last, replace(last, kept="last row by row time"))
    assert by_row is not None
    assert by_row.refusal


def test_a_plan_of_another_job_is_refused_by_names() -> None:
    """Q11, if the names of operators tell."""
    nodes = [
        {
            "id": 1,
            "type": "stream-exec-table-source-scan_2",
            "scanTableSource": {"table": {"identifier": "`c`.`d`.`orders`"}},
        },
        {"id": 2, "type": "stream-exec-rank_1"},
    ]
    plan = CompiledPlan(json.dumps({"nodes": nodes, "edges": []}))
    plan.check_names(["Source: orders[1]", "Rank[2]", "map[2]", "Source: other[7]", "", "Sink: out"])
    for name, words in (("Source: returns[1]", "reads orders"), ("Join[2]", "is 'rank'")):
        with pytest.raises(OptionError, match=words):
            plan.check_names([name])
