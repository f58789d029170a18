"""The data source ``flink-state-metadata``, which Spark 4 finds by the name of this module (see ``pyspark_flink_state``)."""

from statetool.spark.source.sources import FlinkStateMetadataSource as DefaultSource

__all__ = ["DefaultSource"]
