"""HTML representation of snapshots and operators in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from statetool.errors import several
from statetool.html.fragment import fragment
from statetool.html.markup import Html, table
from statetool.html.numbers import count, size
from statetool.html.operators import operator_ids, operator_name
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.metadata_tables import operator_row
from statetool.snapshot.operator import OperatorInventory

T = TypeVar("T")


def snapshot_html(inventory: Inventory) -> Html:
    """Return a table of the operators of a snapshot."""
    operators = list(inventory.operators.values())
    rows = []
    for operator in operators:
        row = operator_row(operator)
        states = ", ".join(state.name for state in operator.states)
        rows.append(
            (
                operator_name(row.operator),
                states,
                count(row.parallelism),
                count(row.max_parallelism),
                size(row.state_bytes),
            )
        )
    title = f"{inventory.path}: checkpoint {inventory.metadata.checkpoint_id}, {several(len(operators), 'operator')}"
    names = ("operator", "states", "parallelism", "max parallelism", "stored")
    return fragment(table(names, rows, title), operator_ids(inventory.labels))


def operator_html(operator: OperatorInventory, tables: Iterable[str]) -> Html:
    """Return a table of the states of an operator."""
    rows = [
        (s.name, s.kind, s.key_type, s.namespace_type, s.value_type, "yes" if s.ttl else "", s.reason)
        for s in operator.states
    ]
    title = f"{operator.label.display}: tables {', '.join(tables)}"
    return fragment(table(("state", "kind", "key", "namespace", "value", "TTL", "remarks"), rows, title))


class HtmlMapping(Mapping[str, T]):
    """A mapping by name that notebooks show as a table and complete by its names."""

    def __init__(self, items: dict[str, T], html: Callable[[], str]) -> None:
        self._items = items
        self._html = html

    def __getitem__(self, name: str) -> T:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)

    def _repr_html_(self) -> str:
        return self._html()

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)
