"""Changed SQL queries: verdicts on the pairs that real Flink judged (``tests/support/flink/sql_changes.py``), and how columns are computed."""

from __future__ import annotations

import csv
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import statetool
from statetool.errors import EncodeError, UnsupportedError
from statetool.saving.rekeying.rows import RowMerge
from statetool.serializers.sql.logical_types import SqlType
from statetool.sql_plans.derived import derived_columns, missing_source
from statetool.sql_plans.groups import column_rule
from tests.support.corpora.archives import unpack
from tests.support.flink.sql_changes import ARCHIVE, RESULTS, decide, folder_of, open_savepoint
from tests.support.flink.sql_queries import PAIRS, Pair

#: Pairs whose verdicts are derived again here; the table has all.
_EVERY = 3


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
    assert others == {"group: FIRST_VALUE and LAST_VALUE change places"}
    assert [r for r in rows if r["verdict"] == "error"] == []
    assert {r["pair"] for r in rows} == {p.name for p in PAIRS}
    by_backend = Counter((r["flink"], r["backend"]) for r in rows)
    assert len(set(by_backend.values())) == 1, by_backend


@pytest.mark.parametrize("release", ["1.20.5", "2.3.0"])
def test_verdicts_are_those_of_the_table(stored: Path, release: str) -> None:
    """Both backends have the same verdicts. Each release derives a part of them."""
    known = {(r["pair"], r["verdict"], r["reason"]) for r in table() if r["flink"] == release}
    for number, pair in enumerate(PAIRS):
        if number % _EVERY == len(release) % 2:
            assert (pair.name, *decide(*sides(stored, release, pair), pair, None)) in known


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
    assert "the condition of its rows was none and is qty > 2" in statetool.check(old, new).warnings[0]
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
