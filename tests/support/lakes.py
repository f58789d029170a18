"""Session settings for lakehouse tables, whose jars are not on PyPI (``--delta``, ``--iceberg``)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ICEBERG: Final = "org.apache.iceberg.spark"
#: By option: extensions and catalogs, according to the formats' documentation.
_CONFIGURATION: Final = {
    "--delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # for a log of a few lines; the default is 50 tasks
    },
    "--iceberg": {
        "spark.sql.extensions": f"{_ICEBERG}.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.iceberg": f"{_ICEBERG}.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
    },
}


def submit_options(jar_folders: dict[str, Path], folder: Path) -> str:
    """Return the arguments for spark-submit; ``jar_folders`` are by option, ``folder`` is the location of tables."""
    if not jar_folders:
        return ""
    jars = [str(jar) for place in jar_folders.values() for jar in sorted(place.glob("*.jar"))]
    settings = {"spark.sql.warehouse.dir": str(folder), "spark.sql.catalog.iceberg.warehouse": str(folder / "iceberg")}
    for option in jar_folders:
        for name, value in _CONFIGURATION[option].items():
            settings[name] = f"{settings[name]},{value}" if name in settings else value
    return " ".join([f"--jars {','.join(jars)}", *(f"--conf {name}={value}" for name, value in settings.items())])
