"""Samples of the entries of a state: up to a number of them, spread over its key groups or its elements, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from statetool.entries.form import EntryRequest, KeyGroupReader, size_of
from statetool.entries.selection import StateSelection
from statetool.entries.sizes import TARGET_BYTES
from statetool.snapshot.operator import OperatorInventory

Entry = tuple[int, bytes, bytes]
#: Bytes of an operator's keyed state up to which all of it is read to choose among its entries.
_READ_WHOLE: Final = 64 << 20
#: Sources, and key groups of each, that are read of larger ones.
_MOST_SOURCES: Final = 32
_MOST_GROUPS: Final = 4
_MOST_BYTES: Final = 64 << 20


@dataclass(slots=True)
class Sample:
    """Entries of a state: key group, composite key and value. ``is_whole``: they are all of its entries."""

    most: int | None
    entries: list[Entry] = field(default_factory=list)
    is_whole: bool = True
    _step: int = 1
    _seen: int = 0
    _bytes: int = 0

    def add(self, entry: Entry) -> None:
        """Offer an entry. If there are twice as many as wanted, every second one is forgotten, so that the others stay evenly spread."""
        self._seen += 1
        if (self._seen - 1) % self._step:
            self.is_whole = False
            return
        self.entries.append(entry)
        self._bytes += sum(map(len, entry[1:]))
        if (self.most is not None and len(self.entries) > 2 * self.most) or (
            self.most is not None and self._bytes > _MOST_BYTES
        ):
            self._thin()

    def _thin(self) -> None:
        self.is_whole = False
        self._step *= 2
        self.entries = self.entries[::2]
        self._bytes = sum(len(part) for entry in self.entries for part in entry[1:])

    def finished(self) -> Sample:
        """Return the sample with no more entries than wanted."""
        if self.most is not None and len(self.entries) > self.most:
            self.is_whole = False
            count = len(self.entries)
            self.entries = [self.entries[i * count // self.most] for i in range(self.most)]
        return self


def keyed_sample(operator: OperatorInventory, name: str, most: int | None) -> Sample:
    """Return entries of a keyed state.

    Raises
    ------
    StatetoolError
        They cannot be found, because a serializer of the heap backend's form is not known, or bytes are damaged.
    """
    sample = Sample(most)
    sources, whole = _sources(operator, most)
    sample.is_whole = whole
    quota = None if whole or most is None else max(1, -(-most // len(sources)))
    request = EntryRequest(states=(name,), batch_bytes=4 << 20)
    for source in sources:
        for entry in islice(_entries(source, name, request), quota):
            sample.add(entry)
    return sample.finished()


def _sources(operator: OperatorInventory, most: int | None) -> tuple[list[KeyGroupReader], bool]:
    """Return the sources to read, and whether they are all: some key groups of some of them if there are many bytes."""
    keyed = operator.keyed
    found: list[KeyGroupReader] = []
    for stored in keyed.managed:
        found += stored.sources(keyed.context, groups=None, target_bytes=TARGET_BYTES)
    if most is None or sum(map(size_of, found)) <= _READ_WHOLE:
        return found, True
    count = min(len(found), _MOST_SOURCES)
    chosen = []
    for source in (found[i * len(found) // count] for i in range(count)):
        groups = sorted(source.group_sizes())
        several = min(len(groups), _MOST_GROUPS)
        parts = (source.within([groups[i * len(groups) // several]]) for i in range(several))
        chosen += [part for part in parts if part is not None]
    return chosen, False


def _entries(source: KeyGroupReader, name: str, request: EntryRequest) -> Iterator[Entry]:
    selection = StateSelection(source.header(), (name,))
    for batch in source.batches(request):
        for number in selection.metas:
            part = batch.of_state(number)
            columns = (part.group, part.key, part.key_end, part.value, part.value_end)
            for group, key, key_end, value, value_end in zip(*(c.tolist() for c in columns), strict=True):
                yield group, bytes(part.data[key:key_end]), bytes(part.data[value:value_end])


def element_sample(operator: OperatorInventory, name: str, most: int | None) -> Sample:
    """Return elements of an operator state; for broadcast state, all entries of a subtask are one."""
    # Arrow takes long to load, and most checks do not need it.
    from statetool.tables.kinds.elements import ElementSplit, raw_elements
    from statetool.tables.request import ScanRequest
    from statetool.tables.scan import scan_table

    sample = Sample(most)
    table = next(t for t, place in operator.state_tables.items() if place == ("operator", name))
    for split in scan_table(operator, ScanRequest.of(table)).splits:
        assert isinstance(split, ElementSplit)
        for raw in raw_elements(split):
            sample.add((-1, b"", raw))
    return sample.finished()
