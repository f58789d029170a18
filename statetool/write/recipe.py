"""What tasks need to turn rows into records of state, and records into streams; frozen, picklable, planned on the driver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from statetool.errors import EncodeError, StatetoolError
from statetool.formats.key_groups import prefix_size, range_for
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.operator_state import OperatorHeader, read_operator_header
from statetool.io.cursor import Cursor
from statetool.serializers.base import Serializer
from statetool.serializers.context import reading_with
from statetool.types.declared import NOTHING_DECLARED, TypeContext

#: Ids from here on (below 1 << 16) are not of states: their records only show that an input has each key once.
PRESENCE: Final = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class StateColumn:
    """The column of one state.

    ``last_access_ms`` is the last access of TTL values whose column holds values alone, ``None`` where it says so itself.
    """

    state_id: int
    column: str
    last_access_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerColumns:
    """Columns of timers; ``states`` are ids by (domain, service), ``None`` where there is no such column."""

    states: tuple[tuple[str | None, str | None, int], ...]
    timestamp: str = "timestamp"
    domain: str = "domain"
    service: str = "service"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRecipe:
    """One table with keys that becomes keyed state.

    Attributes
    ----------
    header
        Bytes of the keyed header of the operator, with the states of all of its tables.
    key
        The key column, or the columns that make up a tuple.
    key_group
        Column with the key group of each row, where the hash of the key cannot be known.
    hashed
        Gives the key's serializer the hash code that lies in user code.
    presence
        Id of the records that stand for rows, so that a key that comes twice is seen.
    long
        Whether each row is one entry of the only state: ``value``, and of a map its ``map_key``, of a list its
        ``list_index``.
    """

    operator: str
    header: bytes
    max_parallelism: int
    parallelism: int
    key: tuple[str, ...]
    states: tuple[StateColumn, ...] = ()
    namespace: str | None = None
    key_group: str | None = None
    hashed: Callable[[Serializer], Serializer] | None = None
    presence: int = PRESENCE
    timers: TimerColumns | None = None
    long: bool = False
    types: TypeContext = NOTHING_DECLARED

    @property
    def keyed_header(self) -> KeyedHeader:
        """The parsed header."""
        return parse_keyed_header(self.header, self.types)

    @property
    def prefix(self) -> int:
        """Bytes of the key-group prefix."""
        return prefix_size(self.max_parallelism)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementRecipe:
    """One table that becomes an operator state: its column ``value``, ``key`` for broadcast state, ``subtask`` where it says
    which subtask an element belongs to."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecipe:
    """How the records of one subtask become a stream.

    ``carried_whole`` are broadcast states whose only record is all of their bytes. ``joined`` are list states whose records
    are elements, each behind the 8 bytes of its index.
    """

    operator: str
    header: bytes
    keyed: bool
    max_parallelism: int
    parallelism: int
    inline_bytes: int
    carried_whole: frozenset[int] = frozenset()
    joined: frozenset[int] = frozenset()
    types: TypeContext = NOTHING_DECLARED

    @property
    def keyed_header(self) -> KeyedHeader:
        """The parsed header of keyed state."""
        return parse_keyed_header(self.header, self.types)

    @property
    def operator_header(self) -> OperatorHeader:
        """The parsed header of operator state."""
        return parse_operator_header(self.header, self.types)

    def key_groups(self, subtask: int) -> range:
        """Return the key groups of a subtask."""
        return range_for(subtask, self.parallelism, self.max_parallelism)

    def duplicate(self, state: int, key: bytes) -> StatetoolError:
        """Make the error for two records with one key."""
        if not self.keyed:
            meta = self.operator_header.states[state]
            shown = _shown(meta.serializers["KEY_SERIALIZER"], key)
            return EncodeError(f"key {shown} is there twice", hint=_ONCE).at(operator=self.operator, state=meta.name)
        header = self.keyed_header
        name = header.states[state].name if state < len(header.states) else None
        prefix = prefix_size(self.max_parallelism)
        if name is not None and header.states[state].kind == "timers":
            shown = _shown(header.states[state].value, key[prefix:])
            return EncodeError(f"timer {shown} is there twice", hint=_ONCE).at(operator=self.operator, state=name)
        shown = _shown(header.key, key[prefix:])
        return EncodeError(f"key {shown} is there twice", hint=_ONCE).at(operator=self.operator, state=name)


_ONCE: Final = "aggregate the input so that each key comes once"


def _shown(serializer: Any, raw: bytes) -> str:
    try:
        return repr(serializer.decode(Cursor(raw)))
    except StatetoolError:
        return f"of bytes {raw.hex()}"


@lru_cache(maxsize=64)
def parse_keyed_header(raw: bytes, types: TypeContext = NOTHING_DECLARED) -> KeyedHeader:
    """Parse the header of keyed streams once; ``types`` is what is known of classes beside it."""
    with reading_with(types):
        return read_keyed_header(Cursor(raw), end=len(raw))


@lru_cache(maxsize=64)
def parse_operator_header(raw: bytes, types: TypeContext = NOTHING_DECLARED) -> OperatorHeader:
    """Parse the header of operator state streams once."""
    with reading_with(types):
        return read_operator_header(Cursor(raw), end=len(raw))
