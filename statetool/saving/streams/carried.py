"""Merge of a subtask's entries of the base with shuffled ones, while the base is read.

Canonical streams are read a few key groups at a time, which are merged with the shuffled entries of the same key groups in memory. Entries of
other stored forms go through local disk, because they are not read in the order of their key groups, and so do key groups larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import Final

import numpy as np

from statetool.formats.keyed.entries import EntryBatch, drain
from statetool.saving.streams.keyed import CarriedEntries, KeyedStreams
from statetool.saving.streams.runs import PackedRun, Segments, Spill, deal_run, lowest_of

#: Bytes of small key groups that are merged at once, chosen to stay in the processor's cache.
_PORTION_BYTES: Final = 2 << 20


def merge_carried(
    streams: KeyedStreams, kept: Sequence[CarriedEntries], shuffled: Segments, memory_bytes: int
) -> Iterator[Segments | PackedRun]:
    """Yield the key groups of a subtask in portions for :meth:`KeyedStreams.write`.

    Parameters
    ----------
    kept
        Entries of the base that stay in their key groups.

    Raises
    ------
    FormatError, EncodeError
        Damaged bytes; two entries with the same key.
    """
    ordered = _in_order(kept)
    if ordered is None:
        yield from _by_disk(streams, chain.from_iterable(entries.batches() for entries in kept), shuffled)
        return
    gatherer = streams.gatherer(memory_bytes)
    batches = chain.from_iterable(entries.batches() for entries in ordered)
    for portion in _portions(batches, min(_PORTION_BYTES, memory_bytes)):
        held, size = _take(portion, memory_bytes)
        before, shuffled = _split(shuffled, int(held[0].group[0]))
        if len(before):
            yield before
        own, following = _split(shuffled, int(held[-1].group[-1]) + 1)
        if size + own.size_bytes <= memory_bytes:
            if len(own):
                held.append(own.load().entries(streams.prefix))
            yield gatherer.merge(drain(held))
        else:  # also a single large key group at the end, of which only a part was read
            yield from _by_disk(streams, chain(_release(held), portion), own)
        shuffled = following
    if len(shuffled):
        yield shuffled


def _in_order(kept: Sequence[CarriedEntries]) -> list[CarriedEntries] | None:
    """Return entries in the order of their key groups; ``None`` if they cannot be read and copied in this order."""
    if not all(e.source.is_canonical and e.filter is None and not e.conversions for e in kept):
        return None
    ordered = sorted(kept, key=lambda entries: min(entries.source.group_sizes()))
    numbers = [number for entries in ordered for number in entries.source.group_sizes()]
    return ordered if all(a < b for a, b in pairwise(numbers)) else None


def _portions(batches: Iterable[EntryBatch], limit: int) -> Iterator[Iterator[EntryBatch]]:
    """Divide batches between key groups into portions of at least ``limit`` bytes; each is read before the next one."""
    number = size = 0
    last = -1

    def number_of(batch: EntryBatch) -> int:
        nonlocal number, size, last
        if size >= limit and batch.group[0] != last:
            number, size = number + 1, 0
        size += len(batch.data)
        last = int(batch.group[-1])
        return number

    return (portion for _, portion in groupby(batches, number_of))


def _take(batches: Iterator[EntryBatch], memory_bytes: int) -> tuple[list[EntryBatch], int]:
    """Return batches, until they exceed the memory, with their bytes."""
    held: list[EntryBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch.data)
        if size > memory_bytes:
            break
    return held, size


def _release(batches: list[EntryBatch]) -> Iterator[EntryBatch]:
    """Yield batches, and remove each from the list before the next one is read."""
    while batches:
        yield batches.pop(0)


def _split(segments: Segments, number: int) -> tuple[Segments, Segments]:
    """Return the segments of key groups below a number, and the others."""
    at = int(np.searchsorted(segments.numbers, number))
    return segments.take(slice(None, at)), segments.take(slice(at, None))


def _by_disk(streams: KeyedStreams, batches: Iterable[EntryBatch], shuffled: Segments) -> Iterator[Segments]:
    """Store entries on local disk, and yield them together with shuffled ones."""
    with Spill() as spill:
        for place, batch in enumerate(batches):
            run = deal_run(batch, streams.prefix)
            spill.add(run, place, lowest=lowest_of(batch, run.numbers, streams.lists))
        yield shuffled.beside(spill.segments())
