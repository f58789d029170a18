"""Streams of state, written sequentially with bounded memory.

Small streams stay in memory and are stored inline in ``_metadata``, as in Flink; larger ones become files.
"""

from __future__ import annotations

import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from statetool.formats.compression import FrameWriter
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    IncrementalHandle,
    KeyGroupsHandle,
    OperatorStreamHandle,
    RelativeFileHandle,
)
from statetool.kernels.core.arrays import Int64s
from statetool.saving.publish import StagedFile, StagedOutput, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

    from statetool.formats.keyed.header import KeyedHeader
    from statetool.saving.streams.runs import PackedRun

Write: TypeAlias = Callable[[bytes | bytearray | memoryview], object]
#: Part of a key group: packed entries, and the batch and order that select them.
Piece: TypeAlias = "tuple[PackedRun, EntryBatch, Int64s]"
_BUFFER_BYTES: Final = 4 << 20
_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStream:
    """The new stream or database of one subtask: the handle for the metadata, and the files that it refers to.

    Attributes
    ----------
    handle
        ``None`` if the subtask has raw keyed state only.
    raw
        Raw keyed state of the subtask, if it is written too.
    """

    subtask: int
    handle: KeyGroupsHandle | IncrementalHandle | OperatorStreamHandle | None
    files: tuple[StagedFile, ...]
    raw: KeyGroupsHandle | None = None


class UnshuffledStreams(ABC):
    """New keyed streams that are written one by one from key groups of stored streams, without a shuffle; picklable."""

    __slots__ = ()

    @property
    @abstractmethod
    def parsed(self) -> KeyedHeader:
        """The parsed header."""

    @property
    @abstractmethod
    def subtasks(self) -> Sequence[int]:
        """The subtasks that get a stream."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Stored bytes that are read."""

    @abstractmethod
    def of_subtask(self, subtask: int) -> Self:
        """Return the streams restricted to one subtask."""

    @abstractmethod
    def write(self, subtask: int, staging: Staging) -> NewStream:
        """Write the stream of one subtask."""

    def writer(self, staging: Staging) -> Callable[[int], NewStream]:
        """Return the function that writes the stream of a subtask."""
        return partial(self.write, staging=staging)


class StreamOutput:
    """Output of one stream; a block that fails leaves no file.

    Parameters
    ----------
    inline_bytes
        Streams with fewer bytes are stored inline, without a file.
    buffer_bytes
        Bytes that are written at once.
    """

    def __init__(self, staging: Staging, label: str, *, inline_bytes: int, buffer_bytes: int = _BUFFER_BYTES) -> None:
        self._staging, self._label, self._inline_bytes = staging, label, inline_bytes
        self._most = max(buffer_bytes, inline_bytes)
        self._stack = ExitStack()
        self._buffer = bytearray()
        self._file: StagedOutput | None = None
        self.size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            if kind is None and (self._file is not None or self.size_bytes >= self._inline_bytes):
                self._flush()
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        self._stack.__exit__(kind, *exc)  # type: ignore[arg-type]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self.size_bytes += len(data)
        if len(data) >= self._most:
            self._flush(data)
            return
        self._buffer += data
        if len(self._buffer) >= self._most:
            self._flush()

    def _flush(self, more: bytes | bytearray | memoryview = b"") -> None:
        """Write the buffered bytes, followed by ``more``."""
        if self._file is None:
            self._file = self._stack.enter_context(self._staging.create(self._label))
        for data in (self._buffer, more):
            if data:
                self._file.write(data)
        self._buffer = bytearray()

    @property
    def files(self) -> tuple[StagedFile, ...]:
        """The file, after the block; empty if the bytes are stored in the metadata."""
        return () if self._file is None else (self._file.staged,)

    def handle(self) -> ByteStreamHandle | RelativeFileHandle:
        """Return the handle of the bytes, after the block."""
        for file in self.files:
            return RelativeFileHandle(path=file.name, size_bytes=file.size_bytes)
        # When Flink redistributes operator state, it treats two handles with the same name as one.
        return ByteStreamHandle(name=f"{self._label}-{uuid.uuid4()}", data=bytes(self._buffer))


class GroupWriter(Protocol):
    """Writer of the key groups of one subtask, in ascending order."""

    def add_groups(self, run: PackedRun) -> None:
        """Append key groups, one segment each, with higher numbers than the previous ones."""
        ...

    def add_pieces(self, number: int, pieces: Iterable[Piece], prefix: int) -> None:
        """Append a key group given in sorted pieces; an empty one is omitted.

        Parameters
        ----------
        prefix
            Bytes of the key-group prefix of each key.
        """
        ...


class KeyedStreamWriter:
    """Keyed stream of one subtask: its header, then key groups in ascending order (``FullSnapshotAsyncWriter``).

    Parameters
    ----------
    write
        Takes the bytes of the stream.
    header
        Bytes of the header, whose compression flag must match ``compressed``.
    key_groups
        Key groups of the subtask.

    Attributes
    ----------
    offsets
        Offset of each key group, 0 if it is empty, as stored in the handle.
    """

    def __init__(self, write: Write, header: bytes, key_groups: range, *, compressed: bool) -> None:
        self._write = write
        self._compressed = compressed
        self._groups = key_groups
        self._size = 0
        self.offsets = np.zeros(len(key_groups), dtype=np.int64)
        self._append(header)

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        self._write(data)
        self._size += len(data)

    def add_groups(self, run: PackedRun) -> None:
        """Append key groups, one segment each, with higher numbers than the previous ones."""
        if self._compressed:
            for i, number in enumerate(run.numbers.tolist()):
                with self.group(number) as append:
                    append(run.data[run.starts[i] : run.starts[i + 1]].data)
        elif len(run.numbers):
            self.offsets[run.numbers - self._groups.start] = self._size + run.starts[:-1]
            self._append(run.data.data)

    def add_pieces(self, number: int, pieces: Iterable[Piece], prefix: int) -> None:
        """Append a key group given in sorted pieces; as :meth:`GroupWriter.add_pieces`."""
        pieces = (piece for piece in pieces if len(piece[2]))
        first = next(pieces, None)
        if first is None:
            return
        with self.group(number) as append:
            joiner = GroupJoiner(append, prefix)
            joiner.add(*first)
            for piece in pieces:
                joiner.add(*piece)
            joiner.finish()

    @contextmanager
    def group(self, number: int) -> Iterator[Write]:
        """Provide a function that appends one key group piece by piece; the pieces together form one canonical key group."""
        self.offsets[number - self._groups.start] = self._size
        if not self._compressed:
            yield self._append
            return
        framed = FrameWriter(self._append)
        yield framed.write
        framed.flush()

    @contextmanager
    def stored_group(self, number: int) -> Iterator[Write]:
        """Provide a function that appends the bytes of a stored key group, already compressed if the stream is."""
        self.offsets[number - self._groups.start] = self._size
        yield self._append


class GroupJoiner:
    """Joiner of canonical pieces of one key group, sorted by state; the key group may be larger than memory.

    Whether a piece's last entry of a state is the state's last one depends on the next piece, so each piece is held back until the next one
    arrives.
    """

    def __init__(self, write: Write, prefix: int) -> None:
        self._write, self._prefix = write, prefix
        self._held: Any = None
        self._last_state = -1
        self._last_key = 0

    def add(self, run: PackedRun, batch: EntryBatch, order: Int64s) -> None:
        """Append a piece: the entries ``order`` of a batch, packed."""
        piece = run.data
        if self._held is not None:
            goes_on = int(batch.state[order[0]]) == self._last_state
            if goes_on:
                self._held[self._last_key] &= 0x7F
            self._write(self._held[:-2].data)
            piece = piece[2:] if goes_on else piece
        last = order[-1]
        self._held = piece
        self._last_state = int(batch.state[last])
        value = batch.value_end[last] - batch.value[last]
        key = batch.key_end[last] - batch.key[last]
        # The key is followed by the value with its length, and the end of the key group.
        self._last_key = int(len(piece) - 2 - value - _LENGTH_BYTES - key - self._prefix)

    def finish(self) -> None:
        """Write the last piece."""
        if self._held is not None:
            self._write(self._held.data)
