"""Recipes by which tasks turn table rows into entries of state; frozen, picklable, made on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from statetool.columns.types import COMPANION, PRESENT, SCALE
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.naming import named_header, named_state
from statetool.formats.operator_state import OperatorHeader
from statetool.java.hashing.formulas import HashFormula
from statetool.saving.streams.elements import parse_operator_header
from statetool.saving.streams.keyed import parse_keyed_header
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.options import Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class StateColumn:
    """Column of one state.

    ``last_access_ms`` is the last access of TTL values; ``None`` if the column contains it, or the state has no TTL. ``tells_null``: a null
    may be a stored value. It is refused unless a companion column says so.
    """

    state_id: int
    column: str
    last_access_ms: int | None = None
    tells_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerColumns:
    """Columns of timers; ``states`` are ids by (domain, service), with ``None`` for an absent column."""

    states: tuple[tuple[str | None, str | None, int], ...]
    timestamp: str = "timestamp"
    domain: str = "domain"
    service: str = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEncoder:
    """Recipe that turns one table into keyed state.

    Attributes
    ----------
    header
        Bytes of the operator's keyed header, with the states of all its tables.
    key
        The key column, or the columns that form a tuple.
    key_group
        Column with the key group of each row; checked if the hash code of the key is known.
    formula
        Hash formula of keys whose hash code is defined in user code, if known.
    presence
        State id of presence entries, which record the keys of rows in a table with only map states. They reveal duplicate keys.
    long
        Whether each row is one entry of the only state: ``value``, with ``map_key`` for a map or ``list_index`` for a list.
    field_names
        Names of the fields of rows in the table, from the SQL job's compiled plan.
    """

    operator: str
    header: bytes
    max_parallelism: int
    key: tuple[str, ...]
    states: tuple[StateColumn, ...] = ()
    namespace: str | None = None
    key_group: str | None = None
    formula: HashFormula | None = None
    presence: int
    timers: TimerColumns | None = None
    long: bool = False
    types: TypeContext = NOTHING_DECLARED
    field_names: Columns = ()

    def columns(self, names: Sequence[str]) -> list[int]:
        """Return the columns of a table to read."""
        used = {*self.key, *(s.column for s in self.states), *filter(None, (self.namespace, self.key_group))}
        if self.timers is not None:
            used |= {self.timers.timestamp, self.timers.domain, self.timers.service}
        if self.long:
            used |= {"map_key", "list_index"}
        used |= {f"{name}{suffix}" for name in used for suffix in (COMPANION, SCALE, PRESENT)}
        return [i for i, name in enumerate(names) if name in used]

    @property
    def keyed_header(self) -> KeyedHeader:
        """Return the parsed header."""
        return named_header(parse_keyed_header(self.header, self.types), self.field_names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementEncoder:
    """Recipe that turns one table into operator state.

    Columns: ``value``, ``key`` (broadcast state), ``subtask`` (destination of the element).
    """

    operator: str
    header: bytes
    parallelism: int
    state_id: int
    value: str = "value"
    key: str = "key"
    subtask: str | None = None
    types: TypeContext = NOTHING_DECLARED
    field_names: Columns = ()

    @property
    def operator_header(self) -> OperatorHeader:
        """Return the parsed header."""
        header = parse_operator_header(self.header, self.types)
        states = header.states
        for path, names in self.field_names:
            states = tuple(named_state(meta, path, names) for meta in states)
        return replace(header, states=states)
