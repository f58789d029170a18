"""Selected states of a header, and the keys of their entries."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from statetool.entries.keys import SplitKeys, split_keys
from statetool.formats.keyed.entries import EntryBatch, Int64s
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.distinct import hash_ranges

#: Bytes before the key of a timer: its timestamp.
TIMESTAMP_BYTES = 8


class StateSelection:
    """Selection of states of a header.

    Parameters
    ----------
    names
        Their names; ``None`` for all. Names that are not in the header are ignored.
    """

    def __init__(self, header: KeyedHeader, names: Collection[str] | None) -> None:
        self.header = header
        #: Metadata of the states by their ids.
        self.metas = {i: m for i, m in enumerate(header.states) if names is None or m.name in names}

    def split(self, batch: EntryBatch, state: int) -> tuple[EntryBatch, SplitKeys]:
        """Return the entries of a state with the parts of their keys."""
        entries = batch.of_state(state)
        return entries, split_keys(entries, self.header.key, self.metas[state])

    def hashes(self, window: EntryBatch) -> npt.NDArray[np.uint64]:
        """Return a hash of each entry's key (or of the complete timer), 0 for entries of states that are not selected.

        The deltas of a changelog, whose state ids follow those of entries, get the hashes of the entries that they change.
        """
        hashes = np.zeros(len(window), dtype=np.int64)
        state = window.state % max(1, len(self.header.states))
        for number, meta in self.metas.items():
            index = np.flatnonzero(state == number)
            if len(index):
                hashes[index] = self._key_hashes(window.take(index), meta) | 1
        return hashes.view(np.uint64)

    def _key_hashes(self, entries: EntryBatch, meta: StateMetaInfo) -> Int64s:
        start, stop = entries.key, entries.key_end
        if meta.kind != "timers":
            keys = split_keys(entries, self.header.key, meta)
            start, stop = keys.key, keys.key_end
        hashes = np.empty(len(entries), dtype=np.int64)
        hash_ranges(entries.data, start, stop, entries.group, hashes)
        return hashes


def key_starts(batch: EntryBatch, header: KeyedHeader) -> Int64s:
    """Return the start of the key in each entry: in timers it follows the timestamp."""
    timers = np.array([m.kind == "timers" for m in header.states], dtype=np.bool_)
    if not timers.any():
        return batch.key
    return batch.key + np.where(timers[batch.state], TIMESTAMP_BYTES, 0)
