"""The data source ``flink-state``, which Spark 4 finds by the name of this module.

Spark looks for ``DefaultSource`` in modules whose names start with ``pyspark_``. Where statetool is installed, Spark SQL, the Thrift server and
other clients can use ``flink-state`` without running Python code first.
"""

from statetool.spark.source.sources import PlainFlinkStateSource as DefaultSource

__all__ = ["DefaultSource"]
