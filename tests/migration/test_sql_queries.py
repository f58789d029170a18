"""Changed SQL queries: verdicts on the pairs that real Flink judged (``tests/support/flink/sql_changes.py``), and how columns are computed."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import statetool
from statetool.errors import EncodeError, UnsupportedError
from statetool.saving.rekeying.rows import RowMerge
from statetool.serializers.sql.logical_types import SqlType
from statetool.sql_plans.compiled_plan import ROWS_BEFORE, CompiledPlan
from statetool.sql_plans.derived import derived_columns, missing_source
from statetool.sql_plans.groups import column_rule
from tests.support.corpora.archives import unpack
from tests.support.flink.sql_changes import ARCHIVE, RESULTS, combinations_of, decide, folder_of, open_savepoint
from tests.support.flink.sql_pairs import PAIRS
from tests.support.flink.sql_queries import Pair

#: Each derives the verdicts of a part of the pairs again.
_RELEASES = ("1.20.5", "2.1.3", "2.3.0")
#: If Flink counts ranks, it keeps a row after the last rank until the next one comes.
_WITH_MORE_ROWS = (
    "tops: fewer rows with ranks",
    "tops: fewer rows, ranks added",
    "tops: from the second, fewer rows",
    "tops: updated: fewer rows with ranks",
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("sql-changes"))


def table() -> list[dict[str, str]]:
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def sides(stored: Path, release: str, pair: Pair) -> tuple[statetool.Savepoint, statetool.Savepoint]:
    old, new = (
        open_savepoint(stored / release / folder_of(*side))
        for side in ((pair.old, pair.old_config), (pair.new, pair.new_config))
    )
    return old, new


def pair_called(name: str) -> Pair:
    return next(p for p in PAIRS if p.name == name)


def test_flink_confirms_every_verdict() -> None:
    """What restores or is converted has the results of the new query from the start. What needs a choice has them if nothing was invented."""
    rows = table()
    wrong = [r for r in rows if r["verdict"] in ("restores", "converted") and r["flink_says"].split(",")[0] != "same"]
    assert wrong == []
    # The order of these is the time at which Flink saw the row.
    others = {r["pair"] for r in rows if r["flink_says"] == "same, other state"}
    assert others == {"group: FIRST_VALUE and LAST_VALUE change places", *_WITH_MORE_ROWS}
    assert [r for r in rows if r["verdict"] == "error"] == []
    assert {r["pair"] for r in rows} == {p.name for p in PAIRS}
    judged = {(r["flink"], r["backend"], r["pair"]) for r in rows}
    assert judged == {(*combination, pair.name) for pair in PAIRS for combination in combinations_of(pair)}
    assert len(judged) == len(rows)


@pytest.mark.parametrize("release", _RELEASES)
def test_verdicts_are_those_of_the_table(stored: Path, release: str) -> None:
    """Each release derives the verdicts of a part of the pairs, for one of its backends."""
    known = {(r["flink"], r["backend"], r["pair"]): (r["verdict"], r["reason"]) for r in table()}
    for number, pair in enumerate(PAIRS):
        combinations = combinations_of(pair)
        job = combinations[number % len(combinations)]
        if job[0] == release:
            assert decide(*sides(stored, release, pair), pair, None, job) == known[*job, pair.name], pair.name


@pytest.mark.parametrize(
    ("table", "differs"), [("`shop`.`db`.`returns`", True), ("*anonymous_datastream_source$7*", False)]
)
def test_rows_of_another_table_are_told(stored: Path, tmp_path: Path, table: str, differs: bool) -> None:
    """A query over another table with the same columns has other rows. Names that Flink gives to tables differ in each run."""
    old, _ = sides(stored, "2.3.0", pair_called("keys: coarser"))
    plan = Path(old.path) / "plan.json"
    own = "`default_catalog`.`default_database`.`orders`"
    renamed = {}
    for name, text in (("old", own if differs else table.replace("7", "3")), ("new", table)):
        renamed[name] = tmp_path / f"{name}.json"
        renamed[name].write_text(
            plan.read_text().replace(own, text).replace('"nullable"', '"nullable" ' if name == "new" else '"nullable"')
        )
    first, second = (statetool.load(old.path, columns_from_plan=str(file)) for file in renamed.values())
    checked = statetool.check(first, second)
    assert any(table in warning for warning in checked.warnings) == differs
    assert checked.ok != differs


def test_sides_of_a_join_that_change_places_are_told(stored: Path) -> None:
    name = next(p.name for p in PAIRS if p.name.startswith("join: "))
    old, _ = sides(stored, "2.3.0", pair_called(name))
    text = (Path(old.path) / "plan.json").read_text()
    swapped = text.replace("`orders`", "`?`").replace("`shops`", "`orders`").replace("`?`", "`shops`")
    plans = [CompiledPlan(t) for t in (text, swapped)]
    (join,) = (n for n in plans[0].nodes if plans[0].kind(n) == "join")
    before, after = (plan.settings(join)[ROWS_BEFORE] for plan in plans)
    assert before != after
    assert before == after.replace("`orders`", "`?`").replace("`shops`", "`orders`").replace("`?`", "`shops`")


def test_a_view_that_the_new_job_lacks_is_refused(stored: Path, tmp_path: Path) -> None:
    """Its values would become a state that nobody reads."""
    old, new = sides(stored, "2.3.0", pair_called("group: DISTINCT changes places"))
    views = [s for s in new["4_group-aggregate"].states if s.startswith("distinctAcc")]
    statetool.drop(new, str(tmp_path / "lacking"), states={"4_group-aggregate": views})
    lacking = statetool.load(str(tmp_path / "lacking"), columns_from_plan=str(Path(new.path) / "plan.json"))
    with pytest.raises(UnsupportedError, match="the new job has no state"):
        statetool.migrate(old, str(tmp_path / "dst"), to=lacking)


def test_groups_that_become_one_are_merged(stored: Path, tmp_path: Path) -> None:
    old, new = sides(stored, "2.3.0", pair_called("keys: coarser"))
    (warning,) = statetool.check(old, new).warnings
    assert "the columns of the key were (shop, city) and are (shop)" in warning
    statetool.migrate(old, str(tmp_path / "new"), to=new)
    read = [statetool.load(p) for p in (str(tmp_path / "new"), new.path)]
    totals = [
        sorted(r["key"]["f0"] + str(r["value"]) for r in sp["4_group-aggregate"].to_arrow("accState").to_pylist())
        for sp in read
    ]
    assert len(totals[0]) == 3
    assert totals[0] == totals[1]
    plan = statetool.plan_migration(old, new)
    statetool.write_plan(plan, str(tmp_path / "plan.json"))
    with pytest.raises(UnsupportedError, match="no plan stores a change of keys"):
        statetool.migrate(old, str(tmp_path / "no"), plan=str(tmp_path / "plan.json"))


def test_views_that_moved_are_kept_in_a_plan(stored: Path, tmp_path: Path) -> None:
    old, new = sides(stored, "2.3.0", pair_called("group: DISTINCT changes places"))
    statetool.write_plan(statetool.plan_migration(old, new), str(tmp_path / "plan.json"))
    statetool.migrate(old, str(tmp_path / "a"), to=new)
    statetool.migrate(old, str(tmp_path / "b"), plan=str(tmp_path / "plan.json"))
    both = [statetool.load(str(tmp_path / name)) for name in "ab"]
    assert both[0].diff(both[1]).equal
    before = old["4_group-aggregate"].to_arrow("distinctAcc_0").num_rows
    assert both[0]["4_group-aggregate"].to_arrow("distinctAcc_1").num_rows == before > 0
    refused = statetool.plan_migration(old, new).for_catching_up().refused
    assert all("cannot be caught up with" in text for text in refused)
    assert len(refused) == 4


def test_other_rows_need_consent(stored: Path, tmp_path: Path) -> None:
    old, new = sides(stored, "2.3.0", pair_called("group: WHERE added"))
    table = "the table `default_catalog`.`default_database`.`orders`"
    words = f"the source of its rows was {table} and is qty > 2 and {table}"
    assert words in statetool.check(old, new).warnings[0]
    with pytest.raises(UnsupportedError, match="lacks others"):
        statetool.migrate(old, str(tmp_path / "no"), to=new)
    statetool.migrate(old, str(tmp_path / "new"), to=new, accept=["4_group-aggregate.rows"])


def test_columns_that_follow_from_others() -> None:
    old = ["sum(x)", "count(x)", "avg_sum(y) filter c", "avg_count(y) filter c", "sum($f3)", "count(*)"]
    new = [
        "avg_sum(x)",
        "avg_count(x)",
        "sum(y) filter c",
        "count(y) filter c",
        "sum(y)",
        "avg_sum($f3)",
        "avg_count(z)",
    ]
    found = {name: (d.source, d.zero_for_null, d.null_if_zero) for name, d in derived_columns(old, new).items()}
    assert found == {
        "avg_sum(x)": ("sum(x)", True, None),
        "avg_count(x)": ("count(x)", False, None),
        "sum(y) filter c": ("avg_sum(y) filter c", False, "avg_count(y) filter c"),
        "count(y) filter c": ("avg_count(y) filter c", False, None),
    }
    assert "does not tell the rows that are late" in missing_source("sum(x) filter late", old)
    assert "that its filter left out" in missing_source("avg_sum(y)", old)
    assert "the state lacks count(z)" in missing_source("avg_count(z)", old)
    assert missing_source("max(x)", old) == "the state does not have the rows of the past"


def test_rules_of_columns() -> None:
    number, text, fine = SqlType(root="BIGINT"), SqlType(root="VARCHAR"), SqlType(root="TIMESTAMP", precision=9)
    given = [("sum(x)", number), ("count(*)", number), ("min(x)", text), ("max(x)", number)]
    assert [column_rule(*one) for one in given] == ["sum", "sum", "min", "max"]
    unknown = [
        ("count(distinct x)", number),
        ("sum(x)", text),
        ("max(t)", fine),
        ("first_value(x)", number),
        ("my_sum(x)", number),
    ]
    assert [column_rule(*one) for one in unknown] == [None] * 5


def test_rows_are_merged_column_by_column() -> None:
    kind = pa.struct(
        {"s": pa.int64(), "d": pa.decimal128(38, 2), "n": pa.string(), "x": pa.bool_(), "_kind": pa.string()}
    )
    a = pa.array([(1, Decimal("0.50"), "é", True, "+I"), (None, None, None, None, "+I")], kind)
    b = pa.array([(2, Decimal("9.75"), "z", False, "+I"), (7, None, "a", False, "+I")], kind)
    merged = RowMerge(("sum", "sum", "min", "max")).merge(a, b).to_pylist()
    assert [tuple(row.values()) for row in merged] == [
        (3, Decimal("10.25"), "z", True, "+I"),
        (7, None, "a", False, "+I"),
    ]
    most = pa.array([(2**63 - 1, None, None, None, "+I")], kind)
    with pytest.raises(EncodeError, match="overflow"):
        RowMerge(("sum",)).merge(most, most)
