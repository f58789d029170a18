"""Splits of a table: the input of each task, independent of the job's parallelism. Immutable, picklable and self-contained."""

from __future__ import annotations

from dataclasses import dataclass

from statetool.entries.form import BATCH_BYTES, EntryRequest, KeyGroupReader, size_of
from statetool.formats.channel_state import Channel
from statetool.formats.stream import Stream
from statetool.tables.kinds.kind import ElementKind, KeyedKind, TableSpec
from statetool.types.declared import TypeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedSplit:
    """Some key groups of one subtask."""

    spec: TableSpec
    kind: KeyedKind
    source: KeyGroupReader

    @property
    def file(self) -> str:
        return self.source.file

    @property
    def size_bytes(self) -> int:
        return size_of(self.source)

    def request(self, batch_bytes: int = BATCH_BYTES, *, reads_on: bool = False) -> EntryRequest:
        """Return the entries to read."""
        return EntryRequest(
            states=self.spec.states,
            keys=self.spec.keys if self.kind.stored_by_key else None,
            whole_keys=self.kind.whole_keys,
            batch_bytes=batch_bytes,
            memory_bytes=self.spec.memory_bytes,
            reads_on=reads_on,
        )

    def reads(self) -> tuple[KeyGroupReader, EntryRequest]:
        return self.source, self.request()


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementSplit:
    """Some elements of one operator state of one subtask. ``starts`` and ``ends`` are their bounds in the stream.

    The first ``header_bytes`` of the stream hold its header. ``descriptions`` are headers (bytes and offset) that describe subclasses
    that some subtasks do not know.
    """

    spec: TableSpec
    kind: ElementKind
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
