"""Positions given by a user as a mapping or as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from statetool.errors import OptionError


def positions_in(table: Any) -> Mapping[str, int | str]:
    """Return positions by split from a mapping, which is returned unchanged, an Arrow table or a DataFrame; errors as for :func:`positions_of`."""
    if isinstance(table, Mapping):
        return table
    return positions_of(table.to_pylist() if hasattr(table, "to_pylist") else [row.asDict() for row in table.collect()])


def positions_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return positions by split from rows with ``topic``, ``partition``, ``offset``, or with ``split``, ``position``.

    Raises
    ------
    OptionError
        The columns are others, a value is missing, or a split occurs twice.
    """
    positions: dict[str, str] = {}
    for row in rows:
        if {"topic", "partition", "offset"} <= row.keys():
            name, position = f"{row['topic']}:{row['partition']}", row["offset"]
        elif {"split", "position"} <= row.keys():
            name, position = str(row["split"]), row["position"]
        else:
            raise OptionError(
                f"a table with the columns {', '.join(map(str, row))}",
                hint="topic, partition, offset; or split, position",
            )
        if position in (None, ""):
            raise OptionError(f"{name!r} has no position")
        if name in positions:
            raise OptionError(f"{name!r} is given twice")
        positions[name] = str(position)
    return positions
