"""Savepoints of SQL jobs in the corpus, by case."""

from __future__ import annotations

SQL = [
    "sql_changelog_normalize", "sql_dedup_topn", "sql_group_agg_hashmap", "sql_group_agg_rocksdb", "sql_group_agg_ttl_retract",
    "sql_group_window_legacy", "sql_interval_join", "sql_join_types", "sql_join_types_hashmap", "sql_join_unique_keys", "sql_over",
    "sql_window_tumble",
]  # fmt: skip
