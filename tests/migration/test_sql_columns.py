"""The columns of SQL aggregates are matched by the names of the compiled plans of both jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import statetool
from statetool.cli.main import cli
from statetool.errors import OptionError, UnknownNameError, UnsupportedError
from statetool.sql_plans.aggregates import PlanAggregates, changed_key
from tests.support.corpora.sql_plans import aggregate, aggregation_plan, call, literal, ref

UID = "4_group-aggregate"
_TWICE, _MORE = (call(f"${op}$1", ref(2), literal(n, "INT NOT NULL")) for op, n in (("*", 2), ("+", 1)))
COUNT, TOTAL, LEAST = aggregate("COUNT"), aggregate("SUM", 1), aggregate("MIN", 1)


def savepoint(folder: Path, name: str, plan: str, rows: list[dict[str, int]], *, id: int = 0) -> statetool.Savepoint:
    """Write a savepoint of an aggregation over BIGINT columns, and open it with its plan."""
    columns = {n: pa.int64() for n in rows[0]}
    table = pa.table(
        {
            "key": pa.array([{"shop": f"s{i}"} for i in range(len(rows))], pa.struct({"shop": pa.string()})),
            "accState": pa.array(rows, pa.struct(columns)),
        }
    )
    kinds = f"ROW<{', '.join(f'{n} BIGINT' for n in columns)}>"
    state = statetool.bootstrap_keyed_state(
        table, key_type="ROW<shop STRING>", states={"accState": statetool.value(kinds)}
    )
    (folder / f"{name}.json").write_text(plan)
    path = folder / name
    statetool.SavepointWriter.new(checkpoint_id=id).with_operator(UID, state).write(str(path), flink_version="2.3")
    return statetool.load(str(path), columns_from_plan=str(folder / f"{name}.json"))


def run(folder: Path, *words: str) -> Result:
    plans = [w for side in "ab" for w in (f"--columns-from-plan-{side}", str(folder / f"{side}.json"))]
    return CliRunner().invoke(cli, [*words, *plans])


def values(path: Path) -> list[tuple[int | None, ...]]:
    rows = statetool.load(str(path))[UID].to_arrow("accState").to_pylist()
    return sorted(tuple(v for n, v in r["value"].items() if n != "_kind") for r in rows)


def test_columns_are_carried_over_by_name(tmp_path: Path) -> None:
    """COUNT, SUM, MIN and SUM(amount * 2) became SUM(amount + 1), SUM(amount * 2), SUM and COUNT."""
    old = aggregation_plan([COUNT, TOTAL, LEAST, aggregate("SUM", 2)], [_TWICE])
    new = aggregation_plan([aggregate("SUM", 2), aggregate("SUM", 3), TOTAL, COUNT], [_MORE, _TWICE])
    a = savepoint(tmp_path, "a", old, [{"c": 1, "s": 20, "m": 3, "t": 40}, {"c": 2, "s": 5, "m": 1, "t": 10}])
    b = savepoint(tmp_path, "b", new, [{"x": 0, "t": 0, "s": 0, "c": 0}])
    assert statetool.check(a, b).verdict == "fully"
    (warning,) = statetool.check(a, b).warnings
    assert (
        "by position: count(*) as sum(amount + 1), sum(amount) as sum(amount * 2), min(amount) as sum(amount)"
        in warning
    )
    shown = run(tmp_path, "check", str(tmp_path / "a"), str(tmp_path / "b"))
    assert shown.exit_code == 1
    assert "if you decide what only you know" in " ".join(shown.output.split())
    assert "--dry-run" in shown.output
    state = f"{UID}.accState.value"
    plan = statetool.plan_migration(a, b)
    assert [(r.step, r.change, r.needs) for r in plan.rows] == [
        (f"{state}.sum(amount + 1)", "impossible", "correction"),
        (f"{state}.min(amount)", "drop", "acceptance"),
    ]
    with pytest.raises(UnsupportedError, match=r"sum\(amount \+ 1\).*--fill"):
        statetool.migrate(a, str(tmp_path / "no"), to=b, accept=[f"{state}.min(amount)"])
    words = [
        "migrate",
        str(tmp_path / "a"),
        str(tmp_path / "new"),
        "--to",
        str(tmp_path / "b"),
        "--accept",
        f"{state}.min(amount)",
    ]
    done = run(tmp_path, *words, "--fill", f"{state}.sum(amount + 1)=7")
    assert done.exit_code == 0, done.output
    assert values(tmp_path / "new") == [(7, 10, 5, 2), (7, 40, 20, 1)]
    # The plan has the names and choices, so that it needs no compiled plans.
    statetool.write_plan(plan.filling({f"{state}.sum(amount + 1)": None}), str(tmp_path / "plan.json"))
    record = json.loads((tmp_path / "plan.json").read_text())["states"][0]
    assert record["columns"]["after"] == {"accState": ["sum(amount + 1)", "sum(amount * 2)", "sum(amount)", "count(*)"]}
    statetool.migrate(
        str(tmp_path / "a"), str(tmp_path / "again"), plan=str(tmp_path / "plan.json"), accept=[f"{state}.min(amount)"]
    )
    assert values(tmp_path / "again") == [(None, 10, 5, 2), (None, 40, 20, 1)]


def test_catching_up_converts_by_the_same_names(tmp_path: Path) -> None:
    old, new = aggregation_plan([COUNT, TOTAL]), aggregation_plan([TOTAL, COUNT])
    a = savepoint(tmp_path, "a", old, [{"c": 1, "s": 20}])
    b = savepoint(tmp_path, "b", new, [{"s": 0, "c": 0}])
    later = [{"c": 1, "s": 20}, {"c": 2, "s": 5}]
    (tmp_path / "later").mkdir()
    savepoint(tmp_path / "later", "a", old, later, id=1)
    assert (
        run(tmp_path, "migrate", str(tmp_path / "a"), str(tmp_path / "m"), "--to", str(tmp_path / "b")).exit_code == 0
    )
    words = [str(p) for p in (tmp_path / "m", tmp_path / "a", tmp_path / "later" / "a", tmp_path / "c")]
    # The migration needs no choice, so check prints the whole command.
    shown = run(tmp_path, "check", str(tmp_path / "a"), str(tmp_path / "b")).output
    assert f"migrate {tmp_path}/a NEW --to {tmp_path}/b --columns-from-plan-a {tmp_path}/a.json" in shown
    done = run(tmp_path, "catch-up", *words, "--to", str(tmp_path / "b"))
    assert done.exit_code == 0, done.output
    assert values(tmp_path / "c") == [(5, 2), (20, 1)]
    assert a.diff(b).equal is False


def test_unchanged_columns_are_not_converted(tmp_path: Path) -> None:
    """The query only has another name for its result: columns of the same expressions keep their bytes."""
    sides = [
        savepoint(tmp_path, name, aggregation_plan([COUNT, aggregate("SUM", 2)], [_TWICE]), [{"c": 1, "t": 2}]) for name in "ab"
    ]  # fmt: skip
    assert statetool.plan_migration(sides[0], sides[1]).states == ()
    assert statetool.check(sides[0], sides[1]).ok


def test_a_key_of_another_column_is_refused(tmp_path: Path) -> None:
    a = savepoint(tmp_path, "a", aggregation_plan([COUNT]), [{"c": 1}])
    b = savepoint(tmp_path, "b", aggregation_plan([COUNT], key="city"), [{"c": 1}])
    checked = statetool.check(a, b)
    assert not checked.ok
    assert "the columns of the key were (shop) and are (city)" in checked.warnings[0]
    assert "(shop) and are (city)" in statetool.plan_migration(a, b).refused[0]


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    old, new = aggregation_plan([COUNT, TOTAL]), aggregation_plan([TOTAL, COUNT])
    a = savepoint(tmp_path, "a", old, [{"c": 1, "s": 20}])
    savepoint(tmp_path, "b", new, [{"s": 0, "c": 0}])
    words = ["migrate", str(tmp_path / "a"), str(tmp_path / "x"), "--to", str(tmp_path / "b")]
    one = CliRunner().invoke(cli, [*words, "--columns-from-plan-a", str(tmp_path / "a.json")])
    assert one.exit_code == 2
    assert "--columns-from-plan-b FILE" in one.output
    for fill, expected in (
        ("op.s.x=1x", "not valid JSON"),
        (f"{UID}.other.x=1", "no state of the plan"),
        ("x", "FIELD=JSON"),
    ):
        wrong = run(tmp_path, *words, "--fill", fill)
        assert wrong.exit_code == 2, wrong.output
        assert expected in wrong.output
    unknown = run(tmp_path, *words, "--dry-run", "--fill", f"{UID}.accState.value.max(amount)=1")
    assert "the new type has no such field" in unknown.output
    with pytest.raises(UnknownNameError, match="no state of the plan"):
        statetool.migrate(a, str(tmp_path / "y"), to=a, fills={"x.y.z": 1})
    (tmp_path / "b.json").write_text(json.dumps({"nodes": [], "edges": []}))
    with pytest.raises(OptionError, match="the plan has no node"):
        statetool.check(a, statetool.load(str(tmp_path / "b"), columns_from_plan=str(tmp_path / "b.json")))


def test_columns_that_one_plan_does_not_name_are_not_matched_by_position(tmp_path: Path) -> None:
    """A plan that does not fit the row, such as that of another version of the query, names none of its columns."""
    old, new = aggregation_plan([COUNT, TOTAL]), aggregation_plan([COUNT, TOTAL, LEAST])
    a = savepoint(tmp_path, "a", old, [{"c": 1, "s": 20}])
    b = savepoint(tmp_path, "b", new, [{"s": 0, "c": 0}])
    reason = "new plan does not name the columns of accState, so its columns can only be matched by position"
    checked = statetool.check(a, b)
    assert not checked.ok
    (warning,) = checked.warnings
    assert warning.startswith(f"{UID}.accState: may_change: The {reason}.")
    assert (
        "Pass the plan of each snapshot's job"
        in run(tmp_path, "check", str(tmp_path / "a"), str(tmp_path / "b")).output
    )
    assert [f"{UID}.accState: the {reason}" in text for text in statetool.plan_migration(a, b).refused] == [True]
    with pytest.raises(UnsupportedError, match=f"the {reason}"):
        statetool.migrate(a, str(tmp_path / "no"), to=b)
    # The same without plans is the user's choice.
    assert statetool.plan_migration(str(tmp_path / "a"), str(tmp_path / "b")).refused == ()
    # Plans of one query, which leave the same columns without names, say that nothing moved.
    same = statetool.load(str(tmp_path / "a"), columns_from_plan=str(tmp_path / "b.json"))
    assert statetool.plan_migration(same, b).refused == ()


def test_plans_that_name_the_key_differently() -> None:
    key, other = (PlanAggregates(columns=c, views={}, query=q) for c, q in (({"key": ("shop",)}, "1"), ({}, "2")))
    assert changed_key(key, other) == "only the old plan names the columns of the key"
    assert changed_key(other, key) == "only the new plan names the columns of the key"
    assert changed_key(other, PlanAggregates(columns={}, views={}, query="3")) == ""


@pytest.mark.full
def test_columns_are_carried_over_by_name_on_spark(tmp_path: Path, spark: Any) -> None:
    old, new = aggregation_plan([COUNT, TOTAL]), aggregation_plan([TOTAL, COUNT])
    a = savepoint(tmp_path, "a", old, [{"c": i, "s": 10 * i} for i in range(300)])
    b = savepoint(tmp_path, "b", new, [{"s": 0, "c": 0}])
    statetool.migrate(a, str(tmp_path / "spark"), to=b, spark=spark)
    statetool.migrate(a, str(tmp_path / "here"), to=b)
    assert values(tmp_path / "spark") == values(tmp_path / "here") == sorted((10 * i, i) for i in range(300))


def _damaged(record: dict[str, Any], columns: Any) -> dict[str, Any]:
    return {**record, "states": [{**record["states"][0], "columns": columns}]}


@pytest.mark.parametrize(
    "columns", [3, {"before": 4}, {"before": {"accState": 5}}, {"before": {"accState": ["a"]}, "after": {}}]
)
def test_damaged_names_of_a_plan_are_our_errors(tmp_path: Path, columns: Any) -> None:
    old, new = aggregation_plan([COUNT, TOTAL]), aggregation_plan([TOTAL, COUNT])
    a = savepoint(tmp_path, "a", old, [{"c": 1, "s": 20}])
    b = savepoint(tmp_path, "b", new, [{"s": 0, "c": 0}])
    statetool.write_plan(statetool.plan_migration(a, b), str(tmp_path / "plan.json"))
    record = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "wrong.json").write_text(json.dumps(_damaged(record, columns)))
    with pytest.raises(OptionError, match=r"not a valid state|names for the"):
        statetool.migrate(a, str(tmp_path / "x"), plan=str(tmp_path / "wrong.json"))
