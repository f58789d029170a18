"""Bootstraps: the tables of a user, and declarations of the states in them.

A user's table is a ``pyarrow.Table`` or a Spark DataFrame. Modules here use only its schema, in :class:`TableSchema`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from statetool.errors import OptionError, UnknownNameError, suggest
from statetool.java.declaring.states import StateType
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory

SERVICE_COLUMNS: Final = ("domain", "service")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedBootstrap:
    """Keyed state from a table; the fields are the arguments of :func:`statetool.bootstrap_keyed_state`."""

    data: Any
    key: tuple[str, ...]
    key_type: str | Serializer | None = None
    states: Mapping[str, StateType | None] | Sequence[str] | None = None
    namespace: str | None = None
    namespace_type: str | Serializer | None = None
    timers: Any = None
    like: OperatorInventory | None = None
    key_group: str | None = None
    last_access_ms: int | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str | os.PathLike[str], ...] = ()
    long: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementBootstrap:
    """A list, union or broadcast state from a table."""

    name: str
    kind: str
    data: Any
    value_type: str | Serializer | None = None
    key_type: str | Serializer | None = None
    like: OperatorInventory | None = None
    value: str = "value"
    key: str = "key"
    subtask: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """Schemas of a bootstrap's tables; ``services`` are the (domain, service) pairs of its timers."""

    schema: pa.Schema
    timers: pa.Schema | None = None
    services: tuple[tuple[str | None, str | None], ...] = ()


def check_services(rows: Iterable[Mapping[str, str | None]]) -> tuple[tuple[str | None, str | None], ...]:
    """Return the sorted (domain, service) pairs of rows; absent columns are ``None``.

    Raises
    ------
    OptionError
        A column contains a null.
    """
    services = []
    for row in rows:
        if None in row.values():
            raise OptionError(f"a timer without {' and '.join(k for k, v in row.items() if v is None)}")
        services.append((row.get("domain"), row.get("service")))
    return tuple(sorted(services, key=lambda pair: (pair[0] or "", pair[1] or "")))


def need(schema: pa.Schema, columns: Iterable[str], what: str) -> None:
    """Refuse a table in which a column is missing or repeated.

    Raises
    ------
    UnknownNameError
    """
    counts = Counter(schema.names)
    for name in columns:
        if counts[name] != 1:
            raise UnknownNameError(
                f"{what} {'has no column' if name not in counts else 'has two columns'} {name!r}",
                hint=suggest(name, schema.names),
            )
