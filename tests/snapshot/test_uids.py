"""Operators by uid, name and id prefix, at every place that takes a uid: SQL jobs know many operators only by id and name."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import statetool
from statetool import Savepoint, SavepointWriter
from statetool.cli.main import cli
from statetool.errors import OptionError, StatetoolError, UnknownNameError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.snapshot.uids import find_operator, unique_digits
from statetool.types.operators import OperatorLabel, display_name
from tests.support.corpora.archives import HERE, unpack

#: The aggregation of ``sql_group_agg_hashmap``, which has no uid.
NAME: Final = "GroupAggregate[4]"
ID: Final = "90bea66de1c231edf33913ecd54406c1"
SHOWN: Final = "GroupAggregate[4] (90bea66d)"
WAYS: Final = (ID, NAME, SHOWN, "90be", "90BEA66D")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


@pytest.fixture
def path(sql_corpus: Path) -> str:
    return str(sql_corpus / "sql_group_agg_hashmap" / "snapshot")


@pytest.fixture
def sp(path: str) -> Savepoint:
    return statetool.load(path)


@pytest.fixture(scope="module")
def ambiguous(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a snapshot with three operators called ``Flat Map``."""
    folder = unpack(HERE / "corpus" / "sql-operators.tar.xz", tmp_path_factory.mktemp("operators"))
    return str(folder / "sql-operators" / "2.3.0" / "multi_join")


# ---- resolver and labels --------------------------------------------------------------------------


def test_a_uid_wins_over_an_id_over_a_name_over_a_prefix() -> None:
    by_uid = OperatorLabel(operator_id_for_uid("beef"), "beef")
    by_id = OperatorLabel("1" * 32, name="one")
    by_name = OperatorLabel("2" * 32, name="cafe")
    named_like_others = OperatorLabel("3" * 32, name="beef")
    prefixed = [OperatorLabel(f"{start}{'0' * 28}", name="1" * 32) for start in ("beef", "cafe")]
    labels = [*prefixed, named_like_others, by_name, by_id, by_uid]
    assert find_operator(labels, "beef") is by_uid
    assert find_operator([o for o in labels if o is not by_uid], "beef") is named_like_others
    assert find_operator(labels, "1" * 32) is by_id
    assert find_operator(labels, "cafe") is by_name
    assert find_operator(labels, "cafe0") is prefixed[1]


def test_a_uid_that_is_not_stored_is_found_by_its_hash() -> None:
    label = OperatorLabel(operator_id_for_uid("orders"))
    assert find_operator([label], "orders") is label


@pytest.mark.parametrize("text", ["", "abc", "abcg", "a" * 33, "12 4"])
def test_what_is_too_short_or_not_hex_is_no_prefix(text: str) -> None:
    with pytest.raises(UnknownNameError):
        find_operator([OperatorLabel("abc1" + "0" * 28), OperatorLabel("a" * 32)], text)


def test_ambiguous_names_and_prefixes_list_the_candidates() -> None:
    labels = [OperatorLabel(f"abcd{n}{'0' * 27}", "" if n else "first", "Filter") for n in range(3)]
    with pytest.raises(OptionError) as by_name:
        find_operator(labels, "Filter")
    assert "3 operators are called 'Filter'" in str(by_name.value)
    assert "Filter (first), Filter (abcd1000), Filter (abcd2000)" in str(by_name.value)
    with pytest.raises(OptionError, match="3 operators have an id that begins with 'ABCD'"):
        find_operator(labels, "ABCD")


def test_labels_show_as_many_digits_as_tell_operators_apart() -> None:
    ids = ["90bea66d0" + "0" * 23, "90bea66d1" + "0" * 23, "f" * 32]
    assert unique_digits(ids) == 9
    assert unique_digits(ids[1:]) == 8
    assert OperatorLabel(ids[0], name="Join[1]", digits=9).display == "Join[1] (90bea66d0)"


@pytest.mark.parametrize(
    ("uid", "name", "shown"),
    [
        ("4_join", "Join[4]", "Join[4] (4_join)"),
        ("", "Join[4]", "Join[4] (90bea66d)"),
        ("orders", "orders", "orders"),
        ("orders", "", "orders"),
        ("", "", ID),
        ("", "x" * 200, f"{'x' * 79}… (90bea66d)"),
    ],
)
def test_display(uid: str, name: str, shown: str) -> None:
    label = OperatorLabel(ID, uid, name)
    assert (label, label.display) == (uid or ID, shown)
    for other in (pickle.loads(pickle.dumps(label)), copy.deepcopy(label)):
        assert (other, other.name, other.operator_id, other.display) == (label, name, ID, shown)
    assert display_name(label) == shown
    assert display_name("text") == "text"


# ---- Python ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_reads(sp: Savepoint, way: str) -> None:
    assert sp[way].operator_id == ID
    assert sp[way].name == ID
    assert sp.stats(operators=[way]).rows("operators")[0].operator == ID
    assert {s.operator for s in sp.diff(sp, operators=[way]).summary()} == {ID}
    with pytest.raises(UnknownNameError, match=r"operator 'GroupAggregate\[4\] \(90bea66d\)' has no state 'none'"):
        sp[way].to_arrow("none")


def test_an_unknown_operator_names_similar_ones(sp: Savepoint) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean GroupAggregate\[4\] \(90bea66d\)\?"):
        sp["GroupAgregate[4]"]
    with pytest.raises(UnknownNameError, match=r"operators: Source: orders\[1\] \(cbc357cc\), out0\[5\]"):
        sp["ffff"]


def test_an_ambiguous_name(ambiguous: str) -> None:
    savepoint = statetool.load(ambiguous)
    candidates = r"Flat Map \(feed-a\), Flat Map \(feed-b\), Flat Map \(feed-c\)"
    for use in (
        lambda: savepoint["Flat Map"],
        lambda: savepoint.stats(operators=["Flat Map"]),
        lambda: savepoint.diff(savepoint, operators=["Flat Map"]),
        lambda: SavepointWriter.from_existing(savepoint).remove_operator("Flat Map"),
        lambda: statetool.load(ambiguous, key_types={"Flat Map": "STRING"}),
        lambda: statetool.load(ambiguous, python={"Flat Map.state": "LONG"}),
    ):
        with pytest.raises(OptionError, match=candidates):
            use()
    assert savepoint["MultiJoin[37]"].uid == "37_multi-join"


def test_tables_of_a_catalog(path: str, tmp_path: Path) -> None:
    catalog = statetool.catalog(None, str(Path(path).parent))
    (database,) = (catalog[name] for name in catalog.databases)
    assert "groupaggregate_4_keyed_state" in database.tables
    assert not [name for name in database.tables if ID in name]
    for name in (
        "GroupAggregate[4]_keyed_state",
        f"{ID}_keyed_state",
        "groupaggregate_4__keyed_state",
        "90be_keyed_state",
    ):
        assert database.place(name)[0].operator_id == ID
    assert database.table("90bea66d_distinctAcc_0_elements").num_rows == 30
    with pytest.raises(UnknownNameError):
        database.table("90b_keyed_state")
    jobs = unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path)
    others = statetool.catalog(None, str(jobs / "v2_0_2-types-heap"))["snapshot"]
    assert {"t_values_keyed_state", "t_scalars_keyed_state"} <= set(others.tables)
    with pytest.raises(OptionError, match="t_scalars_keyed_state"):
        others.table("KeyedProcess_keyed_state")


def test_spark_options(path: str) -> None:
    from statetool.spark.source.options import SourceOptions

    for way in WAYS:
        for option in ("operatorUid", "operatorId"):
            assert SourceOptions({"path": path, option: way}).operator.label == ID
    with pytest.raises(OptionError, match="are not the same operator"):
        SourceOptions({"path": path, "operatorUid": NAME, "operatorId": "cbc3"}).operator  # noqa: B018


def test_declarations_of_python_states(sp: Savepoint, path: str) -> None:
    states = {f"{NAME}.first": "LONG", "90be.second": "STRING", "Calc[2].third": "LONG"}
    named = statetool.load(path, python=states)[NAME].inventory.types
    assert {n: str(t) for n, t in named.python if "." not in n} == {
        "first": "LONG",
        "second": "STRING",
    }


# ---- writes ---------------------------------------------------------------------------------------

EDITS: Final[dict[str, Callable[[SavepointWriter, str], SavepointWriter]]] = {
    "remove_operator": lambda w, name: w.remove_operator(name),
    "remove_state": lambda w, name: w.remove_state(name, "accState"),
    "rename_state": lambda w, name: w.rename_state(name, "accState", "sums"),
    "change_uid": lambda w, name: w.change_uid(name, "sums"),
    "transform": lambda w, name: w.transform(name, lambda table: table.slice(0, 1)),
}


@pytest.mark.filterwarnings("ignore:the function dropped")
@pytest.mark.parametrize("edit", EDITS)
def test_edits(sp: Savepoint, tmp_path: Path, edit: str) -> None:
    written = []
    for number, way in enumerate(WAYS):
        writer = EDITS[edit](SavepointWriter.from_existing(sp), way)
        written.append(writer.write(str(tmp_path / str(number))))
    assert not sp.diff(written[0]).equal
    for other in written[1:]:
        assert sorted(other) == sorted(written[0])
        assert written[0].diff(other).equal


@pytest.mark.parametrize("way", [NAME, "90be"])
def test_a_new_operator_called_like_an_existing_one_must_be_meant(sp: Savepoint, tmp_path: Path, way: str) -> None:
    state = statetool.bootstrap_list_state("s", pa.table({"value": [1]}))
    writer = SavepointWriter.from_existing(sp)
    with pytest.raises(UnknownNameError, match=f"did you mean {ID}.* new=True"):
        writer.with_operator(way, state).write(str(tmp_path / "refused"))
    added = writer.with_operator(way, state, new=True).write(str(tmp_path / "added"))
    assert added[operator_id_for_uid(way)].to_arrow("s").num_rows == 1
    assert added[ID].to_arrow("accState").num_rows == 8


def test_rewrites(path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "never-written")
    for way in WAYS:
        plan = statetool.rescale(path, target, {way: 256}, dry_run=True)
        assert [(o.operator, o.operator_name) for o in plan.operators] == [(ID, NAME)]
        assert statetool.drop(path, target, [way], dry_run=True).operators == {ID}
        assert set(statetool.drop(path, target, states={way: ["accState"]}, dry_run=True).changes) == {ID}
        assert [c.old_id for c in statetool.change_uids(path, target, {way: "sums"}, dry_run=True)] == [ID]
    with pytest.raises(OptionError, match="another name of an operator"):
        statetool.rescale(path, target, {NAME: 256, "90be": 512}, dry_run=True)
    with pytest.raises(OptionError, match="are the same operator"):
        statetool.change_uids(path, target, {NAME: "a", "90be": "b"}, dry_run=True)


def test_sources_are_edited_by_name(connector_cases: Path, tmp_path: Path) -> None:
    savepoint = statetool.load(str(connector_cases / "v2_3_0-kafka-source" / "snapshot"))
    operator = next(o for o in savepoint.operators.values() if o.name == "orders")
    written = []
    for number, way in enumerate(("orders", operator.inventory.label.name, operator.operator_id[:6])):
        statetool.edit_source(savepoint, str(tmp_path / str(number)), way, to="earliest")
        written.append(statetool.load(str(tmp_path / str(number))))
        assert list(written[-1]) == list(savepoint)
    assert all(written[0].diff(other).equal for other in written[1:])
    assert not savepoint.diff(written[0]).equal


# ---- names of another snapshot --------------------------------------------------------------------


def test_a_comparison_takes_names_from_the_snapshot_that_has_them(corpus: Path) -> None:
    old, new = (statetool.load(str(corpus / f"{v}-hashmap-canonical" / "snapshot")) for v in ("v1_20_5", "v2_3_0"))
    assert all(len(name) == 32 for name in old)
    for comparison in (old.diff(new, states=["registered"]), new.diff(old, states=["registered"])):
        assert {s.operator for s in comparison.summary()} == {"timers"}
    assert {s.operator for s in old.diff(new, operators=["timers"]).summary()} == {"timers"}
    verdict = statetool.check(old, new)
    assert {"timers", "events-source"} <= {o.uid for o in verdict.operators}
    assert {o.operator_name for o in verdict.operators if o.uid == "events-source"} == {"Source: source"}


def test_a_uid_of_another_snapshot_is_taken_only_if_it_hashes_to_the_id(corpus: Path) -> None:
    old, new = (statetool.load(str(corpus / f"{v}-hashmap-canonical" / "snapshot")) for v in ("v1_20_5", "v2_3_0"))
    named = old.inventory.with_names_of(new.inventory)
    for label in named.labels:
        assert not label.uid or operator_id_for_uid(label.uid) == label.operator_id
    assert named.operator("uid-hash").label.uid == ""
    assert named.with_names_of(new.inventory) is named


# ---- commands -------------------------------------------------------------------------------------

COMMANDS: Final = {
    "head": ["head", "{path}", "{operator}", "-n", "1"],
    "schema": ["schema", "{path}", "{operator}"],
    "stats": ["stats", "{path}", "--uid", "{operator}", "--table", "operators"],
    "diff": ["diff", "{path}", "{path}", "--uid", "{operator}"],
    "sources show": ["sources", "show", "{path}", "--uid", "{operator}"],
    "sinks list": ["sinks", "list", "{path}", "--uid", "{operator}"],
    "rescale": ["rescale", "{path}", "{new}", "--uid", "{operator}=256", "--dry-run"],
    "uid": ["uid", "{path}", "{new}", "{operator}=sums", "--dry-run"],
    "drop": ["drop", "{path}", "{new}", "--uid", "{operator}", "--dry-run"],
    "drop --state": ["drop", "{path}", "{new}", "--uid", "{operator}", "--state", "accState", "--dry-run"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(path: str, ambiguous: str, tmp_path: Path, command: str) -> None:
    def call(snapshot: str, operator: str) -> Result:
        words = {"path": snapshot, "operator": operator, "new": str(tmp_path / "new")}
        return run(*(word.format(**words) for word in COMMANDS[command]))

    by_id = call(path, ID)
    assert by_id.exit_code == 0, by_id.output
    for way in WAYS:
        result = call(path, way)
        assert (result.exit_code, result.output) == (0, by_id.output)
    several = call(ambiguous, "Flat Map")
    assert several.exit_code == 2
    assert "Flat Map (feed-a), Flat Map (feed-b), Flat Map (feed-c)" in several.stderr
    unknown = call(path, "GroupAgregate[4]")
    assert unknown.exit_code == 2
    assert "did you mean GroupAggregate[4] (90bea66d)?" in unknown.stderr


@pytest.mark.parametrize("command", ["ls", "states"])
def test_lists_show_names_and_print_ids_uids_and_names_as_json(path: str, command: str) -> None:
    text = run(command, path).stdout
    assert SHOWN in text
    assert ID not in text
    rows = json.loads(run(command, path, "-o", "json").stdout)
    first = next(r for r in rows if r["operator"] == ID)
    assert (first["operator_id"], first["uid"], first["operator_name"]) == (ID, "", NAME)


@pytest.mark.parametrize(
    "arguments", [["info"], ["files"], ["stats"], ["check", "--flink", "2.3"], ["sources", "list"]]
)
def test_commands_show_names(path: str, arguments: list[str]) -> None:
    result = run(*arguments, path)
    assert "(" in result.stdout
    assert ID not in result.stdout


def test_errors_name_the_operator(path: str) -> None:
    failed = run("head", path, "90be", "accState", "--columns", '{"accState": ["one"]}')
    assert failed.exit_code == 2
    failed = run("head", path, "90be", "--keys", "[1]")
    assert SHOWN in failed.stderr


def test_the_browser_shows_names(path: str) -> None:
    import asyncio

    from textual.widgets import Tree

    from statetool.cli.read.browser import Browser, about_table

    async def labels() -> list[str]:
        app = Browser(statetool.load(path))
        async with app.run_test(size=(120, 30)):
            return [str(node.label) for node in app.query_one(Tree).root.children]

    assert SHOWN in asyncio.run(labels())
    assert about_table(statetool.load(path)["90be"], "accState")[0].startswith(f"{SHOWN} accState: value of RowData")


def test_notebooks_show_names(sp: Savepoint) -> None:
    assert SHOWN in sp._repr_html_()
    assert SHOWN in sp[NAME]._repr_html_()
    assert SHOWN in repr(sp[NAME])


def test_the_report_shows_names(sp: Savepoint, tmp_path: Path) -> None:
    sp.report(str(tmp_path / "report.html"))
    assert SHOWN in (tmp_path / "report.html").read_text()


def test_every_record_of_an_operator_has_its_name(sp: Savepoint) -> None:
    rows: list[Any] = [*sp.metadata_rows("states"), *sp.metadata_rows("files"), *sp.metadata_rows("key_groups")]
    statistics = sp.stats()
    rows += [r for table in statistics.tables for r in statistics.rows(table)]
    rows += sp.connector_rows("sources")
    assert {type(r).__name__ for r in rows} >= {"StateInfo", "FileRow", "KeyGroupRow", "SizeRow", "SourceRow"}
    names = {o.label: o.label.name for o in sp.inventory.operators.values()}
    assert all(r.operator_name == names[r.operator] for r in rows)
    assert {(type(e), str(e.where.operator)) for e in [_failure(sp)]} == {(UnknownNameError, ID)}


def _failure(sp: Savepoint) -> StatetoolError:
    with pytest.raises(StatetoolError) as caught:
        sp[NAME].to_arrow("none")
    return caught.value
