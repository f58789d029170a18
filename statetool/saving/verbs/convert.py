"""Plan the conversion of any readable snapshot to a self-contained savepoint, canonical or native; key groups and subtasks stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetool.formats.metadata.handles import streams_of
from statetool.saving.composition import KeyedForm, OperatorChange
from statetool.snapshot.inventory import Inventory
from statetool.types.operators import OperatorRecord

if TYPE_CHECKING:
    from statetool.saving.streams.conversion import StateConversion


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRow(OperatorRecord):
    """One operator. ``keyed_state`` is ``rewritten`` (to another format or state API, or as new databases), ``copied`` or ``none``."""

    operator_id: str
    keyed_state: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ConvertPlan:
    """All operators, and the changes of the rewritten ones."""

    operators: tuple[ConvertRow, ...]
    changes: Mapping[str, OperatorChange]


def plan_convert(
    inventory: Inventory,
    conversions: Mapping[str, Mapping[str, StateConversion]] | None = None,
    form: KeyedForm = "canonical",
) -> ConvertPlan:
    """Plan a conversion without reading entries.

    Parameters
    ----------
    conversions
        Conversions of keyed states, by operator id and state.
    form
        The form of keyed state. All databases are written again.
    """
    rows, changes = [], {}
    for operator in inventory.operators.values():
        state = operator.state
        handles = [s.managed_keyed for s in state.subtasks if s.managed_keyed is not None]
        if form == "canonical":
            differs = not all(stored.canonical for stored in operator.keyed.managed)
        else:
            differs = bool(operator.keyed.managed)
        converted = (conversions or {}).get(state.operator_id, {})
        if differs or converted:
            changes[state.operator_id] = OperatorChange(form=form, conversions=converted)
        elif operator.elements.are_unflushed:
            changes[state.operator_id] = OperatorChange()
        rows.append(
            ConvertRow(
                operator=operator.label,
                operator_id=state.operator_id,
                keyed_state="rewritten" if differs or converted else "copied" if handles else "none",
                size_bytes=sum(p.size_bytes for h in handles for p in streams_of(h)),
            )
        )
    return ConvertPlan(tuple(rows), changes)
