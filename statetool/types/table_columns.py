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
    return distinct_names(states, {*_TABLE_COLUMNS, *own})


def distinct_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return names, with underscores appended to those that differ at most in case from others or from ``taken``, which is in lower case.

    Examples
    --------
    >>> distinct_names(["A", "a", "b"])
    {'A': 'A', 'a': 'a_', 'b': 'b'}
    """
    names, taken = list(names), {*taken}
    distinct: dict[str, str] = {}
    for name in names:
        if name.lower() not in taken:
            taken.add(name.lower())
            distinct[name] = name
    for name in names:
        if name not in distinct:
            other = name + "_"
            while other.lower() in taken:
                other += "_"
            taken.add(other.lower())
            distinct[name] = other
    return {name: distinct[name] for name in names}
