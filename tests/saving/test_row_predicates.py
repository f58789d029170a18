"""SQL conditions on the key and the states select exactly the keys whose rows fulfil them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError
from statetool.formats.operator_id import operator_id_for_uid
from statetool.saving.streams import row_predicates
from statetool.saving.streams.predicates import matching_rows
from statetool.saving.streams.row_predicates import row_filter
from statetool.snapshot.inventory import Inventory
from tests.support.checks.corpus_check import Case
from tests.support.quick import quick
from tests.support.snapshots.entries import damage, readable
from tests.support.zoo import ZOO

KINDS = (
    "v1_20_5-hashmap-checkpoint",
    "v1_20_5-rocksdb-native",
    "v2_3_0-changelog-hashmap",
    "v2_3_0-forst",
    "v2_3_0-rocksdb-canonical",
    "v2_3_0-rocksdb-heap-timers",
)
CONDITIONS = (
    "total > 300 AND key <> ''",
    "prices['last'] > 1",
    "len(history) > 5 OR list_contains(names, '')",
    "visits[9].f1 = 'v9'",
    "seldom IS NULL",
    "mean.f0 > 5",
)


def keys_of(path: str, uid: str) -> set[Any]:
    tables = ("keyed_state", "timers")
    return {key for table in tables for key in statetool.load(path)[uid].to_arrow(table)["key"].to_pylist()}


def keys_where(path: str, uid: str, where: str) -> set[Any]:
    rows = statetool.load(path)[uid].to_arrow(decimals="plain")
    return set(rows.take(pa.array(matching_rows(rows, where)))["key"].to_pylist())


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_on_all_kinds_of_state(tmp_path: Path, where: str) -> None:
    uid = "collections-by-string"
    chosen, every = keys_where(ZOO, uid, where), keys_of(ZOO, uid)
    done = statetool.erase(ZOO, str(tmp_path / "erased"), where=where, operators=[uid])
    statetool.keep(ZOO, str(tmp_path / "kept"), where=where, operators=[uid])
    assert chosen < every
    assert keys_of(str(tmp_path / "erased"), uid) == every - chosen
    assert keys_of(str(tmp_path / "kept"), uid) == chosen
    assert done.proof is not None
    assert [o.keys for o in done.plan.operators] == [len(chosen)]


@pytest.mark.parametrize("name", quick(KINDS, "v2_3_0-rocksdb-canonical", "v2_3_0-rocksdb-heap-timers"))
def test_conditions_on_all_forms_of_snapshots(corpus: Path, tmp_path: Path, name: str) -> None:
    source = str(readable(Case(corpus / name), tmp_path / "readable"))
    for number, (uid, where) in enumerate([("timers", "registered % 2 = 1"), ("with-ttl", '"ttl-sum" > 300')]):
        wanted = operator_id_for_uid(uid)  # releases before 2.0 do not store uids
        uid = next(o.label for o in Inventory(source).operators.values() if o.state.operator_id == wanted)
        chosen, every = keys_where(source, uid, where), keys_of(source, uid)
        target = str(tmp_path / str(number))
        statetool.erase(source, target, where=where, operators=[uid])
        assert set() < chosen < every
        assert keys_of(target, uid) == every - chosen
        assert not damage(Path(target))


def test_keys_without_the_states_have_null(tmp_path: Path) -> None:
    only_timers = str(tmp_path / "only_timers")
    statetool.set_values(ZOO, only_timers, "timers", "timer-3", remove=["registered"])
    statetool.erase(only_timers, str(tmp_path / "new"), where="registered IS NULL", operators=["timers"])
    assert keys_of(only_timers, "timers") - keys_of(str(tmp_path / "new"), "timers") == {"timer-3"}


def test_a_condition_that_is_null_is_not_fulfilled(tmp_path: Path) -> None:
    only_timers = str(tmp_path / "only_timers")
    statetool.set_values(ZOO, only_timers, "timers", "timer-3", remove=["registered"])
    statetool.erase(only_timers, str(tmp_path / "erased"), where="registered <> 100", operators=["timers"])
    statetool.keep(only_timers, str(tmp_path / "kept"), where="registered <> 100", operators=["timers"])
    assert keys_of(str(tmp_path / "erased"), "timers") == {"timer-3"}
    assert keys_of(str(tmp_path / "kept"), "timers") == keys_of(only_timers, "timers") - {"timer-3"}


def test_nanoseconds_are_columns_of_keys_and_states(tmp_path: Path) -> None:
    stamps = pa.array([i * 60_000_000_000 + i % 3 for i in range(60)], pa.timestamp("ns"))
    table = pa.table({"key": stamps, "t": stamps.cast(pa.timestamp("ns", "UTC"))})
    state = statetool.bootstrap_keyed_state(table, states={"t": statetool.value("TIMESTAMP")}, key_type="TIMESTAMP_NTZ")
    source = str(tmp_path / "sp")
    statetool.SavepointWriter.new().with_operator("op", state).write(source, flink_version="2.3")
    for number, (where, left) in enumerate(
        [
            ("key_nanos = 2", 20),
            ("key_nanos IS NOT NULL", 60),
            ("key < '1970-01-01 00:10:00'", 10),
            ("t_nanos = 1", 20),
            ("t_nanos = key_nanos AND hour(key) = 0 AND minute(t) > 50", 9),
        ]
    ):
        statetool.keep(source, str(tmp_path / f"{number}"), where=where)
        assert statetool.load(str(tmp_path / f"{number}"))["op"].to_arrow().num_rows == left, where


def test_operators_without_the_states_are_not_searched(tmp_path: Path) -> None:
    done = statetool.erase(ZOO, str(tmp_path / "new"), where="registered > 6")
    assert [o.operator for o in done.plan.operators if not o.skipped] == ["timers"]
    assert {row.operator for row in done.plan.erased} == {"timers"}


def test_the_columns_are_named_if_one_does_not_exist() -> None:
    with pytest.raises(
        OptionError, match=r"the columns are key \(int64\), plain \(int64\), ttl-value, ttl-map"
    ) as error:
        statetool.erase(ZOO, "unused", where="plain = nothing", operators=["with-ttl"], dry_run=True)
    assert "nothing" in str(error.value)


def test_edits_combine_conditions_with_keys(tmp_path: Path) -> None:
    operator = statetool.load(ZOO)["timers"]
    new = operator.erase(where="registered > 6").erase("timers", ["timer-4"]).write(str(tmp_path / "new"))
    assert keys_of(new.path, "timers") == keys_where(ZOO, "timers", "registered <= 6 AND key <> 'timer-4'")


def test_keys_are_evaluated_again_if_they_were_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statetool.erase(ZOO, str(tmp_path / "a"), where="registered > 6", operators=["timers"])
    monkeypatch.setattr(row_predicates, "_REMEMBERED_BYTES", 0)
    statetool.erase(ZOO, str(tmp_path / "b"), where="registered > 6", operators=["timers"])
    a, b = (keys_of(str(tmp_path / name), "timers") for name in "ab")
    assert a == b


def test_a_task_gets_only_the_splits_of_its_key_groups(tmp_path: Path) -> None:
    numbers = pa.array(range(1000), pa.int64())
    state = statetool.bootstrap_keyed_state(pa.table({"key": numbers, "n": numbers}), states={"n": statetool.value()})
    writer = statetool.SavepointWriter.new(max_parallelism=128).with_operator("op", state, parallelism=64)
    writer.write(str(tmp_path / "sp"), flink_version="2.3")
    chosen = row_filter(Inventory(str(tmp_path / "sp")).operator("op"), "n > 500", keep=False)
    assert len(chosen.splits) == 64
    own = chosen.for_task([0])
    assert len(own.splits) == 1
    assert len(pickle.dumps(own)) < len(pickle.dumps(chosen)) / 8
