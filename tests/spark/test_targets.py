from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from statetool.errors import MissingDependencyError
from statetool.spark.write.targets import spark_target


@pytest.fixture
def settings(spark: Any) -> Iterator[Any]:
    """Yield Hadoop's settings of the session, without any object store file system."""
    configuration = spark._jsc.hadoopConfiguration()
    yield configuration
    for name in ("fs.s3.impl", "fs.s3a.impl"):
        configuration.unset(name)


def test_a_place_that_spark_knows_stays_as_it_is(spark: Any) -> None:
    for target in ("rows.parquet", "/tmp/rows", "file:///tmp/rows"):
        assert spark_target(spark, target) == target


@pytest.mark.parametrize(
    ("target", "what"), [("s3://b/x", "hadoop-aws:3"), ("s3a://b/x", "hadoop-aws:3"), ("gcs://b/x", "gcs-connector")]
)
def test_what_brings_a_file_system_is_said(spark: Any, target: str, what: str) -> None:
    with pytest.raises(MissingDependencyError, match=f"no file system for {target.partition(':')[0]}://.*{what}"):
        spark_target(spark, target)


def test_a_place_is_named_as_spark_names_it(spark: Any, settings: Any) -> None:
    settings.set("fs.s3a.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    assert spark_target(spark, "s3://bucket/a/b") == "s3a://bucket/a/b"
    settings.set("fs.s3.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    assert spark_target(spark, "s3://bucket/a/b") == "s3://bucket/a/b"
