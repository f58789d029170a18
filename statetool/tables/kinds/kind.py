"""Base classes of the kinds of tables: how a table is planned on the driver and read in tasks.

Kinds have no state, so that splits can carry them. :mod:`statetool.tables.kinds.registry` has one object per kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.serializers.core.base import Serializer
from statetool.snapshot.operator import OperatorInventory
from statetool.tables.kinds.keyed import Columns, KeyedTable
from statetool.tables.request import ScanRequest
from statetool.types import LogicalType, Scalar
from statetool.types.options import ReadOptions

NamedColumns = list[tuple[str, LogicalType]]
#: Number of rows, their key groups, and their columns.
KeyedRows = tuple[int, Int64s, Columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """The specification of a table, the same for all of its splits.

    Attributes
    ----------
    states
        Names of the states, or of the queues for timers.
    columns
        For ``keyed_state`` and ``windows``, the column of each state, ``None`` if it has none.
    keys
        Encoded keys to read, ``None`` for all.
    schema
        The table's Arrow schema (IPC bytes). Rows of every stream are converted to it.
    decoded
        The states with a selected column, ``None`` for all. The entries of others count as rows, but their values are not decoded.
    key_group_column, subtask_column
        Whether the table has the column.
    memory_bytes
        Key groups above this size are merged as a stream, or spilled to local disk.
    """

    operator: str
    states: tuple[str, ...]
    options: ReadOptions
    schema: bytes
    memory_bytes: int
    columns: tuple[str | None, ...] = ()
    keys: tuple[bytes, ...] | None = None
    decoded: frozenset[str] | None = None
    key_group_column: bool = False
    subtask_column: bool = False


@dataclass(frozen=True, slots=True)
class TableStates:
    """The states of an operator, with the user's field names for rows."""

    key: Serializer | None
    keyed: Mapping[str, StateMetaInfo]
    elements: Mapping[str, StateMetaInfo]

    @property
    def key_type(self) -> LogicalType:
        return Scalar("null") if self.key is None else self.key.logical


@dataclass(frozen=True, slots=True)
class KeyedPlan:
    """A planned keyed table: the column of each state to read (``None`` for states without a column), and all columns of the table."""

    column_of: Mapping[str, str | None]
    columns: NamedColumns


@dataclass(frozen=True, slots=True)
class KeyedKind(ABC):
    """A kind of table with rows of keyed state.

    Attributes
    ----------
    view
        The view of the operator's states that the table shows, if any (:mod:`statetool.snapshot.views`).
    whole_keys
        Whether a row needs all entries of its key.
    column_per_state
        Whether each state has its own column.
    long_form
        Whether the table shows one state, with its values in the column ``value``.
    stored_by_key
        Whether stored entries start with their key. Timers start with their timestamp.
    in_raw_state
        Whether some of the entries are in raw keyed state, as timers of the heap backend.
    keeps_raw
        Whether a row can have undecoded values.
    follows_keys
        Whether changes of rows can be followed from one checkpoint to the next by key.
    """

    view: ClassVar[str | None] = None
    whole_keys: ClassVar[bool] = False
    column_per_state: ClassVar[bool] = False
    long_form: ClassVar[bool] = False
    stored_by_key: ClassVar[bool] = True
    in_raw_state: ClassVar[bool] = False
    keeps_raw: ClassVar[bool] = True
    follows_keys: ClassVar[bool] = False

    @abstractmethod
    def matches(self, operator: OperatorInventory, table: str) -> bool:
        """Return True if a table of the operator is of this kind."""

    @abstractmethod
    def plan(self, operator: OperatorInventory, request: ScanRequest, states: TableStates) -> KeyedPlan:
        """Return the states and columns of the table."""

    @abstractmethod
    def rows(self, table: KeyedTable, batch: EntryBatch, spec: TableSpec) -> Iterator[KeyedRows]:
        """Yield the rows of a batch, in a task."""


@dataclass(frozen=True, slots=True)
class ElementKind(ABC):
    """A kind of table with the elements of one operator state.

    Attributes
    ----------
    every_subtask
        Whether rows always have the column ``subtask``.
    """

    every_subtask: ClassVar[bool] = False

    @abstractmethod
    def matches(self, operator: OperatorInventory, table: str) -> bool:
        """Return True if a table of the operator is of this kind."""

    @abstractmethod
    def state(self, operator: OperatorInventory, table: str) -> str:
        """Return the name of the state."""

    @abstractmethod
    def columns(self, meta: StateMetaInfo) -> NamedColumns:
        """Return the columns of the table."""

    @abstractmethod
    def rows(self, columns: Columns, options: ReadOptions) -> Columns:
        """Return the columns of rows from those of decoded elements, in a task."""


TableKind = KeyedKind | ElementKind
