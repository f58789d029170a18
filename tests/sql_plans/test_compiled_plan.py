"""Names from compiled plans of the corpus's SQL jobs (compiled by ``plans/Plans.java`` with Flink 2.3.0)."""

from __future__ import annotations

from pathlib import Path

import pytest

import statetool
from statetool.errors import FormatError, OptionError
from statetool.sql_plans.compiled_plan import CompiledPlan
from statetool.sql_plans.row_types import row_names
from tests.support.corpora.archives import HERE, unpack


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(HERE / "corpus" / "sql-plans.tar.xz", tmp_path_factory.mktemp("plans")) / "plans"


def _operator(corpus: Path, case: str, name: str) -> statetool.Operator:
    savepoint = statetool.load(str(corpus / case / "snapshot"))
    return next(op for op in savepoint.operators.values() if op.name.endswith(name))


@pytest.mark.parametrize(
    ("case", "plan", "name", "node", "expected"),
    [
        ("sql_group_agg_rocksdb", "sql_group_agg_rocksdb", "group-aggregate", None,
         {"key": ["customer"],
          "accState": ["count(*)", "count(amount)", "sum(amount)", "avg_sum(rate)", "avg_count(rate)", "min(price)", "max(ts9)",
                       "count(distinct product)", "sum(qty)", "distinct(product)"]}),
        ("sql_dedup_topn", "sql_dedup_only", "deduplicate", 10,
         {"key": ["usr"], "deduplicate-state": ["usr", "id", "ts", "page"]}),
        ("sql_dedup_topn", "sql_topn", "rank", 17,
         {"key": ["page"], "data-state-with-append.key": ["score", "id"],
          "data-state-with-append.value.element": ["usr", "id", "score", "page"]}),
        ("sql_over", "sql_over", "over-aggregate", 23,
         {"key": ["usr"], "inputState": ["usr", "id", "score", "ts", "page"],
          "accState": ["count(score)", "sum(score)", "count(page)", "count(*)"]}),
        ("sql_interval_join", "sql_interval_join", "interval-join", 41,
         {"key": ["usr"], "IntervalJoinLeftCache": ["usr", "id", "ts"], "IntervalJoinRightCache": ["usr", "sid", "sts"]}),
        ("sql_join_unique_keys", "sql_join_unique_keys", "join", 50,
         {"key": ["id"], "left-records": ["id", "name"], "right-records": ["user_id", "street"]}),
        ("sql_join_types", "sql_join_types", "join", 57,
         {"key": ["k"], "left-records": ["k", "c_str", "c_arr"], "right-records": ["k", "label"]}),
        ("sql_window_tumble", "sql_window_tumble", "global-window-aggregate", 31,
         {"key": ["usr"], "window-aggs": ["count(*)", "sum(score)", "count(distinct page)", "distinct(page)"]}),
        ("sql_group_window_legacy", "sql_group_window_legacy", "group-window-aggregate", 64,
         {"key": ["usr"], "window-aggs": ["count(*)", "max(score)"]}),
    ],
)  # fmt: skip
def test_names_of_every_kind_of_operator(
    sql_corpus: Path, plans: Path, case: str, plan: str, name: str, node: int | None, expected: dict[str, list[str]]
) -> None:
    op = _operator(sql_corpus, case, name)
    columns = op.columns_from_plan(str(plans / f"{plan}.json"), node=node)
    assert columns == expected
    for table in op.tables:
        schema = op.scan(table, nanos="truncate", columns=columns).schema
        if "key" in schema.names:
            assert [f.name for f in schema.field("key").type] == expected["key"]
        assert op.to_arrow(table, nanos="truncate", columns=columns).num_rows >= 0


def test_an_operator_that_the_plan_does_not_have(sql_corpus: Path, plans: Path) -> None:
    op = _operator(sql_corpus, "sql_group_agg_rocksdb", "group-aggregate")
    plan = str(plans / "sql_over.json")
    with pytest.raises(OptionError, match=r"23 \(stream-exec-over-aggregate_1\)"):
        op.columns_from_plan(plan)
    with pytest.raises(OptionError, match="no node 4"):
        op.columns_from_plan(plan, node=4)


def test_names_in_sql_text() -> None:
    text = "ROW<`a` INT NOT NULL, `b``c` ROW<`x` INT, `y` ARRAY<INT>> 'a, `comment`', `d` DECIMAL(10, 2), `e` MAP<INT, INT>>"
    assert row_names(text) == ["a", "b`c", "d", "e"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": [{}], "edges": []}', '{"nodes": [], "edges": [{}]}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="compiled plan"):
        CompiledPlan(text)


def test_a_node_that_lacks_something_is_refused() -> None:
    plan = CompiledPlan('{"nodes": [{"id": 1, "type": "x", "grouping": [3]}], "edges": []}')
    with pytest.raises(FormatError, match="node 1"):
        plan.columns(1, ())
