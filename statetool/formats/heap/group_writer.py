"""New keyed streams in the layout of the heap backend (:mod:`statetool.formats.heap.layout`), from canonical entries.

Every key group is written, with a section for each state, also without entries: ``HeapRestoreOperation`` reads all of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import IO, Final

import numpy as np

from statetool.errors import EncodeError, StatetoolError
from statetool.formats.heap.walk import programs_of
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, write_keyed_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.entries import heap as kernel
from statetool.kernels.entries import heap_output
from statetool.kernels.entries.layout import SEPARATOR
from statetool.serializers.core.base import Serializer

#: Bytes of one state in a key group that stay in memory.
_MEMORY_BYTES: Final = 4 << 20
_COPY_BYTES: Final = 1 << 20


class HeapGroupWriter:
    """Writer of the key groups of one subtask.

    Parameters
    ----------
    write
        Takes the bytes of the stream.
    header
        The header of the stream, which is not compressed.

    Attributes
    ----------
    offsets
        Offset of each key group.
    """

    def __init__(self, write: Callable[[bytes], object], header: KeyedHeader, groups: range) -> None:
        self._write, self._header, self._groups = write, header, groups
        self._programs = programs_of(header)
        self._sections: dict[int, _Section] = {}
        self._size = 0
        self.offsets: list[int] = []
        self._append(write_keyed_header(header))

    def _append(self, data: bytes) -> None:
        self._write(data)
        self._size += len(data)

    def add(self, batch: EntryBatch, order: Int64s) -> None:
        """Append entries, which are sorted by key group, state and key."""
        place = batch.group[order] << 16 | batch.state[order]
        edges = [0, *(np.flatnonzero(np.diff(place)) + 1).tolist(), len(order)]
        for start, stop in pairwise(edges):
            own = order[start:stop]
            if len(own):
                self._go_to(int(batch.group[own[0]]))
                state = int(batch.state[own[0]])
                if state not in self._sections:
                    self._sections[state] = _Section(self._header, self._programs, state)
                self._sections[state].add(batch, own)

    def finish(self) -> None:
        """Write the rest of the key groups."""
        self._go_to(self._groups.stop)

    def _go_to(self, number: int) -> None:
        """Write the key groups before one."""
        while (group := self._groups.start + len(self.offsets)) < number:
            self.offsets.append(self._size)
            self._append(group.to_bytes(4, "big"))
            for state in range(len(self._header.states)):
                section = self._sections.get(state)
                count = 0 if section is None else section.entries
                self._append(state.to_bytes(2, "big") + count.to_bytes(4, "big"))
                if section is not None:
                    for chunk in section.chunks():
                        self._append(chunk)
            self._sections.clear()


class _Section:
    """Entries of one state in a key group. Those of one map may come in several batches."""

    def __init__(self, header: KeyedHeader, programs: kernel.StatePrograms, state: int) -> None:
        self.entries = 0
        self._programs, self._state = programs, state
        self._key, self._meta = header.key, header.states[state]
        self._body: IO[bytes] = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 - closed by chunks
        #: Key and namespace of the last map, with the position and value of its size.
        self._head, self._size_at, self._size = b"", 0, 0

    def add(self, batch: EntryBatch, order: Int64s) -> None:
        """Append entries."""
        room = int((batch.key_end - batch.key + batch.value_end - batch.value)[order].sum()) + 8 * len(order)
        out: Bytes = np.empty(room, dtype=np.uint8)
        result = np.zeros(heap_output.SLOTS, dtype=np.int64)
        code = heap_output.SLOW
        kind = self._programs.states[self._state, kernel.KIND]
        if kind != kernel.UNKNOWN:
            code = heap_output.write_heap(
                batch.data, self._programs, self._state, order, batch.key, batch.key_end, batch.value, batch.value_end,
                out, result,
            )  # fmt: skip
        if code == heap_output.SLOW:
            self._add_slowly(batch, order)
            return
        data = out[: result[heap_output.USED]].tobytes()
        entries = int(result[heap_output.ENTRIES])
        if kind == kernel.MAP:
            self._add_maps(batch, order, data, entries, result)
        else:
            self._body.write(data)
            self.entries += entries

    def _add_maps(self, batch: EntryBatch, order: Int64s, data: bytes, entries: int, result: Int64s) -> None:
        """Append maps, the first of which may continue the last one."""
        first_key = int(batch.key[order[0]])
        first_head = batch.data[first_key : int(result[heap_output.FIRST_END])].tobytes()
        at = self._body.tell()
        skipped = 0
        if self.entries and first_head == self._head:
            skipped = self._head_size(first_head)
            self._resize(self._size + int(result[heap_output.FIRST_SIZE]))
            entries -= 1
        self._body.write(data[skipped:])
        self.entries += entries
        if not skipped or entries:
            self._size_at = at + int(result[heap_output.LAST_AT]) - skipped
            self._size = int(result[heap_output.LAST_SIZE])
            start, end = result[[heap_output.LAST_START, heap_output.LAST_END]].tolist()
            self._head = batch.data[start:end].tobytes()

    def _head_size(self, head: bytes) -> int:
        """Return the bytes of namespace, key and size before the entries of a map."""
        namespace, key = _divide(Cursor(head), self._key, self._meta)
        return len(namespace) + len(key) + 4

    def _resize(self, size: int) -> None:
        end = self._body.tell()
        self._body.seek(self._size_at)
        self._body.write(size.to_bytes(4, "big"))
        self._body.seek(end)
        self._size = size

    def _add_slowly(self, batch: EntryBatch, order: Int64s) -> None:
        """Append entries one by one, divided by their serializers."""
        for i in order.tolist():
            composite = batch.data[batch.key[i] : batch.key_end[i]].tobytes()
            value = batch.data[batch.value[i] : batch.value_end[i]].tobytes()
            try:
                self._add_entry(composite, value)
            except StatetoolError as error:
                raise error.at(state=self._meta.name, key_group=int(batch.group[i])) from error.__cause__

    def _add_entry(self, composite: bytes, value: bytes) -> None:
        meta = self._meta
        if meta.kind == "timers":
            self._body.write(composite)
            self.entries += 1
            return
        c = Cursor(composite)
        namespace, key = _divide(c, self._key, meta)
        if meta.kind == "map" and meta.parts:
            if self.entries and composite[: c.pos] == self._head:
                self._resize(self._size + 1)
            else:
                self._body.write(namespace + key)
                self._head, self._size_at, self._size = composite[: c.pos], self._body.tell(), 1
                self._body.write((1).to_bytes(4, "big"))
                self.entries += 1
            is_null = (
                value[:1] != b"\x00"
            )  # then the heap backend writes the serialized null after the flag, but only in canonical form
            self._body.write(composite[c.pos :] + (value[:1] if is_null else value))
            return
        c.expect_end("a key")
        self._body.write(namespace + key)
        self._body.write(_list_of(value, meta.parts[0]) if meta.kind == "list" and meta.parts else value)
        self.entries += 1

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the entries, after all were added."""
        self._body.seek(0)
        while chunk := self._body.read(_COPY_BYTES):
            yield chunk
        self._body.close()


def _divide(c: Cursor, key: Serializer, meta: StateMetaInfo) -> tuple[bytes, bytes]:
    """Read key and namespace of a composite key without key group, and return namespace and key."""
    assert meta.namespace is not None
    ambiguous = key.length < 0 and meta.namespace.length < 0
    found = []
    for part in (key, meta.namespace):
        start = c.pos
        part.skip(c)
        found.append(bytes(c.data[start : c.pos]))
        if ambiguous:
            c.skip(max(1, (len(found[-1]).bit_length() + 7) // 8))
    return found[1], found[0]


def _list_of(value: bytes, element: Serializer) -> bytes:
    """Return the elements of a list after their number, without separators."""
    c, out, n = Cursor(value), Output(), 0
    while True:
        start = c.pos
        element.skip(c)
        out += value[start : c.pos]
        n += 1
        if c.pos == c.end:
            return n.to_bytes(4, "big") + bytes(out)
        if c.u1() != SEPARATOR:
            raise EncodeError("the elements of a list are not separated as Flink separates them")
