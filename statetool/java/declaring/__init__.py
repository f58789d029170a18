"""Declarations by users: Flink types by name, states, and classes that snapshots do not describe."""
