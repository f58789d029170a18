"""Locations of stored data, for tests that inspect bytes."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.entries.database import StoredDatabase
from statetool.entries.streams import StoredStream
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.splits import KeyedSplit, Split


def streams(operator: OperatorInventory) -> list[StoredStream]:
    """Return the keyed streams of an operator, by key groups."""
    return [s for s in operator.keyed.managed if isinstance(s, StoredStream)]


def databases(operator: OperatorInventory) -> list[StoredDatabase]:
    """Return the databases of an operator, by key groups."""
    return [s for s in operator.keyed.managed if isinstance(s, StoredDatabase)]


def groups_of(splits: Iterable[Split]) -> list[int]:
    """Return the key groups that splits of a keyed table read."""
    return [number for s in splits if isinstance(s, KeyedSplit) for number in s.source.group_sizes()]
