"""A standalone cluster of one Flink release, with its REST server, and the jobs that run in it."""
