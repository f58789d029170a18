"""Small tables are read on the driver, larger ones by tasks: both give the same rows as Arrow."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError, StatetoolError
from statetool.spark import frames
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan
from tests.support.spark.data_sources import data_sources, rows_of
from tests.support.zoo import ZOO

WAYS = {"here": 1 << 30, "tasks": 0}
#: A zone with daylight saving time, far from UTC.
ZONE = "America/St_Johns"


@pytest.fixture
def far(spark: Any) -> Iterator[Any]:
    """Yield the session in a time zone other than UTC."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", zone)


def is_local(frame: Any) -> bool:
    plan = str(frame._jdf.queryExecution().toString())
    assert ("LocalTableScan" in plan) != ("MapInArrow" in plan)
    return "LocalTableScan" in plan


def assert_same(path: str, spark: Any, ways: list[str], **options: Any) -> int:
    """Compare all tables of a snapshot, and return their number."""
    compared = 0
    by_arrow = statetool.load(path)
    for way in ways:
        for name, operator in statetool.load(path, spark=spark, driver_read_limit=WAYS[way]).operators.items():
            for table in operator.tables:
                try:
                    expected = by_arrow[name].to_arrow(table, **options)
                except StatetoolError as error:
                    with pytest.raises(type(error)) as caught:
                        operator.table(table, **options).collect()
                    # If several splits fail, another one may be reported first.
                    assert str(caught.value).partition(" [file")[0] == str(error).partition(" [file")[0]
                    continue
                frame = operator.table(table, **options)
                assert Counter(map(repr, rows_of(frame))) == Counter(map(repr, expected.to_pylist())), (name, table)
                compared += 1
    return compared


@data_sources
def test_all_tables_of_the_savepoint_that_comes_with_it(far: Any) -> None:
    assert assert_same(ZOO, far, ["here"]) == 56


@pytest.mark.full
@pytest.mark.parametrize("options", [{}, {"ttl": "raw", "decimals": "string"}, {"on_error": "keep_raw"}], ids=repr)
def test_both_ways_of_all_tables(far: Any, options: dict[str, Any]) -> None:
    assert assert_same(ZOO, far, [*WAYS], **options) == 112


@pytest.mark.full
@pytest.mark.parametrize(
    "case",
    ["v2_3_0-rocksdb-canonical", "v2_3_0-hashmap-canonical-compressed", "v1_13_6-hashmap-canonical", "v2_3_0-forst"],
)
def test_tables_of_jobs(corpus: Path, far: Any, case: str) -> None:
    newest = max((corpus / case / "snapshot").rglob("_metadata"))
    assert assert_same(str(newest.parent), far, [*WAYS]) > 90


@pytest.mark.full
@pytest.mark.parametrize("case", ["sql_join_types", "sql_dedup_topn", "sql_over", "sql_window_tumble"])
def test_tables_of_sql_jobs(sql_corpus: Path, far: Any, case: str) -> None:
    (path,) = {str(p.parent) for p in (sql_corpus / case).rglob("_metadata")}
    assert assert_same(path, far, [*WAYS]) > 1


@data_sources
def test_what_is_small_is_said_by_the_caller_or_the_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = statetool.load(ZOO, spark=spark)["timers"]
    size = sum(split.size_bytes for split in operator.scan().splits)
    assert is_local(operator.keyed_state())
    for limit, local in ((size, True), (size - 1, False)):
        assert is_local(statetool.load(ZOO, spark=spark, driver_read_limit=limit)["timers"].keyed_state()) == local
        spark.conf.set(frames.LOCAL_BYTES, str(limit))
        assert is_local(operator.keyed_state()) == local
    spark.conf.set(frames.LOCAL_BYTES, "8m")
    with pytest.raises(OptionError, match=r"spark.statetool.localBytes='8m' is not a number of bytes"):
        operator.keyed_state()
    spark.conf.unset(frames.LOCAL_BYTES)
    # Compressed data may be large.
    monkeypatch.setattr(frames, "_MAX_RELATION_BYTES", 100)
    assert not is_local(operator.keyed_state())


@data_sources
@pytest.mark.parametrize("operator", ["by-short", "by-tuple", "orders"])
def test_a_table_without_rows_needs_no_job(spark: Any, operator: str) -> None:
    empty = statetool.load(ZOO, spark=spark)[operator].timers()
    assert is_local(empty)
    assert empty.collect() == []


@data_sources
def test_filters_and_columns_of_small_tables_need_no_worker(spark: Any) -> None:
    frame = statetool.load(ZOO, spark=spark)["timers"].keyed_state()
    selected = frame.filter("key = 'timer-3' OR key = 'timer-5'").select("key")
    assert is_local(selected)
    assert sorted(r.key for r in selected.collect()) == ["timer-3", "timer-5"]


def test_registering_reads_nothing(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> None:
        raise AssertionError("a table was read")

    monkeypatch.setattr(frames, "_read_on_driver", read)
    savepoint = statetool.load(ZOO, spark=spark)
    names = savepoint.register("lazy")
    assert len(names) == len(set(names)) == 56
    monkeypatch.undo()
    assert spark.sql("SELECT * FROM lazy_timers_keyed_state LIMIT 2").count() == 2
    assert spark.table("lazy_timers_timers").count() == savepoint["timers"].to_arrow("timers").num_rows


def test_each_core_gets_something_to_read_unless_the_caller_says_how_much(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_LEAST_SPLIT_BYTES", 100)
    operator = statetool.load(ZOO, spark=spark, driver_read_limit=0)["collections-by-string"]
    usual = operator.scan("keyed_state", key_group=True)
    request = ScanRequest.of(key_group=True)
    cut = frames.plan_for_tasks(spark, operator.plan, request)
    assert len(cut.splits) > len(usual.splits)
    shown = operator.frame(request)
    assert shown.rdd.getNumPartitions() == len(cut.splits)
    assert rows_of(shown) == pa.Table.from_batches(usual.batches()).to_pylist()
    as_told = ScanRequest.of(key_group=True, split_bytes=1 << 20)
    assert frames.plan_for_tasks(spark, operator.plan, as_told).splits == operator.plan(as_told).splits


def test_a_task_leaves_the_collector_of_cycles_little_to_do() -> None:
    assert not gc.get_freeze_count()
    stages = frames.scan_stages(TableScan(schema=pa.schema([]), splits=()), None).stages
    assert list(stages[0].function(iter(()))) == []
    assert gc.get_freeze_count() > 10_000
