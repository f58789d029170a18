"""Plan to give states of an operator other names; everything else keeps its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.saving.composition import OperatorChange
from statetool.snapshot.inventory import Inventory
from statetool.types.operators import OperatorRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameRow(OperatorRecord):
    """One renamed state."""

    state: str
    new_name: str
    kind: str


@dataclass(frozen=True, slots=True)
class RenamePlan:
    """The renamed states of an operator."""

    renamed: tuple[RenameRow, ...]
    changes: Mapping[str, OperatorChange]


def plan_rename(inventory: Inventory, operator: str, names: Mapping[str, str]) -> RenamePlan:
    """Plan which states get another name.

    Parameters
    ----------
    operator
        By uid or operator id.
    names
        New names by old names. All apply at once, so states can swap their names.

    Raises
    ------
    UnknownNameError
        The operator or a state does not exist; the message names similar ones.
    OptionError
        Nothing is renamed, or two states would have one name.
    """
    found = inventory.operator(operator)
    kinds = {n: m.kind for n, (_, m) in found.keyed_states.items()} | {
        n: m.kind for n, m in found.operator_states.items()
    }
    if not names:
        raise OptionError("nothing to rename", hint="pass new names by old names")
    for old in names:
        if old not in kinds:
            raise UnknownNameError(f"operator {found.label.display} has no state {old!r}", hint=suggest(old, kinds))
    new_names = [names.get(name, name) for name in kinds]
    if twice := sorted({name for name in new_names if new_names.count(name) > 1}):
        raise OptionError(
            f"operator {found.label.display} would have two states {', '.join(map(repr, twice))}",
            hint="drop or rename the other state first",
        )
    rows = [RenameRow(operator=found.label, state=old, new_name=new, kind=kinds[old]) for old, new in names.items()]
    return RenamePlan(tuple(rows), {found.state.operator_id: OperatorChange(renames=dict(names))})
