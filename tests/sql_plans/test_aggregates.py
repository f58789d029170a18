"""Columns of two compiled plans: which of them are the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from statetool.errors import FormatError
from statetool.serializers.sql.logical_types import SqlType
from statetool.sql_plans.accumulators import view_aggregates
from statetool.sql_plans.aggregates import (
    PlanAggregates,
    changed_key,
    changed_rows,
    changed_settings,
    changed_view,
    moved_columns,
    moved_views,
)
from statetool.sql_plans.compiled_plan import CompiledPlan
from statetool.sql_plans.expressions import ColumnTexts, is_identified
from statetool.sql_plans.groups import column_rule
from tests.support.corpora.sql_plans import aggregate, aggregation_plan, call, literal, ref


def _plan(
    names: Sequence[str], *, query: str = "", key: str = "shop", views: Mapping[str, str] | None = None
) -> PlanAggregates:
    return PlanAggregates(
        columns={"key": (key,), "accState": tuple(names)}, views=views or {}, query=query or repr(names)
    )


def _texts(expressions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of a calc's columns after an exchange."""
    computed = ", ".join(f"`$f{i}` BIGINT" for i in range(len(expressions)))
    nodes: dict[int, dict[str, Any]] = {
        1: {"outputType": "ROW<`shop` VARCHAR(2147483647), `amount` BIGINT>"},
        2: {"projection": list(expressions), "outputType": f"ROW<{computed}>"},
        3: {"outputType": f"ROW<{computed}>"},
    }
    return ColumnTexts(nodes, {2: [1], 3: [2]}).of(3)


def test_a_computed_column_is_named_by_its_expression() -> None:
    twice = call("$*$1", ref(1), literal(2, "INT NOT NULL"))
    assert _texts([twice, call("$+$1", twice, ref(1)), call("$IF$1", ref(0), literal("x", "CHAR(1) NOT NULL"), twice)]) == [
        "amount * 2", "(amount * 2) + amount", "IF(shop, 'x', amount * 2)",
    ]  # fmt: skip
    assert _texts([call("$CAST$1", ref(1), type="INT"), {"kind": "FIELD_ACCESS", "name": "id", "expr": ref(0)}]) == [
        "CAST(amount AS INT)", "shop.id",
    ]  # fmt: skip
    day = literal("86400000", "INTERVAL DAY(2) NOT NULL")
    assert _texts([call("$-$1", ref(1), day)]) == ['amount - {"type": "INTERVAL DAY(2) NOT NULL", "value": "86400000"}']


@pytest.mark.parametrize(
    "unknown",
    [
        {"kind": "CORREL_VARIABLE", "name": "$cor0"},
        {**call("$RANK$1", ref(1)), "window": {"kind": "ROWS"}},
        {"kind": "CALL", "operands": [], "type": "INT"},
    ],
)
def test_an_expression_with_an_unknown_part_keeps_the_planners_name(unknown: Mapping[str, Any]) -> None:
    assert _texts([unknown, call("$ABS$1", unknown)]) == ["$f0", "$f1"]


def test_names_that_the_query_gives_identify_no_values() -> None:
    """Two queries can call different values by one name, and one query can name a column like an expression."""
    row: dict[str, Any] = {"outputType": "ROW<`x` BIGINT, `y` BIGINT>"}
    table: dict[str, Any] = {"outputType": "ROW<`a` BIGINT, `a - b` BIGINT, `b` BIGINT, `c` BIGINT>"}
    minus = call("$-$1", ref(0), ref(2))

    def of(first: Mapping[str, Any], then: Sequence[Mapping[str, Any]] = (ref(0), ref(1))) -> list[str]:
        nodes = {1: table, 2: {**row, "projection": [first, ref(3)]}, 3: {**row, "projection": list(then)}}
        return ColumnTexts(nodes, {2: [1], 3: [2]}).of(3)

    assert of(minus) == ["a - b", "c"]
    assert of(ref(1)) == ["`a - b`", "c"]
    # c - (a - b) is not (c - a) - b.
    assert of(minus, [call("$-$1", ref(1), ref(0)), ref(1)]) == ["c - (a - b)", "c"]
    unknown = [of({**call("$F$1", ref(0)), "class": name})[0] for name in ("a.F", "a.F", "b.F")]
    assert all(map(is_identified, unknown))
    assert unknown[0] == unknown[1] != unknown[2]
    assert of(call("$PI$1"))[0] == of({n: p for n, p in call("$PI$1").items() if n != "operands"})[0] == "PI()"


def test_columns_of_nodes_without_projections() -> None:
    table: dict[str, Any] = {"outputType": "ROW<`a` BIGINT, `b` BIGINT>"}
    two = {"outputType": "ROW<`a` BIGINT, `b` BIGINT, `a0` BIGINT, `b0` BIGINT>"}
    swapped = {**table, "projection": [ref(1), ref(0)]}
    nodes = {
        1: table,
        2: swapped,
        3: {**table, "type": "stream-exec-union_1"},
        4: {**two, "type": "stream-exec-join_1"},
    }
    inputs = {2: [1], 3: [1, 2], 4: [1, 2]}
    texts = ColumnTexts(nodes, inputs)
    assert texts.of(3) == ["a or b", "b or a"]
    assert texts.of(4) == ["a of input 0", "b of input 0", "b of input 1", "a of input 1"]
    total = {"outputType": "ROW<`a` BIGINT, `b` BIGINT>", "type": "stream-exec-group-aggregate_1", "grouping": [0]}
    results = [
        ColumnTexts({1: table, 2: {**total, "aggCalls": [aggregate(name, 1)]}}, {2: [1]}).of(2)
        for name in ("MIN", "MAX")
    ]
    assert results == [["a", "min(b) by (a)"], ["a", "max(b) by (a)"]]
    over = {"outputType": "ROW<`a` BIGINT, `b` BIGINT, `w0$o0` BIGINT>"}
    results = [ColumnTexts({1: table, 2: {**over, "overSpec": name}}, {2: [1]}).of(2) for name in "xxy"]
    assert results[0] == results[1] != results[2]
    assert results[0][:2] == ["a", "b"]


def test_functions_of_users_are_no_built_in_ones() -> None:
    calls = [
        {"systemName": "max", "argList": [0], "filterArg": -1},
        {"catalogName": "`c`.`d`.`Count`", "argList": [0], "filterArg": -1},
        {"class": "org.example.Mine", "argList": [0], "filterArg": -1},
        aggregate("MAX", 0),
    ]
    views = view_aggregates(calls, [False] * 4, ["x"])
    assert list(views.values()) == ["`max`(x)", "`Count`(x)", "Mine(x)", "max(x)"]
    assert column_rule(views["agg0$"], SqlType(root="BIGINT")) is None


def test_keys_whose_names_differ_only_in_case_are_compared() -> None:
    """Spark cannot tell such columns apart, and plans can."""

    def key_of(*order: int) -> PlanAggregates:
        plan = json.loads(aggregation_plan([aggregate("COUNT")]))
        plan["nodes"][0]["outputType"] = plan["nodes"][0]["outputType"].replace("`city`", "`SHOP`")
        plan["nodes"][1] |= {"projection": [ref(0), ref(1)], "outputType": "ROW<`shop` BIGINT, `SHOP` BIGINT>"}
        plan["nodes"][2] |= {"outputType": "ROW<`shop` BIGINT, `SHOP` BIGINT>"}
        plan["nodes"][3] |= {"grouping": list(order)}
        compiled = CompiledPlan(json.dumps(plan))
        columns = {path: tuple(names) for path, names in compiled.columns(4, [], expressions=True).items()}
        return PlanAggregates(columns=columns, views={}, query=compiled.query(4))

    assert changed_key(key_of(0, 1), key_of(0, 1)) == ""
    assert "are (SHOP, shop 2)" in changed_key(key_of(0, 1), key_of(1, 0))


def test_nodes_in_a_cycle_end() -> None:
    row = {"outputType": "ROW<`$f0` BIGINT>"}
    texts = ColumnTexts({1: row, 2: row}, {1: [2], 2: [1]})
    assert texts.of(1) == ["$f0"]
    assert texts.of_local(1) is None


def test_names_of_the_planner_identify_no_column() -> None:
    assert [n for n in ("sum(amount)", "count(*)", "sum($f1)", "max(EXPR$0)", "lag(x, constant 0)") if is_identified(n)] == [
        "sum(amount)", "count(*)",
    ]  # fmt: skip
    old, new = _plan(["count(*)", "sum($f1)"]), _plan(["sum($f1)", "count(*)"])
    before, after = changed_rows(old, new, "accState")
    assert before == (("accState", ("count(*)", "sum($f1) before")),)
    assert after == (("accState", ("sum($f1)", "count(*)")),)
    assert moved_columns(before, after) == ["count(*) as sum($f1)", "sum($f1) as count(*)"]
    # The same query has the same columns, whatever they are called.
    same = [_plan(["sum($f1)"], query="q", key="$f0", views={"agg0$": "max($f1)"}) for _ in range(2)]
    assert changed_rows(same[0], same[1], "accState") == ((), ())
    assert changed_key(same[0], same[1]) == changed_view(same[0], same[1], "agg0$map") == ""


def test_rows_that_only_one_plan_names_are_not_matched() -> None:
    old = _plan(["count(*)"])
    new = PlanAggregates(columns={"accState.value": ("sum(x)",)}, views={}, query="")
    assert changed_rows(old, new, "accState") == changed_rows(old, None, "accState") == ((), ())


def test_views_and_keys_of_other_columns() -> None:
    old = _plan(["a"], views={"agg1$": "max(x)", "distinctAcc_0": "distinct(y)", "distinctAcc_10": "distinct(z)"})
    new = _plan(
        ["b"], key="city", views={"agg1$": "min(x)", "distinctAcc_0": "distinct(y)", "distinctAcc_10": "distinct(q)"}
    )
    assert changed_view(old, new, "distinctAcc_0_null_state") == changed_view(old, new, "accState") == ""
    states = ("agg1$map", "distinctAcc_0", "distinctAcc_10", "accState")
    assert moved_views(old, new, states) == {"agg1$map": None, "distinctAcc_10": None}
    back = _plan(["b"], views={"agg0$": "max(x)", "distinctAcc_0": "distinct(z)", "distinctAcc_1": "distinct(y)"})
    moved = {"agg1$map": "agg0$map", "distinctAcc_0": "distinctAcc_1", "distinctAcc_10": "distinctAcc_0"}
    assert moved_views(old, back, states) == moved
    assert moved_views(old, None, states) == {}
    other = _plan(["b"], views={"distinctAcc_0": "distinct(y) for filter a, all rows", "distinctAcc_1": "distinct(q)"})
    assert moved_views(old, other, ("distinctAcc_0",)) == {}
    assert "of distinct(y) in the old plan, and of distinct(y) for filter a" in changed_view(
        old, other, "distinctAcc_0"
    )
    assert changed_key(old, new) == "the columns of the key were (shop) and are (city)"


@pytest.mark.parametrize(
    "calc",
    [
        {"projection": [ref(0)]},
        {"projection": [ref(9)] * 3},
        {"projection": [{**ref(0), "inputIndex": "x"}] * 3},
        {"projection": 3},
        {"projection": [None] * 3},
        {"projection": [{"kind": "LITERAL"}] * 3},
        {"projects": [[ref(0)]], "projection": None},
    ],
)
def test_a_damaged_plan_is_our_error(calc: Mapping[str, Any]) -> None:
    plan = json.loads(aggregation_plan([aggregate("SUM", 2)], [ref(2)]))
    plan["nodes"][1] |= calc
    plan["edges"].append({"source": 77, "target": 1})
    compiled = CompiledPlan(json.dumps(plan))
    with pytest.raises(FormatError, match=r"node 4 of the plan \(stream-exec-group-aggregate_1\) lacks"):
        compiled.columns(4, [], expressions=True)
    with pytest.raises(FormatError, match="node 4"):
        compiled.views(4)
    assert compiled.query(4)


def test_settings_that_decide_which_rows_are_kept_are_compared() -> None:
    old, new = (
        PlanAggregates(columns={}, views={}, query="", settings={"the order": order, "the window": "w"})
        for order in ("amount DESC NULLS LAST", "amount ASC NULLS FIRST")
    )
    assert changed_settings(old, new) == ["the order was amount DESC NULLS LAST and is amount ASC NULLS FIRST"]
    assert changed_settings(old, old) == changed_settings(old, None) == []
