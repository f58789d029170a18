"""Labels of operators for tables, messages and errors, and names in SQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from statetool.errors import several

if TYPE_CHECKING:
    from typing_extensions import Self

#: Digits of an operator id that are shown, if they are unique in the snapshot.
ID_DIGITS: Final = 8
#: Names of SQL operators before Flink 1.15 contain whole expressions.
_LONGEST_NAME: Final = 80
#: Longer names are not parts of names of tables.
_LONGEST_IN_SQL: Final = 63


class OperatorLabel(str):
    """The uid of an operator, or its operator id if the uid is unknown, together with the operator's name.

    As text, a label is the uid or the id, which all functions and options accept. :attr:`display` is the form for people.

    Parameters
    ----------
    operator_id
        32 hex digits.
    uid, name
        Empty if unknown.
    digits
        Digits of the operator id that are unique in the snapshot.
    former
        The label in the snapshot, if the operator has the id of another job (:meth:`statetool.snapshot.inventory.Inventory.with_ids`).

    Examples
    --------
    >>> label = OperatorLabel("90bea66de1c231edf33913ecd54406c1", name="GroupAggregate[4]")
    >>> print(label, "is", label.display)
    90bea66de1c231edf33913ecd54406c1 is GroupAggregate[4] (90bea66d)
    >>> OperatorLabel("23eaad2b0c2c6b1a8a9c5f3b0c1f8e11", "4_group-aggregate", "GroupAggregate[4]").display
    'GroupAggregate[4] (4_group-aggregate)'
    >>> OperatorLabel("23eaad2b0c2c6b1a8a9c5f3b0c1f8e11", "sums", "Sums", former=label).display
    'Sums (sums; in A: GroupAggregate[4], 90bea66d)'
    """

    operator_id: str
    uid: str
    name: str
    short_id: str
    former: OperatorLabel | None

    def __new__(
        cls,
        operator_id: str,
        uid: str = "",
        name: str = "",
        digits: int = ID_DIGITS,
        former: OperatorLabel | None = None,
    ) -> Self:
        label = super().__new__(cls, uid or operator_id)
        label.operator_id, label.uid, label.name = operator_id, uid, name
        label.short_id = operator_id[:digits]
        label.former = former
        return label

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.operator_id, self.uid, self.name, len(self.short_id), self.former

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @property
    def display(self) -> str:
        """``Name (uid or id prefix)``. The uid or the id alone if there is no other name. The operator of A follows if it has another id."""
        before = self.former
        in_a = ""
        if before is not None:
            name = f"{before._short_name}, " if before.name and before.name != self.name else ""
            in_a = f"in A: {name}{before.uid or before.short_id}"
        if not self.name or self.name == self:
            return f"{self} ({in_a})" if in_a else str(self)
        return f"{self._short_name} ({'; '.join(filter(None, (self.uid or self.short_id, in_a)))})"

    @property
    def _short_name(self) -> str:
        return self.name if len(self.name) <= _LONGEST_NAME else f"{self.name[: _LONGEST_NAME - 1]}…"


def display_name(operator: str) -> str:
    """Return the form of an operator for people: :attr:`OperatorLabel.display`, or the text itself if it is not a label."""
    return operator.display if isinstance(operator, OperatorLabel) else operator


def describe_operators(operators: Sequence[str]) -> str:
    """Return the location of a finding about operators: ``operator NAME``, or ``2 operators (NAME, NAME)``."""
    names = [display_name(operator) for operator in operators]
    return f"operator {names[0]}" if len(names) == 1 else f"{several(len(names), 'operator')} ({', '.join(names)})"


def operator_name(operator: str) -> str:
    """Return the name of an operator, empty if it is unknown."""
    return operator.name if isinstance(operator, OperatorLabel) else ""


def operator_fields(label: OperatorLabel) -> dict[str, str]:
    """Return the fields by which records refer to an operator; ``operator`` is the label itself."""
    return {"operator": label, "operator_name": label.name, "operator_id": label.operator_id, "uid": label.uid}


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
    return {o: n if o.uid or (times[n] == 1 and 0 < len(n) <= _LONGEST_IN_SQL) else str(o) for o, n in names.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """A row about an operator: its uid or id, and its name, which follows from the label."""

    operator: str
    operator_name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator_name", operator_name(self.operator))
