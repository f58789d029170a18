"""Adjacent entries of a RocksDB column family in memory."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from statetool.formats.keyed.entries import Int64s
from statetool.kernels.arrays import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Adjacent entries of one column family, in order; int64[n] ranges of keys (with key groups) in ``keys``, and of values in ``data``.

    Both buffers may contain more. ``final``: no more entries follow.
    """

    keys: Bytes
    key: Int64s
    key_end: Int64s
    data: Bytes
    value: Int64s
    value_end: Int64s
    final: bool = False

    def __len__(self) -> int:
        return len(self.key)

    def part(self, start: int, stop: int) -> Slice:
        """Return the entries from ``start`` (inclusive) to ``stop`` (exclusive)."""
        own = slice(start, stop)
        return replace(
            self, key=self.key[own], key_end=self.key_end[own], value=self.value[own], value_end=self.value_end[own]
        )

    def key_at(self, index: int) -> bytes:
        """Return the key of one entry."""
        return bytes(self.keys[self.key[index] : self.key_end[index]])

    def position_of(self, key: bytes) -> int:
        """Return the number of entries with keys before ``key``."""
        return bisect_left(range(len(self)), key, key=self.key_at)
