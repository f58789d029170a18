"""Values and timers of one key, set without Spark: nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import DecodeError, EncodeError, OptionError, StatetoolError, UnknownNameError, UnsupportedError
from statetool.saving.verbs import set_values
from statetool.saving.verbs.value_paths import parse_value, plain_of, split_assignment
from statetool.snapshot.inventory import Inventory
from statetool.types import LogicalType, MapType, Scalar, TimestampType
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots.entries import damage, entries_of
from tests.support.zoo import ZOO

KINDS = (
    "v1_20_5-rocksdb-native",
    "v2_3_0-changelog-rocksdb",
    "v2_3_0-hashmap-canonical-compressed",
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-rocksdb-heap-timers",
)


def set_and_read(tmp_path: Path, uid: str, key: Any, values: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    statetool.set_values(ZOO, str(tmp_path / "new"), uid, key, values, **options)
    row: dict[str, Any]
    (row,) = statetool.load(str(tmp_path / "new"))[uid].to_arrow(keys=[key], ttl="raw").to_pylist()
    return row


def test_fields_elements_and_map_values(tmp_path: Path) -> None:
    values = {
        "history[0].f1": "hello",
        "history[+]": {"f0": 1, "f1": None, "f2": 5},
        "prices[last]": "1.50",
        "visits[9].f1": "nine",
        "total": 7,
        "mean.f0": 12,
    }
    before = statetool.load(ZOO)["collections-by-string"].to_arrow(keys=[""]).to_pylist()[0]
    after = set_and_read(tmp_path, "collections-by-string", "", values, remove=["visits[0]", "history[1]", "seldom"])
    history = before["history"]
    assert after["history"] == [history[0] | {"f1": "hello"}, *history[2:], {"f0": 1, "f1": None, "f2": 5}]
    assert str(dict(after["prices"])["last"]) == "1.500000000000000000"
    assert dict(after["prices_scale"])["last"] == 2
    visits = dict(before["visits"])
    del visits[0]
    assert dict(after["visits"]) == visits | {9: visits[9] | {"f1": "nine"}}
    assert (after["total"], after["mean"]["f0"], after["seldom"]) == (7, 12, None)
    assert after["mean"]["f1"] == before["mean"]["f1"]
    assert after["names"] == before["names"]


@pytest.mark.parametrize("name", quick(KINDS, "v2_3_0-hashmap-canonical-compressed", "v2_3_0-rocksdb-heap-timers"))
def test_only_the_entries_of_the_values_change(corpus: Path, tmp_path: Path, name: str) -> None:
    source = str(Case(corpus / name).metadata)
    operator = next(o for o in Inventory(source).operators.values() if "ttl-map" in o.keyed_states)
    plan = statetool.set_values(source, str(tmp_path / "new"), operator.label, 4, {"plain": 3, 'ttl-map["new"]': 5})
    assert [row.after for row in plan.changes] == ["3", "5"]
    old, new = (
        set(entries_of(i.operators[operator.label])) for i in (Inventory(source), Inventory(str(tmp_path / "new")))
    )
    assert len(old - new) == 1
    assert {state for _, state, _, _ in new - old} == {"plain", "ttl-map"}
    assert not damage(tmp_path / "new")


def windows_of(path: str, uid: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = statetool.load(path)[uid].to_arrow("windows").to_pylist()
    return rows


@pytest.mark.parametrize("uid", ["win-tumble-reduce", "win-session-list"])
def test_values_in_one_window(tmp_path: Path, uid: str) -> None:
    rows = windows_of(ZOO, uid)
    chosen = rows[0]
    namespace = (chosen["window"]["start"], chosen["window"]["end"])
    path = "window-contents.f1" if uid == "win-tumble-reduce" else "window-contents[0].f1"
    statetool.set_values(ZOO, str(tmp_path / "new"), uid, chosen["key"], {path: -1}, namespace=namespace)
    content = chosen["window-contents"] if isinstance(chosen["window-contents"], dict) else chosen["window-contents"][0]
    content["f1"] = -1
    assert windows_of(str(tmp_path / "new"), uid) == rows
    old, new = (set(entries_of(Inventory(path).operators[uid])) for path in (ZOO, str(tmp_path / "new")))
    assert len(old - new) == len(new - old) == 1
    assert not damage(tmp_path / "new")


def test_timers_of_one_window(tmp_path: Path) -> None:
    timers = statetool.load(ZOO)["win-tumble-reduce"].to_arrow("timers").to_pylist()
    key, window, time = timers[0]["key"], timers[0]["namespace"], timers[0]["timestamp"]
    statetool.set_values(
        ZOO,
        str(tmp_path / "new"),
        "win-tumble-reduce",
        key,
        remove_timers=[("event", time)],
        add_timers=[("event", time + 1)],
        namespace=window,
    )
    after = statetool.load(str(tmp_path / "new"))["win-tumble-reduce"].to_arrow("timers").to_pylist()
    assert [t for t in after if t["key"] == key] == [timers[0] | {"timestamp": time + 1, "time": after[0]["time"]}]
    assert len(after) == len(timers)


@pytest.mark.parametrize("merges", [False, True])
def test_a_window_keeps_a_timer_while_it_has_state(tmp_path: Path, merges: bool) -> None:
    uid = "win-session-list" if merges else "win-tumble-reduce"
    timer = statetool.load(ZOO)[uid].to_arrow("timers").to_pylist()[0]
    key, window, gone = timer["key"], timer["namespace"], [("event", timer["timestamp"])]
    contents, target = ["window-contents"], str(tmp_path / "new")
    hint = "remove all of the key" if merges else "--remove window-contents"
    with pytest.raises(
        OptionError, match=f"the window may never fire, or its state may never be removed.*--add-timer.*{hint}"
    ):
        statetool.set_values(ZOO, target, uid, key, remove_timers=gone, namespace=window)
    assert not Path(target).exists()
    if merges:  # the operator also lists the windows that merged
        with pytest.raises(OptionError, match="may never fire"):
            statetool.set_values(ZOO, target, uid, key, remove=contents, remove_timers=gone, namespace=window)
        return
    statetool.set_values(ZOO, target, uid, key, remove=contents, remove_timers=gone, namespace=window)
    assert timer not in statetool.load(target)[uid].to_arrow("timers").to_pylist()


def test_windows_that_do_not_exist_or_were_not_given(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    key = windows_of(ZOO, "win-tumble-reduce")[0]["key"]
    change = {"window-contents.f1": 1}
    with pytest.raises(
        OptionError, match=r"is stored per window.*pass --namespace: the key has 1700000080000,1700000090000"
    ):
        statetool.set_values(ZOO, target, "win-tumble-reduce", key, change)
    with pytest.raises(
        OptionError, match=r"no window 1,2 .*the key has 1700000080000,1700000090000.*--new-key adds one"
    ):
        statetool.set_values(ZOO, target, "win-tumble-reduce", key, change, namespace=(1, 2))
    with pytest.raises(OptionError, match=r"a TimeWindow has 2 parts .*pass start,end"):
        statetool.set_values(ZOO, target, "win-tumble-reduce", key, change, namespace=[1, 2, 3])
    with pytest.raises(EncodeError, match="'today' is not a value"):
        statetool.set_values(ZOO, target, "win-tumble-reduce", key, change, namespace="today")
    with pytest.raises(OptionError, match="windows of the operator merge"):
        statetool.set_values(
            ZOO, target, "win-session-list", key, remove=["window-contents"], namespace=(1, 2), new_key=True
        )
    with pytest.raises(OptionError, match="state 'count' has no window"):
        statetool.set_values(ZOO, target, "win-count", key, {"count": 1}, namespace=(1, 2))
    with pytest.raises(OptionError, match="timer service 'window-timers' is stored per window"):
        statetool.set_values(ZOO, target, "win-tumble-reduce", key, add_timers=[("event", 1)])
    value = {"f0": key, "f1": 1, "f2": 2}
    statetool.set_values(
        ZOO, target, "win-tumble-reduce", key, {"window-contents": value}, namespace=(1, 2), new_key=True
    )
    assert {"start": 1, "end": 2} in [row["window"] for row in windows_of(target, "win-tumble-reduce")]


def test_states_of_global_windows_need_no_namespace(tmp_path: Path) -> None:
    rows = windows_of(ZOO, "win-count")
    statetool.set_values(ZOO, str(tmp_path / "new"), "win-count", rows[0]["key"], {"count": 1})
    rows[0]["count"] = 1
    assert windows_of(str(tmp_path / "new"), "win-count") == rows


def test_namespaces_of_variable_length(tmp_path: Path) -> None:
    maps = pa.array([[("p", 1), ("q", 2)], [("p", 3)], [("p", 4)]], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"k": ["a", "a", "aa"], "n": ["x", "xy", "x"], "m": maps})
    state = statetool.bootstrap_keyed_state(table, key="k", namespace="n", states={"m": statetool.map_of()})
    writer = statetool.SavepointWriter.new(max_parallelism=8).with_operator("op", state)
    source = writer.write(str(tmp_path / "old"), flink_version="2.3")

    def found(path: str) -> list[tuple[str, str, str, int]]:
        rows = statetool.load(path)["op"].to_arrow("m").to_pylist()
        return sorted((r["key"], r["namespace"], r["map_key"], r["value"]) for r in rows)

    statetool.set_values(source, str(tmp_path / "one"), "op", "a", {"m[p]": 9}, namespace="x")
    assert found(str(tmp_path / "one")) == [
        ("a", "x", "p", 9),
        ("a", "x", "q", 2),
        ("a", "xy", "p", 3),
        ("aa", "x", "p", 4),
    ]
    plan = statetool.set_values(source, str(tmp_path / "all"), "op", "a", {"m": {"r": 5}}, namespace="x")
    assert [(row.before, row.after) for row in plan.changes] == [("2 entries", "1 entry")]
    assert found(str(tmp_path / "all")) == [("a", "x", "r", 5), ("a", "xy", "p", 3), ("aa", "x", "p", 4)]
    with pytest.raises(OptionError, match=r"no namespace 'y'.*the key has 'x', 'xy'"):
        statetool.set_values(source, str(tmp_path / "none"), "op", "a", {"m[p]": 9}, namespace="y")


def test_values_with_a_time_to_live_keep_their_last_access(tmp_path: Path) -> None:
    before = statetool.load(ZOO)["with-ttl"].to_arrow(keys=[4], ttl="raw").to_pylist()[0]
    after = set_and_read(tmp_path, "with-ttl", 4, {"ttl-value": "new", "ttl-list[0]": 9, "ttl-map[x]": 5}, now_ms=1000)
    assert after["ttl-value"] == before["ttl-value"] | {"value": "new"}
    assert after["ttl-list"][0] == before["ttl-list"][0] | {"value": 9}
    assert dict(after["ttl-map"])["x"]["last_access"].timestamp() == 1


def test_unchanged_parts_of_whole_lists_and_maps_keep_their_last_access(tmp_path: Path) -> None:
    before = statetool.load(ZOO)["with-ttl"].to_arrow(keys=[4], ttl="raw").to_pylist()[0]
    elements, entries = before["ttl-list"], before["ttl-map"]
    values = [e["value"] for e in elements]
    mapped = {k: v["value"] for k, v in entries}
    edit = {"ttl-list": [99, *values[1:]], "ttl-map": {**mapped, "x": 5}}
    after = set_and_read(tmp_path, "with-ttl", 4, edit, now_ms=1000)
    assert [e["value"] for e in after["ttl-list"]] == edit["ttl-list"]
    assert after["ttl-list"][0]["last_access"].timestamp() == 1
    assert after["ttl-list"][1:] == elements[1:]
    new = dict(after["ttl-map"])
    assert new.pop("x")["last_access"].timestamp() == 1
    assert new == dict(entries)


@pytest.mark.parametrize(
    "edit",
    [
        {"m[null]": 1},
        {"m": [[None, 1]]},
        {'m["\\ud800"]': 1},
        {"m": {"\ud800": 1}},
        {"l": ["\udc00"]},
        {"l[+]": "\udc00"},
        {"s": "a\ud800"},
        {"n": {"a": "\ud800"}},
        {"n": [[None, "x"]]},
        {"n[null]": "x"},
    ],
)
def test_what_no_table_can_show_is_refused(tmp_path: Path, edit: dict[str, Any]) -> None:
    kind = pa.map_(pa.string(), pa.string())
    table = pa.table(
        {
            "k": ["a"],
            "m": pa.array([[("p", 2)]], pa.map_(pa.string(), pa.int64())),
            "l": pa.array([["x"]], pa.list_(pa.string())),
            "s": ["s"],
            "n": pa.array([[("q", "r")]], kind),
        }
    )
    states = {"m": statetool.map_of(), "l": statetool.list_of(), "s": statetool.value(), "n": statetool.value()}
    bootstrap = statetool.bootstrap_keyed_state(table, key="k", states=states)
    source = statetool.SavepointWriter.new().with_operator("op", bootstrap).write(str(tmp_path / "old"))
    with pytest.raises(EncodeError, match="tables cannot show"):
        statetool.set_values(source, str(tmp_path / "new"), "op", "a", edit)
    with pytest.raises(EncodeError, match="tables cannot show"):
        statetool.set_values(source, str(tmp_path / "new"), "op", "\ud800", {"s": "x"}, new_key=True)
    assert not (tmp_path / "new").exists()


def test_null_keys_of_maps_are_found_and_can_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"k": ["a"], "m": pa.array([[("p", 2)]], pa.map_(pa.string(), pa.int64()))})
    bootstrap = statetool.bootstrap_keyed_state(table, key="k", states={"m": statetool.map_of()})
    source = statetool.SavepointWriter.new().with_operator("op", bootstrap).write(str(tmp_path / "old"))
    with monkeypatch.context() as patched:
        patched.setattr(set_values, "_map_key", lambda serializer, key: set_values.encode(serializer, key))
        statetool.set_values(source, str(tmp_path / "bad"), "op", "a", {"m[null]": 1})
    bad = str(tmp_path / "bad")
    with pytest.raises(DecodeError, match="null key"):
        statetool.load(bad)["op"].to_arrow()
    (problem,) = statetool.verify(bad, deep=True).problems
    assert problem.severity == "note"
    assert problem.problem.startswith("valid, but no table can show it: a map with a null key")
    statetool.set_values(bad, str(tmp_path / "good"), "op", "a", remove=["m[null]"])
    assert statetool.load(str(tmp_path / "good"))["op"].to_arrow()["m"].to_pylist() == [[("p", 2)]]


@pytest.mark.parametrize("stamp", [1 << 63, -(1 << 63) - 1, (1 << 64) + 5])
def test_timers_beyond_64_bits_are_refused(tmp_path: Path, stamp: int) -> None:
    for adds in (True, False):
        added, removed = ([("event", stamp)], []) if adds else ([], [("event", stamp)])
        with pytest.raises(OptionError, match="does not fit into 64 bits"):
            statetool.set_values(
                ZOO, str(tmp_path / "new"), "timers", "timer-3", add_timers=added, remove_timers=removed
            )
    for number in ("1_0", " 5", "٣", "9223372036854775808"):
        given = ["set", ZOO, str(tmp_path / "new"), "--uid", "timers", "--key", "timer-3"]
        assert CliRunner().invoke(cli, [*given, "--add-timer", f"event={number}"]).exit_code == 2
    edges = [("event", (1 << 63) - 1), ("event", -(1 << 63))]
    statetool.set_values(ZOO, str(tmp_path / "new"), "timers", "timer-3", add_timers=edges)
    new = statetool.load(str(tmp_path / "new"))["timers"].to_arrow("timers", keys=["timer-3"]).to_pylist()
    assert {("event", stamp) for _, stamp in edges} <= {(r["domain"], r["timestamp"]) for r in new}


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 1 << 80])
def test_numbers_beyond_64_bits_are_refused_everywhere(tmp_path: Path, number: int) -> None:
    new = str(tmp_path / "new")
    for write in (
        lambda: statetool.purge(ZOO, new, event_timers_before_ms=number),
        lambda: statetool.purge(ZOO, new, processing_timers_before_ms=number),
        lambda: statetool.purge(ZOO, new, {"ttl-value": number}),
        lambda: statetool.purge(ZOO, new, {"ttl-value": 1}, now_ms=number),
        lambda: statetool.set_values(ZOO, new, "with-ttl", 4, {"plain": 1}, now_ms=number),
        lambda: statetool.sample(ZOO, new, key_groups=f"0-{abs(number)}"),
        lambda: statetool.sample(ZOO, new, key_groups=[abs(number)]),
        lambda: statetool.sample(ZOO, new, key_groups="32768"),
        lambda: statetool.rescale(ZOO, new, number),
        lambda: statetool.convert(ZOO, new, checkpoint_id=number),
        lambda: statetool.SavepointWriter.new().with_checkpoint_id(number),
        lambda: statetool.load(ZOO)["with-ttl"].to_arrow(ttl="hide_expired", ttl_ms=1, now_ms=number),
        lambda: statetool.load(ZOO)["with-ttl"].to_arrow(ttl="hide_expired", ttl_ms=number),
    ):
        with pytest.raises(OptionError):
            write()
    assert not (tmp_path / "new").exists()


def test_changes_show_the_parts_at_their_paths(tmp_path: Path) -> None:
    row = pa.struct([("f0", pa.int64()), ("f1", pa.list_(pa.string()))])
    table = pa.table(
        {
            "k": ["a"],
            "row": pa.array([{"f0": 1, "f1": ["x", "y"]}], row),
            "m": pa.array([[("p", {"f0": 2, "f1": []})]], pa.map_(pa.string(), row)),
            "l": pa.array([[1, 2]], pa.list_(pa.int64())),
        }
    )
    states = {"row": statetool.value(), "m": statetool.map_of(), "l": statetool.list_of()}
    bootstrap = statetool.bootstrap_keyed_state(table, key="k", states=states)
    source = statetool.SavepointWriter.new().with_operator("op", bootstrap).write(str(tmp_path / "old"))
    values = {"row.f0": 5, "row.f1[0]": "z", "row.f1[+]": "v", "m[p].f0": 6, "l[1]": 7, "l[+]": 8}
    plan = statetool.set_values(source, str(tmp_path / "new"), "op", "a", values, remove=["row.f1[1]", "l[0]"])
    assert [(row.path, row.before, row.after) for row in plan.changes] == [
        ("row.f0", "1", "5"),
        ("row.f1[0]", "'x'", "'z'"),
        ("row.f1[+]", None, "'v'"),
        ("m[p].f0", "2", "6"),
        ("l[1]", "2", "7"),
        ("l[+]", None, "8"),
        ("row.f1[1]", "'y'", None),
        ("l[0]", "1", None),
    ]


def test_timers_are_added_and_removed(tmp_path: Path) -> None:
    old = statetool.load(ZOO)["timers"].to_arrow("timers", keys=["timer-3"])
    gone = min(r["timestamp"] for r in old.to_pylist() if r["domain"] == "event")
    statetool.set_values(
        ZOO,
        str(tmp_path / "new"),
        "timers",
        "timer-3",
        add_timers=[("event/user-timers", 7), ("processing", -1)],
        remove_timers=[("event", gone)],
    )
    new = statetool.load(str(tmp_path / "new"))["timers"].to_arrow("timers", keys=["timer-3"])
    kept = {(r["domain"], r["timestamp"]) for r in old.to_pylist()}
    assert {(r["domain"], r["timestamp"]) for r in new.to_pylist()} == kept - {("event", gone)} | {
        ("event", 7),
        ("processing", -1),
    }


def test_a_new_key_needs_an_option(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--new-key"):
        statetool.set_values(ZOO, str(tmp_path / "new"), "with-ttl", 999, {"plain": 3})
    assert set_and_read(tmp_path, "with-ttl", 999, {"plain": 3}, new_key=True)["plain"] == 3


@pytest.mark.parametrize(
    ("path", "value", "error", "message"),
    [
        ("plan", 1, UnknownNameError, "did you mean plain"),
        ("plain", "abc", EncodeError, "not a value of type int64"),
        ("plain", 1 << 70, StatetoolError, "1180591620717411303424"),
        ("plain.x", 1, OptionError, "does not fit"),
        ("plain[", 1, OptionError, "not valid"),
        ("ttl-list[7]", 1, OptionError, "not an index of a list of 7"),
        ("ttl-list.x", 1, OptionError, "no field"),
        ("ttl-list", 1, OptionError, "JSON list"),
        ("ttl-map.x", 1, OptionError, "no field"),
    ],
)
def test_paths_and_values_that_do_not_fit(
    tmp_path: Path, path: str, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        statetool.set_values(ZOO, str(tmp_path / "new"), "with-ttl", 4, {path: value})
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_set_is_refused(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    with pytest.raises(OptionError, match="nothing to set"):
        statetool.set_values(ZOO, target, "with-ttl", 4)
    with pytest.raises(OptionError, match="per window"):
        statetool.set_values(ZOO, target, "win-session-list", "w0", {"window-contents": []})
    with pytest.raises(UnsupportedError, match="--declare"):
        statetool.set_values(ZOO, target, "orders", "order-18", {"order.x": 4})
    with pytest.raises(OptionError, match="exists already"):
        statetool.set_values(ZOO, target, "timers", "timer-3", add_timers=[("event", 1700000131000)])
    with pytest.raises(OptionError, match="does not exist"):
        statetool.set_values(ZOO, target, "timers", "timer-3", remove_timers=[("event", 1)])
    with pytest.raises(UnknownNameError, match="timer services"):
        statetool.set_values(ZOO, target, "timers", "timer-3", add_timers=[("event/other", 1)])
    with pytest.raises(OptionError, match="time domain"):
        statetool.set_values(ZOO, target, "timers", "timer-3", add_timers=[("evnt", 1)])
    with pytest.raises(UnknownNameError, match="no key"):
        statetool.set_values(ZOO, target, "with-ttl", 4, remove=["ttl-map[nothing]"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", ("a", "1")),
        ('a["x=y"]=b=c', ('a["x=y"]', "b=c")),
        ("a[x=]=1", ("a[x=]", "1")),
        ("a=", ("a", "")),
        ("=1", ("", "1")),
    ],
)
def test_assignments_end_their_paths_outside_of_brackets(text: str, expected: tuple[str, str]) -> None:
    assert split_assignment(text) == expected


@pytest.mark.parametrize("text", ["a", "", "a[1", "a[=1"])
def test_texts_that_are_not_assignments(text: str) -> None:
    with pytest.raises(OptionError):
        split_assignment(text)


@pytest.mark.parametrize(
    ("logical", "given", "expected"),
    [
        (Scalar("float64"), 2**53, 2.0**53),
        (Scalar("float64"), Decimal("0.1"), 0.1),
        (Scalar("float64"), 1.5, 1.5),
        (Scalar("float64"), float("inf"), float("inf")),
        (Scalar("float32"), Decimal("0.5"), 0.5),
        (TimestampType("ms", zoned=False), "1970-01-01T00:00:01.234000", 1_234),
        (TimestampType("us", zoned=False), "1970-01-01T00:00:01.234567", 1_234_567),
        (TimestampType("ns", zoned=False), "1970-01-01T00:00:01.234567", 1_234_567_000),
        (MapType(Scalar("string"), Scalar("int32")), [["a", 1], ["b", 2]], [("a", 1), ("b", 2)]),
    ],
)
def test_values_that_a_type_holds_exactly(logical: LogicalType, given: object, expected: object) -> None:
    assert plain_of(logical, given, now_ms=0) == expected


@pytest.mark.parametrize(
    ("logical", "given"),
    [
        (Scalar("float64"), 2**53 + 1),
        (Scalar("float64"), 10**400),
        (Scalar("float64"), Decimal("1e400")),
        (Scalar("float64"), Decimal("1e-400")),
        (Scalar("float32"), 2**24 + 1),
        (Scalar("float32"), Decimal("1e39")),
        (Scalar("float32"), Decimal("1e-50")),
        (TimestampType("ms", zoned=False), "1970-01-01T00:00:01.234567"),
        (TimestampType("ns", zoned=False), "1970-01-01T00:00:01.123456789"),
        (MapType(Scalar("string"), Scalar("int32")), [["a", 1], ["a", 2]]),
        (MapType(Scalar("string"), Scalar("int32")), 0),
    ],
)
def test_values_that_would_be_rounded_or_lost_are_refused(logical: LogicalType, given: object) -> None:
    with pytest.raises(EncodeError):
        plain_of(logical, given, now_ms=0)


def test_an_object_has_each_name_once() -> None:
    assert parse_value('{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    with pytest.raises(EncodeError, match="twice"):
        parse_value('{"a": 1, "a": 2}')


@pytest.mark.parametrize("value", [0, False, None, "abc", [1]])
def test_a_value_that_is_no_map_does_not_clear_a_map(tmp_path: Path, value: object) -> None:
    with pytest.raises(EncodeError, match="a map is"):
        statetool.set_values(ZOO, str(tmp_path / "new"), "with-ttl", 4, {"ttl-map": value})
    assert not (tmp_path / "new").exists()
