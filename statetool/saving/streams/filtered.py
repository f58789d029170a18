"""Keyed streams from which entries are removed in place: key groups without changes keep their bytes and are not decoded.

This works for streams in which each key group is a range of bytes in the canonical layout. State in other forms is shuffled to new
canonical streams (:mod:`statetool.saving.streams.keyed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from statetool.entries.form import KeyGroupBytes, error_context
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange
from statetool.saving.publish import Staging
from statetool.saving.streams.filters import EntryFilter
from statetool.saving.streams.gather import Piece, write_pieces
from statetool.saving.streams.output import KeyedStreamWriter, NewStream, StreamOutput, Write
from statetool.saving.streams.runs import pack_run
from statetool.snapshot.operator import OperatorInventory
from statetool.types.declared import NOTHING_DECLARED, TypeContext

_COPY_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredStreams:
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
        return replace(self, stored={subtask: self.stored[subtask]})

    def writer(self, staging: Staging) -> Callable[[int], NewStream]:
        """Return the function that writes the stream of a subtask."""
        return partial(self.write, staging=staging)

    def write(self, subtask: int, staging: Staging) -> NewStream:
        """Write the stream of one subtask."""
        stored = self.stored[subtask]
        first, count = stored.handle.start, len(stored.handle.offsets)
        with error_context(stored.reader), StreamOutput(staging, "keyed", inline_bytes=self.inline_bytes) as out:
            header = stored.reader.header()
            with stored.stream.open() as f:
                raw = bytes(f.read_at(0, stored.header_size))
                writer = KeyedStreamWriter(out.write, raw, range(first, first + count), compressed=header.compressed)
                for group in stored.ranges:
                    if self.filter.removes(group.number):
                        continue
                    if self._changes(stored, header, group):
                        write_pieces(writer, group.number, self._pieces(stored, header, group), stored.prefix)
                    else:
                        with writer.stored_group(group.number) as append:
                            _copy(f.read_at, group, append)
        handle = replace(stored.handle, offsets=tuple(writer.offsets.tolist()), stream=out.handle())
        return NewStream(subtask=subtask, handle=handle, file=out.file)

    def _changes(self, stored: KeyGroupBytes, header: KeyedHeader, group: KeyGroupRange) -> bool:
        source = stored.reader.within([group.number])
        if source is None or not self.filter.may_change(group.number):
            return False
        return any(self.filter.apply(header, batch) is not batch for batch in source.batches())

    def _pieces(self, stored: KeyGroupBytes, header: KeyedHeader, group: KeyGroupRange) -> Iterator[Piece]:
        source = stored.reader.within([group.number])
        assert source is not None
        for batch in source.batches():
            remaining = self.filter.apply(header, batch)
            if len(remaining):
                order = np.arange(len(remaining))
                yield pack_run(remaining, order, stored.prefix), remaining, order


def filtered_streams(operator: OperatorInventory, filter: EntryFilter, inline_bytes: int) -> FilteredStreams | None:
    """Plan to filter an operator's streams in place; ``None`` if not all of them are ranges of canonical key groups."""
    stored = {}
    for state in operator.keyed.managed:
        found = state.key_group_bytes(operator.keyed.context)
        if found is None:
            return None
        if any(filter.may_change(r.number) for r in found.ranges):
            stored[state.place.subtask] = found
    return FilteredStreams(filter=filter, stored=stored, inline_bytes=inline_bytes, types=operator.types)


def _copy(read_at: Callable[[int, int], memoryview], group: KeyGroupRange, append: Write) -> None:
    for at in range(0, group.size_bytes, _COPY_BYTES):
        append(read_at(group.offset + at, min(_COPY_BYTES, group.size_bytes - at)))
