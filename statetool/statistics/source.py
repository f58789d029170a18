"""Measure the entries of one source of keyed state, in a task. Sizes follow from offsets, so values are not decoded.

Counts add up over sources. Only the keys of the few largest items are decoded, for display.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.columns.values import StateLayout, big_endian, split_list
from statetool.entries.form import ALL_ENTRIES, EntryRequest, KeyGroupReader
from statetool.entries.keys import SplitKeys, split_keys
from statetool.errors import UNREAD, StatetoolError
from statetool.formats.compression import packed_size
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.naming import named_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.hashing.keys import decode_key
from statetool.kernels import program as ir
from statetool.kernels.arrays import Positions
from statetool.kernels.sizes import fixed_size
from statetool.statistics.extremes import Extreme, extreme, largest, top
from statetool.statistics.spans import AGE_EDGES, SIZE_CLASSES, TIMER_EDGES, count_spans, size_class, size_classes
from statetool.types.display import display_value
from statetool.types.options import Columns

_KEY, _VALUE, _LENGTH = range(3)
#: The counts of each state and key group.
COUNTS: Final = ("entries", "keys", "key_bytes", "value_bytes")
_ACCESS_BYTES: Final = 8
_SIGN: Final = np.int64(-(1 << 63))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureTask:
    """Measurement of one task; picklable. Rows of keys have ``field_names``, ``most`` of the largest items are kept, and times count from ``now_ms``."""

    source: KeyGroupReader
    operator: str
    most: int
    now_ms: int
    ttl_ms: int | None
    sample_bytes: int
    field_names: Columns = ()

    def reads(self) -> tuple[KeyGroupReader, EntryRequest]:
        return self.source, ALL_ENTRIES


@dataclass(slots=True)
class Times:
    """Times of one state, by span."""

    counts: Positions
    expired: int = 0
    first_ms: int = np.iinfo(np.int64).max
    last_ms: int = np.iinfo(np.int64).min

    def add(self, other: Times) -> None:
        """Add the times of another source."""
        self.counts = self.counts + other.counts
        self.expired += other.expired
        self.first_ms = min(self.first_ms, other.first_ms)
        self.last_ms = max(self.last_ms, other.last_ms)


@dataclass(slots=True, kw_only=True)
class Measured:
    """Measurements of a source: ``counts`` of :data:`COUNTS` by state and key group, int64[states, groups, 4].

    ``key_counts`` int64[groups] counts distinct keys over all states. ``sizes`` int64[states, 3, 64] counts key bytes, value bytes and
    lengths by their size. ``snappy`` are bytes of a sample, plain and compressed. ``unread`` is the reason why nothing was read.
    """

    states: tuple[str, ...]
    groups: tuple[int, ...]
    subtask: int
    keys_known: bool
    counts: npt.NDArray[np.int64]
    key_counts: Positions
    sizes: npt.NDArray[np.int64]
    largest_value: Positions
    extremes: dict[str, list[Extreme]] = field(default_factory=dict)
    ages: dict[str, Times] = field(default_factory=dict)
    timers: dict[str, Times] = field(default_factory=dict)
    snappy: tuple[int, int] = (0, 0)
    unread: str = ""

    @classmethod
    def of(
        cls,
        subtask: int,
        key_groups: Iterable[int],
        *,
        states: tuple[str, ...] = (),
        keys_known: bool = False,
        unread: str = "",
    ) -> Measured:
        """Return counts of 0 for each state and key group."""
        n, groups = len(states), tuple(sorted(key_groups))
        return cls(
            states=states,
            groups=groups,
            subtask=subtask,
            keys_known=keys_known,
            counts=np.zeros((n, len(groups), len(COUNTS)), dtype=np.int64),
            key_counts=np.zeros(len(groups), dtype=np.int64),
            sizes=np.zeros((n, 3, SIZE_CLASSES), dtype=np.int64),
            largest_value=np.zeros(n, dtype=np.int64),
            unread=unread,
        )


def measure(task: MeasureTask) -> Measured:
    """Measure a source; if statetool cannot read it, all counts are 0, and ``unread`` of the result gives the reason.

    Raises
    ------
    FormatError, DecodeError
        Damaged bytes; with operator, file, offset and key group if known.
    """
    try:
        return _measure(task)
    except UNREAD as error:
        return Measured.of(task.source.subtask, task.source.group_sizes(), unread=str(error.at(operator=task.operator)))


def _measure(task: MeasureTask) -> Measured:
    meter = _Meter(task)
    request = EntryRequest(whole_keys=meter.measured.keys_known, reads_on=True)
    for batch in task.source.batches(request):
        try:
            meter.add(batch)
        except StatetoolError as error:
            raise batch.locate(error).at(operator=task.operator) from None
    return meter.done()


class _Meter:
    """Accumulator of the batches of one source."""

    def __init__(self, task: MeasureTask) -> None:
        self.task = task
        self.header = header = named_header(task.source.header(), task.field_names)
        self.groups = np.array(sorted(task.source.group_sizes()), dtype=np.int64)
        self.shapes = {i: StateLayout(m) for i, m in enumerate(header.states) if m.kind != "timers"}
        names = tuple(m.name for m in header.states)
        self.measured = Measured.of(
            task.source.subtask, task.source.group_sizes(), states=names, keys_known=not header.key.needs_frame
        )

    def add(self, batch: EntryBatch) -> None:
        """Add entries; all entries of a key are in one batch."""
        group_index = np.searchsorted(self.groups, batch.group)
        self.count(batch, group_index)
        start, end = batch.key.copy(), batch.key_end.copy()
        keyed = np.zeros(len(batch), dtype=np.bool_)
        for state in batch.states():
            meta, entries = self.header.states[state], batch.of_state(state)
            if meta.kind == "timers":
                self.times_of_timers(meta, entries)
                continue
            keys = split_keys(entries, self.header.key, meta) if self.measured.keys_known else None
            if keys is not None:
                index = batch.index_of(state)
                start[index], end[index] = keys.key, keys.key_end
                keyed[index] = True
            self.values(state, meta, entries, keys)
        if self.measured.keys_known:
            self.keys(batch, np.flatnonzero(keyed), group_index, start, end)
        self.sample(batch)

    def count(self, batch: EntryBatch, group_index: Positions) -> None:
        """Count the entries and their bytes by state and key group, and their sizes by state."""
        shape = self.measured.counts.shape[:2]
        place = batch.state * shape[1] + group_index
        self.measured.counts[:, :, 0] += np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
        sizes = {_KEY: batch.key_end - batch.key, _VALUE: batch.value_end - batch.value}
        for what, size in sizes.items():
            counted = np.bincount(place, weights=size, minlength=shape[0] * shape[1]).reshape(shape)
            self.measured.counts[:, :, 2 + what] += counted.astype(np.int64)
            classes = np.bincount(batch.state * SIZE_CLASSES + size_class(size), minlength=shape[0] * SIZE_CLASSES)
            self.measured.sizes[:, what] += classes.reshape(shape[0], SIZE_CLASSES)

    # ---- keys ---------------------------------------------------------------------------------

    def keys(
        self, batch: EntryBatch, keyed: Positions, group_index: Positions, start: Positions, end: Positions
    ) -> None:
        """Count distinct keys, per state and overall, and keep those with the most bytes."""
        if not len(keyed):
            return
        all_keyed = len(keyed) == len(batch)
        start, end, group = (start, end, batch.group) if all_keyed else (start[keyed], end[keyed], batch.group[keyed])
        ids, first = distinct(batch.data, start, end, group)
        n, k = len(first), len(self.groups)
        key_group_index = group_index[keyed][first]
        self.measured.key_counts += np.bincount(key_group_index, minlength=k)
        id_of = np.empty(len(batch), dtype=np.int64)
        id_of[keyed] = ids
        for state in batch.states():
            if state in self.shapes:
                of_state = _distinct_ids(id_of[batch.index_of(state)], n)
                self.measured.counts[state, :, 1] += np.bincount(key_group_index[of_state], minlength=k)
        size = batch.key_end - batch.key + batch.value_end - batch.value
        total = np.bincount(ids, weights=size if all_keyed else size[keyed], minlength=n).astype(np.int64)
        length = np.bincount(ids, minlength=n)
        self.keep("key", None, batch, total, length, group[first], start[first], end[first])

    def keep(
        self,
        what: str,
        state: str | None,
        batch: EntryBatch,
        size: Positions,
        length: Positions | None,
        group: Positions,
        start: Positions,
        end: Positions,
    ) -> None:
        """Keep the largest items; ``start .. end`` is the key of each."""
        if not len(size) or not self.task.most:
            return
        so_far = self.measured.extremes.get(what, [])
        index = largest(size, self.task.most)
        if len(so_far) == self.task.most:
            least = so_far[-1]
            of_index = size[index]
            index = index[(of_index > least.size) | ((of_index == least.size) & (group[index] <= least.group))]
        new = []
        for i in index.tolist():
            key = bytes(batch.data[start[i] : end[i]])
            number = 1 if length is None else int(length[i])
            new.append(extreme(int(size[i]), number, state, int(group[i]), self.task.source.subtask, key))
        self.measured.extremes[what] = top([*so_far, *new], self.task.most)

    # ---- values -------------------------------------------------------------------------------

    def values(self, state: int, meta: StateMetaInfo, entries: EntryBatch, keys: SplitKeys | None) -> None:
        shape, name = self.shapes[state], meta.name
        start, end = (entries.key, entries.key_end) if keys is None else (keys.key, keys.key_end)
        size = entries.value_end - entries.value
        self.measured.largest_value[state] = max(self.measured.largest_value[state], int(size.max()))
        self.keep("value", name, entries, size, None, entries.group, start, end)
        if shape.kind == "map" and shape.user_key is not None and keys is not None:
            ids, first = distinct(entries.data, keys.key, keys.user_key, entries.group)
            length = np.bincount(ids, minlength=len(first))
            total = np.bincount(ids, weights=size + entries.key_end - keys.user_key).astype(np.int64)
            self.measured.sizes[state, _LENGTH] += size_classes(length)
            self.keep("map", name, entries, total, length, entries.group[first], start[first], end[first])
        lists = self.lists(shape, entries)
        if lists is not None:
            self.measured.sizes[state, _LENGTH] += size_classes(lists[0])
            self.keep("list", name, entries, size, lists[0], entries.group, start, end)
        self.ages(name, shape, entries, lists)

    def lists(self, shape: StateLayout, entries: EntryBatch) -> tuple[Positions, Positions] | None:
        """Return the lengths of lists and the starts of their elements; ``None`` for other states, and for framed bytes, whose elements
        have no recorded ends.
        """
        if shape.kind != "list" or shape.framed_bytes:
            return None
        element_size = fixed_size(shape.element.program())
        if shape.packed is None and element_size:
            size = entries.value_end - entries.value
            if not ((size + 1) % (element_size + 1)).any():
                counts = (size + 1) // (element_size + 1)
                within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
                return counts, np.repeat(entries.value, counts) + within * (element_size + 1)
        counts, starts, _ = split_list(shape, entries.data, entries.value, entries.value_end)
        return counts, starts

    # ---- times --------------------------------------------------------------------------------

    def ages(
        self, name: str, shape: StateLayout, entries: EntryBatch, lists: tuple[Positions, Positions] | None
    ) -> None:
        """Count the times of last access, the first bytes of values with TTL."""
        if not isinstance(shape.element.program(), ir.Ttl):
            return
        access_at = entries.value
        if lists is not None:
            access_at = lists[1]
        elif shape.kind == "map" and shape.user_key is not None:
            access_at = entries.value[entries.value_end - entries.value > _ACCESS_BYTES]
            access_at = access_at[entries.data[access_at] == 0] + 1
        access = big_endian(entries.data, access_at)
        times = self.times(access, self.task.now_ms - access, AGE_EDGES)
        if self.task.ttl_ms is not None:
            times.expired = int((access <= self.task.now_ms - self.task.ttl_ms).sum())
        self.put(self.measured.ages, name, times)

    def times_of_timers(self, meta: StateMetaInfo, entries: EntryBatch) -> None:
        """Count timers by firing time: each begins with its time, the sign bit flipped."""
        fires = big_endian(entries.data, entries.key) ^ _SIGN
        # Timers of unbounded windows are at the largest time: a difference to it would overflow.
        ahead = np.where(fires > 0, fires - self.task.now_ms, np.maximum(fires, -(1 << 62)) - self.task.now_ms)
        self.put(self.measured.timers, meta.name, self.times(fires, ahead, TIMER_EDGES))

    @staticmethod
    def times(times: Positions, relative: Positions, edges: tuple[int, ...]) -> Times:
        summary = Times(count_spans(relative, edges))
        if len(times):
            summary.first_ms, summary.last_ms = int(times.min()), int(times.max())
        return summary

    @staticmethod
    def put(times_by_state: dict[str, Times], name: str, times: Times) -> None:
        if name in times_by_state:
            times_by_state[name].add(times)
        else:
            times_by_state[name] = times

    def done(self) -> Measured:
        """Return the measurements, with the keys of the largest items as text."""
        for what, extremes in self.measured.extremes.items():
            self.measured.extremes[what] = [replace(e, shown=self.key_text(e.key)) for e in extremes]
        return self.measured

    def key_text(self, raw: bytes) -> str:
        """Return a key as text, or its bytes in hex if it cannot be decoded."""
        key = self.header.key
        try:
            return display_value(decode_key(key, np.frombuffer(raw, dtype=np.uint8), 0, len(raw)), key.logical)
        except StatetoolError:
            return f"0x{raw.hex()}"

    # ---- compression --------------------------------------------------------------------------

    def sample(self, batch: EntryBatch) -> None:
        """Compress some of the bytes in blocks, as Flink does."""
        plain, packed = self.measured.snappy
        taken = min(self.task.sample_bytes - plain, len(batch.data))
        if taken <= 0:
            return
        self.measured.snappy = plain + taken, packed + packed_size(batch.data[:taken].data)


def _distinct_ids(ids: Positions, n: int) -> Positions:
    """Return the distinct ones of ids below ``n``."""
    if (ids[1:] > ids[:-1]).all():
        return ids
    if len(ids) * 16 < n:
        return np.unique(ids)
    present = np.zeros(n, dtype=np.bool_)
    present[ids] = True
    return np.flatnonzero(present)
