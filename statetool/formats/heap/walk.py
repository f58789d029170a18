"""Key groups in the layout of the heap backend as entry batches, by kernels, with bounded memory.

Entries with ends that kernels cannot find are read one by one by :mod:`statetool.formats.heap.layout`, which also produces the error for
damaged bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError, StatetoolError
from statetool.formats.compression import read_chunks, stream_chunks
from statetool.formats.heap.layout import read_entry
from statetool.formats.keyed.entries import EntryBatch, RebuiltBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, adjacent
from statetool.formats.state_meta import PRIORITY_QUEUE, StateMetaInfo
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.kernels.core.codes import MESSAGES, UNKNOWN_OPERATION
from statetool.kernels.entries import heap as kernel
from statetool.kernels.entries.walk import BAD_LENGTH, BAD_PREFIX, BAD_STATE, FULL, WALK_MESSAGES, KeyGroups, Rows
from statetool.kernels.values.program import Constant, Op
from statetool.kernels.values.skip_program import compile_skips
from statetool.serializers.core.base import blame

NUMBER_BYTES: Final = 4
_ROOM: Final = 64 << 10
_LEAST_ROWS: Final = 1 << 10
#: Estimated bytes of an entry, for the allocation of rows.
_ENTRY_BYTES: Final = 16
_MESSAGES: Final = {
    BAD_PREFIX: "expected the number of the key group",
    BAD_STATE: "a state id that the header does not have, or that came before",
    BAD_LENGTH: WALK_MESSAGES[BAD_LENGTH],
    UNKNOWN_OPERATION: MESSAGES[UNKNOWN_OPERATION][0],
}
_NO_BYTES: Final = Constant(0)


def programs_of(header: KeyedHeader) -> kernel.StatePrograms:
    """Compile the programs that find the ends of namespaces, keys and values."""
    ops: list[Op] = [header.key.program()]
    for meta in header.states:
        ops += _ops_of(meta)
    words, starts = compile_skips(ops)
    table = np.zeros((len(header.states), 5), dtype=np.int64)
    for i, meta in enumerate(header.states):
        namespace, first, second = starts[1 + 3 * i : 4 + 3 * i]
        kind = _kind(meta)
        ambiguous = meta.namespace is not None and header.key.length < 0 and meta.namespace.length < 0
        if min(namespace, first, second) < 0 or (starts[0] < 0 and kind != kernel.TIMERS):
            kind = kernel.UNKNOWN
        table[i] = kind, ambiguous, namespace, first, second
    return kernel.StatePrograms(words, starts[0], table)


def _kind(meta: StateMetaInfo) -> int:
    if meta.backend_type == PRIORITY_QUEUE:
        return kernel.TIMERS
    if not meta.parts:
        return kernel.VALUE
    return kernel.LIST if meta.kind == "list" else kernel.MAP


def _ops_of(meta: StateMetaInfo) -> tuple[Op, Op, Op]:
    namespace = _NO_BYTES if meta.namespace is None else meta.namespace.program()
    programs = [p.program() for p in meta.parts] or [meta.value.program()]
    return namespace, programs[0], programs[1] if len(programs) > 1 else _NO_BYTES


def read_heap(f: OpenStream, groups: Sequence[KeyGroupRange], header: KeyedHeader) -> EntryBatch:
    """Read all entries of key groups at once.

    Raises
    ------
    FormatError
        Damaged; with file, offset and key group.
    UnknownSerializerError
        The end of a key or value cannot be found.
    """
    base = f.stream.start
    buffers: list[Any] = []
    starts, bases, at = [], [], 0
    for run in adjacent(groups):
        raw = f.read_at(run[0].offset, sum(g.size_bytes for g in run))
        if not header.compressed:
            buffers.append(raw)
        for group in run:
            size = group.size_bytes
            if header.compressed:
                start = group.offset - run[0].offset
                chunks = _uncompress(raw[start : start + size], base + group.offset, group.number, f.stream.file)
                buffers += chunks
                size = sum(map(len, chunks))
            starts.append(at)
            bases.append(base + group.offset)
            at += size
    data = np.frombuffer(buffers[0] if len(buffers) == 1 else b"".join(buffers), dtype=np.uint8)
    edges = np.array([*starts, at], dtype=np.int64)
    walker = _Walker(data, edges[:-1], edges[1:], [g.number for g in groups], bases, header, f.stream.file)
    walker.walk(len(data))
    return walker.batch()


def _uncompress(raw: memoryview, base: int, key_group: int, file: str) -> list[bytes]:
    """Uncompress a key group: its number, and its sections."""
    try:
        chunks = read_chunks(raw[NUMBER_BYTES:], base=base + NUMBER_BYTES) if len(raw) > NUMBER_BYTES else ()
        return [bytes(raw[:NUMBER_BYTES]), *(chunk.data for chunk in chunks)]
    except StatetoolError as error:
        raise error.at(file=file, key_group=key_group) from None


def heap_windows(f: OpenStream, group: KeyGroupRange, header: KeyedHeader, *, window: int) -> Iterator[EntryBatch]:
    """Read one key group of any size in windows of complete entries of about ``window`` bytes.

    Raises
    ------
    FormatError, UnknownSerializerError
        As :func:`read_heap`.
    """
    with _open_plain(f, group, header) as (plain, offset, size):
        base = f.stream.start + group.offset
        at, length = 0, window
        cursor: npt.NDArray[np.int64] | None = None
        seen = np.zeros(len(header.states), dtype=np.uint8)
        while at < size or cursor is None:
            length = min(length, size - at)
            data = np.frombuffer(plain.read_at(offset + at, length), dtype=np.uint8)
            edges = np.array([0]), np.array([size - at])
            walker = _Walker(data, *edges, [group.number], [base + at], header, f.stream.file, seen=seen)
            if cursor is not None:
                walker.resume(cursor)
            done = walker.walk(length)
            if len(batch := walker.batch()):
                yield batch
            if done:
                return
            moved = int(walker.cursor[kernel.POSITION])
            if moved <= 0 and length == size - at:
                raise FormatError("the key group ends inside an entry").at(
                    file=f.stream.file, key_group=group.number, offset=base + at
                )
            length = length * 2 if moved <= 0 else window
            at += max(moved, 0)
            cursor = walker.cursor.copy()
            cursor[kernel.POSITION] = -1 if moved < 0 else 0


@contextmanager
def _open_plain(f: OpenStream, group: KeyGroupRange, header: KeyedHeader) -> Iterator[tuple[OpenStream, int, int]]:
    """Open a key group uncompressed: stream, offset, size. A compressed one is first uncompressed to a temporary file."""
    if not header.compressed:
        yield f, group.offset, group.size_bytes
        return
    start, size = group.offset + NUMBER_BYTES, group.size_bytes - NUMBER_BYTES
    with tempfile.NamedTemporaryFile(prefix="statetool-") as spill:
        spill.write(f.read_at(group.offset, NUMBER_BYTES))
        try:
            for chunk in stream_chunks(lambda o, n: f.read_at(start + o, n), size, base=f.stream.start + start):
                spill.write(chunk.data)
        except StatetoolError as error:
            raise error.at(file=f.stream.file, key_group=group.number) from None
        spill.flush()
        with Stream(file=spill.name, start=0, size_bytes=spill.tell()).open() as plain:
            yield plain, 0, plain.stream.size_bytes


class _Walker:
    """Walk over key groups in one buffer."""

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        numbers: Sequence[int],
        bases: Sequence[int],
        header: KeyedHeader,
        file: str,
        *,
        seen: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        data.flags.writeable = False
        self.data, self.starts, self.ends, self.bases = data, starts, ends, bases
        self.numbers = np.array(numbers, dtype=np.int64)
        self.header = header
        self.file = file
        self.programs = programs_of(header)
        self.seen = np.zeros(len(header.states), dtype=np.uint8) if seen is None else seen
        self.cursor = np.array([0, -1, -1, 0, len(data)], dtype=np.int64)
        self.buf = np.empty(len(data) + len(data) // 4 + _ROOM, dtype=np.uint8)
        self.buf[: len(data)] = data
        self.rows = 0
        self.columns = [np.empty(len(data) // _ENTRY_BYTES + _LEAST_ROWS, dtype=np.int64) for _ in range(6)]

    def resume(self, cursor: npt.NDArray[np.int64]) -> None:
        """Continue from the cursor of the walk over the preceding bytes."""
        self.cursor[: kernel.USED] = cursor[: kernel.USED]

    def walk(self, limit: int) -> bool:
        """Walk over all complete entries; return True if they reach the end."""
        groups = KeyGroups(self.starts, self.ends, self.numbers)
        while True:
            rows = Rows(*(c[self.rows :] for c in self.columns))
            code, n = kernel.walk_heap(self.data, limit, groups, self.programs, self.seen, self.cursor, self.buf, rows)
            self.rows += n
            if code in (0, FULL):
                return bool(code == 0)
            if code == kernel.MORE_ROWS:
                self.columns = [np.concatenate([c, np.empty_like(c)]) for c in self.columns]
            elif code == kernel.MORE_BYTES:
                self.grow(len(self.buf))
            elif code == kernel.SLOW:
                if not self.read_slowly(limit):
                    return False
            else:
                raise self.error(FormatError(_MESSAGES[int(code)]))

    def grow(self, size: int) -> None:
        """Make room for ``size`` more bytes."""
        self.buf = np.concatenate([self.buf, np.empty(size, dtype=np.uint8)])

    def read_slowly(self, limit: int) -> bool:
        """Read with serializers: the next entry, or all remaining ones of a state that kernels do not know.

        Return ``False`` if an entry continues after the available bytes.
        """
        while self.read_one(limit):
            unknown = self.programs.states[self.cursor[kernel.STATE], kernel.KIND] == kernel.UNKNOWN
            if not unknown or not self.cursor[kernel.LEFT]:
                return True
        return False

    def read_one(self, limit: int) -> bool:
        """Read one entry with its serializers; return ``False`` if it continues after the available bytes."""
        k, position, number = (int(x) for x in self.cursor[:3])
        meta = self.header.states[number]
        end = int(self.ends[k])
        c = Cursor(self.data.data, position, min(end, limit), base=self.bases[k] - int(self.starts[k]))
        try:
            entries = list(read_entry(c, self.header.key, meta))
        except FormatError as error:
            if limit < end:
                return False
            raise self.error(error.at(state=meta.name)) from None
        except StatetoolError as error:
            raise self.error(error.at(state=meta.name)) from None
        for key, value in entries:
            self.append(number, k, key, value)
        self.cursor[kernel.POSITION] = c.pos
        self.cursor[kernel.LEFT] -= 1
        return True

    def append(self, number: int, k: int, key: bytes, value: bytes) -> None:
        used = int(self.cursor[kernel.USED])
        if used + len(key) + len(value) > len(self.buf):
            self.grow(len(self.buf) + len(key) + len(value))
        if self.rows == len(self.columns[0]):
            self.columns = [np.concatenate([c, np.empty_like(c)]) for c in self.columns]
        middle, stop = used + len(key), used + len(key) + len(value)
        self.buf[used:middle] = np.frombuffer(key, dtype=np.uint8)
        self.buf[middle:stop] = np.frombuffer(value, dtype=np.uint8)
        for column, x in zip(self.columns, (number, self.numbers[k], used, middle, middle, stop), strict=True):
            column[self.rows] = x
        self.rows += 1
        self.cursor[kernel.USED] = stop

    def error(self, error: StatetoolError) -> StatetoolError:
        k = min(int(self.cursor[kernel.GROUP]), len(self.numbers) - 1)
        at = max(int(self.cursor[kernel.POSITION]), int(self.starts[k])) - int(self.starts[k])
        # Values have no length prefix here: a value read with a wrong declaration shifts all data after it.
        blame(error, self.header.key, *(s for m in self.header.states for s in m.serializers.values()))
        return error.at(offset=self.bases[k] + at, file=self.file, key_group=int(self.numbers[k]))

    def batch(self) -> EntryBatch:
        """Return the entries walked so far."""
        state, group, key, key_end, value, value_end = (c[: self.rows] for c in self.columns)
        data = self.buf[: int(self.cursor[kernel.USED])]
        data.flags.writeable = False
        return RebuiltBatch(
            data=data, state=state, group=group, key=key, key_end=key_end, value=value, value_end=value_end,
            regions=(), file=self.file,
        )  # fmt: skip
