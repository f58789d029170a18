"""Serializers of flink-scala-api (``org.apache.flinkx``), Flink's Scala API for Scala 2.13 and 3."""
