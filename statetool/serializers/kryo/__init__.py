"""Kryo in Flink's configuration: 2.24 in Flink 1.x, 5 in Flink 2.x; references on, no registration required."""
