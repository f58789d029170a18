"""Names of the columns that states have in the table ``keyed_state``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_OWN: Final = ("key", "key_group", "_undecoded")


def state_columns(states: Iterable[str], own: Iterable[str] = ()) -> dict[str, str]:
    """Return the column of each state of an operator: its name.

    Where that is a column of the table's own (``own`` are those that ``keyed_state`` does not have), or differs at most in case from another state's column (which Spark does not tell
    apart), underscores follow it.

    Examples
    --------
    >>> state_columns(["count", "Count", "key", "key_"])
    {'count': 'count', 'Count': 'Count_', 'key': 'key__', 'key_': 'key_'}
    """
    names = list(states)
    taken = {*_OWN, *own}
    found: dict[str, str] = {}
    for name in names:
        if name.lower() not in taken:
            taken.add(name.lower())
            found[name] = name
    for name in names:
        if name not in found:
            column = name + "_"
            while column.lower() in taken:
                column += "_"
            taken.add(column.lower())
            found[name] = column
    return {name: found[name] for name in names}
