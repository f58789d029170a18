"""Recipes by which tasks turn the rows of a table into entries of state; frozen, picklable, made on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statetool.columns.companions import PRESENT, SCALE
from statetool.columns.types import COMPANION
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.operator_state import OperatorHeader
from statetool.hashing.formulas import HashFormula
from statetool.saving.streams.elements import parse_operator_header
from statetool.saving.streams.keyed import parse_keyed_header
from statetool.types.declared import NOTHING_DECLARED, TypeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class StateColumn:
    """The column of one state.

    ``last_access_ms`` is the last access of TTL values; ``None`` where the column has it, or the state has no TTL. ``tells_null``: a null
    may be one that the state holds, and is refused where no companion tells.
    """

    state_id: int
    column: str
    last_access_ms: int | None = None
    tells_null: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerColumns:
    """Columns of timers; ``states`` are ids by (domain, service), ``None`` where there is no such column."""

    states: tuple[tuple[str | None, str | None, int], ...]
    timestamp: str = "timestamp"
    domain: str = "domain"
    service: str = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRecipe:
    """How one table becomes keyed state.

    Attributes
    ----------
    header
        Bytes of the keyed header of the operator, with the states of all of its tables.
    key
        The key column, or the columns that make up a tuple.
    key_group
        Column with the key group of each row, which is checked where the hash code of the key is known.
    formula
        How keys hash whose hash code lies in user code, if that is known.
    presence
        State id of entries that only show the keys of rows, in a table with map states only, so that duplicate keys are found.
    long
        Whether each row is one entry of the only state: ``value``, and ``map_key`` of a map or ``list_index`` of a list.
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

    def columns(self, names: Sequence[str]) -> list[int]:
        """Return which columns of a table are read."""
        used = {*self.key, *(s.column for s in self.states), *filter(None, (self.namespace, self.key_group))}
        if self.timers is not None:
            used |= {self.timers.timestamp, self.timers.domain, self.timers.service}
        if self.long:
            used |= {"map_key", "list_index"}
        used |= {f"{name}{suffix}" for name in used for suffix in (COMPANION, SCALE, PRESENT)}
        return [i for i, name in enumerate(names) if name in used]

    @property
    def keyed_header(self) -> KeyedHeader:
        """The parsed header."""
        return parse_keyed_header(self.header, self.types)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRecipe:
    """How one table becomes an operator state: columns ``value``, ``key`` (of broadcast state), ``subtask`` (that gets the element)."""

    operator: str
    header: bytes
    parallelism: int
    state_id: int
    value: str = "value"
    key: str = "key"
    subtask: str | None = None
    types: TypeContext = NOTHING_DECLARED

    @property
    def operator_header(self) -> OperatorHeader:
        """The parsed header."""
        return parse_operator_header(self.header, self.types)
