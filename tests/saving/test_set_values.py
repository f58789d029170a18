"""Values and timers of one key, set without Spark: nothing else changes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import statetool
from statetool.demo import SAVEPOINT
from statetool.errors import EncodeError, OptionError, StatetoolError, UnknownNameError, UnsupportedError
from statetool.saving.value_paths import parse_value, plain_of, split_assignment
from statetool.snapshot.inventory import Inventory
from statetool.types import LogicalType, MapType, Scalar, TimestampType
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots.entries import damage, entries_of

KINDS = (
    "v1_20_5-rocksdb-native",
    "v2_3_0-changelog-rocksdb",
    "v2_3_0-hashmap-canonical-compressed",
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-rocksdb-heap-timers",
)


def set_and_read(tmp_path: Path, uid: str, key: Any, values: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    statetool.set_values(SAVEPOINT, str(tmp_path / "new"), uid, key, values, **options)
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
    before = statetool.load(SAVEPOINT)["collections-by-string"].to_arrow(keys=[""]).to_pylist()[0]
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


def test_values_with_a_time_to_live_keep_their_last_access(tmp_path: Path) -> None:
    before = statetool.load(SAVEPOINT)["with-ttl"].to_arrow(keys=[4], ttl="raw").to_pylist()[0]
    after = set_and_read(tmp_path, "with-ttl", 4, {"ttl-value": "new", "ttl-list[0]": 9, "ttl-map[x]": 5}, now_ms=1000)
    assert after["ttl-value"] == before["ttl-value"] | {"value": "new"}
    assert after["ttl-list"][0] == before["ttl-list"][0] | {"value": 9}
    assert dict(after["ttl-map"])["x"]["last_access"].timestamp() == 1


def test_timers_are_added_and_removed(tmp_path: Path) -> None:
    old = statetool.load(SAVEPOINT)["timers"].to_arrow("timers", keys=["timer-3"])
    gone = min(r["timestamp"] for r in old.to_pylist() if r["domain"] == "event")
    statetool.set_values(
        SAVEPOINT,
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
        statetool.set_values(SAVEPOINT, str(tmp_path / "new"), "with-ttl", 999, {"plain": 3})
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
        statetool.set_values(SAVEPOINT, str(tmp_path / "new"), "with-ttl", 4, {path: value})
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_set_is_refused(tmp_path: Path) -> None:
    target = str(tmp_path / "new")
    with pytest.raises(OptionError, match="nothing to set"):
        statetool.set_values(SAVEPOINT, target, "with-ttl", 4)
    with pytest.raises(OptionError, match="per window"):
        statetool.set_values(SAVEPOINT, target, "win-session-list", "w0", {"window-contents": []})
    with pytest.raises(UnsupportedError, match="--declare"):
        statetool.set_values(SAVEPOINT, target, "orders", "order-18", {"order.x": 4})
    with pytest.raises(OptionError, match="exists already"):
        statetool.set_values(SAVEPOINT, target, "timers", "timer-3", add_timers=[("event", 1700000131000)])
    with pytest.raises(OptionError, match="does not exist"):
        statetool.set_values(SAVEPOINT, target, "timers", "timer-3", remove_timers=[("event", 1)])
    with pytest.raises(UnknownNameError, match="timer services"):
        statetool.set_values(SAVEPOINT, target, "timers", "timer-3", add_timers=[("event/other", 1)])
    with pytest.raises(OptionError, match="time domain"):
        statetool.set_values(SAVEPOINT, target, "timers", "timer-3", add_timers=[("evnt", 1)])
    with pytest.raises(UnknownNameError, match="no key"):
        statetool.set_values(SAVEPOINT, target, "with-ttl", 4, remove=["ttl-map[nothing]"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a=1", ("a", "1")), ('a["x=y"]=b=c', ('a["x=y"]', "b=c")), ("a[x=]=1", ("a[x=]", "1")), ("a=", ("a", ""))],
)
def test_assignments_end_their_paths_outside_of_brackets(text: str, expected: tuple[str, str]) -> None:
    assert split_assignment(text) == expected


@pytest.mark.parametrize("text", ["a", "=1", "a[1", "a[=1"])
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
        statetool.set_values(SAVEPOINT, str(tmp_path / "new"), "with-ttl", 4, {"ttl-map": value})
    assert not (tmp_path / "new").exists()
