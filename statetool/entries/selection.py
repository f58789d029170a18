"""Selected states of a header, and the keys of their entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from statetool.entries.keys import SplitKeys, check_whole, find_parts, split_keys
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.distinct import hash_ranges
from statetool.kernels.values.program import Op

#: Bytes before the key of a timer: its timestamp.
TIMESTAMP_BYTES = 8


@dataclass(frozen=True, slots=True)
class SplitStates:
    """Entries of states whose keys have the same layout, state by state, with the parts of their keys. ``ends`` is the end of each state."""

    states: list[int]
    entries: EntryBatch
    keys: SplitKeys
    ends: list[int]

    def each(self, wanted: Container[int] | None = None) -> Iterator[tuple[int, EntryBatch, SplitKeys]]:
        """Yield each state, or those that are ``wanted``, with its entries and the parts of their keys."""
        start = 0
        for state, end in zip(self.states, self.ends, strict=True):
            if wanted is None or state in wanted:
                yield state, self.entries.take(slice(start, end)), self.keys.of(slice(start, end))
            start = end


class StateSelection:
    """Selection of states of a header.

    Parameters
    ----------
    names
        Their names; ``None`` for all. Names that are not in the header are ignored.
    """

    def __init__(self, header: KeyedHeader, names: Collection[str] | None) -> None:
        self.header = header
        selected = None if names is None else frozenset(names)
        #: Metadata of the states by their ids.
        self.metas = {i: m for i, m in enumerate(header.states) if selected is None or m.name in selected}

    def split(self, batch: EntryBatch, state: int) -> tuple[EntryBatch, SplitKeys]:
        """Return the entries of a state with the parts of their keys."""
        entries = batch.of_state(state)
        return entries, split_keys(entries, self.header.key, self.metas[state])

    def split_layouts(self, batch: EntryBatch, states: Iterable[int]) -> Iterator[SplitStates]:
        """Split the keys of several states, apart from timers. Those of the same layout are split together.

        Raises
        ------
        DecodeError
            A key does not fit its serializers; the offset is the position in ``batch.data``.
        """
        alike: dict[int, list[int]] = defaultdict(list)
        for state in states:
            alike[self._layouts[state]].append(state)
        for of_layout in alike.values():
            entries = batch.of_states(of_layout)
            keys = find_parts(entries, self.header.key, self.metas[of_layout[0]])
            bounds = [batch.bounds().get(state, (0, 0)) for state in of_layout]
            ends = np.cumsum([high - low for low, high in bounds]).tolist()
            part = SplitStates(of_layout, entries, keys, ends)
            for state, of_state, split in part.each():
                if self.metas[state].kind != "map":
                    check_whole(split.user_key, of_state.key_end)
            yield part

    @cached_property
    def _layouts(self) -> dict[int, int]:
        """The number of the layout of keys of each state, apart from timers."""
        layouts: dict[tuple[Op, bool], int] = {}
        needs_frame = self.header.key.needs_frame
        return {
            state: layouts.setdefault((meta.namespace.program(), needs_frame and meta.kind == "map"), len(layouts))
            for state, meta in self.metas.items()
            if meta.namespace is not None
        }

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
