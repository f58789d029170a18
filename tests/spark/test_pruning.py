from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="PySpark before 4.0 has no Python data sources")
from pyspark.sql.datasource import EqualNullSafe, EqualTo, Filter, GreaterThan, In, IsNotNull, Not

import statetool
from statetool.io.cursor import Cursor
from statetool.serializers.core.base import Serializer
from statetool.serializers.sql.logical_types import SqlType
from statetool.serializers.sql.rowdata import RowDataSerializer
from statetool.serializers.table import snapshot_reader
from statetool.spark.source.options import SourceOptions
from statetool.spark.source.pruning import allowed_keys
from statetool.spark.source.sources import FlinkStateReader
from statetool.tables.read import read_split
from tests.support.snapshots import build
from tests.support.snapshots.stored import groups_of

CASE = "v2_3_0-rocksdb-canonical"
KEY = ("key",)


def serializer(snapshot: bytes) -> Serializer:
    return snapshot_reader().snapshot(Cursor(snapshot))


STRING = serializer(build.STRING)
LONG = serializer(build.LONG)
PAIR = serializer(build.tuple_of(build.STRING, build.INT))


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([EqualTo(KEY, "a")], ["a"]),
        ([EqualNullSafe(KEY, "a")], ["a"]),
        ([IsNotNull(KEY), In(KEY, ["a", None, "b", "a"])], ["a", "b"]),
        ([In(KEY, ("a", "b")), In(KEY, ("b", "c"))], ["b"]),
        ([EqualTo(KEY, "a"), EqualTo(KEY, "b")], []),
        ([EqualTo(KEY, "a"), EqualTo(("value",), 3)], ["a"]),
        ([EqualTo(("value",), "a")], None),
        ([GreaterThan(KEY, "a")], None),
        ([Not(EqualTo(KEY, "a"))], None),
        ([EqualNullSafe(KEY, None)], None),  # it allows null, not nothing
        ([EqualTo(KEY, 1)], None),  # not a string: whatever Spark's semantics, it is not looked up
        ([EqualTo(KEY, "a\ud800")], ["a\ud800"]),
        ([], None),
    ],
)
def test_filters_on_a_string_key(filters: list[Filter], keys: list[Any] | None) -> None:
    assert allowed_keys(filters, STRING) == keys


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([EqualTo(KEY, 5)], [5]),
        ([EqualTo(KEY, True)], None),
        ([EqualTo(KEY, 5.0)], None),
        ([EqualTo(KEY, 1 << 70)], None),
    ],
)
def test_filters_on_a_long_key(filters: list[Filter], keys: list[Any] | None) -> None:
    assert allowed_keys(filters, LONG) == keys


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([EqualTo(KEY, {"f0": "a", "f1": 1})], [("a", 1)]),
        ([EqualTo(("key", "f0"), "a"), EqualTo(("key", "f1"), 1)], [("a", 1)]),
        ([In(("key", "f0"), ("a", "b")), EqualTo(("key", "f1"), 1)], [("a", 1), ("b", 1)]),
        ([EqualTo(KEY, {"f0": "a", "f1": 1}), EqualTo(("key", "f1"), 2)], [("a", 1)]),  # Spark drops the row itself
        ([EqualTo(("key", "f0"), "a")], None),
        ([EqualTo(KEY, {"f0": "a", "f1": None})], None),
        ([EqualTo(KEY, {"f0": "a"})], None),
        ([In(("key", "f0"), tuple(map(str, range(200)))), In(("key", "f1"), tuple(range(200)))], None),
    ],
)
def test_filters_on_a_tuple_key(filters: list[Filter], keys: list[Any] | None) -> None:
    assert allowed_keys(filters, PAIR) == keys


@pytest.mark.parametrize(
    ("name", "value"),
    [("Double", 0.0), ("Double", float("nan")), ("Float", 1.5), ("BigDec", Decimal("1.00")), ("BigInt", Decimal(3))],
)
def test_keys_whose_equality_is_not_that_of_their_bytes_are_left_to_spark(name: str, value: Any) -> None:
    assert allowed_keys([EqualTo(KEY, value)], serializer(build.simple(name))) is None


def groups_and_rows(path: str, operator: str, *filters: Filter) -> tuple[int, list[Any]]:
    reader = FlinkStateReader(
        SourceOptions(
            {"path": path, "operatorUid": operator, "nanos": "truncate", "decimals": "string", "prune": "true"}
        )
    )
    assert list(reader.pushFilters(list(filters))) == list(filters)  # Spark evaluates them all again
    splits = [p.split for p in reader.partitions()]
    rows = [r for s in splits for b in read_split(s) for r in b.to_pylist()]
    return len(groups_of(splits)), rows


@pytest.mark.full
def test_no_row_is_lost_for_any_kind_of_key_and_most_key_groups_are_not_read(corpus: Path) -> None:
    path = str(corpus / CASE / "snapshot")
    pruned = set()
    for name, operator in statetool.load(path).operators.items():
        if "keyed_state" not in operator.tables or not operator.states or name == "orders":
            continue  # orders: the heap backend's snapshot does not describe pets
        everything, all_rows = groups_and_rows(path, name)
        key = all_rows[len(all_rows) // 2]["key"]
        groups, rows = groups_and_rows(path, name, EqualTo(KEY, key))
        expected = [repr(r) for r in all_rows if r["key"] == key]  # repr: NaN is not NaN
        assert [repr(r) for r in rows if r["key"] == key] == expected
        if groups < everything:
            assert groups == 1
            assert list(map(repr, rows)) == expected
            pruned.add(name)
    assert {"timers", "by-tuple", "scalars-by-long", "with-ttl"} <= pruned
    assert "by-double" not in pruned


def _sql_key(names: tuple[str, ...]) -> Serializer:
    name = "org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot"
    types = (SqlType(root="VARCHAR", length=9), SqlType(root="BIGINT"), SqlType(root="DOUBLE"))[: len(names)]
    return RowDataSerializer(name, 3, b"", types, ()).as_key().with_names(names)


def test_the_fields_of_a_sql_key() -> None:
    key = _sql_key(("customer", "id"))
    assert allowed_keys([EqualTo(("key", "customer"), "x"), In(("key", "id"), (1, 2))], key) == [("x", 1), ("x", 2)]
    assert allowed_keys([EqualTo(("key",), {"customer": "x", "id": 1})], key) == [("x", 1)]
    assert allowed_keys([EqualTo(("key", "customer"), "x")], key) is None
    assert allowed_keys([EqualTo(("key", "f0"), "x"), EqualTo(("key", "id"), 1)], key) is None
    assert (
        allowed_keys([EqualTo(("key", n), v) for n, v in (("a", "x"), ("b", 1), ("c", 1.5))], _sql_key(("a", "b", "c")))
        is None
    )
