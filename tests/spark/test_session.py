from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import statetool
from statetool.errors import MissingDependencyError, OptionError
from statetool.spark import session as sessions
from statetool.spark.schema import spark_schema
from statetool.spark.write.file_export import is_own_target
from statetool.spark.write.targets import spark_target
from statetool.tables.request import ScanRequest
from statetool.types.options import ShowingOptions
from tests.support.spark.data_sources import data_sources, rows_of
from tests.support.zoo import ZOO


def test_no_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingDependencyError, match=r"needs Java.*openjdk"):
        sessions.check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=f"JAVA_HOME={tmp_path}"):
        sessions.check_java()


def test_no_pyspark_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import statetool\n"
        "sp = statetool.load(sys.argv[1])\n"
        "print(sp['timers'].to_arrow().num_rows, sp.states().num_rows > 0)\n"
        "try: sp['timers'].keyed_state()\n"
        "except statetool.StatetoolError as e: print(type(e).__name__, e)"
    )
    run = subprocess.run([sys.executable, "-c", code, ZOO], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "14 True",
        "MissingDependencyError this needs PySpark. pip install 'statetool[spark]'",
    ]


def test_java_that_cannot_start_spark_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho UnsupportedClassVersionError >&2\nexit 1\n")
    java.chmod(0o755)
    code = "from statetool.spark.session import local_session; local_session()"
    environment = {k: v for k, v in os.environ.items() if k != "PYSPARK_SUBMIT_ARGS"} | {"JAVA_HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "MissingDependencyError: the Java that was found could not start Spark. Spark 4 needs Java 17" in run.stderr


def test_metadata_is_arrow_without_a_session_and_a_frame_with_one(spark: Any) -> None:
    tables = statetool.load(ZOO)
    frames = statetool.load(ZOO, spark=spark)
    for name in ("files", "states", "key_groups"):
        table = getattr(tables, name)()
        assert isinstance(table, pa.Table)
        assert rows_of(getattr(frames, name)()) == table.to_pylist()


@data_sources
def test_load_makes_the_data_sources_known_to_every_session(spark: Any) -> None:
    for session in (spark, spark.newSession(), spark.newSession()):
        statetool.load(ZOO, spark=session)
        frame = session.read.format("flink-state").option("operatorUid", "timers").load(ZOO)
        assert [r["key"] for r in frame.filter("key = 'timer-3'").collect()] == ["timer-3"]
    assert spark.read.format("flink-state-metadata").load(ZOO).columns[0] == "operator"


@data_sources
def test_load_starts_no_search_for_sources_of_other_packages(spark: Any) -> None:
    session = spark.newSession()
    statetool.load(ZOO, spark=session)
    manager = session._jsparkSession.sessionState().dataSourceManager()
    searched = manager.getClass().getDeclaredField("bitmap$0")  # whether its lazy value is initialized
    searched.setAccessible(True)
    assert searched.get(manager) is False
    assert session.read.format("flink-state").option("operatorUid", "timers").load(ZOO).count() == 14
    with pytest.raises(Exception, match="of-nobody"):
        session.read.format("of-nobody").load()
    assert searched.get(manager) is True


def test_without_private_parts_tables_are_read(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATETOOL_PLAIN", "spark")
    savepoint = statetool.load(ZOO, spark=spark, local_bytes=0)
    assert savepoint["timers"].keyed_state().count() == 14
    assert sessions.heap_bytes(spark) == 1 << 30
    assert spark_target(spark, "s3://bucket/savepoint") == "s3a://bucket/savepoint"
    assert not is_own_target(spark, "rows")


@data_sources
def test_sources_are_registered_as_spark_does_it_where_its_own_map_is_out_of_reach(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATETOOL_PLAIN", "spark")
    session = spark.newSession()
    statetool.load(ZOO, spark=session)
    assert session.read.format("flink-state").option("operatorUid", "timers").load(ZOO).count() == 14


class _Locked:
    """A session whose filter pushdown cannot be enabled."""

    def __init__(self) -> None:
        self.conf = self.dataSource = self
        self.settings: dict[str, str] = {}
        self.sources: list[Any] = []

    def get(self, name: str, default: str) -> str:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        from pyspark.errors import AnalysisException

        if "filterPushdown" in name:
            raise AnalysisException("not allowed")
        self.settings[name] = value

    def register(self, source: Any) -> None:
        self.sources.append(source)


@data_sources
def test_a_session_that_lets_no_filter_through_gets_a_source_that_reads_all(spark: Any) -> None:
    from statetool.spark.source.sources import CatalogTableSource, FlinkStateMetadataSource, PlainFlinkStateSource

    locked = _Locked()
    with pytest.warns(UserWarning, match="not allowed"):
        statetool.register(locked)
    statetool.register(locked)  # warns once
    assert locked.sources == [PlainFlinkStateSource, FlinkStateMetadataSource, CatalogTableSource]

    class Renamed(PlainFlinkStateSource):
        @classmethod
        def name(cls) -> str:
            return "flink-state-plain"

    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    session.dataSource.register(Renamed)
    frame = session.read.format("flink-state-plain").option("operatorUid", "timers").load(ZOO)
    assert [r["key"] for r in frame.filter("key = 'timer-3'").collect()] == ["timer-3"]


@data_sources
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operatorUid": "nobody"}, "no operator 'nobody'"),
        ({}, "neither operatorUid nor operatorId"),
        ({"operatorUid": "timers", "operatorId": "with-ttl"}, "not the same operator"),
        ({"operatorUid": "timers", "tabel": "timers"}, "no option 'tabel'. did you mean table"),
        ({"operatorUid": "timers", "table": "timer"}, "did you mean timers"),
        ({"operatorUid": "timers", "table": "registered", "readRegisteredTimers": "true"}, "different tables"),
        ({"operatorUid": "timers", "split_bytes": "much"}, "not a number"),
        ({"operatorUid": "timers", "keyGroup": "maybe"}, "neither true nor false"),
        ({"operatorUid": "timers", "rebase": "a=b"}, "rebase is not JSON"),
        ({"operatorUid": "timers", "nanoz": "error"}, "no option 'nanoz'. did you mean nanos"),
        ({"operatorUid": "timers", "ttl_ms": "5"}, "only ttl='hide_expired' uses"),
        ({"operatorUid": "timers", "nanos": "round"}, "nanos='round' is not one of"),
    ],
)
def test_options_of_the_source_are_checked(options: dict[str, str], message: str) -> None:
    from statetool.spark.source.sources import FlinkStateSource

    with pytest.raises((OptionError, statetool.StatetoolError)) as caught:
        FlinkStateSource({"path": ZOO, **options}).schema()
    assert message in str(caught.value)


@data_sources
def test_the_table_of_options_names_all_of_them() -> None:
    from statetool.spark.source import options as source_options
    from statetool.spark.source import sources

    first_columns = set(re.findall(r"^``.*?(?:   |$)", sources.__doc__ or "", re.MULTILINE))
    names = {name for row in first_columns for name in re.findall(r"``(\w+)``", row)}
    aliases = {"stateVarName"}  # of table, documented there
    assert names | aliases == set(source_options.STATE_OPTIONS)


@data_sources
def test_options_of_the_source_come_from_text_in_any_case() -> None:
    from statetool.spark.source.options import SourceOptions

    request = ScanRequest.of("registered", keys=["ä", b"\xff"], columns={"key": ["a b"]}, key_group=True)
    texts = {"path": ZOO, "operatorUid": "timers", "kryo": "5", "uids": "timers,with-ttl", **request.to_options()}
    options = SourceOptions({n.upper(): t for n, t in texts.items()})
    assert options.request == request
    assert options.operator.uid == "timers"
    assert options.operator.types.kryo == 5
    assert pickle.loads(pickle.dumps(options)).request == request
    assert "operator" not in pickle.loads(pickle.dumps(options)).__dict__


@data_sources
def test_options_by_the_names_of_sparks_own_state_source() -> None:
    from statetool.spark.source.sources import FlinkStateSource

    def columns(**options: str) -> list[str]:
        names: list[str] = FlinkStateSource({"path": ZOO, "operatorId": "timers", **options}).schema().fieldNames()
        return names

    assert columns() == columns(table="keyed_state") == ["key", "registered"]
    assert columns(stateVarName="registered") == ["key", "value"]
    assert columns(readRegisteredTimers="true") == columns(table="timers")
    assert columns(keygroup="true") == columns(KEY_GROUP="True") == ["key", "registered", "key_group"]


@data_sources
def test_a_table_of_the_catalog_is_refused_and_a_view_is_not(spark: Any) -> None:
    statetool.register(spark)
    options = f"USING `flink-state` OPTIONS (path '{ZOO}', operatorUid 'timers')"
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE refused {options}")
    spark.sql(f"CREATE TEMPORARY VIEW from_source {options}")
    assert spark.table("from_source").columns == ["key", "registered"]


@pytest.mark.full
def test_schemas_of_all_tables_are_those_that_spark_expects_of_the_batches(corpus: Path) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    # Before PySpark 4 there is no such argument, and the zone is UTC.
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    compared = 0
    plain, changed = ShowingOptions(), ShowingOptions(nanos="companion", ttl="raw")
    for case in ("v2_3_0-rocksdb-canonical", "v1_13_6-hashmap-canonical"):
        for operator in statetool.load(str(corpus / case / "snapshot")).operators.values():
            for table in operator.tables:
                for options in plain, changed:
                    schema = operator.scan(table, **options).schema
                    assert to_arrow_schema(spark_schema(schema), **zone).equals(schema)
                    compared += 1
    assert compared > 200
