"""Expressions and conditions of ``transform`` are those of single keys, and mean the same in every session."""

from __future__ import annotations

import threading
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import OptionError
from statetool.spark.write.row_expressions import in_utc
from tests.support.zoo import ZOO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "spark.sql.session.timeZone"
REFUSED = {
    "subquery": ("(SELECT max(id) FROM range(5))", "registered IN (SELECT id FROM range(5))", "EXISTS (SELECT 1)"),
    "aggregate": ("max(registered)", "count(*)", "sum(registered) OVER ()", "row_number() OVER (ORDER BY key)"),
    "generator": ("explode(array(1, 2))", "stack(2, 1, 2)", "window(TIMESTAMP'2026-01-01', '1 day')"),
    "names all": ("hash(*)", "to_json(struct(*))", "hash(struct(key, *))"),
    "changes": (
        "rand()", "uuid()", "monotonically_increasing_id()", "spark_partition_id()", "shuffle(array(1))", "now()", "current_timestamp",
        "current_date()", "curdate()", "unix_timestamp()", "localtimestamp()", "CAST(' today ' AS DATE)", "to_date('now')",
        "current_timezone()", "current_user()", "current_database()", "current_catalog()",
        "reflect('java.util.UUID', 'randomUUID')",
    ),
    "cannot evaluate": ("registered) + (1", "1) END FROM (x", "registered; SELECT 1", "__statetool_last_access_registered", "keys.key"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_of_one_key_is_refused(spark: SparkSession, words: str) -> None:
    operator = statetool.load(ZOO, spark)["timers"]
    for sql in REFUSED[words]:
        with pytest.raises(OptionError, match=words):
            operator.transform({"registered": sql})
        with pytest.raises(OptionError, match=words):
            operator.transform(
                {"registered": "registered"}, where=f"({sql}) IS NOT NULL" if words != "cannot evaluate" else sql
            )


def test_fields_have_the_same_rules(spark: SparkSession) -> None:
    operator = statetool.load(ZOO, spark)["collections-by-string"]
    for sql in ("(SELECT max(id) FROM range(5))", "0) + (1"):
        with pytest.raises(OptionError, match=r"subquery|PARSE_SYNTAX_ERROR"):
            operator.transform({"mean.f0": sql})


def test_internal_columns_are_not_seen(spark: SparkSession) -> None:
    operator = statetool.load(ZOO, spark)["with-ttl"]
    with pytest.raises(OptionError, match="UNRESOLVED_COLUMN"):
        operator.transform({"ttl-sum": "CAST(`__statetool_last_access_ttl-sum`.value AS BIGINT)"})


def test_times_are_utc_in_every_session(spark: SparkSession, tmp_path: Path) -> None:
    times = pa.array([1767225600_000_000 + i * 3_600_000_000 for i in range(48)], pa.timestamp("us", tz="UTC"))
    table = pa.table({"key": pa.array(range(48), pa.int64()), "ts": times, "n": pa.array([0] * 48, pa.int64())})
    types = {"ts": statetool.value("TIMESTAMP"), "n": statetool.value("BIGINT")}
    made = statetool.bootstrap_keyed_state(table, states=types)
    statetool.SavepointWriter.new().with_operator("op", made).write(str(tmp_path / "sp"), flink_version="2.3")
    change = {"n": "CAST(date_format(ts, 'HH') AS BIGINT) + year(TIMESTAMP'2026-01-01 00:00:00')"}
    where = "ts >= '2026-01-01 12:00:00' AND CAST(ts AS DATE) = DATE'2026-01-01' -- ends with its line"
    before = spark.conf.get(ZONE)
    answers: list[Any] = []
    try:
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            spark.conf.set(ZONE, zone)
            edits = statetool.load(str(tmp_path / "sp"), spark)["op"].transform(change, where=where)
            assert spark.conf.get(ZONE) == zone
            new = edits.write(str(tmp_path / zone.replace("/", "-")))
            rows = statetool.load(new.path)["op"].to_arrow().to_pylist()
            answers.append({r["key"]: r["n"] for r in rows if r["n"]})
    finally:
        spark.conf.set(ZONE, before)
    assert answers[0] == {hour: hour + 2026 for hour in range(12, 24)}
    assert answers[0] == answers[1] == answers[2]


def test_threads_leave_the_time_zone_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second thread waits for the first, instead of taking UTC for the session's time zone."""
    monkeypatch.setattr("statetool.spark.write.row_expressions.is_remote", lambda _: False)
    zones = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    session = types.SimpleNamespace(conf=types.SimpleNamespace(get=zones.__getitem__, set=zones.__setitem__))
    inside, leave = threading.Event(), threading.Event()
    seen: list[str] = []

    def first() -> None:
        with in_utc(session):
            inside.set()
            leave.wait(60)

    def second() -> None:
        inside.wait(60)
        threading.Timer(0.2, leave.set).start()
        with in_utc(session):
            time.sleep(0.5)  # the first thread would set its time zone again
            seen.extend(zones.values())

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["UTC"]
    assert [*zones.values()] == ["Asia/Tokyo"]
