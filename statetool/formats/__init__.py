"""Byte formats of Flink snapshots: metadata, keyed and operator streams."""
