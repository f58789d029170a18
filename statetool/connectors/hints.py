"""Commands that show state of connectors, which the tables of their operators show as bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from statetool.connectors.sinks import sinks_in
from statetool.connectors.sources import source_of
from statetool.errors import StatetoolError
from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_info import StateInfo, undecoded_reasons


def bytes_hints(
    operator: OperatorInventory, states: Mapping[str, StateInfo], table: str, chosen: Sequence[str] | None = None
) -> list[str]:
    """Return why states in a table of an operator stay bytes, with the command or the declarations that decode them.

    ``chosen`` are the states that the table shows, by default all.
    """
    if chosen is not None:
        states = {name: state for name, state in states.items() if name in chosen}
    known = states.get(table)
    if known is not None and known.scope == "operator" and (known.reason or known.value_type == "BytePrimitiveArray"):
        with suppress(StatetoolError):
            if command := _command(operator):
                return [f"{known.name}: {command} --uid {operator.label}"]
    return undecoded_reasons(states, table)


def _command(operator: OperatorInventory) -> str:
    """Return the command for the connector of an operator, without the operator; empty if no connector reads its state."""
    source = source_of(operator)
    if source is not None and source.connector is not None:
        return f"positions of {source.connector.name}, which this command shows: statetool sources show SNAPSHOT"
    sink = next((s for s in sinks_in(operator) if s.connector is not None), None)
    if sink is not None and sink.connector is not None:
        return f"state of {sink.connector.name}, which this command shows: statetool sinks pending SNAPSHOT"
    return ""
