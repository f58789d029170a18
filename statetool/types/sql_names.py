"""Names of tables in SQL, which need no quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from statetool.types.operators import OperatorLabel

#: Names of SQL operators before Flink 1.15 contain whole expressions: longer names than this stand for no tables.
_LONGEST_NAME: Final = 63


def name_in_sql(name: str) -> str:
    """Return a name that is valid in SQL without quotes: lower-case letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).lower()


def unique_names(wanted: list[str]) -> list[str]:
    """Return unique names: duplicates get the suffix ``_2``, ``_3``."""
    taken, names = set(wanted), list[str]()
    used: set[str] = set()
    for plain in wanted:
        name, n = plain, 1
        while name in used or (name != plain and name in taken):
            n += 1
            name = f"{plain}_{n}"
        used.add(name)
        names.append(name)
    return names


def operator_names_in_sql(labels: Iterable[OperatorLabel]) -> dict[OperatorLabel, str]:
    """Return the beginning of the names of each operator's tables: its uid, else its name if no other operator has it, else its id.

    Examples
    --------
    >>> aggregate = OperatorLabel("90bea66de1c231edf33913ecd54406c1", name="GroupAggregate[4]")
    >>> orders = OperatorLabel("cbc357ccb763df2852fee8c4fc7d55f2", "orders-uid", "Source: orders[1]")
    >>> list(operator_names_in_sql([aggregate, orders]).values())
    ['groupaggregate_4', 'orders_uid']
    """
    known = list(labels)
    names = {o: name_in_sql(o) if o.uid else re.sub(r"\W+|_+", "_", name_in_sql(o.name)).strip("_") for o in known}
    times = Counter(names.values())
    return {o: n if o.uid or (times[n] == 1 and 0 < len(n) <= _LONGEST_NAME) else str(o) for o, n in names.items()}
