"""Savepoints of real PyFlink jobs are read with the values of the jobs (``tests/flink/pyflink`` has the job)."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool
from statetool import flink
from statetool.cli.main import cli
from statetool.pyflink import PythonType, Types, parse_python_type
from tests.support.corpora.pyflink_jobs import CODED, KEYS, UIDS, opened, told
from tests.support.quick import quick

THREAD: Final = ("thread-2.3.0-hashmap", "thread-1.17.2-hashmap")
TABLE: Final = ("table-2.3.0-rocksdb", "table-1.20.5-rocksdb-native")
FAR: Final = 4102444800000
Rows = list[dict[str, Any]]


def rows(op: Any, table: str, **options: Any) -> Rows:
    records: Rows = op.to_arrow(table, **options).to_pylist()
    return records


def shown(kind: PythonType, value: Any) -> Any:
    """Return a value of ``expected.json`` in the form in which statetool shows it."""
    if value is None:
        return None
    match kind.name:
        case "SQL_DATE":
            return datetime.date.fromisoformat(value)
        case "SQL_TIME":
            t = datetime.time.fromisoformat(value)
            return ((t.hour * 60 + t.minute) * 60 + t.second) * 10**9 + t.microsecond * 1000
        case "SQL_TIMESTAMP":
            return datetime.datetime.fromisoformat(value)
        case "BIG_DEC":
            return Decimal(value)
        case "LIST" | "BASIC_ARRAY" | "OBJECT_ARRAY":
            return [shown(kind.args[0], v) for v in value]
        case "PRIMITIVE_ARRAY":
            return bytes.fromhex(value["hex"]) if kind.args[0].name == "BYTE" else value
        case "MAP":
            return [(shown(kind.args[0], k), shown(kind.args[1], v)) for k, v in value["map"]]
        case "TUPLE":
            return {f"f{i}": shown(a, v) for i, (a, v) in enumerate(zip(kind.args, value, strict=True))}
        case "ROW":
            assert value["kind"] == "INSERT"
            names = kind.names or tuple(f"f{i}" for i in range(len(kind.args)))
            values = [shown(a, v) for a, v in zip(kind.args, value["row"], strict=True)]
            return {**dict(zip(names, values, strict=True)), "_kind": "+I"}
    return value


def loaded(kind: PythonType, value: Any) -> Any:
    """Return a value in the form of :func:`shown`, with the JSON of pickles parsed."""
    match kind.name:
        case "PICKLED_BYTE_ARRAY":
            value = json.loads(value)
            return {"map": [[k, v] for k, v in value.items()]} if isinstance(value, dict) else value
        case "LIST":
            return [loaded(kind.args[0], v) for v in value if v is not None] if None not in value else value
        case "MAP":
            return [(k, loaded(kind.args[1], v)) for k, v in value]
        case "ROW":
            return {
                n: loaded(a, v) for a, (n, v) in zip((*kind.args, kind), value.items(), strict=True) if n != "_kind"
            } | {"_kind": value["_kind"]}
    return value


@pytest.mark.parametrize("case", quick([*CODED, *THREAD], *CODED[:1], *THREAD[:1]))
def test_every_type_and_kind_of_state(jobs: Path, case: str) -> None:
    expected = told(jobs, case)
    prefix = "python-state-" if case in CODED else ""
    by_key = {r["key"]["f0"]: r for r in rows(opened(jobs, case)["everything"], "keyed_state", nanos="companion")}
    assert len(by_key) == 60
    for n, values in expected["everything"].items():
        row = {name.removeprefix(prefix): v for name, v in by_key[int(n)].items()}
        for name, text in expected["types"].items():
            kind = parse_python_type(text)
            if text == "INSTANT":
                value = values[name]
                micros = datetime.datetime.fromtimestamp(value["seconds"], datetime.timezone.utc)
                assert row[name] == micros.replace(microsecond=value["nanos"] // 1000)
                assert row["instant_nanos"] == value["nanos"] % 1000
                continue
            assert loaded(kind, row[name]) == shown(kind, values[name]), (n, name)
        assert row["items"] == values["items"]
        assert dict(row["sizes"] or []) == values["sizes"]
        assert row["total"] == values["total"]
        average = row["average"] if case in CODED else dict(zip(("f0", "f1"), json.loads(row["average"]), strict=True))
        assert [average["f0"], average["f1"]] == values["average"]
        assert row["ttl_value"] == values["ttl_value"]
        # Each array has a separate timestamp, so the values of one array stay together.
        flat = row["ttl_items"] if case in THREAD else [v for items in row["ttl_items"] for v in items]
        assert flat == values["ttl_items"]
        assert row["ttl_sizes"] == [tuple(one) for one in values["ttl_sizes"]]


@pytest.mark.parametrize("case", quick([*CODED, *THREAD], *CODED[:1], *THREAD[:1]))
def test_timers(jobs: Path, case: str) -> None:
    timers = rows(opened(jobs, case)["everything"], "timers")
    shown = sorted((r["key"]["f0"], r["domain"], r["timestamp"] - FAR) for r in timers)
    assert shown == sorted(t for n in range(60) for t in ((n, "event", n), (n, "processing", 2 * n)))


@pytest.mark.parametrize("case", quick([*CODED, *THREAD], *CODED[:1], *THREAD[:1]))
def test_keys_of_every_type(jobs: Path, case: str) -> None:
    sp = opened(jobs, case)
    for name in KEYS:
        counts = [(_key(name, r["key"]["f0"]), r["value"]) for r in rows(sp[f"key-{name}"], "count")]
        wanted = [(_key_put_in(name, k), total) for k, total in told(jobs, case)[f"key-{name}"]]
        assert sorted(counts, key=repr) == sorted(wanted, key=repr), name
    assert len(rows(sp["key-long"], "count", keys=[2**40 + 1])) == 1
    assert len(rows(sp["key-tuple"], "count", keys=[(3, "t")])) == 1
    assert len(rows(sp["key-row"], "count", keys=[(3, "r")])) == 1


def _key(name: str, key: Any) -> Any:
    match name:
        case "pickled":
            assert key[:2] in (b"\x80\x04", b"\x80\x05")
            return key[key.index(b"\x8c") + 2 : -2].decode()
        case "tuple":
            return key["f0"], key["f1"]
        case "row":
            return key["f0"], key["f1"], key["_kind"]
        case "date":
            return key.date()
    return key


def _key_put_in(name: str, key: Any) -> Any:
    match name:
        case "tuple":
            return tuple(key)
        case "row":
            return (*key["row"], "+I")
        case "date":
            return datetime.date.fromisoformat(key)
    return key


@pytest.mark.parametrize("case", quick([*CODED, *THREAD], *CODED[:1], *THREAD[:1]))
def test_windows(jobs: Path, case: str) -> None:
    sp, expected = opened(jobs, case), told(jobs, case)
    if case in THREAD:
        sp = statetool.load(
            sp.path, uids=UIDS, python={"window-contents": "ListState(PICKLED_BYTE_ARRAY)"}, unsafe_pickle=True
        )
    windows = [
        [
            r["key"]["f0"],
            r["namespace"]["start"],
            json.loads(r["value"]) if case in THREAD else list(r["value"].values()),
        ]
        for r in rows(sp["tumbling"], "window-contents")
    ]
    assert sorted(windows) == sorted(expected["tumbling"])
    if case in THREAD:
        return
    windows = [
        [r["key"]["f0"], r["namespace"]["start"], list(r["value"].values())]
        for r in rows(sp["session"], "window-contents")
    ]
    assert sorted(windows) == sorted(expected["session"])
    sets = rows(sp["merged"], "merging-window-set")
    contents = {
        (r["key"]["f0"], r["namespace"]["start"], r["namespace"]["end"]): r
        for r in rows(sp["merged"], "window-contents")
    }
    assert len(sets) == len(contents) == 3
    for one in sets:
        kept = one["value"]
        row = contents[one["key"]["f0"], kept["start"], kept["end"]]
        assert row["value"] == {"f0": expected["merged"][str(one["key"]["f0"])], "f1": "s"}
    counts = {r["key"]["f0"]: r["value"] for r in rows(sp["counted"], "tumble-count-assigner")}
    sums = {r["key"]["f0"]: r["value"]["f0"] for r in rows(sp["counted"], "window-contents")}
    assert {str(k): [counts[k], sums[k]] for k in counts} == expected["counted"]


@pytest.mark.parametrize("case", quick([*CODED, *THREAD], *CODED[:1], *THREAD[:1]))
def test_broadcast_state(jobs: Path, case: str) -> None:
    sp, expected = opened(jobs, case), told(jobs, case)
    assert {r["key"]: r["value"] for r in rows(sp["broadcast"], "rules")} == expected["rules"]
    assert {str(r["key"]["f0"]): r["value"] for r in rows(sp["broadcast"], "seen")} == expected["seen"]


@pytest.mark.parametrize("case", TABLE)
def test_accumulators_and_their_views(jobs: Path, case: str) -> None:
    types = {"accumulators": "PICKLED_BYTE_ARRAY", "agg0$l": "ListState(STRING)", "agg0$m": "MapState(STRING, LONG)"}
    sp = statetool.load(str(jobs / case / "savepoint"), python=types, unsafe_pickle=True)
    expected = told(jobs, case)
    (op,) = [o for o in sp.operators.values() if "python-state-accumulators" in o.states]
    assert len(rows(op, "keyed_state")) == 5
    for row in rows(op, "keyed_state"):
        key = str(row["key"]["f0"])
        assert row["python-state-agg0$l"] == expected["agg0$l"][key]
        assert dict(row["python-state-agg0$m"]) == expected["agg0$m"][key]
        accumulators = [
            [v for n, v in fields.items() if n != "_kind"] for fields in json.loads(row["python-state-accumulators"])
        ]
        assert accumulators == expected["accumulators"][key]


def test_undeclared_states_are_bytes_and_wrong_types_say_what_to_do(jobs: Path) -> None:
    path = str(jobs / CODED[0] / "savepoint")
    undeclared = statetool.load(path)["everything"].states
    assert "--python 'total=TYPE or ListState(TYPE)'" in undeclared["python-state-total"].reason
    assert "--python 'sizes=MapState(KEY, VALUE)'" in undeclared["python-state-sizes"].reason
    assert not opened(jobs, CODED[0])["everything"].states["python-state-total"].reason
    (row,) = rows(statetool.load(path)["everything"], "total", keys=[7])
    assert row["value"] == (12).to_bytes(8, "big")
    op = statetool.load(path, python={"total": "STRING", "items": "LONG"})["everything"]
    for name in ("total", "items"):
        with pytest.raises(statetool.StatetoolError, match=rf"declared '{name}' with another type than Python"):
            op.to_arrow(name)
    op = statetool.load(path, python={"sizes": "LONG"})["everything"]
    with pytest.raises(statetool.StatetoolError, match=r"MapState\(KEY, VALUE\)"):
        op.to_arrow("sizes")


def test_state_made_from_nothing_reads_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "count": pa.array([10, None, 30], pa.int64()),
            "items": [["a"], ["b", "c"], []],
            "sizes": pa.array([[("x", 1)], [], [("y", 2), ("z", 3)]], pa.map_(pa.string(), pa.int64())),
            "seen": ["s1", "s2", "s3"],
        }
    )
    states = {
        "count": statetool.value(Types.LONG()),
        "items": statetool.list_of(Types.STRING()),
        "sizes": statetool.map_of(Types.STRING(), Types.LONG()),
        "seen": statetool.value(Types.STRING(), ttl=True, last_access_ms=1_760_000_000_000),
    }
    made = statetool.bootstrap_keyed_state(table, key="id", states=states)
    timers = statetool.bootstrap_keyed_state(
        table.select(["id"]),
        key="id",
        states={},
        timers=pa.table({"id": [1], "timestamp": [FAR]}),
        key_type=flink.row("BIGINT"),
    )
    writer = statetool.SavepointWriter.new(max_parallelism=16).with_operator("op", made, timers)
    writer.write(str(tmp_path / "sp"), flink_version="2.3")

    types = {"count": "LONG", "items": "ListState(STRING)", "sizes": "MapState(STRING, LONG)", "seen": "STRING"}
    op = statetool.load(str(tmp_path / "sp"), python=types)["op"]
    by_key = {r["key"]["f0"]: [r[f"python-state-{n}"] for n in types] for r in rows(op, "keyed_state")}
    assert by_key == {
        1: [10, ["a"], [("x", 1)], "s1"],
        2: [None, ["b", "c"], None, "s2"],
        3: [30, None, [("y", 2), ("z", 3)], "s3"],
    }
    assert {s.value_type for s in statetool.load(str(tmp_path / "sp"))["op"].states.values() if s.kind == "map"} == {
        "Map<ByteArrayWrapper, BytePrimitiveArray>"
    }
    assert [r["key"]["f0"] for r in rows(op, "timers")] == [1]
    (row,) = rows(op, "items", keys=[1])
    assert row["value"] == "a"


def test_a_map_of_one_type_of_each_is_refused(tmp_path: Path) -> None:
    table = pa.table({"key": [1], "sizes": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))})
    made = statetool.bootstrap_keyed_state(table, states={"sizes": statetool.map_of("STRING", Types.LONG())})
    writer = statetool.SavepointWriter.new(max_parallelism=16).with_operator("op", made)
    with pytest.raises(statetool.StatetoolError, match="one type of PyFlink and one of Java"):
        writer.write(str(tmp_path / "bad"), flink_version="2.3")


def test_the_command_line_takes_declarations_and_asks_for_them(jobs: Path) -> None:
    path = str(jobs / CODED[0] / "savepoint")
    listed = CliRunner().invoke(cli, ["states", path])
    assert "states can be decoded further" in listed.output
    assert "--python 'merging-window-set=MapState(TIME_WINDOW, TIME_WINDOW)'" in listed.output
    types = ["--python", "key-long.count=LONG", "--python", "count=STRING"]
    shown = CliRunner().invoke(cli, ["head", path, "key-long", "--output", "json", *types])
    assert shown.exit_code == 0, shown.output
    wanted = {tuple(pair) for pair in told(jobs, CODED[0])["key-long"]}
    assert {(r["key"]["f0"], r["python-state-count"]) for r in json.loads(shown.output)} == wanted
    refused = CliRunner().invoke(cli, ["head", path, "key-long", "--python", "count"])
    assert refused.exit_code != 0
    assert "count=LONG" in refused.output
