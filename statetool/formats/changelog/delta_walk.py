"""Conversion of changelog changes to deltas by kernels, with :mod:`statetool.formats.changelog.deltas` for changes that kernels cannot read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.errors import StatetoolError
from statetool.formats.changelog.changes import Changes
from statetool.formats.changelog.deltas import deltas_of
from statetool.formats.heap.walk import programs_of
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.kernels.core.codes import coded_error
from statetool.kernels.entries.changes import walk_changes
from statetool.kernels.entries.deal import LOOKED_UP, pack_groups
from statetool.kernels.entries.heap import MAX_MARKER, MORE_BYTES, SLOW
from statetool.kernels.entries.walk import FULL, KeyGroups, Rows

_FRAME_BYTES: Final = 10


class DeltaWalker:
    """Converter of changes to small canonical key groups of deltas.

    Parameters
    ----------
    header
        All states; the deltas of state ``i`` of ``n`` get the id ``n + i``.
    wanted
        Indexes of the states to convert.
    key_groups
        Key groups to convert.
    prefix
        Bytes of the key-group prefix of keys.
    """

    def __init__(self, header: KeyedHeader, wanted: frozenset[int], key_groups: frozenset[int], prefix: int) -> None:
        self.header = header
        self.wanted = wanted
        self.flags = np.array([i in wanted for i in range(len(header.states))], dtype=np.uint8)
        self.key_groups = np.array(sorted(key_groups), dtype=np.int64)
        self.prefix = prefix
        self.programs = programs_of(header)

    def packed(self, changes: Changes, ids: Mapping[int, int]) -> tuple[memoryview, list[KeyGroupRange]]:
        """Return the deltas of changes: key groups one after another, and the range of each.

        Parameters
        ----------
        ids
            Index of a state in the header by its id in the log.

        Raises
        ------
        FormatError, UnknownSerializerError
            As :func:`statetool.formats.changelog.deltas.deltas_of`; with the file.
        """
        index = np.flatnonzero(np.isin(changes.group, self.key_groups))
        walk = _Walk(self, changes, index, ids)
        walk.run()
        n = walk.rows
        state, group, *places = (c[:n] for c in walk.columns)
        order = np.lexsort((state, group))
        data = walk.buf[: int(walk.cursor[1])]
        out = np.empty(len(data) + n * (_FRAME_BYTES + self.prefix + 2) + 2, dtype=np.uint8)
        numbers, starts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        columns = (group, state + len(self.header.states), *places)
        scratch = np.empty(LOOKED_UP, dtype=np.int64)
        size, count = pack_groups(data, order, *columns, self.prefix, scratch, out, numbers, starts)
        bounds = [*starts[:count].tolist(), int(size)]
        ranges = [
            KeyGroupRange(number, start, stop - start)
            for number, start, stop in zip(numbers[:count].tolist(), bounds[:-1], bounds[1:], strict=True)
        ]
        return out[:size].data, ranges


class _Walk:
    """One walk over the changes of a window."""

    def __init__(
        self, walker: DeltaWalker, changes: Changes, index: npt.NDArray[np.intp], ids: Mapping[int, int]
    ) -> None:
        self.walker = walker
        self.changes = changes
        self.index = index
        self.ids = ids
        self.table = np.full(max(ids, default=-1) + 1, -1, dtype=np.int64)
        for state_id, number in ids.items():
            self.table[state_id] = number
        self.pos, self.end, self.group = changes.pos[index], changes.end[index], changes.group[index]
        self.cursor = np.zeros(2, dtype=np.int64)
        # The bytes of the changes, and per change the length markers of its key and the operation byte of its delta.
        capacity = int((self.end - self.pos).sum()) + len(index) * (2 * MAX_MARKER + 2)
        self.buf = np.empty(capacity, dtype=np.uint8)
        self.rows = 0
        self.columns = [np.empty(len(index) + 1, dtype=np.int64) for _ in range(6)]

    def run(self) -> None:
        walker = self.walker
        changes = KeyGroups(self.pos, self.end, self.group)
        while True:
            rows = Rows(*(c[self.rows :] for c in self.columns))
            code, n = walk_changes(
                self.changes.data, changes, self.table, walker.flags, walker.programs, self.cursor, self.buf, rows
            )
            self.rows += n
            if code == 0:
                return
            if code == FULL:
                self.columns = [np.concatenate([c, np.empty_like(c)]) for c in self.columns]
            elif code == MORE_BYTES:
                self.grow(len(self.buf))
            elif code == SLOW:
                self.read_slowly()
            else:
                raise coded_error(int(code)).at(file=self.changes.file)

    def grow(self, size: int) -> None:
        """Make room for ``size`` more bytes."""
        self.buf = np.concatenate([self.buf, np.empty(size + MAX_MARKER, dtype=np.uint8)])

    def read_slowly(self) -> None:
        """Read one change with its serializers."""
        i = int(self.cursor[0])
        number = int(self.group[i])
        try:
            for state, key, value in self.deltas(i, number):
                self.append(state, number, key, value)
        except StatetoolError as error:
            raise error.at(file=self.changes.file) from None
        self.cursor[0] = i + 1

    def deltas(self, i: int, number: int) -> Iterator[tuple[int, bytes, bytes]]:
        c = self.changes.cursor(int(self.index[i]))
        return deltas_of(c, number, self.walker.header, self.ids, self.walker.wanted)

    def append(self, state: int, group: int, key: bytes, value: bytes) -> None:
        used = int(self.cursor[1])
        middle, stop = used + len(key), used + len(key) + len(value)
        if stop > len(self.buf):
            self.grow(len(self.buf) + stop - used)
        if self.rows == len(self.columns[0]):
            self.columns = [np.concatenate([c, np.empty_like(c)]) for c in self.columns]
        self.buf[used:middle] = np.frombuffer(key, dtype=np.uint8)
        self.buf[middle:stop] = np.frombuffer(value, dtype=np.uint8)
        for column, x in zip(self.columns, (state, group, used, middle, middle, stop), strict=True):
            column[self.rows] = x
        self.rows += 1
        self.cursor[1] = stop
