"""Trial of a migration: the first values of each state are converted, and nothing is written."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from statetool.compatibility.classes.trial import unreadable_record
from statetool.entries.form import EntryRequest
from statetool.entries.sizes import TARGET_BYTES
from statetool.errors import NO_FINDING, StatetoolError
from statetool.migration.conversion import TypeConversion
from statetool.migration.plan import MigrationPlan, StateMigration
from statetool.saving.streams.elements import convert_elements
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.elements import ElementSplit, raw_elements
from statetool.tables.request import ScanRequest
from statetool.tables.scan import scan_table

_MOST_BYTES: Final = 64 << 20
_MOST_ELEMENTS: Final = 100_000


def try_conversions(plan: MigrationPlan, snapshot: Inventory) -> MigrationPlan:
    """Convert the first values of each state, and return the plan with the failures.

    Steps that need a decision are taken as accepted. States with impossible steps are not tried.
    """
    return replace(plan, states=tuple(_tried(s, snapshot.operator(s.uid)) for s in plan.states))


def _tried(state: StateMigration, operator: OperatorInventory) -> StateMigration:
    if any(step.change == "impossible" for step in state.steps):
        return state
    serializers = state.conversion.meta.serializers.values()
    if record := next(filter(None, map(unreadable_record, serializers)), ""):
        return replace(state, failure=f"Kryo 2 has no serializer for the record {record}")
    run = _convert_entries if state.scope == "keyed" else _convert_elements
    try:
        run(state.conversion, state.state, operator)
    except NO_FINDING:
        raise
    except StatetoolError as error:
        return replace(state, failure=error.message)
    return state


def _convert_entries(conversion: TypeConversion, name: str, operator: OperatorInventory) -> None:
    request = EntryRequest(states=(name,), whole_keys=conversion.needs_whole_keys)
    left = _MOST_BYTES
    for stored in operator.keyed.managed:
        for source in stored.sources(operator.keyed.context, groups=None, target_bytes=TARGET_BYTES):
            header = source.header()
            number = next((i for i, m in enumerate(header.states) if m.name == name), -1)
            for batch in source.batches(request) if number >= 0 else ():
                entries = batch.of_state(number)
                if len(entries):
                    conversion.entries(header, entries)
                left -= int((batch.value_end - batch.key).sum())
                if left < 0:
                    return


def _convert_elements(conversion: TypeConversion, name: str, operator: OperatorInventory) -> None:
    table = next(t for t, (scope, state) in operator.state_tables.items() if (scope, state) == ("operator", name))
    splits = (s for s in scan_table(operator, ScanRequest.of(table)).splits if isinstance(s, ElementSplit))
    raw = islice(chain.from_iterable(map(raw_elements, splits)), _MOST_ELEMENTS)
    deque(convert_elements(conversion, ([element] for element in raw)), maxlen=0)
