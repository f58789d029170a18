"""Type migration of states, exactly and value by value; a lossy change is rejected unless it is accepted explicitly."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool import flink
from statetool.cli.main import cli
from statetool.columns.types import arrow_type
from statetool.errors import EncodeError, OptionError, TargetExistsError, UnknownNameError, UnsupportedError
from statetool.migration.choices import Choices
from statetool.migration.compiling import EXACT, Compiler
from statetool.migration.sides import TypeAtPath
from statetool.serializers.core.base import Serializer
from statetool.serializers.kryo.serializer import KryoSerializer
from statetool.types import StructType
from statetool.types.declared import TypeContext
from tests.support.snapshots.migrations import KEYS, NEW, NO_ORDERS, OLD, ORDERS, steps, written


def migrated(tmp_path: Path, old: Any, values: Any, new: Any, empty: Any, **options: Any) -> list[Any]:
    """Return the values of a state after migration, by key."""
    src, job = written(tmp_path / "old", old, values), written(tmp_path / "new-job", new, empty)
    statetool.migrate(src, str(tmp_path / "migrated"), to=job, **options)
    savepoint = statetool.load(str(tmp_path / "migrated"))
    assert statetool.check(savepoint, job).verdict == "fully"
    assert savepoint["op"].to_arrow(states=["other"]).sort_by("key") == src["op"].to_arrow(states=["other"]).sort_by(
        "key"
    )
    values = savepoint["op"].to_arrow(states=["s"]).sort_by("key")["s"].to_pylist()
    return list(values)


def test_fields_are_renamed_added_widened_and_dropped_by_name(tmp_path: Path) -> None:
    values = migrated(
        tmp_path, OLD, ORDERS, NEW, NO_ORDERS, renames={"op.s.value.city": "town"}, accept=["op.s.value.gone"]
    )
    assert values == [{"city": "a", "extra": 0, "n": 1}, {"city": "", "extra": 0, "n": None}]


def test_what_is_lost_is_refused_by_name_until_it_is_accepted(tmp_path: Path) -> None:
    src, job = written(tmp_path / "old", OLD, ORDERS), written(tmp_path / "new-job", NEW, NO_ORDERS)
    with pytest.raises(
        UnsupportedError,
        match=r"would lose values: op\.s\.value\.gone: drop: its values are dropped; op\.s\.value\.town",
    ):
        statetool.migrate(src, str(tmp_path / "migrated"), to=job, accept=[])
    assert not (tmp_path / "migrated").exists()
    with pytest.raises(UnknownNameError, match=r"no step 'op\.s\.value\.gon'.*op\.s\.value\.gone"):
        statetool.migrate(src, str(tmp_path / "migrated"), to=job, accept=["op.s.value.gon"])


def test_a_plan_is_written_corrected_and_read(tmp_path: Path) -> None:
    src, job = written(tmp_path / "old", OLD, ORDERS), written(tmp_path / "new-job", NEW, NO_ORDERS)
    path = str(tmp_path / "plan.json")
    statetool.write_plan(statetool.plan_migration(src, job), path)
    with pytest.raises(TargetExistsError):
        statetool.write_plan(statetool.plan_migration(src, job), path)
    plan = json.loads(Path(path).read_text())
    (state,) = plan["states"]
    assert [s["path"] for s in state["steps"] if s["accept"] is False] == ["value.gone", "value.town"]
    state["from"] = {"value.city": "town"}
    state["fills"] = {"value.extra": 9}
    for step in state["steps"]:
        step["accept"] = True if step["path"] == "value.gone" else step["accept"]
    Path(path).write_text(json.dumps(plan))
    dry = statetool.migrate(src, str(tmp_path / "migrated"), plan=path, dry_run=True)
    assert {row.needs for row in dry.rows} == {"nothing"}
    statetool.migrate(src, str(tmp_path / "migrated"), plan=path)
    rows = statetool.load(str(tmp_path / "migrated"))["op"].to_arrow(states=["s"]).sort_by("key")["s"].to_pylist()
    assert rows == [{"city": "a", "extra": 9, "n": 1}, {"city": "", "extra": 9, "n": None}]
    Path(path).write_text("{}")
    with pytest.raises(OptionError, match="not a migration plan"):
        statetool.migrate(src, str(tmp_path / "again"), plan=path)


def test_narrowing_refuses_what_does_not_fit_and_names_its_key(tmp_path: Path) -> None:
    with pytest.raises(EncodeError, match=r"does not fit int32.*of key 2") as error:
        migrated(
            tmp_path, "BIGINT", pa.array([1, 1 << 31, 3]), "INT", pa.array([1, 2, 3], pa.int32()), accept=["op.s.value"]
        )
    assert error.value.where.state == "s"
    assert not (tmp_path / "migrated").exists()


@pytest.mark.parametrize(
    ("old", "values", "new", "empty", "expected"),
    [
        ("INT", pa.array([1, -2, None], pa.int32()), "DOUBLE", pa.array([0.5] * 3), [1.0, -2.0]),
        ("BIGINT", pa.array([1, -(1 << 62), None]), "STRING", pa.array(["a"] * 3), ["1", str(-(1 << 62))]),
        (
            flink.list_of("INT"),
            pa.array([[1, 2], [], None], pa.list_(pa.int32())),
            flink.array_of("BIGINT", "java.lang.Long"),
            pa.array([[1]] * 3, pa.list_(pa.int64())),
            [[1, 2], []],
        ),
        (
            flink.map_of("SMALLINT", "STRING"),
            pa.array([[(1, "a")], [], None], pa.map_(pa.int16(), pa.string())),
            flink.map_of("BIGINT", "STRING"),
            pa.array([[(1, "a")]] * 3, pa.map_(pa.int64(), pa.string())),
            [[(1, "a")], []],
        ),
    ],
    ids=["float", "text", "array", "map"],
)
def test_values_become_others_exactly(
    tmp_path: Path, old: Any, values: Any, new: Any, empty: Any, expected: Any
) -> None:
    assert migrated(tmp_path, old, values, new, empty) == expected


@pytest.mark.parametrize(
    ("old", "apart", "equal", "new"),
    [
        (flink.DOUBLE, [0.0, 1.0], [0.0, -0.0], "BIGINT"),
        (flink.BIG_DECIMAL, ["1.0", "2.00"], ["1.0", "1.00"], flink.BIG_INTEGER),
        (flink.sql("DECIMAL(4, 2)"), [Decimal("1.00"), Decimal("2.00")], None, flink.BIG_DECIMAL),
        (flink.BIG_DECIMAL, ["1.0", "2.00"], ["1.0", "1.00"], flink.sql("DECIMAL(4, 2)")),
    ],
)
def test_keys_of_a_map_stay_as_many_as_they_are(old: Any, apart: Any, equal: Any, new: Any) -> None:
    types = flink.map_of(old, "STRING"), flink.map_of(new, "STRING")
    convert = Compiler(Choices()).value(*types, "value")
    assert len(convert(pa.MapArray.from_arrays([0, 2], apart, ["a", "b"]))[0]) == 2
    assert len(convert(pa.MapArray.from_arrays([0, 1, 2], [apart[0]] * 2, ["a", "b"]))) == 2
    if equal is not None:
        with pytest.raises(EncodeError, match="two keys of a map, or elements of a set, become equal"):
            convert(pa.MapArray.from_arrays([0, 2], equal, ["a", "b"]))


def test_elements_of_a_set_stay_as_many_as_they_are() -> None:
    convert = Compiler(Choices()).value(flink.set_of("DOUBLE"), flink.set_of("BIGINT"), "value")
    assert convert(pa.array([[0.0, 1.0], [0.0]])).to_pylist() == [[0, 1], [0]]
    with pytest.raises(EncodeError, match="elements of a set, become equal"):
        convert(pa.array([[0.0, -0.0]]))
    name = "org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot"
    bits = KryoSerializer(name, 2, "java.util.BitSet", (), ((), (), ()), TypeContext(kryo=5))
    assert steps(flink.list_of("INT"), bits) == [("value", "narrow", True)]
    assert steps(bits, flink.list_of("INT")) == []


def test_what_may_be_null_is_migrated_like_what_may_not(tmp_path: Path) -> None:
    """The plan lists a list that becomes a set and removed constants, and new numeric fields of a POJO are not null."""
    nullable = flink.nullable
    lists, sets = flink.list_of("INT"), flink.set_of("INT")
    assert steps(nullable(lists), nullable(sets)) == [("value", "narrow", True)]
    assert steps(flink.list_of(nullable(flink.row(lists))), flink.list_of(nullable(flink.row(sets)))) == [
        ("value.element.f0", "narrow", True)
    ]
    colors = flink.enum("com.acme.Color", ["RED", "PINK"]), flink.enum("com.acme.Color", ["RED"])
    assert steps(nullable(colors[0]), nullable(colors[1])) == [("value", "constants", True)]
    old, new = (flink.pojo("com.acme.Order", dict.fromkeys(names, flink.INT)) for names in ("n", ("m", "n")))
    rows, empty = pa.array([{"n": 1}, {"n": 2}, None]), pa.array([{"m": 1, "n": 2}, None, None])
    assert migrated(tmp_path, nullable(old), rows, nullable(new), empty) == [{"m": 0, "n": 1}, {"m": 0, "n": 2}]


def test_timestamps_lose_nothing_with_a_coarser_unit(tmp_path: Path) -> None:
    """Nanoseconds since the epoch are not written as milliseconds."""
    exact = pa.array([1_500_000_000_123_000, -1_000, None], pa.timestamp("us", "UTC"))
    values = migrated(tmp_path / "a", flink.INSTANT, exact, flink.DATE, exact, accept=["op.s.value"])
    assert values == exact.drop_null().to_pylist()
    finer = pa.array([0, -1, None], pa.timestamp("ns", "UTC"))
    with pytest.raises(EncodeError, match=r"digits below the ms that the type keeps.*of key 2"):
        migrated(tmp_path / "b", flink.INSTANT, finer, flink.DATE, exact, accept=["op.s.value"])


def test_keys_of_a_broadcast_state_stay_as_many_as_they_are(tmp_path: Path) -> None:
    def rules(path: Path, key: str, keys: Any) -> statetool.Savepoint:
        state = statetool.bootstrap_broadcast_state(
            "m", pa.table({"key": keys, "value": ["a", "b"]}), key_type=key, value_type="STRING"
        )
        return statetool.SavepointWriter.new().with_operator("op", state).write(str(path), flink_version="2.3")

    src = rules(tmp_path / "old", "DOUBLE", pa.array([0.0, -0.0]))
    job = rules(tmp_path / "job", "BIGINT", pa.array([1, 2]))
    with pytest.raises(EncodeError, match="two keys of a map, or elements of a set, become equal"):
        statetool.migrate(src, str(tmp_path / "new"), to=job, accept=["op.m.map_key"])
    assert not (tmp_path / "new").exists()


def test_avro_records_go_by_name_aliases_and_defaults(tmp_path: Path) -> None:
    def schema(*fields: dict[str, Any]) -> Serializer:
        return flink.avro({"type": "record", "name": "Order", "namespace": "com.acme", "fields": list(fields)})

    old = schema({"name": "town", "type": "string"}, {"name": "n", "type": "int"}, {"name": "gone", "type": "int"})
    new = schema(
        {"name": "n", "type": "long"},
        {"name": "city", "type": ["null", "string"], "default": None, "aliases": ["town"]},
        {"name": "note", "type": "string", "default": "none"},
    )
    rows = pa.array([{"town": "a", "n": 1, "gone": 0}, {"town": "", "n": -2, "gone": 1}, None])
    empty = pa.array([{"n": 1, "city": "", "note": ""}] * 3)
    values = migrated(tmp_path, old, rows, new, empty, accept=["op.s.value.gone"])
    assert values == [{"n": 1, "city": "a", "note": "none"}, {"n": -2, "city": "", "note": "none"}]


def _avro(*fields: dict[str, Any]) -> Serializer:
    return flink.avro({"type": "record", "name": "Order", "namespace": "com.acme", "fields": list(fields)})


_INNER = {"type": "record", "name": "Inner", "fields": [{"name": "a", "type": ["int", "null"], "default": 7}]}


@pytest.mark.parametrize(
    ("type", "default", "value"),
    [
        ("bytes", "\u00ff\u0001", b"\xff\x01"),
        ({"type": "fixed", "name": "F", "size": 2}, "\u00ff\u0001", b"\xff\x01"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "1", Decimal("0.49")),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1001, datetime(1970, 1, 1, 0, 0, 1, 1000, timezone.utc)),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1001, datetime(1970, 1, 1, 0, 0, 0, 1001, timezone.utc)),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, 1001000, datetime(1970, 1, 1, 0, 0, 0, 1001)),
        ({"type": "int", "logicalType": "time-millis"}, 1001, 1_001_000_000),
        ({"type": "int", "logicalType": "date"}, 1, date(1970, 1, 2)),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (_INNER, {}, {"a": 7}),
        ({"type": "array", "items": _INNER}, [{"a": 1}, {}], [{"a": 1}, {"a": 7}]),
        ({"type": "map", "values": "bytes"}, {"k": "\u00ff"}, [("k", b"\xff")]),
        (["int", "null"], 5, 5),
        (["null", "bytes"], None, None),
    ],
    ids=str,
)
def test_defaults_of_avro_are_what_avro_says_they_are(tmp_path: Path, type: Any, default: Any, value: Any) -> None:
    n = {"name": "n", "type": "int"}
    old, new = _avro(n), _avro(n, {"name": "x", "type": type, "default": default})
    job = TypeAtPath.of(new)
    assert isinstance(job.logical, StructType)
    rows = pa.array([{"n": 1}, None, None])
    empty = pa.nulls(3, arrow_type(job.logical, EXACT))
    values = migrated(tmp_path, old, rows, new, empty)
    assert [{k: v for k, v in row.items() if k != "x_nanos"} for row in values] == [{"n": 1, "x": value}]


def test_a_default_of_several_types_has_to_be_said() -> None:
    n = {"name": "n", "type": "int"}
    new = _avro(n, {"name": "x", "type": ["string", "int", "null"], "default": "a"})
    assert steps(_avro(n), new) == [("value.x", "impossible", False)]


def test_steps_say_what_they_cost() -> None:
    pair, triple = flink.tuple_of("INT", "STRING"), flink.tuple_of("INT", "STRING", "BIGINT")
    assert steps(pair, triple) == [("value", "positions", True), ("value.f2", "add", False)]
    assert steps(pair, flink.tuple_of("INT", "STRING", "STRING")) == [
        ("value", "positions", True), ("value.f2", "impossible", False)
    ]  # fmt: skip
    assert steps(pair, triple, sources={"value.f0": "f0", "value.f1": "f1"}, fills={"value.f2": 3}) == [
        ("value.f2", "add", False)
    ]
    assert steps(flink.DOUBLE, flink.FLOAT) == [("value", "narrow", True)]
    assert steps(flink.LONG, flink.DOUBLE) == [("value", "narrow", True)]
    assert steps(flink.BOOLEAN, flink.INT) == [("value", "retype", False)]
    assert steps(flink.INT, flink.BOOLEAN) == [("value", "narrow", True)]
    assert steps(flink.BOOLEAN, flink.DOUBLE) == [("value", "impossible", False)]
    colors = flink.enum("com.acme.Color", ["RED", "PINK"]), flink.enum("com.acme.Color", ["RED", "BLUE"])
    assert steps(*colors) == [("value", "constants", True)]
    assert steps(*colors, constants={"value": {"PINK": "BLUE"}}) == [("value", "constants", False)]
    key = flink.map_of(OLD, "INT"), flink.map_of(NEW, "INT")
    assert ("value.key.gone", "impossible", False) in steps(*key)
    assert steps(flink.INT, flink.ttl("INT")) == [("value", "impossible", False)]
    assert steps(flink.ttl("INT"), flink.INT) == [("value", "drop", True)]


def test_each_of_two_losses_in_one_place_is_accepted_by_itself(tmp_path: Path) -> None:
    old = flink.pojo("com.acme.Pair", {"a": flink.LONG, "b": flink.STRING})
    new = flink.pojo("com.acme.Pair", {"b": flink.INT})
    src = written(tmp_path / "old", old, pa.array([{"a": 1, "b": "kept?"}, None, None]))
    job = written(tmp_path / "new-job", new, pa.array([{"b": 1}, None, None]))
    plan = statetool.plan_migration(src, job).renaming({"op.s.value.b": "a"})
    lossy = ["op.s.value.b:narrow", "op.s.value.b:drop"]
    assert [row.step for row in plan.rows if row.needs == "acceptance"] == lossy
    assert [row.step for row in plan.accepting(lossy[:1]).rows if row.needs == "acceptance"] == lossy[1:]
    assert [row.step for row in plan.accepting(["op.s.value.b"]).rows if row.needs == "acceptance"] == lossy
    statetool.write_plan(plan.accepting(lossy[:1]), str(tmp_path / "plan.json"))
    again = statetool.read_plan(str(tmp_path / "plan.json"), src)
    assert [row.step for row in again.rows if row.needs == "acceptance"] == lossy[1:]
    plan.accepting(lossy).check()


def test_what_is_said_of_fields_that_are_not_there_is_refused(tmp_path: Path) -> None:
    colors = flink.enum("com.acme.Color", ["RED"]), flink.enum("com.acme.Color", ["RED", "BLUE"])
    gone = ("value.gone", "drop", True)
    assert ("value.exrta", "impossible", False) in steps(OLD, NEW, fills={"value.exrta": 7})
    assert ("value.ctiy", "impossible", False) in steps(OLD, NEW, sources={"value.ctiy": "town"})
    assert ("valeu", "impossible", False) in steps(*colors, constants={"valeu": {"RED": "BLUE"}})
    assert ("value.city", "impossible", False) in steps(
        OLD, NEW, sources={"value.city": "town"}, fills={"value.city": "x"}
    )
    assert gone in steps(OLD, NEW, sources={"value.city": "town"}, fills={"value.extra": 7})
    src, job = written(tmp_path / "old", OLD, ORDERS), written(tmp_path / "new-job", NEW, NO_ORDERS)
    accept = ["op.s.value.gone", "op.s.value.town"]
    with pytest.raises(UnsupportedError, match=r"op\.s\.value\.ctiy: impossible: .*no such field"):
        statetool.migrate(src, str(tmp_path / "new"), to=job, renames={"op.s.value.ctiy": "town"}, accept=accept)


def test_keyed_and_operator_state_of_one_name_are_not_taken_for_each_other(tmp_path: Path) -> None:
    def both(path: Path, kind: str, values: Any) -> statetool.Savepoint:
        keyed = statetool.bootstrap_keyed_state(
            pa.table({"key": KEYS, "s": values}), states={"s": statetool.value(kind)}
        )
        elements = statetool.bootstrap_list_state("s", pa.table({"value": values}), type=kind)
        return (
            statetool.SavepointWriter.new().with_operator("op", keyed, elements).write(str(path), flink_version="2.3")
        )

    src = both(tmp_path / "old", "INT", pa.array([1, 2, 3], pa.int32()))
    job = both(tmp_path / "job", "BIGINT", pa.array([1, 2, 3], pa.int64()))
    plan = statetool.plan_migration(src, job)
    assert len(plan.states) == 2
    with pytest.raises(OptionError, match="two states"):
        plan.with_choices("op.s", last_access_ms=1)
    with pytest.raises(OptionError, match="keyed state and an operator state 's'"):
        statetool.migrate(src, str(tmp_path / "new"), plan=plan)
    writer = statetool.SavepointWriter.from_existing(src)
    with pytest.raises(OptionError, match="keyed state and an operator state 's'"):
        writer.remove_state("op", "s").write(str(tmp_path / "new"))
    with pytest.raises(OptionError, match="keyed state and an operator state 's'"):
        writer.rename_state("op", "s", "t").write(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_plan_for_another_kind_of_state_is_refused(tmp_path: Path) -> None:
    src, job = written(tmp_path / "old", OLD, ORDERS), written(tmp_path / "new-job", NEW, NO_ORDERS)
    plan = statetool.plan_migration(src, job).accepting(["op.s.value.gone", "op.s.value.town"])
    statetool.write_plan(plan, str(tmp_path / "plan.json"))
    table = pa.table({"key": KEYS, "s": pa.array([[row] for row in ORDERS.to_pylist()], pa.list_(ORDERS.type))})
    lists = statetool.bootstrap_keyed_state(table.slice(0, 1), states={"s": statetool.list_of(OLD)})
    other = statetool.SavepointWriter.new().with_operator("op", lists).write(str(tmp_path / "o"), flink_version="2.3")
    with pytest.raises(UnsupportedError, match=r"op\.s: a list state became a value state"):
        statetool.migrate(other, str(tmp_path / "new"), plan=str(tmp_path / "plan.json"))


def test_keys_and_kinds_are_refused(tmp_path: Path) -> None:
    old = written(tmp_path / "old", "INT", pa.array([1, 2, 3], pa.int32()))
    table = pa.table({"key": ["a"], "s": pa.array([[(1, 1)]], pa.map_(pa.int32(), pa.int32()))})
    state = statetool.bootstrap_keyed_state(table, states={"s": statetool.map_of("INT", "INT")})
    job = statetool.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / "job"), flink_version="2.3")
    plan = statetool.plan_migration(old, job)
    assert plan.refused == (
        "op: keys: The type Long became String",
        "op.s: a value state became a map state, or a state of another API",
    )
    with pytest.raises(UnsupportedError, match="cannot be done: op: keys"):
        statetool.migrate(old, str(tmp_path / "migrated"), to=job)


def test_the_commands_write_a_plan_and_follow_it(tmp_path: Path) -> None:
    old, job = str(tmp_path / "old"), str(tmp_path / "new-job")
    written(tmp_path / "old", OLD, ORDERS)
    written(tmp_path / "new-job", NEW, NO_ORDERS)
    run = CliRunner().invoke
    plan, target = str(tmp_path / "plan.json"), str(tmp_path / "migrated")
    assert "1 state to migrate" in run(cli, ["check", old, job, "--write-plan", plan]).stderr
    options = ["--plan", plan, "--rename", "op.s.value.city=town"]
    refused = run(cli, ["migrate", old, target, *options, "--dry-run", "--json"])
    assert refused.exit_code == 1
    needs = {row["step"]: row["needs"] for row in json.loads(refused.stdout)}
    assert [step for step, need in needs.items() if need != "nothing"] == ["op.s.value.gone"]
    assert run(cli, ["migrate", old, target, *options, "--accept", "op.s.value.gone"]).exit_code == 0
    assert statetool.check(target, job).verdict == "fully"
