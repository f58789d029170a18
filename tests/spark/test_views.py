"""Views of tables: put directly into the session's catalog, or created with Spark's public API, with the same result."""

from __future__ import annotations

import re
from typing import Any

import pytest

import statetool
from statetool.errors import StatetoolError
from statetool.spark.stages import Stages
from tests.support.spark.data_sources import data_sources, rows_of
from tests.support.zoo import ZOO

#: Numbers that Spark assigns to columns, plans and expressions.
_NUMBERS = re.compile(r"#\d+L?|plan_id=\d+")


def plan_of(spark: Any, name: str) -> str:
    return _NUMBERS.sub("#", spark.table(name)._jdf.queryExecution().toString())


@pytest.fixture
def made_by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create views with Spark's public API."""
    monkeypatch.setenv("STATETOOL_PLAIN", "spark")


@data_sources
@pytest.mark.full
@pytest.mark.parametrize("local_bytes", [None, 0], ids=["small", "large"])
def test_both_ways_make_the_same_views(
    spark: Any, monkeypatch: pytest.MonkeyPatch, local_bytes: int | None, request: pytest.FixtureRequest
) -> None:
    savepoint = statetool.load(ZOO, spark=spark, driver_read_limit=local_bytes)
    with monkeypatch.context() as patch:
        patch.delattr(Stages, "frame")  # no fallback to it
        names = savepoint.register("same")
    tables = {t.name: (t.tableType, t.isTemporary) for t in spark.catalog.listTables()}
    views_by_name = {name: (plan_of(spark, name), spark.table(name).schema, tables[name]) for name in names}
    request.getfixturevalue("made_by_spark")
    assert savepoint.register("same") == names
    tables = {t.name: (t.tableType, t.isTemporary) for t in spark.catalog.listTables()}
    for name in names:
        assert (plan_of(spark, name), spark.table(name).schema, tables[name]) == views_by_name[name]


@data_sources
def test_views_join_themselves_and_forget_what_was_cached(spark: Any) -> None:
    savepoint = statetool.load(ZOO, spark=spark)
    savepoint.register("again")
    joined = "SELECT count(*) AS n FROM again_timers_timers a JOIN again_timers_timers b USING (key) JOIN again_timers_keyed_state"
    expected = spark.sql(joined).collect()
    spark.sql("CACHE TABLE again_timers_timers")
    savepoint.register("again")
    assert not spark.catalog.isCached("again_timers_timers")
    assert spark.sql(joined).collect() == expected
    rows = rows_of(spark.table("again_timers_keyed_state"))
    assert sorted(map(repr, rows)) == sorted(map(repr, savepoint["timers"].to_arrow().to_pylist()))


@data_sources
@pytest.mark.parametrize("way", [[], pytest.param(["made_by_spark"], marks=pytest.mark.full)], ids=["put", "made"])
def test_errors_of_views_are_our_own(spark: Any, corpus: Any, request: pytest.FixtureRequest, way: list[str]) -> None:
    for fixture in way:
        request.getfixturevalue(fixture)
    path = str(corpus / "v2_3_0-hashmap-canonical" / "snapshot")
    statetool.load(path, spark=spark).register("wrong")
    with pytest.raises(StatetoolError, match=r"\[file .*/_metadata, offset \d+, operator orders, state pet, key group"):
        spark.sql("SELECT pet FROM wrong_orders_keyed_state").collect()
