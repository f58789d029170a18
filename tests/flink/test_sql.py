"""SQL jobs: their state is read and rewritten from tables, and real SQL jobs continue from it with correct results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.types import VariantVal

import statetool
from statetool.columns.types import VARIANT_STRUCT
from tests.support.flink.machine import FlinkMachine
from tests.support.flink.sql import JOINED, LATEST, NESTED, TOTALS, TYPES, VARIANTS, Query, run_query

pytestmark = pytest.mark.full

_LONG_NAME = "a shop with a name that is not kept inside of the row's fixed part"


def row(kind: str, *values: Any) -> list[Any]:
    return [kind, *values]


def inserts(*rows: tuple[Any, ...]) -> list[list[Any]]:
    return [row("INSERT", *r) for r in rows]


def operator_with(sp: statetool.Savepoint, state: str) -> statetool.Operator:
    (found,) = (o for o in sp.operators.values() if state in o.states)
    return found


def changes(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(r["kind"], *r["$row"]) for r in answer["results"]]


def test_columns_of_all_kinds_are_read(flink: FlinkMachine, tmp_path: Path) -> None:
    full = (1, "n", "1.25", "12345678901234567890.1234", "2024-02-29", "2024-02-29T12:34:56.789")
    full += ("2024-02-29T12:34:56.123456789", "2024-02-29T12:34:56.789Z", True, 7, 1.5)  # type: ignore[assignment]
    none = (2, *[None] * 10)
    answer = run_query(flink, TYPES, {"t": inserts(full, none)}, results=0, savepoint=tmp_path)
    operator = operator_with(statetool.load(answer["savepoint"]), "left-records")
    rows = {
        r["key"]["f0"]: r for r in operator.to_arrow("left-records", nanos="companion", decimals="string").to_pylist()
    }
    assert rows.keys() == {1, 2}
    found = rows[1]["map_key"]
    texts = {k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in found.items()}
    assert texts == {
        "f0": 1,
        "f1": "n",
        "f2": pa.scalar("1.25").cast(pa.decimal128(10, 2)).as_py(),
        "f3": pa.scalar("12345678901234567890.1234").cast(pa.decimal128(30, 4)).as_py(),
        "f4": "2024-02-29",
        "f5": "2024-02-29T12:34:56.789000",
        "f6": "2024-02-29T12:34:56.123456",
        "f6_nanos": 789,
        "f7": "2024-02-29T12:34:56.789000+00:00",
        "f8": True,
        "f9": 7,
        "f10": 1.5,
        "_kind": "+I",
    }
    assert {k for k, v in rows[2]["map_key"].items() if v is not None} == {"f0", "_kind"}


def test_edited_totals_go_on(flink: FlinkMachine, tmp_path: Path) -> None:
    orders = inserts(("a", 1), ("b", 2), ("a", 10), (_LONG_NAME, 5))
    answer = run_query(flink, TOTALS, {"orders": orders}, results=5, savepoint=tmp_path / "first", backend="rocksdb")
    sp = statetool.load(answer["savepoint"])
    operator = operator_with(sp, "accState")
    table = operator.to_arrow("accState")
    assert sorted((r["key"]["f0"], r["value"]["f0"], r["value"]["f1"]) for r in table.to_pylist()) == sorted(
        [("a", 2, 11), ("b", 1, 2), (_LONG_NAME, 1, 5)]
    )
    value = table["value"].combine_chunks()
    fields = {f.name: value.field(i) for i, f in enumerate(value.type)}
    fields["f1"] = pc.multiply(fields["f1"], 100)
    edited = table.set_column(
        table.schema.get_field_index("value"),
        "value",
        pa.StructArray.from_arrays(list(fields.values()), names=list(fields)),
    )
    statetool.SavepointWriter.from_existing(sp).with_operator(
        operator.name, statetool.bootstrap_state("accState", edited, like=operator)
    ).write(str(tmp_path / "edited"))
    more = inserts(("a", 1), (_LONG_NAME, 2), ("c", 3))
    for backend in ("rocksdb", "hashmap"):
        answer = run_query(flink, TOTALS, {"orders": more}, results=5, snapshot=tmp_path / "edited", backend=backend)
        assert changes(answer) == [
            ("UPDATE_BEFORE", "a", 2, 1100),
            ("UPDATE_AFTER", "a", 3, 1101),
            ("UPDATE_BEFORE", _LONG_NAME, 1, 500),
            ("UPDATE_AFTER", _LONG_NAME, 2, 502),
            ("INSERT", "c", 1, 3),
        ]


_OLD_TOTALS = "COUNT(*) AS n, SUM(amount) AS total, MIN(amount) AS least, SUM(amount * 2) AS twice, COUNT(DISTINCT amount) AS kinds"
_NEW_TOTALS = (
    "SUM(amount + 1) AS more, SUM(amount) AS total, SUM(amount * 2) AS twice, COUNT(*) AS n, COUNT(DISTINCT amount) AS kinds,"
    " MAX(amount) AS most"
)
_SWAPPED = "SUM(amount) AS total, COUNT(*) AS n"


def planned(flink: FlinkMachine, aggregates: str, rows: list[list[Any]], **more: Any) -> dict[str, Any]:
    """Run the compiled plan of a query of :data:`TOTALS` with other aggregates."""
    query = Query(inputs=TOTALS.inputs, sql=f"SELECT shop, {aggregates} FROM orders GROUP BY shop")
    return run_query(flink, query, {"orders": rows}, planned=True, **more)


def test_aggregates_of_a_changed_query_go_on(flink: FlinkMachine, tmp_path: Path) -> None:
    """Columns are matched by the compiled plans, computed ones by their expression; the user gives the values of the new ones."""
    orders = inserts(("a", 1), ("b", 2), ("a", 10), ("a", 10))
    old = planned(flink, _OLD_TOTALS, orders, results=6, savepoint=tmp_path / "old")
    new = planned(flink, _NEW_TOTALS, inserts(("z", 1)), results=1, savepoint=tmp_path / "new")
    sides = []
    for name, answer in (("a", old), ("b", new)):
        (tmp_path / name).write_text(answer["plan"])
        sides.append(statetool.load(answer["savepoint"], columns_from_plan=str(tmp_path / name)))
    assert statetool.check(*sides).verdict == "not"
    state = f"{operator_with(sides[0], 'accState').name}.accState.value"
    fills = {f"{state}.sum(amount + 1)": 0, f"{state}.max(amount)": None}
    dropped = [f"{state}.min(amount)"]
    statetool.migrate(sides[0], str(tmp_path / "migrated"), to=sides[1], fills=fills, accept=dropped)
    assert statetool.check(str(tmp_path / "migrated"), sides[1]).verdict == "fully"
    for backend in ("hashmap", "rocksdb"):
        more = inserts(("a", 5), ("b", 2))
        answer = planned(flink, _NEW_TOTALS, more, results=4, snapshot=tmp_path / "migrated", backend=backend)
        assert changes(answer) == [
            ("UPDATE_BEFORE", "a", 0, 21, 42, 3, 2, None),
            ("UPDATE_AFTER", "a", 6, 26, 52, 4, 3, 5),
            ("UPDATE_BEFORE", "b", 0, 2, 4, 1, 1, None),
            ("UPDATE_AFTER", "b", 3, 4, 8, 2, 1, 2),
        ]


def test_aggregates_that_changed_places_are_not_restored_as_each_other(flink: FlinkMachine, tmp_path: Path) -> None:
    """Flink restores COUNT as SUM: both are BIGINT. With the plans, check warns, and migrate puts them in their places."""
    counts = "COUNT(*) AS n, SUM(amount) AS total"
    old = planned(flink, counts, inserts(("a", 20)), results=1, savepoint=tmp_path / "old")
    new = planned(flink, _SWAPPED, inserts(("z", 1)), results=1, savepoint=tmp_path / "new")
    wrong = planned(flink, _SWAPPED, inserts(("a", 5)), results=2, snapshot=Path(old["savepoint"]))
    assert changes(wrong)[1] == ("UPDATE_AFTER", "a", 6, 21)
    sides = []
    for name, answer in (("a", old), ("b", new)):
        (tmp_path / name).write_text(answer["plan"])
        sides.append(statetool.load(answer["savepoint"], columns_from_plan=str(tmp_path / name)))
    checked = statetool.check(*sides)
    assert (checked.verdict, checked.ok) == ("fully", False)
    assert "count(*) as sum(amount), sum(amount) as count(*)" in checked.warnings[0]
    statetool.migrate(sides[0], str(tmp_path / "migrated"), to=sides[1])
    right = planned(flink, _SWAPPED, inserts(("a", 5)), results=2, snapshot=tmp_path / "migrated")
    assert changes(right)[1] == ("UPDATE_AFTER", "a", 25, 2)


def test_rescaled_totals_go_on(flink: FlinkMachine, tmp_path: Path) -> None:
    orders = inserts(*((f"shop {i}", i) for i in range(40)))
    answer = run_query(flink, TOTALS, {"orders": orders}, results=40, savepoint=tmp_path / "first")
    statetool.rescale(answer["savepoint"], str(tmp_path / "rescaled"), 77)
    more = inserts(*((f"shop {i}", 1000) for i in range(40)))
    answer = run_query(
        flink,
        TOTALS,
        {"orders": more},
        results=80,
        snapshot=tmp_path / "rescaled",
        parallelism=2,
        max_parallelism=77,
    )
    assert sorted(c for c in changes(answer) if c[0] == "UPDATE_AFTER") == sorted(
        ("UPDATE_AFTER", f"shop {i}", 2, 1000 + i) for i in range(40)
    )


def test_bootstrapped_totals_go_on(flink: FlinkMachine, tmp_path: Path) -> None:
    """The job has never run with state: only its types are taken from an almost empty savepoint of it."""
    answer = run_query(flink, TOTALS, {"orders": inserts(("x", 1))}, results=1, savepoint=tmp_path / "first")
    sp = statetool.load(answer["savepoint"])
    operator = operator_with(sp, "accState")
    shape = operator.to_arrow("accState").schema
    rows = [{"key": {"f0": f"shop {i}"}, "value": {"f0": i, "f1": i * i, "_kind": "+I"}} for i in range(1, 50)]
    table = pa.Table.from_pylist(rows, schema=shape)
    statetool.SavepointWriter.from_existing(sp).with_operator(
        operator.name, statetool.bootstrap_state("accState", table, like=operator)
    ).write(str(tmp_path / "bootstrapped"))
    more = inserts(*((f"shop {i}", 1) for i in (1, 30, 49)), ("x", 5))
    answer = run_query(
        flink, TOTALS, {"orders": more}, results=7, snapshot=tmp_path / "bootstrapped", backend="rocksdb"
    )
    assert [c for c in changes(answer) if c[0] != "UPDATE_BEFORE"] == [
        ("UPDATE_AFTER", "shop 1", 2, 2),
        ("UPDATE_AFTER", "shop 30", 31, 901),
        ("UPDATE_AFTER", "shop 49", 50, 2402),
        ("INSERT", "x", 1, 5),
    ]


def test_edited_join_goes_on(flink: FlinkMachine, tmp_path: Path) -> None:
    first = {"orders": inserts(("a", 1), ("b", 2)), "shops": inserts(("a", "Rome"), ("c", "Oslo"))}
    answer = run_query(flink, JOINED, first, results=1, savepoint=tmp_path / "first")
    assert changes(answer) == [("INSERT", "a", 1, "Rome")]
    sp = statetool.load(answer["savepoint"])
    operator = operator_with(sp, "right-records")
    shops = operator.to_arrow("right-records").to_pylist()
    schema = operator.to_arrow("right-records").schema
    for shop in shops:
        shop["map_key"]["f1"] = f"New {shop['map_key']['f1']} far away from here"
    statetool.SavepointWriter.from_existing(sp).with_operator(
        operator.name,
        statetool.bootstrap_state("right-records", pa.Table.from_pylist(shops, schema=schema), like=operator),
    ).write(str(tmp_path / "edited"))
    more = {"orders": inserts(("a", 7), ("c", 8)), "shops": inserts(("b", "Bonn"))}
    answer = run_query(flink, JOINED, more, results=3, snapshot=tmp_path / "edited", backend="rocksdb")
    assert sorted(changes(answer)) == [
        ("INSERT", "a", 7, "New Rome far away from here"),
        ("INSERT", "b", 2, "Bonn"),
        ("INSERT", "c", 8, "New Oslo far away from here"),
    ]


def id_with(flink: FlinkMachine, query: Query, state: str, folder: Path) -> str:
    """Return the id of the operator with a state, which the plan of the job assigns to it."""
    answer = run_query(flink, query, {}, results=0, savepoint=folder)
    return operator_with(statetool.load(answer["savepoint"]), state).operator_id


def test_totals_made_from_nothing_go_on(flink: FlinkMachine, tmp_path: Path) -> None:
    """Types, serializers and rows are written by statetool; only the id of the operator is the job's."""
    moment = pa.scalar(1_709_210_096_123_456, pa.timestamp("us", tz="UTC"))
    rows = [
        {
            "f0": pa.scalar("1.5000").cast(pa.decimal128(38, 4)).as_py(),
            "f1": moment.as_py(),
            "f1_nanos": 789,
            "f2": None,
            "f3": i,
        }
        for i in range(1, 50)
    ]
    value = pa.struct(
        {
            "f0": pa.decimal128(38, 4),
            "f1": moment.type,
            "f1_nanos": pa.int32(),
            "f2": pa.date32(),
            "f3": pa.int64(),
        }
    )
    keys = pa.array([{"f0": f"shop {i}"} for i in range(1, 50)], pa.struct({"f0": pa.string()}))
    table = pa.table({"key": keys, "accState": pa.array(rows, value)})
    state = statetool.value("ROW<total DECIMAL(38, 4), latest TIMESTAMP_LTZ(9), earliest DATE, n BIGINT>")
    bootstrap = statetool.bootstrap_keyed_state(table, key_type="ROW<shop STRING>", states={"accState": state})
    operator_id = id_with(flink, LATEST, "accState", tmp_path / "empty")
    statetool.SavepointWriter.new(max_parallelism=128).with_operator(operator_id, bootstrap).write(
        str(tmp_path / "made"), flink_version=flink.version
    )
    more = inserts(
        ("shop 1", "2.25", "2024-02-29T12:34:56.123456788Z", "2024-01-01"),
        ("shop 49", "-1.5", "2024-02-29T12:34:56.123456790Z", None),
        ("new", "0.0001", "1969-12-31T23:59:59.999999999Z", None),
    )
    for backend in ("hashmap", "rocksdb"):
        answer = run_query(flink, LATEST, {"t": more}, results=5, snapshot=tmp_path / "made", backend=backend)
        assert [c for c in changes(answer) if c[0] != "UPDATE_BEFORE"] == [
            ("UPDATE_AFTER", "shop 1", {"$decimal": "3.7500"}, "2024-02-29T12:34:56.123456789Z", "2024-01-01", 2),
            ("UPDATE_AFTER", "shop 49", {"$decimal": "0.0000"}, "2024-02-29T12:34:56.123456790Z", None, 50),
            ("INSERT", "new", {"$decimal": "0.0001"}, "1969-12-31T23:59:59.999999999Z", None, 1),
        ]


def test_a_join_made_from_nothing_goes_on(flink: FlinkMachine, tmp_path: Path) -> None:
    left = (
        "ROW<id BIGINT, names ARRAY<STRING> NOT NULL, prices MAP<STRING, DECIMAL(30, 4)> NOT NULL,"
        " pair ROW<`EXPR$0` STRING, `EXPR$1` BIGINT> NOT NULL, maps ARRAY<MAP<STRING, BIGINT> NOT NULL> NOT NULL>"
    )
    price = pa.scalar("12345678901234567890.1234").cast(pa.decimal128(30, 4)).as_py()
    row_type = pa.struct(
        {
            "id": pa.int64(),
            "names": pa.list_(pa.string()),
            "prices": pa.map_(pa.string(), pa.decimal128(30, 4)),
            "pair": pa.struct({"EXPR$0": pa.string(), "EXPR$1": pa.int64()}),
            "maps": pa.list_(pa.map_(pa.string(), pa.int64())),
        }
    )
    records = pa.array(
        [
            [({"id": 1, "names": [_LONG_NAME, None], "prices": [("p", price)], "pair": {"EXPR$0": "r", "EXPR$1": 7},
               "maps": [[("k", 1)], []]}, 2)],
            [({"id": 2, "names": [], "prices": [], "pair": {"EXPR$0": None, "EXPR$1": None}, "maps": []}, 1)],
        ],
        pa.map_(row_type, pa.int32()),
    )  # fmt: skip
    right_type = pa.struct({"id": pa.int64(), "v": pa.string()})
    rights = pa.array([None, [({"id": 2, "v": "two"}, 1)]], pa.map_(right_type, pa.int32()))
    keys = pa.array([{"id": 1}, {"id": 2}], pa.struct({"id": pa.int64()}))
    table = pa.table({"key": keys, "left-records": records, "right-records": rights})
    bootstrap = statetool.bootstrap_keyed_state(
        table,
        key_type="ROW<id BIGINT>",
        states={
            "left-records": statetool.map_of(left, "INT"),
            "right-records": statetool.map_of("ROW<id BIGINT, v STRING>", "INT"),
        },
    )
    operator_id = id_with(flink, NESTED, "left-records", tmp_path / "empty")
    statetool.SavepointWriter.new(max_parallelism=128).with_operator(operator_id, bootstrap).write(
        str(tmp_path / "made"), flink_version=flink.version
    )
    more = {"t": inserts((2, "n", "0.5")), "s": inserts((1, "one"))}
    answer = run_query(flink, NESTED, more, results=3, snapshot=tmp_path / "made", backend="rocksdb")
    kept = (
        1,
        [_LONG_NAME, None],
        {"$map": [["p", {"$decimal": "12345678901234567890.1234"}]]},
        {"$row": ["r", 7], "kind": "INSERT"},
        [{"$map": [["k", 1]]}, {"$map": []}],
        "one",
    )
    new = (2, ["n", "x"], {"$map": [["n", {"$decimal": "0.5000"}]]}, {"$row": ["n", 2], "kind": "INSERT"})
    assert sorted(map(repr, changes(answer))) == sorted(
        map(repr, [("INSERT", *kept)] * 2 + [("INSERT", *new, [{"$map": [["n", 2]]}], "two")])
    )


@pytest.mark.since(2, 1)
def test_variants_are_read_edited_and_made_from_nothing(flink: FlinkMachine, tmp_path: Path) -> None:
    texts = {1: '{"a":1,"b":[true,null,1.5,"x"]}', 2: '"text"', 3: None}
    first = {"t": inserts(*texts.items())}
    answer = run_query(flink, VARIANTS, first, results=0, savepoint=tmp_path / "first")
    sp = statetool.load(answer["savepoint"])
    operator = operator_with(sp, "left-records")
    table = operator.to_arrow("left-records")
    found = {r["map_key"]["f0"]: r["map_key"]["f1"] for r in table.to_pylist()}
    shown = {k: v and VariantVal(v["value"], v["metadata"]).toJson() for k, v in found.items()}
    assert shown == texts
    # Each row gets the variant of another row.
    rows = table.to_pylist()
    for row in rows:
        row["map_key"]["f1"] = found[row["map_key"]["f0"] % 3 + 1]
    edited = pa.Table.from_pylist(rows, schema=table.schema)
    statetool.SavepointWriter.from_existing(sp).with_operator(
        operator.name, statetool.bootstrap_state("left-records", edited, like=operator)
    ).write(str(tmp_path / "edited"))
    keys = pa.array([{"id": k} for k in texts], pa.struct({"id": pa.int64()}))
    records = pa.array(
        [
            [({"id": r["map_key"]["f0"], "j": r["map_key"]["f1"]}, 1)]
            for r in sorted(rows, key=lambda r: r["key"]["f0"])
        ],
        pa.map_(pa.struct({"id": pa.int64(), "j": VARIANT_STRUCT}), pa.int32()),
    )
    states = {"left-records": statetool.map_of("ROW<id BIGINT, j VARIANT>", "INT")}
    made = statetool.bootstrap_keyed_state(
        pa.table({"key": keys, "left-records": records}), key_type="ROW<id BIGINT>", states=states
    )
    statetool.SavepointWriter.new(max_parallelism=128).with_operator(operator.operator_id, made).write(
        str(tmp_path / "made"), flink_version=flink.version
    )
    for snapshot, backend in (("edited", "rocksdb"), ("made", "hashmap")):
        more = {"s": inserts((1, "one"), (2, "two"), (3, "three"))}
        answer = run_query(flink, VARIANTS, more, results=3, snapshot=tmp_path / snapshot, backend=backend)
        assert sorted(changes(answer), key=lambda c: c[1]) == [
            ("INSERT", 1, {"$variant": "text"}, "one"),
            ("INSERT", 2, None, "two"),
            ("INSERT", 3, {"$variant": {"a": 1, "b": [True, None, 1.5, "x"]}}, "three"),
        ]
