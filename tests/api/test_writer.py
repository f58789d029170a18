"""Tables become savepoints that are read back equal, with Arrow in this process."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool as st
from statetool import flink
from statetool.errors import EncodeError, OptionError, TargetExistsError, UnknownNameError, UnsupportedError
from statetool.io import targets
from statetool.pyflink import Types
from tests.support.values.tables import accounts


def written(tmp_path: Path, *bootstraps: Any, flink_version: str | None = "2.3", **options: Any) -> st.Operator:
    writer = st.SavepointWriter.new(max_parallelism=128).with_operator("op", *bootstraps, **options)
    return writer.write(str(tmp_path / "sp"), flink_version=flink_version)["op"]


def rows(op: st.Operator, table: str = "keyed_state", **options: Any) -> list[dict[str, Any]]:
    return sorted(op.to_arrow(table, **options).to_pylist(), key=repr)


@pytest.mark.parametrize("parallelism", [1, 3, 128])
def test_states_of_every_shape_come_back(tmp_path: Path, parallelism: int) -> None:
    op = written(
        tmp_path,
        st.bootstrap_keyed_state(
            accounts(),
            key="id",
            states={
                "count": st.value("BIGINT"),
                "name": st.value(),
                "tags": st.list_of("STRING"),
                "balances": st.map_of("STRING", "DOUBLE"),
                "sum": st.reducing("BIGINT", column="count"),
                "acc": st.aggregating(column="count"),
            },
        ),
        parallelism=parallelism,
    )
    assert [s.kind for s in op.states.values()] == ["value", "value", "list", "map", "reducing", "aggregating"]
    assert op.parallelism == parallelism
    assert rows(op) == [
        {"key": -5, "count": 7, "name": "", "tags": ["z"], "balances": [("g", 2.0)], "sum": 7, "acc": 7},
        {
            "key": 1, "count": 10, "name": "a", "tags": ["x", "y"], "balances": [("e", 1.5), ("f", None)],
            "sum": 10, "acc": 10,
        },
        {
            "key": 3, "count": 30, "name": "ü\U0001f600\u4e00", "tags": None, "balances": None, "sum": 30, "acc": 30,
        },
    ]  # fmt: skip


def test_types_follow_from_columns(tmp_path: Path) -> None:
    op = written(tmp_path, st.bootstrap_keyed_state(accounts(), key="id"))
    assert {n: (s.kind, s.value_type) for n, s in op.states.items()} == {
        "count": ("value", "Long"),
        "name": ("value", "String"),
        "tags": ("list", "List<String>"),
        "balances": ("map", "Map<String, Double>"),
    }


@pytest.mark.parametrize("version", ["1.13", "1.16", "2.0", "2.3", None])
def test_each_release_gets_its_metadata(tmp_path: Path, version: str | None) -> None:
    op = written(tmp_path, st.bootstrap_keyed_state(accounts(), key="id"), flink_version=version)
    sp = st.load(str(tmp_path / "sp"), uids=["op"])
    assert sp.metadata_version == {"1.13": 3, "1.16": 4, "2.0": 5, "2.3": 6, None: 3}[version]
    assert len(rows(op)) == 3


def test_windows_timers_and_operator_state_share_an_operator(tmp_path: Path) -> None:
    window = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    contents = pa.table(
        {
            "id": ["a", "bb"],
            "w": pa.array([{"start": 0, "end": 10}, {"start": 10, "end": 20}], type=window),
            "contents": [[1, 2], [3]],
        }
    )
    timers = pa.table(
        {
            "id": ["a", "bb", "a"],
            "namespace": contents["w"].combine_chunks().take(pa.array([0, 1, 1])),
            "timestamp": [9, 19, -1],
            "domain": ["event", "event", "processing"],
        }
    )
    op = written(
        tmp_path,
        st.bootstrap_keyed_state(contents, key="id", namespace="w", timers=timers),
        st.bootstrap_list_state("offsets", pa.table({"value": [5, 6]})),
        st.bootstrap_union_state("all", pa.table({"value": ["p", "q", "p"]})),
        st.bootstrap_broadcast_state("rules", pa.table({"key": ["x", "y"], "value": [1, 2]})),
        parallelism=2,
    )
    assert rows(op, "contents") == [
        {"key": "a", "namespace": {"start": 0, "end": 10}, "list_index": 0, "value": 1},
        {"key": "a", "namespace": {"start": 0, "end": 10}, "list_index": 1, "value": 2},
        {"key": "bb", "namespace": {"start": 10, "end": 20}, "list_index": 0, "value": 3},
    ]
    assert [
        (r["key"], r["namespace"]["start"], r["timestamp"], r["domain"], r["service"]) for r in rows(op, "timers")
    ] == [
        ("a", 0, 9, "event", "window-timers"),
        ("a", 10, -1, "processing", "window-timers"),
        ("bb", 10, 19, "event", "window-timers"),
    ]
    assert rows(op, "offsets") == [{"value": 5}, {"value": 6}]
    assert rows(op, "all") == [{"value": "p"}, {"value": "p"}, {"value": "q"}]
    assert rows(op, "rules") == [{"key": "x", "value": 1}, {"key": "y", "value": 2}]
    assert len(rows(op, "rules", subtask=True)) == 4


def test_ambiguous_keys_get_length_markers(tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": ["a", "b" * 300],
            "n": ["x" * 300, ""],
            "v": pa.array([[("u", 1)], [("w", 2)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    op = written(tmp_path, st.bootstrap_keyed_state(table, key="k", namespace="n"))
    assert rows(op, "v") == [
        {"key": "a", "namespace": "x" * 300, "map_key": "u", "value": 1},
        {"key": "b" * 300, "namespace": "", "map_key": "w", "value": 2},
    ]


def test_several_key_columns_are_a_tuple(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 1], "b": ["x", "y"], "v": [True, False]})
    op = written(tmp_path, st.bootstrap_keyed_state(table, key=["a", "b"]))
    assert rows(op) == [{"key": {"f0": 1, "f1": "x"}, "v": True}, {"key": {"f0": 1, "f1": "y"}, "v": False}]


def test_values_with_a_time_to_live(tmp_path: Path) -> None:
    table = pa.table(
        {"k": [1], "v": ["a"], "l": [[1, 2]], "m": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))}
    )
    states = {
        "v": st.value("STRING", ttl=True, last_access_ms=5),
        "l": st.list_of("BIGINT", ttl=True, last_access_ms=6),
        "m": st.map_of("STRING", "BIGINT", ttl=True, last_access_ms=7),
    }
    op = written(tmp_path, st.bootstrap_keyed_state(table, key="k", states=states))
    assert all(s.ttl for s in op.states.values())
    raw = op.to_arrow(ttl="raw")
    again = st.SavepointWriter.new().with_operator("op", st.bootstrap_keyed_state(raw, like=op))
    back = again.write(str(tmp_path / "again"), flink_version="2.3")["op"]
    assert back.to_arrow(ttl="raw").equals(raw)
    assert [e["last_access"].microsecond for e in raw["l"][0].as_py()] == [6000, 6000]
    fresh = st.bootstrap_keyed_state(op.to_arrow(), like=op, last_access_ms=9)
    third = (
        st.SavepointWriter.new().with_operator("op", fresh).write(str(tmp_path / "third"), flink_version="2.3")["op"]
    )
    assert rows(third) == rows(op)
    assert rows(third, ttl="hide_expired", ttl_ms=1, now_ms=9)[0]["v"] == "a"
    one = st.bootstrap_state("v", op.to_arrow("v"), like=op, last_access_ms=9)
    written(tmp_path / "one", one)


@pytest.mark.parametrize("states", [None, {"v": st.value("BIGINT")}])
def test_a_last_access_that_no_value_would_get_is_refused(tmp_path: Path, states: Any) -> None:
    made = st.bootstrap_keyed_state(pa.table({"key": [1], "v": [1]}), states=states, last_access_ms=9)
    with pytest.raises(OptionError, match="last_access_ms="):
        written(tmp_path, made)


def test_flink_types_by_name(tmp_path: Path) -> None:
    order = flink.pojo("com.acme.Order", {"id": "BIGINT", "color": flink.enum("com.acme.Color", ["RED", "BLUE"])})
    table = pa.table(
        {
            "k": [1, 2],
            "order": [{"id": 7, "color": "BLUE"}, {"id": None, "color": None}],
            "pair": [{"f0": "a", "f1": 1.5}, {"f0": "b", "f1": 2.5}],
            "longs": [[1, 2], []],
            "either": pa.array([{"left": 1, "right": None}, {"left": None, "right": "r"}]),
        }
    )
    states = {
        "order": st.value(order),
        "pair": st.value(flink.tuple_of("STRING", "DOUBLE")),
        "longs": st.value(flink.primitive_array("long")),
        "either": st.value(flink.either("BIGINT", "STRING")),
    }
    op = written(tmp_path, st.bootstrap_keyed_state(table, key="k", states=states))
    assert op.states["order"].value_type == "POJO com.acme.Order"
    assert rows(op) == [
        {"key": 1, "order": {"color": "BLUE", "id": 7}, "pair": {"f0": "a", "f1": 1.5}, "longs": [1, 2], "either": {"left": 1, "right": None}},
        {"key": 2, "order": {"color": None, "id": None}, "pair": {"f0": "b", "f1": 2.5}, "longs": [], "either": {"left": None, "right": "r"}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"v": ["a", "b"]}, "key 1 occurs twice"),
        ({"v": ["a", None]}, "key 1 occurs twice"),
        ({"v": [[1], []]}, "key 1 occurs twice"),
        ({"v": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64()))}, "key 1 occurs twice"),
    ],
)
def test_duplicate_keys_are_named(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    table = pa.table({"id": [1, 1], **columns})
    with pytest.raises(EncodeError, match=message):
        written(tmp_path, st.bootstrap_keyed_state(table, key="id"))
    assert not (tmp_path / "sp").exists()


@pytest.mark.parametrize("slip", ["domian", "w"])
def test_a_slip_in_a_column_of_timers_does_not_make_other_timers(tmp_path: Path, slip: str) -> None:
    timers = pa.table({"id": [1], "timestamp": [5], slip: ["processing"]})
    table = pa.table({"id": [1], "w": [2]})
    with pytest.raises(UnknownNameError, match=f"a table of timers has no column '{slip}'"):
        written(tmp_path, st.bootstrap_keyed_state(table, key="id", timers=timers))


def test_duplicate_timers_and_broadcast_keys_are_named(tmp_path: Path) -> None:
    timers = pa.table({"id": [1, 1], "timestamp": [5, 5]})
    table = pa.table({"id": [1], "v": [1]})
    with pytest.raises(EncodeError, match=r"timer {timestamp: 5, key: 1, namespace: null} occurs twice"):
        written(tmp_path, st.bootstrap_keyed_state(table, key="id", timers=timers))
    with pytest.raises(EncodeError, match="key 'x' occurs twice"):
        written(tmp_path, st.bootstrap_broadcast_state("b", pa.table({"key": ["x", "x"], "value": [1, 2]})))


def test_keys_in_messages_are_as_people_write_them(tmp_path: Path) -> None:
    days = pa.array([date(2020, 4, 12)] * 2)
    with pytest.raises(EncodeError, match="key 2020-04-12 occurs twice"):
        written(tmp_path, st.bootstrap_keyed_state(pa.table({"day": days, "v": [1, 2]}), key="day"))
    late = pa.table({"day": pa.array([5_000_000], pa.date32()), "v": ["x"]})
    states = {"v": st.value("BIGINT")}
    with pytest.raises(EncodeError, match="column 'v' of the row with key 15659-07-15"):
        written(tmp_path, st.bootstrap_keyed_state(late, key="day", key_type="DATE", states=states))
    pairs = pa.table({"day": days, "n": [1, 1], "v": [1, 2]})
    with pytest.raises(EncodeError, match=r"key {f0: 2020-04-12, f1: 1} occurs twice"):
        written(tmp_path, st.bootstrap_keyed_state(pairs, key=["day", "n"]))


@pytest.mark.parametrize(
    ("values", "declared", "message"),
    [
        (pa.array([1, 70000]), st.value("SMALLINT"), "70000.*column 'v' of the row with key 2.*state v"),
        (pa.array([1.0, 1.1]), st.value("FLOAT"), "1.1 is not exactly a float.*key 2"),
        (pa.array(["A", "X"]), st.value(flink.enum("E", ["A"])), "'X' is not a constant.*key 2"),
        (pa.array([[1], [None]]), st.list_of("BIGINT"), "a null instead of.*key 2"),
        (pa.array([{"a": 1}, {"a": 2}]), st.value(flink.pojo("P", {"b": "INT"})), "no field 'b'"),
        (pa.array([{"a": 1, "b": 2}] * 2), st.value(flink.pojo("P", {"b": "INT"})), "does not have: a"),
        (pa.array(["1", "2"]), st.value("BIGINT"), "a column of type string"),
        (pa.array([1, 2]), st.value("STRING"), "a column of type int64"),
        (pa.array(["1.5", "x"]), st.value("DECIMAL"), "'x' is not a number.*key 2"),
        (pa.array([1, 2], pa.timestamp("us")), st.value("TIMESTAMP"), "a column of type timestamp"),
    ],
)
def test_values_that_do_not_fit_name_column_and_key(
    tmp_path: Path, values: pa.Array, declared: Any, message: str
) -> None:
    table = pa.table({"id": [1, 2], "v": values})
    with pytest.raises(EncodeError, match=message):
        written(tmp_path, st.bootstrap_keyed_state(table, key="id", states={"v": declared}))


def test_impossible_wishes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    good = st.bootstrap_keyed_state(accounts(), key="id")
    writer = st.SavepointWriter.new().with_operator("op", good)
    target = str(tmp_path / "sp")
    with pytest.raises(OptionError, match=r"1\.12"):
        writer.write(target, flink_version="1.12")
    with pytest.raises(UnknownNameError, match="no column 'ident'"):
        written(tmp_path, st.bootstrap_keyed_state(accounts(), key="ident"))
    with pytest.raises(OptionError, match="keys of type Long and of type String"):
        written(tmp_path, good, st.bootstrap_keyed_state(pa.table({"k": ["a"], "x": [1]}), key="k"))
    with pytest.raises(OptionError, match="'count' is declared twice"):
        written(tmp_path, good, good)
    with pytest.raises(OptionError, match=r"expected a type"):
        written(tmp_path, st.bootstrap_keyed_state(accounts(), key="id", states={"count": st.value("BIG")}))
    assert not (tmp_path / "sp").exists()
    targets.make_dir(target)
    targets.put_new(f"{target}/x", b"")
    with pytest.raises(TargetExistsError):
        writer.write(target)


def test_small_streams_are_inline_and_large_ones_files(tmp_path: Path) -> None:
    op = written(tmp_path, st.bootstrap_keyed_state(accounts(), key="id"), parallelism=2)
    assert [p.name for p in (tmp_path / "sp").iterdir()] == ["_metadata"]
    large = st.bootstrap_keyed_state(pa.table({"id": range(5000), "v": range(5000)}), key="id")
    sp = st.SavepointWriter.new().with_operator("op", large, parallelism=2).write(str(tmp_path / "large"))
    assert len(list((tmp_path / "large").iterdir())) == 3
    assert sp["op"].to_arrow().num_rows == 5000
    assert op.max_parallelism == 128


def test_serializers_that_the_release_has_not_are_refused(tmp_path: Path) -> None:
    table = pa.table({"id": [1], "v": [[1, 2]]})
    sets = st.bootstrap_keyed_state(table, key="id", states={"v": st.value(flink.set_of("BIGINT"))})
    with pytest.raises(
        UnsupportedError, match=r"Flink 1\.20 does not have SetSerializerSnapshot .*operator op, state v"
    ):
        written(tmp_path, sets, flink_version="1.20")
    assert not (tmp_path / "sp").exists()
    assert rows(written(tmp_path, sets, flink_version="2.0")) == [{"key": 1, "v": [1, 2]}]


def test_states_in_their_long_form(tmp_path: Path) -> None:
    lists = pa.table({"key": ["b", "a", "a"], "list_index": [0, 1, 0], "value": [3, 2, 1]})
    maps = pa.table({"key": ["a", "a"], "map_key": ["x", "y"], "value": [1.5, None]})
    values = pa.table({"key": ["c"], "value": [7]})
    op = written(
        tmp_path,
        st.bootstrap_state("l", lists),
        st.bootstrap_state("m", maps, type=st.map_of("STRING", "DOUBLE")),
        st.bootstrap_state("v", values, type=st.reducing("BIGINT")),
    )
    assert [s.kind for s in op.states.values()] == ["list", "map", "reducing"]
    assert rows(op) == [
        {"key": "a", "l": [1, 2], "m": [("x", 1.5), ("y", None)], "v": None},
        {"key": "b", "l": [3], "m": None, "v": None},
        {"key": "c", "l": None, "m": None, "v": 7},
    ]
    again = st.SavepointWriter.new().with_operator(
        "op", *(st.bootstrap_state(n, op.to_arrow(n), like=op) for n in ("l", "m", "v"))
    )
    assert rows(again.write(str(tmp_path / "again"), flink_version="2.3")["op"]) == rows(op)


def test_elements_that_do_not_fit_are_shown(tmp_path: Path) -> None:
    elements = pa.table({"value": [1, 2, 300]})
    with pytest.raises(EncodeError, match=r"does not fit int8.*in column 'value': 300 .*state offsets"):
        written(tmp_path, st.bootstrap_list_state("offsets", elements, type="TINYINT"))
    with pytest.raises(EncodeError, match=r"a null instead of a value of type int64.*in column 'value': None"):
        written(tmp_path, st.bootstrap_union_state("all", pa.table({"value": [1, None]})))
    spread = pa.table({"value": [1, 2], "s": [0, 5]})
    with pytest.raises(EncodeError, match="'s' is not a subtask below the parallelism 2"):
        written(tmp_path, st.bootstrap_list_state("offsets", spread, subtask="s"), parallelism=2)


def test_an_operator_is_named_by_its_id(tmp_path: Path) -> None:
    table = pa.table({"key": pa.array([{"f0": 1}], pa.struct({"f0": pa.int64()})), "n": pa.array([2], pa.int64())})
    states = {"n": st.value("BIGINT")}
    new = st.SavepointWriter.new().with_operator(
        "0123456789ABCDEF0123456789abcdef",
        st.bootstrap_keyed_state(table, key_type="ROW<id BIGINT>", states=states),
    )
    sp = new.write(str(tmp_path / "sp"), flink_version="2.3")
    (operator,) = sp.operators.values()
    assert (operator.operator_id, operator.uid) == ("0123456789abcdef0123456789abcdef", None)
    assert operator.to_arrow().to_pylist() == [{"key": {"f0": 1}, "n": 2}]


def test_a_type_that_no_snapshot_serves_for_all_releases_needs_one(tmp_path: Path) -> None:
    table = pa.table(
        {
            "key": pa.array([1], pa.int64()),
            "m": pa.array([{"f0": [[("a", 1)]]}], pa.struct({"f0": pa.list_(pa.map_(pa.string(), pa.int32()))})),
        }
    )
    states = {"m": st.value("ROW<f0 ARRAY<MAP<STRING, INT>>>")}
    new = st.SavepointWriter.new().with_operator("a", st.bootstrap_keyed_state(table, states=states))
    with pytest.raises(OptionError, match="in different ways") as caught:
        new.write(str(tmp_path / "any"))
    assert (caught.value.where.operator, caught.value.where.state) == ("a", "m")
    for release in ("1.13", "1.20", "2.3"):
        sp = new.write(str(tmp_path / release), flink_version=release)
        assert sp["a"].to_arrow().to_pylist() == [{"key": 1, "m": {"f0": [[("a", 1)]], "_kind": "+I"}}]


def test_an_operator_may_have_to_exist_or_to_be_new(tmp_path: Path) -> None:
    base = written(tmp_path, st.bootstrap_keyed_state(accounts(), key="id"))
    writer = st.SavepointWriter.from_existing(st.load(str(tmp_path / "sp")))
    state = st.bootstrap_list_state("offsets", pa.table({"value": [1]}))
    with pytest.raises(UnknownNameError, match="no operator has the uid 'totals'"):
        writer.with_operator("totals", state, new=False).write(str(tmp_path / "no"))
    with pytest.raises(
        UnknownNameError,
        match=r"no operator has the uid 'opp', but there is 'op'.* A typo in the uid .*'opp', ..., new=True",
    ):
        writer.with_operator("opp", state).write(str(tmp_path / "no"))
    with pytest.raises(OptionError, match="operator 'op' already exists"):
        writer.with_operator("op", state, new=True).write(str(tmp_path / "no"))
    with pytest.raises(UnknownNameError, match="no operator has the uid 'op'"):
        st.SavepointWriter.new().with_operator("op", state, new=False).write(str(tmp_path / "no"))
    assert not (tmp_path / "no").exists()
    for number, (uid, new) in enumerate([("totals", None), ("totals", True), ("opp", True)]):
        sp = writer.with_operator(uid, state, new=new).write(str(tmp_path / str(number)))
        assert list(sp) == [base.name, uid]
    changed = writer.with_operator("op", state, new=False).write(str(tmp_path / "changed"))
    assert rows(changed["op"]) == rows(base)
    assert rows(changed["op"], "offsets") == [{"value": 1}]


def test_a_changed_copy_keeps_the_declared_types_of_its_base(tmp_path: Path) -> None:
    numbers = pa.table({"id": [1, 2], "v": [5, 6]})
    written(tmp_path, st.bootstrap_keyed_state(numbers, key="id", states={"v": st.value(Types.LONG())}))
    base = st.load(str(tmp_path / "sp"), python={"v": Types.LONG()})
    copy = st.SavepointWriter.from_existing(base).change_uid("op", "other").write(str(tmp_path / "copy"))
    assert rows(copy["other"]) == rows(base["op"]) != rows(st.load(copy.path, uids=["other"])["other"])


def test_a_table_is_changed_where_the_savepoint_was_opened(tmp_path: Path) -> None:
    written(tmp_path, st.bootstrap_keyed_state(accounts(), key="id"))
    op = st.load(str(tmp_path / "sp"))["op"]
    with pytest.raises(OptionError, match="the function returns int, not a table"):
        op.transform(lambda table: 1)
    new = op.transform(lambda table: table).with_checkpoint_id(7).write(str(tmp_path / "new"))
    assert (new.checkpoint_id, rows(new["op"])) == (7, rows(op))
