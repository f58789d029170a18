"""Plan to leave out operators or single states; the remaining state keeps its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.saving.composition import OperatorChange
from statetool.snapshot.inventory import Inventory
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRow(OperatorRecord):
    """One dropped item: a whole operator, or one of its states."""

    operator_id: str
    state: str | None
    kind: str


@dataclass(frozen=True, slots=True)
class DropPlan:
    """The operators and states to leave out."""

    dropped: tuple[DropRow, ...]
    operators: frozenset[str]
    changes: Mapping[str, OperatorChange]


def plan_drop(inventory: Inventory, operators: Iterable[str], states: Mapping[str, Iterable[str]]) -> DropPlan:
    """Plan which operators and states to leave out.

    Parameters
    ----------
    operators
        By uid or operator id.
    states
        Names of states by uid or operator id.

    Raises
    ------
    UnknownNameError
        An operator or state does not exist; the message names similar ones.
    OptionError
        Nothing is left out, or a state belongs to an operator that is left out as a whole.
    """
    rows: list[DropRow] = []
    dropped: set[str] = set()
    for name in operators:
        operator = inventory.operator(name)
        if operator.state.operator_id not in dropped:
            dropped.add(operator.state.operator_id)
            rows.append(
                DropRow(operator=operator.label, operator_id=operator.state.operator_id, state=None, kind="operator")
            )
    changes: dict[str, OperatorChange] = {}
    for name, wanted in states.items():
        operator = inventory.operator(name)
        operator_id = operator.state.operator_id
        if operator_id in dropped or operator_id in changes:
            raise OptionError(f"operator {operator.label.display} is named twice")
        kinds = {n: m.kind for n, (_, m) in operator.keyed_states.items()}
        kinds |= {n: m.kind for n, m in operator.operator_states.items()}
        chosen = list(dict.fromkeys(wanted))
        for state in chosen:
            if state not in kinds:
                raise UnknownNameError(
                    f"operator {operator.label.display} has no state {state!r}", hint=suggest(state, kinds)
                )
            rows.append(DropRow(operator=operator.label, operator_id=operator_id, state=state, kind=kinds[state]))
        if chosen:
            changes[operator_id] = OperatorChange(dropped_states=frozenset(chosen))
    if not rows:
        raise OptionError("nothing to drop", hint="pass operators, or states of an operator")
    return DropPlan(tuple(rows), frozenset(dropped), changes)
