"""Snapshots as databases of Spark's session catalog (PySpark 4).

Their tables are read by the data source ``flink-state-table`` (:mod:`statetool.spark.source.table_source`). No table has the snapshot's path or
location, so dropping a table does not affect the snapshot, and the source cannot write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statetool.errors import OptionError
from statetool.spark.schema import spark_schema
from statetool.spark.session import register
from statetool.spark.source.table_source import METADATA_KEY, TableSource

_COMMENT: Final = "statetool catalog of "


def make_database(spark: Any, name: str, path: str, sources: Mapping[str, TableSource]) -> None:
    """Create a database with one table per source; a database created earlier by a catalog is replaced.

    Raises
    ------
    OptionError
        A database of that name exists that was not created by a catalog.
    MissingDependencyError
        PySpark before 4.0.
    """
    register(spark)
    quoted = f"`{name}`"
    if spark.catalog.databaseExists(name):
        description = spark.catalog.getDatabase(name).description or ""
        if not description.startswith(_COMMENT):
            raise OptionError(
                f"the database {name!r} already exists, and no catalog created it",
                hint="pass prefix= or as_name= to choose another name",
            )
        spark.sql(f"DROP DATABASE {quoted} CASCADE")
    comment = (_COMMENT + path).replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"CREATE DATABASE {quoted} COMMENT '{comment}'")
    for table, source in sources.items():
        schema = _with_source(spark_schema(source.schema), source.as_text())
        spark.catalog.createTable(f"{quoted}.`{table}`", source="flink-state-table", schema=schema)


def _with_source(schema: Any, text: str) -> Any:
    from pyspark.sql.types import StructField, StructType

    first, *others = schema.fields
    return StructType(
        [StructField(first.name, first.dataType, first.nullable, {**first.metadata, METADATA_KEY: text}), *others]
    )
