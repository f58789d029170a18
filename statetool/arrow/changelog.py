"""Read splits of the changelog state backend: what was materialized, with the change log applied on top. Runs in a task.

The log is rewritten as deltas, dealt out by key group, on local disk. Then entries and deltas of some key groups
at a time are put together. A key group that is larger than the budget is dealt out again by the hash of its keys.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from statetool.arrow.keys import split_keys
from statetool.arrow.spill import dealt
from statetool.formats.key_groups import prefix_size
from statetool.formats.keyed.canonical import StreamLayout, is_larger, open_large, read_entries
from statetool.formats.keyed.change_sets import METADATA_GROUP, ChangeFiles, read_description
from statetool.formats.keyed.changelog import read_changes
from statetool.formats.keyed.delta_walk import DeltaWalker
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader, read_keyed_header
from statetool.formats.keyed.heap_walk import heap_windows
from statetool.formats.keyed.native import read_native
from statetool.formats.keyed.ranges import BATCH_BYTES, KeyGroupRange, batches_of
from statetool.formats.keyed.replay import joined, replay
from statetool.formats.state_meta import StateMeta
from statetool.formats.stream import OpenStream, Stream
from statetool.io.cursor import Cursor
from statetool.kernels.distinct import hash_ranges
from statetool.plan.splits import ChangelogSplit, KeyedSplit, NativeSplit
from statetool.serializers.context import reading_with
from statetool.types.declared import TypeContext

_WINDOW_SHARE: Final = 8
# What compressed bytes become, about.
_COMPRESSED_TO: Final = 4


def read_changelog(split: ChangelogSplit, header: KeyedHeader) -> Iterator[EntryBatch]:
    """Yield entries of the states of a table; all entries of a key are in one batch.

    Raises
    ------
    FormatError, UnsupportedError, UnknownSerializerError
        Damaged; or a change that takes code of the user, or whose parts cannot be told apart.
    """
    with ExitStack() as stack:
        reader = _Reader(split, header, stack)
        yield from reader.batches()


class _Reader:
    def __init__(self, split: ChangelogSplit, header: KeyedHeader, stack: ExitStack) -> None:
        self.split = split
        self.header = header
        self.n = len(header.states)
        self.prefix = prefix_size(split.spec.max_parallelism)
        self.wanted = {i: m for i, m in enumerate(header.states) if m.name in split.spec.states}
        self.layout = StreamLayout(prefix=self.prefix, states=2 * self.n, compressed=False)
        self.memory_bytes = split.spec.memory_bytes
        self.below = [
            _DatabaseBelow(s, self.wanted, self.prefix)
            if isinstance(s, NativeSplit)
            else _StreamBelow(s, self.wanted, self.prefix, stack)
            for s in split.below
        ]
        self.log = _DeltaLog(self, stack)

    def batches(self) -> Iterator[EntryBatch]:
        sizes = dict.fromkeys(self.split.key_groups, 0)
        for found in (*(b.sizes() for b in self.below), self.log.sizes()):
            for number, size in found.items():
                sizes[number] += size
        groups = [KeyGroupRange(number, 0, size) for number, size in sizes.items() if size]
        for run in batches_of(groups):
            numbers = [g.number for g in run]
            if len(run) == 1 and run[0].size_bytes > self.memory_bytes:
                window = max(1 << 20, self.memory_bytes // _WINDOW_SHARE)
                yield from (
                    self.replayed(batch)
                    for batch in dealt(
                        self.windows(numbers, window), self.hashes, numbers[0], self.layout, run[0].size_bytes,
                        memory_bytes=self.memory_bytes,
                    )
                )  # fmt: skip
            else:
                parts = list(self.windows(numbers, BATCH_BYTES))
                if parts:
                    yield self.replayed(joined(parts))

    def replayed(self, batch: EntryBatch) -> EntryBatch:
        return replay(batch, self.header.states, file=self.split.stream.file)

    def windows(self, numbers: Sequence[int], window: int) -> Iterator[EntryBatch]:
        """Yield entries, then deltas, of some key groups, about ``window`` bytes at a time."""
        for below in self.below:
            yield from below.windows(numbers, window)
        yield from self.log.windows(numbers, window)

    def hashes(self, window: EntryBatch) -> npt.NDArray[np.uint64]:
        """Return a hash of the key of each entry and delta; of a timer's, of all of it."""
        found = np.empty(len(window), dtype=np.int64)
        for number in np.unique(window.state).tolist():
            meta = self.header.states[number % self.n]
            index = np.flatnonzero(window.state == number)
            some = window.take(index)
            if meta.kind == "timers":
                start, stop = some.key, some.key_end
            else:
                keys = split_keys(some, self.header.key, meta)
                start, stop = keys.key, keys.key_end
            hashes = np.empty(len(index), dtype=np.int64)
            hash_ranges(window.data, start, stop, some.group, hashes)
            found[index] = hashes | 1
        return found.view(np.uint64)


class _StreamBelow:
    """A materialized stream; entries get the state ids of the header of all states."""

    def __init__(self, split: KeyedSplit, wanted: dict[int, StateMeta], prefix: int, stack: ExitStack) -> None:
        self.stream = stack.enter_context(split.stream.open())
        header = _header(self.stream, split.header_bytes, split.spec.types)
        self.layout = StreamLayout(
            prefix=prefix,
            states=len(header.states),
            compressed=header.compressed,
            heap=header if split.heap else None,
        )
        numbers = {m.name: i for i, m in wanted.items()}
        self.ids = np.array([numbers.get(m.name, -1) for m in header.states], dtype=np.int64)
        self.ranges = {r.number: r for r in split.key_groups}

    def sizes(self) -> dict[int, int]:
        factor = _COMPRESSED_TO if self.layout.compressed else 1
        return {number: r.size_bytes * factor for number, r in self.ranges.items()}

    def windows(self, numbers: Iterable[int], window: int) -> Iterator[EntryBatch]:
        for run in batches_of([self.ranges[n] for n in numbers if n in self.ranges], limit=window):
            for batch in self._batches(run, window):
                state = self.ids[batch.state]
                yield replace(batch, state=state).take(np.flatnonzero(state >= 0))

    def _batches(self, run: list[KeyGroupRange], window: int) -> Iterator[EntryBatch]:
        if len(run) > 1 or not is_larger(self.stream, run[0], self.layout, window):
            yield read_entries(self.stream, run, self.layout)
            return
        if self.layout.heap is not None:
            yield from heap_windows(self.stream, run[0], self.layout.heap, window=window)
            return
        with open_large(self.stream, run[0], self.layout) as group:
            yield from group.windows(window)


class _DatabaseBelow:
    """A materialized database; entries get the state ids of the header of all states."""

    def __init__(self, split: NativeSplit, wanted: dict[int, StateMeta], prefix: int) -> None:
        with split.stream.open() as f:
            self.own = _header(f, split.stream.size_bytes, split.spec.types)
        self.split = split
        self.prefix = prefix
        numbers = {m.name: i for i, m in wanted.items()}
        self.ids = np.array([numbers.get(m.name, -1) for m in self.own.states], dtype=np.int64)
        self.names = [m.name for m in wanted.values()]

    def sizes(self) -> dict[int, int]:
        groups = self.split.key_groups
        return dict.fromkeys(groups, max(1, self.split.size_bytes // max(1, len(groups))))

    def windows(self, numbers: Iterable[int], window: int) -> Iterator[EntryBatch]:
        groups = [n for n in numbers if n in self.split.key_groups]
        for batch in read_native(
            self.split.files,
            self.own,
            self.names,
            groups,
            prefix=self.prefix,
            whole_keys=False,
            batch_bytes=window,
        ):
            yield replace(batch, state=self.ids[batch.state])


class _DeltaLog:
    """The deltas of a split by key group: small canonical key groups one after another, whose state ids follow those of entries."""

    def __init__(self, reader: _Reader, stack: ExitStack) -> None:
        self.layout = reader.layout
        self._ranges: dict[int, list[KeyGroupRange]] = defaultdict(list)
        spill = stack.enter_context(tempfile.NamedTemporaryFile(prefix="statetool-"))  # noqa: SIM115 - closed by the stack
        with ChangeFiles() as files:
            walker = DeltaWalker(
                reader.header, frozenset(reader.wanted), frozenset(reader.split.key_groups), reader.prefix
            )
            ids: dict[int, int] = {}
            numbers = {m.name: i for i, m in enumerate(reader.header.states)}
            for change_set in reader.split.changes:
                for changes in read_changes(files, change_set):
                    for i in np.flatnonzero(changes.group == METADATA_GROUP).tolist():
                        state_id, meta = read_description(changes.cursor(i), changes.file)
                        ids[state_id] = numbers[meta.name]
                    packed, ranges = walker.packed(changes, ids)
                    at = spill.tell()
                    for r in ranges:
                        self._ranges[r.number].append(KeyGroupRange(r.number, at + r.offset, r.size_bytes))
                    spill.write(packed)
        spill.flush()
        self.stream = stack.enter_context(Stream(file=spill.name, start=0, size_bytes=spill.tell()).open())

    def sizes(self) -> dict[int, int]:
        return {number: sum(r.size_bytes for r in ranges) for number, ranges in self._ranges.items()}

    def windows(self, numbers: Iterable[int], window: int) -> Iterator[EntryBatch]:
        for number in numbers:
            for run in batches_of(self._ranges.get(number, ()), limit=window):
                yield read_entries(self.stream, run, self.layout)


def _header(f: OpenStream, size: int, types: TypeContext) -> KeyedHeader:
    with reading_with(types):
        return read_keyed_header(Cursor(f.read_at(0, size), base=f.stream.start), end=size)


__all__ = ["read_changelog"]
