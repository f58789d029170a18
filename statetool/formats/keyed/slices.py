"""Adjacent entries of a RocksDB column family in memory."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from statetool.formats.keyed.entries import Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Adjacent entries of one column family, in order; int64[n] positions in ``data``.

    Keys (with their key groups) and values lie back to back: a value starts where its key ends, the next key where it ends.
    ``final``: no more entries follow.
    """

    data: npt.NDArray[np.uint8]
    key: Int64s
    key_end: Int64s
    value_end: Int64s
    final: bool = False

    def __len__(self) -> int:
        return len(self.key)

    def part(self, start: int, stop: int) -> Slice:
        """Return the entries from ``start`` to before ``stop``."""
        base, end = self.key[start], self.value_end[stop - 1]
        selected = slice(start, stop)
        return Slice(
            data=self.data[base:end],
            key=self.key[selected] - base,
            key_end=self.key_end[selected] - base,
            value_end=self.value_end[selected] - base,
        )

    def key_at(self, index: int) -> bytes:
        """Return the key of one entry."""
        return bytes(self.data[self.key[index] : self.key_end[index]])

    def position_of(self, key: bytes) -> int:
        """Return how many entries have keys before ``key``."""
        return bisect_left(range(len(self)), key, key=self.key_at)
