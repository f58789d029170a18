"""Session options for tables of Delta and Iceberg, whose jars Maven fetches (``--lakes``)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.maven import maven_jars

_ICEBERG: Final = "org.apache.iceberg.spark"
#: Extensions and catalogs by set of jars.
_CONFIGURATION: Final = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # for a log of a few lines; the default is 50 tasks
    },
    "iceberg": {
        "spark.sql.extensions": f"{_ICEBERG}.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.iceberg": f"{_ICEBERG}.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
    },
}


def submit_options(folder: Path) -> str:
    """Return the spark-submit options of a session that keeps its tables in ``folder``."""
    jars = [str(jar) for jar_set in _CONFIGURATION for jar in maven_jars(jar_set)]
    settings = {"spark.sql.warehouse.dir": str(folder), "spark.sql.catalog.iceberg.warehouse": str(folder / "iceberg")}
    for configuration in _CONFIGURATION.values():
        for name, value in configuration.items():
            settings[name] = f"{settings[name]},{value}" if name in settings else value
    return " ".join([f"--jars {','.join(jars)}", *(f"--conf {name}={value}" for name, value in settings.items())])
