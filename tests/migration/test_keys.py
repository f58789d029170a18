"""Changed keys: every row and timer under its new key, in the key group of its hash code; keys that meet are refused or merged.

``tests/flink/test_change_keys.py`` restores such savepoints.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool import flink as types
from statetool.errors import EncodeError, OptionError, StatetoolError, UnknownNameError, UnsupportedError
from tests.support.flink import judge
from tests.support.flink.key_changes import CHANGES, FORMS, RESULTS, KeyChange, change_keys
from tests.support.quick import quick

WRITTEN = "v2_3_0-rocksdb-canonical"
pytestmark = pytest.mark.filterwarnings("ignore:.*keep the old keys", "ignore:.*keeps the old keys")


@pytest.mark.parametrize("changes", quick(list(CHANGES), "expressions"))
def test_every_row_and_timer_is_under_its_new_key(corpus: Path, tmp_path: Path, changes: str) -> None:
    expected = change_keys(corpus / WRITTEN, tmp_path / "new", CHANGES[changes], FORMS["rocksdb"][1])
    assert len(expected) == len(CHANGES[changes])
    wrong = judge.read_back(tmp_path / "new", expected, parallelism=2)
    assert [w for w in wrong if "parallelism" not in w] == []


def test_real_flink_restored_all_changes() -> None:
    header, *rows = (line.split("\t") for line in RESULTS.read_text().splitlines())
    assert header == ["flink", "form", "changes", "operator", "wrong"]
    assert len(rows) == 390
    assert {row[1] for row in rows} == set(FORMS)
    assert {row[4] for row in rows} == {""}
    assert {row[0] for row in rows} == {"1.20.5", "2.3.0"}
    assert {(row[2], row[3]) for row in rows} == {(name, o) for name, of in CHANGES.items() for o in of}


def sample(folder: Path, n: int = 12, text: str = "", **more: Any) -> str:
    """Write states of all kinds by a number, in which keys meet that are equal modulo 3."""
    pair = pa.struct({"f0": pa.int64(), "f1": pa.int64()})
    table = pa.table(
        {
            "key": pa.array(range(n), pa.int64()),
            "last": pa.array(range(100, 100 + n), pa.int64()),
            "names": pa.array([[f"n{i}{text}", "x"] for i in range(n)], pa.list_(pa.string())),
            "prices": pa.array([[(i, i), (-1, i)] for i in range(n)], pa.map_(pa.int64(), pa.int64())),
            "total": pa.array(range(n), pa.int64()),
            "mean": pa.array([{"f0": i, "f1": 1} for i in range(n)], pair),
        }
    )
    long = "BIGINT"
    states = {
        "last": statetool.value(long),
        "names": statetool.list_of("STRING"),
        "prices": statetool.map_of(long, long),
        "total": statetool.reducing(long),
        "mean": statetool.aggregating(types.tuple_of(long, long)),
    }
    timers = pa.table({"key": pa.array([*range(n), 0], pa.int64()), "timestamp": pa.array([7] * n + [8], pa.int64())})
    timers = timers.append_column("domain", pa.array(["event"] * len(timers)))
    bootstrap = statetool.bootstrap_keyed_state(table, states=states, timers=timers)
    writer = statetool.SavepointWriter.new().with_operator("sums", bootstrap, **{"parallelism": 2, **more})
    writer.write(str(folder))
    return str(folder)


def read(path: Path) -> statetool.Operator:
    return statetool.load(str(path), uids=["sums"])["sums"]


def rows_of(path: Path, table: str = "keyed_state") -> dict[Any, dict[str, Any]]:
    return {row["key"]: row for row in read(path).to_arrow(table).to_pylist()}


MERGE = {
    "value": "keep-newest",
    "list": "merge",
    "map": "keep-newest",
    "reducing": "merge",
    "aggregating": "merge",
    "timers": "merge",
}
CHOICES: dict[str, Any] = {
    "on_conflict": MERGE,
    "merges": {"sums.total": "a + b", "sums.mean": "{'f0': a.f0 + b.f0, 'f1': a.f1 + b.f1}"},
    "newest": {"sums.last": "value", "sums.prices": "value"},
}


def test_keys_that_meet_are_merged_by_the_kind_of_each_state(tmp_path: Path) -> None:
    source = sample(tmp_path / "old")
    statetool.migrate(source, str(tmp_path / "new"), keys={"sums": "'k' || key % 3"}, **CHOICES)
    found = rows_of(tmp_path / "new")
    assert found.keys() == {"k0", "k1", "k2"}
    for rest in range(3):
        own, row = range(rest, 12, 3), found[f"k{rest}"]
        assert row["last"] == 100 + max(own)
        assert Counter(row["names"]) == Counter(name for i in own for name in (f"n{i}", "x"))
        assert dict(row["prices"]) == {**{i: i for i in own}, -1: max(own)}
        assert row["total"] == sum(own)
        assert row["mean"] == {"f0": sum(own), "f1": 4}
    timers = read(tmp_path / "new").to_arrow("timers").to_pylist()
    assert sorted((t["key"], t["timestamp"]) for t in timers) == [("k0", 7), ("k0", 8), ("k1", 7), ("k2", 7)]


@pytest.mark.parametrize("sql", ["key % 500", "key * 0"])
def test_key_groups_that_exceed_memory_are_merged_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    source = sample(tmp_path / "old", 3_000, "." * 600, max_parallelism=1, parallelism=1)
    statetool.migrate(source, str(tmp_path / "in-memory"), keys={"sums": sql}, **CHOICES)
    monkeypatch.setattr("statetool.saving.local.MEMORY_BYTES", 1 << 20)
    statetool.migrate(source, str(tmp_path / "by-disk"), keys={"sums": sql}, **CHOICES)
    assert rows_of(tmp_path / "by-disk") == rows_of(tmp_path / "in-memory")
    with pytest.raises(UnsupportedError, match=r"old keys .* meet under the new key"):
        statetool.migrate(source, str(tmp_path / "refused"), keys={"sums": sql})


def test_keys_follow_from_states(tmp_path: Path) -> None:
    source = sample(tmp_path / "old")
    statetool.migrate(source, str(tmp_path / "new"), keys={"sums": "last * 10 + len(names)"})
    assert {key: row["total"] for key, row in rows_of(tmp_path / "new").items()} == {
        (100 + i) * 10 + 2: i for i in range(12)
    }
    timers = read(tmp_path / "new").to_arrow("timers").to_pylist()
    assert {t["key"] for t in timers} == rows_of(tmp_path / "new").keys()


def test_old_keys_that_meet_are_named(tmp_path: Path) -> None:
    source = sample(tmp_path / "old", 2)
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "the old keys (0 and 1|1 and 0) meet under the new key 5"),
        ({"on_conflict": {"list": "merge"}}, "meet under the new key 5.*state last"),
        (
            {**CHOICES, "on_conflict": {**MERGE, "timers": "error"}},
            "meet under the new key 5.*state _timer_state/event",
        ),
        (
            {**CHOICES, "on_conflict": {**MERGE, "map": "error"}, "newest": {"sums.last": "value"}},
            "meet under the new key 5.*state prices",
        ),
        (
            {**CHOICES, "on_conflict": {**MERGE, "map": "merge"}, "newest": {"sums.last": "value"}},
            "equal key of the map",
        ),
        ({**CHOICES, "newest": {**CHOICES["newest"], "sums.last": "1"}}, "neither value is newer.*state last"),
    ]
    for choices, message in cases:
        for dry_run in (True, False):
            with pytest.raises(UnsupportedError, match=message):
                statetool.migrate(source, str(tmp_path / "new"), keys={"sums": "5"}, dry_run=dry_run, **choices)
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_a_key_is_refused(tmp_path: Path) -> None:
    source = sample(tmp_path / "old", 300)
    cases: list[tuple[dict[str, Any], type[StatetoolError], str]] = [
        ({"key_types": {"sums": "TINYINT"}}, EncodeError, "for the old key 128|for the old key [12]"),
        ({"key_types": {"sums": "ARRAY<BIGINT>"}}, UnsupportedError, "cannot become"),
        ({"keys": {"sums": "nullif(key, 7)"}}, EncodeError, "the new key is null, for the old key 7"),
        ({"keys": {"sums": "{'a': key}"}}, OptionError, "can be a tuple, a Row, a POJO or RowData"),
        ({"keys": {"sums": "key + nothing"}}, OptionError, "no column 'nothing'"),
        ({"keys": {"sums": "now()"}}, OptionError, "result changes"),
        ({"keys": {"other": "key"}}, UnknownNameError, "other"),
        ({"keys": {"sums": "key"}, "on_conflict": {"lists": "merge"}}, OptionError, "not a kind of state"),
        ({"keys": {"sums": "key"}, "on_conflict": {"list": "newest"}}, OptionError, "not a policy"),
        ({"keys": {"sums": "key"}, "on_conflict": {"list": "keep-newest"}}, OptionError, "the newest"),
        ({"keys": {"sums": "key"}, "on_conflict": {"reducing": "merge"}}, OptionError, "needs an expression"),
        ({"keys": {"sums": "key"}, "merges": {"sums.nothing": "a"}}, UnknownNameError, "sums.nothing"),
        ({"to": source, "merges": {"sums.total": "a"}}, OptionError, "for a change of keys"),
        (
            {"keys": {"sums": "{'id': key}"}, "key_types": {"sums": types.pojo("a.Key", {"id": "BIGINT"})}},
            OptionError,
            "computed by user code",
        ),
    ]
    for arguments, error, message in cases:
        with pytest.raises(error, match=message):
            statetool.migrate(source, str(tmp_path / "new"), **arguments)
    assert not (tmp_path / "new").exists()


def test_records_in_flight_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="in-flight records"):
        change_keys(corpus / "v2_3_0-unaligned", tmp_path / "new", {"slow": KeyChange(str, type="STRING")}, {})


def test_operators_that_keep_such_keys_are_named(tmp_path: Path) -> None:
    table = pa.table({"key": [1, 2], "v": [1, 2]})
    writer = statetool.SavepointWriter.new()
    for uid in ("first", "second"):
        writer = writer.with_operator(uid, statetool.bootstrap_keyed_state(table), parallelism=1)
    writer.write(str(tmp_path / "old"))
    with pytest.warns(UserWarning, match="second"):
        plan = statetool.migrate(
            statetool.load(str(tmp_path / "old"), uids=["first", "second"]),
            str(tmp_path / "new"),
            keys={"first": "-key"},
        )
    assert [(row.step, row.change) for row in plan.rows] == [("first.key", "key"), ("second.key", "unchanged")]
