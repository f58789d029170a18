"""HTML representation of snapshots and operators in notebooks."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.snapshot.html import html_table
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory


def snapshot_html(inventory: Inventory) -> str:
    """Return a table of the operators of a snapshot."""
    operators = list(inventory.operators.values())
    rows = []
    for operator in operators:
        row = operator_row(operator)
        states = ", ".join(state.name for state in operator.states)
        rows.append((operator.label.display, states, row.parallelism, row.max_parallelism, f"{row.state_bytes:,}"))
    title = f"{inventory.path}: checkpoint {inventory.metadata.checkpoint_id}, {len(operators)} operators"
    return html_table(title, ("operator", "states", "parallelism", "max parallelism", "bytes"), rows)


def operator_html(operator: OperatorInventory, tables: Iterable[str]) -> str:
    """Return a table of the states of an operator."""
    rows = [
        (s.name, s.kind, s.key_type, s.namespace_type, s.value_type, "yes" if s.ttl else "", s.reason)
        for s in operator.states
    ]
    title = f"{operator.label.display}: tables {', '.join(tables)}"
    return html_table(title, ("state", "kind", "key", "namespace", "value", "TTL", "remarks"), rows)
