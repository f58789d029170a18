"""Streams of state, written front to back with bounded memory: canonical keyed streams and operator state streams.

Small streams stay in memory and go into ``_metadata``, as Flink keeps them; larger ones become files.
"""

from __future__ import annotations

import io
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from statetool.errors import StatetoolError
from statetool.formats.metadata.handles import (
    ByteStreamHandle,
    KeyGroupsHandle,
    OperatorStreamHandle,
    RelativeFileHandle,
    StatePartitions,
)
from statetool.kernels.encode import copy_ranges
from statetool.kernels.pack import equal_to_next, pack_records
from statetool.write.publish import INLINE_BYTES, StagedFile, StagedOutput, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

_BUFFER_BYTES: Final = 4 << 20
_END: Final = b"\xff\xff"

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStream:
    """A finished stream: bytes for the metadata, or a staged file."""

    inline: bytes | None
    file: StagedFile | None

    def handle(self) -> ByteStreamHandle | RelativeFileHandle:
        """Return the handle that the metadata names it by."""
        if self.file is not None:
            return RelativeFileHandle(path=self.file.name, size_bytes=self.file.size_bytes)
        assert self.inline is not None
        # Flink takes two handles of one name for the same when it deals operator state out again.
        return ByteStreamHandle(name=str(uuid.uuid4()), data=self.inline)


class StreamOutput:
    """Bytes of one stream; a block that fails leaves no file.

    Parameters
    ----------
    inline_bytes
        Streams of fewer bytes get no file.
    """

    def __init__(self, staging: Staging, label: str, *, inline_bytes: int = INLINE_BYTES) -> None:
        self._staging, self._label, self._inline_bytes = staging, label, inline_bytes
        self._stack = ExitStack()
        self._buffer = bytearray()
        self._file: StagedOutput | None = None
        self.size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._flush_if(self._file is not None and kind is None)
        self._stack.__exit__(kind, *exc)  # type: ignore[arg-type]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self._buffer += data
        self.size_bytes += len(data)
        self._flush_if(len(self._buffer) >= _BUFFER_BYTES)

    def _flush_if(self, wanted: bool) -> None:
        if wanted:
            if self._file is None:
                self._file = self._stack.enter_context(self._staging.create(self._label))
            self._file.write(self._buffer)
            self._buffer = bytearray()

    def complete(self) -> None:
        """Decide between file and inline; call at the end of the block."""
        self._flush_if(self._file is None and self.size_bytes >= self._inline_bytes)

    @property
    def written(self) -> WrittenStream:
        """The finished stream, after the block."""
        if self._file is not None:
            return WrittenStream(inline=None, file=self._file.staged)
        return WrittenStream(inline=bytes(self._buffer), file=None)


class DuplicateEntryError(StatetoolError, ValueError):
    """Two entries with one key; ``state`` and ``key`` are the entry's state id and composite key."""

    def __init__(self, state: int, key: bytes) -> None:
        super().__init__("two entries have one key")
        self.state, self.key = state, key


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Entries over buffers: composite keys (with their key-group prefix) and values; arrays are int64[n].

    Where ``present`` (bool[n]) is not set, a record only shows that its key came.
    """

    key_data: Bytes
    key: Int64s
    key_end: Int64s
    value_data: Bytes
    value: Int64s
    value_end: Int64s
    state: Int64s
    group: Int64s
    present: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.state)

    def key_of(self, i: int) -> bytes:
        """Return the composite key of one entry."""
        return self.key_data[self.key[i] : self.key_end[i]].tobytes()

    def take(self, index: npt.NDArray[np.intp]) -> Records:
        """Return some of the entries."""
        return Records(
            key_data=self.key_data, key=self.key[index], key_end=self.key_end[index], value_data=self.value_data,
            value=self.value[index], value_end=self.value_end[index], state=self.state[index], group=self.group[index],
            present=self.present[index],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Held:
    """The last entry so far: whether its state goes on is only known with the next one."""

    group: int
    state: int
    key: bytes
    value: bytes


def joined_elements(parts: Iterable[Records], states: frozenset[int]) -> Iterator[Records]:
    """Join the elements of list states that come one by one, sorted by key and by their index (8 bytes in front of each).

    Records of other states pass through. Memory holds one list at a time.

    Raises
    ------
    DuplicateEntryError
        Two elements have one key and index.
    """
    held: Records | None = None
    for records in parts:
        whole = records if held is None else merged_records(held, records)
        held = None
        lists = np.isin(whole.state, list(states))
        if lists[-1]:
            # The last list may go on in the next records.
            first = len(whole) - 1
            while first > 0 and _same_key(whole, first - 1, len(whole) - 1):
                first -= 1
            held = whole.take(np.arange(first, len(whole)))
            whole = whole.take(np.arange(first))
        if len(whole):
            yield _joined(whole, states)
    if held is not None:
        yield _joined(held, states)


def _same_key(r: Records, a: int, b: int) -> bool:
    return bool(
        r.state[a] == r.state[b]
        and r.group[a] == r.group[b]
        and r.key_data[r.key[a] : r.key_end[a]].tobytes() == r.key_data[r.key[b] : r.key_end[b]].tobytes()
    )


def _joined(records: Records, states: frozenset[int]) -> Records:
    values: list[bytes] = []
    first: list[int] = []
    indexes: list[bytes] = []
    for i in range(len(records)):
        value = records.value_data[records.value[i] : records.value_end[i]].tobytes()
        if int(records.state[i]) not in states:
            indexes = []
        elif indexes and _same_key(records, i - 1, i):
            if value[:8] == indexes[-1]:
                raise DuplicateEntryError(int(records.state[i]), records.key_of(i))
            indexes.append(value[:8])
            values[-1] += b"," + value[8:]
            continue
        else:
            indexes = [value[:8]]
            value = value[8:]
        first.append(i)
        values.append(value)
    kept = records.take(np.array(first, dtype=np.intp))
    ends = np.cumsum([len(v) for v in values])
    return replace(
        kept,
        value_data=np.frombuffer(b"".join(values), dtype=np.uint8),
        value=np.concatenate([[0], ends[:-1]]).astype(np.int64),
        value_end=ends.astype(np.int64),
    )


def merged_records(a: Records, b: Records) -> Records:
    """Return the entries of ``a`` and then those of ``b``."""
    keys, values = len(a.key_data), len(a.value_data)
    return Records(
        key_data=np.concatenate([a.key_data, b.key_data]),
        key=np.concatenate([a.key, b.key + keys]),
        key_end=np.concatenate([a.key_end, b.key_end + keys]),
        value_data=np.concatenate([a.value_data, b.value_data]),
        value=np.concatenate([a.value, b.value + values]),
        value_end=np.concatenate([a.value_end, b.value_end + values]),
        state=np.concatenate([a.state, b.state]),
        group=np.concatenate([a.group, b.group]),
        present=np.concatenate([a.present, b.present]),
    )


class KeyedStreamWriter:
    """Writes one canonical keyed stream from entries that come sorted by key group, with each state's together.

    Parameters
    ----------
    header
        Bytes of the keyed header.
    key_groups
        The subtask's key groups.
    states
        Number of states in the header; entries of states beyond it only take part in the check for duplicates.
    """

    def __init__(self, out: StreamOutput, header: bytes, key_groups: range, states: int) -> None:
        self._out = out
        self._groups, self._states = key_groups, states
        self._offsets = np.zeros(len(key_groups), dtype=np.int64)
        self._held: _Held | None = None
        self._previous: tuple[int, int, bytes] | None = None
        self._group = -1
        out.write(header)

    def add(self, records: Records) -> None:
        """Append entries.

        Raises
        ------
        DuplicateEntryError
            Two entries in a row have one key.
        """
        if not len(records):
            return
        self._check_duplicates(records)
        real = np.flatnonzero((records.state < self._states) & records.present)
        if len(real) < len(records):
            records = records.take(real)
        if not len(records):
            return
        last = len(records) - 1
        state, group = records.state, records.group
        self._release(int(group[0]), int(state[0]))
        # What follows each entry but the last is known.
        group_ends = group[:-1] != group[1:]
        state_ends = group_ends | (state[:-1] != state[1:])
        begins = np.empty(len(records), dtype=np.bool_)
        begins[0] = not self._continues(int(group[0]), int(state[0]))
        begins[1:] = state_ends
        self._pack(records, begins, state_ends, group_ends)
        self._held = _Held(
            int(group[last]),
            int(state[last]),
            records.key_of(last),
            records.value_data[records.value[last] : records.value_end[last]].tobytes(),
        )
        self._begin(self._held, begins=bool(begins[last]))

    def _continues(self, group: int, state: int) -> bool:
        return self._held is not None and (self._held.group, self._held.state) == (group, state)

    def _pack(self, records: Records, begins: npt.NDArray[np.bool_], ends: Bytes, group_ends: Bytes) -> None:
        """Write all entries but the last."""
        n = len(records) - 1
        if n == 0:
            return
        r = records.take(np.arange(n))
        sizes = 8 + (r.key_end - r.key) + (r.value_end - r.value) + 2 * begins[:n] + 2 * group_ends
        pos = np.cumsum(sizes) - sizes
        buffer = np.empty(int(sizes.sum()), dtype=np.uint8)
        pack_records(
            r.key_data, r.key, r.key_end, r.value_data, r.value, r.value_end, r.state,
            begins[:n].view(np.uint8), ends.view(np.uint8), group_ends.view(np.uint8), pos, buffer,
        )  # fmt: skip
        starts = np.flatnonzero(np.diff(r.group, prepend=self._group))
        self._offsets[r.group[starts] - self._groups.start] = self._out.size_bytes + pos[starts]
        self._group = int(r.group[-1])
        self._out.write(buffer.data)

    def _begin(self, held: _Held, *, begins: bool) -> None:
        """Write the state id in front of an entry that is held back."""
        if held.group != self._group:
            self._offsets[held.group - self._groups.start] = self._out.size_bytes
            self._group = held.group
        if begins:
            self._out.write(held.state.to_bytes(2, "big"))

    def _release(self, group: int | None, state: int | None) -> None:
        """Write the entry that was held back; ``group`` and ``state`` are those of the next one."""
        held = self._held
        if held is None:
            return
        last = (held.group, held.state) != (group, state)
        self._out.write(len(held.key).to_bytes(4, "big"))
        self._out.write(bytes([held.key[0] | (0x80 if last else 0)]) + held.key[1:])
        self._out.write(len(held.value).to_bytes(4, "big"))
        self._out.write(held.value)
        if held.group != group:
            self._out.write(_END)

    def _check_duplicates(self, records: Records) -> None:
        first = (
            int(records.group[0]),
            int(records.state[0]),
            records.key_of(0),
        )
        if first == self._previous:
            raise DuplicateEntryError(first[1], first[2])
        at = equal_to_next(records.key_data, records.key, records.key_end, records.state, records.group)
        if at >= 0:
            raise DuplicateEntryError(int(records.state[at]), records.key_of(at))
        last = len(records) - 1
        self._previous = (
            int(records.group[last]),
            int(records.state[last]),
            records.key_of(last),
        )

    def finish(self) -> tuple[int, ...]:
        """Write the end and return the offset of each key group, 0 where it is empty."""
        self._release(None, None)
        self._out.complete()
        return tuple(self._offsets.tolist())


def keyed_handle(key_groups: range, offsets: tuple[int, ...], stream: WrittenStream) -> KeyGroupsHandle:
    """Return the handle of a canonical keyed stream (tag 7, Flink 1.13 and later)."""
    return KeyGroupsHandle(tag=7, start=key_groups.start, offsets=offsets, stream=stream.handle())


class OperatorStreamWriter:
    """Writes one operator state stream from elements that come with each state's together.

    The value of a record is the element; its key only gives the order, but for broadcast state.

    Parameters
    ----------
    header
        Bytes of the operator header.
    broadcast
        Ids of the broadcast states whose records are entries.
    """

    def __init__(self, out: StreamOutput, header: bytes, states: int, broadcast: frozenset[int]) -> None:
        self._out, self._broadcast = out, broadcast
        self._offsets: dict[int, list[Int64s]] = {i: [] for i in range(states)}
        # A broadcast state starts with the number of its entries, so it waits on disk until all are known.
        self._waiting: dict[int, tuple[tempfile.SpooledTemporaryFile[bytes], list[int]]] = {}
        self._previous: tuple[int, bytes] | None = None
        out.write(header)

    def add(self, records: Records) -> None:
        """Append elements.

        Raises
        ------
        DuplicateEntryError
            Two entries of a broadcast state have one key.
        """
        edges = np.concatenate([[0], np.flatnonzero(np.diff(records.state)) + 1, [len(records)]])
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if a < b:
                self._add(int(records.state[a]), records.take(np.arange(a, b)))

    def _add(self, state: int, records: Records) -> None:
        if state in self._broadcast:
            self._add_broadcast(state, records)
            return
        sizes = records.value_end - records.value
        pos = np.cumsum(sizes) - sizes
        buffer = np.empty(int(sizes.sum()), dtype=np.uint8)
        copy_ranges(records.value_data, records.value, sizes, buffer, pos)
        self._offsets[state].append(self._out.size_bytes + pos)
        self._out.write(buffer.data)

    def _add_broadcast(self, state: int, records: Records) -> None:
        if state not in self._waiting:
            self._waiting[state] = _spooled(), [0]
        file, count = self._waiting[state]
        for i in range(len(records)):
            key = records.key_of(i)
            if (state, key) == self._previous:
                raise DuplicateEntryError(state, key)
            self._previous = (state, key)
            file.write(key)
            file.write(records.value_data[records.value[i] : records.value_end[i]].tobytes())
        count[0] += len(records)

    def finish(self) -> tuple[tuple[int, ...], ...]:
        """Write what waits, and return the offsets of each state's elements, by state id."""
        for state in sorted(self._broadcast):
            file, count = self._waiting.pop(state, (io.BytesIO(), [0]))
            self._offsets[state].append(np.array([self._out.size_bytes], dtype=np.int64))
            self._out.write(count[0].to_bytes(4, "big"))
            file.seek(0)
            with file:
                while piece := file.read(_BUFFER_BYTES):
                    self._out.write(piece)
        self._out.complete()
        return tuple(tuple(o for some in self._offsets[s] for o in some.tolist()) for s in sorted(self._offsets))


def _spooled() -> tempfile.SpooledTemporaryFile[bytes]:
    return tempfile.SpooledTemporaryFile(_BUFFER_BYTES, prefix="statetool-")


def operator_handle(
    names: tuple[str, ...], modes: tuple[int, ...], offsets: tuple[tuple[int, ...], ...], stream: WrittenStream
) -> OperatorStreamHandle:
    """Return the handle of an operator state stream (tag 4)."""
    states = tuple(StatePartitions(name=n, mode=m, offsets=o) for n, m, o in zip(names, modes, offsets, strict=True))
    return OperatorStreamHandle(states=states, stream=stream.handle())
