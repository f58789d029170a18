"""Targets written by Spark, whose file systems use other schemes than fsspec's."""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import MissingDependencyError
from statetool.spark import private
from statetool.spark.private import is_remote

#: Schemes with another name in Spark, and the packages that provide them, by scheme; Hadoop's version is filled in.
_OTHER_NAMES: Final = {"s3": "s3a", "gcs": "gs"}
_BROUGHT_BY: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws:{}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
    "abfs": "org.apache.hadoop:hadoop-azure:{}",
    "abfss": "org.apache.hadoop:hadoop-azure:{}",
}


def spark_target(spark: Any, target: str) -> str:
    """Return a target by Spark's name: ``s3a://`` for ``s3://``, unless the session has ``s3://`` itself.

    Raises
    ------
    MissingDependencyError
        The session has no such file system; the hint names the package.
    """
    scheme, separator, rest = target.partition("://")
    if not separator or is_remote(spark):  # a Spark Connect client knows nothing about the server's file systems
        return target
    name = _OTHER_NAMES.get(scheme, scheme)
    for candidate in (scheme, name):
        found = private.has_file_system(spark, candidate)
        if found is None:  # cannot be looked up: Spark itself says so if it has none
            return f"{name}://{rest}"
        if found:
            return f"{candidate}://{rest}"
    hint = f"write to a local directory and copy that, or start Spark with the file system for {name}://"
    if name in _BROUGHT_BY:
        package = _BROUGHT_BY[name].format(private.hadoop_version(spark))
        hint += f": PYSPARK_SUBMIT_ARGS='--packages {package} pyspark-shell'"
    raise MissingDependencyError(f"Spark has no file system for {scheme}://", hint=hint)
