"""Description of an operator's tables for users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from statetool.snapshot.operator import OperatorInventory
from statetool.snapshot.state_tables import KEYED_STATE, TIMERS
from statetool.snapshot.views import MATCHES, WAITING, WINDOWS

_ROWS: Final = {
    KEYED_STATE: "one row per key",
    TIMERS: "one row per timer",
    WAITING: "one row per buffered element",
    MATCHES: "one row per partial match",
    WINDOWS: "one row per key and window",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """One table. ``reason`` says why some of its values stay bytes, and which declaration would decode them."""

    operator: str
    table: str
    content: str
    key_type: str | None
    value_type: str | None
    reason: str


def table_infos(operator: OperatorInventory, tables: Iterable[str]) -> Iterator[TableInfo]:
    """Yield the description of each of an operator's tables."""
    states = {(s.scope, s.name): s for s in operator.states}
    key = next((s.key_type for s in states.values() if s.scope == "keyed"), None)
    for table in tables:
        state = states.get(operator.state_tables[table]) if table in operator.state_tables else None
        if state is None:
            yield TableInfo(
                operator=operator.label, table=table, content=_ROWS[table], key_type=key, value_type=None, reason=""
            )
        else:
            yield TableInfo(
                operator=operator.label,
                table=table,
                content=f"{state.scope} {state.kind} state" if state.kind != "timers" else "timers of one service",
                key_type=state.key_type,
                value_type=state.value_type,
                reason=state.reason,
            )
