"""What tests share: the unpacked corpora and one Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpora import HERE, shared, unpack


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what only the start of a run can add."""
    parser.addoption(
        "--flink-versions", help="releases of Flink for tests/flink, e.g. 2.3.0,1.17.2 (default: newest 2.x and 1.20)"
    )
    parser.addoption("--pyflink", help="Python that has apache-flink, for tests/flink/pyflink")


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of PyFlink jobs (``tests/flink/pyflink/job.py``), one folder a case."""
    return unpack(HERE / "corpus" / "pyflink.tar.xz", tmp_path_factory.mktemp("pyflink"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints and checkpoints of DataStream jobs, one folder a case."""
    return unpack(HERE / "corpus" / "public-datastream.tar.xz", tmp_path_factory.mktemp("corpus")) / "public"


@pytest.fixture(scope="session")
def sql_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of SQL jobs and of sources, one folder a case."""
    return unpack(HERE / "corpus" / "public-sql-sources.tar.xz", tmp_path_factory.mktemp("sql")) / "public"


@pytest.fixture(scope="session")
def migration_savepoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Savepoints of Flink's own migration tests."""
    return unpack(shared("flink-migration-savepoints.tar.xz"), tmp_path_factory.mktemp("migration")) / "savepoints"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local session for all tests."""
    from statetool.spark.session import local_session

    # Short queries: the JVM's second compiler and its collector threads would take the cores of the tests.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f'--driver-java-options "{quick}" pyspark-shell')
    session = local_session(cores="2", name="statetool tests")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test declares is not known to the next."""
    from statetool.plan import declarations

    monkeypatch.setattr(declarations, "_declared", {})
