"""Assembly of shuffled entries into the sorted key groups of one subtask.

Runs in a task. Memory: about ``memory_bytes``; a larger key group is sorted and merged on local disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from statetool.columns.pieces import Joined, Ranges, pack
from statetool.errors import StatetoolError
from statetool.formats.keyed.entries import EntryBatch, Int64s, concat
from statetool.kernels.deal import mark_equal
from statetool.saving.streams.output import GroupJoiner, KeyedStreamWriter
from statetool.saving.streams.runs import (
    PRESENCE,
    PackedRun,
    Segments,
    Spill,
    cuts,
    entry_batch,
    order_of_keys,
    pack_run,
    portions,
    reorder_run,
)

if TYPE_CHECKING:
    from statetool.kernels.arrays import Bytes

_LEAST_WINDOW: Final = 64 << 10
#: Bytes of small key groups that are assembled at once, chosen to stay in the processor's cache.
_PORTION_BYTES: Final = 2 << 20
#: Bytes of the index after the key of a single list element.
INDEX_BYTES: Final = 8
#: Part of a key group: packed entries, and the batch and order that select them.
Piece: TypeAlias = "tuple[PackedRun, EntryBatch, Int64s]"


def write_pieces(writer: KeyedStreamWriter, number: int, pieces: Iterator[Piece], prefix: int) -> None:
    """Append a key group given in pieces; an empty one is omitted.

    Parameters
    ----------
    prefix
        Bytes of the key-group prefix of each key.
    """
    pieces = (piece for piece in pieces if len(piece[2]))
    first = next(pieces, None)
    if first is None:
        return
    with writer.group(number) as append:
        joiner = GroupJoiner(append, prefix)
        joiner.add(*first)
        for piece in pieces:
            joiner.add(*piece)
        joiner.finish()


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

    def write(self, writer: KeyedStreamWriter, segments: Segments) -> None:
        """Append all key groups to a stream.

        Raises
        ------
        StatetoolError
            Two entries have the same key (the error that ``duplicate`` makes).
        """
        for portion in self.steps(segments):
            first, last = int(portion.numbers[0]), int(portion.numbers[-1])
            if first == last and portion.size_bytes > self.memory_bytes:
                write_pieces(writer, first, (self.settled(*b) for b in self.merged(portion)), self.prefix)
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
        if (batch.state >= PRESENCE).any() or (self.lists and np.isin(batch.state, self.lists).any()):
            return self.settled(batch, order)[0]
        if (np.diff(run.numbers) > 0).all() and (order == np.arange(len(order))).all():
            return run  # such as a key group that only moves to another subtask
        return reorder_run(run, batch, order, self.prefix)

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

    def merged(self, segments: Segments) -> Iterator[tuple[EntryBatch, Int64s]]:
        """Sort one key group on local disk and merge it. Yield batches in order, each with the order of its entries.

        All entries of a batch sort before those of the next one. The elements of a list are in one batch.
        """
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
