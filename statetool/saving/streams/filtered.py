"""Keyed streams from which entries are removed in place: key groups without changes keep their bytes and are not decoded.

This works for streams in which each key group is a range of bytes in the canonical layout. State in other forms is shuffled to new
canonical streams (:mod:`statetool.saving.streams.keyed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from statetool.entries.form import KeyGroupBytes, error_context
from statetool.formats.keyed.entries import EntryBatch, concat
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.saving.publish import Staging
from statetool.saving.streams.filters import EntryFilter, added_batch
from statetool.saving.streams.output import KeyedStreamWriter, NewStream, Piece, StreamOutput, UnshuffledStreams, Write
from statetool.saving.streams.runs import order_of_keys, pack_run
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import NOTHING_DECLARED, TypeContext

_COPY_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredStreams(UnshuffledStreams):
    """Streams of the subtasks of an operator that a filter changes; picklable. The other subtasks are carried over.

    Attributes
    ----------
    stored
        The streams of the base, by subtask.
    """

    filter: EntryFilter
    stored: dict[int, KeyGroupBytes]
    inline_bytes: int
    types: TypeContext = NOTHING_DECLARED

    @property
    def parsed(self) -> KeyedHeader:
        """The header of the first stream."""
        return next(iter(self.stored.values())).reader.header()

    @property
    def subtasks(self) -> Sequence[int]:
        """The subtasks whose streams change."""
        return sorted(self.stored)

    @property
    def size_bytes(self) -> int:
        """Stored bytes of the streams."""
        return sum(stored.stream.size_bytes for stored in self.stored.values())

    def of_subtask(self, subtask: int) -> FilteredStreams:
        """Return the streams restricted to one subtask."""
        stored = self.stored[subtask]
        entry_filter = self.filter.for_task([group.number for group in stored.ranges])
        return replace(self, filter=entry_filter, stored={subtask: stored})

    def write(self, subtask: int, staging: Staging) -> NewStream:
        """Write the stream of one subtask."""
        stored = self.stored[subtask]
        first, count = stored.handle.start, len(stored.handle.offsets)
        with error_context(stored.reader), StreamOutput(staging, "keyed", inline_bytes=self.inline_bytes) as out:
            header = stored.reader.header()
            with stored.stream.open() as f:
                raw = bytes(f.read_at(0, stored.header_size))
                writer = KeyedStreamWriter(out.write, raw, range(first, first + count), compressed=header.compressed)
                for group in (*stored.ranges, *self._new_groups(stored)):
                    if self.filter.removes(group.number):
                        continue
                    if self._changes(stored, header, group):
                        writer.add_pieces(group.number, self._pieces(stored, header, group), stored.prefix)
                    else:
                        with writer.stored_group(group.number) as append:
                            copy_group(f.read_at, group, append)
        handle = replace(stored.handle, offsets=tuple(writer.offsets.tolist()), stream=out.handle())
        return NewStream(subtask=subtask, handle=handle, files=out.files)

    def _new_groups(self, stored: KeyGroupBytes) -> list[KeyGroupRange]:
        """Return the key groups of the subtask that have only added entries."""
        existing = {group.number for group in stored.ranges}
        own = range(stored.handle.start, stored.handle.start + len(stored.handle.offsets))
        numbers = sorted({entry.key_group for entry in self.filter.added if entry.key_group in own} - existing)
        return [KeyGroupRange(number, 0, 0) for number in numbers]

    def _changes(self, stored: KeyGroupBytes, header: KeyedHeader, group: KeyGroupRange) -> bool:
        if any(entry.key_group == group.number for entry in self.filter.added):
            return True
        return self.filter.may_change(group.number) and any(
            self.filter.apply(header, batch) is not batch for batch in _batches(stored, group)
        )

    def _pieces(self, stored: KeyGroupBytes, header: KeyedHeader, group: KeyGroupRange) -> Iterator[Piece]:
        """Yield the entries of a key group that stay, and those that are added to it, by state."""
        ids = {meta.name: i for i, meta in enumerate(header.states)}
        added = sorted((e for e in self.filter.added if e.key_group == group.number), key=lambda e: ids[e.state])
        for batch in _batches(stored, group):
            last = int(batch.state[-1])
            due = [entry for entry in added if ids[entry.state] <= last]
            added = added[len(due) :]
            remaining = self.filter.apply(header, batch)
            yield from _piece([remaining, *([added_batch(due, ids)] if due else [])], stored.prefix, in_order=not due)
        if added:
            yield from _piece([added_batch(added, ids)], stored.prefix, in_order=False)


def _batches(stored: KeyGroupBytes, group: KeyGroupRange) -> Iterator[EntryBatch]:
    source = stored.reader.within([group.number])
    return iter(()) if source is None else source.batches()


def _piece(batches: list[EntryBatch], prefix: int, *, in_order: bool) -> Iterator[Piece]:
    batch = concat([b for b in batches if len(b)]) if any(map(len, batches)) else batches[0]
    if len(batch):
        order = np.arange(len(batch)) if in_order else order_of_keys(batch)[0]
        yield pack_run(batch, order, prefix), batch, order


def filtered_streams(operator: OperatorInventory, filter: EntryFilter, inline_bytes: int) -> FilteredStreams | None:
    """Plan to filter an operator's streams in place; ``None`` if not all of them are ranges of canonical key groups."""
    stored = {}
    unplaced = {entry.key_group for entry in filter.added}
    for state in operator.keyed.managed:
        found = state.key_group_bytes(operator.keyed.context)
        if found is None:
            return None
        own = range(found.handle.start, found.handle.start + len(found.handle.offsets))
        added = [entry for entry in filter.added if entry.key_group in own]
        if not {entry.state for entry in added} <= {meta.name for meta in found.reader.header().states}:
            return None
        unplaced -= {entry.key_group for entry in added}
        if added or any(filter.may_change(r.number) for r in found.ranges):
            stored[state.place.subtask] = found
    if unplaced:
        return None
    return FilteredStreams(filter=filter, stored=stored, inline_bytes=inline_bytes, types=operator.types)


def copy_group(read_at: Callable[[int, int], memoryview], group: KeyGroupRange, append: Write) -> None:
    """Append the stored bytes of a key group."""
    for at in range(0, group.size_bytes, _COPY_BYTES):
        append(read_at(group.offset + at, min(_COPY_BYTES, group.size_bytes - at)))
