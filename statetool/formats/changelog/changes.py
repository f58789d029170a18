"""Changes of a change set as arrays; for the format see :mod:`statetool.formats.changelog.change_sets`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.errors import FormatError
from statetool.formats.changelog.change_sets import ChangeFiles, ChangeSet
from statetool.io.cursor import Cursor
from statetool.kernels.entries.changes import CHANGE_MESSAGES, index_changes
from statetool.kernels.entries.walk import FULL

WINDOW_BYTES: Final = 8 << 20
_SMALLEST_CHANGE: Final = 5


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in one buffer: the key group of each (int64[n]) and its bytes."""

    data: npt.NDArray[np.uint8]
    group: npt.NDArray[np.int64]
    pos: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    base: int
    file: str

    def cursor(self, i: int) -> Cursor:
        """Return a cursor over the bytes of one change."""
        return Cursor(self.data.data, int(self.pos[i]), int(self.end[i]), base=self.base)


def read_changes(files: ChangeFiles, change_set: ChangeSet, *, window: int = WINDOW_BYTES) -> Iterator[Changes]:
    """Yield the changes of one change set in windows of about ``window`` bytes, in order.

    Raises
    ------
    FormatError
        Damaged; with file and offset (of uncompressed bytes after the flag if the file is compressed).
    """
    f = files.open(change_set.stream)
    size = f.stream.size_bytes
    at = change_set.offset
    length = window
    cursor = np.array([0, -1, 0, 0], dtype=np.int64)
    while True:
        if not 0 <= at <= size:
            raise FormatError(f"a change set at {at} of {size} bytes").at(file=change_set.stream.file)
        length = min(length, size - at)
        data = np.frombuffer(f.read_at(at, length), dtype=np.uint8)
        capacity = length // _SMALLEST_CHANGE + 1
        group, pos, stop = (np.empty(capacity, dtype=np.int64) for _ in range(3))
        before = cursor.copy()
        code, n = index_changes(data, length, size - at, cursor, group, pos, stop)
        base = f.stream.start + at
        if code not in (0, FULL):
            raise FormatError(CHANGE_MESSAGES[int(code)]).at(file=change_set.stream.file, offset=base + int(cursor[0]))
        if n:
            yield Changes(data, group[:n], pos[:n], stop[:n], base, change_set.stream.file)
        if code == 0:
            return
        length = length * 2 if (cursor == before).all() else window
        at += int(cursor[0])
        cursor[0] = 0
