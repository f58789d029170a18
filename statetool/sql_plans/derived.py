"""Columns of a new accumulator that follow from those of the old one: AVG from SUM and COUNT, and the opposite.

The buffers of AVG are a sum, which starts at 0, and the number of values that are not null. The buffer of SUM is null until the first value.

Follows ``AvgAggFunction``, ``SumAggFunction``, ``SumWithRetractAggFunction`` and ``CountAggFunction``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statetool.sql_plans.expressions import is_identified

_BUFFER: Final = re.compile(r"(avg_sum|avg_count|sum_count|sum|count)(\(.*)", re.DOTALL)
_FILTER: Final = " filter "
#: Buffers with the same values, by buffer, in the order in which they are taken.
_COUNTS: Final = ("count", "avg_count", "sum_count")
_SAME: Final[Mapping[str, tuple[str, ...]]] = {name: tuple(n for n in _COUNTS if n != name) for name in _COUNTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedColumn:
    """Computation of a column from old ones.

    Attributes
    ----------
    source
        The old column that has the values.
    zero_for_null
        Whether null becomes 0.
    null_if_zero
        An old column: where it is 0, the result is null.
    """

    source: str
    zero_for_null: bool = False
    null_if_zero: str | None = None

    @property
    def text(self) -> str:
        """The computation, as readable text."""
        if self.null_if_zero is not None:
            return f"computed from {self.source}: null where {self.null_if_zero} is 0"
        return f"computed from {self.source}{', 0 for null' if self.zero_for_null else ''}"


def derived_columns(before: Sequence[str], after: Sequence[str]) -> dict[str, DerivedColumn]:
    """Return the columns of a new accumulator that only other columns of the old one tell, by name."""
    old = {name for name in before if is_identified(name)}
    found = {}
    for name in after:
        if name not in old and (derived := _derive(name, old)) is not None:
            found[name] = derived
    return found


def missing_source(name: str, before: Sequence[str]) -> str:
    """Return why no old column tells the values of a new one."""
    aggregate, _, condition = name.partition(_FILTER)
    others = [old for old in before if old.partition(_FILTER)[0] == aggregate]
    if others:
        chosen = f"that are {condition}" if condition else "that its filter left out"
        return f"the state has {others[0]}, which does not tell the rows {chosen}"
    buffer = _BUFFER.fullmatch(name)
    if buffer is not None and buffer[1].startswith("avg_"):
        return f"AVG follows from SUM and COUNT of the same column, and the state lacks {buffer[1].removeprefix('avg_')}{buffer[2]}"
    return "the state does not have the rows of the past"


def _derive(name: str, old: Collection[str]) -> DerivedColumn | None:
    buffer = _BUFFER.fullmatch(name)
    if buffer is None:
        return None
    kind, arguments = buffer[1], buffer[2]
    if kind == "avg_sum":
        source = f"sum{arguments}"
        return DerivedColumn(source=source, zero_for_null=True) if source in old else None
    if kind == "sum":
        source, count = f"avg_sum{arguments}", f"avg_count{arguments}"
        return DerivedColumn(source=source, null_if_zero=count) if {source, count} <= {*old} else None
    same = next((n for n in _SAME[kind] if f"{n}{arguments}" in old), None)
    return None if same is None else DerivedColumn(source=f"{same}{arguments}")
