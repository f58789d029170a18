"""DuckDB and Polars read the same values as ``to_arrow``, and pushing down columns and keys changes no result."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import statetool
from statetool.columns.python_values import as_python, number_of
from statetool.columns.storable import storable_schema, store_empty_structs
from statetool.errors import StatetoolError, UnknownNameError
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan, scan_table
from statetool.tables.sql.engine import connect
from tests.support.zoo import ZOO

CASES = ("v2_3_0-rocksdb-canonical", "v1_20_5-hashmap-native")
SQL_CASES = ("group-agg", "interval-join")
ROWS = 2000


def tables_of(path: Path) -> Iterator[tuple[statetool.Operator, str, pa.Table]]:
    """Yield the tables of a snapshot that can be read."""
    for operator in statetool.load(str(path)).operators.values():
        for table in operator.tables:
            try:
                yield operator, table, operator.to_arrow(table, on_error="keep_raw", decimals="string")
            except StatetoolError:
                continue


def values(table: pa.Table) -> list[str]:
    """Return rows in an order, with dates, times and durations as numbers."""
    columns = [as_python(column.combine_chunks(), number_of) for column in table.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


def in_duckdb(table: pa.Table) -> pa.Table:
    """Return a table with the types that DuckDB has."""
    batches = [store_empty_structs(batch) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, storable_schema(table.schema))


def result(relation: Any) -> pa.Table:
    return relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()


def found(root: Path, *names: str) -> list[Path]:
    folders = sorted({f.parent for f in root.rglob("_metadata")})
    return [f for f in folders if any(name in str(f) for name in names)] or folders[:2]


@pytest.fixture
def scanned_keys(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys of each planned read."""
    seen: list[Any] = []

    def record(operator: Any, request: ScanRequest) -> TableScan:
        seen.append(request.keys)
        return scan_table(operator, request)

    monkeypatch.setattr("statetool.tables.sql.source.scan_table", record)
    return seen


def test_every_table_arrives_exactly(corpus: Path, sql_corpus: Path) -> None:
    tables = 0
    for path in (*found(corpus, *CASES), *found(sql_corpus, *SQL_CASES)):
        for operator, table, arrow in tables_of(path):
            options: dict[str, Any] = {"on_error": "keep_raw", "decimals": "string"}
            rows = result(operator.to_duckdb(table, **options))
            assert values(rows) == values(in_duckdb(arrow)), (path, operator, table)
            frame = operator.to_polars(table, **options).collect()
            assert values(frame.to_arrow()) == values(arrow), (path, operator, table)
            tables += 1
    assert tables > 50


@pytest.mark.full
@pytest.mark.usefixtures("lakes")
def test_every_table_arrives_in_datafusion_and_lance(corpus: Path, sql_corpus: Path, tmp_path: Path) -> None:
    """Libraries that read a table as an Arrow stream. ``nox -s lakes`` installs them."""
    datafusion, lance = import_module("datafusion"), import_module("lance")
    tables = 0
    for path in (*found(corpus, *CASES), *found(sql_corpus, *SQL_CASES)):
        for operator, table, arrow in tables_of(path):
            scan = operator.scan(table, on_error="keep_raw", decimals="string")
            frame = datafusion.SessionContext().from_arrow(scan)
            assert values(pa.table(frame)) == values(arrow), (path, operator, table)
            tables += 1
            written = lance.write_dataset(scan.reader(), str(tmp_path / f"{tables}.lance"))
            assert values(written.to_table()) == values(arrow), (path, operator, table)
    assert tables > 50


def test_single_columns_have_the_same_rows(corpus: Path) -> None:
    compared = 0
    for operator, table, arrow in tables_of(found(corpus, CASES[0])[0]):
        for name in arrow.column_names:
            scan = operator.scan(table, on_error="keep_raw", decimals="string").select([name])
            assert values(pa.table(scan)) == values(arrow.select([name])), (operator, table, name)
            compared += 1
    assert compared > 100


def test_states_in_other_columns_are_not_decoded(corpus: Path) -> None:
    operator = statetool.load(str(found(corpus, CASES[0])[0]))["scalars-by-long"]
    with pytest.raises(StatetoolError, match="decimals='string'"):
        operator.to_arrow()
    keys = pa.table(operator.scan().select(["key", "int"]))
    assert values(keys) == values(operator.to_arrow(decimals="string").select(["key", "int"]))
    assert operator.count("bigint") == operator.to_arrow("bigint", decimals="string").num_rows > 0
    with pytest.raises(UnknownNameError, match="no column 'itn'"):
        operator.scan().select(["itn"])


def test_keys_are_found_by_their_bytes(corpus: Path, scanned_keys: list[Any]) -> None:
    looked_up = 0
    for operator, table, arrow in tables_of(found(corpus, CASES[0])[0]):
        if "key" not in arrow.column_names or not arrow.num_rows:
            continue
        options: dict[str, Any] = {"on_error": "keep_raw", "decimals": "string"}
        keys = arrow["key"].to_pylist()
        for key in {k for k in (keys[0], keys[-1]) if isinstance(k, int | str | bool)}:
            expected = values(in_duckdb(arrow.filter(pa.array([k == key for k in keys]))))
            relation = operator.to_duckdb(table, **options).filter(
                duckdb.ColumnExpression("key") == duckdb.ConstantExpression(key)
            )
            assert values(result(relation)) == expected, (operator, table, key)
            frame = operator.to_polars(table, **options).filter(pl.col("key") == key).collect()
            assert len(frame) == len(expected), (operator, table, key)
            looked_up += scanned_keys[-1] == scanned_keys[-2] == (key,)
    assert looked_up > 10


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> statetool.Operator:
    """An operator with nulls, NaNs and struct values, and with keys that have only some of the states."""
    chance = np.random.default_rng(7)
    floats = chance.choice([0.0, -0.0, 0.5, 1.5, np.nan, np.inf, -np.inf], ROWS)
    missing = chance.random(ROWS) < 0.2
    rows = pa.table(
        {
            "key": pa.array(np.arange(ROWS)),
            "f": pa.array(floats, mask=missing),
            "n": pa.array(chance.integers(-3, 3, ROWS), mask=chance.random(ROWS) < 0.2),
            "s": pa.array(chance.choice(["", "a", "b", 'x") or (key == "y'], ROWS), mask=chance.random(ROWS) < 0.2),
            "p": pa.array([{"f0": float(f), "f1": i % 3} for i, f in enumerate(floats)]),
        }
    )
    states = {
        "f": statetool.value("DOUBLE"),
        "n": statetool.value("INT"),
        "s": statetool.value("STRING"),
        "p": statetool.value("ROW<f0 DOUBLE, f1 BIGINT>"),
    }
    keyed = statetool.bootstrap_keyed_state(rows, key="key", states=states)
    target = tmp_path_factory.mktemp("numbers") / "sp"
    statetool.SavepointWriter.new().with_operator("numbers", keyed, parallelism=2).write(str(target))
    return statetool.load(str(target))["numbers"]


def conditions(seed: int) -> Iterator[str]:
    """Yield SQL conditions."""
    chance = random.Random(seed)

    def simple() -> str:
        key = chance.choice([-1, 0, 5, 77, ROWS - 1, ROWS, 1 << 40])
        return chance.choice(
            [
                f"key = {key}", f"{key} = key", f"key IN ({key}, 5, 6, 7)", f"key <> {key}", f"key > {key}", f"key BETWEEN 3 AND {key}",
                "key IN (1, 2, NULL)", "key IS NULL", "key IS NOT NULL", f"f > {chance.choice(['0.5', '0', 'double_nan'])}", "f = 'nan'::DOUBLE",
                "f <> 1.5", "f = 0.0", "f IS NULL", "p.f0 > 1", "p.f0 = 'nan'::DOUBLE", "p.f1 = 1", "n = 2", "n < 0", "n IN (1, 2)",
                "s = 'a'", "s < 'b'", "s LIKE 'x%'", "s = 'x\") or (key == \"y'", "s IN ('', 'b')", "NOT (n = 1)", f"key::VARCHAR = '{key}'",
            ]
        ).replace("double_nan", "'nan'::DOUBLE")  # fmt: skip

    for _ in range(120):
        parts = [simple() for _ in range(chance.choice([1, 1, 2, 3]))]
        yield chance.choice([" AND ", " OR "]).join(f"({part})" for part in parts)


def test_conditions_have_the_results_of_duckdb_alone(numbers: statetool.Operator) -> None:
    connection = duckdb.connect()
    numbers.to_duckdb(connection=connection).create("alone")
    numbers.to_duckdb(connection=connection).create_view("pushed")
    for condition in conditions(11):
        query = f"SELECT key, f::VARCHAR, n, s FROM {{}} WHERE {condition} ORDER BY key"
        alone, pushed = (connection.execute(query.format(t)).fetchall() for t in ("alone", "pushed"))
        assert alone == pushed, condition
    joined = "SELECT count(*) FROM {0} a JOIN {0} b ON a.key = b.key + 1 WHERE b.key IN (3, 4) AND a.n IS NOT NULL"
    assert len({connection.execute(joined.format(t)).fetchone() for t in ("alone", "pushed")}) == 1


def test_fields_that_differ_only_in_case_have_two_names(tmp_path: Path) -> None:
    """DuckDB would read the first one for both."""
    numbers = range(100)
    inner = [{"x": [{"N": i, "n": -i}]} for i in numbers]
    rows = pa.table({"key": pa.array(numbers), "p": [{"A": i, "a": -i} for i in numbers], "q": inner})
    pair = statetool.flink.pojo("com.acme.Pair", {"A": statetool.flink.LONG, "a": statetool.flink.LONG})
    item = statetool.flink.pojo("com.acme.Item", {"N": statetool.flink.LONG, "n": statetool.flink.LONG})
    outer = statetool.flink.pojo("com.acme.Outer", {"x": statetool.flink.list_of(item)})
    keyed = statetool.bootstrap_keyed_state(rows, states={"p": statetool.value(pair), "q": statetool.value(outer)})
    statetool.SavepointWriter.new().with_operator("op", keyed).write(str(tmp_path / "sp"), flink_version="2.3")
    query = "SELECT key, p, p.A AS a, p.a_ AS b, q.x[1].n_ AS n FROM op_keyed_state WHERE p.a_ < -97 AND p.A < 99"
    (row,) = statetool.query(str(tmp_path / "sp"), query).read_all().to_pylist()
    assert row == {"key": 98, "p": {"A": 98, "a_": -98}, "a": 98, "b": -98, "n": -98}


def test_conditions_have_the_results_of_polars_alone(numbers: statetool.Operator) -> None:
    alone = pl.DataFrame(pl.from_arrow(numbers.to_arrow()))
    key, f = pl.col("key"), pl.col("f")
    for condition in (
        key == 5, pl.lit(5) == key, key != 5, key.is_in([1, 2]), key.is_in([1, None]), ~(key == 5), (key == 5) | (key == 7), (key == 5) & (f > 0.5),
        (key == 5) | (f > 0.5), f > 0.5, f.is_nan(), key.cast(pl.String) == "5", (key + 1) == 5, key.eq_missing(5), key.is_in([]),
        (key == 5).xor(key == 6), pl.col("s") == "a", key.is_between(3, 9), (key == 5) & (key == 6), key == ROWS + 5,
    ):  # fmt: skip
        assert numbers.to_polars().filter(condition).collect().sort("key").equals(alone.filter(condition).sort("key"))
    lazy = numbers.to_polars()
    assert lazy.select(pl.len()).collect().item() == ROWS
    assert len(lazy.head(7).filter(key >= 0).collect()) == 7
    assert lazy.filter(f > 0.5).select("n").collect().height == alone.filter(f > 0.5).height


def test_streams_are_read_again_and_readers_once() -> None:
    operator = statetool.load(ZOO)["timers"]
    timers = operator.scan("timers")
    expected = operator.to_arrow("timers")
    assert pa.table(timers).equals(expected)
    assert pl.DataFrame(timers).height == expected.num_rows
    assert duckdb.sql("SELECT count(*) FROM timers").fetchall() == [(expected.num_rows,)]
    reader = operator.reader("timers")
    assert reader.read_all().equals(expected)
    assert not reader.read_all().num_rows


def test_given_keys_are_not_replaced(scanned_keys: list[Any]) -> None:
    operator = statetool.load(ZOO)["timers"]
    rows = operator.to_duckdb(keys=["timer-3"]).filter("key IN ('timer-3', 'timer-4')").fetchall()
    assert len(rows) == 1
    assert scanned_keys == [("timer-3",)]


def test_duckdb_prints_no_progress_bar_among_the_rows() -> None:
    assert connect().sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]
