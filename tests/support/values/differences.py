"""Differences of two snapshots as comparable rows."""

from __future__ import annotations

from typing import Any


def difference_rows(comparison: Any) -> list[dict[str, Any]]:
    """Return all differences, with the relevant columns, in a fixed order."""
    table = comparison.to_arrow().drop_columns(["operator", "operator_name", "key_group"])
    return sorted(({k: v for k, v in row.items() if v is not None} for row in table.to_pylist()), key=in_order)


def in_order(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))
