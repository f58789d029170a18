"""Timers with two state ids in one stream, as one state.

After a switch of the timer service, the database of RocksDB's backend still has the timers from before, and the heap has the newer ones.
A canonical savepoint contains both under one name. Flink restores both, and a timer that both have fires once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from statetool.formats.keyed.entries import EntryBatch, Int64s


def join_doubled(batches: Iterable[EntryBatch], stored_ids: Sequence[int]) -> Iterator[EntryBatch]:
    """Yield batches with the ids of states instead of stored ids, and each timer once.

    Parameters
    ----------
    stored_ids
        The index of the state of each stored id (:attr:`~statetool.formats.keyed.header.KeyedHeader.stored_ids`).
    """
    ids = np.array(stored_ids, dtype=np.int64)
    doubled = np.bincount(ids) > 1
    seen: set[bytes] = set()
    group = -1
    for batch in batches:
        renumbered = replace(batch, state=ids[batch.state])
        repeated = []
        for i in np.flatnonzero(doubled[renumbered.state]).tolist():
            if batch.group[i] != group:
                group, seen = int(batch.group[i]), set()
            entry = b"%d:%b" % (renumbered.state[i], bytes(batch.data[batch.key[i] : batch.key_end[i]]))
            if entry in seen:
                repeated.append(i)
            seen.add(entry)
        yield renumbered if not repeated else renumbered.take(_without(len(batch), repeated))


def _without(n: int, left_out: Sequence[int]) -> Int64s:
    """Return the numbers below ``n`` without some."""
    return np.delete(np.arange(n), left_out)
