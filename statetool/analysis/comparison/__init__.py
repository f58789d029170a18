"""Differences between two snapshots, key by key, for any backend, format, version and parallelism."""
