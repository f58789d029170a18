"""A table of an operator as a source of query engines: columns and keys that a query does not need are not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.keys.values import can_look_up, plain_values
from statetool.tables.kinds.kind import KeyedKind
from statetool.tables.kinds.registry import find_kind
from statetool.tables.request import ScanRequest
from statetool.tables.scan import TableScan, plan_table, registered_name, scan_table
from statetool.tables.sql.conditions import Condition, allowed_values


@dataclass(frozen=True)
class TableSource:
    """A table that is planned for each query.

    Attributes
    ----------
    operator
        The operator.
    request
        The table, and the options for showing values.
    """

    operator: OperatorInventory
    request: ScanRequest

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of all columns. Only headers are read."""
        return plan_table(self.operator, self.request).schema

    @cached_property
    def key(self) -> Serializer | None:
        """The serializer of the column ``key``, ``None`` if keys are not looked up."""
        if self.request.keys is not None:
            return None
        kind = find_kind(self.operator, registered_name(self.operator, self.request.table))
        if not isinstance(kind, KeyedKind):
            return None
        return next((header.key for header, _ in self.operator.listed_keyed.values()), None)

    def scan(self, columns: Sequence[str], condition: Condition | None) -> TableScan:
        """Plan the read of some columns, and of the keys for which a condition may be true."""
        keys = None if condition is None else self.keys_of(condition)
        request = self.request if keys is None else self.request.with_keys(keys)
        return scan_table(self.operator, request).select(columns)

    def keys_of(self, condition: Condition) -> list[Any] | None:
        """Return the keys for which a condition may be true, ``None`` if they are not known or cannot be looked up."""
        values = allowed_values(condition)
        if values is None or self.key is None:
            return None
        keys = plain_values(values, self.key)
        return keys if keys is not None and can_look_up(keys, self.key) else None
