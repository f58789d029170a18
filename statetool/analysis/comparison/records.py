"""Results of a comparison: rows of tables, and the schema of the differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import pyarrow as pa

from statetool.errors import UnsupportedError
from statetool.types.operators import OperatorRecord, operator_name

#: One row per difference, with values as text (nested ones as JSON), so that all states fit one table.
DIFFERENCES: Final = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("operator_name", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("key_group", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("namespace", pa.string()),
        pa.field("map_key", pa.string()),
        pa.field("list_index", pa.int64()),
        pa.field("change", pa.string(), nullable=False),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
    ]
)


class NotComparedError(UnsupportedError):
    """Some values that differ as bytes cannot be compared, as one snapshot alone does not describe them. All others were compared."""

    __str__ = UnsupportedError.__str__

    @classmethod
    def of(cls, state: str, reason: str) -> NotComparedError:
        """Return the error for values of a state. Its text is the same in all tasks."""
        why = reason or "a value cannot be decoded on one side"
        error = cls(f"values that differ in their bytes: {why}", hint="declare the class on both sides")
        error.at(state=state)
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureDifference:
    """A difference in the description of an operator or a state.

    ``severity`` is ``difference`` for states, their kinds and types. It is ``note`` for differences that do not affect values (parallelism,
    max parallelism, versions of serializers), and for state that is not compared key by key (raw state, in-flight data, coordinators).
    """

    severity: Literal["difference", "note"]
    operator: str
    operator_name: str = field(init=False)
    state: str | None
    what: str
    before: str | None
    after: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator_name", operator_name(self.operator))


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceCounts(OperatorRecord):
    """The numbers of differences of one state, and of its compared entries (``entries_before`` and ``entries_after``)."""

    state: str
    entries_before: int
    entries_after: int
    added: int
    removed: int
    changed: int
