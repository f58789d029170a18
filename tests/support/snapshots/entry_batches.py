"""Entry batches from records."""

from __future__ import annotations

import numpy as np

from statetool.formats.keyed.entries import EntryBatch
from statetool.saving.streams.runs import entry_batch

Record = tuple[int, int, bytes, bytes]


def batch_of(records: list[Record]) -> EntryBatch:
    """Return an entry batch of ``(key group, state, key, value)``."""
    data, rows = bytearray(), []
    for group, state, key, value in records:
        at = len(data)
        data += key + value
        rows.append((state, group, at, at + len(key), at + len(key), len(data)))
    state, group, key, key_end, value, value_end = np.array(rows, dtype=np.int64).T
    return entry_batch(
        np.frombuffer(bytes(data), dtype=np.uint8), state, group, key, key_end, value, value_end
    )  # fmt: skip
