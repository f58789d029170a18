"""Removal of expired values, overdue timers and empty lists from entries of the base. Runs in tasks.

Follows ``TtlUtils.expired`` (Flink 1.6 to 2.3): a value has expired if its last access plus the time to live is not after the current time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from statetool.columns.pieces import Joined, Ranges, pack
from statetool.columns.values import StateLayout, split_list, unexpired_elements, unexpired_map_values
from statetool.errors import StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.layout import decode_times
from statetool.saving.streams.filters import AddedEntry, Bools
from statetool.saving.streams.runs import entry_batch
from statetool.snapshot.state_tables import timer_names
from statetool.snapshot.views import has_window_timers
from statetool.types.options import ReadOptions

#: Lists that become shorter: their entries, a mask of the elements that stay, starts and ends of all elements, and the number of those that stay.
ShortLists = list[tuple[Int64s, Bools, Int64s, Int64s, Int64s]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredFilter:
    """Filter of expired values, overdue timers and empty lists.

    Attributes
    ----------
    ttl_ms
        Time to live by state.
    now_ms
        The current time.
    timers_before_ms
        Exclusive upper bound of the times of removed timers, by domain (``event``, ``processing``).
    empty
        Whether lists without elements are removed.
    of_windows
        Only timers of windows are removed, instead of everything else: to count them.
    groups
        The key groups that change, ``None`` if unknown.
    """

    ttl_ms: Mapping[str, int]
    now_ms: int
    timers_before_ms: Mapping[str, int]
    empty: bool
    of_windows: bool = False
    groups: frozenset[int] | None = None

    @property
    def added(self) -> tuple[AddedEntry, ...]:
        """No entries."""
        return ()

    def may_change(self, key_group: int) -> bool:
        return self.groups is None or key_group in self.groups

    def removes(self, key_group: int) -> bool:
        return False

    def within(self, groups: frozenset[int]) -> ExpiredFilter:
        """Return the filter for a snapshot in which only these key groups change."""
        return replace(self, groups=groups)

    def for_task(self, groups: Collection[int]) -> ExpiredFilter:
        return self

    def concerns(self, meta: StateMetaInfo) -> bool:
        """Return True if entries of a state may be removed."""
        if meta.kind == "timers":
            return timer_names(meta.name)[0] in self.timers_before_ms and has_window_timers(meta) == self.of_windows
        return not self.of_windows and (meta.name in self.ttl_ms or (self.empty and meta.kind == "list"))

    def apply(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Return the remaining entries, with shorter lists; ``batch`` itself if nothing changes."""
        stays = np.ones(len(batch), dtype=np.bool_)
        lists: ShortLists = []
        for number, meta in enumerate(header.states):
            index = np.flatnonzero(batch.state == number) if self.concerns(meta) else ()
            if not len(index):
                continue
            index = np.asarray(index)
            try:
                part = batch.take(index)
                if meta.kind == "timers":
                    stays[index] = decode_times(part.data, part.key) >= self.timers_before_ms[timer_names(meta.name)[0]]
                    continue
                if meta.kind == "list":
                    filled = part.value_end > part.value
                    stays[index] = filled | (not self.empty)
                    index = index[filled]
                    part = batch.take(index)
                if meta.name in self.ttl_ms and len(index):
                    self._find_expired(meta, part, index, stays, lists)
            except StatetoolError as error:
                raise batch.locate(error.at(state=meta.name)) from None
        if lists:
            batch = shorten_lists(batch, stays, lists)
        return batch if stays.all() else batch.take(np.flatnonzero(stays))

    def _find_expired(
        self,
        meta: StateMetaInfo,
        part: EntryBatch,
        index: Int64s,
        stays: Bools,
        lists: ShortLists,
    ) -> None:
        """Mark expired entries of a state, and collect lists of which some elements have expired."""
        options = ReadOptions(ttl="hide_expired", ttl_ms=self.ttl_ms[meta.name], now_ms=self.now_ms)
        shape = StateLayout(meta)
        if shape.kind == "map" and shape.user_key is not None:
            fresh = unexpired_map_values(shape.element, part.data, part.value, part.value_end, options)
        elif shape.kind == "list":
            counts, starts, ends = split_list(shape, part.data, part.value, part.value_end)
            kept = unexpired_elements(shape.item, part.data, starts, ends, options)
            assert kept is not None
            owner = np.repeat(np.arange(len(counts)), counts)
            left = np.bincount(owner[kept], minlength=len(counts))
            fresh = left > 0
            shorter = fresh & (left < counts)
            if shorter.any():
                mine = kept & shorter[owner]
                lists.append((index[shorter], mine, starts, ends, left[shorter]))
        else:
            fresh = unexpired_elements(shape.element, part.data, part.value, part.value_end, options)
        assert fresh is not None
        stays[index] = fresh


def shorten_lists(batch: EntryBatch, stays: Bools, lists: ShortLists) -> EntryBatch:
    """Return the entries with the remaining elements of lists, which are appended to the buffer."""
    value, value_end, buffers, at = batch.value.copy(), batch.value_end.copy(), [batch.data], len(batch.data)
    for index, mine, starts, ends, counts in lists:
        elements = pack(Ranges(batch.data, starts[mine], (ends - starts)[mine]))
        values = pack(Joined(elements, counts))
        value[index], value_end[index] = at + values.offsets[:-1], at + values.offsets[1:]
        buffers.append(values.data)
        at += len(values.data)
    data = np.concatenate(buffers)
    return entry_batch(data, batch.state, batch.group, batch.key, batch.key_end, value, value_end)
