"""Savepoints written by statetool restore in Flink, with serializers made from Flink's types and classes."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import statetool
from statetool import flink as types
from statetool.formats.operator_id import operator_id_for_uid
from tests.support.flink import judge
from tests.support.flink.families import FAMILIES, KEYS, Family
from tests.support.flink.machine import FlinkMachine


def release(flink: FlinkMachine) -> tuple[int, int]:
    major, minor = flink.version.split(".")[:2]
    return int(major), int(minor)


def rows_of(family: Family) -> list[dict[str, Any]]:
    return [{"key": k, "value": v} for k, v in zip(KEYS, family.expected, strict=True) if v is not None]


def operator(uid: str, key: str, max_parallelism: int = 128, **members: Any) -> dict[str, Any]:
    """Describe an operator to the Java side."""
    return {"name": uid, "uid": uid, "key": key, "max_parallelism": max_parallelism, **members}


def expected_operator(uid: str, max_parallelism: int = 128, **members: Any) -> dict[str, Any]:
    return {"operator_id": operator_id_for_uid(uid), "max_parallelism": max_parallelism, **members}


def keyed(states: dict[str, Any], *, event: Any = (), processing: Any = ()) -> dict[str, Any]:
    return {"states": states, "event_time_timers": list(event), "processing_time_timers": list(processing)}


@pytest.mark.parametrize("backend", ["rocksdb", pytest.param("hashmap", marks=pytest.mark.full)])
def test_every_family_of_types(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    families = [f for f in FAMILIES if f.since <= release(flink)]
    table = pa.table({"key": pa.array(KEYS, pa.int64()), **{f.name: f.column for f in families}})
    states = {f.name: statetool.value(f.type) for f in families}
    writer = statetool.SavepointWriter.new().with_operator(
        "families", statetool.bootstrap_keyed_state(table, states=states), parallelism=2
    )
    writer.write(str(tmp_path / "sp"), flink_version=flink.version)
    declared = [{"name": f.name, "kind": "value", "type": f.java} for f in families]
    answer = judge.restore(
        flink,
        tmp_path / "sp",
        [operator("families", "LONG", states=declared)],
        backend=backend,
        savepoint=tmp_path / "again",
    )
    found = {f.name: {"kind": "value", "rows": rows_of(f)} for f in families}
    expected = {"families": expected_operator("families", keyed_state=keyed(found))}
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []


@pytest.mark.full
@pytest.mark.parametrize("backend", ["rocksdb", "hashmap"])
def test_every_kind_of_state_timers_and_operator_state(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    pair = pa.struct({"f0": pa.int64(), "f1": pa.int64()})
    table = pa.table(
        {
            "key": ["a", "", "Größe 😀"],
            "count": pa.array([1, None, 3], pa.int64()),
            "names": pa.array([["x", "", "y"], [], None], pa.list_(pa.string())),
            "prices": pa.array([[("b", 1.5), ("a", 2.0)], None, [("", -0.0)]], pa.map_(pa.string(), pa.float64())),
            "notes": pa.array([[("b", None), ("a", "")], None, None], pa.map_(pa.string(), pa.string())),
            "total": pa.array([10, 20, None], pa.int64()),
            "mean": pa.array([{"f0": 2, "f1": 7}, None, None], pair),
            "fresh": pa.array(["t", None, "u"]),
            "fresh-list": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
            "fresh-map": pa.array([[("k", 1)], None, None], pa.map_(pa.string(), pa.int32())),
        }
    )
    now = 1_700_000_000_000
    states = {
        "count": statetool.value("BIGINT"),
        "names": statetool.list_of("STRING"),
        "prices": statetool.map_of("STRING", "DOUBLE"),
        "notes": statetool.map_of("STRING", "STRING"),
        "total": statetool.reducing("BIGINT"),
        "mean": statetool.aggregating(types.tuple_of("BIGINT", "BIGINT")),
        "fresh": statetool.value("STRING", ttl=True, last_access_ms=now),
        "fresh-list": statetool.list_of("INT", ttl=True, last_access_ms=now),
        "fresh-map": statetool.map_of("STRING", "INT", ttl=True, last_access_ms=now),
    }
    timers = pa.table(
        {
            "key": ["a", "a", "", "Größe 😀"],
            "timestamp": pa.array([5, -(1 << 60), 1_700_000_000_000, 4_102_444_800_000], pa.int64()),
            "domain": ["event", "event", "event", "processing"],
        }
    )
    operator_rows = pa.table({"value": pa.array([{"f0": 1, "f1": 2}, {"f0": -1, "f1": 0}], pair)})
    rules = pa.table({"key": ["r", "s"], "value": pa.array([1, 2], pa.int64())})
    statetool.SavepointWriter.new().with_operator(
        "kinds",
        statetool.bootstrap_keyed_state(table, states=states, timers=timers),
        statetool.bootstrap_list_state("pending", operator_rows, type=types.tuple_of("BIGINT", "BIGINT")),
        statetool.bootstrap_union_state("offsets", operator_rows, type=types.tuple_of("BIGINT", "BIGINT")),
        statetool.bootstrap_broadcast_state("rules", rules, key_type="STRING", value_type="BIGINT"),
        max_parallelism=300,
        parallelism=3,
    ).write(str(tmp_path / "sp"), inline_bytes=0)  # a form that all releases can read

    def state(name: str, kind: str, type: str, *values: Any, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        rows = [{"key": k, "value": v} for k, v in zip(table["key"].to_pylist(), values, strict=True) if v is not None]
        return {"name": name, "kind": kind, "type": type, **more}, {"kind": kind, "rows": rows}

    described = [
        state("count", "value", "LONG", 1, None, 3),
        state("names", "list", "STRING", ["x", "", "y"], None, None),
        state("prices", "map", "DOUBLE", [["a", 2.0], ["b", 1.5]], None, [["", -0.0]], map_key="STRING"),
        state("notes", "map", "STRING", [["a", ""], ["b", None]], None, None, map_key="STRING"),
        state("total", "reducing", "LONG", 10, 20, None),
        state("mean", "aggregating", "TUPLE<LONG,LONG>", [2, 7], None, None),
        state("fresh", "value", "STRING", "t", None, "u", ttl=True),
        state("fresh-list", "list", "INT", [1, 2], None, None, ttl=True),
        state("fresh-map", "map", "INT", [["k", 1]], None, None, ttl=True, map_key="STRING"),
    ]
    request = operator(
        "kinds",
        "STRING",
        300,
        states=[asked for asked, _ in described],
        timers=[{"service": "user-timers", "namespace": "VoidNamespace"}],
        operator_states=[
            {"name": "pending", "mode": "list", "type": "TUPLE<LONG,LONG>"},
            {"name": "offsets", "mode": "union", "type": "TUPLE<LONG,LONG>"},
            {"name": "rules", "mode": "broadcast", "type": "LONG", "key": "STRING"},
        ],
    )
    due = [
        {"key": k, "namespace": None, "timestamp": t, "domain": d}
        for k, t, d in zip(*(table_column.to_pylist() for table_column in timers.columns), strict=True)
    ]
    event, processing = (
        [{k: t[k] for k in ("key", "namespace", "timestamp")} for t in due if t["domain"] == domain]
        for domain in ("event", "processing")
    )
    expected = {
        "kinds": expected_operator(
            "kinds",
            300,
            keyed_state=keyed({asked["name"]: found for asked, found in described}, event=event, processing=processing),
            operator_state={
                "pending": {"mode": "list", "rows": [[1, 2], [-1, 0]]},
                "offsets": {"mode": "union", "rows": [[1, 2], [-1, 0]]},
                "rules": {"mode": "broadcast", "rows": [["r", 1], ["s", 2]]},
            },
        )
    }
    answer = judge.restore(flink, tmp_path / "sp", [request], backend=backend, savepoint=tmp_path / "again")
    assert judge.differences(answer, expected) == []
    assert judge.read_back(Path(answer["savepoint"]), expected, parallelism=2) == []


def _row(*fields: Any) -> dict[str, Any]:
    return {"$row": list(fields), "kind": "INSERT"}


@pytest.mark.full
def test_keys_of_every_type_that_hashes(flink: FlinkMachine, tmp_path: Path) -> None:
    keys: dict[str, tuple[str | Any, str, pa.Array, list[Any]]] = {
        "long": ("BIGINT", "LONG", pa.array([-1, 0, 1 << 40], pa.int64()), [-1, 0, 1 << 40]),
        "double": ("DOUBLE", "DOUBLE", pa.array([-0.5, 0.0, 1e300]), [-0.5, 0.0, 1e300]),
        "boolean": ("BOOLEAN", "BOOLEAN", pa.array([True, False]), [True, False]),
        "decimal": (
            types.BIG_DECIMAL,
            "BIGDEC",
            pa.array([Decimal("1.50"), Decimal("-3.25")], pa.decimal128(38, 2)),
            [{"$decimal": "1.50"}, {"$decimal": "-3.25"}],
        ),
        "date": (
            "DATE",
            "LOCALDATE",
            pa.array([dt.date(2024, 2, 29), dt.date(1600, 1, 1)]),
            ["2024-02-29", "1600-01-01"],
        ),
        "tuple": (
            types.tuple_of("STRING", "INT"),
            "TUPLE<STRING,INT>",
            pa.array([{"f0": "x", "f1": -1}, {"f0": "", "f1": 7}], pa.struct({"f0": pa.string(), "f1": pa.int32()})),
            [["x", -1], ["", 7]],
        ),
        # Parts of a key may be null.
        "tuple-null": (
            types.tuple_of("STRING", "DATE"),
            "TUPLE<STRING,LOCALDATE>",
            pa.array([{"f0": None, "f1": None}], pa.struct({"f0": pa.string(), "f1": pa.date32()})),
            [[None, None]],
        ),
        "row-null": (
            types.row("STRING", "BIGINT"),
            "ROW<STRING,LONG>",
            pa.array(
                [{"f0": None, "f1": None}, {"f0": "x", "f1": 1}], pa.struct({"f0": pa.string(), "f1": pa.int64()})
            ),
            [_row(None, None), _row("x", 1)],
        ),
        "row-of-null": (types.row("STRING"), "ROW<STRING>", pa.array([None, "x"]), [_row(None), _row("x")]),
        "list-null": (
            types.list_of("STRING"),
            "LIST<STRING>",
            pa.array([[None, "x"]], pa.list_(pa.string())),
            [[None, "x"]],
        ),
    }
    writer = statetool.SavepointWriter.new()
    requests, expected = [], {}
    for name, (type_, java, column, values) in keys.items():
        numbers = pa.array(range(len(column)), pa.int64())
        bootstrap = statetool.bootstrap_keyed_state(
            pa.table({"key": column, "n": numbers}), key_type=type_, states={"n": statetool.value("BIGINT")}
        )
        writer = writer.with_operator(name, bootstrap, parallelism=3)
        requests.append(operator(name, java, states=[{"name": "n", "kind": "value", "type": "LONG"}]))
        rows = [{"key": k, "value": i} for i, k in enumerate(values)]
        expected[name] = expected_operator(name, keyed_state=keyed({"n": {"kind": "value", "rows": rows}}))
    writer.write(str(tmp_path / "sp"), flink_version=flink.version)
    for backend in ("hashmap", "rocksdb"):
        answer = judge.restore(flink, tmp_path / "sp", requests, backend=backend)
        assert judge.differences(answer, expected) == []


NAN = {"$double": "NaN"}


@pytest.mark.full
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_keys_of_one_form_in_java_are_found(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    """The checker looks each value up by its key, which Flink has read and writes again."""
    odd = struct.unpack(">d", bytes.fromhex("fff8000000000123"))[0]
    narrow = pa.array(np.array([0xFFC00123, 0], dtype=np.uint32).view(np.float32))
    maps = pa.map_(pa.float64(), pa.string())
    pair = {"f0": pa.float64(), "f1": maps}
    keys: dict[str, tuple[Any, str, pa.Array, list[Any]]] = {
        "double": ("DOUBLE", "DOUBLE", pa.array([odd, -0.0, 0.0]), [NAN, -0.0, 0.0]),
        "float": ("FLOAT", "FLOAT", narrow, [NAN, 0.0]),
        "list": (types.list_of("DOUBLE"), "LIST<DOUBLE>", pa.array([[odd, 1.0], []]), [[NAN, 1.0], []]),
        "map": (
            types.map_of("DOUBLE", "STRING"),
            "MAP<DOUBLE,STRING>",
            pa.array([[(odd, "x")], [(1.0, None)], []], maps),
            [{"$map": [[NAN, "x"]]}, {"$map": [[1.0, None]]}, {"$map": []}],
        ),
        "tuple": (
            types.tuple_of("DOUBLE", types.map_of("DOUBLE", "STRING")),
            "TUPLE<DOUBLE,MAP<DOUBLE,STRING>>",
            pa.array([{"f0": odd, "f1": [(odd, "x")]}, {"f0": 0.0, "f1": []}], pa.struct(pair)),
            [[NAN, {"$map": [[NAN, "x"]]}], [0.0, {"$map": []}]],
        ),
        "row": (
            types.row("DOUBLE", types.map_of("DOUBLE", "STRING")),
            "ROW<DOUBLE,MAP<DOUBLE,STRING>>",
            pa.array([{"f0": odd, "f1": None}, {"f0": None, "f1": [(odd, "x")]}], pa.struct(pair)),
            [_row(NAN, None), _row(None, {"$map": [[NAN, "x"]]})],
        ),
        "row-of-one": (
            types.row("DOUBLE"),
            "ROW<DOUBLE>",
            pa.array([{"id": odd}, {"id": 2.0}], pa.struct({"id": pa.float64()})),
            [_row(NAN), _row(2.0)],
        ),
    }
    writer = statetool.SavepointWriter.new()
    requests, expected = [], {}
    for name, (type_, java, column, values) in keys.items():
        # The same keys as user keys of a map, one entry per key.
        entries = pa.MapArray.from_arrays(
            pa.array(range(len(column) + 1), pa.int32()), column, pa.array(range(len(column)))
        )
        bootstrap = statetool.bootstrap_keyed_state(
            pa.table({"key": column, "n": pa.array(range(len(column))), "m": entries}),
            key_type=type_,
            states={"n": statetool.value("BIGINT"), "m": statetool.map_of(type_, "BIGINT")},
        )
        writer = writer.with_operator(name, bootstrap, parallelism=3)
        states = [
            {"name": "n", "kind": "value", "type": "LONG"},
            {"name": "m", "kind": "map", "type": "LONG", "map_key": java},
        ]
        requests.append(operator(name, java, states=states))
        numbers = [{"key": k, "value": i} for i, k in enumerate(values)]
        mapped = [{"key": k, "value": [[k, i]]} for i, k in enumerate(values)]
        found = {"n": {"kind": "value", "rows": numbers}, "m": {"kind": "map", "rows": mapped}}
        expected[name] = expected_operator(name, keyed_state=keyed(found))
    writer.write(str(tmp_path / "sp"), flink_version=flink.version)
    answer = judge.restore(flink, tmp_path / "sp", requests, backend=backend, savepoint=tmp_path / "again")
    assert judge.differences(answer, expected) == []
    # Flink writes these keys with the same bytes.
    first, again = (statetool.load(str(path)) for path in (tmp_path / "sp", Path(answer["savepoint"])))
    assert first.diff(again, operators=list(keys)).to_arrow().to_pylist() == []


@pytest.mark.full
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_big_decimals_that_were_read_and_written_back_are_found_by_key(
    flink: FlinkMachine, tmp_path: Path, backend: str
) -> None:
    """Their hash codes, and therefore key groups, depend on their scales: Flink looks up each key and reports its scale."""
    numbers = [
        "58.6006",
        "1.5",
        "1.50",
        "7",
        "-0.000000000000000001",
        "0.00",
        "-3.25",
        "12345678901234567890",
        "1000.0",
    ]
    first = pa.table({"key": numbers, "n": pa.array(range(9), pa.int64()), "v": list(reversed(numbers))})
    bootstrap = statetool.bootstrap_keyed_state(
        first,
        key_type=types.BIG_DECIMAL,
        states={"n": statetool.value("BIGINT"), "v": statetool.value(types.BIG_DECIMAL)},
    )
    writer = statetool.SavepointWriter.new().with_operator("decimals", bootstrap, parallelism=3)
    writer.write(str(tmp_path / "first"), flink_version=flink.version)
    states = [{"name": "n", "kind": "value", "type": "LONG"}, {"name": "v", "kind": "value", "type": "BIGDEC"}]
    requests = [operator("decimals", "BIGDEC", states=states)]
    keys = [{"$decimal": text} for text in numbers]
    rows = {
        "n": {"kind": "value", "rows": [{"key": k, "value": i} for i, k in enumerate(keys)]},
        "v": {"kind": "value", "rows": [{"key": k, "value": v} for k, v in zip(keys, reversed(keys), strict=True)]},
    }
    expected = {"decimals": expected_operator("decimals", keyed_state=keyed(rows))}
    answer = judge.restore(flink, tmp_path / "first", requests, backend=backend, savepoint=tmp_path / "flink")
    assert judge.differences(answer, expected) == []

    sp = statetool.load(answer["savepoint"]).with_uids(["decimals"])
    op = sp["decimals"]
    assert op.to_arrow(keys=[Decimal("58.60060")])["n"].to_pylist() == [0]
    state = statetool.bootstrap_keyed_state(op.to_arrow(), like=op)
    statetool.SavepointWriter.from_existing(sp).with_operator("decimals", state).write(str(tmp_path / "like"))
    op.transform(lambda table: table).write(str(tmp_path / "same"))
    for name in ("like", "same"):
        answer = judge.restore(flink, tmp_path / name, requests, backend=backend)
        assert judge.differences(answer, expected) == [], name


@pytest.mark.full
def test_windows_written_from_tables_go_on(flink: FlinkMachine, tmp_path: Path) -> None:
    window = pa.struct({"start": pa.int64(), "end": pa.int64()})
    contents = pa.struct({"f0": pa.string(), "f1": pa.int32(), "f2": pa.int64()})
    windows_ = [{"start": 20_000, "end": 30_000}, {"start": 30_000, "end": 40_000}, {"start": 20_000, "end": 30_000}]
    keys = ["a", "a", "b"]
    values = [("a", 5, 21_000), ("a", 7, 33_000), ("b", -1, 29_000)]
    table = pa.table(
        {
            "key": keys,
            "namespace": pa.array(windows_, window),
            "window-contents": pa.array([dict(zip(("f0", "f1", "f2"), v, strict=True)) for v in values], contents),
        }
    )
    timers = pa.table(
        {
            "key": keys,
            "namespace": pa.array(windows_, window),
            "timestamp": pa.array([w["end"] - 1 for w in windows_], pa.int64()),
            "service": ["window-timers"] * 3,
        }
    )
    statetool.SavepointWriter.new().with_operator(
        "windows",
        statetool.bootstrap_keyed_state(
            table,
            namespace="namespace",
            states={"window-contents": statetool.reducing(types.tuple_of("STRING", "INT", "BIGINT"))},
            timers=timers,
        ),
    ).write(str(tmp_path / "sp"), flink_version=flink.version)
    job = {"uid": "windows", "max_parallelism": 128, "assigner": "tumbling", "size_ms": 10_000, "function": "reduce"}
    answer = flink.call(
        "windows",
        snapshot=str(tmp_path / "sp"),
        backend="rocksdb",
        operators=[{**job, "elements": [["a", 100, 25_000], ["c", 1, 20_000]]}],
    )
    found = sorted((r["key"], r["namespace"]["start"], *r["value"]) for r in answer["fired"])
    assert found == [
        ("a", 20_000, "a", 105, 25_000),
        ("a", 30_000, "a", 7, 33_000),
        ("b", 20_000, "b", -1, 29_000),
        ("c", 20_000, "c", 1, 20_000),
    ]


@pytest.mark.full
def test_what_spark_writes_restores(flink: FlinkMachine, tmp_path: Path, spark: Any) -> None:
    frame = spark.range(2000).selectExpr(
        "id AS key",
        "IF(id % 3 = 0, NULL, id * 7) AS count",
        "IF(id % 5 = 0, array(CAST(id AS STRING), ''), NULL) AS names",
        "IF(id % 7 = 0, map(CAST(id AS STRING), id / 4.0D), NULL) AS prices",
    )
    states = {
        "count": statetool.value("BIGINT"),
        "names": statetool.list_of("STRING"),
        "prices": statetool.map_of("STRING", "DOUBLE"),
    }
    offsets = spark.range(10).selectExpr("id AS value")
    statetool.SavepointWriter.new(max_parallelism=1024).with_operator(
        "spark",
        statetool.bootstrap_keyed_state(frame.repartition(7), states=states),
        statetool.bootstrap_list_state("offsets", offsets),
        parallelism=3,
    ).write(str(tmp_path / "sp"))
    found = {
        "count": {"kind": "value", "rows": [{"key": i, "value": i * 7} for i in range(2000) if i % 3]},
        "names": {"kind": "list", "rows": [{"key": i, "value": [str(i), ""]} for i in range(0, 2000, 5)]},
        "prices": {"kind": "map", "rows": [{"key": i, "value": [[str(i), i / 4]]} for i in range(0, 2000, 7)]},
    }
    declared = [
        {"name": "count", "kind": "value", "type": "LONG"},
        {"name": "names", "kind": "list", "type": "STRING"},
        {"name": "prices", "kind": "map", "type": "DOUBLE", "map_key": "STRING"},
    ]
    request = operator(
        "spark", "LONG", 1024, states=declared, operator_states=[{"name": "offsets", "mode": "list", "type": "LONG"}]
    )
    rows = {"offsets": {"mode": "list", "rows": list(range(10))}}
    expected = {"spark": expected_operator("spark", 1024, keyed_state=keyed(found), operator_state=rows)}
    answer = judge.restore(flink, tmp_path / "sp", [request], backend="rocksdb", parallelism=4)
    assert judge.differences(answer, expected) == []
