"""Plan the conversion of any readable snapshot to a self-contained savepoint, canonical or native; key groups and subtasks stay."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetool.errors import UNREAD, warn
from statetool.formats.metadata.handles import streams_of
from statetool.formats.state_meta import KEY_VALUE_V2
from statetool.saving.composition import OperatorChange
from statetool.saving.forms import SnapshotForm
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.types.operators import OperatorRecord, describe_operators

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
    """All operators, and the changes of the rewritten ones.

    Attributes
    ----------
    asynchronous
        Operators with asynchronous state in a canonical savepoint, which no backend restores by default.
    """

    operators: tuple[ConvertRow, ...]
    changes: Mapping[str, OperatorChange]
    asynchronous: tuple[str, ...] = ()

    def warn(self) -> None:
        """Warn of ``asynchronous``; for functions that users call."""
        if self.asynchronous:
            verb = "has" if len(self.asynchronous) == 1 else "have"
            warn(
                f"{describe_operators(self.asynchronous)} {verb} asynchronous state, and the savepoint is canonical: RocksDB and the heap backend"
                " refuse such state, and ForSt refuses such savepoints by default. Add --format native --backend forst"
                " (format='native', backend='forst'), or --state-api v1 (state_api='v1') for the other backends",
                stacklevel=3,
            )


def plan_convert(
    inventory: Inventory,
    conversions: Mapping[str, Mapping[str, StateConversion]] | None = None,
    form: SnapshotForm = "canonical",
) -> ConvertPlan:
    """Plan a conversion without reading entries.

    Parameters
    ----------
    conversions
        Conversions of keyed states, by operator id and state.
    form
        The form of keyed state. All databases are written again, unless it stays the same.
    """
    rows, changes = [], {}
    asynchronous = []
    for operator in inventory.operators.values():
        state = operator.state
        handles = [s.managed_keyed for s in state.subtasks if s.managed_keyed is not None]
        if form == "canonical":
            differs = not all(stored.canonical for stored in operator.keyed.managed)
        elif form == "same":
            differs = False
        else:
            differs = bool(operator.keyed.managed)
        converted = (conversions or {}).get(state.operator_id, {})
        if differs or converted:
            changes[state.operator_id] = OperatorChange(form=None if form == "same" else form, conversions=converted)
        elif operator.elements.are_unflushed:
            changes[state.operator_id] = OperatorChange()
        if form == "canonical" and _is_asynchronous(operator, converted):
            asynchronous.append(operator.label)
        rows.append(
            ConvertRow(
                operator=operator.label,
                operator_id=state.operator_id,
                keyed_state="rewritten" if differs or converted else "copied" if handles else "none",
                size_bytes=sum(p.size_bytes for h in handles for p in streams_of(h)),
            )
        )
    return ConvertPlan(tuple(rows), changes, tuple(asynchronous))


def _is_asynchronous(operator: OperatorInventory, converted: Mapping[str, StateConversion]) -> bool:
    """Return True if an operator has asynchronous state after the conversions. State that cannot be read is copied, and not looked at."""
    with suppress(*UNREAD):
        states = {name: meta for name, (_, meta) in operator.keyed_states.items()}
        after = {name: converted[name].meta if name in converted else meta for name, meta in states.items()}
        return any(meta.backend_type == KEY_VALUE_V2 for meta in after.values())
    return False
