"""A Spark job without Python workers that copies Parquet files. ``cluster_bench`` submits it next to exports of the same rows."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    source, target = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    spark.read.parquet(source).write.parquet(target)
    print(f"{spark.read.parquet(target).count()} rows in {target}")
