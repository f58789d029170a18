"""States that become another kind, and values of types that Flink itself cannot migrate."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool import flink
from statetool.errors import EncodeError, UnsupportedError
from statetool.migration.conversion import can_become
from tests.support.corpora.archives import HERE, unpack
from tests.support.snapshots.migrations import KEYS, steps, written
from tests.support.zoo import ZOO


def keyed(path: Path, column: pa.Array, kind: Any) -> statetool.Savepoint:
    table = pa.table({"key": KEYS, "s": column})
    state = statetool.bootstrap_keyed_state(table, states={"s": kind})
    return statetool.SavepointWriter.new().with_operator("op", state).write(str(path), flink_version="2.3")


def operator_state(path: Path, mode: str, values: list[int]) -> statetool.Savepoint:
    bootstrap = statetool.bootstrap_union_state if mode == "union" else statetool.bootstrap_list_state
    state = bootstrap("s", pa.table({"value": values}))
    return (
        statetool.SavepointWriter.new().with_operator("op", state, parallelism=2).write(str(path), flink_version="2.3")
    )


def test_a_value_becomes_a_list_of_one_element(tmp_path: Path) -> None:
    """The type of the element may change too."""
    old = keyed(tmp_path / "old", pa.array([1, 2, None], pa.int32()), statetool.value("INT"))
    job = keyed(tmp_path / "job", pa.array([[5]] * 3, pa.list_(pa.int64())), statetool.list_of("BIGINT"))
    plan = statetool.migrate(old, str(tmp_path / "new"), to=job)
    assert [(r.step, r.change, r.needs) for r in plan.rows] == [
        ("op.s.value", "retype", "nothing"), ("op.s.value", "widen", "nothing")
    ]  # fmt: skip
    new = statetool.load(str(tmp_path / "new"))
    rows = new["op"].to_arrow("s").to_pylist()
    assert sorted((r["list_index"], r["value"]) for r in rows) == [(0, 1), (0, 2)]
    assert statetool.check(new, job).verdict == "fully"


def test_a_reducing_state_becomes_an_aggregating_state(tmp_path: Path) -> None:
    old = keyed(tmp_path / "old", pa.array([1, 2, None]), statetool.reducing("BIGINT"))
    job = keyed(tmp_path / "job", pa.array([7, 7, 7]), statetool.aggregating("BIGINT"))
    statetool.migrate(old, str(tmp_path / "new"), to=job)
    assert statetool.check(str(tmp_path / "new"), job).verdict == "fully"


@pytest.mark.parametrize("kind", ["reducing", "aggregating"])
def test_a_reducing_or_aggregating_state_becomes_a_value(tmp_path: Path, kind: str) -> None:
    old = keyed(tmp_path / "old", pa.array([1, 2, None]), getattr(statetool, kind)("BIGINT"))
    job = keyed(tmp_path / "job", pa.array([7, 7, 7]), statetool.value("BIGINT"))
    statetool.migrate(old, str(tmp_path / "new"), to=job)
    new = statetool.load(str(tmp_path / "new"))
    assert [s.kind for s in new.metadata_rows("states")] == ["value"]
    assert sorted(new["op"].to_arrow("s")["value"].to_pylist()) == [1, 2]
    assert statetool.check(new, job).verdict == "fully"
    # Back, the function would merge values that it did not make: accumulators never, reduced values if the user agrees.
    back = statetool.plan_migration(job, old)
    assert bool(back.refused) is (kind == "aggregating")
    assert [row.needs for row in back.rows] == ["acceptance"] * (kind == "reducing")


def test_a_value_that_is_a_map_becomes_a_map_state_and_back(tmp_path: Path) -> None:
    """The types of keys and values may change too. An empty map has no entries."""
    small = [[("a", 1), ("b", None)], [("c", 3)], []]
    value = keyed(tmp_path / "value", _maps(small, pa.int32()), statetool.value(flink.map_of("STRING", "INT")))
    state = keyed(tmp_path / "state", _maps([[("x", 1)]] * 3, pa.int64()), statetool.map_of("STRING", "BIGINT"))
    plan = statetool.migrate(value, str(tmp_path / "new"), to=state)
    assert [(r.step, r.change, r.needs) for r in plan.rows] == [
        ("op.s.value", "retype", "nothing"), ("op.s.map_value", "widen", "nothing")
    ]  # fmt: skip
    new = statetool.load(str(tmp_path / "new"))
    rows = new["op"].to_arrow("s").to_pylist()
    entries = [(1, "a", 1), (1, "b", None), (2, "c", 3)]
    assert sorted((r["key"], r["map_key"], r["value"]) for r in rows) == entries
    assert statetool.check(new, state).verdict == "fully"

    job = keyed(tmp_path / "job", _maps(small, pa.int64()), statetool.value(flink.map_of("STRING", "BIGINT")))
    statetool.migrate(new, str(tmp_path / "back"), to=job)
    back = statetool.load(str(tmp_path / "back"))
    rows = back["op"].to_arrow("s").sort_by("key").to_pylist()
    assert [sorted(r["value"]) for r in rows] == small[:2]
    assert statetool.check(back, job).verdict == "fully"


def test_a_state_that_is_no_map_does_not_become_a_map_state(tmp_path: Path) -> None:
    value = keyed(tmp_path / "value", pa.array([1, 2, 3]), statetool.value("BIGINT"))
    state = keyed(tmp_path / "state", _maps([[("x", 1)]] * 3, pa.int64()), statetool.map_of("STRING", "BIGINT"))
    for old, new in ((value, state), (state, value)):
        assert statetool.plan_migration(old, new).refused


def _maps(rows: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(rows, pa.map_(pa.string(), kind))


@pytest.mark.parametrize(("before", "after"), [("union", "list"), ("list", "union")])
def test_list_and_union_become_each_other(tmp_path: Path, before: str, after: str) -> None:
    old, job = operator_state(tmp_path / "old", before, [1, 2, 3, 3]), operator_state(tmp_path / "job", after, [9])
    plan = statetool.migrate(old, str(tmp_path / "new"), to=job)
    assert [(r.step, r.change, r.needs) for r in plan.rows] == [("op.s.element", "retype", "nothing")]
    new = statetool.load(str(tmp_path / "new"))
    assert [s.kind for s in new.metadata_rows("states")] == [after]
    assert sorted(new["op"].to_arrow("s")["value"].to_pylist()) == [1, 2, 3, 3]
    assert statetool.check(new, job).verdict == "fully"


def convert(tmp_path: Path, old: Any, values: list[Any], new: Any, empty: list[Any], *accept: str) -> list[Any]:
    src = written(tmp_path / "old", old, pa.array([*values, *[None] * (3 - len(values))]))
    job = written(tmp_path / "job", new, pa.array(empty))
    statetool.migrate(src, str(tmp_path / "new"), to=job, accept=accept)
    rows = statetool.load(str(tmp_path / "new"))["op"].to_arrow("s", nanos="always").sort_by("key").to_pylist()
    return [r["value"] for r in rows]


@pytest.mark.parametrize("kinds", [("broadcast", "list"), ("broadcast", "union"), ("list", "broadcast")])
def test_broadcast_state_does_not_become_another_kind(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """Each subtask has all of its entries, so elements of a list would multiply."""

    def of_kind(folder: str, kind: str) -> statetool.Savepoint:
        if kind != "broadcast":
            return operator_state(tmp_path / folder, kind, [1, 2])
        state = statetool.bootstrap_broadcast_state("s", pa.table({"key": ["a"], "value": [1]}))
        writer = statetool.SavepointWriter.new().with_operator("op", state, parallelism=2)
        return writer.write(str(tmp_path / folder), flink_version="2.3")

    old, job = of_kind("old", kinds[0]), of_kind("job", kinds[1])
    (reason,) = statetool.plan_migration(old, job).refused
    assert "a broadcast state became" in reason or "state became a broadcast state" in reason
    assert "each subtask stores whole" in reason
    with pytest.raises(UnsupportedError, match="each subtask stores whole"):
        statetool.migrate(old, str(tmp_path / "new"), to=job)
    check = statetool.check(old, job)
    assert (check.verdict, check.ok) == ("fully", False)
    assert "the new state starts empty" in check.warnings[0]


def test_an_instant_becomes_milliseconds(tmp_path: Path) -> None:
    early, late = (
        datetime(1969, 12, 31, 23, 59, 59, 999_000, timezone.utc),
        datetime(2024, 2, 29, 1, 2, 3, 4000, timezone.utc),
    )
    expected = [round(t.timestamp() * 1000) for t in (early, late)]
    assert convert(tmp_path, flink.INSTANT, [early, late], "BIGINT", [1, 1, 1], "op.s.value") == expected
    with pytest.raises(EncodeError, match="digits below the millisecond"):
        convert(tmp_path / "b", flink.INSTANT, [early.replace(microsecond=1)], "BIGINT", [1, 1, 1], "op.s.value")


def test_a_date_becomes_the_start_of_its_day(tmp_path: Path) -> None:
    days, noon = [date(1969, 12, 31), date(2024, 2, 29)], datetime(2024, 1, 1, 12)
    values = convert(tmp_path, flink.LOCAL_DATE, days, flink.LOCAL_DATE_TIME, [noon] * 3)
    assert values == [datetime(d.year, d.month, d.day) for d in days]


def test_a_big_decimal_becomes_a_double_if_that_is_accepted(tmp_path: Path) -> None:
    assert steps(flink.BIG_DECIMAL, flink.DOUBLE) == [("value", "narrow", True)]
    values = convert(tmp_path, flink.BIG_DECIMAL, ["1.10", "-3"], "DOUBLE", [0.5] * 3, "op.s.value")
    assert values == [1.1, -3.0]
    with pytest.raises(EncodeError, match="larger than all doubles"):
        convert(tmp_path / "b", flink.BIG_DECIMAL, ["1e400"], "DOUBLE", [0.5] * 3, "op.s.value")


def test_more_columns_of_a_row_are_null(tmp_path: Path) -> None:
    """The kind of a row was taken for the column after its last one."""
    old, new = flink.row("BIGINT", "STRING"), flink.row("BIGINT", "STRING", "STRING")
    # Rows have no names of columns, so that the mapping by position has to be accepted.
    assert steps(old, new) == [("value", "positions", True), ("value.f2", "add", False)]


def test_contents_of_windows_do_not_become_another_kind() -> None:
    """A reduced record is not the list of the records of a window."""
    operator = statetool.load(ZOO).inventory.operator("win-tumble-reduce")
    contents = operator.keyed_states["window-contents"][1]
    assert contents.kind == "reducing"
    for kind, may in (("REDUCING", True), ("VALUE", False), ("LIST", False)):
        other = replace(contents, options={**contents.options, "KEYED_STATE_TYPE": kind})
        assert can_become(contents, other) is may


@pytest.mark.parametrize(("old", "new"), [("w-delta", "w-evict"), ("w-evict", "w-delta")])
def test_windows_get_or_lose_an_evictor(tmp_path: Path, old: str, new: str) -> None:
    """With an evictor, elements of windows are records with a timestamp."""
    case = unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path / "jobs") / "v2_3_0-all-rocks"
    whole = str(max((case / "snapshot").rglob("_metadata")).parent)
    for uid in (old, new):
        statetool.drop(whole, str(tmp_path / uid), [o for o in statetool.load(whole).operators if o != uid])
    statetool.change_uids(str(tmp_path / old), str(tmp_path / "before"), {old: new})
    before, job = (statetool.load(str(tmp_path / n)) for n in ("before", new))
    state = f"{new}.window-contents.element.timestamp"
    statetool.migrate(before, str(tmp_path / "after"), to=job, accept=[state])
    after = statetool.load(str(tmp_path / "after"))
    assert all(s.verdict == "fully" for s in statetool.check(after, job).operators[0].states)
    rows = [[list(r.values()) for r in sp[new].to_arrow("window-contents").to_pylist()] for sp in (before, after)]
    assert rows[0]
    values = [
        [row[-1]["value"] if isinstance(row[-1], dict) and "element" in row[-1] else row[-1] for row in r] for r in rows
    ]
    assert values[0] == values[1]
