from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import statetool
from statetool.errors import DecodeError, OptionError, UnsupportedError
from statetool.spark.frames import row_limit
from statetool.spark.session import heap_bytes
from statetool.spark.source.guard import DEFAULT_ROW_BYTES, ROW_BYTES, reject_unsupported_rows
from tests.support.patience import PATIENCE_S
from tests.support.spark.data_sources import data_sources

NUMBERS = pa.map_(pa.string(), pa.int32())


def refused(array: pa.Array) -> bool:
    batch = pa.record_batch({"m": array})
    try:
        assert list(reject_unsupported_rows(iter([batch]))) == [batch]
    except DecodeError:
        return True
    return False


@pytest.mark.parametrize("wrap", ["map", "list", "struct", "value of a map"])
def test_a_key_twice_is_found_wherever_the_map_is(wrap: str) -> None:
    def array(*maps: Any) -> pa.Array:
        if wrap == "list":
            return pa.array([[m, []] for m in maps], type=pa.list_(NUMBERS))
        if wrap == "struct":
            return pa.array([{"x": m} for m in maps], type=pa.struct([("x", NUMBERS)]))
        if wrap == "value of a map":
            return pa.array([[("k", m)] for m in maps], type=pa.map_(pa.string(), NUMBERS))
        return pa.array(maps, type=NUMBERS)

    assert not refused(array([("a", 1)], None, [], [("a", 2), ("b", 3)]))
    assert refused(array([("a", 1)], None, [("c", 1), ("b", 2), ("c", 1)]))


@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=4)), max_size=9
    ),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_slices_of_a_batch_are_judged_by_their_own_maps(maps: list[Any], start: int, length: int) -> None:
    sliced = maps[start : start + length]
    twice = any(m is not None and len({k for k, _ in m}) < len(m) for m in sliced)
    assert refused(pa.array(maps, type=NUMBERS).slice(start, length)) == twice


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int64(), 1, 2),
        (pa.bool_(), True, False),
        (pa.decimal128(38, 18), Decimal("1.5"), Decimal("1.25")),
        (pa.timestamp("us", tz="UTC"), 1, 2),
        (pa.binary(), b"", b"\0"),
        (pa.struct([("f0", pa.string()), ("f1", pa.int32())]), {"f0": "a", "f1": 1}, {"f0": "a", "f1": None}),
        (pa.list_(pa.int32()), [1], [1, 1]),
    ],
)
def test_keys_of_any_type_are_compared(kind: pa.DataType, one: Any, other: Any) -> None:
    def maps(*keys: Any) -> pa.Array:
        return pa.array([[(k, 0) for k in keys], [(keys[0], 0)]], type=pa.map_(kind, pa.int8()))

    assert not refused(maps(one, other))
    assert refused(maps(one, other, one))


def test_the_error_says_where_and_what_to_do() -> None:
    batch = pa.record_batch({"balances": pa.array([[("a", 1), ("a", 2)]], type=NUMBERS)})
    with pytest.raises(DecodeError, match=r"same key twice.*file x, operator accounts, state balances.*long form"):
        list(reject_unsupported_rows(iter([batch]), file="x", operator="accounts"))


LIMIT = 10_000


def rows(*columns: Any) -> pa.RecordBatch:
    return pa.record_batch(dict(zip(("key", "v"), columns, strict=True)))


@pytest.mark.parametrize(
    "large",
    [
        pa.array([b"", bytes(LIMIT), b"x"]),
        pa.array([[], ["abcdefgh"] * (LIMIT // 8), None]),
        pa.array([[], list(range(LIMIT // 8)), [1]], pa.list_(pa.int64())),
        pa.array([[], [(i, "x") for i in range(LIMIT // 4)], None], pa.map_(pa.int32(), pa.string())),
        pa.array([None, {"a": {"b": bytes(LIMIT)}}, {"a": None}]),
    ],
    ids=["bytes", "texts", "numbers", "map", "struct"],
)
@pytest.mark.parametrize("around", [0, 3000])
def test_a_row_above_the_limit_is_named_before_the_jvm_gets_it(large: pa.Array, around: int) -> None:
    others = pa.concat_arrays([large.slice(0, 1), large.slice(2, 1)]).take(
        pa.array([i % 2 for i in range(around)], pa.int32())
    )
    column = pa.concat_arrays([others, large, others])
    batch = rows(pa.array([f"k{i}" for i in range(len(column))]), column)
    with pytest.raises(UnsupportedError) as caught:
        list(reject_unsupported_rows(iter([batch]), operator="accounts", row_bytes=LIMIT))
    text = str(caught.value)
    assert text.startswith(f"the row of key 'k{around + 1}' has ")
    assert "operator accounts, state v" in text
    assert ROW_BYTES in text
    assert ("op.state('v')" in text) == (pa.types.is_list(large.type) or pa.types.is_map(large.type))
    assert list(reject_unsupported_rows(iter([batch]), row_bytes=None)) == [batch]
    assert list(reject_unsupported_rows(iter([batch]), row_bytes=3 * LIMIT)) == [batch]


def test_many_small_rows_are_no_large_one() -> None:
    batch = rows(pa.array(range(5000)), pa.array([["abcdefgh"]] * 5000))
    assert batch.nbytes > 10 * LIMIT
    assert list(reject_unsupported_rows(iter([batch, batch.slice(7, 4000)]), row_bytes=LIMIT)) == [
        batch,
        batch.slice(7, 4000),
    ]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A savepoint with a list of 200,000 bytes."""
    table = pa.table({"key": ["small", "large"], "items": [[1], list(range(25_000))]})
    state = statetool.bootstrap_keyed_state(table, key="key", states={"items": statetool.list_of("BIGINT")})
    writer = statetool.SavepointWriter.new().with_operator("accounts", state)
    return writer.write(str(tmp_path_factory.mktemp("large") / "sp"), flink_version="2.3").path


@pytest.fixture
def limited(spark: Any) -> Iterator[Any]:
    spark.conf.set(ROW_BYTES, "100000")
    yield spark
    spark.conf.unset(ROW_BYTES)


def test_queries_refuse_the_row_and_read_its_long_form(limited: Any, large: str) -> None:
    operator = statetool.load(large, spark=limited, driver_read_limit=0)["accounts"]
    with pytest.raises(UnsupportedError, match=r"the row of key 'large' has 200.*state items.*op\.state\('items'\)"):
        operator.keyed_state().collect()
    assert operator.state("items").count() == 25_001
    limited.conf.set(ROW_BYTES, "300000")
    assert operator.keyed_state().count() == 2
    limited.conf.set(ROW_BYTES, "much")
    with pytest.raises(OptionError, match="much"):
        operator.keyed_state()


def test_views_refuse_the_row_too(limited: Any, large: str) -> None:
    statetool.load(large, spark=limited, driver_read_limit=0).register("guarded")
    with pytest.raises(UnsupportedError, match="the row of key 'large'"):
        limited.sql("SELECT * FROM guarded_accounts_keyed_state").collect()


@data_sources
def test_the_data_source_has_an_option_for_it(spark: Any, large: str) -> None:
    source = spark.read.format("flink-state").option("operatorUid", "accounts")
    statetool.register(spark)
    with pytest.raises(UnsupportedError, match="the row of key 'large'"):
        source.option("rowBytes", "100000").load(large).collect()
    assert source.option("rowBytes", "300000").load(large).count() == 2
    with pytest.raises(Exception, match="rowBytes='none' is not a number of bytes"):
        source.option("rowBytes", "none").load(large)


def test_the_limit_follows_the_heap(spark: Any) -> None:
    heap = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory()
    assert heap_bytes(spark) == heap
    assert row_limit(spark) == min(heap // 8, 1 << 30)
    assert DEFAULT_ROW_BYTES == 128 << 20


@pytest.mark.parametrize(
    ("memory", "size"),
    [(None, 1 << 30), ("512m", 512 << 20), ("2G", 2 << 30), ("3000", 3000 << 20), ("1024k", 1 << 20), ("?", 1 << 30)],
)
def test_the_heap_of_executors_is_what_the_session_says(memory: str | None, size: int) -> None:
    class Conf:
        def get(self, name: str, default: str | None = None) -> str | None:
            return memory if name == "spark.executor.memory" and memory is not None else default

    class Context:
        master = "spark://host:7077"

    class Session:
        conf, sparkContext = Conf(), Context()  # noqa: N815  # Spark's name

    assert heap_bytes(Session()) == size
    assert row_limit(Session()) == size // 8


_SMALL_HEAP = """
import sys, statetool
from statetool.errors import UnsupportedError
from statetool.spark.session import local_session
spark = local_session(cores="1")
spark.sparkContext.setLogLevel("OFF")
operator = statetool.load(sys.argv[1], spark=spark, driver_read_limit=0)["accounts"]
for action in (lambda f: f.collect(), lambda f: f.write.parquet(sys.argv[1] + "-rows")):
    try:
        action(operator.keyed_state())
    except UnsupportedError as error:
        print(error)
print(operator.state("items").count())
"""


@pytest.mark.full
def test_a_jvm_of_small_heap_lives_on(tmp_path: Path) -> None:
    """Without the limit it ended without a message: a list of 100 MB in a heap of 512 MB."""
    n = 12_500_000
    values = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), pa.array(np.arange(n)))
    state = statetool.bootstrap_keyed_state(
        pa.table({"key": ["k"], "items": values}), key="key", states={"items": statetool.list_of("BIGINT")}
    )
    path = (
        statetool.SavepointWriter.new()
        .with_operator("accounts", state)
        .write(str(tmp_path / "sp"), flink_version="2.3")
        .path
    )
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": "--driver-memory 512m pyspark-shell"}
    asked = [sys.executable, "-c", _SMALL_HEAP, path]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    *refused, count = done.stdout.splitlines()
    assert len(refused) == 2
    assert all(line.startswith("the row of key 'k' has 10000") for line in refused)
    assert count == str(n)
