"""Groups of aggregations that become coarser: columns of keys, and what becomes of the accumulators of groups that become one."""

from __future__ import annotations

import re
from typing import Final, Literal

from statetool.serializers.sql.logical_types import SqlType
from statetool.sql_plans.aggregates import PlanAggregates, changed_key
from statetool.sql_plans.expressions import is_identified

#: Nodes whose operator keeps nothing but accumulators by the columns of GROUP BY.
_AGGREGATIONS: Final = frozenset({"group-aggregate", "global-group-aggregate"})
_KEY: Final = "key"
_BUFFER: Final = re.compile(r"(sum|avg_sum|avg_count|sum_count|count|min|max)\((distinct )?")
_NUMBERS: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"})
_ORDERED: Final = _NUMBERS | {"CHAR", "VARCHAR", "BOOLEAN", "DATE", "TIME"}
_TIMESTAMPS: Final = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"})
#: Digits of a second of timestamps that one number holds.
_MILLIS: Final = 3
_KEEP: Final = "keep the columns of GROUP BY, or drop the operator"


def coarser_columns(old: PlanAggregates | None, new: PlanAggregates | None) -> tuple[int, ...] | str | None:
    """Return the positions of a new key's columns in the old key, or why the key cannot change, ``None`` if it does not."""
    if old is None or new is None or not changed_key(old, new) or {old.kind, new.kind} - _AGGREGATIONS:
        return None
    before, after = old.columns.get(_KEY), new.columns.get(_KEY)
    if before is None or after is None:
        return None
    unknown = [name for name in (*before, *after) if not is_identified(name)]
    if unknown:
        return f"the plans do not tell which column {unknown[0]} is: {_KEEP}"
    if missing := [name for name in after if name not in before]:
        return f"the old groups have no {', '.join(missing)}, and nothing tells how a group is divided: {_KEEP}"
    return tuple(before.index(name) for name in after)


def column_rule(name: str, kind: SqlType) -> Literal["sum", "min", "max"] | None:
    """Return what a column of the accumulators of two groups becomes if the groups become one, ``None`` if they do not tell it."""
    buffer = _BUFFER.match(name)
    if buffer is None or buffer[2] is not None:
        return None
    if buffer[1] not in ("min", "max"):
        return "sum" if kind.root in _NUMBERS else None
    is_ordered = kind.root in _ORDERED or (kind.root in _TIMESTAMPS and kind.precision <= _MILLIS)
    if not is_ordered:
        return None
    return "min" if buffer[1] == "min" else "max"
