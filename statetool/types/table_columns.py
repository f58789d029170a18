"""Column names of states in the table ``keyed_state``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_TABLE_COLUMNS: Final = ("key", "key_group", "_undecoded")


def state_columns(states: Iterable[str], own: Iterable[str] = ()) -> dict[str, str]:
    """Return the column name of each state of an operator, by default the state's name.

    Underscores are appended to a name that is a column of the table itself (``own`` are those that ``keyed_state`` does not have), or that
    differs at most in case from another state's column, because Spark does not distinguish these.

    Examples
    --------
    >>> state_columns(["count", "Count", "key", "key_"])
    {'count': 'count', 'Count': 'Count_', 'key': 'key__', 'key_': 'key_'}
    """
    names = list(states)
    taken = {*_TABLE_COLUMNS, *own}
    columns: dict[str, str] = {}
    for name in names:
        if name.lower() not in taken:
            taken.add(name.lower())
            columns[name] = name
    for name in names:
        if name not in columns:
            column = name + "_"
            while column.lower() in taken:
                column += "_"
            taken.add(column.lower())
            columns[name] = column
    return {name: columns[name] for name in names}
