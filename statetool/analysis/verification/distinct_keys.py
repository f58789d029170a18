"""Number of distinct keys among those that were seen, in bounded memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from statetool.formats.keyed.distinct import Hashes
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.comparison import hash_spans

#: Up to this number, the count is exact.
MOST: Final = 1 << 20
_SEED: Final = np.array([1], dtype=np.uint64)
_RANGE: Final = float(1 << 64)


class DistinctKeys:
    """Hashes of keys. If there are more than :data:`MOST`, only the smallest stay, and their density gives the number.

    The entries of one key are in several batches: RocksDB stores states one after another.
    """

    def __init__(self, hashes: Hashes | None = None, *, is_estimate: bool = False) -> None:
        self._hashes: Hashes = np.empty(0, dtype=np.uint64) if hashes is None else hashes
        self._new: list[Hashes] = []
        self.is_estimate = is_estimate

    def add(self, batch: EntryBatch, start: Int64s, end: Int64s) -> None:
        """Add keys by their bytes ``start .. end``."""
        hashes: Hashes = np.empty(len(start), dtype=np.uint64)
        hash_spans(batch.data, start, end, np.zeros(len(start), dtype=np.int64), _SEED, hashes)
        self._new.append(hashes)
        if sum(map(len, self._new)) > max(len(self._hashes), MOST // 8):
            self._merge()

    def copy(self) -> DistinctKeys:
        """Return a copy that does not change with this one."""
        self._merge()
        return DistinctKeys(self._hashes, is_estimate=self.is_estimate)

    @property
    def number(self) -> int:
        """The number of distinct keys."""
        self._merge()
        if not self.is_estimate:
            return len(self._hashes)
        return round((len(self._hashes) - 1) * _RANGE / float(self._hashes[-1]))

    def _merge(self) -> None:
        if self._new:
            merged: Hashes = np.unique(np.concatenate([self._hashes, *self._new]))
            self.is_estimate |= len(merged) > MOST
            self._hashes, self._new = merged[:MOST], []
