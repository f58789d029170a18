"""Measured entries of one state: pieces of keys and values that are written into one buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetool.columns.pieces import Piece
from statetool.formats.keyed.entries import EntryBatch
from statetool.kernels.core.arrays import Int64s
from statetool.saving.streams.runs import entry_batch


@dataclass(frozen=True, slots=True)
class MeasuredEntries:
    """Measured entries of one state: key group, key and value of each."""

    state: int
    groups: Int64s
    keys: Piece
    values: Piece

    @classmethod
    def batch(cls, parts: Sequence[MeasuredEntries]) -> EntryBatch:
        """Write entries into one buffer, each value after its key."""
        keys = np.concatenate([p.keys.sizes for p in parts])
        values = np.concatenate([p.values.sizes for p in parts])
        end = np.cumsum(keys + values)
        value = end - values
        key = value - keys
        data = np.zeros(int(end[-1]) if len(end) else 0, dtype=np.uint8)
        at = 0
        for p in parts:
            span = slice(at, at + len(p.groups))
            p.keys.fill(data, key[span])
            p.values.fill(data, value[span])
            at = span.stop
        state = np.repeat(np.array([p.state for p in parts], dtype=np.int64), [len(p.groups) for p in parts])
        group = np.concatenate([p.groups for p in parts])
        return entry_batch(data, state, group, key, value, value, end)
