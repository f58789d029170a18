"""Write canonical keyed streams, one key group after the other, with bounded memory (``FullSnapshotAsyncWriter``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from statetool.formats.compression import FrameWriter

Write: TypeAlias = Callable[[bytes | bytearray | memoryview], object]
Int64s: TypeAlias = npt.NDArray[np.int64]


class KeyedStreamWriter:
    """One subtask's stream: its header, then key groups in ascending order.

    Parameters
    ----------
    write
        Takes the bytes of the stream.
    header
        Bytes of the header, whose compression flag must agree with ``compressed``.
    key_groups
        Those of the subtask.

    Attributes
    ----------
    offsets
        Of each key group, 0 where it is empty, as the handle keeps them.
    size_bytes
        Bytes written so far.
    """

    def __init__(self, write: Write, header: bytes, key_groups: range, *, compressed: bool) -> None:
        self._write = write
        self._compressed = compressed
        self._groups = key_groups
        self.offsets = np.zeros(len(key_groups), dtype=np.int64)
        self.size_bytes = 0
        self._append(header)

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        self._write(data)
        self.size_bytes += len(data)

    def add_groups(self, data: npt.NDArray[np.uint8], numbers: Int64s, starts: Int64s) -> None:
        """Append whole key groups that lie one after another in ``data``.

        Parameters
        ----------
        numbers
            int64[k], ascending, each larger than those before.
        starts
            int64[k + 1], where each starts in ``data``, and the end.
        """
        if self._compressed:
            for i in range(len(numbers)):
                with self.group(int(numbers[i])) as append:
                    append(data[starts[i] : starts[i + 1]].data)
        elif len(numbers):
            self.offsets[numbers - self._groups.start] = self.size_bytes + starts[:-1] - starts[0]
            self._append(data[starts[0] : starts[-1]].data)

    @contextmanager
    def group(self, number: int) -> Iterator[Write]:
        """Append one key group piece by piece, by what this gives; the pieces make one canonical key group."""
        self.offsets[number - self._groups.start] = self.size_bytes
        if not self._compressed:
            yield self._append
            return
        framed = FrameWriter(self._append)
        yield framed.write
        framed.flush()


class GroupJoiner:
    """Joins canonical pieces of one key group, sorted by state, into one: it may be larger than memory.

    A piece's last entry of a state is the last one only if the next piece goes on with another state, so each piece is held back
    until the next one is there.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._held: Any = None
        self._last_state = -1
        self._last_key = 0

    def add(self, piece: npt.NDArray[np.uint8], *, first_state: int, last_state: int, last_entry_bytes: int) -> None:
        """Append a piece: a canonical key group of its own.

        Parameters
        ----------
        last_entry_bytes
            Bytes of its last entry, lengths and prefix included.
        """
        if self._held is not None:
            goes_on = first_state == self._last_state
            if goes_on:
                self._held[self._last_key] &= 0x7F
            self._write(self._held[:-2].data)
            piece = piece[2:] if goes_on else piece
        self._held = piece
        self._last_state = last_state
        self._last_key = len(piece) - 2 - last_entry_bytes + 4

    def finish(self) -> None:
        """Write the last piece."""
        if self._held is not None:
            self._write(self._held.data)
