"""Adjacent entries of a RocksDB column family in memory."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from statetool.kernels.core.arrays import Bytes, Int64s, frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Adjacent entries of one column family, in order, one after another in ``data``: key, value, key, value.

    The ranges are int64[n]. A value starts at the end of its key. ``data`` may contain more. ``final``: no more entries follow.
    """

    data: Bytes
    key: Int64s
    key_end: Int64s
    value_end: Int64s
    final: bool = False

    def __len__(self) -> int:
        return len(self.key)

    def part(self, start: int, stop: int) -> Slice:
        """Return the entries from ``start`` (inclusive) to ``stop`` (exclusive)."""
        own = slice(start, stop)
        return replace(self, key=self.key[own], key_end=self.key_end[own], value_end=self.value_end[own])

    def key_at(self, index: int) -> bytes:
        """Return the key of one entry."""
        return bytes(self.data[self.key[index] : self.key_end[index]])

    def position_of(self, key: bytes) -> int:
        """Return the number of entries with keys before ``key``."""
        return bisect_left(range(len(self)), key, key=self.key_at)


_NO_POSITIONS: Final = np.empty(0, dtype=np.int64)
#: No entries of a column family.
NO_ENTRIES: Final = Slice(
    data=frozen(np.empty(0, dtype=np.uint8)), key=_NO_POSITIONS, key_end=_NO_POSITIONS, value_end=_NO_POSITIONS
)
