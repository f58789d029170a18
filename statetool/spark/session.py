"""Spark sessions: lookup, creation, and registration of the data sources."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

from statetool.errors import MissingDependencyError, warn
from statetool.io.switches import is_plain
from statetool.spark import private
from statetool.spark.failures import raise_own_errors
from statetool.spark.java_classes import java_options, java_program
from statetool.spark.private import is_remote
from statetool.spark.workers import warn_of_workers

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_REGISTERED: Final = "spark.statetool.registered"
_REMOTE_PARALLELISM: Final = 4
_DEFAULT_HEAP_BYTES: Final = 1 << 30


def check_java() -> None:
    """Raise an error unless a JVM can be started.

    Raises
    ------
    MissingDependencyError
        Names the packages to install.
    """
    home = os.environ.get("JAVA_HOME")
    if java_program() is not None:
        return
    raise MissingDependencyError(
        f"Spark needs Java and there is none in JAVA_HOME={home}" if home else "Spark needs Java and none was found",
        hint="install Java 17 or later (e.g. apt install openjdk-17-jre-headless) or set JAVA_HOME; "
        "statetool info, ls, schema, head and to_arrow() work without it",
    )


def active_session() -> Any:
    """Return the active Spark session.

    Raises
    ------
    MissingDependencyError
        There is none; the hint says how to create one.
    """
    session_class = _session_class()
    spark = session_class.getActiveSession()
    if spark is None:
        raise MissingDependencyError(
            "no Spark session is active",
            hint="pass one to statetool.load(path, spark=spark), or read with op.to_arrow(...), which needs none",
        )
    return spark


def local_session(*, cores: str = "*", name: str = "statetool", java: str = "", keep_classes: bool = False) -> Any:
    """Return the active session, or a new one, which is local unless ``spark-submit`` or the environment say otherwise.

    Parameters
    ----------
    java
        JVM options, if a JVM is started.
    keep_classes
        Archive Spark's classes for the next session: :mod:`~statetool.spark.java_classes`.

    Raises
    ------
    MissingDependencyError
        pyspark is not installed, or there is no Java that it can start.
    """
    session_class = _session_class()
    active = session_class.getActiveSession()
    if active is not None:
        return active
    _quieten_query_logs()
    builder = session_class.builder.appName(name).config("spark.sql.session.timeZone", "UTC")
    if "SPARK_REMOTE" in os.environ:
        spark = builder.getOrCreate()
        if (archive := _archive()) is not None and archive.suffix == ".zip":  # Spark takes no .whl
            spark.addArtifacts(str(archive), pyfile=True)
        return spark
    # The arguments of spark-submit are only in the JVM that it started; setting a master here would override them.
    if not {"MASTER", "PYSPARK_GATEWAY_PORT"} & os.environ.keys():
        # Workers on this machine must run the same Python, with the same packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
        if os.environ["PYSPARK_PYTHON"] == sys.executable and not is_plain("spark"):
            builder = builder.config("spark.python.daemon.module", "statetool.spark.daemon")
    check_java()
    try:
        with java_options(java, keep_classes=keep_classes):
            return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except RuntimeError as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise MissingDependencyError(
            "the Java that was found could not start Spark", hint="Spark 4 needs Java 17 or later; see the lines above"
        ) from error


def _quieten_query_logs() -> None:
    """Keep PySpark 4 from logging each rejected expression as kilobytes of JSON: the error says it, and traces are part of it."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _session_class() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession


def default_parallelism(spark: Any) -> int:
    """Return the number of a session's cores, or the number configured in Spark; a guess in Spark Connect, which has no context."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except (AttributeError, NotImplementedError, RuntimeError):
        return _REMOTE_PARALLELISM


def heap_bytes(spark: Any) -> int:
    """Return the heap of the JVMs that run a session's tasks: executors, or on one machine the driver."""
    if not is_remote(spark) and private.is_local_master(spark.sparkContext.master):
        if (heap := private.jvm_heap_bytes(spark)) is not None:
            return heap
        setting = "spark.driver.memory"
    else:
        setting = "spark.executor.memory"
    size = re.fullmatch(r"(\d+)([kmgt]?)b?", spark.conf.get(setting, "1g").strip().lower())
    if size is None:
        return _DEFAULT_HEAP_BYTES
    return int(size[1]) << {"k": 10, "": 20, "m": 20, "g": 30, "t": 40}[size[2]]


def has_data_sources() -> bool:
    """Return True if this PySpark has Python data sources (4.0 and later)."""
    try:
        import pyspark.sql.datasource  # noqa: F401
    except ImportError:
        return False
    return True


def prepare(spark: Any, *, sources: bool) -> None:
    """Prepare a session for snapshots: raise original errors from tasks, and warn if its workers use another Python.

    Parameters
    ----------
    sources
        Also register the data sources, if PySpark has them; a Spark Connect server takes about a second for that.
    """
    warn_of_workers(spark)
    raise_own_errors(spark)
    if sources and has_data_sources() and spark.conf.get(_REGISTERED, None) != "true":
        register(spark)


def register(spark: Any) -> None:
    """Register ``flink-state`` and ``flink-state-metadata``; filters on keys are pushed down if Spark supports it.

    With Spark Connect, call this after ``spark.addArtifacts("statetool.zip", pyfile=True)``.

    Warns if the session does not push filters down to Python data sources: queries are still correct, but read everything.

    Raises
    ------
    MissingDependencyError
        PySpark before 4.0.
    """
    if not has_data_sources():
        raise MissingDependencyError(
            "this PySpark has no Python data sources",
            hint="use PySpark 4, or the methods of statetool.load(path, spark=spark), which work on 3.5 as well",
        )
    from statetool.spark.source.sources import (
        CatalogTableSource,
        FlinkStateMetadataSource,
        FlinkStateSource,
        PlainFlinkStateSource,
    )

    raise_own_errors(spark)
    # A Spark Connect server keeps sources with the artifacts that it had then.
    if spark.conf.get(_REGISTERED, None) == "true" and not is_remote(spark):
        return
    _share_package(spark)
    put = private.source_writer(spark)
    for source in (
        FlinkStateSource if _let_filters_through(spark) else PlainFlinkStateSource,
        FlinkStateMetadataSource,
        CatalogTableSource,
    ):
        if put is None:
            _register(spark, source)
        else:
            put(source)
    spark.conf.set(_REGISTERED, "true")


def _share_package(spark: Any) -> None:
    """Let the processes that Spark starts beside the driver import a statetool that came with ``--py-files``: Spark gives that to tasks only."""
    archive = _archive()
    if not is_remote(spark) and archive is not None:
        variables = spark.sparkContext.environment
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(archive), variables.get("PYTHONPATH"))))


def _archive() -> Path | None:
    """Return the archive that statetool runs from."""
    archive = Path(__file__).parents[2]
    return archive if archive.is_file() else None


def _register(spark: Any, source: type) -> None:
    from pyspark.errors import PySparkException

    try:
        spark.dataSource.register(source)
    except PySparkException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        # Spark used the thread's active session, which was another one. Creating a DataFrame makes this session active.
        spark.createDataFrame([], "name STRING")
        try:
            spark.dataSource.register(source)
        except PySparkException as again:
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(again):
                raise
            # PySpark 4.0 keeps the source that it found by itself.


def _let_filters_through(spark: Any) -> bool:
    from pyspark.errors import PySparkException

    if spark.conf.get(_PUSHDOWN, "false") == "true":
        return True
    try:
        spark.conf.set(_PUSHDOWN, "true")
    except PySparkException as error:
        warn(
            f"{_PUSHDOWN} cannot be set here ({error}), so that filters on key read all key groups; "
            "set it when the session is made, or pass keys=[...] to the methods of an operator",
            stacklevel=3,
        )
        return False
    return True
