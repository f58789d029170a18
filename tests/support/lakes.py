"""What a session needs for tables of lakes, whose jars are not on PyPI (``--delta``, ``--iceberg``)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_ICEBERG: Final = "org.apache.iceberg.spark"
#: By option: extensions and catalogs, as the lakes' own pages say.
_CONFIGURATION: Final = {
    "--delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # of a log of a few lines; 50 tasks are the default
    },
    "--iceberg": {
        "spark.sql.extensions": f"{_ICEBERG}.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.iceberg": f"{_ICEBERG}.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
    },
}


def submit_options(jar_folders: dict[str, Path], folder: Path) -> str:
    """Return what spark-submit is told: ``jar_folders`` are by option, ``folder`` is where tables are kept."""
    if not jar_folders:
        return ""
    jars = [str(jar) for place in jar_folders.values() for jar in sorted(place.glob("*.jar"))]
    settings = {"spark.sql.warehouse.dir": str(folder), "spark.sql.catalog.iceberg.warehouse": str(folder / "iceberg")}
    for option in jar_folders:
        for name, value in _CONFIGURATION[option].items():
            settings[name] = f"{settings[name]},{value}" if name in settings else value
    return " ".join([f"--jars {','.join(jars)}", *(f"--conf {name}={value}" for name, value in settings.items())])
