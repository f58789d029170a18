"""Keyed streams of a migrated snapshot that catch up with a later one: only entries that changed in between are converted.

Both snapshots are read and hashed, a run of key groups at a time. A key group without changes keeps the bytes of the migrated snapshot. In
another one, the changed and removed entries are left out, and the converted new ones are merged in, so that the result is the same as if
all entries of the later snapshot were converted. Memory: the hashes of a key group, and entries in portions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from statetool.analysis.comparison.meaning import Seeds
from statetool.analysis.comparison.side import SideRequest, Slice, SnapshotSide, pair_equal_hashes
from statetool.entries.form import TARGET_BYTES, KeyGroupBytes, KeyGroupReader
from statetool.errors import FormatError, several
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.order import merge_edits
from statetool.saving.publish import Staging
from statetool.saving.streams.filtered import copy_group
from statetool.saving.streams.gather import Gatherer, align
from statetool.saving.streams.keyed import CarriedEntries, KeyedStreams
from statetool.saving.streams.output import KeyedStreamWriter, NewStream, Piece, UnshuffledStreams
from statetool.saving.streams.runs import PRESENCE, Segments, Spill, deal_run, pack_run

#: Stored bytes of both snapshots that are compared at once. A larger key group is compared alone.
_RUN_BYTES: Final = TARGET_BYTES // 2
_MEMORY_BYTES: Final = 32 << 20
#: Number of changed entries that are converted at once.
_PORTION: Final = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpStreams(UnshuffledStreams):
    """New streams of an operator whose state was migrated before; picklable.

    Attributes
    ----------
    streams
        The streams of a migration of all entries of the later snapshot.
    before, after
        Entries of the two snapshots, with the same conversions and state ids.
    migrated
        The streams of the migrated earlier snapshot. Their header is that of ``streams``.
    subtasks
        The subtasks that get a stream.
    """

    streams: KeyedStreams
    before: tuple[CarriedEntries, ...]
    after: tuple[CarriedEntries, ...]
    migrated: tuple[KeyGroupBytes, ...]
    subtasks: Sequence[int]

    @property
    def parsed(self) -> KeyedHeader:
        return self.streams.parsed

    @property
    def size_bytes(self) -> int:
        stored = sum(stored.stream.size_bytes for stored in self.migrated)
        return stored + sum(entries.size_bytes for entries in (*self.before, *self.after))

    def of_subtask(self, subtask: int) -> CatchUpStreams:
        groups = self.streams.numbers(subtask)
        return replace(
            self,
            before=tuple(_within(self.before, groups)),
            after=tuple(_within(self.after, groups)),
            migrated=tuple(m for m in self.migrated if any(r.number in groups for r in m.ranges)),
            subtasks=(subtask,),
        )

    def write(self, subtask: int, staging: Staging) -> NewStream:
        return self.streams.write_with(partial(self._fill, self.streams.numbers(subtask)), subtask, staging)

    def _fill(self, groups: range, writer: KeyedStreamWriter) -> None:
        before, after = list(_within(self.before, groups)), list(_within(self.after, groups))
        stored = {r.number: (m, r) for m in self.migrated for r in m.ranges if r.number in groups}
        sizes = dict.fromkeys(groups, 0)
        for entries in (*before, *after):
            for number, size in entries.source.group_sizes().items():
                sizes[number] += size
        ranges = [KeyGroupRange(number, 0, size) for number, size in sizes.items() if size or number in stored]
        with ExitStack() as stack:
            opened = {s: stack.enter_context(s.open()) for s in {m.stream for m, _ in stored.values()}}
            for run in batches_of(ranges, limit=_RUN_BYTES):
                numbers = [r.number for r in run]
                with _Changes(self.streams, list(_within(before, numbers)), list(_within(after, numbers))) as changes:
                    for number in numbers:
                        of_migrated, group = stored.get(number, (None, None))
                        if of_migrated is None or group is None or len(changes.of(number)):
                            writer.add_pieces(number, changes.apply(number, of_migrated), self.streams.prefix)
                            continue
                        with writer.stored_group(number) as append:
                            copy_group(opened[of_migrated.stream].read_at, group, append)


def _within(entries: Iterable[CarriedEntries], groups: Sequence[int]) -> Iterator[CarriedEntries]:
    """Yield the entries of some key groups."""
    for some in entries:
        own = [number for number in groups if number in some.source.group_sizes()]
        source = some.source.within(own) if own else None
        if source is not None:
            yield replace(some, source=source)


class _Changes:
    """Edits of some key groups of the migrated snapshot: converted entries that were added or changed, and keys that were removed.

    A block in which their files exist.
    """

    def __init__(self, streams: KeyedStreams, before: list[CarriedEntries], after: list[CarriedEntries]) -> None:
        self.streams = streams
        self._before, self._after = before, after
        self._spill = Spill()
        self._gatherer: Gatherer = streams.gatherer(_MEMORY_BYTES)
        self._edits: Segments
        #: Numbers of stored entries that have to be removed or replaced, and that were.
        self._expected = self._found = 0

    def __enter__(self) -> _Changes:
        try:
            self._find()
        except BaseException:
            self._spill.__exit__()
            raise
        self._edits = self._spill.segments()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._spill.__exit__()
        if kind is None and self._found != self._expected:
            raise FormatError(
                f"{several(self._expected, 'entry')} changed since the migration, of which the migrated snapshot has {self._found}",
                hint="check it with statetool verify --deep, or migrate the later snapshot (statetool migrate)",
            ).at(operator=self.streams.operator)

    def _find(self) -> None:
        seeds = Seeds()
        before, after = (_side(entries, seeds) for entries in (self._before, self._after))
        key_a, value_a = before.hashes()
        key_b, value_b = after.hashes()
        pairs, added = pair_equal_hashes(key_a, key_b)
        matched = np.flatnonzero(pairs >= 0)
        changed = pairs[matched[value_a[matched] != value_b[pairs[matched]]]]
        removed = np.flatnonzero(pairs < 0)
        self._expected = len(changed) + len(removed)
        new = _converted(after, self._after, np.union1d(changed, added))
        gone = (
            replace(batch, state=batch.state | PRESENCE, value_end=batch.value)
            for batch in _converted(before, self._before, removed)
        )
        for place, batch in enumerate(chain(new, gone)):
            self._spill.add(deal_run(batch, self.streams.prefix), place)

    def of(self, number: int) -> Segments:
        """Return the edits of a key group."""
        return self._edits.within(range(number, number + 1))

    def apply(self, number: int, stored: KeyGroupBytes | None) -> Iterator[Piece]:
        """Yield the entries of a key group after the edits."""
        prefix = self.streams.prefix
        source = None if stored is None else stored.reader.within([number])
        entries: Iterator[EntryBatch] = iter(()) if source is None else source.batches()
        for of_stored, of_edits in align([entries, self._sorted(self.of(number))]):
            batch = concat([b for b in (of_stored, of_edits) if b is not None])
            order = np.arange(len(batch))
            if of_edits is not None:
                state, removed = batch.state & (PRESENCE - 1), batch.state >= PRESENCE
                first = 0 if of_stored is None else len(of_stored)
                count, found = merge_edits(batch.data, state, batch.key, batch.key_end, first, removed, order)
                self._found += int(found)
                order = order[:count]
            yield pack_run(batch, order, prefix), batch, order

    def _sorted(self, edits: Segments) -> Iterator[EntryBatch]:
        """Yield edits of one key group in order."""
        prefix = self.streams.prefix
        if not len(edits):
            return
        if edits.size_bytes > _MEMORY_BYTES:
            runs = self._gatherer.parts(edits)
        else:
            batch = edits.load().entries(prefix)
            runs = iter([(batch, self._gatherer.sorted(batch))])
        for batch, order in runs:
            yield pack_run(batch, order, prefix).entries(prefix)


def _side(entries: Sequence[CarriedEntries], seeds: Seeds) -> SnapshotSide:
    states = tuple(entries[0].ids) if entries else ()
    sources: tuple[KeyGroupReader, ...] = tuple(e.source for e in entries)
    return SnapshotSide(SideRequest(sources=sources, states=states, keys=None), seeds, Slice())


def _converted(side: SnapshotSide, entries: Sequence[CarriedEntries], index: Int64s) -> Iterator[EntryBatch]:
    """Yield the converted entries numbered ``index``."""
    for at in range(0, len(index), _PORTION):
        for header, batch, _ in side.chosen(index[at : at + _PORTION]):
            yield from entries[0].convert(header, batch)
