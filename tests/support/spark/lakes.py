"""Session options for tables of Delta or Iceberg, whose jars Maven fetches (``--lakes``): no release of PySpark has both with streams."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyspark

from tools.maven import maven_jars

_ICEBERG: Final = "org.apache.iceberg.spark"
#: The set of jars by release of PySpark: the newest that each supports.
_JARS: Final = {"4.1": "iceberg", "4.2": "delta"}
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
    jar_set = _JARS[".".join(pyspark.__version__.split(".")[:2])]
    jars = ",".join(map(str, maven_jars(jar_set)))
    places = {"spark.sql.warehouse.dir": folder, "spark.sql.catalog.iceberg.warehouse": folder / "iceberg"}
    settings = _CONFIGURATION[jar_set] | places
    return " ".join([f"--jars {jars}", *(f"--conf {name}={value}" for name, value in settings.items())])
