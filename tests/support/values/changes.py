"""Rows of changes, folded into a state."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def which(row: Row, ids: tuple[str, ...]) -> str:
    return repr([row[name] for name in ids if name in row])


def fold(state: dict[str, Row], rows: list[Row], ids: tuple[str, ...]) -> None:
    """Apply changes. Inserted rows must be new, updated or deleted rows must exist, and no row may have two changes."""
    names = set()
    for row in rows:
        name, change = which(row, ids), row["change"]
        row = {n: v for n, v in row.items() if n != "change"}
        assert name not in names
        names.add(name)
        if change != "upsert":
            assert (name in state) == (change != "insert")
        if change == "delete":
            assert state.pop(name) == row
        else:
            assert change == "upsert" or state.get(name) != row
            state[name] = row
