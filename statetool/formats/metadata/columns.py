"""References of ``_metadata`` to files as columns, read by kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.formats.metadata.handles import FileHandle, FileReference, RelativeFileHandle, SegmentHandle
from statetool.kernels.metadata.references import COLUMNS, FULL, LOG, RELATIVE, SEGMENT, scan_subtasks

_ROWS: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceColumns:
    """References to files, in wire order.

    Attributes
    ----------
    data
        uint8[:]: the metadata file.
    rows
        int64[n, :data:`~statetool.kernels.metadata.references.COLUMNS`]: kind, start of the path, start of its last part, end, start of the
        segment (or 0), size.
    """

    data: npt.NDArray[np.uint8]
    rows: npt.NDArray[np.int64]

    def path(self, index: int) -> str:
        """Return the path of a file."""
        return self.text(int(self.rows[index, 1]), int(self.rows[index, 3]))

    def text(self, start: int, end: int) -> str:
        """Return part of a path, which is ASCII."""
        return self.data[start:end].tobytes().decode("ascii")

    def reference(self, index: int) -> FileReference:
        """Return the file as a handle, and whether it is a changelog. The logical id and scope of a segment are left out."""
        kind, _, _, _, start, size = self.rows[index].tolist()
        path, is_log = self.path(index), bool(kind & LOG)
        if kind & ~LOG == SEGMENT:
            return SegmentHandle(start=start, size_bytes=size, scope=0, path=path, logical_id=""), is_log
        if kind & ~LOG == RELATIVE:
            return RelativeFileHandle(path=path, size_bytes=size), is_log
        return FileHandle(size_bytes=size, path=path), is_log


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedSubtasks:
    """Subtasks that a kernel has read: their indexes, their references, and the position after them."""

    indexes: list[int]
    parts: Sequence[ReferenceColumns]
    end: int


class SubtaskScanner:
    """Reader of the states of subtasks by a kernel."""

    def __init__(self, data: bytes, *, changelog_of_1_14: bool) -> None:
        self._data = np.frombuffer(data, np.uint8)
        self._short = int(changelog_of_1_14)
        self._rows = np.empty((_ROWS, COLUMNS), np.int64)

    def scan(self, start: int, subtasks: int, version: int, parallelism: int) -> ScannedSubtasks:
        """Read up to ``subtasks`` subtasks, and stop at the first that only the parser of objects can read or refuse."""
        parts: list[ReferenceColumns] = []
        numbers = np.empty(subtasks, np.int64)
        done = 0
        while done < subtasks:
            code, start, more, n = scan_subtasks(
                self._data, start, version, self._short, parallelism, numbers[done:], self._rows
            )
            if n:
                parts.append(ReferenceColumns(data=self._data, rows=self._rows[:n].copy()))
            done += more
            if code == FULL and not more:
                self._rows = np.empty((2 * len(self._rows), COLUMNS), np.int64)
            elif code not in (0, FULL):
                break
        return ScannedSubtasks(indexes=numbers[:done].tolist(), parts=parts, end=start)
