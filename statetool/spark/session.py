"""Spark sessions: finding one, and making the data sources known to it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any, Final

from statetool.errors import MissingDependencyError

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_REGISTERED: Final = "spark.statetool.registered"


def check_java() -> None:
    """Raise unless a JVM can be started.

    Raises
    ------
    MissingDependencyError
        Names what to install.
    """
    home = os.environ.get("JAVA_HOME")
    if (home and os.path.exists(os.path.join(home, "bin", "java"))) or shutil.which("java"):
        return
    raise MissingDependencyError(
        "Spark needs Java and none was found",
        hint="install Java 17 or later (e.g. apt install openjdk-17-jre-headless) or set JAVA_HOME; "
        "statetool info, ls, schema, head and to_arrow() work without it",
    )


def active_session() -> Any:
    """Return the active Spark session.

    Raises
    ------
    MissingDependencyError
        There is none; says how to make one.
    """
    spark_session = _spark_session()
    spark = spark_session.getActiveSession()
    if spark is None:
        raise MissingDependencyError(
            "no Spark session is active",
            hint="pass one to statetool.load(path, spark=spark), or read with op.to_arrow(...), which needs none",
        )
    return spark


def local_session(*, cores: str = "*", name: str = "statetool") -> Any:
    """Return the active session, or a new one on this machine."""
    check_java()
    # Workers on this machine must run the same Python, with the same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = _spark_session().builder.appName(name)
    if "SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ:
        builder = builder.master(f"local[{cores}]")
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def _spark_session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as e:
        raise MissingDependencyError("pyspark is not installed", hint="pip install 'pyspark>=3.5,<5'") from e
    return SparkSession


def has_data_sources() -> bool:
    """Tell whether this PySpark has Python data sources (4.0 and later)."""
    try:
        import pyspark.sql.datasource  # noqa: F401
    except ImportError:
        return False
    return True


def register(spark: Any) -> None:
    """Register ``flink-state`` and ``flink-state-metadata``; filters on keys are pushed down where Spark can.

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
    from statetool.spark.sources import FlinkStateMetadataSource, FlinkStateSource

    if spark.conf.get(_REGISTERED, None) == "true":
        return
    spark.dataSource.register(FlinkStateSource)
    spark.dataSource.register(FlinkStateMetadataSource)
    spark.conf.set(_PUSHDOWN, "true")
    spark.conf.set(_REGISTERED, "true")
