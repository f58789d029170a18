"""Splits of a table: the input of each task, independent of the job's parallelism. Immutable, picklable and self-contained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from statetool.entries.form import KeyGroupReader, size_of
from statetool.formats.channel_state import Channel
from statetool.formats.stream import Stream
from statetool.types.declared import TypeContext
from statetool.types.options import ReadOptions

TableKind = Literal["keyed_state", "state", "timers", "elements", "in_flight", "windows", "matches", "waiting"]


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
    key_group_column, subtask_column
        Whether the table has the column.
    memory_bytes
        Key groups above this size are merged as a stream, or spilled to local disk.
    """

    operator: str
    table: TableKind
    states: tuple[str, ...]
    options: ReadOptions
    schema: bytes
    memory_bytes: int
    columns: tuple[str | None, ...] = ()
    keys: tuple[bytes, ...] | None = None
    key_group_column: bool = False
    subtask_column: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSplit:
    """Some key groups of one subtask."""

    spec: TableSpec
    source: KeyGroupReader

    @property
    def file(self) -> str:
        return self.source.file

    @property
    def size_bytes(self) -> int:
        return size_of(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementSplit:
    """Some elements of one operator state of one subtask. ``starts`` and ``ends`` are their bounds in the stream.

    The first ``header_bytes`` of the stream hold its header. ``descriptions`` are headers (bytes and offset) that describe subclasses
    that some subtasks do not know.
    """

    spec: TableSpec
    stream: Stream
    header_bytes: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    subtask: int
    types: TypeContext
    descriptions: tuple[tuple[bytes, int], ...]

    @property
    def file(self) -> str:
        return self.stream.file

    @property
    def size_bytes(self) -> int:
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightSplit:
    """Channels of one subtask with buffers in one stream. ``record`` is the serializer snapshot of the records."""

    spec: TableSpec
    stream: Stream
    channels: tuple[Channel, ...]
    record: bytes
    subtask: int
    types: TypeContext

    @property
    def file(self) -> str:
        return self.stream.file

    @property
    def size_bytes(self) -> int:
        return self.stream.size_bytes


Split = KeyedSplit | ElementSplit | InFlightSplit
