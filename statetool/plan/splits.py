"""Splits of a table: what each task reads, whatever the job's parallelism was. Picklable and self-contained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statetool.formats.channel_state import Channel
from statetool.formats.keyed.change_sets import ChangeSet
from statetool.formats.keyed.database_files import DatabaseFiles
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.formats.stream import Stream
from statetool.types.declared import NOTHING_DECLARED, TypeContext
from statetool.types.options import ReadOptions

TARGET_BYTES: Final = 64 << 20
MEMORY_BYTES: Final = 128 << 20
TableKind = Literal["keyed_state", "state", "timers", "windows", "operator_state", "in_flight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What a read wants; the same for all of its splits.

    ``states`` are the names of the states involved (for timers those of the timer states), ``columns`` theirs in ``keyed_state``. ``keys`` are encoded keys to
    keep. ``schema`` is the table's Arrow schema (IPC bytes), which what is read from every stream must agree with. ``types``
    are what the user declared: a task reads serializers as the driver did. ``descriptions`` are headers (bytes and offset) that
    describe the subclasses that not all subtasks know.
    """

    operator: str
    table: TableKind
    states: tuple[str, ...]
    options: ReadOptions
    max_parallelism: int
    columns: tuple[str, ...] = ()
    keys: tuple[bytes, ...] | None = None
    schema: bytes = b""
    key_group_column: bool = False
    subtask_column: bool = False
    memory_bytes: int = MEMORY_BYTES
    types: TypeContext = NOTHING_DECLARED
    descriptions: tuple[tuple[bytes, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSplit:
    """Some key groups of one stream; picklable and self-contained."""

    spec: TableSpec
    stream: Stream
    header_bytes: int
    key_groups: tuple[KeyGroupRange, ...]
    subtask: int
    heap: bool = False

    @property
    def size_bytes(self) -> int:
        return sum(g.size_bytes for g in self.key_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSplit:
    """Some elements of one operator state of one subtask; ``starts`` and ``ends`` are where each is in the stream.

    The first ``header_bytes`` of the stream hold its header.
    """

    spec: TableSpec
    stream: Stream
    header_bytes: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    subtask: int

    @property
    def size_bytes(self) -> int:
        return sum(self.ends) - sum(self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSplit:
    """Some key groups of one database; ``stream`` is its keyed header, ``size_bytes`` an estimate."""

    spec: TableSpec
    stream: Stream
    files: DatabaseFiles
    key_groups: tuple[int, ...]
    subtask: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSplit:
    """Raw timers of some key groups; ``managed`` is stream and size of a header of the operator's managed state."""

    spec: TableSpec
    stream: Stream
    key_groups: tuple[KeyGroupRange, ...]
    managed: tuple[Stream, int] | None
    subtask: int

    @property
    def size_bytes(self) -> int:
        return sum(g.size_bytes for g in self.key_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogSplit:
    """Some key groups of one subtask of the changelog state backend: change sets on top of what was materialized.

    ``stream`` is a keyed header of all states, made for the split. ``size_bytes`` is an estimate.
    """

    spec: TableSpec
    stream: Stream
    key_groups: tuple[int, ...]
    below: tuple[KeyedSplit | NativeSplit, ...]
    changes: tuple[ChangeSet, ...]
    subtask: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightSplit:
    """Channels of one subtask whose buffers lie in one stream; ``record`` is the snapshot of the records' serializer."""

    spec: TableSpec
    stream: Stream
    channels: tuple[Channel, ...]
    record: bytes
    subtask: int

    @property
    def size_bytes(self) -> int:
        return self.stream.size_bytes


Split = KeyedSplit | OperatorSplit | NativeSplit | RawSplit | ChangelogSplit | InFlightSplit
