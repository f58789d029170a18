"""Names from compiled plans of the corpus's SQL jobs (compiled by ``plans/Plans.java`` with Flink 2.3.0)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError, OptionError
from statetool.serializers.sql.rowdata import RowDataSerializer
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


# ---- names for all reads --------------------------------------------------------------------------

GROUP_AGGREGATE = "sql_group_agg_rocksdb"


def _with_plan(
    corpus: Path, plans: Path, case: str = GROUP_AGGREGATE, plan: str = GROUP_AGGREGATE
) -> statetool.Savepoint:
    return statetool.load(str(corpus / case / "snapshot"), columns_from_plan=str(plans / f"{plan}.json"))


def test_an_opened_snapshot_has_the_names_in_all_tables(sql_corpus: Path, plans: Path) -> None:
    op = _with_plan(sql_corpus, plans)["GroupAggregate[4]"]
    table = op.to_arrow()
    assert [f.name for f in table.schema.field("key").type] == ["customer"]
    assert [f.name for f in table.schema.field("accState").type][:3] == ["count(*)", "count(amount)", "sum(amount)"]
    assert [f.name for f in op.to_arrow("timers").schema.field("key").type] == ["customer"]
    plain = _operator(sql_corpus, GROUP_AGGREGATE, "group-aggregate").to_arrow()
    assert [list(r["key"].values()) for r in table.to_pylist()] == [list(r["key"].values()) for r in plain.to_pylist()]
    given = op.to_arrow(columns={"key": ["who"]})
    assert [f.name for f in given.schema.field("key").type] == ["who"]
    assert [f.name for f in given.schema.field("accState").type][:1] == ["count(*)"]
    assert op.stats().rows("largest")[0].key.startswith("{customer: ")


def test_expressions_of_transform_use_the_names(
    sql_corpus: Path, plans: Path, spark: SparkSession, tmp_path: Path
) -> None:
    arguments = [
        "transform", str(sql_corpus / GROUP_AGGREGATE / "snapshot"), str(tmp_path / "new"), "--uid", "GroupAggregate[4]",
        "--columns-from-plan", str(plans / f"{GROUP_AGGREGATE}.json"), "--where", "key.customer = 'alice'",
        "--set", "distinctAcc_0_null_state=coalesce(distinctAcc_0_null_state, 0L) + 1", "--dry-run",
    ]  # fmt: skip
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert "1 difference." in done.stdout
    assert "alice" in done.stdout


def test_operators_without_a_uid_are_found_by_the_number_in_their_name(sql_corpus: Path, plans: Path) -> None:
    op = _with_plan(sql_corpus, plans, case="sql_group_agg_hashmap")["GroupAggregate[4]"]
    assert op.uid is None
    assert [f.name for f in op.to_arrow().schema.field("key").type] == ["customer"]


def test_operators_without_rows_need_no_node(sql_corpus: Path, plans: Path) -> None:
    savepoint = _with_plan(sql_corpus, plans, case="number_sequence")
    for op in savepoint.operators.values():
        for table in op.tables:
            op.to_arrow(table)


def test_a_plan_of_another_job_is_an_error_with_operator_and_node(sql_corpus: Path, plans: Path) -> None:
    op = _with_plan(sql_corpus, plans, case="sql_join_types")["Join[6]"]
    with pytest.raises(
        OptionError, match=r"no node for operator 'Join\[6\]'.*\[operator Join\[6\] \(6_join\)\].*4 \(stream-exec"
    ):
        op.to_arrow()


def _renumbered(plan: Path, target: Path, offset: int, **changes: str) -> str:
    """Write a plan with other ids of nodes, as if the session had compiled it after or before other plans."""
    document = json.loads(plan.read_text())
    for node in document["nodes"]:
        node["id"] += offset
    for edge in document["edges"]:
        edge["source"] += offset
        edge["target"] += offset
    text = json.dumps(document)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    target.write_text(text)
    return str(target)


def test_a_node_of_another_type_does_not_fit(sql_corpus: Path, plans: Path, tmp_path: Path) -> None:
    # Node 4 is the join of this plan, and the operator 4_group-aggregate has an accumulator.
    plan = _renumbered(plans / "sql_join_types.json", tmp_path / "plan.json", 4 - 57)
    op = _operator(sql_corpus, GROUP_AGGREGATE, "group-aggregate")
    with pytest.raises(
        OptionError, match=r"node 4 is 'join', and the operator is '4_group-aggregate' \[operator Group"
    ):
        op.columns_from_plan(plan)


def test_rows_of_other_types_do_not_fit(sql_corpus: Path, plans: Path, tmp_path: Path) -> None:
    source = plans / "sql_join_unique_keys.json"
    op = _operator(sql_corpus, "sql_join_unique_keys", "join")
    assert op.columns_from_plan(_renumbered(source, tmp_path / "same.json", 7 - 50))["key"] == ["id"]
    other = _renumbered(source, tmp_path / "other.json", 7 - 50, **{"`street` VARCHAR(2147483647)": "`street` BIGINT"})
    with pytest.raises(
        OptionError, match=r"'right-records' has the fields \(.*\), and node 7 \(stream-exec-join_1\) has"
    ):
        op.columns_from_plan(other)


def test_keys_with_another_number_of_fields_do_not_fit(sql_corpus: Path, plans: Path, tmp_path: Path) -> None:
    document = json.loads((plans / f"{GROUP_AGGREGATE}.json").read_text())
    next(n for n in document["nodes"] if n["id"] == 4)["grouping"] = [0, 1]
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(OptionError, match=r"'key' has the fields \(VARCHAR\), and node 4 .* has customer, "):
        _operator(sql_corpus, GROUP_AGGREGATE, "group-aggregate").columns_from_plan(str(tmp_path / "plan.json"))


def test_names_in_differences_and_edits(sql_corpus: Path, plans: Path, tmp_path: Path) -> None:
    def add(table: pa.Table) -> pa.Table:
        i = table.schema.get_field_index("accState")
        rows = [r | {"count(*)": r["count(*)"] + 1000} for r in table.column(i).to_pylist()]
        return table.set_column(i, table.schema.field(i), pa.array(rows, table.schema.field(i).type))

    before = _with_plan(sql_corpus, plans)
    op = before["GroupAggregate[4]"]
    same = op.transform(lambda table: table).write(str(tmp_path / "same"))
    assert before.diff(same).equal
    after = op.transform(add).write(str(tmp_path / "after"))
    differences = before.diff(after).to_arrow().to_pylist()
    assert len(differences) == 8
    old, new = (json.loads(differences[0][side]) for side in ("before", "after"))
    assert new == old | {"count(*)": old["count(*)"] + 1000}
    assert "customer" in json.loads(differences[0]["key"])
    # The written types have no names: Flink's row types in state do not store them.
    plain = statetool.load(str(tmp_path / "after"))["GroupAggregate[4]"]
    assert plain.states["accState"].value_type == op.states["accState"].value_type
    assert statetool.check(str(tmp_path / "after"), before).verdict == "fully"
    assert {r["accState"]["f0"] - 1000 for r in plain.to_arrow().to_pylist()} == {
        r["accState"]["count(*)"] for r in op.to_arrow().to_pylist()
    }


def test_a_table_like_the_state_has_the_names_too(sql_corpus: Path, plans: Path, tmp_path: Path) -> None:
    savepoint = _with_plan(sql_corpus, plans)
    op = savepoint["GroupAggregate[4]"]
    state = statetool.bootstrap_state("accState", op.to_arrow("accState", ttl="raw"), like=op)
    writer = statetool.SavepointWriter.from_existing(savepoint).with_operator("4_group-aggregate", state)
    assert savepoint.diff(writer.write(str(tmp_path / "new"))).equal


@pytest.mark.parametrize("command", ["head", "schema"])
def test_commands_with_a_plan(sql_corpus: Path, plans: Path, command: str) -> None:
    path, plan = str(sql_corpus / GROUP_AGGREGATE / "snapshot"), str(plans / f"{GROUP_AGGREGATE}.json")
    shown = CliRunner().invoke(cli, [command, path, "4_group-aggregate", "--columns-from-plan", plan])
    assert shown.exit_code == 0
    assert "customer" in shown.stdout
    other = str(plans / "sql_over.json")
    refused = CliRunner().invoke(cli, [command, path, "4_group-aggregate", "--columns-from-plan", other])
    assert refused.exit_code == 2
    assert "23 (stream-exec-over-aggregate_1)" in refused.stderr
    missing = CliRunner().invoke(cli, [command, path, "4_group-aggregate", "--columns-from-plan", "none.json"])
    assert missing.exit_code == 3


def test_the_data_source_takes_a_plan(sql_corpus: Path, plans: Path) -> None:
    from statetool.spark.source.options import SourceOptions

    options = SourceOptions(
        {
            "path": str(sql_corpus / GROUP_AGGREGATE / "snapshot"),
            "operatorUid": "4_group-aggregate",
            "columnsFromPlan": str(plans / f"{GROUP_AGGREGATE}.json"),
        }
    )
    key = options.key_serializer
    assert isinstance(key, RowDataSerializer)
    assert key.names == ("customer",)
