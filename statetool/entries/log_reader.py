"""Reader of a changelog and the materialized state below it as entries.

The changelog is rewritten as deltas, partitioned by key group on local disk. Then entries and deltas are joined for some key groups at a
time. A key group larger than the budget is partitioned further by the hash of its keys.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np

from statetool.entries.form import EntryRequest, KeyGroupReader
from statetool.entries.selection import StateSelection
from statetool.entries.whole_keys import partition_by_key_hash
from statetool.formats.backends.canonical import StreamLayout, read_entries
from statetool.formats.changelog.change_sets import METADATA_GROUP, ChangeFiles, ChangeSet, read_description
from statetool.formats.changelog.changes import read_changes
from statetool.formats.changelog.delta_walk import DeltaWalker
from statetool.formats.changelog.replay import join_batches, replay
from statetool.formats.keyed.entries import EntryBatch
from statetool.formats.keyed.header import KeyedHeader
from statetool.formats.keyed.ranges import KeyGroupRange, batches_of
from statetool.formats.stream import OpenStream, Stream
from statetool.types.declared import TypeContext

_LEAST_WINDOW: Final = 1 << 20
_WINDOWS: Final = 8
# Estimated expansion of compressed bytes.
_COMPRESSED_TO: Final = 4


def read_log(
    below: Sequence[KeyGroupReader],
    changes: Sequence[ChangeSet],
    header: KeyedHeader,
    key_groups: Sequence[int],
    prefix: int,
    request: EntryRequest,
    *,
    file: str,
    types: TypeContext,
) -> Iterator[EntryBatch]:
    """Yield the entries of some key groups; all entries of a key are in one batch.

    Parameters
    ----------
    below
        Sources of materialized state.
    header
        One header with all states of the changelog and of materialized state.
    prefix
        Bytes of the key-group prefix of each key.
    file
        Name of the changelog in messages.

    Raises
    ------
    FormatError, UnsupportedError, UnknownSerializerError
        Damaged bytes; a change that needs user code, or whose parts cannot be separated.
    """
    selection = StateSelection(header, request.states)
    layout = StreamLayout(prefix=prefix, states=2 * len(header.states), compressed=False)
    with _deltas(changes, selection, frozenset(key_groups), layout, types) as log:
        materialized = [_Materialized(source, selection) for source in below]
        sizes = dict.fromkeys(key_groups, 0)
        for sizes_by_group in (*(source.sizes() for source in materialized), log.sizes()):
            for number, size in sizes_by_group.items():
                sizes[number] += size

        def windows(numbers: Sequence[int], window: int) -> Iterator[EntryBatch]:
            """Yield entries, then deltas, of some key groups, about ``window`` bytes at a time."""
            for source in materialized:
                yield from source.windows(numbers, window)
            yield from log.windows(numbers, window)

        memory = request.memory_bytes
        groups = [KeyGroupRange(number, 0, size) for number, size in sizes.items() if size]
        for run in batches_of(groups, limit=request.batch_bytes):
            numbers = [g.number for g in run]
            if len(run) > 1 or run[0].size_bytes <= memory:
                parts = list(windows(numbers, request.batch_bytes))
                together: Iterable[EntryBatch] = [join_batches(parts)] if parts else ()
            else:
                small = windows(numbers, max(_LEAST_WINDOW, memory // _WINDOWS))
                together = partition_by_key_hash(
                    small, selection.hashes, numbers[0], layout, run[0].size_bytes, memory_bytes=memory
                )
            for batch in together:
                if len(batch):
                    yield replay(batch, header.states, file=file)


class _Materialized:
    """A source of materialized state; its entries get the state ids of the header with all states."""

    def __init__(self, source: KeyGroupReader, selection: StateSelection) -> None:
        self.source = source
        own = source.header()
        numbers = {m.name: i for i, m in selection.metas.items()}
        self.names = tuple(numbers)
        self.ids = np.array([numbers.get(m.name, -1) for m in own.states], dtype=np.int64)
        self.factor = _COMPRESSED_TO if own.compressed else 1

    def sizes(self) -> dict[int, int]:
        return {number: size * self.factor for number, size in self.source.group_sizes().items()}

    def windows(self, numbers: Iterable[int], window: int) -> Iterator[EntryBatch]:
        part = self.source.within(frozenset(numbers))
        if part is None:
            return
        for batch in part.batches(EntryRequest(states=self.names, batch_bytes=window)):
            state = self.ids[batch.state]
            yield replace(batch, state=state).take(np.flatnonzero(state >= 0))


@contextmanager
def _deltas(
    changes: Iterable[ChangeSet],
    selection: StateSelection,
    key_groups: frozenset[int],
    layout: StreamLayout,
    types: TypeContext,
) -> Iterator[_Deltas]:
    """Rewrite the changes of some key groups as deltas in a file on local disk."""
    header = selection.header
    walker = DeltaWalker(header, frozenset(selection.metas), key_groups, layout.prefix)
    numbers = {m.name: i for i, m in enumerate(header.states)}
    ids: dict[int, int] = {}
    placed: dict[int, list[KeyGroupRange]] = defaultdict(list)
    with tempfile.NamedTemporaryFile(prefix="statetool-") as spill:
        with ChangeFiles() as files:
            for change_set in changes:
                for batch in read_changes(files, change_set):
                    for i in np.flatnonzero(batch.group == METADATA_GROUP).tolist():
                        state_id, meta = read_description(batch.cursor(i), types, batch.file)
                        ids[state_id] = numbers[meta.name]
                    packed, ranges = walker.packed(batch, ids)
                    start = spill.tell()
                    for r in ranges:
                        placed[r.number].append(KeyGroupRange(r.number, start + r.offset, r.size_bytes))
                    spill.write(packed)
        spill.flush()
        with Stream(file=spill.name, start=0, size_bytes=spill.tell()).open() as f:
            yield _Deltas(f, layout, placed)


class _Deltas:
    """Deltas of a changelog by key group: small canonical key groups one after another, with state ids that follow those of entries."""

    def __init__(self, f: OpenStream, layout: StreamLayout, ranges: Mapping[int, list[KeyGroupRange]]) -> None:
        self._f = f
        self._layout = layout
        self._ranges = ranges

    def sizes(self) -> dict[int, int]:
        return {number: sum(r.size_bytes for r in ranges) for number, ranges in self._ranges.items()}

    def windows(self, numbers: Iterable[int], window: int) -> Iterator[EntryBatch]:
        for number in numbers:
            for run in batches_of(self._ranges.get(number, ()), limit=window):
                yield read_entries(self._f, run, self._layout)
