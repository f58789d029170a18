"""Measure the entries of one source of keyed state, in a task. Sizes follow from offsets, so values are not decoded.

Counts add up over sources. Only the keys of the few largest items are decoded, for display.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.analysis.statistics.extremes import Extreme, extreme, top
from statetool.analysis.statistics.spans import AGE_EDGES, SIZE_CLASSES, TIMER_EDGES, count_spans, size_classes
from statetool.columns.values import StateLayout, big_endian, split_list
from statetool.entries.form import ALL_ENTRIES, EntryRequest, KeyGroupReader, error_context
from statetool.entries.headers import header_bytes
from statetool.entries.keys import SplitKeys
from statetool.entries.selection import StateSelection
from statetool.errors import UNREAD, DecodeError, FormatError, StatetoolError
from statetool.formats.compression import packed_size
from statetool.formats.keyed.distinct import distinct
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.naming import named_header
from statetool.formats.state_meta import StateMetaInfo
from statetool.formats.stream import Stream
from statetool.io.open_files import keeping_open
from statetool.java.hashing.keys import decode_key
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.layout import decode_times
from statetool.kernels.entries.measures import KEY_BYTES, count_keys, measure_rows, select_largest
from statetool.kernels.values import program as ir
from statetool.kernels.values.sizes import fixed_size
from statetool.types.display import display_value
from statetool.types.options import Columns

#: Where lengths are counted, after the sizes of keys and of values.
_LENGTH: Final = 2
_ACCESS_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureTask:
    """Measurement of one task; picklable. Rows of keys have ``field_names``, ``most`` of the largest items are kept, and times count from ``now_ms``.

    ``head`` is the stream with the header that is read for the driver, with its size; ``None`` if the driver knows the header. Errors may be
    returned if headers of other subtasks ``may_help``.
    """

    source: KeyGroupReader
    operator: str
    most: int
    now_ms: int
    ttl_ms: int | None
    sample_bytes: int
    field_names: Columns = ()
    head: tuple[Stream, int] | None = None
    may_help: bool = False

    def reads(self) -> tuple[KeyGroupReader, EntryRequest]:
        return self.source, ALL_ENTRIES


@dataclass(slots=True)
class Times:
    """Times of one state, by span."""

    counts: Int64s
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
    """Measurements of a source: ``counts`` of entries, keys, bytes of keys and bytes of values by state and key group, int64[states, groups, 4].

    ``key_counts`` int64[groups] counts distinct keys over all states. ``sizes`` int64[states, 3, 64] counts key bytes, value bytes and
    lengths by their size. ``snappy`` are bytes of a sample, plain and compressed. ``unread`` is the reason why nothing was read. ``header`` is
    what was read for the driver. With an ``error``, all counts are 0.
    """

    states: tuple[str, ...]
    groups: tuple[int, ...]
    subtask: int
    keys_known: bool
    counts: npt.NDArray[np.int64]
    key_counts: Int64s
    sizes: npt.NDArray[np.int64]
    largest_value: Int64s
    extremes: dict[str, list[Extreme]] = field(default_factory=dict)
    ages: dict[str, Times] = field(default_factory=dict)
    timers: dict[str, Times] = field(default_factory=dict)
    snappy: tuple[int, int] = (0, 0)
    unread: str = ""
    header: bytes | None = None
    error: StatetoolError | None = None

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
            counts=np.zeros((n, len(groups), 4), dtype=np.int64),
            key_counts=np.zeros(len(groups), dtype=np.int64),
            sizes=np.zeros((n, 3, SIZE_CLASSES), dtype=np.int64),
            largest_value=np.zeros(n, dtype=np.int64),
            unread=unread,
        )

    def bytes_of_groups(self) -> Int64s:
        """Return the bytes of keys and values of each key group: int64[groups]."""
        sums: Int64s = self.counts[:, :, KEY_BYTES:].sum(axis=(0, 2))
        return sums


def measure(task: MeasureTask) -> Measured:
    """Measure a source; if statetool cannot read it, all counts are 0, and ``unread`` of the result gives the reason. Each file is opened once.

    Raises
    ------
    FormatError, DecodeError
        Damaged bytes; with operator, file, offset and key group if known.
    """
    with keeping_open():
        header = None
        try:
            if task.head is not None:
                with error_context(task.source):
                    header = header_bytes(*task.head)
            measured = _measure(task)
        except UNREAD as error:
            measured = Measured.of(
                task.source.subtask, task.source.group_sizes(), unread=str(error.at(operator=task.operator))
            )
        except (FormatError, DecodeError) as error:
            if not task.may_help:
                raise
            measured = Measured.of(task.source.subtask, task.source.group_sizes())
            measured.error = error.at(operator=task.operator)
        measured.header = header
        return measured


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
        groups = np.array(sorted(task.source.group_sizes()), dtype=np.int64)
        #: The index of each key group among those of the source.
        self.index_of_group = np.full(int(groups.max(initial=-1)) + 1, -1, dtype=np.int64)
        self.index_of_group[groups] = np.arange(len(groups))
        self.selection = StateSelection(header, None)
        self.shapes = {i: StateLayout(m) for i, m in enumerate(header.states) if m.kind != "timers"}
        #: States whose values have lengths or times.
        self.detailed = {i for i, shape in self.shapes.items() if shape.kind in ("list", "map") or _has_times(shape)}
        names = tuple(m.name for m in header.states)
        #: The order of names: of items that are equal otherwise, that of the last name counts as the largest.
        self.rank = np.argsort(np.argsort(np.array(names, dtype=object))).astype(np.int64)
        self.measured = Measured.of(
            task.source.subtask, task.source.group_sizes(), states=names, keys_known=not header.key.needs_frame
        )

    def add(self, batch: EntryBatch) -> None:
        """Add entries; all entries of a key are in one batch."""
        self.count(batch.by_state())
        keyed = []
        for state in batch.states():
            if state in self.shapes:
                keyed.append(state)
            else:
                self.times_of_timers(self.header.states[state], batch.of_state(state))
        if keyed:
            self.keyed_states(batch, keyed)
        self.sample(batch)

    def count(self, batch: EntryBatch) -> None:
        """Count the entries and their bytes by state and key group, and their sizes by state."""
        measured = self.measured
        index = self.index_of_group[batch.group]
        measure_rows(batch.state, batch.rows(), index, measured.counts, measured.sizes, measured.largest_value)

    def keyed_states(self, batch: EntryBatch, states: Sequence[int]) -> None:
        """Measure the keys and values of all states but timers."""
        if not self.measured.keys_known:
            entries = batch.of_states(states)
            self.largest_values(entries, entries.key, entries.key_end)
            for state in states:
                if state in self.detailed:
                    self.values(state, batch.of_state(state), None)
            return
        parts = list(self.selection.split_layouts(batch, states))
        entries = batch.of_states([state for part in parts for state in part.states])
        start = np.concatenate([part.keys.key for part in parts])
        end = np.concatenate([part.keys.key_end for part in parts])
        self.largest_values(entries, start, end)
        detailed = [of_state for part in parts for of_state in part.each(self.detailed)]
        for state, of_state, keys in sorted(detailed, key=lambda item: item[0]):
            self.values(state, of_state, keys)
        self.keys(entries, start, end)

    # ---- keys ---------------------------------------------------------------------------------

    def keys(self, entries: EntryBatch, start: Int64s, end: Int64s) -> None:
        """Count distinct keys, per state and overall, and keep those with the most bytes."""
        ids, first = distinct(entries.data, start, end, entries.group)
        n = len(first)
        index = self.index_of_group[entries.group]
        self.measured.key_counts += np.bincount(index[first], minlength=len(self.measured.groups))
        count_keys(entries.state, ids, index, np.full(n, -1, dtype=np.int64), self.measured.counts)
        size = entries.key_end - entries.key + entries.value_end - entries.value
        total = np.bincount(ids, weights=size, minlength=n).astype(np.int64)
        length = np.bincount(ids, minlength=n)
        self.keep("key", None, entries, total, length, entries.group[first], start[first], end[first])

    def keep(
        self,
        what: str,
        state: str | Int64s | None,
        entries: EntryBatch,
        size: Int64s,
        length: Int64s | None,
        group: Int64s,
        start: Int64s,
        end: Int64s,
    ) -> None:
        """Keep the largest items; ``start .. end`` is the key of each, and ``state`` its state, or the name of the state of all."""
        out = np.empty(min(self.task.most, len(size)), dtype=np.int64)
        rank = length
        if rank is None:
            rank = self.rank[state] if isinstance(state, np.ndarray) else np.zeros_like(size)
        index = out[: select_largest(entries.data, size, group, start, end, rank, out)]
        so_far = self.measured.extremes.get(what, [])
        if len(so_far) == self.task.most and so_far:
            least = so_far[-1]
            of_index = size[index]
            index = index[(of_index > least.size) | ((of_index == least.size) & (group[index] <= least.group))]
        new = []
        for i in index.tolist():
            key = bytes(entries.data[start[i] : end[i]])
            number = 1 if length is None else int(length[i])
            name = self.header.states[state[i]].name if isinstance(state, np.ndarray) else state
            new.append(extreme(int(size[i]), number, name, int(group[i]), self.task.source.subtask, key))
        if new:
            self.measured.extremes[what] = top([*so_far, *new], self.task.most)

    # ---- values -------------------------------------------------------------------------------

    def largest_values(self, entries: EntryBatch, start: Int64s, end: Int64s) -> None:
        """Keep the largest values of all states; ``start .. end`` is the key of each entry."""
        size = entries.value_end - entries.value
        self.keep("value", entries.state, entries, size, None, entries.group, start, end)

    def values(self, state: int, entries: EntryBatch, keys: SplitKeys | None) -> None:
        """Measure lists, maps and the times of values of one state."""
        shape = self.shapes[state]
        name = shape.name
        if shape.kind == "map" and shape.user_key is not None and keys is not None:
            ids, first = distinct(entries.data, keys.key, keys.user_key, entries.group)
            length = np.bincount(ids, minlength=len(first))
            size = entries.value_end - entries.value + entries.key_end - keys.user_key
            total = np.bincount(ids, weights=size).astype(np.int64)
            self.measured.sizes[state, _LENGTH] += size_classes(length)
            self.keep("map", name, entries, total, length, entries.group[first], keys.key[first], keys.key_end[first])
        lists = self.lists(shape, entries)
        if lists is not None:
            start, end = (entries.key, entries.key_end) if keys is None else (keys.key, keys.key_end)
            self.measured.sizes[state, _LENGTH] += size_classes(lists[0])
            size = entries.value_end - entries.value
            self.keep("list", name, entries, size, lists[0], entries.group, start, end)
        self.ages(name, shape, entries, lists)

    def lists(self, shape: StateLayout, entries: EntryBatch) -> tuple[Int64s, Int64s] | None:
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

    def ages(self, name: str, shape: StateLayout, entries: EntryBatch, lists: tuple[Int64s, Int64s] | None) -> None:
        """Count the times of last access, the first bytes of values with TTL."""
        if not _has_times(shape):
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
        """Count timers by firing time: each begins with its time."""
        fires = decode_times(entries.data, entries.key)
        # Timers of unbounded windows are at the largest time: a difference to it would overflow.
        ahead = np.where(fires > 0, fires - self.task.now_ms, np.maximum(fires, -(1 << 62)) - self.task.now_ms)
        self.put(self.measured.timers, meta.name, self.times(fires, ahead, TIMER_EDGES))

    @staticmethod
    def times(times: Int64s, relative: Int64s, edges: tuple[int, ...]) -> Times:
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


def _has_times(shape: StateLayout) -> bool:
    """Return True if values have a time of last access."""
    return isinstance(shape.element.program(), ir.Ttl)
