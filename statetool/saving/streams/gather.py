"""Assembly of shuffled entries into the sorted key groups of one subtask.

Runs in a task. Memory: about ``memory_bytes``. A larger key group is read in the order of its keys if it was stored in about this order, as
entries of RocksDB are. Otherwise it is divided into parts on local disk, each of which is sorted in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from statetool.columns.pieces import Joined, Ranges, pack
from statetool.errors import StatetoolError
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.kernels.core.arrays import Int64s
from statetool.kernels.entries.deal import mark_equal
from statetool.kernels.entries.order import find_parts, key_heads
from statetool.saving.streams.output import GroupWriter
from statetool.saving.streams.runs import (
    INDEX_BYTES,
    PRESENCE,
    PackedRun,
    Segments,
    Spill,
    cuts,
    deal_run,
    ends_of_keys,
    entry_batch,
    order_of_keys,
    pack_run,
    portions,
    reorder_run,
)

if TYPE_CHECKING:
    from statetool.kernels.core.arrays import Bytes

_LEAST_WINDOW: Final = 64 << 10
#: Bytes of small key groups that are assembled at once, chosen to stay in the processor's cache.
_PORTION_BYTES: Final = 2 << 20
#: Least bytes, share and number of the entries of a large key group that determine its division into parts.
_SAMPLE_BYTES: Final = 2 << 20
_SAMPLED_SHARE: Final = 4
_SAMPLED_ENTRIES: Final = 1 << 16
#: Mean bytes of the entries of one part that are stored together.
_SEGMENT_BYTES: Final = 16 << 10
#: Parts on local disk are numbered in the place of key groups, by two bytes.
_PART_PREFIX: Final = 2
_MOST_PARTS: Final = 1 << 15


class Gatherer:
    """Assembler of the entries of key groups.

    Parameters
    ----------
    prefix
        Bytes of the key-group prefix of each key.
    lists
        States whose entries are list elements, with their index after the key.
    duplicate
        Makes the error for two entries with the same key, from key group, state and bytes of the key.
    """

    def __init__(
        self,
        prefix: int,
        *,
        lists: Collection[int] = (),
        duplicate: Callable[[int, int, bytes], StatetoolError],
        memory_bytes: int,
    ) -> None:
        self.prefix, self.lists, self.duplicate = prefix, tuple(lists), duplicate
        self.memory_bytes = memory_bytes

    def write(self, writer: GroupWriter, segments: Segments) -> None:
        """Append all key groups.

        Raises
        ------
        StatetoolError
            Two entries have the same key (the error that ``duplicate`` makes).
        """
        for portion in self.steps(segments):
            first, last = int(portion.numbers[0]), int(portion.numbers[-1])
            if first == last and portion.size_bytes > self.memory_bytes:
                writer.add_pieces(first, (self.settled(*b) for b in self.ordered(portion)), self.prefix)
                continue
            run = portion.load()
            batch = run.entries(self.prefix)
            writer.add_groups(self.in_order(run, batch))

    def steps(self, segments: Segments) -> Iterator[Segments]:
        """Cut segments between key groups into small portions; a larger key group forms a portion alone."""
        if not len(segments):
            return
        edges = [0, *(np.flatnonzero(np.diff(segments.numbers)) + 1).tolist(), len(segments)]
        total = np.concatenate([[0], np.cumsum(segments.sizes)])[edges]
        for first, stop in portions(total, min(_PORTION_BYTES, self.memory_bytes)):
            yield segments.take(slice(edges[first], edges[stop]))

    def sorted(self, batch: EntryBatch) -> Int64s:
        """Return the order of entries by key group, state and key."""
        order, twin = order_of_keys(batch)
        if twin is not None:
            state = int(batch.state[twin]) & (PRESENCE - 1)
            key = batch.data[batch.key[twin] : batch.key_end[twin]].tobytes()
            raise self.duplicate(int(batch.group[twin]), state, key[:-INDEX_BYTES] if state in self.lists else key)
        return order

    def in_order(self, run: PackedRun, batch: EntryBatch) -> PackedRun:
        """Return the distinct key groups of a run, sorted; ``batch`` are its entries."""
        order = self.sorted(batch)
        if self.changes(batch):
            return self.settled(batch, order)[0]
        if (np.diff(run.numbers) > 0).all() and (order == np.arange(len(order))).all():
            return run  # such as a key group that only moves to another subtask
        return reorder_run(batch, order, self.prefix)

    def merge(self, batch: EntryBatch) -> PackedRun:
        """Return the distinct key groups of entries of canonical key groups in any order, sorted; ``batch`` as in :func:`reorder_run`."""
        order = self.sorted(batch)
        if self.changes(batch):
            return self.settled(batch, order)[0]
        return reorder_run(batch, order, self.prefix)

    def changes(self, batch: EntryBatch) -> bool:
        """Return True if some entries are not written as they are."""
        return bool((batch.state >= PRESENCE).any()) or bool(self.lists and np.isin(batch.state, self.lists).any())

    def gather(self, batch: EntryBatch) -> PackedRun:
        """Return the distinct key groups of entries in any order, sorted."""
        return self.settled(batch, self.sorted(batch))[0]

    def settled(self, batch: EntryBatch, order: Int64s) -> tuple[PackedRun, EntryBatch, Int64s]:
        """Pack sorted entries in their final form: without presence entries, and with the elements of each list joined.

        Returns
        -------
        run, batch, order
            The packed entries, and the batch and order that select them.
        """
        if (batch.state >= PRESENCE).any():
            order = order[batch.state[order] < PRESENCE]
        if len(order) and self.lists and np.isin(batch.state[order], self.lists).any():
            batch = self.joined(batch.take(order))
            order = np.arange(len(batch))
        return pack_run(batch, order, self.prefix), batch, order

    def joined(self, batch: EntryBatch) -> EntryBatch:
        """Join the elements of each list; entries are sorted."""
        in_list = np.isin(batch.state, self.lists)
        end = batch.key_end - INDEX_BYTES * in_list
        first = np.flatnonzero(~(self.goes_on(batch, end) & in_list))
        elements = pack(Ranges(batch.data, batch.value, batch.value_end - batch.value))
        values = pack(Joined(elements, np.diff([*first.tolist(), len(batch)])))
        at = len(batch.data) + values.offsets
        data: Bytes = np.concatenate([batch.data, values.data])
        key = (batch.state[first], batch.group[first], batch.key[first], end[first])
        return entry_batch(data, *key, at[:-1], at[1:])

    def goes_on(self, batch: EntryBatch, end: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return a mask of the entries with the same key as the previous entry; keys end at ``end``."""
        same = np.zeros(len(batch), dtype=np.bool_)
        mark_equal(batch.data, batch.group, batch.state, batch.key, end, same)
        return same

    def ordered(self, segments: Segments) -> Iterator[tuple[EntryBatch, Int64s]]:
        """Sort one key group on local disk. Yield batches in order, each with the order of its entries.

        All entries of a batch sort before those of the next one. The elements of a list are in one batch.

        Segments are read in the order of their lowest entries. Entries below all unread segments are complete, and the others wait. If the
        segments have so little order that too many wait, the rest of the key group is divided. If the lowest entries of too many segments
        are not known, all of it is divided.
        """
        unread = segments.take(np.lexsort(segments.lowest[::-1]))
        waiting: PackedRun | None = None
        most = self.memory_bytes // 4
        if segments.sizes[~segments.lowest.any(axis=0)].sum() > most:
            yield from self.parts(segments)
            return
        while len(unread) and (waiting is None or len(waiting.data) <= most):
            portion = next(unread.cut(most))
            unread = unread.take(slice(len(portion), None))
            batch, waiting = self.completed(waiting, portion, unread)
            if len(batch):
                yield batch, self.sorted(batch)
        if len(unread):
            with Spill() as spill:
                if waiting is not None:
                    spill.add(waiting, 0)
                yield from self.parts(unread.beside(spill.segments()))

    def completed(
        self, waiting: PackedRun | None, portion: Segments, unread: Segments
    ) -> tuple[EntryBatch, PackedRun | None]:
        """Return the entries of a portion, and of those that wait, that are below all unread segments, and pack the others."""
        batch = self.entries(portion)
        if waiting is not None:
            batch = concat([waiting.entries(self.prefix), batch])
        if not len(unread):
            return batch, None
        part = np.empty(len(batch), dtype=np.int64)
        bound = unread.lowest[:, :1]
        find_parts(*self.heads(batch), bound[0].astype(np.int64), bound[1:].copy(), part)
        left = np.flatnonzero(part)
        if not len(left):
            return batch, None
        return batch.take(np.flatnonzero(part == 0)), deal_run(batch.take(left), self.prefix)

    def parts(self, segments: Segments) -> Iterator[tuple[EntryBatch, Int64s]]:
        """Divide one key group on local disk into parts in order, and sort each; yield as :meth:`ordered`."""
        number = int(segments.numbers[0])
        parts = min(_MOST_PARTS, -(-segments.size_bytes // max(1, min(2 * _PORTION_BYTES, self.memory_bytes // 4))))

        def duplicate(_: int, state: int, key: bytes) -> StatetoolError:
            return self.duplicate(number, state, key)

        within_part = self.within_parts(_PART_PREFIX, duplicate)
        with Spill() as spill:
            bounds = self.bounds(segments, parts)
            at_once = min(self.memory_bytes // 2, max(_PORTION_BYTES, parts * _SEGMENT_BYTES))
            for place, portion in enumerate(segments.cut(at_once)):
                batch = self.entries(portion)
                part = np.empty(len(batch), dtype=np.int64)
                find_parts(*self.heads(batch), *bounds, part)
                spill.add(deal_run(replace(batch, group=part), _PART_PREFIX), place)
            stored = spill.segments()
            for part_number in range(len(bounds[0]) + 1):
                own = stored.within(range(part_number, part_number + 1))
                if own.size_bytes > self.memory_bytes // 2:
                    # An estimate may be wrong, but if it divides little, most keys begin alike.
                    alike = own.size_bytes > segments.size_bytes // 2
                    batches = within_part.merged(own) if alike else within_part.parts(own)
                elif len(own):
                    batch = within_part.entries(own)
                    batches = iter([(batch, within_part.sorted(batch))])
                else:
                    continue
                for batch, order in batches:
                    yield replace(batch, group=np.full(len(batch), number, dtype=np.int64)), order

    def within_parts(self, prefix: int, duplicate: Callable[[int, int, bytes], StatetoolError]) -> Gatherer:
        """Return the assembler of the parts of a large key group."""
        return Gatherer(prefix, lists=self.lists, duplicate=duplicate, memory_bytes=self.memory_bytes)

    def heads(self, batch: EntryBatch) -> tuple[Int64s, Any]:
        """Return the states of entries, and the first bytes of their keys without the indexes of list elements."""
        head = np.empty((2, len(batch)), dtype=np.uint64)
        key_heads(batch.data, batch.key, ends_of_keys(batch, self.lists), head)
        return batch.state & (PRESENCE - 1), head

    def bounds(self, segments: Segments, parts: int) -> tuple[Int64s, Any]:
        """Return states and first bytes of keys that divide a key group into parts of similar size, found in some of its segments.

        A segment often has one state and a few of its keys, and the following segments have the next ones. So one of each few is chosen.
        """
        size_bytes = min(max(_SAMPLE_BYTES, segments.size_bytes // _SAMPLED_SHARE), self.memory_bytes // 2)
        count = max(1, len(segments) * size_bytes // max(1, segments.size_bytes))
        chosen = (np.arange(count) + np.random.default_rng(0).random(count)) * len(segments) / count
        batch = self.entries(segments.take(chosen.astype(np.int64)))
        batch = batch.take(slice(None, None, max(1, len(batch) // _SAMPLED_ENTRIES)))
        state, head = self.heads(batch)
        order = np.lexsort((head[1], head[0], state))
        size = np.cumsum((batch.key_end - batch.key + batch.value_end - batch.value)[order])
        first = order[np.searchsorted(size, size[-1] * np.arange(1, parts) // parts)]
        return state[first], head[:, first]

    def merged(self, segments: Segments) -> Iterator[tuple[EntryBatch, Int64s]]:
        """Sort runs of one key group on local disk and merge them; yield as :meth:`ordered`. For keys that begin alike, which do not divide."""
        sections = list(segments.cut(self.memory_bytes // 2))
        window = max(_LEAST_WINDOW, self.memory_bytes // (2 * len(sections)))
        with Spill() as spill:
            for place, portion in enumerate(sections):
                batch = self.entries(portion)
                for piece in cuts(batch, self.sorted(batch), None, window):
                    spill.add(pack_run(batch, piece, self.prefix), place)
            stored = spill.segments()
            sources = [map(self.entries, stored.take(stored.places == i).cut(1)) for i in range(len(sections))]
            held: EntryBatch | None = None
            for aligned in align(sources):
                batches = [batch for batch in aligned if batch is not None]
                batch = concat([*([] if held is None else [held]), *batches])
                order = self.sorted(batch)
                held = None
                if int(batch.state[order[-1]]) in self.lists:
                    last = self.last_list(batch, order)
                    held, order = batch.take(order[last:]), order[:last]
                    held = held.span(0, len(held))
                if len(order):
                    yield batch, order
            if held is not None:
                yield held, np.arange(len(held))

    def entries(self, segment: Segments) -> EntryBatch:
        return segment.load().entries(self.prefix)

    def last_list(self, batch: EntryBatch, order: Int64s) -> int:
        """Return the start of the last list in ``order``."""
        batch = batch.take(order)
        in_list = np.isin(batch.state, self.lists)
        begins = np.flatnonzero(~self.goes_on(batch, batch.key_end - INDEX_BYTES * in_list))
        return int(begins[-1])


def align(batches: Sequence[Iterator[EntryBatch]]) -> Iterator[list[EntryBatch | None]]:
    """Yield sorted entries of one key group from several sources in portions, one batch of each source, ``None`` if it has no entries.

    All entries of a portion sort before those of the next one.
    """
    sources = list(map(_Source, batches))
    while remaining := [s for s in sources if s.fill()]:
        bound = min(s.last() for s in remaining)
        yield [s.take(bound) if s in remaining else None for s in sources]


class _Source:
    """One sorted run, read one segment at a time."""

    def __init__(self, segments: Iterator[EntryBatch]) -> None:
        self.segments = segments
        self.batch: EntryBatch | None = None
        self.at = 0

    def fill(self) -> bool:
        """Load entries if none are left; return ``False`` at the end."""
        while self.batch is None or self.at == len(self.batch):
            self.batch = next(self.segments, None)
            self.at = 0
            if self.batch is None:
                return False
        return True

    def entry(self, i: int) -> tuple[int, bytes]:
        assert self.batch is not None
        b = self.batch
        return int(b.state[i]) & (PRESENCE - 1), bytes(b.data[b.key[i] : b.key_end[i]])

    def last(self) -> tuple[int, bytes]:
        assert self.batch is not None
        return self.entry(len(self.batch) - 1)

    def take(self, bound: tuple[int, bytes]) -> EntryBatch | None:
        """Return the entries up to ``bound``, over a buffer of only their bytes."""
        assert self.batch is not None
        low, high = self.at, len(self.batch)
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken = self.batch.span(self.at, low) if low > self.at else None
        self.at = low
        return taken
