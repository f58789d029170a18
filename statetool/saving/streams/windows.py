"""Removal of windows: their contents, trigger states, timers and entries of merged windows together. Runs in tasks.

Timers and merged windows have to be known before contents are judged. When a task meets the first entry of a key group, it reads these of
the key group from the snapshot, and remembers windows as numbers: a hash of the key, start and end. Large sets are sorted on local disk.
Windows are kept if they are found in a set, so that two keys with the same hash can keep a window. The exception are contents of sessions
that no merged window holds: a removed window of another key with the same hash takes them along.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import Self

from statetool.columns.types import table_column
from statetool.columns.values import StateLayout, decode_framed, split_list
from statetool.entries.form import EntryRequest, KeyGroupReader, error_context
from statetool.entries.keys import split_keys
from statetool.errors import StatetoolError
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.state_meta import StateMetaInfo
from statetool.kernels.core.arrays import Bytes, Int64s
from statetool.kernels.entries.layout import decode_times
from statetool.saving.streams.expired import ShortLists, shorten_lists
from statetool.saving.streams.filters import AddedEntry, Bools, hash_bytes, key_bounds
from statetool.saving.streams.predicates import OPTIONS, key_columns, matching_rows
from statetool.serializers.core.base import Serializer
from statetool.serializers.value_ends import find_ends
from statetool.tables.kinds.window_layout import WindowLayout
from statetool.types import Scalar, StructType

#: Windows of a run in memory, and evaluated key groups that a task remembers.
_RUN: Final = 1 << 20
_REMEMBERED: Final = 4
_FIRST: Final = np.iinfo(np.int64).min
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of keys: hash of the key, start and end of each, and the positions of key and window in ``data``."""

    data: Bytes
    key: Int64s
    key_end: Int64s
    start: Int64s
    end: Int64s

    @property
    def hashes(self) -> npt.NDArray[np.uint64]:
        """The hashes of the keys."""
        return hash_bytes(self.data, self.key, self.key_end)

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: npt.NDArray[Any]) -> Windows:
        """Return some of the windows."""
        return Windows(self.data, *(a[index] for a in (self.key, self.key_end, self.start, self.end)))


class WindowSet:
    """Windows by key, sorted in runs; those beyond the first run are on local disk."""

    def __init__(self) -> None:
        self._runs: list[tuple[npt.NDArray[np.uint64], Int64s, Int64s]] = []
        self._added: list[tuple[npt.NDArray[np.uint64], Int64s, Int64s]] = []
        self._waiting = 0

    def add(self, hashes: npt.NDArray[np.uint64], start: Int64s, end: Int64s) -> None:
        """Add windows."""
        self._added.append((hashes, start, end))
        self._waiting += len(hashes)
        if self._waiting >= _RUN:
            self._sort()

    def contain(self, windows: Windows) -> Bools:
        """Return a mask of the windows that one of the same key contains."""
        if self._waiting:
            self._sort()
        found = np.zeros(len(windows), dtype=np.bool_)
        hashes = windows.hashes
        for run in self._runs:
            found |= _contained(run, hashes, windows.start, windows.end)
        return found

    def _sort(self) -> None:
        hashes, start, end = (np.concatenate(parts) for parts in zip(*self._added, strict=True))
        self._added, self._waiting = [], 0
        order = np.lexsort((start, hashes))
        run = hashes[order], start[order], _greatest_before(hashes[order], end[order])
        if self._runs:
            hashes, start, end = (_on_disk(array) for array in run)
            run = hashes, start, end
        self._runs.append(run)


def _on_disk(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    with tempfile.TemporaryFile() as f:
        stored = np.memmap(f, dtype=array.dtype, mode="w+", shape=array.shape)
    stored[:] = array
    return stored


def _greatest_before(hashes: npt.NDArray[np.uint64], end: Int64s) -> Int64s:
    """Return for each window the greatest end of the windows of its key up to it."""
    n = len(end)
    order = np.argsort(end, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    key = np.cumsum(np.concatenate([np.zeros(min(n, 1), dtype=np.int64), (hashes[1:] != hashes[:-1]).astype(np.int64)]))
    greatest: Int64s = end[order][np.maximum.accumulate(key * n + rank) - key * n]
    return greatest


def _contained(
    run: tuple[npt.NDArray[np.uint64], Int64s, Int64s],
    hashes: npt.NDArray[np.uint64],
    start: Int64s,
    end: Int64s,
) -> Bools:
    """Return a mask of the windows that begin at or after, and end at or before, one of the same key."""
    own_hashes, own_start, reach = run
    first, last = np.searchsorted(own_hashes, hashes, "left"), np.searchsorted(own_hashes, hashes, "right")
    low, high = first.copy(), last.copy()
    while (low < high).any():
        middle = np.minimum((low + high) // 2, len(own_start) - 1)
        unsettled, is_before = low < high, own_start[middle] <= start
        low, high = (
            np.where(unsettled & is_before, middle + 1, low),
            np.where(unsettled & ~is_before, middle, high),
        )
    found: Bools = (low > first) & (reach[np.maximum(low - 1, 0)] >= end)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """The windows with timers of a key group: all, and those with a timer that is not before a time."""

    all: WindowSet
    late: WindowSet


class WindowRule(Protocol):
    """Choice of the windows that stay; picklable."""

    @property
    def needs_timers(self) -> bool:
        """Return True if the timers of a key group have to be read."""
        ...

    @property
    def removes_unheld(self) -> bool:
        """Return True if contents that no merged window holds are removed: no window can fire them."""
        ...

    def keeps(self, header: KeyedHeader, layout: WindowLayout, windows: Windows, timers: Timers) -> Bools:
        """Return a mask of the windows that stay."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ObsoleteWindows:
    """Rule that removes windows whose time is over, or without timers.

    Attributes
    ----------
    before_ms
        Windows are removed if they end before this time, and have no timer at or after it. ``None`` for no limit.
    without_timer
        Windows are removed if no timer of the same key belongs to a window that contains them.
    size_ms
        Size of windows that are cut into slices. Without it, ``before_ms`` removes no slices of aggregates, and a slice has a timer if the
        key has one of a window that does not end before it.
    """

    before_ms: int | None = None
    without_timer: bool = False
    size_ms: int | None = None

    @property
    def needs_timers(self) -> bool:
        return True

    @property
    def removes_unheld(self) -> bool:
        return self.without_timer

    def timer_start(self, layout: WindowLayout, start: Int64s) -> Int64s:
        """Return the starts of windows with timers."""
        if not layout.shares_slices:
            return start
        return np.full(len(start), _FIRST) if self.size_ms is None else start - self.size_ms

    def keeps(self, header: KeyedHeader, layout: WindowLayout, windows: Windows, timers: Timers) -> Bools:
        """Return a mask of the windows that stay."""
        stays = np.ones(len(windows), dtype=np.bool_)
        if self.before_ms is not None and layout.shares_slices:
            stays &= timers.late.contain(windows) | (self.size_ms is None)
        elif self.before_ms is not None:
            # The greatest timestamp in a window is its end minus 1.
            stays &= (windows.end > self.before_ms) | timers.late.contain(windows)
        if self.without_timer:
            stays &= timers.all.contain(windows)
        return stays


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCondition:
    """Rule by a SQL condition on the columns ``key`` and ``window``, or ``window_end`` of slices.

    Attributes
    ----------
    keep
        Whether windows that fulfil the condition stay and all others are removed, instead of the opposite.
    """

    where: str
    keep: bool

    @property
    def needs_timers(self) -> bool:
        return False

    @property
    def removes_unheld(self) -> bool:
        return self.keep

    def keeps(self, header: KeyedHeader, layout: WindowLayout, windows: Windows, timers: Timers) -> Bools:
        """Return a mask of the windows that stay."""
        keys = key_columns(header.key, decode_framed(header.key, windows.data, windows.key, windows.key_end, OPTIONS))
        table = condition_columns(header.key, layout).empty_table()
        ends = pa.array(windows.end)
        window = (
            ends if layout.sliced else pa.StructArray.from_arrays([pa.array(windows.start), ends], ["start", "end"])
        )
        table = pa.table([*keys.columns, window.cast(table.schema.field(-1).type)], schema=table.schema)
        fulfilled = np.zeros(len(windows), dtype=np.bool_)
        fulfilled[matching_rows(table, self.where)] = True
        return fulfilled if self.keep else ~fulfilled


def condition_columns(key: Serializer, layout: WindowLayout) -> pa.Schema:
    """Return the columns that a condition on windows may name."""
    name, kind = (
        ("window_end", Scalar("int64"))
        if layout.sliced
        else ("window", StructType.of(start=Scalar("int64"), end=Scalar("int64")))
    )
    return pa.schema([*table_column(key.logical, OPTIONS).fields("key"), *table_column(kind, OPTIONS).fields(name)])


class _Slices:
    """Slices of the keys of a key group, and the windows of which they have timers."""

    def __init__(self, rule: ObsoleteWindows) -> None:
        self._rule = rule
        self._parts: list[tuple[npt.NDArray[np.uint64], Int64s, Bools]] = []

    def add(self, hashes: npt.NDArray[np.uint64], end: Int64s, is_late: Bools) -> None:
        """Add slices by their ends."""
        if self._rule.size_ms is not None:
            self._parts.append((hashes, end, is_late))

    def late(self, before_ms: int, size_ms: int) -> tuple[npt.NDArray[np.uint64], Int64s, Int64s]:
        """Return runs of slices that stay: hash of the key, first and last end.

        Slices less than a window apart may be parts of one window, so they stay or go together. They go if no window of them ends after a
        time or has a timer after it.
        """
        if not self._parts:
            nothing = np.empty(0, dtype=np.int64)
            return nothing.view(np.uint64), nothing, nothing
        hashes, end, is_late = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        order = np.lexsort((end, hashes))
        hashes, end, is_late = hashes[order], end[order], is_late[order]
        begins = np.concatenate(
            [np.ones(min(len(end), 1), dtype=np.bool_), (hashes[1:] != hashes[:-1]) | (np.diff(end) >= size_ms)]
        )
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(end)) - 1
        stays = (
            (end[last] + size_ms > before_ms) | (np.add.reduceat(is_late.astype(np.int64), first) > 0)
            if len(first)
            else first > 0
        )
        return hashes[first[stays]], end[first[stays]], end[last[stays]]


@dataclass(frozen=True, slots=True)
class _Facts:
    """Timers of a key group, and the windows that store the contents of merged windows that stay, and of those that are removed."""

    timers: Timers
    holders: WindowSet
    released: WindowSet


@dataclass(frozen=True, kw_only=True)
class WindowFilter:
    """Filter that removes windows.

    Attributes
    ----------
    sources
        Readers of the snapshot, for timers and merged windows.
    groups
        The key groups that may change, ``None`` if unknown.
    """

    layout: WindowLayout
    rule: WindowRule
    sources: tuple[KeyGroupReader, ...]
    groups: frozenset[int] | None = None
    _evaluated: dict[int, _Facts] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluated": {}}

    @property
    def added(self) -> tuple[AddedEntry, ...]:
        """No entries."""
        return ()

    def may_change(self, key_group: int) -> bool:
        return self.groups is None or key_group in self.groups

    def removes(self, key_group: int) -> bool:
        return False

    def within(self, groups: frozenset[int]) -> WindowFilter:
        """Return the filter for a snapshot in which only these key groups change."""
        return replace(self, groups=groups)

    def for_task(self, groups: Collection[int]) -> Self:
        """Return the filter for a task that has only entries of these key groups."""
        return replace(self, sources=tuple(_within(self.sources, groups)))

    def apply(self, header: KeyedHeader, batch: EntryBatch) -> EntryBatch:
        """Return the remaining entries, with shorter lists of merged windows; ``batch`` itself if nothing changes."""
        stays = np.ones(len(batch), dtype=np.bool_)
        lists: ShortLists = []
        for number, meta in enumerate(header.states):
            own = np.flatnonzero(batch.state == number) if self.layout.concerns(meta.name) else ()
            if not len(own):
                continue
            groups = batch.group[own]
            for group in np.unique(groups).tolist() if self.rule.needs_timers or self.layout.merged else [None]:
                index = np.asarray(own) if group is None else np.asarray(own)[groups == group]
                facts = _Facts(_no_timers(), WindowSet(), WindowSet()) if group is None else self._facts(group)
                try:
                    self._mark(header, meta, batch, index, facts, stays, lists)
                except StatetoolError as error:
                    raise batch.locate(error.at(state=meta.name)) from None
        if lists:
            batch = shorten_lists(batch, stays, lists)
        return batch if stays.all() else batch.take(np.flatnonzero(stays))

    def removed_windows(self, header: KeyedHeader, batch: EntryBatch) -> npt.NDArray[np.uint64]:
        """Return a hash of each removed window among entries, which may be repeated. Contents of merged windows count with these."""
        found = [np.empty(0, dtype=np.uint64)]
        for number, meta in enumerate(header.states):
            if not self.layout.concerns(meta.name) or meta.name in self.layout.contents:
                continue
            own = np.flatnonzero(batch.state == number)
            for group in np.unique(batch.group[own]).tolist():
                part = batch.take(own[batch.group[own] == group])
                windows = self._windows(header, meta, part)
                gone = windows.take(~self.rule.keeps(header, self.layout, windows, self._facts(group).timers))
                mixed = gone.hashes * np.uint64(0x9E3779B97F4A7C15) ^ gone.start.view(np.uint64)
                found.append(mixed * np.uint64(0xC4CEB9FE1A85EC53) ^ gone.end.view(np.uint64))
        return np.concatenate(found)

    def _mark(
        self,
        header: KeyedHeader,
        meta: StateMetaInfo,
        batch: EntryBatch,
        index: Int64s,
        facts: _Facts,
        stays: Bools,
        lists: ShortLists,
    ) -> None:
        """Mark the entries of a state in a key group that stay, and collect lists of merged windows that become shorter."""
        part = batch.take(index)
        if meta.name in self.layout.contents:
            windows = self._own_windows(header, meta, part)
            stays[index] = facts.holders.contain(windows)
            if not self.rule.removes_unheld:
                stays[index] |= ~facts.released.contain(windows)
            return
        kept = self.rule.keeps(header, self.layout, self._windows(header, meta, part), facts.timers)
        if meta.name != self.layout.merged or meta.kind == "map":
            stays[index] = kept
            return
        counts, starts, ends = split_list(StateLayout(meta), part.data, part.value, part.value_end)
        owner = np.repeat(np.arange(len(counts)), counts)
        left = np.bincount(owner[kept], minlength=len(counts))
        stays[index] = left > 0
        shorter = (left > 0) & (left < counts)
        if shorter.any():
            lists.append((index[shorter], kept & shorter[owner], starts, ends, left[shorter]))

    def _windows(self, header: KeyedHeader, meta: StateMetaInfo, part: EntryBatch) -> Windows:
        """Return the windows of the entries of a state: several for each list of merged windows."""
        return (
            self._merged(header, meta, part)[0]
            if meta.name == self.layout.merged
            else self._own_windows(header, meta, part)
        )

    def _own_windows(self, header: KeyedHeader, meta: StateMetaInfo, part: EntryBatch) -> Windows:
        """Return the namespaces of entries as windows."""
        if meta.kind == "timers":
            start, end = key_bounds(header, part)
            return self._at(part.data, start, end, end)
        keys = split_keys(part, header.key, meta)
        return self._at(part.data, keys.key, keys.key_end, keys.namespace)

    def _at(self, data: Bytes, key: Int64s, key_end: Int64s, window: Int64s) -> Windows:
        first = _read_longs(data, window)
        return Windows(data, key, key_end, first, first if self.layout.sliced else _read_longs(data, window + 8))

    def _merged(self, header: KeyedHeader, meta: StateMetaInfo, part: EntryBatch) -> tuple[Windows, Windows]:
        """Return merged windows, and those that store the contents of each."""
        keys = split_keys(part, header.key, meta)
        if meta.kind == "map":
            # The value follows its null flag.
            pairs = keys.key, keys.key_end, keys.user_key, part.value + 1
        else:
            shape = StateLayout(meta)
            counts, starts, ends = split_list(shape, part.data, part.value, part.value_end)
            (_, window), _ = shape.item.children()
            holder = find_ends(window.program(), window.decode, part.data, starts, ends)
            pairs = np.repeat(keys.key, counts), np.repeat(keys.key_end, counts), starts, holder
        key, key_end, now, under = pairs
        return self._at(part.data, key, key_end, now), self._at(part.data, key, key_end, under)

    def _facts(self, key_group: int) -> _Facts:
        with _lock:
            found = self._evaluated.get(key_group)
        if found is None:
            found = self._evaluate(key_group)
            with _lock:
                while len(self._evaluated) >= _REMEMBERED:
                    del self._evaluated[next(iter(self._evaluated))]
                self._evaluated[key_group] = found
        return found

    def _evaluate(self, key_group: int) -> _Facts:
        """Read the timers and merged windows of a key group."""
        facts = _Facts(_no_timers(), WindowSet(), WindowSet())
        if isinstance(self.rule, ObsoleteWindows):
            self._add_timers(key_group, self.rule, facts.timers)
        if self.layout.merged is not None:
            for header, meta, part in self._entries(key_group, (self.layout.merged,)):
                windows, holders = self._merged(header, meta, part)
                kept = self.rule.keeps(header, self.layout, windows, facts.timers)
                for found, own in ((facts.holders, holders.take(kept)), (facts.released, holders.take(~kept))):
                    found.add(own.hashes, own.start, own.end)
        return facts

    def _add_timers(self, key_group: int, rule: ObsoleteWindows, timers: Timers) -> None:
        before, slices = rule.before_ms, _Slices(rule)
        for header, meta, part in self._entries(key_group, self.layout.timers):
            windows = self._own_windows(header, meta, part)
            hashes, start = windows.hashes, rule.timer_start(self.layout, windows.start)
            timers.all.add(hashes, start, windows.end)
            if before is not None:
                late = decode_times(part.data, part.key) >= before
                if not self.layout.shares_slices:
                    timers.late.add(hashes[late], start[late], windows.end[late])
                slices.add(hashes, windows.end, late)
        if before is None or not self.layout.shares_slices or rule.size_ms is None:
            return
        for header, meta, part in self._entries(key_group, self.layout.states):
            windows = self._own_windows(header, meta, part)
            slices.add(windows.hashes, windows.end, np.zeros(len(windows), dtype=np.bool_))
        timers.late.add(*slices.late(before, rule.size_ms))

    def _entries(
        self, key_group: int, names: tuple[str, ...]
    ) -> Iterator[tuple[KeyedHeader, StateMetaInfo, EntryBatch]]:
        for source in _within(self.sources, [key_group]):
            with error_context(source):
                header = source.header()
                numbers = [n for n, meta in enumerate(header.states) if meta.name in names]
                for batch in source.batches(EntryRequest(states=names)) if numbers else ():
                    for number in numbers:
                        part = batch.of_state(number)
                        if len(part):
                            yield header, header.states[number], part


def _no_timers() -> Timers:
    return Timers(all=WindowSet(), late=WindowSet())


def _within(sources: Collection[KeyGroupReader], groups: Collection[int]) -> Iterator[KeyGroupReader]:
    for source in sources:
        if (part := source.within(groups)) is not None:
            yield part


def _read_longs(data: Bytes, at: Int64s) -> Int64s:
    raw = np.ascontiguousarray(data[at[:, None] + np.arange(8)])
    return raw.view(">i8").reshape(-1).astype(np.int64)
